// The entries of a transcript: what was typed, said, thought, and done with tools. What is long or
// seldom wanted is folded, and made only when it is unfolded.

import { fill, h } from "/core/dom.js";
import { to } from "/core/router.js";
import { clockOf, count, dayOf } from "/core/words.js";

const LONG = 2400, LINE = 180; // characters shown of a long text, of a folded one

const NAMES = { user: "You", assistant: "Agent", thinking: "Thinking", task: "Task" };

/** `place(id)` is the address of an entry. */
export function entryOf(row, place) {
  const is = row.kind === "prompt" ? "user" : row.role || row.kind;
  const failed = row.tags?.includes("error");
  return h(`article.entry.is-${is}`, { id: `at-${row.id}`, "data-id": row.id, tabindex: "-1", "aria-label": `${nameOf(row, is)}, ${clockOf(row.created_at_epoch)}` },
    h("a.clock", { href: place(row.id), title: `${dayOf(row.created_at_epoch)} · #${row.id}` }, clockOf(row.created_at_epoch) || "·"),
    h("div.body", {},
      row.actor && h("span.chip.actor", { title: "Done by a sub-agent" }, `sub-agent ${row.actor}`),
      bodyOf(row, is, failed)));
}

const nameOf = (row, is) => (row.tool ? `Tool ${row.tool}` : NAMES[is] ?? row.type ?? row.kind);

function bodyOf(row, is, failed) {
  const text = row.narrative || row.title || "";
  if (is === "tool") return toolOf(row, text, failed);
  if (is === "thinking") return folded(["Thinking", h("span.begin", {}, begin(text))], () => prose(text));
  if (is === "task") return folded(["Task", h("span.begin", {}, begin(text))], () => prose(text));
  if (row.kind === "summary") return folded(["Summary at compaction", h("span.begin", {}, begin(text))], () => prose(text));
  return long(text);
}

/** Where the server cannot tell input from output there is no `output`, and one block without a label. */
function toolOf(row, text, failed) {
  const { input: call = text, output } = row;
  return folded([h("b.tool", {}, row.tool), h("code.begin", {}, begin(call) || "(no words)"), failed && h("span.chip.bad", {}, "failed")], () => [
    call.trim() !== begin(call) && h("pre", {}, call),
    output ? [h("div.label", {}, "Output"), h("pre", {}, output)] : output === "" && h("p.quiet.small", {}, "No output was recorded."),
    h("p.small", {}, h("a", { href: to(`/item/${row.id}`) }, `#${row.id}`))]);
}

/** Made when it is first opened. */
export function folded(summary, inside, open = false) {
  const body = h("div.inside");
  const node = h("details", { open, on: { toggle: () => node.open && !body.childNodes.length && fill(body, inside()) } }, h("summary", {}, summary), body);
  if (open) fill(body, inside());
  return node;
}

function begin(text) {
  const line = text.trim().split("\n", 1)[0];
  return line.length > LINE ? `${line.slice(0, LINE - 1)}…` : line;
}

/** A text, cut where it is very long until somebody wants all of it. */
export function long(text) {
  if (text.length <= LONG * 1.5) return prose(text);
  const box = h("div");
  const all = h("button.small", { on: { click: () => fill(box, prose(text)) } }, `Show all of it (${count(text.length)} characters)`);
  return fill(box, prose(text.slice(0, LONG) + " …"), all);
}

/** `code` and **strong** words of a line; everything else is as it was written. */
export const inline = (text) => text.split(/`([^`\n]+)`/).map((piece, at) => (at % 2 ? h("code", {}, piece)
  : piece.split(/\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*/).map((part, place) => (place % 2 ? h("strong", {}, part) : part))));

/** Fenced blocks, `code` and **strong** words stand apart. */
export const prose = (text) => text.split(/^```[^\n]*\n([\s\S]*?)^```[^\S\n]*$/m).map((part, place) => {
  if (place % 2) return h("pre", {}, part.replace(/\n$/, ""));
  return part.trim() && h("div.prose", {}, inline(part.trim()));
});
