// Sessions by day, the one last worked in first.

import { get } from "/core/api.js";
import { fill, h } from "/core/dom.js";
import { among, choice, dated } from "/core/fields.js";
import { clockOf, dayOf, duration, many } from "/core/format.js";
import { list } from "/core/list.js";
import { command, emptyOf, notify } from "/core/parts.js";
import { go, to } from "/core/router.js";

export const title = () => "Sessions";

const FILTERS = ["project", "agent", "dateStart", "dateEnd"];

export async function show({ query, signal, listen, again }) {
  const facets = await get("/api/facets", {}, signal);
  const wanted = Object.fromEntries(FILTERS.map((name) => [name, query[name] ?? ""]));
  const filtered = FILTERS.some((name) => query[name]);
  const here = h("span.quiet", { "aria-live": "off" });
  const days = new Map(); // place → day, so that a row knows whether it is the first of its day
  const rows = list({
    label: "Sessions", signal,
    draw: rowOf,
    fetch: async (offset, limit) => {
      const found = await get("/api/sessions", { ...wanted, offset, limit }, signal);
      for (const [place, one] of found.sessions.entries()) {
        one.day = dayOf(one.ended || one.started);
        days.set(offset + place, one.day);
        one.first = days.get(offset + place - 1) !== one.day;
      }
      return { rows: found.sessions, more: found.more };
    },
    seen: (session) => fill(here, session.day),
    empty: () => (filtered ? nothing() : none()),
  });
  rows.node.addEventListener("failed", (event) => notify(event.detail));
  listen((event) => event === "gap" && again());
  const change = (name) => (event) => go("/sessions", { ...query, [name]: event.target.value });
  return h("div.view.tall", {},
    h("div.tools", {}, h("h1", {}, "Sessions"), here,
      choice("Project", among(facets.projects, "All projects"), query.project ?? "", change("project")),
      choice("Agent", among(facets.agents, "All agents"), query.agent ?? "", change("agent")),
      dated("from", query.dateStart, change("dateStart")), dated("to", query.dateEnd, change("dateEnd")),
      filtered && h("a", { href: to("/sessions") }, "Clear")),
    rows.node);
}

function rowOf(session) {
  const { day, first } = session, [, week, date] = /^(\w+), (.*), \d+$/.exec(day) ?? [, "", day];
  return h(first ? "div.row.session-row.first" : "div.row.session-row", {},
    h("div.day", first ? {} : { "aria-hidden": "true" }, first && [h("b", {}, date), h("span", {}, week)]),
    h("div.said", {},
      h("a.title", { href: to(`/session/S${session.db_id}`) }, session.title || "(untitled)"),
      h("div.under", {}, session.project || "no project", h("span.agent", {}, ` · ${session.agent}`), session.branch && ` · ${session.branch}`)),
    h("div.side", {},
      h("div", {}, `${clockOf(session.started)} · ${duration(session.ended - session.started)}`),
      h("div", {}, `${many(session.prompts, "prompt")} · ${many(session.items, "item")}`)));
}

const none = () => emptyOf("No session is here yet",
  ["Those your agents have had come in with ", command("yester index"), "."],
  ["New ones come by themselves, once ", command("yester install"), " has told your agent about yester."]);

const nothing = () => emptyOf("No session fits", ["Other filters may find some: ", h("a", { href: to("/sessions") }, "show all sessions"), "."]);
