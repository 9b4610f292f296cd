"""Items by their ids, and by what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from yester.errors import StoreError
from yester.faces.http import shapes
from yester.faces.http.filters import make_filters
from yester.faces.http.ledger import use
from yester.faces.http.parameters import Batch, ItemAt, ItemsOf
from yester.faces.http.problem import Refusal
from yester.faces.http.rows import Rows
from yester.memory import Memory, join_names
from yester.model import Feedback, Paging

_MOST = 200  # items something was made of


def listed(memory: Memory, given: ItemsOf) -> shapes.Items:
    filters = make_filters(memory, given, kinds=tuple(given.kinds), types=tuple(given.types))
    oldest_first = given.order == "date_asc"
    every = replace(filters, echoes=True)
    found = memory.store.select(
        every, Paging(given.limit + 1, given.offset, oldest_first=oldest_first)
    )
    if not found:
        memory.check_names(filters)
    rows = Rows(memory.store, full=given.format == "full").of(found[: given.limit])
    return shapes.Items(
        count=len(rows), format=given.format, results=rows, more=len(found) > given.limit
    )


def one(memory: Memory, given: ItemAt) -> shapes.Item:
    for item in memory.store.get([given.id]):
        store = memory.store
        row, others = Rows(store, full=True).row(item), Rows(store)
        behind = distinct_items(store.evidence([given.id])).get(given.id, ())
        made = distinct_items(store.evidence([given.id], into=True)).get(given.id, ())
        return shapes.Item(
            item=row, use=use(store, [given.id])[0],
            sources=others.of(store.get(behind[:_MOST])), made=others.of(store.get(made[:_MOST])),
        )  # fmt: skip
    raise Refusal(
        404, f"no item #{given.id}", parameter="id", value=str(given.id), fix="a search shows ids"
    )


def distinct_items(
    evidence: Mapping[int, Sequence[tuple[int, int]]],
) -> dict[int, tuple[int, ...]]:
    """Each item on the other side of evidence once, in its order."""
    return {id_: tuple(dict.fromkeys(one for _, one in pairs)) for id_, pairs in evidence.items()}


def batch(memory: Memory, given: Batch) -> shapes.Items:
    ids = list(dict.fromkeys(int(str(one).removeprefix("#")) for one in given.ids))
    found = memory.store.get(ids)
    if not found:
        raise Refusal(
            404, f"no item {join_names([f'#{one}' for one in ids])}", parameter="ids",
            value=",".join(map(str, ids)), fix="a search shows ids",
        )  # fmt: skip
    if given.order != "given":
        found.sort(key=lambda item: (item.epoch, item.id), reverse=given.order == "date_desc")
    if given.format == "full":
        _note(memory, [item.id for item in found])
    rows = Rows(memory.store, full=given.format == "full").of(found)
    known = {item.id for item in found}
    return shapes.Items(
        count=len(rows), format=given.format, results=rows, more=False,
        missing=[one for one in ids if one not in known],
    )  # fmt: skip


def _note(memory: Memory, ids: list[int]) -> None:
    """Of what an agent was shown, somebody wanted the whole: it was of use. No reason to fail where
    nothing can be written."""
    store = memory.store
    shown = [id_ for id_, used in store.texts(ids).used.items() if used.shown or used.listed]
    if shown:
        with suppress(StoreError, OSError), store.transaction("ledger"):
            store.append([Feedback(id_, "fetched", memory.now) for id_ in shown])
