// Memories in lists, and what is done to one: each act asks for the reason and can be undone.

import { get, patch, post } from "/core/api.js";
import { h } from "/core/dom.js";
import { asked, notify } from "/core/parts.js";
import { to } from "/core/router.js";
import { marked, plain, tokens, when } from "/core/words.js";

export const STATUSES = [["active", "Active"], ["proposed", "Proposed"], ["archived", "Archived"], ["retired", "Retired"], ["superseded", "Superseded"], ["all", "All"]];
const TONES = { active: "good", retired: "bad", archived: "warn", superseded: "warn" };

/** The one word for a status, wherever it stands. */
export const statusWord = (status) => STATUSES.find(([is]) => is === status)?.[1] ?? status;

export const statusOf = (memory) => h(`span.chip.${TONES[memory.status] ?? "warn"}`, {}, statusWord(memory.status));

export const placeOf = (memory) => (memory.scope === "global" ? "everywhere" : [memory.project, memory.path].filter(Boolean).join(" "));

/** What the text says behind the title, which mostly is its beginning. */
const rest = ({ title, text }) => (text.startsWith(title) ? text.slice(title.length) : text).replace(/^[\s.]+/, "");

export function memoryRow(memory, query = "") {
  const more = rest(memory);
  return h("div.row.memory-row", {},
    h("div.said", {},
      h("a.title", { href: to(`/memory/${memory.id}`) }, marked(memory.title, query)),
      h("div.under", {}, `${plain(memory.type)} · ${placeOf(memory)}`, more && [" · ", marked(more, query)])),
    h("div.side", {}, h("div", {}, memory.status === "active" ? when(memory.created) : statusOf(memory)), h("div", {}, tokens(memory.tokens))));
}

// What is asked before it is done: title, button, whether it takes something away.
export const ACTS = {
  retire: ["Retire it?", "Retire", true, "It is no longer found or shown, and is deleted after 30 days."],
  archive: ["Archive it?", "Archive", false, "It is no longer found or shown, and stays for good."],
  restore: ["Make it active?", "Restore", false, ""],
  undo: ["Take back the last change?", "Undo", false, "What was done together with it is taken back as well."],
};

/** Asks, does it, and gives what the server answers; null where it was not wanted. */
export async function act(name, memory, says = "") {
  const [title, does, danger, usual] = ACTS[name], note = says || usual;
  const given = await asked(`${title} #${memory.id} ${memory.title}`, [note && h("p", {}, note), why()], { does, danger });
  if (!given) return null;
  const path = `/api/memories/${memory.id}/${name}`;
  let done;
  try {
    done = await post(path, { why: given.why });
  } catch (error) {
    if (name !== "retire" || error.status !== 409 || memory.status === "retired") throw error;
    // Decisions and preferences are kept, so that what was once true can be told.
    const still = await asked("It is meant to be kept", [h("p", {}, error.message.split(";")[0], "."), h("p", {}, "Retire it all the same?")], { does: "Retire all the same", danger: true });
    if (!still) return null;
    done = await post(path, { why: given.why, force: true });
  }
  notify(`#${memory.id} is ${statusWord(done.memory.status).toLowerCase()} now.`);
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
