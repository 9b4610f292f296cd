// What was remembered for its own sake, by status; and a form that adds to it.

import { get, post } from "/core/api.js";
import { recheck } from "/core/changes.js";
import { fill, h } from "/core/dom.js";
import { guard } from "/core/drafts.js";
import { among, choice } from "/core/fields.js";
import { count, plain } from "/core/format.js";
import { forget } from "/core/forget_dialog.js";
import { ACTS, actAll, memoryTable, placeOf, statusOf, STATUSES } from "/core/memories.js";
import { stepping } from "/core/row_keys.js";
import { acting, command, emptyOf, notify } from "/core/parts.js";
import { go, to } from "/core/router.js";

export const title = ({ query }) => ("new" in query ? "New memory" : "Memories");

const TYPES = ["decision", "constraint", "preference", "runbook", "tech_debt", "session_summary", "rule", "note"];
const GUESSED = ["rule", "decision", "preference", "note"]; // what a text without a type may become
const MANY = 100;

export async function show({ query, signal, listen, again }) {
  const status = query.status ?? "active";
  const wanted = { type: query.type ?? "", project: query.project ?? "", query: query.query ?? "" };
  let drawn = null; // what happens while they are asked for is not missed either
  recheck({ signal, listen }, async () => {
    const now = await countsOf(wanted, signal);
    if (drawn && now.print !== drawn) again();
  });
  const chosen = new Set(), shown = [], box = h("div.memory-rows"), more = h("button.more", { hidden: true, on: { click: acting(further) } }, "More"), bulk = h("div.bulk", { role: "group", "aria-label": "What is done with those that are chosen", hidden: true });
  async function further() {
    const found = await get("/api/memories", { ...wanted, status, offset: shown.length, limit: MANY, use: true }, signal);
    shown.push(...found.results);
    more.hidden = !found.more;
    draw();
  }
  function draw() {
    fill(box, shown.length ? memoryTable(shown, { query: wanted.query, chosen, changed }) : emptied(status, Object.values(wanted).some(Boolean)));
  }
  const picked = () => shown.filter((one) => chosen.has(one.id));
  /** What can be done with all that are chosen. */
  function changed() {
    const all = picked(), every = (...statuses) => all.every((one) => statuses.includes(one.status));
    bulk.hidden = !all.length;
    const button = (name, fits) => fits && h(name === "retire" ? "button.danger" : "button", { on: { click: acting(async () => (await actAll(name, all)) !== null && again()) } }, `${ACTS[name][1]} ${count(all.length)}`);
    fill(bulk, h("b", {}, `${count(all.length)} chosen`),
      button("retire", every("active", "proposed", "archived")), button("archive", every("active", "proposed", "retired", "superseded")), button("restore", every("proposed", "retired", "archived")),
      h("button.danger", { on: { click: acting(() => forget({ ids: all.map((one) => one.id) }, again)) } }, "Forget for good"),
      h("button", { on: { click: () => (chosen.clear(), draw(), changed()) } }, "Choose none"));
  }
  const [facets, { counts, print }] = await Promise.all([get("/api/facets", {}, signal), countsOf(wanted, signal), further()]);
  stepping(box, signal);
  // x chooses the row one stands at.
  box.addEventListener("keydown", (event) => {
    if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.target.closest("tr")?.querySelector("input[type=checkbox]")?.click();
  });
  listen((event, data) => (["gap", "memory"].includes(event) || (event === "item" && data.kind === "memory")) && !chosen.size && again());
  drawn = print;
  const proposed = counts.proposed;
  const change = (name) => (event) => go("/memories", { ...query, [name]: event.target.value });
  const search = h("form", { on: { submit: (event) => {
    event.preventDefault();
    go("/memories", { ...query, query: words.value.trim() });
  } } });
  const words = h("input", { type: "search", "aria-label": "Words in memories", placeholder: "Words", value: wanted.query });
  return h("div.view.memories", {},
    h("div", {},
      h("div.tools", {}, h("h1", {}, "Memories"),
        h("nav.tabs", { "aria-label": "Status" }, STATUSES.map(([is, name]) =>
          h("a.chip", { href: to("/memories", { ...query, new: "", status: is === "active" ? "" : is }), "aria-current": is === status ? "true" : null }, name, " ", h("span.number", {}, counts[is])))),
        h("a.push", { href: to("/review") }, "Review", proposed !== "0" && h("span.number", {}, ` ${proposed} proposed`)),
        h("a.button", { href: to("/memories", { ...query, new: "new" in query ? "" : "1" }), "aria-expanded": "new" in query ? "true" : "false" }, "new" in query ? "Close the form" : "New memory")),
      h("div.tools", {}, fill(search, words),
        choice("Type", [["", "All types"], ...TYPES.map((name) => [name, plain(name)])], wanted.type, change("type")),
        choice("Project", among(facets.projects, "All projects"), wanted.project, change("project"))),
      "new" in query && formOf(facets, query, signal)),
    bulk, box, more);
}

/** How many of each status fit the other filters, and what differs where one of them was changed. */
async function countsOf(wanted, signal) {
  const found = await Promise.all(STATUSES.map(async ([status]) => {
    const { count: size, more, results } = await get("/api/memories", { ...wanted, status, limit: MANY }, signal);
    return [status, more ? `${count(size)}+` : count(size), results.map((one) => [one.id, one.status, one.updated])];
  }));
  return { counts: Object.fromEntries(found), print: JSON.stringify(found) };
}

function emptied(status, filtered) {
  if (filtered) return emptyOf("No memory fits", ["Other words or filters may find some: ", h("a", { href: to("/memories", { status: "all" }) }, "show all memories"), "."]);
  if (status !== "active" && status !== "all") return emptyOf("None here", `Memories that were ${status} stand here, so that they can be restored.`);
  return emptyOf("Nothing is remembered yet",
    ["Say it to your agent, type ", command("yester remember we keep UTC because …"), ", or ", h("a", { href: to("/memories", { new: "1" }) }, "write one here"), "."],
    "“Always …” and “never …” become rules, which every session is told.");
}

// --- a new one --------------------------------------------------------------------------------------

function formOf(facets, query, signal) {
  const text = h("textarea", { name: "text", required: true, rows: 3, placeholder: "We keep times in UTC because …" });
  const name = h("input", { name: "title", maxlength: "120", autocomplete: "off" });
  const type = h("select", { name: "type" }, [["", "Auto-detected"], ...TYPES.map((one) => [one, plain(one)])].map(([is, said]) => h("option", { value: is }, said)));
  const project = h("select", { name: "project" }, [["", "everywhere"], ...Object.keys(facets.projects).map((one) => [one, one])].map(([is, said]) => h("option", { value: is, selected: is === query.project }, said)));
  const tags = h("input", { name: "tags", autocomplete: "off", placeholder: "api, time" });
  const told = h("div.told", { role: "status" });
  const labels = () => tags.value.split(",").map((one) => one.trim()).filter(Boolean);

  async function candidate() {
    if (!/\w/.test(text.value)) return null;
    const types = type.value ? [type.value] : GUESSED;
    const found = await Promise.all(types.map((one) =>
      get("/api/memory/candidate", { type: one, text: text.value.trim().slice(0, 4000), title: name.value.trim(), tags: labels(), project: project.value })));
    return found.filter((one) => one.match).sort((a, b) => b.score - a.score)[0] ?? found[0];
  }

  let over = false;
  guard(() => !over && [text, name, tags].some((one) => one.value.trim()), signal);
  const leave = (id) => {
    over = true;
    if (!signal.aborted) go(`/memory/${id}`);
  };

  async function save() {
    const saved = await post("/api/memory/save", { text: text.value.trim(), title: name.value.trim(), type: type.value, tags: labels(), project: project.value });
    notify(saved.message);
    leave(saved.id);
  }

  async function replace(match) {
    const done = await post(`/api/memories/${match.id}/supersede`, { text: text.value.trim(), title: name.value.trim() });
    notify(`#${done.memory.id} supersedes #${match.id}.`);
    leave(done.memory.id);
  }

  function say(found) {
    if (!found) return fill(told);
    if (!found.match) return fill(told, h("p.quiet", {}, "Nothing here is like it: it would be a new memory."));
    const { match } = found, known = found.action === "NOOP";
    fill(told, h("div.candidate", {},
      h("p", {}, known ? "This is known already: " : "This would update ", h("a", { href: to(`/memory/${match.id}`) }, `#${match.id} ${match.title}`), " ", statusOf(match)),
      h("p.quiet.small", {}, `${plain(match.type)} · ${placeOf(match)}${found.reasons.length ? ` · ${found.reasons.join("; ")}` : ""}`),
      !known && h("div.tools", {},
        h("button.main", { type: "button", on: { click: acting(() => replace(match)) } }, `Supersede #${match.id}`),
        h("button", { type: "button", on: { click: acting(save) } }, "Keep both"))));
  }

  let late = 0, newest = 0;
  const look = async () => {
    const mine = ++newest;
    const found = await candidate();
    if (mine === newest) say(found);
    return found;
  };
  const form = h("form.card.new-memory", { "aria-label": "New memory", on: {
    input: () => {
      clearTimeout(late);
      late = setTimeout(() => look().catch(notify), 350);
    },
    submit: (event) => {
      event.preventDefault();
      clearTimeout(late);
      acting(async () => {
        const found = await look();
        if (!found?.match) await save();
        else told.querySelector("button, a")?.focus(); // it is the user's to say which
      })({ submitter: event.submitter });
    },
  } },
  h("div.fields", {},
    h("label", {}, "What to remember", text),
    h("div.across", {}, h("label", {}, "Type", type), h("label", {}, "Holds in", project), h("label", {}, "Tags", tags), h("label", {}, "Title (its first sentence without one)", name))),
  told, h("div.tools", {}, h("button.main", {}, "Remember"), h("span.quiet.small", {}, "“Always …” and “never …” become rules, which every session is told.")));
  requestAnimationFrame(() => text.focus({ preventScroll: true }));
  return form;
}
