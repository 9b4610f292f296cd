// Things that stand in several views.

import { Problem } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { clockOf, marked, plain, tokens, when } from "/core/format.js";
import { to } from "/core/router.js";

/** Where an item of a row is looked at. */
export function linkOf(row) {
  if (row.kind === "session") return to(`/session/S${row.session_db_id ?? row.id}`);
  return to(row.kind === "memory" ? `/memory/${row.id}` : `/item/${row.id}`);
}

/** Every file name leads to its page; `name` is how it stands here. */
export const fileLink = (project, path, name = path) => h("a.file", { href: to("/file", { project, path }) }, name);

export const nameOf = (row) => plain(row.type || row.kind);

/** A row of an index. */
export function rowOf(row, { query = "", clock = false } = {}) {
  const under = row.subtitle || row.snippet || (row.concepts ?? []).join(", ");
  return h("div.row", {},
    h("span.icon", { title: nameOf(row), role: "img", "aria-label": nameOf(row) }, row.icon),
    h("div.said", {},
      h("a.title", { href: linkOf(row) }, marked(row.title || "(no words)", query)),
      h("div.under", {}, h("span", {}, nameOf(row)), " · ", row.project || "no project", under && [" · ", marked(under, query)])),
    h("div.side", {}, h("div", {}, clock ? clockOf(row.created_at_epoch) : when(row.created_at_epoch)), h("div", {}, tokens(row.tokens))));
}

/** A place with nothing in it says what would be there and how to get it. */
export const emptyOf = (title, ...says) => h("section.notice", {}, h("h2", {}, title), says.map((say) => h("p", {}, say)));

export const command = (text) => h("code", {}, text);

export const chips = (words, link) =>
  words?.length ? words.map((word) => [h(link ? "a.chip" : "span.chip", link ? { href: link(word) } : {}, word), " "]) : null;

const filled = ([, value]) => !["", null, undefined, false, 0].includes(value);

/** `[["Agent", "claude-code"], …]`; what is empty is left out. */
export const facts = (rows) =>
  h("dl.facts", {}, rows.filter(filled).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

/** The same in a line: a name and its value stay together wherever the line breaks. */
export const pairs = (rows) =>
  h("dl.pairs", {}, rows.filter(filled).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));

export const bar = (name, share, value, title = "") =>
  h("div.bar", { title }, h("span", {}, name),
    h("div.track", {}, h(share < 0 ? "i.less" : "i", { style: { width: `${Math.min(100, Math.abs(share) * 100)}%` } })),
    h("output", {}, value));

/** One line at the corner, gone after a while; a problem says what to do. */
export function notify(what) {
  const bad = what instanceof Error;
  if (bad && !(what instanceof Problem)) console.error(what);
  const said = h(bad ? "div.notice.bad" : "div.notice", {}, bad ? what.message : what, bad && what.fix && [h("br"), what.fix], " ",
    h("button.small", { on: { click: () => said.remove() }, "aria-label": "Dismiss" }, "×"));
  document.getElementById("notices").append(said);
  setTimeout(() => said.remove(), bad ? 12000 : 5000);
}

/** Runs it with the button asleep; what goes wrong is said. */
export const acting = (does) => async (event) => {
  const button = event.currentTarget ?? event.submitter;
  if (button) button.disabled = true;
  try {
    await does(event);
  } catch (error) {
    notify(error);
  } finally {
    if (button) button.disabled = false;
  }
};

/** Asks in a dialog: `fields` is an element (or null). Resolves to the form's values, or null. */
export function asked(title, fields, { does = "OK", danger = false, not = "Cancel" } = {}) {
  return new Promise((done) => {
    const form = h("form", { method: "dialog" },
      h("h2", {}, title), h("div.fields", {}, fields),
      h("div.tools", {}, h(danger ? "button.danger" : "button.main", { value: "yes" }, does), h("button", { value: "no", formnovalidate: true, autofocus: danger }, not)));
    const box = h("dialog", { "aria-label": title }, form);
    box.addEventListener("close", () => {
      done(box.returnValue === "yes" ? Object.fromEntries(new FormData(form)) : null);
      box.remove();
    });
    document.body.append(box);
    box.showModal();
  });
}

/** A question belongs to the view it was asked in: where that goes, the answer is no. */
export function dismiss() {
  for (const box of document.querySelectorAll("dialog[open]")) box.close("no");
}

export { fill };
