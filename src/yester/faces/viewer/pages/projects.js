// Projects: what there is of each, what it is called, and making two that are one into one.

import { get, patch, post } from "/core/api.js";
import { h } from "/core/dom.js";
import { count, many, manyOf, when } from "/core/format.js";
import { acting, asked, command, emptyOf, notify } from "/core/parts.js";
import { go, to } from "/core/router.js";

export const title = () => "Projects";

const ORDERS = {
  last: ["Last used first", (a, b) => b.last - a.last],
  items: ["Most items first", (a, b) => b.items - a.items],
  name: ["By name", (a, b) => a.name.localeCompare(b.name)],
};
const PLACES = [["/timeline", "Timeline"], ["/search", "Search"], ["/sessions", "Sessions"], ["/memories", "Memories"]];

export async function show({ query, signal, again }) {
  const { projects } = await get("/api/projects", {}, signal);
  const sort = query.sort in ORDERS ? query.sort : "last";
  return h("div.view.projects", {},
    h("div.tools", {}, h("h1", {}, "Projects"), h("span.quiet", {}, many(projects.length, "project")),
      projects.length > 1 && h("select", { "aria-label": "Order", on: { change: (event) => go("/projects", { ...query, sort: event.target.value }) } },
        Object.entries(ORDERS).map(([is, [name]]) => h("option", { value: is, selected: is === sort }, name)))),
    projects.length
      ? table([...projects].sort(ORDERS[sort][1]), again)
      : emptyOf("No project is known yet", ["A project is a repository, or a folder that an agent worked in. They come with the first sessions: ", command("yester index"), "."]));
}

/** A path may go on in the next line behind a slash, not within a name. */
const broken = (path) => path.split(/(?<=[/:])/).map((part) => [part, h("wbr")]);

// Roles are said, since a table that is drawn as cards on a phone is none to a screen reader.
const cell = (name, label, ...children) => h(name, { role: "cell", "data-label": label }, children);

function table(projects, again) {
  return h("table.cards", { role: "table", "aria-label": "Projects" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
      ["Project", "Items", "Sessions", "Last", "Look at", "Change"].map((name) => h("th", { role: "columnheader", scope: "col" }, name)))),
    h("tbody", { role: "rowgroup" }, projects.map((one) => h("tr", { role: "row" },
      h("th", { role: "rowheader", scope: "row" }, h("div.name", {}, broken(one.name.trim() || "(no name)")), h("div.key", { title: one.root || one.key }, broken(one.key)),
        one.parent && h("div.key", {}, "part of ", one.parent), one.private && h("span.chip", {}, "private")),
      cell("td", "Items", count(one.items), h("div.kinds", {}, Object.entries(one.kinds).sort((a, b) => b[1] - a[1]).map(([kind, number]) => manyOf(number, kind)).join(", "))),
      cell("td", "Sessions", count(one.sessions)),
      cell("td", "Last", when(one.last)),
      cell("td", "Look at", h("span.places", {}, PLACES.map(([path, name]) => h("a", { href: to(path, { project: one.name }), "aria-label": `${name} of ${one.name}` }, name)))),
      cell("td", "Change", h("span.places", {},
        h("button.small", { "aria-label": `${one.private ? "Show" : "Keep"} ${one.name} ${one.private ? "elsewhere again" : "private"}`,
          on: { click: acting(async () => { await post("/api/projects/private", { key: one.key, private: !one.private }); again(); }) } }, one.private ? "Show elsewhere" : "Keep private"),
        h("button.small", { "aria-label": `Rename ${one.name}`, on: { click: acting(() => rename(one, again)) } }, "Rename"),
        projects.length > 1 && h("button.small", { "aria-label": `Merge ${one.name}`, on: { click: acting(() => merge(one, projects, again)) } }, "Merge")))))));
}

/** Asks until it is right or given up; what was wrong stands beside the field. */
async function rename(project, again, name = project.name, wrong = "") {
  const given = await asked(`Rename ${project.name}`, [
    h("label", {}, "Name", h("input", { name: "name", value: name, required: true, maxlength: 80, autocomplete: "off", "aria-invalid": wrong ? "true" : null })),
    wrong && h("p.wrong", { role: "alert" }, wrong),
    h("p.quiet.small", {}, "It is called so everywhere from now on, and so is what is captured there later: the name is written to config.toml."),
  ], { does: "Rename" });
  if (!given) return;
  try {
    await patch("/api/projects", { key: project.key, name: given.name.trim() });
  } catch (error) {
    if (error.status !== 400 && error.status !== 409) throw error;
    return rename(project, again, given.name, [error.message, error.fix].filter(Boolean).join("; "));
  }
  notify(`${project.name} is called ${given.name.trim()} now.`);
  again();
}

/** Nothing moves before it was said what would. */
async function merge(project, projects, again) {
  const others = projects.filter((one) => one.key !== project.key);
  const given = await asked(`Merge ${project.name} into another project`, [
    h("label", {}, "Into", h("select", { name: "into" }, others.map((one) => h("option", { value: one.key }, `${one.name} (${one.key})`)))),
    h("p.quiet.small", {}, "For one project that is known by two keys, as after a move. The next step says what would move; nothing has changed until you say yes there."),
  ], { does: "See what would move" });
  if (!given) return;
  const sent = { from: project.key, into: given.into }, into = others.find((one) => one.key === given.into);
  const would = await post("/api/projects/merge", { ...sent, dry_run: true });
  const sure = await asked(`Merge ${project.name} into ${into.name}?`, [
    h("dl.facts", {}, [["Items", would.items], ["Sessions", would.sessions], ["Memories", would.memories]].map(([name, number]) => [h("dt", {}, name), h("dd", {}, count(number))])),
    h("p", {}, would.message), h("p.quiet.small", {}, "There is no way back: a merged project cannot be told apart again."),
  ], { does: "Merge", danger: true });
  if (!sure) return;
  const done = await post("/api/projects/merge", { ...sent, dry_run: false });
  notify(done.message);
  again();
}
