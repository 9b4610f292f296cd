// The entries of a transcript: what was typed, said, thought, and done with tools. What is long or
// seldom wanted is folded, and made only when it is unfolded.

import { copied, copyButton } from "/core/clipboard.js";
import { compareLines, countLines, countsOf, diffOf } from "/core/diff.js";
import { fill, h } from "/core/dom.js";
import { clockOf, count, dayOf, fileName, marked } from "/core/format.js";
import { markdownOf } from "/core/markdown.js";
import { fileLink } from "/core/parts.js";
import { to } from "/core/router.js";

const LONG = 6000, LINE = 180; // characters shown of a long text, of a folded one
const SMALL = 24; // changed lines of an edit that is open from the start
const PLACES = 3, BEFORE = 80, BEHIND = 160; // of what was looked for: shown of an entry, characters around one
const TALL = 12_000; // characters of an output shown without asking

const NAMES = { user: "You", assistant: "Agent", thinking: "Thinking", task: "Task" };

/** `place(id)` is the address of an entry; `find` is marked in it. */
export function entryOf(row, place, find = "") {
  const is = row.kind === "prompt" ? "user" : row.role || row.kind;
  return h(`article.entry.is-${is}`, { id: `at-${row.id}`, "data-id": row.id, tabindex: "-1", "aria-label": `${nameOf(row, is)}, ${clockOf(row.created_at_epoch)}` },
    h("a.clock", { href: place(row.id), title: `${dayOf(row.created_at_epoch)} · #${row.id}` }, clockOf(row.created_at_epoch) || "·"),
    h("div.body", {},
      row.actor && h("span.chip.actor", { title: "Done by a sub-agent" }, `sub-agent ${row.actor}`),
      find ? foundIn(row, is, find) : bodyOf(row, is),
      (is === "user" || is === "assistant") && h("div.entry-tools", {}, copyButton(() => row.narrative || row.title || "", `Copy what ${is === "user" ? "you" : "the agent"} said`))));
}

const nameOf = (row, is) => (row.tool ? `Tool ${row.tool}` : NAMES[is] ?? row.type ?? row.kind);

function bodyOf(row, is) {
  const text = row.narrative || row.title || "";
  if (is === "tool") return toolOf(row, text);
  if (is === "thinking") return folded(["Thinking", h("span.begin", {}, begin(text))], () => prose(text));
  if (is === "task") return folded(["Task", h("span.begin", {}, begin(text))], () => prose(text));
  if (row.type === "plan") return folded(["Plan", h("span.begin", {}, row.title || begin(text))], () => prose(text));
  if (row.kind === "summary") return folded(["Summary at compaction", h("span.begin", {}, begin(text))], () => prose(text));
  return long(text);
}

// --- tools ------------------------------------------------------------------------------------------

function toolOf(row, text) {
  const { call } = row, failed = row.tags?.includes("error");
  const bad = failed && h("span.chip.bad", {}, call?.status > 0 ? `exit ${call.status}` : "failed");
  if (call?.changes.length) return editOf(row, bad);
  const { input = text } = row, names = [...(row.files_modified ?? []), ...(row.files_read ?? [])].map(fileName);
  const line = begin(call?.command ?? "") || names.join(", ") || begin(input) || "(no words)";
  const link = h("p.small.links", {}, [...new Set([...(row.files_modified ?? []), ...(row.files_read ?? [])])].slice(0, 5).map((one) => [fileLink(row.project, one), " · "]), h("a", { href: to(`/item/${row.id}`) }, `#${row.id}`));
  return folded([h("b.tool", {}, row.tool), h("code.begin", {}, line), bad], () => [call?.command ? terminalOf(row) : plainCall(row, input), link]);
}

/** Where the server cannot tell input from output there is no `output`, and one block without a label. */
const plainCall = ({ output }, input) => [
  // An agent that keeps its transcripts as markdown keeps calls so as well.
  input.includes("\n```") || input.startsWith("```") ? prose(input) : block(input),
  output ? [h("div.label", {}, "Output"), block(output)] : output === "" && h("p.quiet.small", {}, "No output was recorded.")];

/** A command and what it printed, as a terminal has them. */
function terminalOf({ call, output, tags }) {
  const status = call.status ?? null, bad = tags?.includes("error");
  return h("div.terminal", { role: "group", "aria-label": "Terminal" },
    h("div.terminal-head", {}, h("span", {}, "Command"), copyButton(() => call.command, "Copy the command"),
      h(`span.exit${bad || status > 0 ? ".bad" : status === 0 ? ".good" : ""}`, {}, status !== null ? `exit ${status}` : bad ? "failed" : "no exit status recorded")),
    h("pre.command", { tabindex: "0", role: "group", "aria-label": "Command" }, h("span.dollar", { "aria-hidden": "true" }, "$ "), call.command),
    output ? block(output, "Output") : output === "" && h("p.quiet.small", {}, "It printed nothing."));
}

function block(text, label = "Text") {
  const box = h("pre", { tabindex: "0", role: "group", "aria-label": label });
  const whole = copied(box, text, `Copy the ${label.toLowerCase()}`);
  if (text.length <= TALL) return fill(box, text), whole;
  const all = h("button.small", { type: "button", on: { click: () => fill(box, text) } }, `Show all of it (${count(text.length)} characters)`);
  fill(box, text.slice(0, TALL), "\n", all);
  return whole;
}

/** A use of a tool as it is shown alone. */
export function callOf(row) {
  if (row.call?.changes.length) return [diffsOf(row), row.output && [h("div.label", {}, "Output"), block(row.output)]];
  return row.call?.command ? terminalOf(row) : plainCall(row, row.input ?? row.narrative);
}

function diffsOf(row) {
  const files = new Map(row.call.changes.map((one) => [one.file, []]));
  for (const one of row.call.changes) files.get(one.file).push(one);
  return [[...files].map(([file, places]) => diffOf({ file, places }, fileLink(row.project, file))),
    row.call.cut && h("p.quiet.small", {}, "Something was too long to be recorded whole.")];
}

/** Edits, writes and patches: a diff for each file. */
function editOf(row, bad) {
  const all = row.call.changes.flatMap((one) => compareLines(one.before, one.after)), counts = countLines(all);
  const names = [...new Set(row.call.changes.map((one) => fileName(one.file)))].join(", ");
  return folded([h("b.tool", {}, row.tool), h("code.begin", {}, names), countsOf(counts), bad], () => [
    diffsOf(row),
    bad && row.output && [h("div.label", {}, "Output"), block(row.output)],
    h("p.small.links", {}, h("a", { href: to(`/item/${row.id}`) }, `#${row.id}`)),
  ], !bad && counts.more + counts.less <= SMALL);
}

/** Whether a use of a tool only looked: a run of such is folded into one line. */
export const isRead = (row) => row.role === "tool" && !row.actor && row.files_read?.length > 0 && !row.files_modified?.length && !row.call?.command && !row.tags?.includes("error");

/** "12 reads": the entries inside, and the names of the files. */
export function readsOf(rows, place) {
  const files = [...new Set(rows.flatMap((row) => row.files_read))], names = files.map(fileName);
  const fold = h("details", {}, h("summary", {}, h("b.tool", {}, `${rows.length} reads`), h("span.begin.quiet", {}, names.join(", "))), h("div.inside.runs", {}, rows.map((row) => entryOf(row, place))));
  return h("div.entry-run", {}, fold);
}

/** What was looked for, with the words around its first places. */
function foundIn(row, is, find) {
  const text = (row.narrative || row.title || "").replace(/\s+/g, " "), lower = text.toLowerCase(), asked = find.toLowerCase().replace(/\s+/g, " "), parts = [];
  for (let at = lower.indexOf(asked), end = -1; at >= 0 && parts.length < PLACES; at = lower.indexOf(asked, at + asked.length)) {
    if (at < end) continue;
    const from = Math.max(0, at - BEFORE);
    end = at + asked.length + BEHIND;
    parts.push(h("p.found-text", {}, from > 0 && "… ", every(text.slice(from, end), asked), end < text.length && " …"));
  }
  return [h("div.label", {}, nameOf(row, is)), parts.length ? parts : h("p.found-text", {}, marked(begin(text), find))];
}

/** The text with each place of these words marked. */
function every(text, asked) {
  const lower = text.toLowerCase(), found = [];
  let from = 0;
  for (let at = lower.indexOf(asked); at >= 0; at = lower.indexOf(asked, from)) {
    found.push(text.slice(from, at), h("mark", {}, text.slice(at, at + asked.length)));
    from = at + asked.length;
  }
  return [found, text.slice(from)];
}

// --- texts ------------------------------------------------------------------------------------------

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
  const box = h("div"), end = text.lastIndexOf("\n\n", LONG);
  const all = h("button.small", { type: "button", on: { click: () => fill(box, prose(text)) } }, `Show all of it (${count(text.length)} characters)`);
  return fill(box, prose(`${text.slice(0, end > LONG / 2 ? end : LONG)} …`), all);
}

/** What people and agents write is markdown. */
export const prose = markdownOf;
export { inline } from "/core/markdown.js";
