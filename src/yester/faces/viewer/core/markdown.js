// Markdown as elements: headings, lists, tables, quotes, links, code. Nothing in a text becomes markup
// of the page; a picture is a link, a link leads to http, https or mailto or is none, HTML is text.

import { codeBlock } from "/core/code.js";
import { diffText } from "/core/diff.js";
import { h } from "/core/dom.js";

const DEEPEST = 6; // lists, quotes and emphasis inside each other
const FENCE = /^(\s{0,12})(`{3,}|~{3,})([^`\n]*)$/;
const HEADING = /^\s{0,3}(#{1,6})\s+(\S.*)$/;
const RULE = /^\s{0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^\s{0,3}>\s?(.*)$/;
const CELLS = /^\s*\|?\s*:?-{1,}:?\s*(?:\|\s*:?-{1,}:?\s*)*\|?\s*$/;

/** The whole text as blocks. */
export const markdownOf = (text) => h("div.markdown", {}, blocksOf(text.replace(/\r\n?/g, "\n").split("\n"), 0));

function blocksOf(lines, depth) {
  const found = [];
  let plain = [];
  const close = () => {
    if (plain.some((line) => line.trim())) found.push(h("p", {}, inline(plain.join("\n").replace(/^\n+|\s+$/g, ""))));
    plain = [];
  };
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const taken = line.trim() ? fence(lines, at) ?? heading(line) ?? rule(line) ?? table(lines, at) ?? (depth < DEEPEST ? quote(lines, at, depth) ?? items(lines, at, depth) : null) : [null, 1];
    if (taken) {
      close();
      if (taken[0]) found.push(taken[0]);
      at += taken[1];
    } else {
      plain.push(line);
      at += 1;
    }
  }
  close();
  return found;
}

// Each gives an element and how many lines it took; nothing where something else begins there.

function fence(lines, at) {
  const [, indent, marks, info] = FENCE.exec(lines[at]) ?? [];
  if (!marks) return null;
  let end = at + 1;
  const closes = (line) => line.trim().length >= marks.length && line.trim().split("").every((one) => one === marks[0]);
  while (end < lines.length && !closes(lines[end])) end += 1;
  const inside = lines.slice(at + 1, end).map((line) => (line.slice(0, indent.length).trim() ? line : line.slice(indent.length))).join("\n");
  const language = info.trim().split(/[\s{,]/)[0].slice(0, 30);
  return [/^(diff|patch)$/i.test(language) ? diffText(inside) : codeBlock(inside, language), end + 1 - at];
}

function heading(line) {
  const [, marks, text] = HEADING.exec(line) ?? [];
  // No heading of the page: its outline is that of the view, not of what somebody wrote.
  return marks ? [h(`p.heading.level-${marks.length}`, {}, inline(text.trimEnd().replace(/ #{1,6}$/, ""))), 1] : null;
}

const rule = (line) => (RULE.test(line) ? [h("hr"), 1] : null);

function table(lines, at) {
  const [head, marks] = [lines[at], lines[at + 1] ?? ""];
  if (!head.includes("|") || !marks.includes("-") || !marks.includes("|") || !CELLS.test(marks)) return null;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end += 1;
  const names = cells(head), sides = cells(marks).map((mark) => (/^:-+:$/.test(mark) ? "center" : /-:$/.test(mark) ? "right" : ""));
  const row = (line, name) => {
    const all = cells(line);
    return h("tr", {}, names.map((_, place) => h(name, { style: sides[place] ? { "text-align": sides[place] } : {} }, inline(all[place] ?? ""))));
  };
  const body = lines.slice(at + 2, end);
  return [h("div.wide", { tabindex: "0", role: "group", "aria-label": "Table" }, h("table", {}, h("thead", {}, row(head, "th")), h("tbody", {}, body.map((line) => row(line, "td"))))), end - at];
}

const cells = (line) => line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map((one) => one.trim().replaceAll("\\|", "|"));

function quote(lines, at, depth) {
  const inside = [];
  for (let line; (line = QUOTE.exec(lines[at + inside.length] ?? "")); ) inside.push(line[1]);
  return inside.length ? [h("blockquote", {}, blocksOf(inside, depth + 1)), inside.length] : null;
}

/** A list: what is indented further than its marks belongs to the item above. */
function items(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first) return null;
  const indent = first[1].length, ordered = /\d/.test(first[2]), all = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end], item = ITEM.exec(line), in_ = line.search(/\S/);
    if (item && in_ <= indent + 1 && in_ >= indent - 1) {
      if (/\d/.test(item[2]) !== ordered || RULE.test(line)) break;
      all.push([item[3]]);
    } else if (in_ > indent) all.at(-1).push(line.slice(Math.min(in_, indent + 2)));
    else if (in_ < 0 && nextIndent(lines, end) > indent) all.at(-1).push("");
    else if (in_ < 0 && ITEM.test(lines[end + 1] ?? "") && nextIndent(lines, end) === indent) continue;
    else break;
  }
  const start = ordered ? Number.parseInt(first[2], 10) : 1;
  return [h(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? String(start) : null }, all.map((inside) => itemOf(inside, depth))), end - at];
}

function nextIndent(lines, at) {
  while (at < lines.length && !lines[at].trim()) at += 1;
  return (lines[at] ?? "").search(/\S/);
}

function itemOf(lines, depth) {
  const [, box, text] = /^\[([ xX])\]\s+(.*)$/.exec(lines[0]) ?? [];
  const first = box === undefined ? lines[0] : text;
  let said = 1;
  while (said < lines.length && lines[said].trim() && !ITEM.test(lines[said]) && !FENCE.test(lines[said]) && !QUOTE.test(lines[said])) said += 1;
  return h("li", {}, box !== undefined && h("span.box", { role: "img", "aria-label": box === " " ? "to do" : "done" }, box === " " ? "☐ " : "☑ "),
    inline([first, ...lines.slice(1, said).map((line) => line.trim())].join("\n")), blocksOf(lines.slice(said), depth + 1));
}

// --- inside a line ----------------------------------------------------------------------------------

// Everything is bounded: no text makes it try more than so far from any place.
const INLINE = new RegExp([
  "\\\\([\\\\`*_{}\\[\\]()#+.!|>~-])",
  "(?<!`)(`{1,3})(?!`)((?:[^`]|`(?!\\2)){1,600}?)\\2(?!`)",
  "(!?)\\[([^\\[\\]\\n]{0,400})\\]\\(\\s{0,4}<?([^\\s()<>]{1,1000}(?:\\([^\\s()<>]{0,200}\\)[^\\s()<>]{0,500})?)>?(?:\\s{1,4}[\"'][^\"'\\n]{0,200}[\"'])?\\s{0,4}\\)",
  "<((?:https?:\\/\\/|mailto:)[^\\s<>]{1,1000})>",
  "\\b(https?:\\/\\/[^\\s<>\"'`\\\\]{1,1000})",
  "(\\*\\*|(?<![\\p{L}\\p{N}])__)(?=\\S)((?:[^*_\\n]|[*_](?![*_])){1,600}?)(?<=\\S)\\9",
  "~~(?=\\S)([^~\\n]{1,400})(?<=\\S)~~",
  "(?<![\\p{L}\\p{N}*_])([*_])(?=[^\\s*_])([^*_\\n]{1,400})(?<=\\S)\\12(?![\\p{L}\\p{N}*_])",
].join("|"), "gu");

/** Words of a line with what stands in them: `code`, **strong**, links. */
export function inline(text, depth = 0) {
  if (depth > DEEPEST) return [text];
  const found = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, escaped, , code, picture, name, address, angled, bare, , strong, gone, , leaning] = match;
    let node = null, end = match.index + whole.length;
    if (escaped) node = escaped;
    else if (code) node = h("code", {}, code.replace(/^ (.*\S.*) $/s, "$1"));
    else if (address) node = outside(address, [picture && "picture: ", name ? inline(name, depth + 1) : address]) ?? whole;
    else if (angled) node = outside(angled, angled) ?? whole;
    else if (bare) {
      const clean = bare.replace(/(?:[.,;:!?*_~]|\)(?![^(]*\())+$/u, "");
      end -= bare.length - clean.length;
      node = outside(clean, clean) ?? clean;
    } else if (strong) node = h("strong", {}, inline(strong, depth + 1));
    else if (gone) node = h("s", {}, inline(gone, depth + 1));
    else if (leaning) node = h("em", {}, inline(leaning, depth + 1));
    if (match.index > at) found.push(text.slice(at, match.index));
    found.push(node);
    at = end;
  }
  found.push(text.slice(at));
  return found;
}

/** A link out of the viewer, which says where it leads; null for an address that is not of the web. */
function outside(address, name) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (!["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  const node = h("a.outside", { rel: "noopener noreferrer nofollow", target: "_blank", title: url.href }, name);
  node.setAttribute("href", url.href);
  return node;
}
