// A year of days: the more was asked on one, the darker it is. Each leads to its day.

import { fill, h, svg } from "/core/dom.js";
import { dayOf, many } from "/core/format.js";

const SIZE = 13, GAP = 3, STEP = SIZE + GAP, TOP = 18, LEFT = 30, WEEKS = 53;
const month = new Intl.DateTimeFormat("en", { month: "short", timeZone: "UTC" });
const DAY = 86400000, NAMES = ["Mon", "", "Wed", "", "Fri", "", ""];

/** `days` is `[{day: "2026-03-01", turns}, …]`, the newest first; `address(day)` leads to one. */
export function heatMap(days, today, address) {
  const counts = new Map(days.map((one) => [one.day, one.turns])), box = h("div.heat");
  const newest = [days[0]?.day ?? today, today].sort().at(-1), oldest = days.at(-1)?.day ?? today;
  const draw = (end) => {
    const from = mondayOf(parse(end) - (WEEKS - 1) * 7 * DAY);
    fill(box, head(from, end), h("div.heat-scroll", { tabindex: "0", role: "group", "aria-label": "Turns on each day" }, picture(from, end)));
    const scroll = box.querySelector(".heat-scroll");
    requestAnimationFrame(() => (scroll.scrollLeft = scroll.scrollWidth));
  };
  const level = levelsOf([...counts.values()]);

  function head(from, end) {
    const shown = days.filter((one) => parse(one.day) >= from && one.day <= end), all = shown.reduce((sum, one) => sum + one.turns, 0);
    const move = (years, label, name) => {
      const to = shift(end, years), beyond = years < 0 ? parse(oldest) >= from : end >= newest;
      return h("button.small", { type: "button", "aria-label": label, disabled: beyond, on: { click: () => draw(to > newest ? newest : to) } }, name);
    };
    return h("div.heat-head", {}, h("span", {}, h("strong", {}, many(all, "turn")), ` on ${many(shown.length, "day")}, ${dayOf(from + DAY / 2)} to ${dayOf(parse(end) + DAY / 2)}`),
      h("span.gap"), legend(), parse(oldest) < from || end < newest ? [move(-1, "A year earlier", "‹ earlier"), move(1, "A year later", "later ›")] : null);
  }

  function picture(from, end) {
    const cells = [], labels = [];
    let last = -1;
    for (let at = from; at <= parse(end); at += DAY) {
      const date = new Date(at), name = date.toISOString().slice(0, 10), place = (at - from) / DAY, week = Math.floor(place / 7), turns = counts.get(name) ?? 0;
      if (date.getUTCDate() <= 7 && week !== last && place % 7 === 0) {
        labels.push(svg("text", { x: LEFT + week * STEP, y: 11 }, month.format(date)));
        last = week;
      }
      const cell = svg(`rect.heat-${level(turns)}`, { x: LEFT + week * STEP, y: TOP + (place % 7) * STEP, width: SIZE, height: SIZE, rx: 3 }, svg("title", {}, `${many(turns, "turn")}, ${dayOf(at + DAY / 2)}`));
      cells.push(turns ? svg("a", { href: address(name), "aria-label": `${dayOf(at + DAY / 2)}: ${many(turns, "turn")}` }, cell) : cell);
    }
    const width = LEFT + WEEKS * STEP, height = TOP + 7 * STEP;
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, style: { "min-width": `${width}px` }, role: "group", "aria-label": "A year of days" },
      labels, NAMES.map((name, place) => name && svg("text", { x: 0, y: TOP + place * STEP + 10 }, name)), cells);
  }

  const legend = () => h("div.heat-legend.quiet.small", { "aria-hidden": "true" }, "fewer ", [0, 1, 2, 3, 4].map((one) => h(`i.heat-${one}`)), " more");

  draw(newest);
  return box;
}

const parse = (day) => Date.parse(`${day}T00:00:00Z`);
const mondayOf = (at) => at - ((new Date(at).getUTCDay() + 6) % 7) * DAY;
const shift = (day, years) => new Date(parse(day) + years * 52 * 7 * DAY).toISOString().slice(0, 10);

/** Four depths by quarters of the days there are, so that one busy day does not pale the others. */
function levelsOf(numbers) {
  const sorted = numbers.sort((a, b) => a - b), at = (share) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  const bounds = [at(0.4), at(0.7), at(0.9)];
  return (turns) => (turns ? 1 + bounds.filter((bound) => turns > bound).length : 0);
}
