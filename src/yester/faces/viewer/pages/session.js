// A session: its facts, its summary, and everything recorded of it in order. What was found out
// stands beside the message it came from; what the agent was shown stands where it was shown.

import { besides } from "/core/annotations.js";
import { get } from "/core/api.js";
import { copyButton, copyable } from "/core/clipboard.js";
import { fill, h } from "/core/dom.js";
import { choice } from "/core/fields.js";
import { forgetting } from "/core/forget_dialog.js";
import { clockOf, count, dayOf, duration, many, tokens } from "/core/format.js";
import { givingOf } from "/core/injections.js";
import { pager } from "/core/pager.js";
import { fileLink, linkOf, nameOf, notify, pairs } from "/core/parts.js";
import { replay } from "/core/replay.js";
import { go, here, to } from "/core/router.js";
import { filesOf, followTurns, outlineOf } from "/core/session_side.js";
import { sessionText } from "/core/session_text.js";
import { entryOf, folded, isRead, prose, readsOf } from "/core/transcript.js";

const PAGE = 50, MAIN = ["message", "prompt", "note"], LATE = 150, TURNS = 500, SHORT = 8;
const PARTS = [["request", "Asked"], ["investigated", "Looked into"], ["learned", "Learned"], ["completed", "Done"], ["next_steps", "Next"], ["notes", "Notes"]];
const ONLY = [["", "Everything"], ["said", "Only what was said"], ["prompts", "Only prompts"], ["edits", "Only edits"], ["errors", "Only errors"]];

const BESIDE = matchMedia("(min-width: 64rem)"); // as the styles have it

let called = "Session";
export const title = () => called;

export async function show({ path, query, signal, listen, again }) {
  const { session, summary, shown, shown_tokens, resume } = await get(`/api/sessions/${path.id}`, {}, signal);
  called = session.title || `Session S${session.db_id}`;
  const place = `/session/${path.id}`, source = `/api/sessions/S${session.db_id}`;
  // A place is looked up in the whole: what is narrowed may not have it.
  const address = (at) => to(place, { at });
  const narrowed = { only: ONLY.some(([is]) => is === query.only) ? query.only : "", find: query.find ?? "" };
  const whole = !narrowed.only && !narrowed.find;
  const scroller = document.getElementById("content"), found = h("span.quiet.small", { role: "status" });
  const fetched = async (page) => {
    // One more than is shown: where the next page begins tells what belongs to the last row of this one.
    const { results, total } = await get(`${source}/transcript`, { ...narrowed, kinds: MAIN, limit: PAGE + 1, offset: page * PAGE }, signal);
    if (total !== undefined) found.textContent = total ? many(total, "entry", "entries") : "Nothing fits.";
    return { rows: results.slice(0, PAGE), until: results[PAGE]?.created_at_epoch ?? Infinity, more: results.length > PAGE };
  };
  const nothing = { at: (rows) => rows.map(() => ({ before: [], below: [], side: [], named: [] })) };
  const at = Number(query.at) || 0;
  let first = at ? null : fetched(0); // asked for beside what belongs to it
  first?.catch(() => {});
  let around = await besides(session, signal);
  const fetch = (page) => {
    const early = page ? null : first;
    first = null;
    return early ?? fetched(page);
  };
  const pages = pager({ fetch, draw: (page, rows, before) => blockOf(page, rows, before, whole ? around : nothing, address, narrowed), scroller, signal, failed: notify });

  const goal = at && whole && (await goalOf(at, around, session, signal));
  await pages.open(goal ? await pageOf(goal, session, signal) : 0);

  // What stands in the stream does not say of which session it is: the end is asked for anew.
  let late = 0;
  listen((event, data) => {
    if (event === "gap") return again();
    if (event === "item" && data.project !== session.project) return;
    if (event === "injection" && data.session_db_id !== session.db_id) return;
    clearTimeout(late);
    late = setTimeout(async () => {
      if (signal.aborted) return;
      try {
        around = await besides(session, signal);
        await pages.refresh();
      } catch (error) {
        if (error.name !== "AbortError") notify(error);
      }
    }, LATE);
  });

  const transcript = h(whole && around.observations.length ? "section.transcript.has-beside" : "section.transcript", { "aria-label": "Transcript" },
    !session.items && h("p.quiet", {}, "Nothing of it is recorded."), pages.node);
  const outline = h("nav.session-side", { "aria-label": "Prompts and files" });
  const change = (more) => go(place, { only: here().query.only, find: here().query.find, ...more });
  const field = h("input", { type: "search", name: "find", value: narrowed.find, placeholder: "Search in this session", "aria-label": "Search in this session", autocomplete: "off" });
  const node = h("div.view.session", {},
    headOf(session, shown, shown_tokens, resume), summary && summaryOf(summary, whole && !at),
    h("div.session-columns", {}, outline, h("div.session-main", {},
      h("div.tools.sticky", {}, h("h2.unseen", {}, "Transcript"),
        choice("Show", ONLY, narrowed.only, (event) => change({ only: event.target.value })),
        h("form", { role: "search", on: { submit: (event) => { 
          event.preventDefault();
          change({ find: field.value.trim() });
        } } }, field),
        found, h("span.gap"), replay(transcript, signal),
        copyButton(() => sessionText(session, MAIN, signal), "Copy the session as markdown", "Copy as markdown"),
        h("span.keys-hint.quiet.small", {}, h("kbd", {}, "j"), " ", h("kbd", {}, "k"), " step, ", h("kbd", {}, "n"), " ", h("kbd", {}, "p"), " prompts, ", h("kbd", {}, "Enter"), " unfolds")),
      transcript)));

  // A place that is in the page already is gone to without drawing everything anew.
  node.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='at=']"), id = /[?&]at=(\d+)/.exec(link?.getAttribute("href") ?? "")?.[1];
    if (!whole || !id || event.ctrlKey || event.metaKey || event.shiftKey || !mark(node, Number(id))) return;
    event.preventDefault();
    history.pushState(null, "", link.getAttribute("href"));
  });
  keysOf(node, signal);
  const follow = followTurns(outline, transcript, scroller, signal);
  /** What stands beside the transcript need not be waited for; above it, it would push it down. */
  const side = Promise.all([get("/api/turns", { session: `S${session.db_id}`, orderBy: "date_asc", limit: TURNS }, signal), get(`${source}/files`, {}, signal)])
    .then(([{ turns }, { files }]) => (fill(outline, outlineOf(turns, address), filesOf(files, session.project, address)), follow()))
    .catch((error) => error.name === "AbortError" || notify(error));
  if (!BESIDE.matches) await side;
  requestAnimationFrame(() => {
    if (!node.isConnected) return;
    if (!at) scroller.scrollTop = 0;
    else if (!goal || !mark(node, at)) notify(`#${at} is not in this session`);
    pages.settle();
    follow();
  });
  return node;
}

// --- the place in the address -----------------------------------------------------------------------

/** Where to look for it: `{epoch, id}` of a message; null where it is none of this session. */
async function goalOf(at, around, session, signal) {
  const made = around.find(at), anchor = made?.anchor_id || at;
  if (made && !made.anchor_id) return { epoch: made.created_at_epoch, id: 0 };
  try {
    const { item } = await get(`/api/items/${anchor}`, {}, signal);
    return item.session === session.session ? { epoch: item.created_at_epoch, id: item.id } : null;
  } catch (error) {
    if (error.name === "AbortError" || error.status !== 404) throw error;
    return null;
  }
}

/** The page it stands on, by halving: rows come by time, then by number. */
async function pageOf(goal, session, signal) {
  let low = 0, high = Math.ceil(session.items / PAGE);
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    const [row] = (await get(`/api/sessions/S${session.db_id}/transcript`, { kinds: MAIN, limit: 1, offset: middle * PAGE, format: "index" }, signal)).results;
    const behind = !row || row.created_at_epoch > goal.epoch || (row.created_at_epoch === goal.epoch && goal.id && row.id > goal.id);
    if (behind) high = middle;
    else low = middle;
  }
  return low;
}

function mark(node, id) {
  const found = node.querySelector(`[data-id="${id}"], [data-card="${id}"]`);
  if (!found) return false;
  for (const old of node.querySelectorAll(".here")) old.classList.remove("here");
  found.classList.add("here");
  const fold = found.querySelector("details"), run = found.parentElement.closest("details");
  for (const one of [fold, run]) if (one) one.open = true;
  // A prompt stands at the top, with what came of it below.
  found.scrollIntoView({ block: found.matches(".is-user") ? "start" : "center" });
  found.focus({ preventScroll: true });
  return true;
}

// --- what is drawn ----------------------------------------------------------------------------------

/** A page of entries in one grid: each has a row; what stands beside one reaches down to the next. */
function blockOf(page, { rows, until }, before, around, address, { find }) {
  const open = new Set([...(before?.querySelectorAll("details[open]") ?? [])].map((one) => one.closest("[data-id]")?.dataset.id));
  const known = before && new Set([...before.querySelectorAll("article.entry")].map((one) => one.dataset.id));
  const cells = [], beside = [];
  const cell = (node) => (node.style.setProperty("--row", cells.filter((one) => one.main).length + 1), cells.push({ node, main: true }), node);
  const inline = (one) => cell(one.giving ? givingOf(one.giving) : entryOf(one.row, address));
  const extras = around.at(rows, page ? rows[0]?.created_at_epoch : -Infinity, until);
  const alone = extras.map((one) => !Object.values(one).some((part) => part.length));
  for (let place = 0; place < rows.length; place += 1) {
    const extra = extras[place];
    let end = place;
    while (!find && end < rows.length && isRead(rows[end]) && alone[end]) end += 1;
    if (end - place > 1) {
      const run = cell(readsOf(rows.slice(place, end), address));
      if (known && rows.slice(place, end).some((row) => open.has(String(row.id)))) run.querySelector("details").open = true;
      place = end - 1;
      continue;
    }
    const day = dayOf(rows[place].created_at_epoch);
    if (place ? day !== dayOf(rows[place - 1].created_at_epoch) : page) cell(h("div.day.quiet.small", {}, day));
    for (const one of extra.before.filter((each) => each.giving || each.within)) inline(one);
    const entry = cell(entryOf(rows[place], address, find)), row = entry.style.getPropertyValue("--row");
    if (known && !known.has(entry.dataset.id)) entry.classList.add("fresh");
    if (open.has(entry.dataset.id)) entry.querySelector("details")?.setAttribute("open", "");
    const side = [...extra.before.filter((each) => each.row && !each.within), ...extra.side];
    if (side.length || extra.named.length) {
      const node = h("section.beside", { "aria-label": `Found out at ${clockOf(rows[place].created_at_epoch)}, #${rows[place].id}`, style: { "--row": row } },
        side.map((one) => cardOf(one.row, address)), extra.named.length > 0 && namedOf(extra.named, address));
      beside.push({ node, row: Number(row) });
      cells.push({ node });
    }
    for (const one of extra.below) inline(one);
  }
  let said = ""; // a time that is that of the entry above is there for the pointer alone
  for (const clock of cells.map((one) => one.node.querySelector(":scope > .clock")).filter(Boolean)) {
    clock.classList.toggle("again", clock.textContent === said);
    said = clock.textContent;
  }
  const last = cells.filter((one) => one.main).length + 1;
  for (const [place, one] of beside.entries()) one.node.style.setProperty("--span", (beside[place + 1]?.row ?? last) - one.row || 1);
  return h("div.block", { "data-page": page }, cells.map((one) => one.node));
}

function cardOf(row, address) {
  const says = row.facts?.length ? () => h("ul", {}, row.facts.map((fact) => h("li", {}, fact))) : row.narrative ? () => prose(row.narrative) : null;
  const parts = PARTS.filter(([name]) => row.sections?.[name]);
  const inside = () => [
    says?.(), row.facts?.length > 0 && row.narrative && prose(row.narrative),
    parts.length > 0 && h("dl.parts", {}, parts.map(([name, label]) => [h("dt", {}, label), h("dd", {}, row.sections[name])])),
    row.files_modified?.length > 0 && h("p", {}, row.files_modified.map((one) => [fileLink(row.project, one), " "])),
    row.from.length > 0 && h("p.quiet.small", {}, "From ", row.from.map((one, place) => [place > 0 && ", ", h("a", { href: address(one.id), title: one.title }, `#${one.id}`)]))];
  return h("article.found", { "data-id": row.id, "data-card": row.card, "data-anchor": row.anchor_id, tabindex: "-1" },
    h("div.found-title", {}, h("span.icon", { role: "img", "aria-label": nameOf(row) }, row.icon), h("a", { href: linkOf(row) }, row.title || "(no words)")),
    folded(`${nameOf(row)}${row.facts?.length ? ` · ${many(row.facts.length, "fact")}` : ""}${row.discovery_tokens ? ` · ${count(row.tokens)} of ${count(row.discovery_tokens)} tokens` : ""}`, inside));
}

const namedOf = (rows, address) => h("ul.named", {}, rows.map((row) =>
  h("li", {}, h("a", { href: address(row.id), title: "Part of what this was made from" }, h("span.icon", { "aria-hidden": "true" }, row.icon), " ", row.title))));

function headOf(session, shown, cost, resume) {
  return h("div.page-head", {},
    h("h1", {}, session.title || "(untitled)"),
    pairs([
      ["Project", session.project && h("a", { href: to("/sessions", { project: session.project }) }, session.project)],
      ["Agent", session.agent], ["Branch", session.branch],
      ["When", `${dayOf(session.started)}, ${clockOf(session.started)} – ${dayOf(session.ended) === dayOf(session.started) ? "" : `${dayOf(session.ended)}, `}${clockOf(session.ended)} (${duration(session.ended - session.started)})`],
      ["Recorded", `${many(session.prompts, "prompt")}, ${many(session.items, "item")}`],
      ["Injected", shown ? h("a", { href: to("/shown", { session: `S${session.db_id}` }) }, `${many(shown, "line")}, ${tokens(cost)}`) : "nothing"],
      ["Folder", session.cwd && h("code", {}, session.cwd)], ["Id", [h("code", {}, `S${session.db_id} ${session.session}`), " ", copyButton(() => session.session, "Copy the session’s id")]]]),
    h("div.tools", {}, resume && [h("span.quiet.small", {}, "Take it up again"), copyable(resume)], h("span.gap"), forgetting({ session: `S${session.db_id}` })));
}

/** Folded unless it is short: one comes for what was said. */
function summaryOf(summary, open) {
  const parts = PARTS.filter(([name]) => summary[name]);
  const lines = parts.reduce((all, [name]) => all + summary[name].split("\n").length, 0);
  return h("section.card.summary", { "aria-label": "Summary" },
    folded([h("b", {}, "Summary"), h("span.begin.quiet", {}, summary.completed?.split("\n")[0] || summary.request?.split("\n")[0] || "")],
      () => (parts.length ? h("dl.parts", {}, parts.map(([name, label]) => [h("dt", {}, label), h("dd", {}, prose(summary[name]))])) : prose(summary.text)),
      open && lines <= SHORT));
}

// --- keys -------------------------------------------------------------------------------------------

/** j and k step through entries, n and p through prompts; Enter folds and unfolds. */
function keysOf(node, signal) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
    const by = { j: 1, k: -1, n: 1, p: -1 }[event.key], now = document.activeElement;
    if (by) {
      const wanted = event.key === "n" || event.key === "p" ? ".is-user" : ".entry";
      const all = [...node.querySelectorAll(`.entry:is(${wanted})`)].filter((one) => one.offsetParent);
      const next = step(all, now.closest?.(".entry"), by);
      next?.focus({ preventScroll: true });
      next?.scrollIntoView({ block: wanted === ".is-user" ? "start" : "nearest" });
    } else if (event.key === "Enter" && now.matches?.(".entry, .found")) {
      const fold = now.querySelector("details");
      if (fold) fold.open = !fold.open;
    }
  }, { signal });
}

function step(all, from, by) {
  if (!from) return all[0];
  const after = (one) => Boolean(from.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING);
  return by > 0 ? all.find((one) => one !== from && after(one)) : all.findLast((one) => one !== from && !after(one));
}
