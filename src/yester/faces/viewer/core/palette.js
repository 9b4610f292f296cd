// Ctrl-K: everything one can go to or do, found by a few letters. Views, actions and projects are
// there at once; sessions and memories are looked for while one types.

import { get } from "/core/api.js";
import { copy } from "/core/clipboard.js";
import { fill, h } from "/core/dom.js";
import { dayOf, plain } from "/core/format.js";
import { here, to } from "/core/router.js";
import { savedSearches } from "/core/saved_searches.js";
import { SECTIONS } from "/routes.js";

const PAUSE = 160, MOST = 40, OF_A_KIND = 8; // ms without a letter until sessions and memories are asked for; rows; of one kind

/** `actions` is `[{name, does, keys}]`: what can be done wherever one is. */
export function palette(actions) {
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (document.querySelector("dialog.palette")) document.querySelector("dialog.palette").close();
    else if (!document.querySelector("dialog[open]")) open(actions);
  });
  return () => open(actions);
}

function open(actions) {
  const asking = new AbortController();
  const list = h("ul", { role: "listbox", id: "palette-list", "aria-label": "What fits" });
  const field = h("input", {
    type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", "aria-label": "Go to or do",
    placeholder: "A view, a project, a session, a memory, something to do …", autocomplete: "off", spellcheck: "false", autofocus: true,
  });
  const box = h("dialog.palette", { "aria-label": "Go to or do" }, field, list,
    h("p.quiet.small", { "aria-hidden": "true" }, h("kbd", {}, "↑"), h("kbd", {}, "↓"), " choose ", h("kbd", {}, "Enter"), " go ", h("kbd", {}, "Esc"), " close"));
  let fixed = [...viewRows(), ...actionRows(actions), ...savedRows()], looked = [], rows = [], at = 0, late = 0;

  const add = (more) => (fixed = [...fixed, ...more], draw());
  get("/api/projects", {}, asking.signal).then(({ projects }) => add(projects.flatMap(projectRows)), () => {});
  look("");

  /** What is in the store: the newest where nothing is typed. */
  async function look(words) {
    const signal = asking.signal;
    const [sessions, memories] = await Promise.all([
      words ? get("/api/search/sessions", { query: words, limit: OF_A_KIND }, signal).then((one) => one.results.map(foundSession)) : get("/api/sessions", { limit: OF_A_KIND }, signal).then((one) => one.sessions.map(sessionRow)),
      get("/api/memories", { query: words, limit: OF_A_KIND }, signal).then((one) => one.results.map(memoryRow)),
    ].map((one) => one.catch(() => [])));
    if (words !== field.value.trim() || signal.aborted) return;
    looked = [...sessions, ...memories];
    draw();
  }

  function draw() {
    const words = field.value.trim(), parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = fixed.filter((row) => parts.every((part) => `${row.kind} ${row.name}`.toLowerCase().includes(part)))
      .sort((one, other) => rank(other, words) - rank(one, words));
    const search = words ? [{ kind: "Search", name: `everything for “${words}”`, href: to("/search", { query: words }) }] : [];
    const kinds = {};
    rows = [...fits, ...looked].filter((row) => (kinds[row.kind] = (kinds[row.kind] ?? 0) + 1) <= (parts.length || row.kind !== "Project" ? MOST : 4)).slice(0, MOST - 1);
    rows.push(...search);
    at = Math.max(0, Math.min(at, rows.length - 1));
    fill(list, rows.map((row, place) => h("li", { role: "option", id: `palette-${place}`, "aria-selected": String(place === at), on: { click: () => run(place), pointermove: () => choose(place) } },
      h("span.kind", {}, row.kind), h("span.name", {}, row.name), row.note && h("span.note", {}, row.note))));
    field.setAttribute("aria-activedescendant", rows.length ? `palette-${at}` : "");
  }

  function choose(place) {
    if (place === at) return;
    list.children[at]?.setAttribute("aria-selected", "false");
    at = place;
    list.children[at]?.setAttribute("aria-selected", "true");
    list.children[at]?.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", `palette-${at}`);
  }

  function run(place) {
    const row = rows[place];
    box.close();
    if (row?.href) location.hash = row.href;
    else row?.does();
  }

  field.addEventListener("input", () => {
    at = 0;
    clearTimeout(late);
    late = setTimeout(look, PAUSE, field.value.trim());
    draw();
  });
  field.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (by) choose(Math.max(0, Math.min(rows.length - 1, at + by)));
    else if (event.key === "Enter" && !event.isComposing) run(at);
    else return;
    event.preventDefault();
  });
  box.addEventListener("click", (event) => event.target === box && box.close());
  box.addEventListener("close", () => (asking.abort(), clearTimeout(late), box.remove()));
  document.body.append(box);
  box.showModal();
  draw();
}

/** What begins with the words comes first. */
const rank = (row, words) => (words && row.name.toLowerCase().startsWith(words.toLowerCase()) ? 1 : 0);

const viewRows = () => [...SECTIONS, ["/review", "Review"]].map(([path, name]) => ({ kind: "View", name, href: to(path) }));
const actionRows = (actions) => [...actions, { name: "Copy the link to this view", keys: "c", does: copyLink }].map(({ name, keys, does }) => ({ kind: "Do", name, note: keys, does }));
const savedRows = () => savedSearches().map(({ name, href }) => ({ kind: "Saved", name, href }));
const projectRows = ({ name }) => [{ kind: "Project", name, note: "timeline", href: to("/timeline", { project: name }) }, { kind: "Project", name: `${name}: search`, href: to("/search", { project: name }) }];
const sessionRow = (one) => ({ kind: "Session", name: one.title || one.session, note: [one.project, dayOf(one.ended)].filter(Boolean).join(" · "), href: to(`/session/S${one.db_id}`) });
const foundSession = (row) => ({ kind: "Session", name: row.title === "(untitled)" ? row.subtitle || row.session : row.title, note: [row.project, dayOf(row.created_at_epoch)].filter(Boolean).join(" · "), href: to(`/session/S${row.session_db_id}`) });
const memoryRow = (one) => ({ kind: "Memory", name: one.title, note: `${plain(one.type)} · #${one.id}`, href: to(`/memory/${one.id}`) });

/** The row one stands at, else the view. */
export function copyLink() {
  const row = document.activeElement?.closest("a[href^='#/']");
  copy(new URL(row?.getAttribute("href") ?? to(here().path, here().query), location.href).href);
}
