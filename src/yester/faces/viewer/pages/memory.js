// One memory: what it says, what it replaced, what was done to it, where it was shown; and the ways
// to change it that are open now.

import { get, patch, post } from "/core/api.js";
import { recheck } from "/core/changes.js";
import { fill, h } from "/core/dom.js";
import { guard } from "/core/drafts.js";
import { copied, idOf } from "/core/clipboard.js";
import { forgetting } from "/core/forget_dialog.js";
import { count, many, plain, when } from "/core/format.js";
import { act, ACTS, confidenceOf, placeOf, statusOf, statusWord, supersede, why } from "/core/memories.js";
import { acting, asked, chips, facts, fileLink, notify } from "/core/parts.js";
import { go, lead, to } from "/core/router.js";
import { long } from "/core/transcript.js";
import { differences, empty, inputOf, readOf, recordOf, same, valueOf, wordOf } from "/core/values.js";

let called = "Memory";
export const title = () => called;

export async function show({ path, query, signal, listen, again }) {
  let drawn = null; // what happens while it is asked for is not missed either
  recheck({ signal, listen }, async () => {
    const now = printOf(await get(`/api/memories/${path.id}`, {}, signal));
    if (drawn && now !== drawn) again();
  });
  const [whole, ledger, feedback] = await Promise.all([
    get(`/api/memories/${path.id}`, {}, signal), get("/api/injections", { item: path.id, limit: 5 }, signal), get("/api/feedback", { item: path.id, limit: 10 }, signal)]);
  const { memory, chain, history, use, actions } = whole;
  called = memory.title;
  const editing = "edit" in query && actions.includes("edit");
  // While somebody types, what changes elsewhere waits for the saving, which compares.
  if (!editing) {
    drawn = printOf(whole);
    listen((event, data) => (event === "gap" || (["item", "memory"].includes(event) && data.id === memory.id)) && again());
  }
  return h("div.view.memory", {},
    h("div.head", {}, h("h1", {}, memory.title)),
    h("p.chips", {}, statusOf(memory), " ", h("span.chip", {}, plain(memory.type)), " ", h("span.chip", {}, placeOf(memory)), " ",
      chips(memory.tags.filter((tag) => ![memory.type, plain(memory.type)].includes(tag)), (tag) => to("/memories", { query: tag, status: "all" }))),
    standing(memory),
    h("div.two", {},
      h("div", {},
        editing ? formOf(whole, signal) : h("section.card", { "aria-label": "What it says" }, copied(h("div", {}, saysOf(memory)), memory.text)),
        !editing && actsOf(whole, again),
        !actions.length && h("p.quiet.small", {}, "Nothing can be done with it here: a rule is changed by you alone. Open the viewer from your own terminal: yester ui."),
        historyOf(history)),
      h("aside", {},
        chain.length > 1 && chainOf(chain, memory),
        h("h2", {}, "Details"),
        facts([["Number", idOf(memory.id)], ["Name", memory.slug && h("code", {}, memory.slug)], ["Said by", memory.origin], ["Confidence", confidenceOf(memory)],
          ["Said", when(memory.created)], ["Changed", when(memory.updated)], [memory.status === "active" ? "Active since" : statusWord(memory.status), when(memory.since)],
          ["Costs", `~${count(memory.tokens)} tokens to read`], ["Files", memory.files?.length > 0 && h("ul.files", {}, memory.files.map((one) => h("li", {}, memory.project ? fileLink(memory.project, one) : one)))]]),
        useOf(memory, use, ledger, feedback, again))));
}

/** What differs where something was done to it. */
const printOf = ({ memory, chain, history, actions }) => JSON.stringify([memory, chain, history.length, actions]);

/** Why it is not found any more, and where to go instead. */
function standing(memory) {
  if (memory.status === "active") return null;
  return h("div.notice.warn", {},
    memory.superseded_by ? ["Superseded by ", h("a", { href: to(`/memory/${memory.superseded_by}`) }, `#${memory.superseded_by}`), ". "] : `${statusWord(memory.status)}: no longer found or injected. `,
    memory.reason && !/^by #\d+$/.test(memory.reason) && h("span.quiet", {}, `Because: ${memory.reason}`));
}

function saysOf(memory) {
  const parts = Object.entries(memory.content).filter(([name, value]) => name !== "text" && !empty(value));
  return parts.length ? recordOf(Object.fromEntries(parts)) : long(memory.text);
}

/** What taking back the last change means, where that is more than a change of words. */
const undone = ([newest]) => (newest && !newest.before ? "The last change was its creation: taking that back retires it." : "");

function actsOf(whole, again) {
  const { memory, actions } = whole;
  const does = {
    edit: ["Edit", () => go(`/memory/${memory.id}`, { edit: "1" })],
    supersede: ["Supersede…", async () => {
      const done = await supersede(memory);
      if (done) lead(`/memory/${memory.id}`, `/memory/${done.memory.id}`);
    }],
    ...Object.fromEntries(Object.keys(ACTS).map((name) => [name, [`${wordOf(name)}…`, async () => (await act(name, memory, name === "undo" ? undone(whole.history) : "")) && again()]])),
  };
  return h("div.tools.acts", {}, actions.map((name) =>
    h(name === "edit" ? "button.main" : name === "retire" ? "button.danger" : "button", { on: { click: acting(does[name][1]) } }, does[name][0])), forgetting({ ids: [memory.id] }));
}

// --- editing ----------------------------------------------------------------------------------------

/** What a field holds in a memory as it was read. */
function held(field, memory) {
  if (field.part === "memory") return memory[field.name];
  const value = memory.content[field.name];
  return value === undefined && field.kind === "long" ? memory.content.text ?? memory.text : value;
}

function formOf(whole, signal) {
  const { memory, fields } = whole, inputs = new Map();
  let over = false;
  const leave = () => {
    over = true;
    if (!signal.aborted) go(`/memory/${memory.id}`);
  };
  for (const field of fields) inputs.set(field, inputOf(field, held(field, memory)));
  const reason = why();
  const changed = () => fields.filter((field) => !same(readOf(field, inputs.get(field)), asRead(field, held(field, memory))));
  guard(() => !over && (changed().length > 0 || reason.querySelector("input").value.trim() !== ""), signal);
  async function save() {
    const mine = changed();
    if (!mine.length) return leave();
    try {
      await patch(`/api/memories/${memory.id}`, sent(memory.version, mine.map((field) => [field, readOf(field, inputs.get(field))]), reason.querySelector("input").value));
    } catch (error) {
      if (error.status !== 409) throw error;
      const now = await get(`/api/memories/${memory.id}`);
      if (now.memory.version === memory.version) throw error; // nobody else wrote: it is refused as such
      const chosen = await decide(mine, inputs, memory, now.memory);
      if (!chosen) return;
      if (chosen.length) await patch(`/api/memories/${memory.id}`, sent(now.memory.version, chosen, reason.querySelector("input").value));
    }
    notify(`#${memory.id} is saved.`);
    leave();
  }
  return h("form.card", { "aria-label": "Edit", on: { submit: (event) => {
    event.preventDefault();
    acting(save)({ submitter: event.submitter });
  } } },
  h("div.fields", {}, fields.map((field) => h("label", {}, field.label + (field.kind === "list" ? " (one a line)" : ""), inputs.get(field))), reason),
  h("div.tools", {}, h("button.main", {}, "Save"), h("button", { type: "button", on: { click: leave } }, "Cancel"),
    h("span.quiet.small", {}, `version ${memory.version}; what others change meanwhile is kept`)));
}

/** A value as its own field would read it. */
const asRead = (field, value) => readOf(field, inputOf(field, value));

function sent(version, values, reason) {
  const body = { version, why: reason }, content = {};
  for (const [field, value] of values) {
    if (field.part === "memory") body[field.name] = value;
    else content[field.name] = same(value, null) ? null : value;
  }
  return Object.keys(content).length ? { ...body, content } : body;
}

/** Both have changed the same: what is to stand? Gives `[[field, value], …]`, null to go on editing. */
async function decide(mine, inputs, was, now) {
  const both = mine.filter((field) => !same(asRead(field, held(field, was)), asRead(field, held(field, now))));
  const one = (field, is, says, checked) => h("label.choose", {}, h("input", { type: "radio", name: field.name, value: is, checked }),
    h("span", {}, h("b", {}, is === "mine" ? "Yours" : "There now"), valueOf(says)));
  const given = await asked("Somebody else has changed it meanwhile", both.map((field) =>
    h("fieldset", {}, h("legend", {}, field.label), one(field, "mine", readOf(field, inputs.get(field)), true), one(field, "theirs", held(field, now), false))), { does: "Save what is chosen" });
  if (!given) return null;
  return mine.filter((field) => given[field.name] !== "theirs").map((field) => [field, readOf(field, inputs.get(field))]);
}

// --- what is known of it ----------------------------------------------------------------------------

const chainOf = (chain, memory) => [h("h2", {}, "What superseded what"),
  h("ol.chain", {}, chain.map((one) => h("li", { "aria-current": one.id === memory.id ? "true" : null },
    h("a", { href: to(`/memory/${one.id}`) }, `#${one.id} ${one.title}`),
    h("div.quiet.small", {}, statusWord(one.status), " · ", when(one.created)))))];

function historyOf(history) {
  return [h("h2", {}, "History"),
    history.length ? h("ol.history", {}, history.map((one) => h("li", {},
      h("div", {}, h("b", {}, one.what), ` by ${one.who || "somebody"}, `, when(one.epoch), one.why && h("span.quiet", {}, ` – ${one.why}`)),
      one.before && changesOf(differences(one.before, one.after)))))
      : h("p.quiet", {}, "It came as it is; nothing has been done to it.")];
}

const changesOf = (rows) => rows.length > 0 && h("dl.changes", {}, rows.map(([name, was, is]) =>
  [h("dt", {}, wordOf(name)), h("dd", {}, partOf("del", name, was), partOf("ins", name, is))]));

function partOf(element, name, value) {
  if (name === "supersedes") return value ? h(element, {}, h("a", { href: to(`/memory/${value}`) }, `#${value}`)) : null;
  if (name === "said") return h(element, {}, when(value));
  return empty(value) ? null : h(element, {}, name === "tags" ? value.join(", ") : valueOf(value));
}

const SAID = { useful: "useful", useless: "not useful", fetched: "fetched", opened: "opened", acted: "acted on" };

function useOf(memory, use, ledger, feedback, again) {
  const say = (what) => acting(async () => {
    await post("/api/feedback", { ids: [memory.id], what });
    again();
  });
  const by = use.feedback ?? {}, word = by.useful ? "useful" : by.useless ? "useless" : "";
  const box = h("div");
  return fill(box, h("h2", {}, "Use"),
    h("p.small", {}, use.shown ? `Injected in ${many(use.shown, "session")}, used in ${count(use.used_in)}.` : "Not injected yet."),
    h("div.tools", {},
      h("button", { "aria-pressed": String(word === "useful"), on: { click: say(word === "useful" ? "undo" : "useful") } }, "Useful"),
      h("button", { "aria-pressed": String(word === "useless"), on: { click: say(word === "useless" ? "undo" : "useless") } }, "Not useful")),
    feedback.feedback.length > 0 && h("ul.plain.small", {}, feedback.feedback.map((one) =>
      h("li", {}, SAID[one.what] ?? one.what, " ", when(one.epoch), one.session_db_id > 0 && [" in ", h("a", { href: to(`/session/S${one.session_db_id}`) }, `S${one.session_db_id}`)]))),
    ledger.injections.length > 0 && [
      h("h3", {}, "Where it was injected"),
      h("ul.plain.small", {}, ledger.injections.map((one) => h("li", {}, when(one.epoch), " in ", h("a", { href: to(`/session/S${one.session_db_id}`) }, `S${one.session_db_id}`), one.reason && h("span.quiet", {}, ` – ${one.reason}`)))),
      h("p.small", {}, h("a", { href: to("/shown", { item: memory.id }) }, "All of it in the ledger"))]);
}
