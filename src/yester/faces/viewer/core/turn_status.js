// What came of a turn: a word, a shape and a colour, so that nobody needs to see the colour.

import { h } from "/core/dom.js";

const STATUSES = {
  done: ["✓", "good", "A check of its changes passed, or they were committed"], changed: ["△", "accent", "Files were changed, and nothing has verified it"],
  failed: ["✗", "bad", "The last check of its changes failed"], reverted: ["↶", "bad", "Its changes were taken back"],
  replaced: ["↷", "warn", "A later turn took its place"], open: ["◐", "warn", "Not finished"],
  answered: ["○", "quiet", "A question and its answer; nothing was changed"], talk: ["·", "quiet", "Nothing worth keeping was said"],
};

/** The shape alone; `evidence` says what the status rests on. */
export function statusMark(status, evidence = "") {
  const [shape, tone, says] = STATUSES[status] ?? ["•", "quiet", "No card: nothing to keep was seen in it, or it is not distilled yet"];
  return h(`span.status.is-${tone}`, { role: "img", "aria-label": status || "no card", title: [status, evidence || says].filter(Boolean).join(": ") }, shape);
}

/** The shape with its word. */
export function statusChip(status, evidence = "") {
  if (!STATUSES[status]) return null;
  const [shape, tone, says] = STATUSES[status];
  return h(`span.chip.status-chip.is-${tone}`, { title: evidence || says }, h("span", { "aria-hidden": "true" }, `${shape} `), status);
}
