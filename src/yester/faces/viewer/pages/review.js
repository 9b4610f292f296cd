// Memories that deserve a look, each with what can be done about it at once.

import { get } from "/core/api.js";
import { recheck } from "/core/changes.js";
import { h } from "/core/dom.js";
import { among, choice } from "/core/fields.js";
import { count, many, plain } from "/core/format.js";
import { act, actAll, confirm, placeOf } from "/core/memories.js";
import { acting, emptyOf } from "/core/parts.js";
import { go, to } from "/core/router.js";

export const title = () => "Review";

const sure = ["Confirm", (memory) => confirm(memory.id, () => ({ confidence: 1 }))];
const accept = ["Accept", (memory) => confirm(memory.id, () => ({ content: { status: "accepted" } }))];
const step = (name, label) => [label, (memory) => act(name, memory)];
const retire = step("retire", "Retire"), archive = step("archive", "Archive"), restore = step("restore", "Restore");
const keep = step("restore", "Keep"), drop = step("archive", "Drop");
// The check → what helps, the likeliest first.
const HELPS = { proposed: [keep, drop], "low confidence": [sure, retire], over: [archive, retire], undecided: [accept, retire], alike: [archive, retire], "soon gone": [restore] };

export async function show({ query, signal, listen, again }) {
  const [facets, { findings }] = await Promise.all([get("/api/facets", {}, signal), get("/api/review", { project: query.project ?? "" }, signal)]);
  listen((event, data) => (["gap", "memory"].includes(event) || (event === "item" && data.kind === "memory")) && again());
  recheck({ signal, listen }, async () => JSON.stringify((await get("/api/review", { project: query.project ?? "" }, signal)).findings) === JSON.stringify(findings) || again());
  const proposed = findings.filter((one) => one.check === "proposed").map((one) => one.memory);
  return h("div.view.review", {},
    h("div.tools", {}, h("h1", {}, "Review"), h("span.quiet", {}, findings.length ? `${many(findings.length, "memory", "memories")} to look at` : ""),
      choice("Project", among(facets.projects, "All projects"), query.project ?? "", (event) => go("/review", { ...query, project: event.target.value })),
      h("a", { href: to("/memories") }, "All memories"),
      proposed.length > 1 && [["restore", "Keep"], ["archive", "Drop"]].map(([name, label]) =>
        h("button", { on: { click: acting(async () => (await actAll(name, proposed)) !== null && again()) } }, `${label} all ${count(proposed.length)} proposed`))),
    findings.length ? h("ul.findings", {}, findings.map((one) => findingOf(one, again)))
      : emptyOf("Nothing needs a look",
        "Memories are listed here when they are rules that wait for your yes, of low confidence, past their date, proposed but never accepted, nearly the same as another, or soon to be deleted.",
        h("a", { href: to("/memories") }, "All active memories")));
}

function findingOf({ memory, check, text, fix }, again) {
  const done = (does) => acting(async () => (await does(memory)) && again());
  return h("li.card.finding", { "data-memory": memory.id },
    h("div.finding-head", {}, h("a", { href: to(`/memory/${memory.id}`) }, memory.title), h("span.chip.warn", {}, check)),
    h("p", {}, `#${memory.id} ${text}.`, h("span.quiet.small", {}, ` ${plain(memory.type)} · ${placeOf(memory)}`)),
    h("div.tools", {},
      (HELPS[check] ?? [retire]).map(([label, does], place) => h(place ? "button" : "button.main", { on: { click: done(does) } }, label)),
      h("a.button", { href: to(`/memory/${memory.id}`, { edit: "1" }) }, "Edit"),
      h("span.quiet.small", { title: "The same on the command line" }, h("code", {}, fix))));
}
