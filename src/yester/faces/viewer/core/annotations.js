// What belongs to a transcript without being part of it: observations beside the message they came
// from, and what the agent was shown at the turn it was shown.

import { get, post } from "/core/api.js";

const PAGE = 200, ASKED = 100;

/** Every row of a session of these kinds. */
export async function everyRow(session, kinds, signal) {
  const found = [];
  for (let more = true; more; ) {
    const part = await get(`/api/sessions/S${session.db_id}/transcript`, { kinds, limit: PAGE, offset: found.length }, signal);
    found.push(...part.results);
    more = part.more && part.results.length > 0;
  }
  return found;
}

async function everyLine(session, signal) {
  const found = [];
  for (let before = 0, more = true; more; more = before > 0) {
    const part = await get("/api/injections", { session: `S${session.db_id}`, limit: 500, before }, signal);
    found.push(...part.injections);
    before = part.next_before;
  }
  return found;
}

/** What was given in one answer to a hook, the oldest first. */
export function givings(lines) {
  const found = new Map();
  for (const line of lines) {
    const key = `${line.session_db_id} ${line.event} ${line.prompt_number} ${line.epoch}`;
    if (!found.has(key)) found.set(key, { ...line, key, lines: [] });
    found.get(key).lines.unshift(line);
  }
  return [...found.values()].reverse();
}

/** The messages things were made from: id → row of an index. */
async function sourcesOf(rows) {
  const ids = [...new Set(rows.flatMap((row) => row.sources ?? []))], found = new Map();
  for (let at = 0; at < ids.length; at += ASKED) {
    const part = await post("/api/observations/batch", { ids: ids.slice(at, at + ASKED), format: "index" });
    for (const row of part.results) found.set(row.id, row);
  }
  return found;
}

/** The message a thing stands beside: the last one it was made from, when it was found out. */
function anchorOf(row, messages, session) {
  const known = (row.sources ?? []).map((id) => messages.get(id))
    .filter((one) => one && one.created_at_epoch >= session.started && one.created_at_epoch <= session.ended);
  const until = known.filter((one) => one.created_at_epoch <= row.created_at_epoch);
  const order = (a, b) => b.created_at_epoch - a.created_at_epoch || b.id - a.id;
  return (until.length ? until.sort(order) : known.sort(order).reverse())[0]?.id ?? 0;
}

/**
 * `at(rows, from, until)` gives for every row of a page what stands before, below and beside it;
 * `from` and `until` are where the page begins and the next one does.
 */
export async function besides(session, signal) {
  const [made, lines, prompts] = await Promise.all([
    everyRow(session, ["observation", "summary", "memory"], signal), everyLine(session, signal), everyRow(session, ["prompt"], signal)]);
  const messages = await sourcesOf(made);
  const anchored = new Map(), named = new Map(), loose = [];
  const put = (map, id, what) => map.set(id, [...(map.get(id) ?? []), what]);
  for (const row of made) {
    if (row.kind === "summary" && row.type === "session") continue; // it stands above all
    const twin = row.type === "turn" && made.find((one) => one.kind === "observation" && one.prompt_number === row.prompt_number && one.title === row.title);
    if (twin) {
      twin.card = row.id; // the same turn is shown once, with what was found out in it
      continue;
    }
    const within = row.kind === "summary" && row.source !== "yester"; // said in the session itself
    const anchor = within ? 0 : anchorOf(row, messages, session);
    row.from = (row.sources ?? []).map((id) => messages.get(id)).filter(Boolean);
    row.anchor_id = anchor;
    if (anchor) put(anchored, anchor, { row });
    else loose.push({ row, within, epoch: row.created_at_epoch });
    for (const one of row.from) if (one.id !== anchor && row.kind === "observation") put(named, one.id, row);
  }
  const turns = new Map(prompts.map((one) => [one.prompt_number, one.id]).reverse());
  for (const giving of givings(lines)) {
    const prompt = giving.event === "UserPromptSubmit" ? turns.get(giving.prompt_number) : 0;
    if (prompt) put(anchored, prompt, { giving });
    else loose.push({ giving, within: true, epoch: giving.epoch });
  }
  loose.sort((a, b) => a.epoch - b.epoch);
  return {
    prompts, observations: made.filter((row) => row.kind === "observation"),
    find: (id) => made.find((row) => row.id === id || row.card === id),
    at: (rows, from, until) => rows.map((row, place) => {
      const begins = place ? row.created_at_epoch : Math.min(from, row.created_at_epoch);
      const ends = place + 1 < rows.length ? rows[place + 1].created_at_epoch : until;
      const near = loose.filter((one) => one.epoch >= begins && one.epoch < ends);
      const mine = [...(anchored.get(row.id) ?? []), ...near.filter((one) => one.epoch >= row.created_at_epoch)];
      return {
        before: near.filter((one) => one.epoch < row.created_at_epoch),
        below: mine.filter((one) => one.giving || one.within), side: mine.filter((one) => one.row && !one.within),
        named: named.get(row.id) ?? [],
      };
    }),
  };
}
