// Hits over time: a bar for so many days each, which leads to what was found in them.

import { h } from "/core/dom.js";
import { many } from "/core/format.js";

const MOST = 56; // bars
const DAY = 86_400_000;
const STEPS = [1, 7, 14, 30, 91, 182, 365, 1826]; // days a bar
const date = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const iso = (time) => new Date(time).toISOString().slice(0, 10);

/** `days` is `{"2026-02-01": 4, …}` in order; `place(from, until)` is the address of what is in between. */
export function histogram(days, place) {
  const known = Object.entries(days).map(([day, number]) => [Date.parse(day), number]);
  if (known.length < 2) return null;
  const first = known[0][0], last = known.at(-1)[0], all = (last - first) / DAY + 1;
  const step = STEPS.find((one) => all / one <= MOST) ?? Math.ceil(all / MOST), bins = Array.from({ length: Math.ceil(all / step) }, () => 0);
  for (const [day, number] of known) bins[Math.floor((day - first) / DAY / step)] += number;
  const top = Math.max(...bins);
  const bars = bins.map((number, at) => {
    const from = first + at * step * DAY, until = Math.min(last, from + (step - 1) * DAY);
    const said = `${date.format(from)}${until > from ? ` to ${date.format(until)}` : ""}: ${many(number, "hit")}`;
    if (!number) return h("span.bin", { title: said });
    return h("a.bin", { href: place(iso(from), iso(until)), title: said, "aria-label": said, tabindex: "-1", style: { "--share": String(Math.max(0.06, number / top)) } });
  });
  const links = bars.filter((one) => one.matches("a"));
  links[0].tabIndex = 0;
  // One stop for the Tab key; the arrows go from bar to bar.
  const move = (event) => {
    const now = links.indexOf(document.activeElement);
    const next = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: links.length - 1 }[event.key];
    if (next === undefined || !links[next]) return;
    event.preventDefault();
    links[now].tabIndex = -1;
    links[next].tabIndex = 0;
    links[next].focus();
  };
  return h("figure.histogram", { role: "group", "aria-label": "Hits over time; the arrow keys go from bar to bar", on: { keydown: move } },
    h("div.bins", {}, bars), h("figcaption", {}, h("span", {}, date.format(first)), h("span", {}, date.format(last))));
}
