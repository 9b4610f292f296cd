// The ledger: what agents were shown, why, what it cost, and what came of it. And what one would be
// shown now, with what was left out.

import { givings } from "/core/annotations.js";
import { get, post } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { copied } from "/core/clipboard.js";
import { choice } from "/core/fields.js";
import { clockOf, count, dayOf, many, sentence, tokens } from "/core/format.js";
import { EVENTS, eventOf, lineOf } from "/core/injections.js";
import { command, emptyOf, linkOf } from "/core/parts.js";
import { go, to } from "/core/router.js";

export const title = ({ query }) => ("preview" in query ? "What would be injected" : "Injected");

const PAGE = 200, MOST = 5; // lines a page; pages looked through for one event
const LEFT = 40, CUT = 200; // lines of what was left out; characters of a prompt the ledger has

export async function show(view) {
  const preview = "preview" in view.query;
  return h("div.view.shown", {},
    h("div.tools", {}, h("h1", {}, preview ? "What would be injected now" : "Injected into agents"),
      h("nav.tabs", { "aria-label": "Parts" },
        h("a.chip", { href: to("/shown"), "aria-current": preview ? null : "true" }, "Ledger"),
        h("a.chip", { href: to("/shown", { preview: "1", project: view.query.project ?? "" }), "aria-current": preview ? "true" : null }, "Preview"))),
    preview ? await previewOf(view) : await ledgerOf(view));
}

// --- the ledger -------------------------------------------------------------------------------------

async function ledgerOf({ query, signal, listen, again }) {
  const { lines, next, note } = await linesOf(query, signal);
  let late = 0;
  listen((event) => {
    if (event !== "gap" && event !== "injection") return;
    clearTimeout(late);
    if (!query.before) late = setTimeout(() => signal.aborted || again(), 300);
  });
  const change = (name) => (event) => go("/shown", { ...query, before: "", [name]: event.target.value.trim() });
  const field = (name, label, hint) => h("input.short", { name, placeholder: hint, "aria-label": label, value: query[name] ?? "", autocomplete: "off", on: { change: change(name) } });
  const filtered = ["session", "item", "event"].some((name) => query[name]);
  const given = givings(lines).reverse(), cost = lines.reduce((sum, one) => sum + one.tokens, 0), made = lines.reduce((sum, one) => sum + one.discovery_tokens, 0);
  return h("div", {},
    h("form.tools", { on: { submit: (event) => event.preventDefault() } },
      field("session", "Session", "Session, e.g. S12"), field("item", "Item", "Item, e.g. 138"),
      choice("Event", [["", "All events"], ...Object.entries(EVENTS)], query.event ?? "", change("event")),
      filtered && h("a", { href: to("/shown") }, "Clear")),
    lines.length > 0 && h("p.quiet.small", {}, `${many(lines.length, "line")} here: ${tokens(cost)} to read${made ? `, made from ${tokens(made)}` : ""}. ${note}`),
    lines.length ? sessionsOf(given) : emptied(filtered || query.before),
    h("div.tools", {}, query.before && h("a.button", { href: to("/shown", { ...query, before: "" }) }, "Newest"),
      next > 0 && h("a.button", { href: to("/shown", { ...query, before: next }) }, "Older")));
}

/** A page of the ledger. It knows no event, so of one several pages may have to be read. */
async function linesOf(query, signal) {
  let before = query.before ?? 0, found = [], note = "";
  for (let page = 0; page < MOST; page++) {
    const part = await get("/api/injections", { session: query.session ?? "", item: query.item ?? "", before, limit: PAGE }, signal);
    found = found.concat(part.injections.filter((one) => !query.event || one.event === query.event));
    [before, note] = [part.next_before, part.note];
    if (!before || !query.event || found.length >= PAGE / 2) break;
  }
  return { lines: found, next: before, note };
}

/** By session, and in it by turn; the newest first. */
function sessionsOf(given) {
  const found = [];
  for (const one of given) {
    if (found.at(-1)?.[0].session_db_id !== one.session_db_id) found.push([]);
    found.at(-1).push(one);
  }
  return found.map((turns) => h("section.card.ledger", { "data-session": turns[0].session_db_id },
    h("h2", {}, turns[0].session_db_id ? h("a", { href: to(`/session/S${turns[0].session_db_id}`) }, `Session S${turns[0].session_db_id}`) : "No session",
      h("span.quiet.small", {}, ` ${dayOf(turns[0].epoch)}`)),
    turns.map(turnOf)));
}

function turnOf(giving) {
  const [cost, made] = ["tokens", "discovery_tokens"].map((name) => giving.lines.reduce((sum, one) => sum + one[name], 0));
  // What is the same for all of them is said once.
  const reason = giving.lines.length > 1 && giving.lines.every((one) => one.reason === giving.reason) ? giving.reason : "";
  return h("div.given", {},
    h("h3", {}, clockOf(giving.epoch), " ", eventOf(giving),
      h("span.quiet.small", {}, ` ${many(giving.lines.length, "line")}, ${tokens(cost)}${made ? `, made from ${tokens(made)}` : ""}${reason ? `, all because: ${reason}` : ""}`)),
    giving.prompt && h("blockquote", {}, giving.prompt, giving.prompt.length >= CUT && " …"),
    h("ul.shown-lines", {}, giving.lines.map((line) => lineOf(reason ? { ...line, reason: "" } : line))));
}

const emptied = (filtered) => filtered
  ? emptyOf("Nothing fits", ["Other filters may find something: ", h("a", { href: to("/shown") }, "show all lines"), "."])
  : emptyOf("Nothing was injected yet",
    ["Once ", command("yester install"), " has told your agent about yester, every line it is given stands here: why it was chosen, what it cost, whether it was of use."],
    ["What would be injected now stands in the ", h("a", { href: to("/shown", { preview: "1" }) }, "preview"), "."]);

// --- the preview ------------------------------------------------------------------------------------

async function previewOf({ query, signal }) {
  const facets = await get("/api/facets", {}, signal);
  const asked = { project: query.project ?? "", event: query.event ?? "SessionStart", prompt: query.prompt ?? "", file: query.file ?? "", budget: query.budget ?? "" };
  const projects = Object.keys(facets.projects);
  const wanted = { UserPromptSubmit: "prompt", PreToolUse: "file", SessionStart: "budget" };
  const fields = {
    prompt: h("label.wide", {}, "What is typed", h("textarea", { name: "prompt", rows: 2, value: asked.prompt, maxlength: "4000" })),
    file: h("label.wide", {}, "The file about to be read", h("input", { name: "file", value: asked.file, maxlength: "400" })),
    budget: h("label", {}, "Tokens at most", h("input", { name: "budget", type: "number", min: "100", max: "10000", value: asked.budget || "2000" })),
  };
  const select = (name, options, value) => h("select", { name, on: { change: () => form.requestSubmit() } }, options.map(([is, said]) => h("option", { value: is, selected: is === value }, said)));
  const form = h("form.card", { "aria-label": "Preview", on: { submit: (event) => {
    event.preventDefault();
    go("/shown", { preview: "1", ...Object.fromEntries(new FormData(form)) });
  } } });
  fill(form, h("div.fields.across", {},
    h("label", {}, "Project", select("project", [["", "That of the newest session"], ...projects.map((one) => [one, one])], asked.project)),
    h("label", {}, "When", select("event", Object.entries(EVENTS).filter(([name]) => !name.startsWith("Post")), asked.event)), fields[wanted[asked.event]]),
  h("div.tools", {}, h("button.main", {}, "Show")));
  if (asked.event === "UserPromptSubmit" && !asked.prompt.trim()) return h("div", {}, form, emptyOf("With a prompt", "Type what you would say to your agent, and see what it would be given along with it."));
  if (asked.event === "PreToolUse" && !asked.file.trim()) return h("div", {}, form, emptyOf("Before a file is read", "Name a file of the project, and see what an agent would be told before it reads it."));
  const context = await get("/api/context/preview", asked, signal);
  return h("div", {}, form, await contextOf(context));
}

async function contextOf({ text, tokens: cost, shown, left, why = "" }) {
  const some = left.slice(0, LEFT), names = await namesOf([...shown.map((one) => one.item), ...some.map((one) => one.id)]);
  const nameOf = (id) => (names.has(id) ? h("a", { href: linkOf(names.get(id)) }, `${names.get(id).icon} ${names.get(id).title}`) : id ? `#${id}` : "–");
  const score = (value) => (value ? value.toFixed(2) : "–");
  return [
    h("h2", {}, "The text", text && h("span.quiet.small", {}, ` ${tokens(cost)}`)),
    text ? copied(h("pre.context", { tabindex: "0" }, text), text) : emptyOf("It would be given nothing", why ? sentence(why) : "Nothing that is known fits well enough; that is better than something that does not."),
    shown.length > 0 && [h("h2", {}, "Its lines, and why"), tableOf(["What", "Why", "Fits", "Tokens"],
      shown.map((one) => [nameOf(one.item), one.reason, score(one.score), count(one.tokens)]))],
    left.length > 0 && [h("h2", {}, "Left out, and why"), tableOf(["What", "Why", "Fits"], some.map((one) => [nameOf(one.id), one.why, score(one.score)])),
      left.length > LEFT && h("p.quiet.small", {}, `and ${count(left.length - LEFT)} more`)]];
}

const tableOf = (heads, rows) => h("table.reasons", {},
  h("thead", {}, h("tr", {}, heads.map((one, place) => h(place > 1 ? "th.number" : "th", {}, one)))),
  h("tbody", {}, rows.map((row) => h("tr", {}, row.map((one, place) => h(place > 1 ? "td.number" : "td", {}, one))))));

/** Rows of an index by id. */
async function namesOf(ids) {
  const wanted = [...new Set(ids.filter(Boolean))].slice(0, 100);
  if (!wanted.length) return new Map();
  const { results } = await post("/api/observations/batch", { ids: wanted, format: "index" });
  return new Map(results.map((row) => [row.id, row]));
}
