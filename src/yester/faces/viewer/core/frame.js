// What stands above every view: name, navigation, search, whether it is live, light or dark.

import { fill, h } from "/core/dom.js";
import { go, here, to } from "/core/router.js";
import { SECTIONS } from "/routes.js";

const PLACE = "yester.scheme", SCHEMES = ["auto", "light", "dark"];
const STATES = {
  live: ["live", "Connected: what is new comes in by itself."],
  waiting: ["not connected", "The server does not answer; it is asked again by itself. If it was stopped: yester ui"],
};

export function frame(top) {
  const live = h("span.live", { role: "status" });
  // Esc leaves the field as it was: emptied, it would not say any more what the hits below are of.
  const field = h("input", {
    type: "search", name: "query", placeholder: "Search (press /)", "aria-label": "Search", autocomplete: "off",
    on: { keydown: (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      field.value = asked();
    } },
  });
  const asked = () => (here().path === "/search" ? here().query.query ?? "" : "");
  const links = SECTIONS.map(([path, name]) => h("a", { href: to(path) }, name));
  const nav = h("nav", { "aria-label": "Views", id: "views" }, links);
  const menu = h("button.menu", { "aria-expanded": "false", "aria-controls": "views", on: { click: () => open(nav.classList.toggle("open")) } }, "Menu");
  const open = (is) => menu.setAttribute("aria-expanded", String(is));
  const state = (is) => {
    live.textContent = STATES[is][0];
    live.title = STATES[is][1];
    live.classList.toggle("on", is === "live");
  };
  state("waiting");
  fill(top,
    h("a.brand", { href: to("/") }, "yester"), menu, nav,
    h("form", { role: "search", on: { submit: (event) => {
      event.preventDefault();
      const { path, query } = here();
      field.blur(); // so that the next key is for the hits
      go("/search", { ...(path === "/search" ? query : {}), query: field.value.trim() });
    } } }, field),
    live, scheme());
  return {
    at(section) {
      nav.classList.remove("open");
      open(false);
      for (const [place, [path]] of SECTIONS.entries()) {
        if (path === section) links[place].setAttribute("aria-current", "page");
        else links[place].removeAttribute("aria-current");
      }
      field.value = asked();
      if (document.activeElement === field) field.blur();
    },
    state,
  };
}

function scheme() {
  let is = localStorage.getItem(PLACE) ?? "auto";
  const button = h("button.scheme", { on: { click: () => set(SCHEMES[(SCHEMES.indexOf(is) + 1) % SCHEMES.length]) } });
  function set(name) {
    is = SCHEMES.includes(name) ? name : "auto";
    localStorage.setItem(PLACE, is);
    if (is === "auto") delete document.documentElement.dataset.scheme;
    else document.documentElement.dataset.scheme = is;
    button.textContent = `colours: ${is}`;
    button.title = is === "auto" ? "Light or dark as your system has it; click for light" : `Always ${is}; click for ${is === "light" ? "dark" : "what your system has"}`;
  }
  set(is);
  return button;
}
