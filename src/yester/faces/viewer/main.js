// Enter, draw the frame, and show the view the address names.

import { Problem, authorize, enter, leave, post, waitLocked } from "/core/api.js";
import { copyable } from "/core/clipboard.js";
import { fill, h } from "/core/dom.js";
import { sentence } from "/core/format.js";
import { grantName } from "/core/grant.js";
import { palette } from "/core/palette.js";
import { go, match, here, to } from "/core/router.js";
import { begin, listen } from "/core/stream.js";
import { ROUTES } from "/routes.js";
import { help, keys } from "/core/keys.js";
import { frame } from "/core/header.js";
import { dismiss, notify } from "/core/parts.js";
import { mayLeave, unsaved } from "/core/drafts.js";

const content = document.getElementById("content");
const LISTS = ["/search", "/sessions", "/memories", "/shown"]; // an item belongs to the one it was opened from
let leaving = new AbortController(), shown = "", section = "/";
let unreached = false; // the view could not be asked for: there was no server

async function show() {
  leaving.abort();
  const mine = (leaving = new AbortController());
  const { path, query } = here();
  unreached = false;
  const route = ROUTES.find((one) => match(one.path, path));
  const late = setTimeout(() => mine.signal.aborted || content.setAttribute("aria-busy", "true"), 150);
  if (route) section = route.section ?? (LISTS.includes(section) ? section : "/timeline");
  shell.at(route && section);
  // What happens while the view is asked for is told once it stands there: it may have come too late for the answers.
  const early = [], listeners = [];
  let drawn = false;
  const tell = (...one) => listeners.forEach((told) => told(...one));
  listen((...one) => (drawn ? tell(...one) : early.push(one)), mine.signal);
  try {
    if (!route) throw new Problem(404, { detail: `There is no page at ${path}`, fix: "Choose one from the menu above" });
    const page = await load(route.page);
    const view = {
      path: match(route.path, path), query, signal: mine.signal,
      listen: (told) => listeners.push(told),
      /** Draw the view again, as after a change. */
      again,
    };
    const node = await page.show(view);
    if (mine.signal.aborted) return;
    fill(content, node);
    if (shown !== path) content.scrollTop = 0; // another view begins at its top
    shown = path;
    document.title = `${page.title(view)} · yester`;
    if (document.activeElement === document.body) content.focus({ preventScroll: true });
    drawn = true;
    for (const one of early) if (!mine.signal.aborted) tell(...one);
  } catch (error) {
    if (mine.signal.aborted || error.name === "AbortError") return;
    if (error.status === 401) return locked(error);
    unreached = error.status === 0;
    fill(content, problem(error));
    document.title = "yester";
  } finally {
    clearTimeout(late);
    if (!mine.signal.aborted) content.removeAttribute("aria-busy");
  }
}

/** The same view once more; what somebody is typing in it stays. */
const again = () => (unsaved() ? undefined : show());

/** Another address. Where something would be lost, the old one stands again until that is decided. */
async function moved({ oldURL }) {
  dismiss();
  if (unsaved()) {
    history.pushState(null, "", oldURL);
    if (await mayLeave()) history.back();
    return;
  }
  await show();
}

const loaded = new Map();

/** A view's module. Only a server that has proved itself may send one: it would run with all we know. */
async function load(page) {
  if (!loaded.has(page)) {
    await authorize();
    loaded.set(page, await import(page).catch(unreachable));
  }
  return loaded.get(page);
}

/** A module that cannot be fetched is no fault of its own: there is no server. */
function unreachable(error) {
  if (!(error instanceof TypeError)) throw error;
  throw new Problem(0, { detail: "the server does not answer", fix: "start it again: yester ui" });
}

/** A browser keeps in mind that a module could not be fetched, so the whole page has to come again. */
async function reload() {
  await authorize().then(() => location.reload(), show); // who serves the page can read what this tab keeps
}

function problem(error) {
  if (!(error instanceof Problem)) console.error(error);
  return h("section.notice.bad", { role: "alert" },
    h("h1", {}, error.status === 404 ? "Not found" : "That did not work"),
    h("p", {}, sentence(error.message)), error.fix && h("p", {}, sentence(error.fix)),
    h("p", {}, error.status !== 404 && [h("button", { on: { click: unreached ? reload : show } }, "Try again"), " "], h("a", { href: to("/") }, "To the start page")));
}

const OUT = "This tab was locked, or its 30 days are over.";

function locked(error) {
  dismiss();
  fill(content, h("section.notice", {},
    h("h1", {}, "Locked"),
    h("p", {}, sentence(error?.message ?? "This tab has no key to your memory.")),
    h("p", {}, "In a terminal, run:"), h("p", {}, copyable("yester ui")),
    h("p.quiet", {}, "It opens a link that works once, for a minute, and leads back to what you asked for here. Nothing is shown without it, since any program on this machine can reach this address."),
  ));
  document.title = "Locked · yester";
  waitLocked(() => location.reload());
}

function refused() {
  // What is being typed can still be copied.
  if (unsaved()) return notify(new Problem(401, { detail: OUT, fix: "Copy what you typed, then open the viewer again: yester ui" }));
  leave();
  leaving.abort();
  locked({ message: OUT });
}

const anew = async () => (await mayLeave()) && show();
const openPalette = palette([
  { name: "Write a new memory", does: () => go("/memories", { new: "1" }) },
  { name: "What would an agent be given now?", does: () => go("/shown", { preview: "1" }) },
  { name: "Change the colours: as the system, light, dark", does: () => shell.changeColours() },
  { name: "Load this view again", keys: "r", does: anew },
  { name: "Show all keys", keys: "?", does: help },
  { name: "Lock this tab", does: async () => {
    await post("/api/grants/revoke", { names: [grantName()] });
    leave();
    location.reload();
  } },
]);
const shell = frame(document.getElementById("top"), openPalette);
keys(anew);
try {
  if (await enter()) {
    addEventListener("hashchange", moved);
    await begin((is) => (shell.state(is), is === "live" && unreached && reload()), refused);
    await show();
    // All of them, while it is known who serves them; where one fails there is no server for the others either.
    for (const { page } of ROUTES) if (!(await load(page).catch(() => null))) break;
  } else locked();
} catch (error) {
  locked(error);
}
addEventListener("hashchange", () => /^#code=/.test(location.hash) && location.reload());
