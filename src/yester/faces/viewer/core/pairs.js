// Facts in a line: a name and its value stay together wherever the line breaks.

import { h } from "/core/dom.js";

/** `[["Agent", "claude-code"], …]`; what is empty is left out. */
export const pairs = (rows) =>
  h("dl.pairs", {}, rows.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false)
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
