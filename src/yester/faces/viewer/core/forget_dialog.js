// Something is taken out for good: first it is shown what would go, and it is done on a second word.

import { post } from "/core/api.js";
import { h } from "/core/dom.js";
import { acting, asked, notify } from "/core/parts.js";
import { go } from "/core/router.js";

/** A button that forgets what this names: {ids} or {session}. */
export const forgetting = (what) => h("button.danger.small", { on: { click: acting(() => forget(what)) } }, "Forget for good");

/** Shows what would go, and does it on a second word. */
export async function forget(what, leave = () => go("/")) {
  const would = await post("/api/forget", what);
  const given = await asked("Forget for good?", [
    h("p", {}, would.message),
    would.derived > 0 && h("p", {}, `${would.derived} of these were made from the others.`),
    would.elsewhere.length > 0 && [h("p", {}, "Not yester's, and still there afterwards:"), h("ul.files", {}, would.elsewhere.map((one) => h("li", {}, h("code", {}, one.command))))],
  ], { does: "Forget for good", danger: true });
  if (!given) return;
  const done = await post("/api/forget", { ...what, yes: true });
  notify(done.message);
  leave();
}
