// A list of any length: only the rows in sight are in the page. Rows are of one height, fetched by
// pages when they come near; what is not there yet is drawn as an empty row.

import { fill, h } from "/core/dom.js";
import { steps } from "/core/row_keys.js";

const PAGE = 100, BEYOND = 12, KEPT = 40, AT_ONCE = 2; // rows a page, rows drawn out of sight, pages kept, requests
const TALLEST = 12e6; // px; browsers draw no element taller than about 17 million. Beyond, a pixel is several.
const QUIET = 150; // ms of no scrolling, after which the place is kept for coming back

/**
 * `fetch(offset, limit)` gives `{rows, more}`; `draw(row)` gives an element, which stays as long as
 * its row is in sight. `total` is how many there are where that is known; else it grows as pages come.
 * `group(row)` names what rows stand together under (a day): the first of each has data-group.
 * `seen(row, place, size)` is told the first row in sight, `away(n)` how many new rows are above it.
 */
export function list({ fetch, draw, height = 64, total = null, empty, label, signal, group, seen = () => {}, away = () => {} }) {
  const pages = new Map(), asked = new Set(), stale = new Set(), fresh = [];
  const space = h("div.list-space"), rows = h("div.list-rows", { role: "list", "aria-label": label });
  const trouble = h("div.list-failed", { role: "alert" });
  const box = h("div.list", { tabindex: "0", role: "group", "aria-label": label }, space, rows, trouble);
  const kept = history.state?.list === label ? history.state : null;
  let known = total ?? 0, active = kept?.active ?? -1, nodes = new Map();
  let waiting = false, broken = null, unseen = 0, needed = [], quiet = 0, placed = false, eager = false;

  const size = () => fresh.length + known;
  const pageOf = (place) => Math.floor((place - fresh.length) / PAGE);
  const at = (place) => (place < fresh.length ? fresh[place] : pages.get(pageOf(place))?.[(place - fresh.length) % PAGE]);

  // Where one looks, in pixels of the whole list, which may be more than an element can have.
  const most = () => Math.max(0, size() * height - box.clientHeight);
  const ratio = () => (size() * height > TALLEST ? most() / (TALLEST - box.clientHeight) : 1);
  const look = () => Math.min(box.scrollTop * ratio(), most());
  const lookAt = (y) => (box.scrollTop = Math.max(0, Math.min(y, most())) / ratio());

  // The pages in sight alone are asked for, so that a drag over everything asks for where it ends.
  function ask() {
    for (const page of needed) {
      if (asked.size >= AT_ONCE || broken) return;
      if (!asked.has(page) && (!pages.has(page) || stale.has(page))) want(page);
    }
  }

  async function want(page) {
    asked.add(page);
    stale.delete(page);
    try {
      const { rows: found, more } = await fetch(page * PAGE, PAGE);
      pages.set(page, found);
      for (const old of pages.keys()) if (pages.size > KEPT && !needed.includes(old)) pages.delete(old);
      const end = page * PAGE + found.length;
      known = more ? Math.max(known, end + 1) : end;
    } catch (error) {
      if (error.name !== "AbortError") broken = error;
    } finally {
      asked.delete(page);
    }
    paint();
  }

  function again() {
    broken = null;
    paint();
  }

  function paint() {
    waiting = false;
    if (signal?.aborted) return;
    if (!size() && empty && pages.has(0) && !broken) return fill(box, empty());
    if (!box.contains(rows)) fill(box, space, rows, trouble);
    space.style.height = `${Math.min(size() * height, TALLEST)}px`;
    if (!placed && box.clientHeight && size()) {
      placed = true;
      if (kept) box.scrollTop = kept.at;
    }
    const y = look(), first = Math.floor(y / height);
    const top = Math.max(0, first - BEYOND), end = Math.min(size(), Math.ceil((y + box.clientHeight) / height) + BEYOND);
    const drawn = new Map();
    needed = pages.size ? [] : [0];
    for (let place = top; place < end; place++) {
      const row = at(place), page = pageOf(place);
      if (page >= 0 && !needed.includes(page)) needed.push(page);
      const node = nodes.get(row ?? place) ?? (row ? draw(row) : h("div.row.missing"));
      node.setAttribute("role", "listitem");
      node.setAttribute("aria-posinset", place + 1);
      node.setAttribute("aria-setsize", total === null ? -1 : size());
      node.dataset.place = place;
      node.classList.toggle("active", place === active);
      if (group && row) grouped(node, group(row), place ? at(place - 1) : null);
      drawn.set(row ?? place, node);
    }
    settle(drawn);
    rows.style.transform = `translateY(${box.scrollTop - y + top * height}px)`;
    for (const page of needed) if (pages.has(page)) pages.set(page, taken(page)); // the last used are kept
    fill(trouble, broken && [broken.message, " ", broken.fix, " ", h("button", { on: { click: again } }, "Try again")]);
    if (y < height) unseen = 0;
    away(unseen);
    if (at(first)) seen(at(first), first, size());
    ask();
  }

  function taken(page) {
    const found = pages.get(page);
    pages.delete(page);
    return found;
  }

  function grouped(node, name, before) {
    const begins = before === null || (before !== undefined && group(before) !== name);
    if (begins) node.dataset.group = name;
    else delete node.dataset.group;
  }

  // What is still in sight stays the same element, so that it keeps the focus and is not read again.
  function settle(drawn) {
    const held = rows.contains(document.activeElement);
    const stay = new Set(drawn.values());
    for (const node of [...rows.children]) if (!stay.has(node)) node.remove();
    let next = rows.firstChild;
    for (const node of stay) {
      if (node === next) next = next.nextSibling;
      else rows.insertBefore(node, next);
    }
    nodes = drawn;
    if (held ? !rows.contains(document.activeElement) : eager && document.activeElement === box) hold();
  }

  // To the row one has gone to; where it is not there yet, the list keeps the focus until it is.
  function hold() {
    const link = rows.querySelector(".active a");
    eager = !link;
    (link ?? box).focus({ preventScroll: true });
  }

  const repaint = () => waiting || ((waiting = true), requestAnimationFrame(paint));

  function keep() {
    if (!signal?.aborted) history.replaceState({ list: label, at: box.scrollTop, active }, "");
  }

  function go(place) {
    if (!size()) return;
    active = Math.max(0, Math.min(size() - 1, place));
    const y = active * height;
    if (y < look()) lookAt(y);
    else if (y + height > look() + box.clientHeight) lookAt(y + height - box.clientHeight);
    paint();
    hold();
    keep();
  }

  box.addEventListener("scroll", () => {
    repaint();
    clearTimeout(quiet);
    quiet = setTimeout(keep, QUIET);
  }, { passive: true });
  steps(box, signal, (by) => go(by === "first" ? 0 : by === "last" ? size() - 1 : active + by));
  rows.addEventListener("focusin", (event) => {
    active = Number(event.target.closest("[data-place]")?.dataset.place ?? active);
    keep();
    repaint();
  });
  new ResizeObserver(repaint).observe(box);
  needed = [0];
  ask();
  return {
    node: box,
    /**
     * Something new. Above everything, unless `late`: then it belongs somewhere among what `fetch`
     * gives, and `above(row)` says whether that is above the row one looks at. Who has scrolled
     * away stays at what they look at.
     */
    add(row, { late = false, above = () => true } = {}) {
      const first = at(Math.floor(look() / height)), gone = look() >= height;
      if (late) {
        known += 1;
        for (const page of pages.keys()) stale.add(page);
      } else fresh.unshift(row);
      if (first === undefined || above(first)) {
        if (active >= 0) active += 1;
        if (gone) {
          space.style.height = `${Math.min(size() * height, TALLEST)}px`;
          lookAt(look() + height);
          unseen += 1;
        }
      }
      repaint();
    },
    /** To the newest, with the keyboard there. */
    top: () => go(0),
    repaint,
  };
}
