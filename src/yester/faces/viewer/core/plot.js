// Plots of figures by day: stacked bars, or lines. Drawn for the width there is, read by the pointer
// or the arrow keys, and the same figures stand in a table. No colour says anything alone.

import { fill, h, svg } from "/core/dom.js";
import { count } from "/core/format.js";

const HEIGHT = 190, LEFT = 46, RIGHT = 8, ABOVE = 10, BELOW = 22;
const COLOURS = 8; // as many as --plot-… in base.css
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const date = (day, parts) => new Intl.DateTimeFormat("en", { ...parts, timeZone: "UTC" }).format(new Date(`${day}T00:00:00Z`));

const dayName = (day) => date(day, { weekday: "short", day: "numeric", month: "short", year: "numeric" });
const dayShort = (day) => date(day, { day: "numeric", month: "short" });

/**
 * `series` is `[{name, values}]`, a value for each day, null where nothing is known. `write` puts a
 * value into words, `scale` one for the axis; `step` is what a place is; `log` makes the axis logarithmic.
 */
export function plot({ title, days, series, lines = false, log = false, write = count, scale = short.format, step = "Day", note = "", lead = null }) {
  const said = h("p.plot-said", {});
  const area = h("div.plot-area", {
    role: "slider", tabindex: "0", "aria-label": `${title}: the arrow keys read it out`, "aria-orientation": "horizontal",
    "aria-valuemin": 1, "aria-valuemax": days.length,
  });
  const cursor = svg("rect.cursor", { y: ABOVE, height: HEIGHT - ABOVE - BELOW, visibility: "hidden" });
  let at = -1, slot = 1;

  function draw() {
    const width = Math.max(160, Math.floor(area.clientWidth));
    slot = (width - LEFT - RIGHT) / days.length;
    const y = axis(lines ? series.flatMap((one) => one.values) : sums(series, days.length), log);
    fill(area, svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" },
      y.ticks.map((tick) => [
        svg("line.grid", { x1: LEFT, x2: width - RIGHT, y1: y.of(tick), y2: y.of(tick) }),
        svg("text", { x: LEFT - 6, y: y.of(tick) + 4, "text-anchor": "end" }, scale(tick)),
      ]),
      labels(days, width, slot), cursor,
      lines ? series.map((one, place) => line(one, place, slot, y, log)) : bars(series, days.length, slot, y)));
    mark();
  }

  function mark() {
    cursor.setAttribute("visibility", at < 0 ? "hidden" : "visible");
    cursor.setAttribute("x", LEFT + Math.max(at, 0) * slot);
    cursor.setAttribute("width", Math.max(slot, 2));
  }

  function read(place) {
    at = place < 0 ? -1 : Math.min(place, days.length - 1);
    mark();
    fill(said, at < 0 ? rest() : [h("b", {}, named(days[at], step)), ": ", told(series, at, lines, write)]);
    area.setAttribute("aria-valuenow", (at < 0 ? days.length - 1 : at) + 1);
    area.setAttribute("aria-valuetext", said.textContent);
  }

  const single = lines && series.every((one) => one.values.filter((value) => value !== null && value !== undefined && !(log && value <= 0)).length < 2);
  const rest = () => [single && `Measured ${step === "Day" ? "on" : "in"} one ${step.toLowerCase()} so far: a line begins with the second.`, note || `Point at it, or use the arrow keys, to read it out${lead ? "; a click or Enter leads to the timeline" : ""}.`].filter(Boolean).join(" ");
  const under = (event) => read(Math.max(0, Math.floor((event.clientX - area.getBoundingClientRect().left - LEFT) / slot)));
  area.addEventListener("pointermove", under);
  area.addEventListener("pointerdown", under);
  area.addEventListener("pointerleave", () => document.activeElement === area || read(-1));
  area.addEventListener("blur", () => read(-1));
  const follow = () => lead && at >= 0 && (location.hash = lead(days[at], ends(days, at)));
  if (lead) area.classList.add("leads");
  area.addEventListener("click", follow);
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter") return follow();
    const last = days.length - 1, from = at < 0 ? days.length : at;
    const next = {
      ArrowLeft: from - 1, ArrowDown: from - 1, ArrowRight: at < 0 ? 0 : at + 1, ArrowUp: at < 0 ? 0 : at + 1,
      PageDown: from - 7, PageUp: from + 7, Home: 0, End: last,
    }[event.key];
    if (event.key === "Escape") return read(-1);
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    read(Math.max(0, Math.min(last, next)));
  });
  new ResizeObserver(draw).observe(area);
  read(-1);
  return h("figure.plot", {},
    h("figcaption", {}, h("h2", {}, title), log && h("span.quiet.small", {}, "logarithmic scale")),
    legend(series, lines, write), area, said, table(title, days, series, write, step));
}

/** At most as many series as there are colours: the largest, and the sum of the others. */
export function largest(items, days) {
  const all = Object.entries(items).map(([name, values]) => ({ name: name.replaceAll("_", " "), values, total: name === "other" ? 0 : total(values) }))
    .filter((one) => total(one.values)).sort((a, b) => b.total - a.total);
  if (all.length <= COLOURS) return all;
  return [...all.slice(0, COLOURS - 1), { name: "other", values: sums(all.slice(COLOURS - 1), days) }];
}

/** The last day of a place: the one before the next place begins. */
function ends(days, at) {
  const next = at + 1 < days.length ? Date.parse(days[at + 1]) - 86_400_000 : Date.now();
  return new Date(Math.max(next, Date.parse(days[at]))).toISOString().slice(0, 10);
}

/** Days put together by so many, up to the last one. Only for what can be added up. */
export function sumUp(days, series, size) {
  const first = days.length % size;
  const starts = [...(first ? [0] : []), ...days.map((_, place) => place).filter((place) => place >= first && (place - first) % size === 0)];
  const summed = (values) => starts.map((start, place) => total(values.slice(start, starts[place + 1])));
  return { days: starts.map((start) => days[start]), series: series.map((one) => ({ ...one, values: summed(one.values) })) };
}

export const total = (values) => values.reduce((sum, value) => sum + (value ?? 0), 0);
const sums = (series, length) => Array.from({ length }, (_, place) => total(series.map((one) => one.values[place])));

/** Where values stand, and the few round ones that are written beside. */
function axis(values, log) {
  const known = values.filter((value) => value > 0);
  const top = Math.max(0, ...known), high = HEIGHT - BELOW - ABOVE;
  const place = (share) => ABOVE + high * (1 - Math.max(0, Math.min(1, share)));
  if (log && known.length) {
    const low = Math.floor(Math.log10(Math.min(...known))), end = Math.max(low + 1, Math.ceil(Math.log10(top)));
    const every = Math.ceil((end - low) / 5);
    const ticks = Array.from({ length: Math.floor((end - low) / every) + 1 }, (_, step) => 10 ** (low + step * every));
    return { ticks, of: (value) => place(value > 0 ? (Math.log10(value) - low) / (end - low) : 0) };
  }
  const step = round((top || 1) / 4), end = Math.ceil((top || 1) / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, number) => Number((number * step).toPrecision(12)));
  return { ticks, of: (value) => place(value / end) };
}

/** 1, 2 or 5 times a power of ten, not less than this. */
function round(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((by) => by * power >= least * (1 - 1e-9));
}

function labels(days, width, slot) {
  const every = Math.ceil(days.length / Math.max(2, Math.floor(width / 84)));
  return days.map((day, place) => {
    if ((days.length - 1 - place) % every) return null;
    const x = LEFT + (place + 0.5) * slot;
    const anchor = x > width - 26 ? "end" : x < LEFT + 14 ? "start" : "middle";
    return svg("text", { x: anchor === "end" ? width - 2 : x, y: HEIGHT - 5, "text-anchor": anchor }, dayShort(day));
  });
}

function bars(series, length, slot, y) {
  const wide = Math.max(1, slot - (slot > 8 ? 3 : slot > 3 ? 1 : 0));
  const under = Array.from({ length }, () => 0);
  return series.map((one, place) => svg(`g.s${place + 1}`, {}, one.values.map((value, day) => {
    if (!value) return null;
    const from = y.of(under[day]), to = y.of((under[day] += value));
    return svg("rect", { x: LEFT + day * slot + (slot - wide) / 2, y: to, width: wide, height: Math.max(0.5, from - to) });
  })));
}

function line(one, place, slot, y, log) {
  // Nothing has no place on a logarithmic scale: the line has a gap there.
  const known = (day) => one.values[day] !== null && one.values[day] !== undefined && !(log && one.values[day] <= 0);
  const at = (day) => `${(LEFT + (day + 0.5) * slot).toFixed(1)} ${y.of(one.values[day]).toFixed(1)}`;
  const path = one.values.map((_, day) => (known(day) ? `${known(day - 1) ? "L" : "M"}${at(day)}` : "")).join("");
  const alone = (day) => known(day) && (slot > 9 || (!known(day - 1) && !known(day + 1)));
  // A faint line leads over the days nothing is known of, or dots would stand alone.
  const over = one.values.map((_, day) => (known(day) ? at(day) : "")).filter(Boolean).join("L");
  return svg(`g.line.s${place + 1}`, {}, over && svg("path.over", { d: `M${over}` }), svg("path", { d: path || "M0 0" }),
    one.values.map((value, day) => alone(day) && svg("circle", { cx: LEFT + (day + 0.5) * slot, cy: y.of(value), r: known(day - 1) || known(day + 1) ? 2.4 : 3.6 })));
}

function legend(series, lines, write) {
  if (series.length < 2) return null;
  return h("ul.legend", { "aria-label": "Legend" }, series.map((one, place) =>
    h("li", {}, h(`i.s${place + 1}${lines ? ".stroke" : ""}`, { "aria-hidden": "true" }), one.name, !lines && h("span.quiet", {}, " ", write(total(one.values))))));
}

function told(series, at, lines, write) {
  const parts = series.filter((one) => (lines ? true : one.values[at]))
    .map((one) => (one.values[at] === null || one.values[at] === undefined ? `${one.name}: not measured` : lines ? `${one.name} ${write(one.values[at])}` : `${write(one.values[at])} ${one.name}`));
  if (!parts.length) return "nothing";
  const all = lines || series.length < 2 ? "" : `${write(total(series.map((one) => one.values[at])))} in all: `;
  return all + parts.join(lines ? " · " : ", ");
}

const named = (day, step) => (step === "Day" ? dayName(day) : `${step} from ${dayName(day)}`);

function table(title, days, series, write, step) {
  const box = h("div.wide", { tabindex: "0", role: "region", "aria-label": `${title}, as a table` });
  const rows = () => days.map((day, place) => [day, place]).reverse().filter(([, place]) => series.some((one) => one.values[place]));
  const drawn = () => h("table", {},
    h("caption.unseen", {}, title),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, step === "Day" ? step : `${step} from`), series.map((one) => h("th.number", { scope: "col" }, one.name)))),
    h("tbody", {}, rows().map(([day, place]) => h("tr", {}, h("th", { scope: "row" }, dayName(day)),
      series.map((one) => h("td.number", {}, one.values[place] === null || one.values[place] === undefined ? "–" : write(one.values[place])))))));
  // Only when it is wanted: a year has many rows.
  return h("details.plot-table", { on: { toggle: (event) => event.target.open && fill(box, drawn(), h("p.quiet.small", {}, "What has nothing in it is left out.")) } },
    h("summary", {}, "As a table"), box);
}
