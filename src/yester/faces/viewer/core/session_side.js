// Beside a transcript: its prompts with what came of each, and its files.

import { h } from "/core/dom.js";
import { clockOf, dayOf, fileName, many, shortDay } from "/core/format.js";
import { fileLink } from "/core/parts.js";
import { statusMark } from "/core/turn_status.js";

const FIRST = 12; // files shown without asking

/** `turns` in order; `address(id)` leads to a prompt. */
export function outlineOf(turns, address) {
  return turns.length > 0 && h("details.outline", { open: true },
    h("summary", {}, many(turns.length, "prompt")),
    h("ol", {}, turns.map((turn, place) => h("li", { "data-turn": turn.id },
      statusMark(turn.status, turn.evidence),
      h("a", { href: address(turn.id), title: turn.prompt }, turn.prompt || "(no words)"),
      h("span.quiet.small", { title: `${dayOf(turn.created_at_epoch)} ${clockOf(turn.created_at_epoch)}` }, place && dayOf(turns[place - 1].created_at_epoch) !== dayOf(turn.created_at_epoch) ? shortDay(turn.created_at_epoch) : clockOf(turn.created_at_epoch))))));
}

export function filesOf(files, project, address) {
  if (!files.length) return null;
  const row = (one) => h("li", { title: one.path }, h("span.file-place", {}, fileLink(project, one.path, fileName(one.path)), h("span.quiet", {}, folderOf(one.path))),
    h("a.small.quiet", { href: address(one.last), title: "Where it was touched last" },
      [one.edits && many(one.edits, "edit"), one.reads && many(one.reads, "read")].filter(Boolean).join(", ")));
  return h("details.files-panel", { open: matchMedia("(min-width: 64rem)").matches },
    h("summary", {}, many(files.length, "file")),
    h("ul.files", {}, files.slice(0, FIRST).map(row)),
    files.length > FIRST && h("details", {}, h("summary.small", {}, many(files.length - FIRST, "more", "more")), h("ul.files", {}, files.slice(FIRST).map(row))));
}

const folderOf = (path) => path.split(/[\\/]/).slice(-3, -1).join("/");

/** Marks the prompt whose turn is at the top of what is looked at. */
export function followTurns(outline, node, scroller, signal) {
  let waiting = 0;
  const mark = () => {
    waiting = 0;
    if (!node.isConnected) return;
    const top = scroller.getBoundingClientRect().top + 120;
    const seen = [...node.querySelectorAll(".entry.is-user")].filter((one) => one.getBoundingClientRect().top <= top).at(-1);
    if (!seen) return;
    for (const one of outline.querySelectorAll("li[data-turn]")) {
      const is = one.dataset.turn === seen.dataset.id;
      if (is === one.classList.contains("now")) continue;
      one.classList.toggle("now", is);
      const list = one.closest("ol");
      if (is && list.scrollHeight > list.clientHeight) list.scrollTop = one.offsetTop - list.offsetTop - list.clientHeight / 3;
    }
  };
  scroller.addEventListener("scroll", () => (waiting ||= requestAnimationFrame(mark)), { passive: true, signal });
  return mark;
}
