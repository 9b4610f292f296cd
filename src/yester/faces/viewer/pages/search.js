// Searching: the words stand in the field above, everything else in the address.

import { Problem, get } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { histogram } from "/core/histogram.js";
import { isSaved, savedList, toggleSaved } from "/core/saved_searches.js";
import { FILTERS, chipsOf, each, facetsOf, read } from "/core/facets.js";
import { choice } from "/core/fields.js";
import { ticked } from "/core/clipboard.js";
import { count, many, marked, sentence, tokens, when } from "/core/format.js";
import { acting, linkOf, nameOf, notify } from "/core/parts.js";
import { adjust, go, here, to } from "/core/router.js";
import { stepping } from "/core/row_keys.js";
import { explainOf } from "/core/score.js";
import { nothingAsked, nothingFound } from "/core/search_help.js";
import { statusChip, statusMark } from "/core/turn_status.js";

export const title = ({ query }) => (query.query ? `${query.query} · Search` : "Search");

const PAGE = 20, MOST = 100, COUNTED = 500; // hits a page, hits at once, hits that are counted at most
const OF_A_SESSION = 3; // hits, until more of it are asked for
const LATER = 450; // ms without a letter, after which it is counted what the hits could be narrowed by
const WHAT = [["", "Everything"], ["observations", "Found out"], ["prompts", "Prompts"], ["sessions", "Sessions"]];
const ORDERS = [["", "Best first"], ["date_desc", "Newest first"], ["date_asc", "Oldest first"]];

let former = null; // facets of the search before: they stand, pale, until the next ones are there

export async function show({ query, signal, again }) {
  const filters = read(query), words = query.query ?? "";
  const kept = { query: words, what: query.what, orderBy: query.orderBy, near: query.near };
  const place = (changed) => to("/search", { ...kept, ...changed });
  const asked = { query: words, type: query.what, orderBy: query.orderBy, near: query.near, ...filters };
  const nothing = !words && !each(filters).length && !query.what;
  const aside = h("aside", { "aria-label": "Filters" }), times = h(nothing ? "div" : "div.times");
  const found = nothing ? { node: nothingAsked((former = await get("/api/facets", {}, signal))) } : await answered();
  const draw = (facets, pale) => fill(aside, savedList(again), h(pale ? "div.pale" : "div", {}, facets && facetsOf(facets, filters, place)));

  async function answered() {
    try {
      return await results({ asked, query, words, signal, none: () => nothingFound(asked, filters, place, signal) });
    } catch (error) {
      if (!(error instanceof Problem) || ![400, 404].includes(error.status)) throw error;
      return { node: h("section.notice.warn", { role: "alert" }, h("h2", {}, "That cannot be looked for"), h("p", {}, error.message), error.fix && h("p", {}, error.fix)) };
    }
  }

  draw(former, !nothing);
  if (!nothing) {
    const typing = document.activeElement?.matches("header input[type=search]");
    const late = setTimeout(async () => {
      const facets = await counted(asked, filters, signal).catch((error) => error.name === "AbortError" || notify(error));
      if (signal.aborted || !facets?.kinds) return;
      former = facets;
      draw(facets, false);
      found.count?.(facets.total);
      times.classList.remove("times"); // it held the room, so that the hits need not move
      fill(times, histogram(facets.days, (from, until) => place({ ...filters, dateStart: from, dateEnd: until })));
    }, typing ? LATER : 0);
    signal.addEventListener("abort", () => clearTimeout(late));
  } else if (matchMedia("(hover: hover)").matches) requestAnimationFrame(() => signal.aborted || document.querySelector("header input[type=search]").focus());

  const name = [words, ...each(filters).map(({ label, value }) => `${label}: ${value}`)].filter(Boolean).join(" · ");
  return h("div.view.search", {},
    h("div.tools", {}, h("h1", {}, words ? ["Search ", h("span.asked", {}, words)] : "Search"), h("span.gap"),
      !nothing && saving(name || "everything", place(filters), () => draw(former, false)),
      choice("Look for", WHAT, query.what ?? "", ({ target }) => go("/search", { ...kept, ...filters, what: target.value })),
      choice("Order", ORDERS, query.orderBy ?? "", ({ target }) => go("/search", { ...kept, ...filters, orderBy: target.value }))),
    chipsOf(filters, place),
    h("div.two", {}, h("div", {}, times, found.node), aside));
}

function saving(name, href, changed) {
  const button = h("button.small", { on: { click: () => (toggleSaved(name, href), draw(), changed()) } });
  const draw = () => {
    button.textContent = isSaved(href) ? "★ Saved" : "☆ Save";
    button.setAttribute("aria-pressed", String(isSaved(href)));
    button.title = isSaved(href) ? "Take it off the saved searches" : "Keep this search in this browser";
  };
  draw();
  return button;
}

/** What the hits can be narrowed by; of what is chosen already, what could be chosen in its place. */
async function counted(asked, filters, signal) {
  try {
    const chosen = FILTERS.filter((one) => one.facet && filters[one.name]);
    const [found, ...others] = await Promise.all([get("/api/facets", asked, signal), ...chosen.map(({ name }) => get("/api/facets", { ...asked, [name]: "" }, signal))]);
    chosen.forEach(({ facet }, place) => (found[facet] = others[place][facet]));
    return found;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return get("/api/facets", {}, signal); // what cannot be looked for is told where the hits would be
  }
}

/** Who speaks, and with which tool; what it is where nobody has said it. */
function speakerOf(row) {
  const agent = row.agent ?? "agent";
  if (row.role === "tool") return [h("b", {}, row.tool || "tool"), ` by ${row.actor || agent}`];
  if (row.kind === "prompt") return [h("b", {}, row.actor ? agent : "You"), row.actor && ` to ${row.actor}`];
  if (row.kind !== "message") return h("b", {}, nameOf(row));
  return [h("b", {}, row.role === "user" ? "You" : row.actor || agent), row.role === "thinking" && ", thinking"];
}

async function results({ asked, query, words, signal, none }) {
  const wanted = Math.max(PAGE, Number(query.n) || 0), light = lean(words);
  const rows = h("div.hits", { role: "list", "aria-label": "Found" }), head = h("p.count", { role: "status" }), note = h("p.aside-note", { role: "status", hidden: true });
  const more = h("button.more", { on: { click: acting(further) } }, "More");
  const shown = [], groups = new Map(), opened = new Set(); // by session; those of which all is shown
  let took = 0, open = 0, total = 0;

  async function page(limit) {
    const offset = shown.length;
    const found = await get("/api/search/grouped", { ...asked, limit, offset }, signal);
    const sessions = new Map((found.sessions ?? []).map((one) => [one.db_id, one]));
    found.results.forEach((row, at) => groupOf(row, sessions.get(row.session_db_id)).list.append(hit(row, offset + at)));
    shown.push(...found.results);
    if (!asked.session) for (const [id, group] of groups) fold(id, group);
    took += found.took_ms;
    more.hidden = !found.more;
    said();
    fill(note, found.note && sentence(found.note));
    note.hidden = !found.note;
  }

  function said() {
    const of = !total ? "" : ` of ${count(total)}${total >= COUNTED ? " or more" : ""}`;
    fill(head, more.hidden ? `${count(shown.length)} found` : `The first ${count(shown.length)}${of}`, h("span.quiet", {}, ` · ${took < 10 ? took.toFixed(1) : Math.round(took)} ms`));
  }

  /** What was found in one session stands together, where the best of it does. */
  function groupOf(row, session) {
    const id = row.kind !== "session" && session ? session.db_id : 0;
    if (id && groups.has(id)) return groups.get(id);
    const list = h("div.of-session");
    const group = { list, rest: null };
    rows.append(h("div.group", { role: "listitem", ...(id && { "data-session": id }) },
      id > 0 && h("div.group-head", {}, h("a", { href: to(`/session/S${id}`) }, session.title || `Session S${id}`),
        h("span.quiet.small", {}, [session.project || "no project", session.agent].filter(Boolean).join(" · "), " · ", when(session.ended))), list));
    if (id) groups.set(id, group);
    return group;
  }

  /** One session must not fill the page: behind its third hit stands how many more there are. */
  function fold(id, group) {
    const rest = [...group.list.querySelectorAll(".hit")].slice(OF_A_SESSION);
    group.rest?.remove();
    if (!rest.length || opened.has(id)) return;
    for (const one of rest) one.hidden = true;
    group.rest = h("button.rest", { on: { click: () => {
      opened.add(id);
      group.rest.remove();
      for (const one of rest) one.hidden = false;
      rest[0].querySelector("a.title").focus();
    } } }, `${count(rest.length)} more of this session`);
    group.list.after(group.rest);
  }

  async function further() {
    const before = shown.length;
    await page(PAGE);
    adjust({ ...here().query, n: shown.length });
    const next = shown.slice(before).map((row) => rows.querySelector(`#hit-${row.id}`)).find((one) => one && !one.hidden);
    next?.querySelector("a.title").focus();
  }

  function hit(row, at) {
    const why = row.score !== undefined && row.kind !== "session" && h("button.why", {
      "aria-expanded": "false", "aria-controls": `why-${row.id}`, on: { click: () => toggle(row, at) },
    }, "Why here?");
    // What came of a turn stands before its evidence: "done: 3 passed".
    const [, status = "", evidence = ""] = row.type === "turn" ? /^(\w+)(?:, [\w ]+)?(?:: (.*))?$/s.exec(row.subtitle ?? "") ?? [] : [], came = statusChip(status, evidence);
    const under = row.snippet || (came ? evidence : row.subtitle);
    return h("article.hit", { id: `hit-${row.id}` },
      came ? statusMark(status, evidence) : h("span.icon", { title: nameOf(row), "aria-hidden": "true" }, row.icon),
      h("div.said", {},
        h(row.kind === "message" ? "a.title.spoken" : "a.title", { href: linkOf(row) }, marked(row.title || "(no words)", light)),
        under && h("p.snippet", {}, came && !row.snippet ? ticked(under) : marked(under, light)),
        h("div.under", {}, h("span.speaker", {}, speakerOf(row)), " · ", came && [came, " "], (!row.session_db_id || row.kind === "session") && [row.project || "no project", " · "], when(row.created_at_epoch), " · ", tokens(row.tokens),
          row.duplicates > 0 && ` · ${many(row.duplicates, "other says", "others say")} the same`,
          row.stale && [" ", h("span.chip.warn", {}, row.stale)])),
      h("div.side", {}, row.score !== undefined && h("span.score", { title: "The score: “Why here?” shows its parts" }, row.score.toFixed(2)), why),
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
  if (!shown.length) return { node: await none() };
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
  return { node: h("div", {}, head, note, stepping(rows, signal), more), count: (all) => ((total = all), said()) };
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

