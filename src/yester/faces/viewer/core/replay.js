// A transcript once more, entry by entry: → shows the next one, ← takes it back, Esc ends it.

import { h } from "/core/dom.js";

/** `node` holds the entries; the bar that is given stands above them. */
export function replay(node, signal) {
  let now = null;
  const says = h("span.quiet.small", { role: "status" });
  const button = (name, does, label) => h("button.small", { type: "button", "aria-label": label, on: { click: does } }, name);
  const start = button("▶ Replay", () => (now ? end() : step(1)), "Replay, entry by entry");
  const bar = h("span.replay", {}, start, button("←", () => step(-1), "Replay: one entry back"), button("→", () => step(1), "Replay: next entry"), says);

  const entries = () => [...node.querySelectorAll(".entry")].filter((one) => !one.closest("details .inside"));

  function step(by) {
    const all = entries();
    const at = now?.isConnected ? all.indexOf(now) + by : by > 0 ? firstInSight(all) : -1;
    if (at < 0) return end();
    if (at >= all.length) return;
    now?.classList.remove("now");
    now = all[at];
    now.classList.add("now");
    node.classList.add("replaying");
    const fold = by > 0 && now.querySelector("details");
    if (fold) fold.open = true;
    now.scrollIntoView({ block: "nearest" });
    now.focus({ preventScroll: true });
    says.textContent = "→ next, ← back, Esc ends";
    bar.classList.add("on");
    start.textContent = "■ End";
    start.setAttribute("aria-label", "End the replay");
  }

  function end() {
    now?.classList.remove("now");
    now = null;
    node.classList.remove("replaying");
    bar.classList.remove("on");
    says.textContent = "";
    start.textContent = "▶ Replay";
    start.setAttribute("aria-label", "Replay, entry by entry");
  }

  const firstInSight = (all) => {
    const held = all.indexOf(document.activeElement?.closest?.(".entry"));
    return held >= 0 ? held : Math.max(0, all.findIndex((one) => one.getBoundingClientRect().bottom > 160));
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.target.closest?.("input, textarea, select, dialog, pre, .wide")) return;
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape" && now) end();
    else if (by && (by > 0 || now)) {
      event.preventDefault();
      step(by);
    }
  }, { signal });
  return bar;
}
