// The server: who we are to it, questions, and answers that are problems.

import { dropGrant, isProved, keepGrant, nameBrowser, readGrant } from "/core/grant.js";

const WANTED = "yester.wanted";
const shared = "BroadcastChannel" in window ? new BroadcastChannel("yester") : null;

let bearer = ""; // of the server as it runs now; never sent to one that has not proved itself
let known = null; // a promise: the server has proved itself, and this tab is known to it

/** What the server refused, and what to do about it. */
export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `the server answered ${status}`);
    this.status = status;
    this.fix = told.fix || "";
    this.parameter = told.parameter || "";
  }
}

// A second tab has no key of its own; one that has tells it. Only pages of this server hear it.
shared?.addEventListener("message", async ({ data }) => {
  if (!data?.want || !readGrant()) return;
  await authorize().catch(() => {});
  if (bearer) shared.postMessage({ bearer });
});

function askTabs(question, answerOf, patience = 150) {
  return new Promise((done) => {
    if (!shared) return done("");
    const heard = ({ data }) => answerOf(data) && end(answerOf(data));
    const end = (found) => {
      shared.removeEventListener("message", heard);
      done(found);
    };
    shared.addEventListener("message", heard);
    shared.postMessage(question);
    setTimeout(end, patience, "");
  });
}

/** Be known to the server: by the link's one-time code, by what this tab had, or through another one. */
export async function enter() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + "#/");
    dropGrant();
    bearer = (await send("POST", "/api/login", { code })).token;
    await newGrant();
    const wanted = localStorage.getItem(WANTED); // of any tab that waits, since a link opens a new one
    if (/^#\/./.test(wanted ?? "")) history.replaceState(null, "", location.pathname + wanted);
    shared?.postMessage({ entered: true });
  } else if (!readGrant()) await enterBeside();
  if (readGrant()) await (known ??= connect());
  localStorage.removeItem(WANTED);
  return Boolean(bearer);
}

/** Through another tab of this browser. */
async function enterBeside(patience) {
  const found = await askTabs({ want: true }, (data) => data?.bearer, patience);
  if (!found) return;
  bearer = found;
  await newGrant();
}

async function newGrant() {
  keepGrant((await send("POST", "/api/grants", { browser: nameBrowser() }, bearer)).grant);
  known = null; // what is asked from now on is asked by the grant, and ends with it
}

/** The server proves that it knows this tab; then it is told who this tab is. */
async function connect() {
  try {
    const grant = readGrant();
    if (!grant) throw new Problem(401, { detail: "this tab has no key to your memory", fix: "get a link: yester ui" });
    if (!(await isProved(grant, (asked) => send("POST", "/api/login/prove", asked)))) {
      throw new Problem(0, { detail: "another program answers at this address; it was told nothing", fix: "open the viewer anew: yester ui" });
    }
    bearer = (await send("POST", "/api/login", { grant })).token;
  } catch (error) {
    known = null;
    if (error.status === 401) leave();
    throw error;
  }
}

/** The connection broke: whoever answers next must prove itself first. */
export function doubt() {
  bearer = "";
  known = null;
}

export function leave() {
  doubt();
  dropGrant();
}

/** While this tab is locked: what was asked for is kept, and another tab that gets in lets it in, too. */
export function waitLocked(unlocked) {
  const wanted = /^#\/./.test(location.hash) ? location.hash : "";
  if (wanted) localStorage.setItem(WANTED, wanted);
  shared?.addEventListener("message", async function heard({ data }) {
    if (!data?.entered) return;
    await enterBeside(3000).catch(() => {});
    if (!readGrant()) return;
    shared.removeEventListener("message", heard);
    unlocked();
  });
}

/** The header that says who asks. */
export async function authorize() {
  await (known ??= connect());
  return { Authorization: `Bearer ${bearer}` };
}

async function ask(method, path, body, signal) {
  await (known ??= connect());
  try {
    return await send(method, path, body, bearer, signal);
  } catch (error) {
    if (error.status !== 401) throw error;
    doubt(); // a server that was started anew knows the grant, but no bearer of the one before
    await (known ??= connect());
    return send(method, path, body, bearer, signal);
  }
}

async function send(method, path, body, token = "", signal = undefined) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method, headers, signal, cache: "no-store", credentials: "omit",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    doubt();
    throw new Problem(0, { detail: "the server does not answer", fix: "start it again: yester ui" });
  }
  const type = answer.headers.get("content-type") || "";
  const told = type.includes("json") ? await answer.json() : await answer.text();
  if (answer.ok) return told;
  throw new Problem(answer.status, typeof told === "string" ? { detail: told } : told);
}

/** `get("/api/search", {query, kinds: ["prompt"]}, signal)`; what is empty is not sent. */
export function get(path, query = {}, signal = undefined) {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    const text = Array.isArray(value) ? value.join(",") : value;
    if (text !== "" && text !== undefined && text !== null && text !== false) sent.set(name, text);
  }
  const all = sent.toString();
  return ask("GET", all ? `${path}?${all}` : path, undefined, signal);
}

export const post = (path, body = {}) => ask("POST", path, body);
export const patch = (path, body) => ask("PATCH", path, body);
