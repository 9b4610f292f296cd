// Values of a memory: shown, edited, and compared. They are texts, lists, and records of such.

import { h } from "/core/dom.js";
import { long } from "/core/transcript.js";

export const UNSTATED = "not stated"; // what the server keeps where a field must hold something

export const wordOf = (name) => name.replaceAll("_", " ").replace(/^./, (first) => first.toUpperCase());

export const empty = (value) => value === null || value === undefined || value === "" || value === UNSTATED || (Array.isArray(value) && value.every(empty));

export function valueOf(value) {
  if (empty(value)) return h("span.quiet", {}, "–");
  if (Array.isArray(value)) return h("ul.values", {}, value.map((one) => h("li", {}, valueOf(one))));
  if (typeof value === "object") return recordOf(value);
  return typeof value === "string" ? long(value) : String(value);
}

/** `{field: value}`; what is empty is left out. */
export const recordOf = (record) => h("dl.record", {}, Object.entries(record).filter(([, value]) => !empty(value))
  .map(([name, value]) => [h("dt", {}, wordOf(name)), h("dd", {}, valueOf(value))]));

/** A field of a form: its value goes in and comes out as the API has it. */
export function inputOf(field, given) {
  const unsaid = empty(given) && [given].flat()[0] === UNSTATED; // nobody is to edit words nobody said
  const value = unsaid ? undefined : given;
  const props = { name: field.name, required: field.required && !unsaid, placeholder: unsaid ? UNSTATED : null };
  if (field.kind === "choice") {
    const is = String(value ?? "");
    const choices = field.required && is ? field.choices : ["", ...field.choices];
    return h("select", props, choices.map((one) => h("option", { value: one, selected: one === is }, one || "not stated")));
  }
  if (field.kind === "number") return h("input", { ...props, type: "number", min: "0", max: "1", step: "0.05", value: String(value ?? "") });
  if (field.kind === "list") return h("textarea", { ...props, rows: Math.max(2, (value ?? []).length + 1), value: (value ?? []).join("\n") });
  if (field.name === "title") return h("input", { ...props, maxlength: "120", autocomplete: "off", value: String(value ?? "") });
  return h("textarea", { ...props, rows: field.kind === "long" ? 4 : 1, value: String(value ?? "") });
}

export function readOf(field, input) {
  const text = input.value;
  if (field.kind === "list") return text.split("\n").map((one) => one.trim()).filter(Boolean);
  if (field.kind === "number") return text === "" ? null : Number(text);
  return text.trim();
}

export const same = (one, other) => JSON.stringify(empty(one) ? null : one) === JSON.stringify(empty(other) ? null : other);

/** What a change made different, field by field; parts of the content stand for themselves. */
export function differences(before, after) {
  const flat = (values) => ({ ...values, ...(values?.content && typeof values.content === "object" ? values.content : {}), content: undefined });
  const was = flat(before ?? {}), is = flat(after ?? {});
  return [...new Set([...Object.keys(was), ...Object.keys(is)])].filter((name) => !same(was[name], is[name])).map((name) => [name, was[name], is[name]]);
}
