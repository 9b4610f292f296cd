// A list of any length: only the rows in sight are in the page. Rows are of one height, fetched by
// pages when they come near; what is not there yet is drawn as an empty row.

import { fill, h } from "/core/dom.js";

const PAGE = 100, BEYOND = 12, KEPT = 40; // rows a page, rows drawn out of sight, pages kept

/**
 * `fetch(offset, limit)` gives `{rows, more}`; `draw(row, place)` gives an element.
 * `total` is how many there are where that is known; else it grows as pages come.
 */
export function list({ fetch, draw, height = 64, total = null, empty, label, signal, seen = () => {} }) {
  const pages = new Map(), asked = new Set(), fresh = [];
  const space = h("div.list-space"), rows = h("div.list-rows", { role: "list", "aria-label": label });
  const box = h("div.list", { tabindex: "0" }, space, rows);
  let known = total ?? 0, active = -1, waiting = false;

  const size = () => fresh.length + known;
  const at = (place) => (place < fresh.length ? fresh[place] : pages.get(Math.floor((place - fresh.length) / PAGE))?.[(place - fresh.length) % PAGE]);

  async function want(page) {
    if (asked.has(page) || pages.has(page)) return;
    asked.add(page);
    try {
      const { rows: found, more } = await fetch(page * PAGE, PAGE);
      pages.set(page, found);
      if (pages.size > KEPT) pages.delete(pages.keys().next().value);
      const end = page * PAGE + found.length;
      if (total === null) known = Math.max(known, end + (more ? 1 : 0));
      else if (!more) known = end;
      if (!size() && empty) fill(box, empty());
      else paint();
    } catch (error) {
      if (error.name !== "AbortError") box.dispatchEvent(new CustomEvent("failed", { detail: error, bubbles: true }));
    } finally {
      asked.delete(page);
    }
  }

  function paint() {
    waiting = false;
    if (signal?.aborted) return;
    space.style.height = `${size() * height}px`;
    const top = Math.max(0, Math.floor(box.scrollTop / height) - BEYOND);
    const end = Math.min(size(), Math.ceil((box.scrollTop + box.clientHeight) / height) + BEYOND);
    const drawn = [];
    for (let place = top; place < end; place++) {
      const row = at(place);
      if (row === undefined) want(Math.floor((place - fresh.length) / PAGE));
      const node = row === undefined ? h("div.row.missing") : draw(row, place);
      node.setAttribute("role", "listitem");
      node.setAttribute("aria-posinset", place + 1);
      node.setAttribute("aria-setsize", total === null ? -1 : size());
      node.dataset.place = place;
      node.classList.toggle("active", place === active);
      drawn.push(node);
    }
    rows.style.transform = `translateY(${top * height}px)`;
    rows.replaceChildren(...drawn);
    const first = Math.floor(box.scrollTop / height);
    if (at(first)) seen(at(first), first, size());
  }

  const repaint = () => waiting || ((waiting = true), requestAnimationFrame(paint));

  function step(by) {
    active = Math.max(0, Math.min(size() - 1, active + by));
    const y = active * height;
    if (y < box.scrollTop) box.scrollTop = y;
    if (y + height > box.scrollTop + box.clientHeight) box.scrollTop = y + height - box.clientHeight;
    paint();
    rows.querySelector(".active a")?.focus({ preventScroll: true });
  }

  box.addEventListener("scroll", repaint, { passive: true });
  box.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    step(by);
  });
  rows.addEventListener("focusin", (event) => {
    active = Number(event.target.closest("[data-place]")?.dataset.place ?? active);
  });
  new ResizeObserver(repaint).observe(box);
  want(0);
  return {
    node: box,
    /** Something new, above everything; whoever has scrolled away stays where they are. */
    add(row) {
      fresh.unshift(row);
      if (active >= 0) active += 1;
      if (box.scrollTop > height) box.scrollTop += height;
      if (box.contains(rows)) repaint();
      else fill(box, space, rows), paint();
    },
    repaint,
  };
}
