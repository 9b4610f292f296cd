"""Vectors for what is stored: which texts of an item, in what order, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from yester.model import Item
from yester.store.contract import Store
from yester.text.embed import Embedder, split_parts

BATCH = 16  # items between two commits


def item_parts(item: Item) -> list[str]:
    """The sub-documents of an item: title and text in pieces, each fact, each section."""
    text = "\n".join(filter(None, (item.title, item.subtitle, item.body)))
    found = split_parts(text)
    for more in (*item.facts, *item.sections.values()):
        found += split_parts(more, most_parts=1)
    return list(dict.fromkeys(found))


def embed_waiting(
    store: Store, embedder: Embedder, stop: Callable[[], bool] = lambda: False, since: int = 0
) -> Iterator[int]:
    """Work off what waits, newest first; yields the number of items after each commit.

    `since` (ms): only what was stored since then.
    """
    if store.unembedded(1, since, embedder.sha) is None:
        with store.transaction("items"):
            store.use_model(embedder.sha)
    while not stop():
        items = store.get(store.unembedded(BATCH, since) or ())
        if not items:
            return
        texts = [item_parts(item) for item in items]
        vectors = embedder.embed([text for one in texts for text in one])
        at = 0
        with store.transaction("items"):
            now = {item.id: item for item in store.get([item.id for item in items])}
            for item, one in zip(items, texts, strict=True):
                if now.get(item.id) == item:  # else it was written anew meanwhile, and waits again
                    store.put_vectors(item.id, embedder.sha, list(vectors[at : at + len(one)]))
                at += len(one)
        yield len(items)
