// Words for a terminal or a file, and a button that copies them.

import { h } from "/core/dom.js";
import { notify } from "/core/parts.js";

export function copyable(text) {
  return h("span.copyable", {}, h("code", {}, text),
    h("button.small", { type: "button", "aria-label": `Copy: ${text}`, on: { click: () => copy(text) } }, "Copy"));
}

/** A small button that copies what `text()` gives; it is asked for when it is pressed. */
export const copyButton = (text, name = "Copy", short = "Copy") =>
  h("button.small.copy", { type: "button", "aria-label": name, title: name, on: { click: async () => copy(await text()) } }, short);

/** A block of text with a button in its corner that copies it. */
export const copied = (node, text, name = "Copy the text") => h("div.copied", {}, node, copyButton(typeof text === "string" ? () => text : text, name));

/** The number of an item, to be copied. */
export const idOf = (id) => h("span.id", {}, `#${id} `, copyButton(() => `#${id}`, `Copy #${id}`));

/** Sentences in which `words` between ticks are code. */
export const ticked = (text) => text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? h("code", {}, part) : part));

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    notify("Copied.");
  } catch {
    notify("The browser does not let this page copy; mark the words and copy them yourself.");
  }
}
