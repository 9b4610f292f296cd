// Searching: the words stand in the field above, everything else in the address.

import { Problem, get } from "/core/api.js";
import { choice } from "/core/choice.js";
import { fill, h } from "/core/dom.js";
import { acting, linkOf, nameOf, notify } from "/core/parts.js";
import { adjust, go, here, to } from "/core/router.js";
import { stepping } from "/core/stepping.js";
import { count, many, marked, sentence, tokens, when } from "/core/words.js";
import { explainOf } from "/core/explain.js";
import { FILTERS, chipsOf, each, facetsOf, read } from "/core/facets.js";
import { nothingAsked, nothingFound } from "/core/asking.js";

export const title = ({ query }) => (query.query ? `${query.query} · Search` : "Search");

const PAGE = 20, MOST = 100;
const OF_A_SESSION = 3; // hits, until more of it are asked for
const WHAT = [["", "Everything"], ["observations", "Found out"], ["prompts", "Prompts"], ["sessions", "Sessions"]];
const ORDERS = [["", "Best first"], ["date_desc", "Newest first"], ["date_asc", "Oldest first"]];

export async function show({ query, signal }) {
  const filters = read(query), words = query.query ?? "";
  const kept = { query: words, what: query.what, orderBy: query.orderBy, near: query.near };
  const place = (changed) => to("/search", { ...kept, ...changed });
  const asked = { query: words, type: query.what, orderBy: query.orderBy, near: query.near, ...filters };
  const nothing = !words && !each(filters).length && !query.what;
  const facets = await counted(asked, filters, signal);
  const body = nothing ? nothingAsked(facets) : await answered();

  async function answered() {
    try {
      return await results({ asked, query, words, total: facets.total, signal, none: () => nothingFound(asked, filters, place, signal) });
    } catch (error) {
      if (!(error instanceof Problem) || ![400, 404].includes(error.status)) throw error;
      return h("section.notice.warn", { role: "alert" }, h("h2", {}, "That cannot be looked for"), h("p", {}, error.message), error.fix && h("p", {}, error.fix));
    }
  }

  if (nothing && matchMedia("(hover: hover)").matches) requestAnimationFrame(() => signal.aborted || document.querySelector("header input[type=search]").focus());
  return h("div.view.search", {},
    h("div.tools", {}, h("h1", {}, words ? ["Search ", h("span.asked", {}, words)] : "Search"), h("span.gap"),
      choice("Look for", WHAT, query.what ?? "", ({ target }) => go("/search", { ...kept, ...filters, what: target.value })),
      choice("Order", ORDERS, query.orderBy ?? "", ({ target }) => go("/search", { ...kept, ...filters, orderBy: target.value }))),
    chipsOf(filters, place),
    h("div.two", {}, body, h("aside", { "aria-label": "Filters" }, facetsOf(facets, filters, place))));
}

/** What the hits can be narrowed by; of what is chosen already, what could be chosen in its place. */
async function counted(asked, filters, signal) {
  try {
    const found = await get("/api/facets", asked, signal);
    for (const { name, facet } of FILTERS.filter((one) => one.facet && filters[one.name])) {
      found[facet] = (await get("/api/facets", { ...asked, [name]: "" }, signal))[facet];
    }
    return found;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return get("/api/facets", {}, signal); // what cannot be looked for is told where the hits would be
  }
}

async function results({ asked, query, words, total, signal, none }) {
  const wanted = Math.max(PAGE, Number(query.n) || 0), light = lean(words);
  const rows = h("div.hits", { role: "list", "aria-label": "Found" }), head = h("p.count", { role: "status" }), note = h("p.aside-note", { role: "status", hidden: true });
  const more = h("button.more", { on: { click: acting(further) } }, "More");
  const shown = [], opened = new Set(); // sessions of which all is shown
  let took = 0, open = 0;

  async function page(limit) {
    const offset = shown.length;
    const found = await get("/api/search", { ...asked, limit, offset }, signal);
    rows.append(...found.results.map((row, at) => hit(row, offset + at)));
    shown.push(...found.results);
    if (!asked.session) fold();
    took += found.took_ms;
    more.hidden = !found.more;
    fill(head, found.more ? `The first ${count(shown.length)} of ${count(total)}` : `${count(shown.length)} found`, h("span.quiet", {}, ` · ${took < 10 ? took.toFixed(1) : Math.round(took)} ms`));
    fill(note, found.note && sentence(found.note));
    note.hidden = !found.note;
  }

  /** One session must not fill the page: behind its third hit stands how many more there are. */
  function fold() {
    const sessions = {};
    for (const row of shown) if (row.session_db_id && row.kind !== "session") (sessions[row.session_db_id] ??= []).push(row.id);
    for (const [session, ids] of Object.entries(sessions)) {
      const rest = ids.slice(OF_A_SESSION).map((id) => rows.querySelector(`#hit-${id}`));
      if (!rest.length || opened.has(session) || ids.length === shown.length) continue;
      for (const one of rest) one.hidden = true;
      const said = rows.querySelector(`#hit-${ids[OF_A_SESSION - 1]} .said`);
      said.querySelector(".rest")?.remove();
      said.append(h("button.rest", { on: { click: ({ target }) => {
        opened.add(session);
        target.remove();
        for (const one of rest) one.hidden = false;
        rest[0].querySelector("a.title").focus();
      } } }, `${count(rest.length)} more of this session`));
    }
  }

  async function further() {
    const before = shown.length;
    await page(PAGE);
    adjust({ ...here().query, n: shown.length });
    rows.children[before]?.querySelector("a.title").focus();
  }

  function hit(row, at) {
    const why = row.score !== undefined && row.kind !== "session" && h("button.why", {
      "aria-expanded": "false", "aria-controls": `why-${row.id}`, on: { click: () => toggle(row, at) },
    }, "Why here?");
    const under = row.snippet || row.subtitle;
    return h("article.hit", { role: "listitem", id: `hit-${row.id}` },
      h("span.icon", { title: nameOf(row), "aria-hidden": "true" }, row.icon),
      h("div.said", {},
        h(row.kind === "message" ? "a.title.spoken" : "a.title", { href: linkOf(row) }, marked(row.title || "(no words)", light)),
        under && h("p.snippet", {}, marked(under, light)),
        h("div.under", {}, nameOf(row), " · ", row.project || "no project", " · ", when(row.created_at_epoch), " · ", tokens(row.tokens),
          row.duplicates > 0 && ` · ${many(row.duplicates, "other says", "others say")} the same`,
          row.stale && [" ", h("span.chip.warn", {}, row.stale)])),
      h("div.side", {}, row.score !== undefined && h("span.score", { title: "Score, from 0 to 1" }, row.score.toFixed(2)), why),
      h("section.explain", { id: `why-${row.id}`, hidden: true, tabindex: "-1", "aria-label": `Why ${row.title} stands here` }));
  }

  const parts = (id) => [rows.querySelector(`#why-${id}`), rows.querySelector(`#hit-${id} .why`)];

  function close() {
    const [panel, button] = parts(open);
    open = 0;
    if (!panel) return;
    panel.hidden = true;
    button.setAttribute("aria-expanded", "false");
    adjust({ ...here().query, explain: "" });
  }

  async function toggle(row, at) {
    const was = open;
    close();
    if (was !== row.id) await reveal(row, at);
  }

  async function reveal(row, at) {
    const [panel, button] = parts(row.id);
    open = row.id;
    fill(panel, h("p.quiet", {}, "Asking once more, with the reasons …"));
    panel.hidden = false;
    button.setAttribute("aria-expanded", "true");
    adjust({ ...here().query, explain: row.id });
    const offset = at - (at % MOST);
    try {
      const found = await get("/api/search", { ...asked, limit: Math.min(MOST, Math.max(PAGE, shown.length - offset)), offset, explain: true }, signal);
      const told = found.results.find((one) => one.id === row.id);
      fill(panel, told?.factors ? explainOf(told, found.explain) : h("p", {}, "It is no longer among the hits; search again."));
    } catch (error) {
      if (error.name !== "AbortError") notify(error);
    }
  }

  while (shown.length < wanted) {
    const before = shown.length;
    await page(Math.min(MOST, wanted - before));
    if (more.hidden || shown.length <= before) break;
  }
  if (!shown.length) return none();
  const at = shown.findIndex((row) => String(row.id) === query.explain);
  if (at >= 0) {
    await reveal(shown[at], at);
    requestAnimationFrame(() => rows.querySelector(`#hit-${shown[at].id}`)?.scrollIntoView({ block: "nearest" }));
  }
  rows.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !open) return;
    const [, button] = parts(open);
    close();
    button.focus();
  });
  return h("div", {}, head, note, stepping(rows, signal), more);
}

const SMALL = /^(what|which|did|does|about|how|why|where|when|who|was|were|are|with|for|from|that|this|our|you|have|has|can)$/i;

/** What of a question can stand in a text: without filters, what must not be there and small words,
 * and without the endings of the others, since `marked` finds what begins so. */
function lean(words) {
  const bare = words.replace(/\b\w+:("[^"]*"|\S+)/g, " ").replace(/\bNOT\s+("[^"]*"|\S+)/g, " ").replace(/\b(AND|OR|NEAR)\b/g, " ");
  return bare.replace(/[\p{L}\p{N}_]+/gu, (word) => {
    if (SMALL.test(word)) return "";
    return word.length > 5 ? word.replace(/(ies|ing|ed|es|s|y|e)$/, "") : word.replace(/(?<=\w{3})s$/, "");
  });
}

