// Whether an item was of use: what is known, what the user says, where it was shown.

import { h } from "/core/dom.js";
import { count, many, when } from "/core/format.js";
import { EVENTS, usedOf } from "/core/injections.js";
import { acting } from "/core/parts.js";
import { to } from "/core/router.js";

const TOLD = {
  useful: "you said it is useful", useless: "you said it is not useful", opened: "looked at here",
  fetched: "an agent asked for the whole", acted: "a file it is about was edited afterwards",
};

function wordOf(use, feedback) {
  // Looking at it counts a little, but says nothing yet about whether it helped.
  if (use > 0 && Object.entries(feedback).every(([what, number]) => what === "opened" || !number)) return "Looked at by you; whether it helped is not known";
  if (Math.abs(use) < 0.05) return "Nothing known yet";
  if (use < 0) return use < -0.6 ? "In the way" : "Of little use";
  return use > 0.6 ? "Of much use" : "Of some use";
}

/** `say(what, button)` sends the user's word: useful, useless or undo; the focus stays at that button. */
export function useOf({ use, shown, used_in: usedIn, feedback }, say) {
  const button = (what, name) => h("button", { "data-what": what, "aria-pressed": String(Boolean(feedback[what])), on: { click: acting(() => say(feedback[what] ? "undo" : what, what)) } }, name);
  const told = Object.entries(feedback).filter(([, number]) => number);
  return [
    h("div.tools.words", { role: "group", "aria-label": "Was it of use?" }, button("useful", "Useful"), button("useless", "Not useful"),
      (feedback.useful || feedback.useless) && h("button", { "data-what": "undo", on: { click: acting(() => say("undo", "undo")) } }, "Take it back")),
    h("p.meter", {}, h("span.scale.both", { role: "img", "aria-label": `Use ${use.toFixed(2)}, from -1 to 1` },
      h(use < 0 ? "i.less" : "i", { style: use < 0 ? { right: "50%", width: `${-use * 50}%` } : { left: "50%", width: `${use * 50}%` } })), h("strong", {}, wordOf(use, feedback))),
    h("ul.known", {},
      h("li", {}, shown ? `injected in ${many(shown, "session")}, used in ${count(usedIn)}` : "never injected"),
      told.map(([what, number]) => h("li", {}, TOLD[what] ?? what, number > 1 && ` (${count(number)} times)`))),
    h("p.small.quiet", {}, "What was of use rises a little in searches and contexts, what is in the way sinks. Your word counts most; looking at it here counts a little."),
  ];
}

/** A line of the ledger, without the item's own words. */
export function lineOf(line) {
  return h("li", {},
    h("div", {}, when(line.epoch), ` ${EVENTS[line.event] ?? line.event}`,
      line.session_db_id > 0 && [" in ", h("a", { href: to(`/session/S${line.session_db_id}`) }, `S${line.session_db_id}`), line.prompt_number > 0 && `, prompt ${line.prompt_number}`],
      line.used && [" ", usedOf(line.used)]),
    line.prompt && h("div.asked", {}, "“", line.prompt, "”"),
    h("div.quiet.small", {}, [line.reason, line.score > 0 && `score ${line.score.toFixed(2)}`, `~${count(line.tokens)} tokens of context`].filter(Boolean).join(" · ")));
}
