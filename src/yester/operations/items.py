"""Items by their ids, and by what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from yester.errors import NotFound, StoreError
from yester.memory import Memory, join_names
from yester.model import Feedback, Paging, replace
from yester.operations.ledger import Use, describe_use
from yester.operations.request import (
    MOST_IDS,
    Count,
    Form,
    FormattedRequest,
    Id,
    ItemRequest,
    Kinds,
    Names,
    Offset,
    Request,
    Shape,
    make_filters,
)
from yester.operations.rows import Row, Rows
from yester.store.contract import Store

_MOST = 200  # items something was made of
_PATIENCE = 0.2  # seconds for another writer


class ItemsRequest(FormattedRequest, kw_only=True):
    limit: Count = 20
    offset: Offset = 0
    kinds: Kinds = field(default_factory=list)
    types: Annotated[Names, Meta(description="Only these types.")] = field(default=[], name="type")
    order: Annotated[Literal["date_desc", "date_asc"], Meta(description="In which order.")] = field(
        default="date_desc", name="orderBy"
    )


class BatchRequest(Request, kw_only=True):
    ids: Annotated[
        list[Id | Annotated[str, Meta(pattern="^#?[0-9]{1,15}$", examples=["#12"])]],
        Meta(min_length=1, max_length=MOST_IDS, description='12, "12" or "#12".'),
    ]
    format: Shape = "full"
    order: Annotated[
        Literal["given", "date_desc", "date_asc"], Meta(description="In which order.")
    ] = field(default="given", name="orderBy")


class Item(Struct, kw_only=True):
    item: Row
    use: Use
    sources: Annotated[list[Row], Meta(description="What it was made of.")]
    made: Annotated[list[Row], Meta(description="What was made of it.")]


class Items(Struct, kw_only=True):
    count: int
    format: Form
    results: list[Row]
    more: bool
    missing: list[int] | UnsetType = UNSET


def list_items(memory: Memory, request: ItemsRequest) -> Items:
    """Items by what they are, the newest first."""
    filters = make_filters(memory, request, kinds=tuple(request.kinds), types=tuple(request.types))
    page = Paging(request.limit + 1, request.offset, oldest_first=request.order == "date_asc")
    found = memory.reading.select(replace(filters, echoes=True), page)
    if not found:
        memory.check_names(filters)
    rows = Rows(memory.reading, full=request.format == "full")
    results = rows.item_rows(found[: request.limit])
    more = len(found) > request.limit
    return Items(count=len(results), format=request.format, results=results, more=more)


def show_item(memory: Memory, request: ItemRequest) -> Item:
    """One item whole, and what is known of its use."""
    store, id_ = memory.reading, request.id
    for item in store.get([id_]):
        others = Rows(store)
        sources = distinct_items(store.evidence([id_])).get(id_, ())
        made = distinct_items(store.evidence([id_], into=True)).get(id_, ())
        return Item(
            item=Rows(store, full=True).item_row(item),
            use=describe_use(store, [id_])[0],
            sources=others.item_rows(store.get(sources[:_MOST])),
            made=others.item_rows(store.get(made[:_MOST])),
        )
    raise NotFound(f"no item #{id_}", "a search shows ids", parameter="id", value=str(id_))


def distinct_items(
    evidence: Mapping[int, Sequence[tuple[int, int]]],
) -> dict[int, tuple[int, ...]]:
    """Each item on the other side of evidence once, in its order."""
    return {id_: tuple(dict.fromkeys(one for _, one in pairs)) for id_, pairs in evidence.items()}


def show_items(memory: Memory, request: BatchRequest) -> Items:
    """Whole items by their ids."""
    ids = list(dict.fromkeys(int(str(one).removeprefix("#")) for one in request.ids))
    found = memory.reading.get(ids)
    if not found:
        raise NotFound(
            f"no item {join_names([f'#{one}' for one in ids])}", "a search shows ids",
            parameter="ids", value=",".join(map(str, ids)),
        )  # fmt: skip
    if request.order != "given":
        found.sort(key=lambda item: (item.epoch, item.id), reverse=request.order == "date_desc")
    if request.format == "full":
        record_fetched(memory.reading, [item.id for item in found], memory.now)
    results = Rows(memory.reading, full=request.format == "full").item_rows(found)
    known = {item.id for item in found}
    return Items(
        count=len(results), format=request.format, results=results, more=False,
        missing=[one for one in ids if one not in known],
    )  # fmt: skip


def record_fetched(store: Store, ids: Sequence[int], now: int, session: int = 0) -> None:
    """Of what an agent was shown, somebody wanted the whole: it was of use. Not worth waiting for,
    and no reason to fail where nothing can be written."""
    shown = [id_ for id_, used in store.texts(ids).used.items() if used.shown or used.listed]
    if shown:
        with suppress(StoreError, OSError), store.transaction("ledger", patience=_PATIENCE):
            store.append([Feedback(id_, "fetched", now, session) for id_ in shown])
