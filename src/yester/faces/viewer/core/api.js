// The server: who we are to it, questions, and answers that are problems.

const PLACE = "yester.bearer";
const shared = "BroadcastChannel" in window ? new BroadcastChannel("yester") : null;

let bearer = sessionStorage.getItem(PLACE) || "";

/** What the server refused, and what to do about it. */
export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `the server answered ${status}`);
    this.status = status;
    this.fix = told.fix || "";
    this.parameter = told.parameter || "";
  }
}

function keep(token) {
  bearer = token;
  sessionStorage.setItem(PLACE, token);
}

// A second tab has no bearer of its own; one that has tells it. Only pages of this server hear it.
shared?.addEventListener("message", ({ data }) => {
  if (data?.want && bearer) shared.postMessage({ bearer });
});

function askTabs() {
  return new Promise((done) => {
    if (!shared) return done("");
    const heard = ({ data }) => data?.bearer && end(data.bearer);
    const end = (found) => {
      shared.removeEventListener("message", heard);
      done(found);
    };
    shared.addEventListener("message", heard);
    shared.postMessage({ want: true });
    setTimeout(end, 150, "");
  });
}

/** Be known to the server: by the link's one-time code, by what this tab had, or another one has. */
export async function enter() {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname + "#/");
    keep((await ask("POST", "/api/login", { code }, "")).token);
  } else if (!bearer) {
    const found = await askTabs();
    if (found) keep(found);
  }
  return Boolean(bearer);
}

export function leave() {
  bearer = "";
  sessionStorage.removeItem(PLACE);
}

export const authorization = () => ({ Authorization: `Bearer ${bearer}` });

async function ask(method, path, body, token = bearer, signal = undefined) {
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
    throw new Problem(0, { detail: "the server does not answer", fix: "start it again: yester ui" });
  }
  const type = answer.headers.get("content-type") || "";
  const told = type.includes("json") ? await answer.json() : await answer.text();
  if (answer.ok) return told;
  if (answer.status === 401 && method !== "POST") leave();
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
  return ask("GET", all ? `${path}?${all}` : path, undefined, bearer, signal);
}

export const post = (path, body = {}) => ask("POST", path, body);
export const patch = (path, body) => ask("PATCH", path, body);
