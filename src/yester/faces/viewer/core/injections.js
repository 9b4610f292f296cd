// What an agent was shown: one answer to its hook, line by line, with the reasons.

import { h } from "/core/dom.js";
import { count, many, plain, tokens } from "/core/format.js";
import { to } from "/core/router.js";
import { folded } from "/core/transcript.js";

export const EVENTS = {
  SessionStart: "at the start of a session", UserPromptSubmit: "with a prompt", PreToolUse: "before a tool was used", SubagentStart: "to a sub-agent",
  PostToolUse: "after a tool was used", PostToolUseFailure: "after a failure",
};
// The strongest thing known, and whether it speaks for the line.
const USED = { fetched: ["fetched", "good"], opened: ["opened", "good"], "acted-on": ["acted on", "good"], acted: ["acted on", "good"], useful: ["useful", "good"], useless: ["not useful", "bad"] };

export const usedOf = (used) => h(`span.chip${USED[used] ? `.${USED[used][1]}` : ""}`, {}, USED[used]?.[0] ?? "no sign of use");

export const eventOf = ({ event, prompt_number }) => (event === "UserPromptSubmit" && prompt_number ? `with prompt ${prompt_number}` : EVENTS[event] ?? event);

export function lineOf(line) {
  const link = line.kind === "memory" ? `/memory/${line.item}` : `/item/${line.item}`;
  return h("li.shown-line", { "data-line": line.id },
    h("div.said", {},
      line.kind ? h("a", { href: to(link) }, line.title || "(no words)") : h("span.quiet", {}, line.title || "(gone)"),
      h("div.under", {}, [plain(line.type || line.kind), line.project, line.reason && `because: ${line.reason}`].filter(Boolean).join(" · "))),
    h("div.figures", {},
      h("span.used", {}, usedOf(line.used)),
      h("span", { title: "How well it fitted" }, line.score ? line.score.toFixed(2) : "–"),
      h("span", { title: "What the line cost to read, and what the item was made from" },
        line.discovery_tokens ? [`~${count(line.tokens)}`, h("span.quiet", {}, ` of ${count(line.discovery_tokens)} tokens`)] : tokens(line.tokens))));
}

/** In a transcript, at its turn. */
export function givingOf(giving, open = false) {
  const cost = giving.lines.reduce((sum, one) => sum + one.tokens, 0);
  return h("div.giving", { "data-giving": giving.key },
    folded([h("b", {}, "Injected"), ` ${eventOf(giving)}: `, h("span", {}, `${many(giving.lines.length, "line")}, ${tokens(cost)}`)],
      () => h("ul.shown-lines", {}, giving.lines.map(lineOf)), open));
}
