// Where there is nothing to show: how to ask, and what to ask less strictly.

import { get } from "/core/api.js";
import { h } from "/core/dom.js";
import { each } from "/core/facets.js";
import { count } from "/core/format.js";
import { to } from "/core/router.js";

const WAYS = [
  ["redis cache deploy", "any of the words, the best first"],
  ['"rate limit"', "the words side by side"],
  ["redis AND deploy NOT staging", "both, and without a word"],
  ["(redis OR memcached) AND ttl", "groups"],
  ["migrat*", "words that begin so"],
  ["NEAR(cache deploy, 5)", "within so many words of each other"],
  ["since:1w kind:prompt", "filters: project, kind, type, concept, file, session, agent, tool, since, until"],
];

export function nothingAsked(facets) {
  const all = Object.values(facets.kinds).reduce((sum, one) => sum + one, 0);
  const [[busiest] = []] = Object.entries(facets.projects).sort(([, one], [, other]) => other - one);
  return h("section.notice", {},
    h("h2", {}, "Ask as you would ask a colleague"),
    h("p", {}, `Write words or a whole question into the field above (press `, h("kbd", {}, "/"), `). ${count(all)} items are searched: what was said, what was found out and decided, what you keep.`),
    h("dl.ways", {}, WAYS.map(([words, does]) => [h("dt", {}, h("a", { href: to("/search", { query: words }) }, h("code", {}, words))), h("dd", {}, does)])),
    h("p", {}, "Operators are written in capitals and belong to short questions; in anything longer every word is a plain word. ",
      busiest && ["Or begin with a filter, as with ", h("a", { href: to("/search", { project: busiest }) }, `everything of ${busiest}`), "."]));
}

/** What was asked finds nothing. Each thing it could do without is tried, so that what is offered works. */
export async function nothingFound(asked, filters, place, signal) {
  const tries = each(filters).map(({ label, value, less }) => ({ name: [`without ${label}: `, h("strong", {}, value)], href: place(less), with: { ...asked, ...blank(filters), ...less } }));
  if (asked.type) tries.push({ name: "in everything", href: place({ ...filters, what: "" }), with: { ...asked, type: "" } });
  const plain = asked.query.replace(/\b(AND|OR|NOT|NEAR)\b|[()"*]/g, " ").replace(/\s+/g, " ").trim();
  if (plain && plain !== asked.query.trim()) tries.push({ name: ["as plain words: ", h("strong", {}, plain)], href: to("/search", { ...filters, query: plain }), with: { ...asked, query: plain } });
  if (asked.query && tries.length) tries.push({ name: "with the words alone", href: to("/search", { query: asked.query }), with: { query: asked.query } });
  if (asked.query && !asked.near) tries.push({ name: "that is near in meaning, without these words", href: place({ ...filters, near: true }), with: { ...asked, near: true } });
  const worked = (await Promise.all(tries.map(async (one) => {
    const found = await get("/api/search", { ...one.with, limit: 1 }, signal).catch((error) => {
      if (error.name === "AbortError") throw error;
      return { count: 0 }; // a filter of its own may be what cannot be looked for
    });
    return found.count ? one : null;
  }))).filter(Boolean);
  return h("section.notice", {},
    h("h2", {}, each(filters).length || asked.type ? "Nothing fits all of that" : "Nothing was found"),
    worked.length > 0 && [h("p", {}, "There is something"), h("ul", {}, worked.map((one) => h("li", {}, h("a", { href: one.href }, one.name))))],
    !worked.length && h("p", {}, tries.length > 1 && "Nor is there anything with less of it. ", "Try other words for the same thing, the name of a file, or a part of a word with a star: ", h("code", {}, "migrat*"), "."),
    h("p", {}, h("a", { href: to("/search") }, "How to ask")));
}

const blank = (filters) => Object.fromEntries(Object.keys(filters).map((name) => [name, ""]));
