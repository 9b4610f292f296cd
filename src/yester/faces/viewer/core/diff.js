// What an edit changed: lines that went and lines that came, under the file's name with their numbers.

import { copied, copyButton } from "/core/clipboard.js";
import { coloured, languageOf } from "/core/code.js";
import { h } from "/core/dom.js";
import { many } from "/core/format.js";

const AROUND = 3, FOLDED = 8; // lines that stay the same: shown around a change, folded from so many on
const LARGEST = 1_500_000; // products of lines that are compared one by one
const SHOWN = 400; // lines shown without asking
const SIGNS = { "+": ["ins", "added"], "-": ["del", "removed"], " ": ["span", ""] };

const split = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** `[[sign, line], …]`, sign being "+", "-" or " ". */
export function compareLines(before, after) {
  const old = split(before), now = split(after);
  let start = 0, end = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const same = (line) => [" ", line];
  return [...old.slice(0, start).map(same), ...middle(old.slice(start, old.length - end), now.slice(start, now.length - end)), ...(end ? old.slice(-end).map(same) : [])];
}

/** By the longest common run of lines; too much of both is told as all gone and all come. */
function middle(old, now) {
  if (!old.length || !now.length || old.length * now.length > LARGEST) return [...old.map((line) => ["-", line]), ...now.map((line) => ["+", line])];
  const wide = now.length + 1, best = new Uint32Array((old.length + 1) * wide);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) best[i * wide + j] = old[i] === now[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
  }
  const found = [];
  let i = 0, j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) [found.push([" ", old[i]]), i++, j++];
    else if (i < old.length && (j >= now.length || best[(i + 1) * wide + j] >= best[i * wide + j + 1])) found.push(["-", old[i++]]);
    else found.push(["+", now[j++]]);
  }
  return found;
}

export const countLines = (lines) => ({ more: lines.filter(([sign]) => sign === "+").length, less: lines.filter(([sign]) => sign === "-").length });

/** "+3 −1", with words for who cannot see the colours. */
export const countsOf = ({ more, less }) => h("span.counts", { role: "img", "aria-label": `${many(more, "line")} added, ${many(less, "line")} removed` },
  h("span.more", {}, `+${more}`), " ", h("span.less", {}, `−${less}`));

/** The places of one file that a tool has changed: `{file, places: [{before, after, known}]}`; `name` stands above. */
export function diffOf({ file, places }, name) {
  const all = places.map((one) => compareLines(one.before, one.after)), counts = countLines(all.flat());
  const whole = places.every((one) => !one.known);
  return h("div.diff", { role: "group", "aria-label": `Changes of ${file}` },
    h("div.diff-head", {}, h("span.file-name", {}, name), countsOf(counts), whole && h("span.quiet.small", {}, "what was there before is not recorded"), copyButton(() => patchOf(all.flat()), "Copy the changes")),
    all.map((lines) => linesOf(lines, languageOf(file))));
}

export const patchOf = (lines) => lines.map(([sign, line]) => sign + line).join("\n");

/** A text that is a diff already. */
export const diffText = (text) => copied(h("div.diff", { role: "group", "aria-label": "Diff" }, linesOf(text.split("\n").map((line) => (/^[-+](?!--|\+\+)/.test(line) ? [line[0], line.slice(1)] : [" ", line])), "", false)), text, "Copy the changes");

function linesOf(lines, language, folds = true) {
  const box = h("pre.diff-lines", { tabindex: "0", role: "group", "aria-label": "Lines" });
  const draw = ([sign, line]) => {
    const [name, label] = SIGNS[sign];
    return h(`${name}.line`, {}, h("span.sign", { "aria-label": label || null, role: label ? "img" : null }, sign), coloured(line, language), "\n");
  };
  const shown = folds ? runs(lines) : [{ lines }];
  let left = SHOWN;
  for (const run of shown) {
    if (run.folded) box.append(unfolding(run.lines, draw, `${many(run.lines.length, "line")} that stayed the same`));
    else {
      box.append(...run.lines.slice(0, left).map(draw));
      if (run.lines.length > left) box.append(unfolding(run.lines.slice(left), draw, `${many(run.lines.length - left, "more line")}`));
      left = Math.max(0, left - run.lines.length);
    }
  }
  return box;
}

function unfolding(lines, draw, name) {
  const button = h("button.small.unfold", { type: "button", on: { click: () => button.replaceWith(...lines.map(draw)) } }, `⋯ ${name}`);
  return button;
}

/** Lines in runs; long ones of lines that stayed the same are folded, but for a few around a change. */
function runs(lines) {
  const found = [];
  for (let at = 0; at < lines.length; ) {
    const same = lines[at][0] === " ";
    let end = at;
    while (end < lines.length && (lines[end][0] === " ") === same) end += 1;
    const from = at ? at + AROUND : at, to = end < lines.length ? end - AROUND : end;
    if (same && to - from >= FOLDED) found.push({ lines: lines.slice(at, from) }, { lines: lines.slice(from, to), folded: true }, { lines: lines.slice(to, end) });
    else found.push({ lines: lines.slice(at, end) });
    at = end;
  }
  return found;
}
