// Why a hit stands where it does: what each factor added to its score, of the most it could.

import { h } from "/core/dom.js";
import { count, many } from "/core/format.js";
import { to } from "/core/router.js";

const FACTORS = {
  keyword: ["Words", "how well it holds the most telling of the words asked for"],
  vector: ["Meaning", "how near its meaning is to the question's"],
  files: ["Files at hand", "how many of its files are being worked on"],
  named: ["Files named", "how many of the files that the question names it is about"],
  recency: ["Recency", "how new it is; each type grows old at its own pace"],
  importance: ["Type", "what an item of its type is worth"],
  concepts: ["Concepts", "how many of the concepts asked for it has"],
  project: ["Project", "whether it is of the project that is asked in"],
  phrase: ["Side by side", "words that stand together in the question and in it"],
  window: ["Old", "older than the setting recency_window_days"],
  stale: ["Out of date", "its files have changed since"],
  said: ["The turn", "what was said in its turn, taken as one text"],
  worked: ["Files of the session", "how many of the session's files its turn has edited"],
  use: ["Use", "what came of it when it was injected, and what you said of it"],
};
const SIGNS = {
  matched: ["Matched", "share of the question's words that it has, the rare ones counting more"],
  cosine: ["Cosine", "of its vector and the question's"],
};
const ARMS = { words: "words", vectors: "meaning", files: "files", neighbours: "what stands beside a hit" };

const figure = (value) => value.toFixed(3);
const signed = (value) => (value < 0 ? "−" : "+") + figure(Math.abs(value));

export function explainOf(row, { weights, arms, cut, more }) {
  const factors = Object.entries(row.factors ?? {});
  const names = [...new Set([...Object.keys(weights), ...factors.map(([name]) => name)])];
  const widest = Math.max(...Object.values(weights), ...factors.map(([, value]) => Math.abs(value)), 0.001);
  const share = (value) => `${(Math.abs(value) / widest) * 100}%`;
  const line = (name) => {
    const value = row.factors[name] ?? 0, most = weights[name];
    const [label, says] = FACTORS[name] ?? [name, ""];
    return h("div.factor", {},
      h("dt", {}, label, h("span", {}, says)),
      h("dd", {},
        h("div.scale", { "aria-hidden": "true" },
          most !== undefined && h("i.most", { style: { width: share(most) } }),
          h(value < 0 ? "i.is.less" : "i.is", { style: { width: share(value) } })),
        h("output", {}, signed(value), most !== undefined && h("small", {}, ` of ${figure(most)}`))));
  };
  const found = (row.arms ?? []).map((name) => ARMS[name] ?? name);
  return [
    h("h3", {}, `Score ${figure(row.score ?? 0)}: the sum of these`),
    h("dl.factors", {}, names.map(line)),
    h("p.small", {}, h("strong", {}, "Found by "), found.join(" and ") || "nothing but its place", ". ",
      h("span.quiet", {}, Object.entries(arms).map(([name, number]) => `${ARMS[name] ?? name}: ${many(number, "candidate")}`).join(", "), ".")),
    Object.keys(row.signs ?? {}).length > 0 && h("details", {}, h("summary", {}, "Also known, but no part of the score"),
      h("dl.facts", {}, Object.entries(row.signs).map(([name, value]) => {
        const [label, says] = SIGNS[name] ?? [name, ""];
        return [h("dt", {}, `${label} ${figure(value)}`), h("dd.quiet.small", {}, says)];
      }))),
    cut.length > 0 && h("details", {}, h("summary", {}, `Left out: ${count(cut.length + more)}`),
      h("ul.cut", {}, cut.map((one) => h("li", {}, h("a", { href: to(`/item/${one.id}`) }, `#${one.id}`), ` ${figure(one.score)}, ${one.why}`)),
        more > 0 && h("li.quiet", {}, `and ${count(more)} more, with lower scores or too far from the question`))),
  ];
}
