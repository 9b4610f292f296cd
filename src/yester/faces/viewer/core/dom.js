// Elements from data. Text is only ever set as text: nothing stored can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** `h("a.row", {href: "#/", on: {click}}, "text", child, [more], null)` */
export function h(name, props = {}, ...children) {
  return filled(document.createElement(tag(name)), name, props, children);
}

/** The same for a drawing. */
export function svg(name, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag(name)), name, props, children);
}

const tag = (name) => name.split(".")[0] || "div";

function filled(node, name, props, children) {
  const classes = name.split(".").slice(1);
  if (classes.length) node.classList.add(...classes);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") {
      for (const [event, does] of Object.entries(value)) node.addEventListener(event, does);
    } else if (key === "style") {
      // Through the object model: the page's policy refuses style attributes.
      for (const [property, set] of Object.entries(value)) node.style.setProperty(property, set);
    } else if (key === "href") node.setAttribute("href", safe(value));
    else if (key === "value" || key === "checked" || key === "selected") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(shown(String(child))));
  }
  return node;
}

/** Characters that turn text round or hide in it, as marks. Joiners make words and emoji: they stay. */
const HIDDEN = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const shown = (text) => text.replace(HIDDEN, (one) => `⟨U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

export const fill = (node, ...children) => add((node.replaceChildren(), node), children);

/** Links lead inside the viewer and nowhere else, whatever was stored. */
const safe = (link) => (/^#|^\/(?!\/)/.test(link) ? link : "#/");
