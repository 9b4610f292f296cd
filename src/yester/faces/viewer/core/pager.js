// Pages of rows of any height, around any place of something long. More comes in at both ends as one
// gets there, and what is far away is let go, so that thousands of rows never stand in the page.

import { fill, h } from "/core/dom.js";

const MOST = 8, FAR = 2100; // pages in the page; px out of sight from which one may go

/**
 * `fetch(page)` gives `{more, …}`, `draw(page, what it gave, block before)` gives an element.
 * `scroller` is what scrolls; the pager keeps what is looked at where it is.
 */
export function pager({ fetch, draw, scroller, signal, failed, names = ["Earlier", "Later"] }) {
  const blocks = h("div.reel-blocks"), held = new Map(); // page → {block, more}
  const earlier = h("button.reel-more", { hidden: true, on: { click: () => grow(-1) } }, names[0]);
  const later = h("button.reel-more", { hidden: true, on: { click: () => grow(1) } }, names[1]);
  const node = h("div.reel", {}, earlier, blocks, later);
  const near = new IntersectionObserver((seen) => {
    for (const one of seen) if (one.isIntersecting && !one.target.hidden) grow(one.target === earlier ? -1 : 1);
  }, { root: scroller, rootMargin: "700px 0px" });
  signal.addEventListener("abort", () => near.disconnect());
  let busy = null;

  const numbers = () => [...held.keys()].sort((a, b) => a - b);
  const first = () => numbers()[0], last = () => numbers().at(-1);

  async function load(page) {
    const found = await fetch(page), before = held.get(page);
    const block = draw(page, found, before?.block), height = scroller.scrollHeight;
    if (before) before.block.replaceWith(block);
    else if (held.size && page < first()) {
      blocks.prepend(block);
      scroller.scrollTop += scroller.scrollHeight - height;
    } else blocks.append(block);
    held.set(page, { block, more: found.more });
  }

  function ends() {
    earlier.hidden = !held.size || first() === 0;
    later.hidden = !held.size || !held.get(last()).more;
    for (const button of [earlier, later]) {
      near.unobserve(button); // observing anew asks whether it is still in sight
      if (node.isConnected && !button.hidden) near.observe(button);
    }
  }

  /** One thing at a time: two that change the height would each spoil the other's measure. */
  async function alone(does) {
    while (busy) await busy;
    busy = does().catch((error) => error.name === "AbortError" || failed(error)).finally(() => (busy = null));
    await busy;
  }

  const grow = (by) => alone(async () => {
    if (!held.size || (by < 0 ? first() === 0 : !held.get(last()).more)) return;
    await load(by < 0 ? first() - 1 : last() + 1);
    if (held.size > MOST) drop(by < 0 ? last() : first());
    ends();
  });

  function drop(page) {
    const { block } = held.get(page), above = page === first(), height = scroller.scrollHeight;
    if (block.contains(document.activeElement)) return; // somebody is in there
    // Low pages all stand near what is in sight: one that went would be wanted again at once.
    const { top, bottom } = block.getBoundingClientRect(), sight = scroller.getBoundingClientRect();
    if (above ? bottom > sight.top - FAR : top < sight.bottom + FAR) return;
    block.remove();
    held.delete(page);
    if (above) scroller.scrollTop -= height - scroller.scrollHeight;
  }

  return {
    node,
    /** Begin at this page. */
    open: (page) => alone(async () => {
      held.clear();
      fill(blocks);
      await load(page);
      ends();
    }),
    /** A page once more, where it is held. */
    redraw: (page) => alone(async () => {
      if (held.has(page)) await load(page);
    }),
    /** The pager stands in the document now. */
    settle: ends,
    /** Something new may be at the end; only if the end is here. Whoever is at the end stays there. */
    refresh: () => alone(async () => {
      if (!held.size || held.get(last()).more) return;
      const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
      await load(last());
      if (below < 60) scroller.scrollTop = scroller.scrollHeight;
      ends();
    }),
  };
}
