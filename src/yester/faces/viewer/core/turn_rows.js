// Turns in lists: by session, a row each with what came of it, what was found out, and its files.

import { h } from "/core/dom.js";
import { clockOf, dayOf, duration, fileName, many, plain, shortDay } from "/core/format.js";
import { fileLink } from "/core/parts.js";
import { to } from "/core/router.js";
import { statusChip, statusMark } from "/core/turn_status.js";

const FILES = 3;

/** The turn in its session. */
export const turnAddress = (turn) => (turn.session_db_id ? to(`/session/S${turn.session_db_id}`, { at: turn.id }) : to(`/item/${turn.id}`));

/** `dated`: by its day, where the list has several. */
export function turnRow(turn, dated = false) {
  const more = turn.files.length - FILES, said = turn.title !== turn.prompt && turn.prompt;
  return h(turn.card ? "li.turn" : "li.turn.plain", { "data-turn": turn.id },
    h("span.clock", { title: dayOf(turn.created_at_epoch) }, dated ? shortDay(turn.created_at_epoch) : clockOf(turn.created_at_epoch)),
    statusMark(turn.status, turn.evidence),
    h("div.said", {},
      h("a.title", { href: turnAddress(turn), title: turn.prompt }, turn.title || "(no words)"),
      (said || turn.files.length > 0) && h("div.under", {},
        said && h("span.asked-words", {}, said),
        turn.files.slice(0, FILES).map((path) => fileLink(turn.project, path, fileName(path))),
        more > 0 && h("span", {}, `+${more}`))),
    h("div.turn-chips", {}, turn.types.map((type) => h("span.chip", {}, plain(type))), statusChip(turn.status, turn.evidence)));
}

/** Turns, the newest first, as sessions with their turns in order; `dated` as a row has it. */
export function sessionGroups(turns, dated = false) {
  const groups = new Map();
  for (const turn of turns) {
    const key = turn.session_db_id || `${turn.agent} ${turn.project}`;
    groups.set(key, [turn, ...(groups.get(key) ?? [])]);
  }
  return [...groups.values()].map((all) => {
    const [first] = all, last = all.at(-1), time = last.created_at_epoch - first.created_at_epoch;
    return h("section.turn-session", {},
      h("h3", {}, first.session_db_id ? h("a", { href: to(`/session/S${first.session_db_id}`) }, first.session || "(untitled)") : "Prompts of no session",
        h("span.quiet", {}, [first.project || "no project", first.agent, many(all.length, "turn"), time >= 60000 && duration(time)].filter(Boolean).join(" · "))),
      h("ol.turns", {}, all.map((turn) => turnRow(turn, dated))));
  });
}
