// What stands above every view: name, navigation, search, whether it is live, light or dark.

import { fill, h } from "/core/dom.js";
import { go, here, to } from "/core/router.js";
import { SECTIONS } from "/routes.js";

const PLACE = "yester.scheme", SCHEMES = ["auto", "light", "dark"];

export function frame(top) {
  const live = h("span.live", { role: "status" }, "waiting");
  const field = h("input", {
    type: "search", name: "query", placeholder: "Search (press /)", "aria-label": "Search", autocomplete: "off",
  });
  const links = SECTIONS.map(([path, name]) => h("a", { href: to(path) }, name));
  const nav = h("nav", { "aria-label": "Views", id: "views" }, links);
  const menu = h("button.menu", { "aria-expanded": "false", "aria-controls": "views", on: { click: () => open(nav.classList.toggle("open")) } }, "Menu");
  const open = (is) => menu.setAttribute("aria-expanded", String(is));
  fill(top,
    h("a.brand", { href: to("/") }, "yester"), menu, nav,
    h("form", { role: "search", on: { submit: (event) => {
      event.preventDefault();
      const { path, query } = here();
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
      field.value = here().query.query ?? "";
    },
    state(is) {
      live.textContent = is;
      live.classList.toggle("on", is === "live");
    },
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
    button.textContent = is;
    button.setAttribute("aria-label", `Colours: ${is}`);
  }
  set(is);
  return button;
}
