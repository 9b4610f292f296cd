// How times, numbers and found words are written.

import { h } from "/core/dom.js";

const number = new Intl.NumberFormat("en");
const day = new Intl.DateTimeFormat("en", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
const clock = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", hour12: false });

export const count = (value) => number.format(value ?? 0);
export const many = (value, one, more = one + "s") => `${count(value)} ${value === 1 ? one : more}`;
export const dayOf = (epoch) => (epoch ? day.format(epoch) : "no date");
export const clockOf = (epoch) => (epoch ? clock.format(epoch) : "");
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

/** The text with the asked words in <mark>: whole words, and what begins with them. */
export function marked(text, query) {
  const asked = [...new Set((query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []).filter((word) => word.length > 2 && !/^(and|not|the)$/.test(word)))];
  if (!asked.length) return [text];
  const found = new RegExp(`(?<![\\p{L}\\p{N}_])((?:${asked.join("|")})[\\p{L}\\p{N}_]*)`, "giu");
  return text.split(found).map((part, place) => (place % 2 ? h("mark", {}, part) : part));
}
