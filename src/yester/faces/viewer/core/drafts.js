// What was typed and not saved is never lost without a question: not by a link, not by back, not by
// closing the tab.

import { h } from "/core/dom.js";
import { asked } from "/core/parts.js";

const forms = new Set();

/** `dirty()` says whether there is something to lose, for as long as the view is there. */
export function guard(dirty, signal) {
  forms.add(dirty);
  signal.addEventListener("abort", () => forms.delete(dirty));
}

export const unsaved = () => [...forms].some((dirty) => dirty());

/** Whether the view may go. */
export async function mayLeave() {
  if (!unsaved()) return true;
  const sure = await asked("Leave without saving?", h("p", {}, "What you typed here is not saved yet."), { does: "Leave", danger: true, not: "Stay" });
  if (sure) forms.clear();
  return Boolean(sure);
}

addEventListener("beforeunload", (event) => unsaved() && event.preventDefault());
