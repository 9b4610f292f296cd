// What narrows a search: its names in the address (the API's own), chips to take it off, facets to put it on.

import { h } from "/core/dom.js";
import { count, many } from "/core/format.js";

const FIRST = 6; // of a facet that are shown without asking

// `facet`: where /api/facets has its values; `several`: a list; `also`: other ways to write it.
export const FILTERS = [
  { name: "project", label: "Project", facet: "projects" },
  { name: "kinds", label: "Kind", facet: "kinds", several: true, also: "kind" },
  { name: "obs_type", label: "Type", facet: "types", several: true, also: "type" },
  { name: "concepts", label: "Concept", facet: "concepts", several: true, also: "concept" },
  { name: "agent", label: "Agent", facet: "agents" },
  { name: "files", label: "File", several: true, also: "file" },
  { name: "session", label: "Session" },
  { name: "tool", label: "Tool" },
  { name: "dateStart", label: "Since" },
  { name: "dateEnd", label: "Until" },
];

const SPANS = [["", "Any time"], ["today", "Today"], ["7d", "7 days"], ["30d", "30 days"], ["365d", "A year"]];

/** The address in the API's names, without what is unknown. */
export function read(query) {
  const found = {};
  for (const { name, also } of FILTERS) {
    const value = query[name] ?? (also && query[also]);
    if (value) found[name] = value;
  }
  return found;
}

const valuesOf = (filter, filters) => (filter.several ? (filters[filter.name] ?? "").split(",").filter(Boolean) : [filters[filter.name]].filter(Boolean));

function without(filter, value, filters) {
  return { ...filters, [filter.name]: valuesOf(filter, filters).filter((one) => one !== value).join(",") };
}

function toggled(filter, value, filters) {
  const has = valuesOf(filter, filters);
  if (has.includes(value)) return without(filter, value, filters);
  return { ...filters, [filter.name]: filter.several ? [...has, value].join(",") : value };
}

/** Every filter that is set, one by one: `[{label, value, less}]`, `less` being the filters without it. */
export const each = (filters) =>
  FILTERS.flatMap((filter) => valuesOf(filter, filters).map((value) => ({ label: filter.label, value, less: without(filter, value, filters) })));

/** A chip each, which takes it off. */
export function chipsOf(filters, place) {
  const set = each(filters);
  if (!set.length) return null;
  return h("ul.set", { "aria-label": "Filters that are set" },
    set.map(({ label, value, less }) => h("li", {},
      h("a.chip.on", { href: place(less), "aria-label": `Remove ${label}: ${value}` }, `${label}: ${value.replace(/^(\d+)d$/, "$1 days ago")} `, h("span", { "aria-hidden": "true" }, "×")))),
    set.length > 1 && h("li", {}, h("a.chip", { href: place({}) }, "Remove all")));
}

/** Everything there is to choose; `place(filters)` is the address with these. */
export function facetsOf(facets, filters, place) {
  const set = each(filters).length;
  return h("details.filters", { open: matchMedia("(min-width: 50.01rem)").matches },
    h("summary", {}, "Filters", set ? ` (${set})` : ""),
    h("p.quiet.small", {}, "Numbers are of what is found here; beside agents, of sessions."),
    FILTERS.filter((filter) => filter.facet).map((filter) => facetOf(filter, facets[filter.facet], filters, place)),
    times(filters, place), fileField(filters, place));
}

function facetOf(filter, numbers, filters, place) {
  const on = valuesOf(filter, filters);
  const all = Object.entries(numbers ?? {});
  if (all.length < 2 && !on.length) return null;
  // A table whose keys are numbers comes in their order, not in the one it was sent in.
  all.sort(([one, ones], [other, others]) => on.includes(other) - on.includes(one) || others - ones);
  const option = ([value, number]) => h("li", {},
    h("a.facet", { href: place(toggled(filter, value, filters)), "aria-current": on.includes(value) ? "true" : null },
      h("span.name", {}, value.replaceAll("_", " ")), h("span.number", {}, count(number))));
  return h("section", {}, h("h2", {}, filter.label),
    h("ul", {}, all.slice(0, FIRST).map(option)),
    all.length > FIRST && h("details", {}, h("summary", {}, many(all.length - FIRST, "more", "more")), h("ul", {}, all.slice(FIRST).map(option))));
}

function times(filters, place) {
  const { dateStart = "", dateEnd = "", ...rest } = filters;
  const day = (name, label, value) => h("label", {}, label, h("input", {
    type: "date", name, value: /^\d{4}-\d\d-\d\d$/.test(value) ? value : "",
    on: { change: (event) => (location.hash = place({ ...filters, [name]: event.target.value })) },
  }));
  return h("section", {}, h("h2", {}, "Time"),
    h("ul", {}, SPANS.map(([value, name]) => h("li", {},
      h("a.facet", { href: place({ ...rest, dateStart: value }), "aria-current": value === dateStart && !dateEnd ? "true" : null }, h("span.name", {}, name))))),
    h("div.days", {}, day("dateStart", "From", dateStart), day("dateEnd", "To", dateEnd)));
}

function fileField(filters, place) {
  return h("section", {}, h("h2", {}, "File"),
    h("form", { on: { submit: (event) => {
      event.preventDefault();
      const value = new FormData(event.target).get("file").trim();
      if (value) location.hash = place({ ...filters, files: [filters.files, value].filter(Boolean).join(",") });
    } } }, h("input", { name: "file", "aria-label": "A file, or the end of its path", placeholder: "end of a path", autocomplete: "off" })));
}
