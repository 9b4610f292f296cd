// A session as markdown, to be pasted elsewhere.

import { get } from "/core/api.js";
import { compareLines, patchOf } from "/core/diff.js";
import { clockOf, dayOf } from "/core/format.js";

const PAGE = 200;

/** Everything recorded of it, without thinking; `kinds` as the transcript has them. */
export async function sessionText(session, kinds, signal) {
  const parts = [`# ${session.title || "Session"}`, `${session.project} · ${session.agent} · ${dayOf(session.started)} ${clockOf(session.started)}`];
  for (let offset = 0, more = true; more; ) {
    const page = await get(`/api/sessions/S${session.db_id}/transcript`, { kinds, limit: PAGE, offset }, signal);
    parts.push(...page.results.map(entryText).filter(Boolean));
    offset += page.results.length;
    more = page.more && page.results.length > 0;
  }
  return `${parts.join("\n\n")}\n`;
}

function entryText(row) {
  const text = (row.narrative || row.title || "").trim();
  if (row.role === "thinking" || !text) return "";
  if (row.kind === "prompt") return `## You, ${clockOf(row.created_at_epoch)}\n\n${text}`;
  if (row.role !== "tool") return text;
  if (row.call?.changes.length) return row.call.changes.map((one) => `**${row.tool}** ${one.file}\n\n${fenced(patchOf(compareLines(one.before, one.after)), "diff")}`).join("\n\n");
  if (row.call?.command) return fenced(`$ ${row.call.command}\n${row.output ?? ""}`.trimEnd(), "console");
  return `**${row.tool}** ${(row.input ?? text).split("\n", 1)[0]}`;
}

/** In a fence that nothing inside closes. */
function fenced(text, language) {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([one]) => one.length));
  const marks = "`".repeat(longest + 1);
  return `${marks}${language}\n${text}\n${marks}`;
}
