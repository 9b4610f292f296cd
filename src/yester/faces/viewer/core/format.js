// How times, numbers and found words are written.

import { h } from "/core/dom.js";

const number = new Intl.NumberFormat("en");
const day = new Intl.DateTimeFormat("en", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
const short = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export const count = (value) => number.format(value ?? 0);
export const many = (value, one, more = one + "s") => `${count(value)} ${value === 1 ? one : more}`;
export const dayOf = (epoch) => (epoch ? day.format(epoch) : "no date");
/** A day of which the year is known. */
export const shortDay = (epoch) => short.format(epoch);
export const clockOf = (epoch) => (epoch ? clock.format(epoch) : "");
/** Names the code uses, as words: tech_debt is "tech debt". */
export const plain = (name) => name.replaceAll("_", " ");
const MORE = { memory: "memories", summary: "summaries" };
export const manyOf = (number, kind) => many(number, plain(kind), MORE[kind] ?? `${plain(kind)}s`);
/** The last part of a path, of whatever system. */
export const fileName = (path) => path.split(/[\\/]/).at(-1);
export const tokens = (value) => `~${count(value)} tokens`;

/** Problems are written as parts of a line; alone they are sentences. */
export const sentence = (text) => text.replace(/^\p{Ll}/u, (first) => first.toUpperCase()).replace(/[\p{L}\p{N}'")]$/u, "$&.");

export function when(epoch, now = Date.now()) {
  if (!epoch) return h("span", {}, "no date");
  const text = ago(now - epoch) ?? dayOf(epoch);
  return h("time", { datetime: new Date(epoch).toISOString(), title: `${dayOf(epoch)} ${clockOf(epoch)}` }, text);
}

function ago(past) {
  const minutes = Math.floor(past / 60000);
  if (minutes < 0) return null;
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return minutes < 7 * 24 * 60 ? `${Math.floor(minutes / 1440)} d ago` : null;
}

const UNITS = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];

/** How long something took, in the two largest units. */
export function duration(ms) {
  if (!(ms >= 1000)) return "under 1 s";
  const first = UNITS.findIndex(([, size]) => ms >= size);
  const [name, size] = UNITS[first], whole = Math.floor(ms / size), smaller = UNITS[first + 1];
  const rest = smaller && whole < 10 ? Math.floor((ms % size) / smaller[1]) : 0;
  return `${whole} ${name}${rest ? ` ${rest} ${smaller[0]}` : ""}`;
}

const STEM = 5; // letters that two forms of a word share at least

/** Forms of one word: "authenticates" of "authentication", but "interface" is none of "internal". */
function akin(word, asked) {
  if (word.startsWith(asked)) return true;
  let shared = 0;
  while (shared < asked.length && word[shared] === asked[shared]) shared++;
  return shared >= STEM && shared > 0.75 * Math.min(word.length, asked.length);
}

/** The text with the asked words in <mark>, in whatever form they stand there. */
export function marked(text, query) {
  const asked = [...new Set((query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []).filter((word) => word.length > 2 && !/^(and|not|the)$/.test(word)))];
  if (!asked.length) return [text];
  return text.split(/([\p{L}\p{N}_]+)/u).map((part, place) => (place % 2 && asked.some((one) => akin(part.toLowerCase(), one)) ? h("mark", {}, part) : part));
}
