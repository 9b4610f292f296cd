// A file: its lines as they are now, each stretch with the turn that wrote it; what was decided about
// it, what failed, what is open, and the sessions that had to do with it.

import { get } from "/core/api.js";
import { coloured, languageOf } from "/core/code.js";
import { copyButton } from "/core/clipboard.js";
import { diffOf } from "/core/diff.js";
import { h } from "/core/dom.js";
import { clockOf, count, dayOf, duration, fileName, many, when } from "/core/format.js";
import { linkOf } from "/core/parts.js";
import { to } from "/core/router.js";
import { stepping } from "/core/row_keys.js";
import { turnRow } from "/core/turn_rows.js";
import { statusMark } from "/core/turn_status.js";

const FEW = 8; // turns, sessions shown without asking
const BAD = ["failed", "reverted", "replaced"];

let called = "File";
export const title = () => called;

export async function show({ query, signal }) {
  if (!query.path || !query.project) {
    called = "File";
    return h("div.view", {}, h("h1", {}, "File"), h("section.notice", {}, h("p", {}, "Which one? Choose a file in a session, in the timeline or beside an item; each name leads here.")));
  }
  const file = await get("/api/file", { project: query.project, path: query.path }, signal);
  const name = fileName(file.path), bad = file.turns.filter((one) => BAD.includes(one.status));
  called = name;
  return h("article.view.file-view", {},
    h("div.page-head", {},
      h("h1", {}, h("span.quiet.folder", {}, file.path.slice(0, file.path.length - name.length)), name),
      h("p.under", {}, h("a", { href: to("/timeline", { project: file.project }) }, file.project), " · ", file.history && [summary(file), " "], copyButton(() => file.path, "Copy the path", "Copy path"),
        " ", h("a", { href: to("/search", { files: file.path, project: file.project }) }, "Search in what is about it"))),
    h("div.two", {},
      h("div", {}, file.lines.length || file.history ? linesOf(file) : editsOf(file)),
      h("aside", {},
        listOf("Open", file.open.map(openEnd), "Nothing is known to be open."),
        listOf("Decided", file.decisions.map((row) => h("li", {}, h("a", { href: linkOf(row) }, row.title || "(no words)"), " ", h("span.quiet.small", {}, when(row.created_at_epoch)))), "Nothing was decided about it."),
        listOf("Failed or taken back", bad.map(turnLine), "Nothing that is recorded."),
        listOf("Sessions", file.sessions.map(sessionLine), "None."))),
    file.turns.length > 0 && [h("h2", {}, `Turns (${count(file.turns.length)})`), folded(file.turns, turnList, signal)]);
}

const summary = ({ history }) => `${many(history.lines, "line")}, ${count(history.recorded)} of them written in recorded sessions${history.former_names.length ? `; formerly ${history.former_names.join(", ")}` : ""}`;

// --- lines ------------------------------------------------------------------------------------------

/** Stretches one below the other, beside each who wrote it; a turn that is told already is only named. */
function linesOf({ lines, history, path }) {
  const language = languageOf(path), told = new Set();
  if (!lines.length) return h("p.quiet", {}, "The file is empty.");
  const shown = history.stretches.filter((one) => one.first <= lines.length);
  return h("section.blame", { "aria-label": "Lines" },
    shown.map((one) => {
      const again = one.turn && told.has(one.turn.id);
      if (one.turn) told.add(one.turn.id);
      const numbers = [];
      for (let number = one.first; number <= Math.min(one.last, lines.length); number += 1) numbers.push(number);
      return h("div.stretch", {}, h("div.author", {}, authorOf(one, again)),
        h("pre", { tabindex: "0", role: "group", "aria-label": `Lines ${one.first} to ${one.last}` }, numbers.map((number) =>
          h(one.ambiguous.includes(number) ? "span.line.ambiguous" : "span.line", { title: one.ambiguous.includes(number) ? "Another turn may have written this line" : null },
            h("span.number", { "aria-hidden": "true" }, number), coloured(lines[number - 1], language), "\n"))));
    }),
    history.lines > lines.length && h("p.quiet.small", {}, `The first ${count(lines.length)} of ${many(history.lines, "line")}.`));
}

function authorOf({ turn, replaced, replaced_lines: gone, attempts }, again) {
  if (!turn) return h("span.quiet.small", {}, "no recorded session");
  const link = h("a", { href: to(`/item/${turn.id}`), title: turn.why || turn.title }, turn.title || `#${turn.id}`);
  return [
    statusMark(turn.status), link,
    !again && [
      h("div.quiet.small", {}, `${dayOf(turn.created_at_epoch)} · #${turn.id}`),
      gone > 0 && h("div.quiet.small", {}, `replaced ${many(gone, "line")}${replaced ? ": " : ""}`, replaced && h("code", {}, replaced)),
      attempts.map((one) => h("div.small.is-bad", {}, "tried before: ", h("a", { href: to(`/item/${one.id}`) }, one.title)))],
  ];
}

/** Where there are no lines: the edits that are known, the newest first. */
function editsOf({ edits, project, missing }) {
  return h("section", {},
    h("p.quiet", {}, `The lines cannot be shown: ${missing}.`, edits.length > 0 && " These are the last recorded edits."),
    edits.map((row) => h("div.edit", {},
      h("p.small", {}, h("a", { href: row.session_db_id ? to(`/session/S${row.session_db_id}`, { at: row.id }) : linkOf(row) }, `${dayOf(row.created_at_epoch)} ${clockOf(row.created_at_epoch)}`), ` · ${row.tool} `, row.tags?.includes("error") && h("span.chip.bad", {}, "failed")),
      row.call.changes.length > 0 ? diffOf({ file: row.call.changes[0].file, places: row.call.changes }, row.call.changes[0].file) : h("p.quiet.small", {}, row.title))),
    !edits.length && h("p.quiet", {}, `No edit of it is recorded field by field in ${project}.`));
}

// --- beside -----------------------------------------------------------------------------------------

const openEnd = (one) => h("li", {}, statusMark("open"), h("a", { href: to(`/item/${one.card}`) }, one.text || one.title), " ", h("span.quiet.small", {}, when(one.created_at_epoch)));

const turnLine = (one) => h("li", {}, statusMark(one.status, one.evidence), h("a", { href: to(`/item/${one.card || one.id}`) }, one.title), h("div.quiet.small", {}, evidenceOf(one)));

/** What it rests on; a turn that took its place is led to. */
function evidenceOf({ evidence, status }) {
  const by = /^by (\d+)$/.exec(evidence)?.[1];
  return by ? ["replaced by ", h("a", { href: to(`/item/${by}`) }, `#${by}`)] : evidence || status;
}

const sessionLine = (one) => h("li", {}, h("a", { href: to(`/session/S${one.db_id}`) }, one.title || `S${one.db_id}`), h("div.quiet.small", {}, `${dayOf(one.started)} · ${one.agent} · ${duration(one.ended - one.started)}`));

function listOf(name, rows, none) {
  return h("section", {}, h("h2", {}, `${name}${rows.length ? ` (${count(rows.length)})` : ""}`),
    rows.length ? h("ul.plain", {}, rows.slice(0, FEW)) : h("p.quiet.small", {}, none),
    rows.length > FEW && h("details", {}, h("summary", {}, many(rows.length - FEW, "more", "more")), h("ul.plain", {}, rows.slice(FEW))));
}

const turnList = (turns) => h("ol.turns", {}, turns.map((turn) => turnRow(turn, true)));

function folded(turns, draw, signal) {
  return stepping(h("div.turn-session", {}, draw(turns.slice(0, FEW)), turns.length > FEW && h("details", {}, h("summary", {}, many(turns.length - FEW, "more turn")), draw(turns.slice(FEW)))), signal);
}
