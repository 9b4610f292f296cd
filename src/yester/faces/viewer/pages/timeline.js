// What happened, the newest first: by day, session and turn, below a year of days that leads to each;
// or every single item. What happens now comes in at the top.

import { get } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { choice } from "/core/fields.js";
import { clockOf, count, dayOf, many, plain, tokens } from "/core/format.js";
import { heatMap } from "/core/heat_map.js";
import { list } from "/core/list.js";
import { pager } from "/core/pager.js";
import { command, emptyOf, linkOf, nameOf, notify } from "/core/parts.js";
import { go, here, to } from "/core/router.js";
import { sessionGroups } from "/core/turn_rows.js";

export const title = () => "Timeline";

const HEIGHT = 56; // px, as in style/timeline.css
const EVERY = null;
const near = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const far = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "2-digit" });
const LATE = 400, FIRST = 50, TURNS = 500; // ms until what came is drawn; turns of a day shown at first; asked for at once
const SHOWN = [
  ["", "Turns", EVERY],
  ["items", "No raw messages", ["prompt", "observation", "summary", "memory", "note"]],
  ["found", "Findings only", ["observation", "memory", "note"]],
  ["prompts", "Prompts only", ["prompt"]],
  ["summaries", "Summaries only", ["summary"]],
  ["all", "With raw messages", EVERY],
];

export async function show(view) {
  const items = SHOWN.some(([name]) => name && name === view.query.show);
  const [{ projects }, { days }] = await Promise.all([
    get("/api/projects", {}, view.signal),
    items ? { days: [] } : get("/api/days", { project: view.query.project ?? "" }, view.signal),
  ]);
  if (items) return showItems(view, projects);
  // Where nothing was asked there are no turns, but perhaps what was kept.
  return days.length ? showTurns(view, projects, days) : showItems({ ...view, query: { ...view.query, show: "items" } }, projects);
}

function toolsOf(query, projects) {
  const change = (name) => (event) => go(here().path, { ...query, day: "", [name]: event.target.value });
  return h("div.tools", {}, h("h1", {}, "Timeline"), h("span.gap"),
    choice("Show", SHOWN, query.show ?? "", change("show")),
    choice("Project", [["", "All projects"], ...projects.map((one) => [one.name, `${one.name} (${count(sum(one.kinds))})`])], query.project ?? "", change("project")));
}

// --- by day, session and turn -----------------------------------------------------------------------

async function showTurns({ query, signal, listen, again }, projects, days) {
  const project = query.project ?? "";
  const address = (day) => to(here().path, { ...query, day });
  const scroller = document.getElementById("content");
  const whole = new Set(); // days of which all turns were asked for
  const fetched = async (page) => {
    const { day } = days[page], turns = [];
    let more = true;
    while (more && (!turns.length || whole.has(page))) {
      const part = await get("/api/turns", { project, dateStart: day, dateEnd: day, limit: whole.has(page) ? TURNS : FIRST, offset: turns.length }, signal);
      turns.push(...part.turns);
      more = part.more && part.turns.length > 0;
    }
    return { day, turns, left: more ? Math.max(1, days[page].turns - turns.length) : 0, more: page + 1 < days.length };
  };
  const unfold = (page) => (whole.add(page), pages.redraw(page).catch(notify));
  const pages = pager({ fetch: fetched, draw: (page, found) => dayBlock(found, page, () => unfold(page)), scroller, signal, failed: notify, names: ["Newer", "Older"] });
  const begin = Math.max(0, days.findIndex((one) => query.day && one.day <= query.day));
  await pages.open(begin);
  let late = 0;
  listen((event, row) => {
    if (event === "gap") return again();
    if (event !== "item" || !["prompt", "summary", "observation"].includes(row.kind) || late) return;
    if (project && !isOf(row, project)) return;
    late = setTimeout(async () => {
      late = 0;
      if (signal.aborted) return;
      if (row.kind === "prompt" && days[0]?.day !== localDay(row.created_at_epoch)) return scroller.scrollTop < 40 && again();
      await pages.redraw(0).catch(() => {}); // the next event may do
    }, LATE);
  });
  const node = h("div.view.timeline.by-turn", {}, toolsOf(query, projects),
    heatMap(days, localDay(Date.now()), address), pages.node);
  requestAnimationFrame(() => {
    if (!node.isConnected) return;
    if (query.day) node.querySelector(".day-block")?.scrollIntoView({ block: "start" });
    pages.settle();
  });
  return node;
}

const localDay = (epoch) => new Date(epoch - new Date(epoch).getTimezoneOffset() * 60000).toISOString().slice(0, 10);

function dayBlock({ day, turns, left }, page, unfold) {
  return h("section.day-block", { "data-page": page, "data-day": day },
    h("h2", {}, dayOf(Date.parse(`${day}T12:00:00`)), h("span.quiet.small", {}, many(turns.length + left, "turn"))),
    sessionGroups(turns),
    left > 0 && h("button", { on: { click: unfold } }, `${many(left, "earlier turn")} of this day`));
}

// --- every item -------------------------------------------------------------------------------------

async function showItems({ query, signal, listen, again }, projects) {
  listen((event, data) => (event === "gap" ? again() : event === "item" && came(data)));
  const [, , chosen] = SHOWN.find(([name]) => name === query.show);
  const wanted = { project: query.project ?? "", kinds: chosen ?? [] };
  const { results: [newest] } = await get("/api/items", { ...wanted, limit: 1 }, signal);
  // Pages are of what was there when the view was opened, or each new item would move them all. A
  // clock that was wrong may have put things into the future.
  const until = Math.max(Date.now(), (newest?.created_at_epoch ?? 0) + 1);
  const asked = projects.filter((one) => !query.project || [one.name, one.key].includes(query.project));
  const total = asked.flatMap((one) => Object.entries(one.kinds)).reduce((sum, [kind, items]) => sum + (!chosen || chosen.includes(kind) ? items : 0), 0);

  const where = h("div.where", {}), pill = h("button.pill", { hidden: true, on: { click: () => rows.top() } });
  const rows = list({
    label: "Timeline", signal, total, height: HEIGHT, draw, group: (row) => markOf(row.created_at_epoch),
    fetch: async (offset, limit) => {
      const found = await get("/api/items", { ...wanted, dateEnd: until, offset, limit }, signal);
      return { rows: found.results, more: found.more };
    },
    seen: (row, place, size) => fill(where, h("strong", {}, dayOf(row.created_at_epoch)), h("span.quiet", {}, `item ${count(place + 1)} of ${count(size)}`)),
    away: (n) => {
      if (pill.hidden === !n && pill.dataset.n === String(n)) return;
      pill.hidden = !n;
      pill.dataset.n = n;
      pill.textContent = `↑ ${many(n, "new one", "new ones")}`;
    },
    empty: () => (query.project || (query.show && query.show !== "items") ? nothingOf(query) : nothingYet()),
  });
  function came(row) {
    if (chosen && !chosen.includes(row.kind)) return;
    if (query.project && !asked.some((one) => isOf(row, one.name))) return;
    const epoch = row.created_at_epoch;
    rows.add(row, { late: epoch < until, above: (first) => epoch >= first.created_at_epoch });
  }
  return h("div.view.tall.timeline", {}, toolsOf(query, projects),
    h("div.list-frame", {}, where, rows.node, h("div.pill-place", { role: "status" }, pill)));
}

/** A day in few letters, for the column of times. */
function markOf(epoch) {
  if (!epoch) return "no date";
  return (new Date(epoch).getFullYear() === new Date().getFullYear() ? near : far).format(epoch);
}

const sum = (kinds) => Object.values(kinds).reduce((all, one) => all + one, 0);

/** "session" alone would not say that it is a summary of one. */
const sortOf = (row) => (row.kind === "summary" && row.type ? `summary of a ${plain(row.type)}` : nameOf(row));

/** Rows carry the first 40 characters of a project's name. */
const isOf = (row, name) => row.project === name || (row.project.endsWith("…") && name.startsWith(row.project.slice(0, -1)));

function draw(row) {
  const under = row.subtitle || row.snippet || (row.concepts ?? []).join(", ");
  return h("div.row", {},
    h("span.clock", {}, clockOf(row.created_at_epoch)),
    h("span.icon", { title: nameOf(row), "aria-hidden": "true" }, row.icon),
    h("div.said", {},
      h("a.title", { href: linkOf(row) }, row.title || "(no words)"),
      h("div.under", {}, sortOf(row), h("span.narrow", {}, ` · ${row.project || "no project"}`), under && ` · ${under}`)),
    h("div.side", {}, h("div.project", {}, row.project || "no project"), h("div", {}, tokens(row.tokens))));
}

const nothingYet = () => emptyOf("Nothing is here yet",
  ["Past sessions come in with ", command("yester index"), ", what is worth knowing about them with ", command("yester distil --backfill"), "."],
  ["From then on everything comes by itself, once ", command("yester install"), " has told your agent about yester."]);

const nothingOf = (query) => emptyOf("Nothing of this kind",
  ["There is more in the memory, but nothing that fits both choices above. ", h("a", { href: to(here().path, { project: query.project, show: "all" }) }, "Everything with raw messages"), query.project && [" of this project, or ", h("a", { href: to(here().path, { show: query.show }) }, "the same of all projects")], "."]);
