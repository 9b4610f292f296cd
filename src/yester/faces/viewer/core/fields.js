// Fields that stand above a list and narrow it; what they say is in the address.

import { h } from "/core/dom.js";

/** `options` is `[[value, name], …]`. */
export const choice = (label, options, value, changed) =>
  h("select", { "aria-label": label, on: { change: changed } },
    options.map(([is, name]) => h("option", { value: is, selected: is === value }, name)));

/** The options of a facet: `{name: how many}`, all of them first. */
export const among = (facet, all) => [["", all], ...Object.keys(facet ?? {}).map((name) => [name, name])];

export const dated = (label, value, changed) =>
  h("label.dated", {}, h("span", {}, label), h("input", { type: "date", value: value ?? "", on: { change: changed } }));
