// What is new, as it happens: one connection for the page, read by fetch since it needs the bearer.
// Where it breaks, whoever answers next must prove itself before it is told anything.
// A browser has few connections to one server for all its tabs, so a hidden tab lets go of its own.

import { authorize, doubt } from "/core/api.js";

const heard = new Set();
let last = "", running = null, ready = () => {};

/** Call `told(event, data)` for events (item, memory, injection, gap) until the signal is aborted. */
export function listen(told, signal) {
  heard.add(told);
  signal.addEventListener("abort", () => heard.delete(told));
}

/**
 * `state("live" | "waiting")` is called whenever that changes, `refused()` when the bearer is no longer known.
 * Resolves when it is known from where on everything is told, or that it is not: what is asked for before could be
 * older than the first event.
 */
export function begin(state, refused) {
  const run = () => start(state, refused);
  document.addEventListener("visibilitychange", () => (document.hidden ? end() : run()));
  return new Promise((done) => ((ready = done), run()));
}

function end() {
  running?.abort();
  if (running) doubt(); // while nobody listens, a server that goes away is not noticed
  running = null;
}

async function start(state, refused) {
  if (running) return;
  const mine = (running = new AbortController());
  let pause = 500;
  while (!mine.signal.aborted) {
    try {
      const headers = { ...(await authorize()), ...(last && { "Last-Event-ID": last }) };
      const answer = await fetch("/stream", { headers, signal: mine.signal, cache: "no-store", credentials: "omit" });
      if (!answer.ok) throw new Error(String(answer.status));
      state("live");
      pause = 500;
      await read(answer.body.pipeThrough(new TextDecoderStream()).getReader());
    } catch (error) {
      if (mine.signal.aborted) return ready();
      if (error.status === 401) {
        state("waiting");
        ready();
        return refused(); // locked by the user, or too old: asking again would not help
      }
    }
    ready();
    doubt(); // a server that was started anew is told who we are, once it has proved itself
    state("waiting");
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 5000);
  }
}

async function read(reader) {
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) tell(block);
  }
}

function tell(block) {
  const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s)));
  if (fields.id) last = fields.id;
  if (fields.event === "ready") ready();
  if (!fields.data || fields.event === "ready") return;
  for (const told of heard) told(fields.event, JSON.parse(fields.data));
}
