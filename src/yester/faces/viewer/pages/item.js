// Everything that is known of an item: what it says, where it is from, what it was made of and what
// came of it. Looking at it here is noted, once a visit.

import { get, post } from "/core/api.js";
import { idOf } from "/core/clipboard.js";
import { fill, h } from "/core/dom.js";
import { forgetting } from "/core/forget_dialog.js";
import { clockOf, count, dayOf, many, when } from "/core/format.js";
import { statusWord } from "/core/memories.js";
import { acting, chips, facts, fileLink, linkOf, nameOf, notify, rowOf } from "/core/parts.js";
import { to } from "/core/router.js";
import { stepping } from "/core/row_keys.js";
import { callOf, inline, long } from "/core/transcript.js";
import { lineOf, useOf } from "/core/usefulness.js";
import { wordOf } from "/core/values.js";

let named = "";
export const title = ({ path }) => named || `Item ${path.id}`;

const LINES = 20; // of the ledger that are shown at once
const OPENED = "yester.opened";

export async function show({ path, signal, listen }) {
  const id = Number(path.id) || path.id;
  const [known, shown, around] = await Promise.all([
    get(`/api/items/${encodeURIComponent(path.id)}`, {}, signal),
    part(get("/api/injections", { item: id, limit: LINES }, signal)),
    part(get("/api/timeline", { anchor: id, depth_before: 5, depth_after: 5 }, signal)),
  ]);
  const { item } = known;
  named = item.title || `Item ${item.id}`;
  const use = h("div", { "aria-live": "polite" });
  const draw = (is) => fill(use, useOf(is, say));
  const say = async (what, button = "") => {
    const { items: [now] } = await post("/api/feedback", { ids: [item.id], what });
    draw(now);
    if (button) (use.querySelector(`[data-what="${button}"]`) ?? use.querySelector("button")).focus();
  };
  draw(known.use);
  if (first(item.id)) say("opened").catch(notify);

  const ledger = h("ul.shown-lines");
  if (shown.injections) fill(ledger, shown.injections.map(lineOf));
  const there = new Set(shown.injections?.map((line) => line.id)); // what was asked for may be told as well
  listen((event, line) => {
    if (event !== "injection" || line.item !== item.id || there.has(line.id)) return;
    there.add(line.id);
    ledger.prepend(lineOf(line));
    none.hidden = true;
  });
  const none = h("p.quiet", { hidden: shown.injections?.length > 0 }, "Into no session yet. It is injected where it fits what is asked or touched, within the budget of a context.");

  return h("article.view.item-view", {}, head(item), h("div.two", {},
    h("div", {},
      said(item),
      rowsOf("What took whose place", known.chain, "The oldest first; the last one holds.", signal),
      rowsOf("Made from", known.sources, "The messages that say what stands above.", signal),
      rowsOf("What was made of it", known.made, "", signal),
      section("Injected", shown.problem ?? [none, ledger, shown.next_before > 0 && h("p", {}, h("a", { href: to("/shown", { item: item.id }) }, "All of them"))]),
      section("Around it", around.problem ?? near(around.timeline, item, signal))),
    h("aside", {}, about(item), h("h2", {}, "Use"), use, h("h2", {}, "Tokens"), economics(item), links(item), h("h2", {}, "Forget"), h("p", {}, forgetting({ ids: [item.id] })))));
}

/** What is not the item itself may fail by itself. */
const part = (asked) => asked.catch((error) => {
  if (error.name === "AbortError") throw error;
  return { problem: h("p.quiet", { role: "alert" }, error.message) };
});

/** Whether it is looked at for the first time in this tab; else each way back would count again. */
function first(id) {
  const seen = (sessionStorage.getItem(OPENED) ?? "").split(" ").filter(Boolean);
  if (seen.includes(String(id))) return false;
  sessionStorage.setItem(OPENED, [...seen, id].slice(-500).join(" "));
  return true;
}

function head(item) {
  const ended = item.status && item.status !== "active" && statusWord(item.status);
  return h("div.item-head", {},
    h("h1", {}, h("span.icon", { "aria-hidden": "true" }, item.icon), " ", item.title || "(no words)"),
    h("p.under", {}, nameOf(item), item.type && item.type !== item.kind && ` (${item.kind})`, " · ",
      item.project ? h("a", { href: to("/timeline", { project: item.project }) }, item.project) : "no project", " · ",
      when(item.created_at_epoch), " · ", idOf(item.id), " ",
      ended && h("span.chip.bad", {}, ended), " ", item.stale && h("span.chip.warn", {}, item.stale)),
    item.kind === "memory" && h("p", {}, h("a", { href: linkOf(item) }, "This is a memory: change it, retire it, see its history")));
}

function said(item) {
  const sections = Object.entries(item.sections ?? {}).filter(([, text]) => text), text = item.narrative ?? "";
  const facts = (item.facts ?? []).filter((fact) => !text.includes(fact)); // what stands in the text is said once
  return h("div.card.said-whole", {},
    item.subtitle && !text.includes(item.subtitle) && h("p.subtitle", {}, item.subtitle),
    item.narrative && (item.tool || item.role === "tool" ? callOf(item) : long(item.narrative)),
    facts.length > 0 && [h("h2", {}, "Facts"), h("ul.said-facts", {}, facts.map((fact) => h("li", {}, inline(fact))))],
    sections.map(([name, part]) => !item.narrative?.includes(part) && [h("h2", {}, wordOf(name)), long(part)]),
    !item.narrative && !item.subtitle && !item.facts?.length && !sections.length && h("p.quiet", {}, "It has no words beside its title."));
}

function about(item) {
  const session = item.session_db_id && h("a", { href: to(`/session/S${item.session_db_id}`, { at: item.id }) }, `S${item.session_db_id}`, item.prompt_number ? `, prompt ${item.prompt_number}` : "");
  return facts([
      ["Session", session], ["Agent", item.agent], ["By", item.actor], ["Role", item.role], ["Tool", item.tool],
      ["Happened", item.created_at_epoch ? `${dayOf(item.created_at_epoch)} ${clockOf(item.created_at_epoch)}` : "no date"],
      ["Changed", item.updated_at_epoch && item.updated_at_epoch !== item.created_at_epoch ? when(item.updated_at_epoch) : ""],
      ["Said by", ORIGINS[item.origin] ?? item.origin], ["Confidence", item.confidence && item.confidence < 1 ? `${Math.round(item.confidence * 100)} %` : ""],
      ["Instead of", item.supersedes ? h("a", { href: to(`/item/${item.supersedes}`) }, `#${item.supersedes}`) : ""],
      ["Source", item.source],
    ]);
}

function links(item) {
  const listed = (name, paths) => paths?.length > 0 && [h("h2", {}, name), h("ul.files", {}, paths.map((one) => h("li", {}, item.project ? fileLink(item.project, one) : h("a", { href: to("/search", { files: one }) }, one))))];
  const touched = new Set([...(item.files_read ?? []), ...(item.files_modified ?? [])]);
  return [
    item.concepts?.length > 0 && [h("h2", {}, "Concepts"), h("p", {}, chips(item.concepts, (word) => to("/search", { concepts: word })))],
    item.tags?.length > 0 && [h("h2", {}, "Tags"), h("p", {}, chips(item.tags, (word) => to("/search", { query: word })))],
    listed("Files changed", item.files_modified), listed("Files read", item.files_read), listed("Files", (item.files ?? []).filter((one) => !touched.has(one))),
  ];
}

const ORIGINS = { user: "you", agent: "the agent", tool: "a tool" };

function economics({ read_tokens: reads, discovery_tokens: work }) {
  return [
    facts([["To read", `~${count(reads)}`], ["Made from", work ? `~${count(work)}` : ""]]),
    h("p.small.quiet", {}, work
      ? `To read it whole costs about ${many(reads, "token")}; the prompts, answers and output it was made from have about ${count(work)}. The difference is no saving: nobody would have read all of that again. Both are estimates, four characters a token.`
      : `To read it whole costs about ${many(reads, "token")} (four characters each). It was recorded as it was said, not made from anything.`),
  ];
}

const section = (name, ...inside) => h("section", {}, h("h2", {}, name), inside);

function rowsOf(name, rows, says, signal) {
  return rows?.length > 0 && section(`${name} (${count(rows.length)})`, says && h("p.quiet.small", {}, says), stepping(h("div.rows", {}, rows.map((row) => rowOf(row, { clock: true }))), signal));
}

function near(rows, item, signal) {
  const box = h("div.rows", {}, rows.filter((row) => row.type !== "anchor").map((row) => {
    const node = rowOf(row, { clock: true });
    if (row.id === item.id) {
      node.classList.add("active");
      node.querySelector("a.title").setAttribute("aria-current", "true");
    }
    return node;
  }));
  return [stepping(box, signal), h("p.small", {}, "The oldest first, of the same project.")];
}
