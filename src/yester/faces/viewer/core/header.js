// What stands above every view: name, navigation, search, whether it is live, light or dark.

import { fill, h } from "/core/dom.js";
import { here, to } from "/core/router.js";
import { SECTIONS } from "/routes.js";

const PLACE = "yester.scheme", SCHEMES = ["auto", "light", "dark"];
const PAUSE = 80, LEAST = 2; // ms without a letter until it is searched; letters that leave another view
const STATES = {
  live: ["live", "Connected: what is new comes in by itself."],
  waiting: ["not connected", "The server does not answer; it is asked again by itself. If it was stopped: yester ui"],
};

/** `open()` shows all there is to go to or do. */
export function frame(top, openPalette) {
  const commands = h("button.palette-button", { title: "Go to or do anything", on: { click: () => openPalette() } }, /Mac/.test(navigator.userAgent) ? "⌘K" : "Ctrl K");
  const colours = scheme();
  const live = h("span.live", { role: "status" });
  let typed = 0, sent = ""; // a search that waits for the next letter; the words it was last sent with
  const search = (path, query) => to("/search", { ...(path === "/search" ? query : {}), query: field.value.trim(), explain: "", n: "" });
  // Esc leaves the field as it was: emptied, it would not say any more what the hits below are of.
  const field = h("input", {
    type: "search", name: "query", placeholder: "Search (press /)", "aria-label": "Search", autocomplete: "off",
    on: { input: () => {
      clearTimeout(typed);
      typed = setTimeout(() => {
        const { path, query } = here(), text = field.value.trim();
        if (text === (asked() || "") || (path !== "/search" && text.length < LEAST)) return;
        sent = text;
        // While one types there is one step in the history, not one a letter.
        if (path === "/search") location.replace(search(path, query));
        else location.hash = search(path, query);
      }, PAUSE);
    }, keydown: (event) => {
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
      clearTimeout(typed);
      const { path, query } = here();
      field.blur(); // so that the next key is for the hits
      if (path !== "/search" || asked() !== field.value.trim()) location.hash = search(path, query);
    } } }, field),
    commands, live, colours.button);
  return {
    at(section) {
      nav.classList.remove("open");
      open(false);
      for (const [place, [path]] of SECTIONS.entries()) {
        if (path === section) links[place].setAttribute("aria-current", "page");
        else links[place].removeAttribute("aria-current");
      }
      // Who types on sees the hits of what stood there a moment ago; an address from elsewhere brings its own words.
      if (document.activeElement === field && here().path === "/search" && asked() === sent) return;
      field.value = sent = asked();
      if (document.activeElement === field) field.blur();
    },
    state,
    changeColours: colours.change,
  };
}

function scheme() {
  let is = localStorage.getItem(PLACE) ?? "auto";
  const change = () => set(SCHEMES[(SCHEMES.indexOf(is) + 1) % SCHEMES.length]);
  const button = h("button.scheme", { on: { click: change } });
  function set(name) {
    is = SCHEMES.includes(name) ? name : "auto";
    localStorage.setItem(PLACE, is);
    if (is === "auto") delete document.documentElement.dataset.scheme;
    else document.documentElement.dataset.scheme = is;
    button.textContent = `◐ ${is}`;
    button.setAttribute("aria-label", `Colours: ${is}`);
    button.title = is === "auto" ? "Light or dark as your system has it; click for light" : `Always ${is}; click for ${is === "light" ? "dark" : "what your system has"}`;
  }
  set(is);
  return { button, change };
}
