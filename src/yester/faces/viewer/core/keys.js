// The keyboard: / searches, g and a letter goes somewhere, ? says so, r loads the view again.

import { h } from "/core/dom.js";
import { copyLink } from "/core/palette.js";
import { go } from "/core/router.js";

const PLACES = {
  n: ["/", "now"], t: ["/timeline", "timeline"], f: ["/search", "search (find)"], s: ["/sessions", "sessions"], m: ["/memories", "memories"], r: ["/review", "review"],
  i: ["/shown", "injected"], x: ["/stats", "statistics"], p: ["/projects", "projects"], c: ["/settings", "settings"], d: ["/doctor", "doctor"],
};
const OTHERS = [["/", "search"], ["j k", "next and previous row"], ["n p", "next and previous prompt of a session"], ["Enter", "open"], ["Ctrl k", "go to or do anything"], ["x", "choose a memory in the list"], ["c", "copy the link to this row or view"], ["r", "load this view again"], ["Esc", "close, or leave a field"], ["?", "this"]];

const PATIENCE = 3000; // ms for the letter behind g

export function keys(again) {
  let going = -Infinity; // when g was pressed
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && typing) return typing.blur();
    if (typing || document.querySelector("dialog[open]")) return;
    if (event.timeStamp - going < PATIENCE && PLACES[event.key]) {
      going = -Infinity;
      return go(PLACES[event.key][0]);
    }
    going = event.key === "g" ? event.timeStamp : -Infinity;
    if (event.key === "/") {
      event.preventDefault();
      document.querySelector("header input[type=search]").select(); // what is typed next takes the place of what stood there
    } else if (event.key === "c") copyLink();
    else if (event.key === "r") again();
    else if (event.key === "?") help();
  });
}

export function help() {
  const rows = [...OTHERS, ...Object.entries(PLACES).map(([key, [, name]]) => [`g ${key}`, name])];
  const box = h("dialog.keys", { "aria-label": "Keys" },
    h("h2", {}, "Keys"),
    h("dl", {}, rows.map(([key, does]) => [h("dt", {}, key.split(" ").map((one) => h("kbd", {}, one))), h("dd", {}, does)])),
    h("form", { method: "dialog" }, h("button", { autofocus: true }, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}
