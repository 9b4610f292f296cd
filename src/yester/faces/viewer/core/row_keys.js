// The keyboard in rows: j and k from anywhere in the view, arrows and the like inside the rows.

const ANYWHERE = { j: 1, k: -1 };
const INSIDE = { ...ANYWHERE, ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: "first", End: "last" };

/** Calls `step(1 | -1 | 10 | -10 | "first" | "last")` for keys meant for the rows in `box`. */
export function steps(box, signal, step) {
  box.dataset.steps = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || !box.isConnected) return;
    if (event.target.closest("input, textarea, select, [contenteditable], dialog")) return;
    const own = event.target.closest("[data-steps]");
    const by = own === box ? INSIDE[event.key] : own ? undefined : ANYWHERE[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
  }, { signal });
}

/** The same for rows that are all in the page: the focus goes from one `a.title` to the next. */
export function stepping(box, signal) {
  steps(box, signal, (by) => {
    const all = [...box.querySelectorAll("a.title")].filter((one) => !one.closest("[hidden]"));
    const now = all.indexOf(document.activeElement?.closest(".row, .hit, tr")?.querySelector("a.title"));
    const next = by === "first" ? 0 : by === "last" ? all.length - 1 : now + by;
    all[Math.max(0, Math.min(all.length - 1, next))]?.focus();
  });
  return box;
}
