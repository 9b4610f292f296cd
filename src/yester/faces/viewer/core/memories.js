// Memories in lists, and what is done to one: each act asks for the reason and can be undone.

import { get, patch, post } from "/core/api.js";
import { h } from "/core/dom.js";
import { count, many, marked, plain, when } from "/core/format.js";
import { asked, notify } from "/core/parts.js";
import { to } from "/core/router.js";

export const STATUSES = [["active", "Active"], ["proposed", "Proposed"], ["archived", "Archived"], ["retired", "Retired"], ["superseded", "Superseded"], ["all", "All"]];
const LISTED = 6; // of several that are acted on
const TONES = { active: "good", retired: "bad", archived: "warn", superseded: "warn" };

/** The one word for a status, wherever it stands. */
export const statusWord = (status) => STATUSES.find(([is]) => is === status)?.[1] ?? status;

export const statusOf = (memory) => h(`span.chip.${TONES[memory.status] ?? "warn"}`, {}, statusWord(memory.status));

export const placeOf = (memory) => (memory.scope === "global" ? "everywhere" : [memory.project, memory.path].filter(Boolean).join(" "));

/** What the text says behind the title, which mostly is its beginning. */
const rest = ({ title, text }) => (text.startsWith(title) ? text.slice(title.length) : text).replace(/^[\s.]+/, "");

/** How sure it is, in a word; the number is in the title. */
export function confidenceOf({ confidence }) {
  const word = confidence >= 0.9 ? "certain" : confidence >= 0.7 ? "likely" : confidence >= 0.4 ? "unsure" : "doubtful";
  return h(confidence < 0.7 ? "span.warn" : "span", { title: `Confidence ${Math.round(confidence * 100)} %` }, word);
}

const HEADS = ["Memory", "Type", "Scope", "Used", "Last injected", "Confidence", "Said"];

/** Memories as rows that can be chosen: `chosen` are their ids, `changed()` is called with each choice. */
export function memoryTable(memories, { query = "", chosen, changed }) {
  const all = h("input", { type: "checkbox", "aria-label": "Choose all", on: { change: () => {
    for (const one of memories) chosen[all.checked ? "add" : "delete"](one.id);
    for (const box of table.querySelectorAll("tbody input")) box.checked = all.checked;
    changed();
  } } });
  const cell = (label, children, name = "td") => h(name, { role: "cell", "data-label": label }, h("span", {}, children));
  const row = (memory) => {
    const more = rest(memory);
    return h("tr.memory-row", { role: "row", "data-memory": memory.id },
      h("td.choose", { role: "cell" }, h("input", { type: "checkbox", "aria-label": `Choose #${memory.id} ${memory.title}`, checked: chosen.has(memory.id), on: { change: ({ target }) => {
        chosen[target.checked ? "add" : "delete"](memory.id);
        all.checked = memories.every((one) => chosen.has(one.id));
        changed();
      } } })),
      h("th.said", { role: "rowheader", scope: "row" }, h("a.title", { href: to(`/memory/${memory.id}`) }, marked(memory.title, query)), memory.status !== "active" && [" ", statusOf(memory)],
        more && h("div.under", {}, marked(more, query))),
      cell("Type", h(`span.chip.type-${memory.type}`, {}, plain(memory.type))),
      cell("Scope", placeOf(memory) || "–"),
      cell("Used", memory.given ? h("span", { title: "Sessions in which something came of it, of those it was given to" }, `${count(memory.used_in)} of ${count(memory.given)}`) : h("span.quiet", {}, "not injected")),
      cell("Last injected", memory.last_given ? when(memory.last_given) : h("span.quiet", {}, "–")),
      cell("Confidence", confidenceOf(memory)),
      cell("Said", when(memory.created), "td.side"));
  };
  const table = h("table.cards.memory-table", { role: "table", "aria-label": "Memories" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, h("td.choose", { role: "cell" }, all), HEADS.map((name) => h("th", { role: "columnheader", scope: "col" }, name)))),
    h("tbody", { role: "rowgroup" }, memories.map(row)));
  return table;
}

// What is asked before it is done: title, button, whether it takes something away.
export const ACTS = {
  retire: ["Retire it?", "Retire", true, "It is no longer found or injected, and is deleted after 30 days."],
  archive: ["Archive it?", "Archive", false, "It is no longer found or injected, and stays for good."],
  restore: ["Make it active?", "Restore", false, ""],
  undo: ["Take back the last change?", "Undo", false, "What was done together with it is taken back as well."],
};

const KEPT = "Decisions, preferences and their like are meant to be kept, so that what was once true can be told; archiving keeps them.";

/** Asks, does it, and gives what the server answers; null where it was not wanted. */
export async function act(name, memory, says = "") {
  const [title, does, danger, usual] = ACTS[name], kept = name === "retire" && memory.kept;
  const given = await asked(`${title} #${memory.id} ${memory.title}`, [(says || usual) && h("p", {}, says || usual), kept && h("p", {}, KEPT), why()], { does: kept ? "Retire all the same" : does, danger });
  if (!given) return null;
  const done = await post(`/api/memories/${memory.id}/${name}`, { why: given.why, ...(kept && { force: true }) });
  notify(`#${memory.id} is ${statusWord(done.memory.status).toLowerCase()} now.`);
  return done;
}

/** The same for several, with one question for all; null where it was not wanted. */
export async function actAll(name, memories) {
  const [, does, danger, usual] = ACTS[name], kept = name === "retire" ? memories.filter((one) => one.kept) : [];
  const given = await asked(`${does} ${many(memories.length, "memory", "memories")}?`, [
    h("ul.short", {}, memories.slice(0, LISTED).map((one) => h("li", {}, one.title)), memories.length > LISTED && h("li.quiet", {}, `and ${count(memories.length - LISTED)} more`)),
    usual && h("p", {}, usual),
    kept.length > 0 && h("label.choose", {}, h("input", { type: "checkbox", name: "force", value: "1" }), h("span", {}, kept.length === 1 ? "Also the one that is meant to be kept. " : `Also the ${count(kept.length)} that are meant to be kept. `, h("span.quiet", {}, KEPT))), why()], { does, danger });
  if (!given) return null;
  let done = 0, problem = null;
  for (const one of memories.filter((one) => given.force || !kept.includes(one))) {
    try {
      await post(`/api/memories/${one.id}/${name}`, { why: given.why, ...(given.force && one.kept && { force: true }) });
      done++;
    } catch (error) {
      problem = error; // the others are done all the same
    }
  }
  if (problem) notify(problem);
  notify(`${many(done, "memory is", "memories are")} ${{ retire: "retired", archive: "archived", restore: "active" }[name]} now.`);
  return done;
}

export const why = () => h("label", {}, "Why (for the history)", h("input", { name: "why", maxlength: "300", autocomplete: "off" }));

export async function supersede(memory) {
  const given = await asked(`Supersede #${memory.id} by another`, [
    h("p.quiet.small", {}, memory.title),
    h("label", {}, "What is true instead", h("textarea", { name: "text", required: true, autofocus: true })),
    h("label", {}, "Title (its first sentence without one)", h("input", { name: "title", maxlength: "120", autocomplete: "off" })), why()], { does: "Supersede" });
  if (!given) return null;
  const done = await post(`/api/memories/${memory.id}/supersede`, given);
  notify(`#${done.memory.id} supersedes #${memory.id}.`);
  return done;
}

/** Say of a memory that it is right as it is. */
export async function confirm(id, change) {
  const { memory } = await get(`/api/memories/${id}`);
  const done = await patch(`/api/memories/${id}`, { version: memory.version, ...change(memory), why: "confirmed in review" });
  notify(`#${id} is confirmed.`);
  return done;
}
