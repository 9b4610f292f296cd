// Searches that were saved in this browser: their addresses, the last one first.

import { h } from "/core/dom.js";

const PLACE = "yester.searches", MOST = 30;

export function savedSearches() {
  try {
    return JSON.parse(localStorage.getItem(PLACE) ?? "[]").filter(({ name, href }) => name && /^#\/search\?/.test(href));
  } catch {
    return [];
  }
}

export const isSaved = (href) => savedSearches().some((one) => one.href === href);

/** Saves it, or takes it off where it is saved. */
export function toggleSaved(name, href) {
  const others = savedSearches().filter((one) => one.href !== href);
  localStorage.setItem(PLACE, JSON.stringify(isSaved(href) ? others : [{ name, href }, ...others].slice(0, MOST)));
}

/** A list of them; `changed()` is called when one was taken off. */
export function savedList(changed) {
  const all = savedSearches();
  return all.length > 0 && h("section.saved", {}, h("h2", {}, "Saved searches"),
    h("ul", {}, all.map(({ name, href }) => h("li", {}, h("a.facet", { href }, h("span.name", {}, name)),
      h("button.small", { "aria-label": `Remove the saved search ${name}`, on: { click: () => (toggleSaved(name, href), changed()) } }, "×")))));
}
