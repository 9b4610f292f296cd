// What goes on at this moment: sessions in which agents work, what is open, what was decided this
// week. All of it is drawn anew as things happen, card by card, so that nothing jumps under the hand.

import { get } from "/core/api.js";
import { copyable } from "/core/clipboard.js";
import { fill, h } from "/core/dom.js";
import { count, duration, many, tokens, when } from "/core/format.js";
import { linkOf, nameOf } from "/core/parts.js";
import { to } from "/core/router.js";
import { sessionGroups } from "/core/turn_rows.js";
import { statusChip } from "/core/turn_status.js";

export const title = () => "Now";

const PAUSE = 1200; // ms between two looks while much happens
const FRESH = 600; // ms until a look shows what was just told: an answer may be half a second old
// The stream tells what is new, not what an item became (a call that ended, a line that was used).
const AT_WORK = 4_000, QUIET = 20_000; // ms between two looks all the same
const FEW = 8; // lines of a section until all are asked for
const TURNS = 6; // the last ones, where nothing is at work
const STATES = { running: "is running", done: "done", failed: "failed", "": "" };

export async function show({ signal, listen }) {
  const first = await ask();
  const guide = h("div.guide-place"), running = section("Working now"), open = section("Open"), decided = section("Decided this week");
  let late = 0, last = 0, tick = 0;
  const cards = new Map(); // what was drawn of each session, so that only what changed is drawn anew

  async function ask() {
    const now = await get("/api/now", {}, signal);
    now.turns = now.running.length || now.empty ? [] : (await get("/api/turns", { limit: TURNS }, signal)).turns;
    return now;
  }

  function draw(now) {
    wait(now.running.length ? AT_WORK : QUIET);
    fill(guide, guideOf(now));
    running.node.hidden = open.node.hidden = decided.node.hidden = now.empty;
    running.number(now.running.length);
    drawCards(running.body, cards, now);
    open.fill(now.open, openOf, "Nothing is open: no session of the last three weeks ended with something undone.");
    decided.fill(now.decided, decidedOf, "No decision was made in the last seven days.");
  }

  function wait(pause) {
    clearTimeout(tick);
    tick = setTimeout(() => (document.hidden ? wait(pause) : look()), pause);
  }

  async function look() {
    late = 0;
    last = Date.now();
    const now = await ask().catch(() => null);
    if (signal.aborted) return;
    if (now) draw(now);
    else wait(PAUSE); // a store that is just being made, a server that starts anew
  }
  const soon = () => (late ||= setTimeout(look, Math.max(FRESH, last + PAUSE - Date.now())));
  listen(soon);
  signal.addEventListener("abort", () => (clearTimeout(tick), clearTimeout(late)));
  draw(first);
  return h("div.view.now", {}, h("h1", {}, "Now"), guide, running.node, h("div.halves", {}, open.node, decided.node));
}

/** No seconds: a number that runs draws the eye. */
const minutes = (ms) => (ms < 60_000 ? "just now" : duration(ms - (ms % 60_000)));

/** A heading with the number of what is below it. */
function section(name) {
  const number = h("span.number"), body = h("div.body"), node = h("section", { "aria-label": name }, h("h2", {}, name, " ", number), body);
  let drawn = "", all = false;
  return {
    node, body,
    number: (size) => fill(number, size > 0 && count(size)),
    fill(rows, draw, empty) {
      this.number(rows.length);
      const is = JSON.stringify(rows);
      if (is === drawn) return;
      drawn = is;
      const some = () => fill(body,
        rows.length ? h("ul.lines", {}, (all ? rows : rows.slice(0, FEW)).map((row) => h("li", {}, draw(row)))) : h("p.quiet", {}, empty),
        !all && rows.length > FEW && h("button.small", { on: { click: () => ((all = true), some(), body.querySelectorAll("a")[FEW]?.focus()) } }, `Show all ${count(rows.length)}`));
      some();
    },
  };
}

// --- sessions ---------------------------------------------------------------------------------------

function drawCards(body, cards, { now, running, last, turns }) {
  const idle = running.length ? "" : JSON.stringify([turns, minutes(now - last)]);
  if (idle) {
    if (cards.get("idle") === idle) return;
    cards.clear();
    cards.set("idle", idle);
    fill(body, h("p.quiet", {}, "No agent is working. ", last > 0 && ["The last sign of one came ", when(last, now), "; ", h("a", { href: to("/sessions") }, "all sessions"), "."]), sessionGroups(turns, true));
    return;
  }
  cards.delete("idle");
  const grid = body.querySelector(".running") ?? fill(body, h("div.running")).firstChild;
  const wanted = running.map((one) => {
    const id = one.session.db_id, is = JSON.stringify([one, minutes(now - one.asked)]), known = cards.get(id);
    if (known?.is === is) return known.node;
    const node = cardOf(one, now), inside = known?.node.contains(document.activeElement);
    cards.set(id, { is, node });
    known?.node.replaceWith(node);
    if (inside) node.querySelector("a").focus();
    return node;
  });
  for (const [id, { node }] of cards) if (!wanted.includes(node)) node.remove(), cards.delete(id);
  wanted.forEach((node, place) => grid.children[place] === node || grid.insertBefore(node, grid.children[place] ?? null));
}

function cardOf({ session, prompt, prompt_number: number, asked, waits, tool, errors, given, given_tokens: cost, used }, now) {
  return h(waits ? "article.card.session-card.waits" : "article.card.session-card", { "aria-label": `${session.agent} in ${session.project || "no project"}` },
    h("div.top", {}, h("span.chip.agent", {}, session.agent), h("span.project", {}, h("bdi", { dir: "ltr" }, h("b", {}, session.project || "no project"), session.branch && h("span.quiet", {}, ` on ${session.branch}`))),
      h("span.minutes", { title: waits ? "Since the prompt" : "At work since the prompt" }, minutes(now - asked))),
    h("a.prompt", { href: to(`/session/S${session.db_id}`) }, prompt || session.title || "No prompt yet"),
    h("div.doing", {}, waits ? h("span.state.idle", {}, "waits for you") : h("span.state.busy", {}, "at work"),
      tool && [" ", h(`a.tool.${tool.state || "done"}`, { href: to(`/item/${tool.item}`) }, tool.title), " ",
        h("span.quiet", {}, STATES[tool.state], tool.state !== "running" && [" ", when(tool.epoch, now)])]),
    h("div.foot", {},
      given ? h("a", { href: to("/shown", { session: `S${session.db_id}` }) }, `${many(given, "memory", "memories")} given`) : h("span", {}, "nothing given yet"),
      given > 0 && h("span", {}, `${tokens(cost)}`),
      given > 0 && h(used ? "span.good" : "span", {}, used ? `${count(used)} used` : "none used so far"),
      errors > 0 && h("span.bad", {}, many(errors, "error")), number > 0 && h("span.push", {}, `prompt ${count(number)}`)));
}

// --- what is open, what was decided -----------------------------------------------------------------

const openOf = (one) => {
  const more = one.text && !one.text.includes(one.title.replace(/…$/, "")) && one.title;
  return [
    h("a.title", { href: to(`/item/${one.item}`) }, one.text || one.title),
    h("div.under", {}, one.status && [statusChip(one.status), " "], one.project || "no project", " · ", when(one.epoch),
      one.session_db_id > 0 && [" · ", h("a", { href: to(`/session/S${one.session_db_id}`) }, "session")], more && ` · ${more}`)];
};

const decidedOf = (row) => [
  h("a.title", { href: linkOf(row) }, row.title || "(no words)"),
  h("div.under", {}, `${nameOf(row)}${row.kind === "memory" ? ", kept" : ""} · ${row.project || "no project"} · `, when(row.created_at_epoch))];

// --- the first steps --------------------------------------------------------------------------------

const STEPS = [
  ["Connect your agents", "yester install", "Shows what it would change and asks first. From then on sessions come in by themselves, and agents are given what fits.", (now) => now.connected],
  ["Read what there is already", "yester index", "Past sessions of every agent it finds on this machine. Nothing leaves the machine, and the agents' files stay as they are.", (now) => !now.empty],
  ["Ask your first question", 'yester recall "what did we decide about …"', "Or write it into the field above: words or a whole question.", () => false],
];

/** What is to be done first, in order; nothing once it is done. */
function guideOf(now) {
  if (!now.empty && now.connected) return null;
  if (!now.empty) {
    return h("section.notice.guide-one", {}, h("h2", {}, "No agent is connected yet"), h("p", {}, "What was indexed can be searched. For agents to be given any of it, and for new sessions to come in by themselves, run:"), copyable("yester install"));
  }
  const next = STEPS.findIndex(([, , , done]) => !done(now));
  return h("section.guide", {}, h("h2", {}, "Three steps to a memory"),
    h("ol", {}, STEPS.map(([name, command, says, done], place) => h(place === next ? "li.next" : done(now) ? "li.done" : "li", { "aria-current": place === next ? "step" : null },
      h("h3", {}, name, done(now) && " ✓"), h("p", {}, says), copyable(command)))));
}
