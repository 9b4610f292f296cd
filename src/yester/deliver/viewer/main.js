// Enter, draw the frame, and show the view the address names.

import { Problem, enter } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { match, here, to } from "/core/router.js";
import { begin, listen } from "/core/stream.js";
import { ROUTES } from "/routes.js";
import { keys } from "/core/keys.js";
import { frame } from "/core/frame.js";

const content = document.getElementById("content");
let leaving = new AbortController(), shown = "";

async function show() {
  leaving.abort();
  const mine = (leaving = new AbortController());
  const { path, query } = here();
  const route = ROUTES.find((one) => match(one.path, path));
  const late = setTimeout(() => mine.signal.aborted || content.setAttribute("aria-busy", "true"), 150);
  shell.at(route?.section);
  try {
    if (!route) throw new Problem(404, { detail: `there is no view ${path}`, fix: "go on with one of those above" });
    const page = await import(route.page).catch(unreachable);
    const view = {
      path: match(route.path, path), query, signal: mine.signal,
      listen: (told) => listen(told, mine.signal),
      /** Draw the view again, as after a change. */
      again: show,
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
    if (error.status === 401) return locked(error);
    fill(content, problem(error));
    document.title = "yester";
  } finally {
    clearTimeout(late);
    if (!mine.signal.aborted) content.removeAttribute("aria-busy");
  }
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
    h("h1", {}, error.status === 404 ? "Not here" : "That did not work"),
    h("p", {}, error.message), error.fix && h("p", {}, error.fix),
    h("p", {}, h("button", { on: { click: error.module ? reload : show } }, "Try again"), " ", h("a", { href: to("/") }, "To the timeline")));
}

function locked(error) {
  fill(content, h("section.notice", {},
    h("h1", {}, "Locked"),
    h("p", {}, error?.message ?? "This tab has no key to your memory."),
    h("p", {}, "In a terminal, run ", h("code", {}, "yester ui"), ": it opens a link that works once, for a minute. Nothing is shown without it, since any program on this machine can reach this address."),
  ));
  document.title = "Locked · yester";
}

const shell = frame(document.getElementById("top"));
keys(show);
try {
  if (await enter()) {
    addEventListener("hashchange", show);
    begin(shell.state);
    await show();
  } else locked();
} catch (error) {
  locked(error);
}
addEventListener("hashchange", () => /^#code=/.test(location.hash) && location.reload());
