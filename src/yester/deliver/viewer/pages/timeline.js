// Everything as it happened, the newest first; what happens now comes in at the top.

import { get } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { list } from "/core/list.js";
import { command, emptyOf, notify, rowOf } from "/core/parts.js";
import { go } from "/core/router.js";
import { count, dayOf } from "/core/words.js";

export const title = () => "Timeline";

const SHOWN = [["", "What was found out"], ["all", "Everything recorded"]];
const DISTILLED = ["observation", "summary", "memory", "prompt"];

export async function show({ query, signal, listen, again }) {
  const facets = await get("/api/facets", {}, signal);
  const kinds = query.show === "all" ? Object.keys(facets.kinds) : DISTILLED;
  const until = String(Date.now());
  const wanted = { project: query.project ?? "", kinds };
  const here = h("span.quiet", { "aria-live": "off" });
  const total = query.project ? null : kinds.reduce((sum, kind) => sum + (facets.kinds[kind] ?? 0), 0);
  const rows = list({
    label: "Timeline", signal, total, draw: (row) => rowOf(row, { clock: true }),
    fetch: async (offset, limit) => {
      const found = await get("/api/items", { ...wanted, dateEnd: until, offset, limit }, signal);
      return { rows: found.results, more: found.more };
    },
    seen: (row, place, size) => fill(here, `${dayOf(row.created_at_epoch)} · ${count(place + 1)} of ${count(size)}`),
    empty: () => emptyOf("Nothing is here yet",
      ["Past sessions come in with ", command("yester index"), ", what is worth knowing about them with ", command("yester distil --backfill"), "."],
      ["From then on everything comes by itself, once ", command("yester install"), " has told your agent about yester."]),
  });
  rows.node.addEventListener("failed", (event) => notify(event.detail));
  listen((event, data) => {
    if (event === "gap") return again();
    if (event !== "item" || !kinds.includes(data.kind)) return;
    if (!query.project || data.project === query.project) rows.add(data);
  });
  const change = (name) => (event) => go("/", { ...query, [name]: event.target.value });
  return h("div.view.tall", {},
    h("div.tools", {}, h("h1", {}, "Timeline"), here,
      choice("Show", SHOWN, query.show ?? "", change("show")),
      choice("Project", [["", "All projects"], ...Object.keys(facets.projects).map((name) => [name, name])], query.project ?? "", change("project"))),
    rows.node);
}

const choice = (label, options, value, changed) =>
  h("select", { "aria-label": label, on: { change: changed } },
    options.map(([is, name]) => h("option", { value: is, selected: is === value }, name)));
