// Enter, draw the frame, and show the view the address names.

import { Problem, enter, leave } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { sentence } from "/core/words.js";
import { match, here, to } from "/core/router.js";
import { begin, listen } from "/core/stream.js";
import { ROUTES } from "/routes.js";
import { keys } from "/core/keys.js";
import { frame } from "/core/frame.js";
import { dismiss, notify } from "/core/parts.js";
import { mayLeave, unsaved } from "/core/unsaved.js";

const content = document.getElementById("content");
const LISTS = ["/search", "/sessions", "/memories", "/shown"]; // an item belongs to the one it was opened from
let leaving = new AbortController(), shown = "", section = "/";

async function show() {
  leaving.abort();
  const mine = (leaving = new AbortController());
  const { path, query } = here();
  const route = ROUTES.find((one) => match(one.path, path));
  const late = setTimeout(() => mine.signal.aborted || content.setAttribute("aria-busy", "true"), 150);
  if (route) section = route.section ?? (LISTS.includes(section) ? section : "/");
  shell.at(route && section);
  try {
    if (!route) throw new Problem(404, { detail: `There is no page at ${path}`, fix: "Choose one from the menu above" });
    const page = await import(route.page).catch(unreachable);
    const view = {
      path: match(route.path, path), query, signal: mine.signal,
      listen: (told) => listen(told, mine.signal),
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
  } catch (error) {
    if (mine.signal.aborted || error.name === "AbortError") return;
    if (error.status === 401) return locked(ANEW);
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

/** A module that cannot be fetched is no fault of its own: there is no server. */
function unreachable(error) {
  if (!(error instanceof TypeError)) throw error;
  const gone = new Problem(0, { detail: "the server does not answer", fix: "start it again: yester ui" });
  throw Object.assign(gone, { module: true });
}

/** A browser keeps in mind that a module could not be fetched, so the whole page has to come again. */
async function reload() {
  if ((await fetch("/health", { cache: "no-store" }).catch(() => null))?.ok) location.reload();
}

function problem(error) {
  if (!(error instanceof Problem)) console.error(error);
  return h("section.notice.bad", { role: "alert" },
    h("h1", {}, error.status === 404 ? "Not found" : "That did not work"),
    h("p", {}, sentence(error.message)), error.fix && h("p", {}, sentence(error.fix)),
    h("p", {}, error.status !== 404 && [h("button", { on: { click: error.module ? reload : show } }, "Try again"), " "], h("a", { href: to("/") }, "To the timeline")));
}

const ANEW = { message: "The server was started again since this page was opened, and does not know this tab any more." };

function locked(error) {
  dismiss();
  fill(content, h("section.notice", {},
    h("h1", {}, "Locked"),
    h("p", {}, sentence(error?.message ?? "This tab has no key to your memory.")),
    h("p", {}, "In a terminal, run ", h("code", {}, "yester ui"), ": it opens a link that works once, for a minute. Nothing is shown without it, since any program on this machine can reach this address."),
  ));
  document.title = "Locked · yester";
}

function refused() {
  // What is being typed can still be copied.
  if (unsaved()) return notify(new Problem(401, { detail: ANEW.message, fix: "Copy what you typed, then open the viewer again: yester ui" }));
  leave();
  leaving.abort();
  locked(ANEW);
}

const shell = frame(document.getElementById("top"));
keys(async () => (await mayLeave()) && show());
try {
  if (await enter()) {
    addEventListener("hashchange", moved);
    begin(shell.state, refused);
    await show();
  } else locked();
} catch (error) {
  locked(error);
}
addEventListener("hashchange", () => /^#code=/.test(location.hash) && location.reload());
