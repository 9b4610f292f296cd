// Code with its words in colours: comments, strings, numbers, keywords, names that are called. A
// guess by the language's name; what is not known stays plain, and no text is ever changed.

import { copied } from "/core/clipboard.js";
import { h } from "/core/dom.js";

const MOST = 60_000; // characters that are coloured

const words = (text) => new Set(text.split(" "));
const CURLY = "break case catch class const continue default do else enum export extends false final finally for if implements import in instanceof interface let new null package private protected public return static super switch this throw throws true try typeof var void while async await yield";
const KEYWORDS = {
  curly: words(`${CURLY} function of as from delete readonly type declare namespace abstract undefined get set`),
  c: words(`${CURLY} auto bool char double extern float inline int long namespace nullptr operator override short signed sizeof struct template typedef union unsigned using virtual volatile string sealed record foreach internal fun val when object companion`),
  go: words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false string int int64 error bool byte"),
  rust: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while"),
  hash: words("and as assert async await break case class continue def del elif else end esac except export False false fi finally for from function global if import in is lambda local match module None nil nonlocal not or pass raise require return self then True true try until unless while with yield echo exit set"),
  sql: words("select from where insert into update delete create table index view drop alter add column primary key foreign references join left right inner outer on and or not null is in as order by group having limit offset values set union all distinct case when then else end begin commit rollback pragma with exists default unique check like between local function return if do while for nil true false repeat until elseif"),
  data: words("true false null yes no on off"),
};

const STRINGS = String.raw`"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?`;
const REST = String.raw`|(?<number>\b(?:0x[\da-f]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b)|(?<word>[\p{L}_$][\p{L}\p{N}_$]*)`;
const rule = (comment, strings = STRINGS) => new RegExp(`(?<comment>${comment})|(?<string>${strings})${REST}`, "giu");
const SLASHES = rule(String.raw`\/\/[^\n]*|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/)?`, `${STRINGS}|\`(?:[^\`\\\\]|\\\\.)*\`?`);
const HASHES = rule(String.raw`(?<![^\s;(\[{])#[^\n]*`, `"""(?:[^"]|"(?!""))*(?:""")?|'''(?:[^']|'(?!''))*(?:''')?|${STRINGS}`);
const DASHES = rule(String.raw`--[^\n]*|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/)?`);
const TAGS = /(?<comment><!--(?:[^-]|-(?!->))*(?:-->)?)|(?<word><\/?[A-Za-z][\w:.-]*|\/?>)|(?<string>"[^"\n]*"|'[^'\n]*')/gu;

const FAMILIES = {};
for (const [names, pattern, keywords] of [
  ["js jsx mjs cjs ts tsx javascript typescript json json5 jsonc svelte vue astro", SLASHES, KEYWORDS.curly],
  ["c h cc cpp cxx hpp cs csharp java kt kotlin swift scala dart php proto objc m groovy gradle zig css scss less", SLASHES, KEYWORDS.c],
  ["go golang", SLASHES, KEYWORDS.go], ["rs rust", SLASHES, KEYWORDS.rust],
  ["py python pyi rb ruby sh bash zsh fish shell console ps1 powershell pl perl r jl julia ex exs elixir nim make makefile dockerfile cmake tcl", HASHES, KEYWORDS.hash],
  ["toml yaml yml ini conf cfg env properties hcl tf nix gitignore", HASHES, KEYWORDS.data],
  ["sql lua hs haskell elm ada", DASHES, KEYWORDS.sql],
  ["html xml svg xhtml xaml plist", TAGS, null],
]) for (const name of names.split(" ")) FAMILIES[name] = [pattern, keywords];

/** The language of a file, by its name. */
export function languageOf(path) {
  const name = path.split(/[\\/]/).at(-1).toLowerCase();
  return name.includes(".") ? name.split(".").at(-1) : name;
}

/** The text as nodes and strings, for `h`. */
export function coloured(text, language) {
  const [pattern, keywords] = Object.hasOwn(FAMILIES, language) ? FAMILIES[language] : [];
  if (!pattern || text.length > MOST) return [text];
  const found = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    const [piece] = match, kind = kindOf(match.groups, keywords, text[match.index + piece.length]);
    if (!kind) continue;
    if (match.index > at) found.push(text.slice(at, match.index));
    found.push(h(`span.tok-${kind}`, {}, piece));
    at = match.index + piece.length;
  }
  found.push(text.slice(at));
  return found;
}

function kindOf({ comment, string, number, word }, keywords, next) {
  if (comment !== undefined) return "comment";
  if (string !== undefined) return "string";
  if (number !== undefined) return "number";
  if (!keywords || keywords.has(word) || (keywords === KEYWORDS.sql && keywords.has(word.toLowerCase()))) return "keyword";
  return next === "(" ? "call" : "";
}

/** A block of code. */
export const codeBlock = (text, language = "") => copied(
  h("pre.code", { tabindex: "0", role: "group", "aria-label": language ? `Code, ${language}` : "Code" }, h("code", {}, coloured(text, language.toLowerCase()))), text, "Copy the code");
