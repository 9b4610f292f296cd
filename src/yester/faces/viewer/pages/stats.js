// What the memory holds, what of it was shown, how fast that was, and what it has cost.

import { get } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { count, many, manyOf, plain } from "/core/format.js";
import { EVENTS } from "/core/injections.js";
import { bar, command, emptyOf, notify } from "/core/parts.js";
import { largest, plot, sumUp, total } from "/core/plot.js";
import { to } from "/core/router.js";

export const title = () => "Statistics";

const RANGES = [7, 30, 90, 365], MOST = 3650; // days; the last one is everything there is
const PROJECTS = 12;
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const LATELY = 7, USUAL = 90; // where something happened in the last days, no more than that is looked at unasked
const FEW = 0.02; // of all items: a range that hides nearly everything
const DAY = 86_400_000;

const since = (epoch) => Math.max(1, Math.ceil((Date.now() - epoch) / DAY) + 1);
const whole = ({ oldest }) => Math.min(MOST, since(oldest ?? Date.now()));

/** The smallest range that shows what there is. */
function fitting(stats) {
  if (!stats.newest) return 30;
  const fit = whole(stats);
  return since(stats.newest) <= LATELY ? Math.min(fit, USUAL) : fit;
}

export async function show({ query, signal }) {
  const view = h("div.view.stats", { "aria-busy": "true" }, h("div.tools", {}, h("h1", {}, "Statistics")),
    h("div.skeletons", { "aria-hidden": "true" }, [8, 14, 20, 20].map((height) => h("div.skeleton", { style: { height: `${height}rem` } }))));
  draw(view, query, signal).catch((error) => {
    if (error.name === "AbortError") return;
    view.removeAttribute("aria-busy");
    notify(error);
  });
  return view;
}

async function draw(view, query, signal) {
  const asked = Number(query.days);
  let stats = await get("/api/stats", { days: asked || 30 }, signal);
  const all = whole(stats), days = asked >= 1 && asked <= MOST ? asked : fitting(stats);
  const [again, series, spend] = await Promise.all([
    stats.days === days ? stats : get("/api/stats", { days }, signal), get("/api/series", { days }, signal), get("/api/spend", { days }, signal)]);
  stats = again;
  const items = total(Object.values(stats.items)), ranges = [...RANGES.filter((one) => one < all), all];
  fill(view,
    h("div.tools", {}, h("h1", {}, "Statistics"),
      h("nav.ranges", { "aria-label": "How far back" }, ranges.map((one) =>
        h("a.chip", { href: to("/stats", { ...query, days: one }), "aria-current": one === days && "true" }, one === all && all > RANGES[0] ? `All ${count(one)} days` : many(one, "day"))))),
    items > 0 && helped(series, stats, days),
    figures(stats, items),
    older(total(Object.values(series.items).map(total)), items, days, all, query),
    !items && emptyOf("Nothing is counted yet", ["Past sessions come in with ", command("yester index"), "; plots begin on the day they were written."]),
    made(series, days, query, stats),
    h("div.plots", {},
      h("div", {}, tokens(series, days), lag(series, stats), money(series, spend, days), shown(stats)),
      h("div", {}, latency(series), errors(series, stats, days), distilled(stats), vectors(stats), skipped(stats))));
  view.removeAttribute("aria-busy");
}

const percent = (part, all) => `${Math.round((part / all) * 100)} %`;

/** Did it help? In plain words first, then by project and over time. */
function helped(series, { use, note }, range) {
  const sum = (name) => total(use.map((one) => one[name])), given = sum("given"), used = sum("used");
  const read = sum("tokens"), behind = sum("discovery_tokens"), met = total(series.errors_met), again = total(series.errors_again);
  const most = Math.max(...use.map((one) => one.given), 1);
  return h("section.helped", { "aria-label": "Did it help?" }, h("h2", {}, "Did it help?"),
    h("dl.answers", {},
      h("div", {}, h("dt", {}, "Of what agents were given"), h("dd", {}, given ? [h("b", {}, percent(used, given)), " was used"] : h("b", {}, "–")),
        h("dd.small.quiet", {}, given ? `${count(used)} of ${many(given, "line")}: a file it is about was edited afterwards, the whole of it was asked for, or you called it useful. Of the others nothing is known.`
          : ["No agent was given anything in this time. Run ", command("yester install"), "."])),
      h("div", {}, h("dt", {}, "Of the errors agents met"), h("dd", {}, met ? [h("b", {}, percent(again, met)), " had been met before"] : h("b", {}, "–")),
        h("dd.small.quiet", {}, met ? `${count(again)} of ${many(met, "error")} had been met on an earlier day; ${count(total(series.errors_ended))} ended in their session.` : "No run has shown an error in this time.")),
      h("div", {}, h("dt", {}, "Tokens given, and what they were made from"), h("dd", {}, read ? [h("b", {}, `~${short.format(read)}`), behind > 0 && ` from ~${short.format(behind)}`] : h("b", {}, "–")),
        h("dd.small.quiet", {}, read && behind ? `Agents read ~${count(read)} tokens. The sessions these lines were made from had ~${count(behind)}. ` : "", read > 0 && note))),
    given > 0 && h("div.plots", {},
      h("div", {}, section("Used, by project", use.slice(0, PROJECTS).map((one) => h("div.bar.of-two", {}, h("span", {}, one.project === "global" ? "everywhere" : one.project || "no project"),
        h("div.track", { "aria-hidden": "true" }, h("i", { style: { width: `${(one.given / most) * 100}%` } }), h("i.used", { style: { width: `${(one.used / most) * 100}%` } })),
        h("output", {}, `${count(one.used)} of ${count(one.given)}, ${percent(one.used, one.given)}`))),
      use.length > PROJECTS && h("p.quiet.small", {}, `and ${many(use.length - PROJECTS, "other project")}`))),
      h("div", {}, plotted({ title: "Lines given per day", days: series.days,
        series: [{ name: "used", values: series.used_lines }, { name: "nothing known", values: series.shown_lines.map((all, day) => all - series.used_lines[day]) }] }, range))));
}

/** Where nearly everything is older than what is plotted. */
const older = (here, items, days, all, query) => items > 0 && days < all && here < items * FEW && h("p.notice.older", {},
  `${here ? `Only ${count(here)} of ${count(items)} items are` : "Nothing is"} from the last ${days} days; the rest is older. `,
  h("a", { href: to("/stats", { ...query, days: all }) }, "Look at all of it"));

const figure = (name, value, more = "") => h("div", {}, h("dt", {}, name), h("dd", {}, value, more && h("small", {}, more)));

function figures(stats, items) {
  return h("dl.figures", {},
    figure("Items", count(items), Object.entries(stats.items).map(([kind, number]) => manyOf(number, kind)).join(", ")),
    figure("Sessions", count(stats.sessions), `${many(stats.transcripts, "transcript")} read`),
    figure("Projects", count(stats.projects)),
    figure("Hook events", count(stats.events)),
    figure("On disk", size(stats.bytes)),
    figure("Since", stats.oldest ? day(stats.oldest) : "–", stats.newest ? `until ${day(stats.newest)}` : ""));
}

const dated = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });
const day = (epoch) => dated.format(epoch);

function size(bytes) {
  const steps = ["bytes", "KB", "MB", "GB", "TB"];
  const step = Math.min(steps.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
  return `${(bytes / 1000 ** step).toFixed(step && bytes / 1000 ** step < 100 ? 1 : 0)} ${steps[step]}`;
}

/** A plot, or, where there is nothing to draw, words on what would be there. */
function plotted(given, days, ...teaches) {
  if (!given.series.some((one) => total(one.values))) return nothing(given.title, ...teaches);
  const [size, step] = days <= 120 ? [1, "Day"] : days <= 800 ? [7, "Week"] : [30, "30 days"];
  const lead = given.lines ? null : (_, until) => to("/timeline", { day: until });
  if (size === 1) return plot({ ...given, lead });
  return plot({ ...given, lead, ...sumUp(given.days, given.series, size), title: given.title.replace("per day", step === "Week" ? "per week" : "per 30 days"), step });
}

const nothing = (title, ...says) => h("section.plot.none", {}, h("h2", {}, title), says.map((say) => h("p.quiet", {}, say)));

function made({ days, items }, range, query, { newest }) {
  const all = query.show === "all", { message, ...found } = items;
  const node = plotted({ title: "Items per day", days, series: largest(all ? items : found, days.length) }, range,
    [`Nothing was ${all ? "recorded" : "found out or asked"} in the last ${range} days.`,
      newest > 0 && ` The last was on ${day(newest)}.`]);
  node.classList.add("whole");
  // Messages are so many that nothing else could be seen beside them.
  if (message) node.append(h("p.small", {}, h("a", { href: to("/stats", { ...query, show: all ? "" : "all" }) },
    all ? "Without messages" : `With ${many(total(message), "message")}`)));
  return node;
}

function tokens({ days, shown_tokens, discovered_tokens, note }, range) {
  return plotted({
    title: "Tokens per day: read against discovered", days, lines: true, log: true, note, write: (value) => `~${count(Math.round(value))}`,
    series: [{ name: "read by agents", values: shown_tokens }, { name: "spent on finding it out", values: discovered_tokens }],
  }, range, ["Nothing was injected in this time. What an agent is given when a session begins or a prompt is typed stands in ", h("a", { href: to("/shown") }, "Injected"), "."], note);
}

const ms = (value) => (value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${count(Math.round(value * 10) / 10)} ms`);
const msAxis = (value) => (value >= 3_600_000 ? `${+(value / 3_600_000).toPrecision(2)} h` : value >= 1000 ? `${+(value / 1000).toPrecision(3)} s` : `${+value.toPrecision(3)} ms`);
const halves = (found) => [{ name: "median", values: found.p50 }, { name: "slowest in a hundred", values: found.p99 }];

// What is a median of days cannot be added up to weeks: a year is drawn by days.
function latency({ days, answer_ms }) {
  return plotted({ title: "Time to answer an agent", days, series: halves(answer_ms), lines: true, log: true, write: ms, scale: msAxis }, 0,
    ["No agent has asked in this time. Hooks ask when a session begins and when a prompt is typed, once ", command("yester install"), " has been run."]);
}

function lag({ days, lag_ms }, stats) {
  const now = stats.lag_ms.p50 === null ? "" : `Of the last events: half within ${ms(stats.lag_ms.p50)}, all but one in a hundred within ${ms(stats.lag_ms.p99)}.`;
  return plotted({ title: "Lag: from an event until it can be found", days, series: halves(lag_ms), lines: true, log: true, write: ms, scale: msAxis, note: now }, 0,
    ["No event came from a hook in this time. Events come while an agent works, once ", command("yester install"), " has been run."], now);
}

function errors({ days, errors_met, errors_again, errors_ended }, { reflexes }, range) {
  const drawn = plotted({ title: "Errors per day", days, series: [{ name: "met", values: errors_met }, { name: "met before", values: errors_again }, { name: "ended", values: errors_ended }] }, range,
    ["No run has shown an error in this time."]);
  if (reflexes.length) drawn.append(numbers("Told at the moment of action", ["About", "Told", "Used", "Ignored", "Wrong"], reflexes.map((row) => [row.about, row.told, row.used, row.ignored, row.wrong])));
  return drawn;
}

const dollars = (value) => (value > 0 && value < 0.01 ? `$${value.toPrecision(2)}` : `$${value.toFixed(2)}`);

function money({ days, spend }, { provider, today, limits, spend: rows }, range) {
  const drawn = plotted({ title: "Spend per day", days, series: [{ name: "dollars", values: spend }], write: dollars, scale: (value) => `$${value}` }, range,
    provider === "none"
      ? "No language model is set, and none is needed: nothing is sent and nothing costs anything."
      : [`Nothing was spent in this time (${provider} is set).`]);
  if (provider !== "none" || rows.length) drawn.append(h("section.today", {},
    h("h3", {}, "Today, of what a day may cost"),
    part("Dollars", today.cost, limits.dollars, dollars), part("Tokens", today.tokens, limits.tokens, count),
    rows.length > 0 && h("details", {}, h("summary", {}, "By model and purpose"), h("div.wide", { tabindex: "0", role: "region", "aria-label": "Spend by model and purpose" }, h("table", {},
      h("thead", {}, h("tr", {}, ["Day", "Model", "For", "Ended"].map((name) => h("th", { scope: "col" }, name)), ["Calls", "Tokens", "Cost"].map((name) => h("th.number", { scope: "col" }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, [row.day, row.model, row.purpose, row.outcome].map((text) => h("td", {}, text)),
        [count(row.calls), count(row.tokens_in + row.tokens_out), dollars(row.cost)].map((text) => h("td.number", {}, text))))))))));
  return drawn;
}

const part = (name, is, most, write) => bar(name, most ? is / most : 0, `${write(is)} of ${write(most)}`);

const section = (title, ...children) => h("section.plot", {}, h("h2", {}, title), children);
const numbers = (label, names, rows) => h("div.wide", { tabindex: "0", role: "region", "aria-label": label }, h("table", {},
  h("thead", {}, h("tr", {}, names.map((name, place) => h(place ? "th.number" : "th", { scope: "col" }, name)))),
  h("tbody", {}, rows.map(([first, ...rest]) => h("tr", {}, h("th", { scope: "row" }, first), rest.map((value) => h("td.number", {}, count(value))))))));

function shown({ shown: rows, days, note }) {
  if (!rows.length) return nothing("Injected", `Nothing in the last ${days} days.`);
  return section(`Injected in ${days} days`,
    numbers("Injected", ["When", "Times", "Lines", "Tokens to read", "Made from"], rows.map((row) => [EVENTS[row.event] ?? row.event, row.times, row.items, row.tokens, row.discovery_tokens])),
    h("p.quiet.small", {}, note, " ", h("a", { href: to("/shown") }, "Every line")));
}

function distilled({ distilled: rows, note }) {
  if (!rows.length) return nothing("Made from what was found out", ["Observations are made when a session pauses; of past ones with ", command("yester distil --backfill"), "."]);
  return section("Made from what was found out",
    numbers("Made from what was found out", ["Kind", "Items", "Tokens to read", "Made from"], rows.map((row) => [plain(row.kind), row.items, row.read_tokens, row.discovery_tokens])),
    h("p.quiet.small", {}, note));
}

function vectors({ vectors: { done, waiting } }) {
  if (!done && !waiting) return nothing("Search by meaning", ["No item has a vector: search goes by words alone. ", command("yester model"), " says what there is."]);
  return section("Search by meaning", bar("Vectors", done / (done + waiting), `${count(done)} of ${count(done + waiting)}`),
    h("p.quiet.small", {}, waiting ? ["What waits comes in the background, or at once with ", command("yester index"), "."] : "Every item that is to have one has one."));
}

function skipped({ skipped: reasons }) {
  const rows = Object.entries(reasons).sort((a, b) => b[1] - a[1]), most = rows[0]?.[1] ?? 0;
  if (!rows.length) return nothing("Left out", "Nothing of what was read has been left out.");
  return section("Left out of what was read", rows.slice(0, 12).map(([reason, number]) => bar(reason, number / most, count(number), reason)),
    rows.length > 12 && h("p.quiet.small", {}, `and ${many(rows.length - 12, "other reason")}`));
}
