// Is everything as it should be? Looking reads many files, so the page is there first.

import { get } from "/core/api.js";
import { copyable, ticked } from "/core/clipboard.js";
import { fill, h } from "/core/dom.js";
import { many } from "/core/format.js";
import { command } from "/core/parts.js";
import { wordOf } from "/core/values.js";

export const title = () => "Doctor";

// A word and a sign for each state; colour only adds to them.
const STATES = { bad: ["✗", "Problem"], warn: ["!", "Look at this"], ok: ["✓", "Fine"] };

const NAMES = { children: "programs the worker has started" };

export async function show({ signal }) {
  const found = h("div.doctor-found", { "aria-live": "polite" });
  const button = h("button", { on: { click: () => look() } }, "Look again");
  async function look() {
    button.disabled = true;
    found.setAttribute("aria-busy", "true");
    fill(found, h("p.quiet", {}, "Looking …"));
    try {
      const said = await get("/api/doctor", {}, signal);
      fill(found, verdict(said), areas(said.findings).map(([area, rows]) => group(area, rows)));
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(found, h("section.notice.bad", { role: "alert" }, h("h2", {}, "The doctor could not look"), h("p", {}, error.message), error.fix && h("p", {}, error.fix)));
    } finally {
      found.removeAttribute("aria-busy");
      button.disabled = false;
    }
  }
  look();
  return h("div.view.doctor", {},
    h("div.tools", {}, h("h1", {}, "Doctor"), button),
    h("p.quiet", {}, "Nothing is changed from here. What can be put right safely is put right in a terminal, by ", command("yester doctor --fix"), "."),
    found);
}

const of = (findings, state) => findings.filter((one) => one.state === state).length;

function verdict({ findings, note }) {
  const bad = of(findings, "bad"), warn = of(findings, "warn");
  const says = [bad && many(bad, "problem"), warn && `${many(warn, "thing")} to look at`, `${of(findings, "ok")} fine`].filter(Boolean).join(", ");
  return h(`section.notice.${bad ? "bad" : warn ? "warn" : "ok"}`, {},
    h("h2", {}, bad ? "Something is wrong" : warn ? "It works; some things deserve a look" : "Everything is as it should be"), h("p", {}, says, "."), note && h("p.quiet.small", {}, ticked(note)));
}

/** Areas in the order they came, those with something wrong first. */
function areas(findings) {
  const groups = new Map();
  for (const one of findings) groups.set(one.area, [...(groups.get(one.area) ?? []), one]);
  const worst = (rows) => (of(rows, "bad") ? 0 : of(rows, "warn") ? 1 : 2);
  return [...groups].sort(([, a], [, b]) => worst(a) - worst(b));
}

const group = (area, rows) => h("section", {}, h("h2", {}, area === "yester" ? area : wordOf(area)),
  h("ul.findings", {}, rows.map((one) => {
    const [sign, word] = STATES[one.state] ?? STATES.warn;
    return h(`li.finding.${one.state}`, {},
      h("span.state", {}, h("span", { "aria-hidden": "true" }, sign), " ", word),
      h("div", {}, one.name !== area && h("b", {}, NAMES[one.name] ?? one.name, ": "), ticked(one.text), one.fix && h("div.fix", {}, fix(one.fix))));
  })));

/** Sentences name a command behind a colon: "Run: yester doctor --fix, and …". */
function fix(text) {
  const found = /^(.*?: )((?:yester|claude|codex|sudo|unset|pip|apt)\b[^;]*?)((?:[;,] .*| \(.*| and .*|\.)?)$/s.exec(text);
  return found ? [found[1], copyable(found[2]), found[3]] : ticked(text);
}
