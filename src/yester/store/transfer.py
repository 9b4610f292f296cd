"""A store's rows into another, empty store, whichever engines the two have: under their ids, so
that whatever names an item names the same one there. The index is built anew from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, cast

from yester.errors import UsageError
from yester.store.contract import Store
from yester.store.rows.feed import FeedRows
from yester.store.rows.forgetting import ForgetRows

Progress = Callable[[str, int], object]  # what is copied, and how many rows have been

# In an order in which nothing points to what is not yet there.
_TABLES = (
    "project", "session", "item", "item_file", "item_concept", "item_evidence", "line_edit",
    "failure", "memory", "memory_change", "memory_gone", "event", "turn", "muted", "undistilled",
    "refined", "archived", "owed_start", "injection", "feedback", "spend", "answered", "source",
    "skipped", "project_join", "project_join_row", "vector", "vector_code", "unembedded",
    "roam_machine", "roam_segment", "roam_item", "roam_version",
    "share_item", "share_cursor",
)  # fmt: skip
_BATCH = 2_000
# What the other store knows of itself.
_OWN = ("tokenizer", "moves", "restores", "embedded")


def move_rows(source: Store, target: Store, progress: Progress) -> int:
    """Everything of the one, which is in a transaction, in the other, in one of its own; the number
    of items. Nobody writes to either meanwhile. UsageError where the other is not empty."""
    old, new = cast(FeedRows, source), cast(FeedRows, target)
    with target.transaction("index"):
        for table in ("item", "session", "spend", "source"):
            if new._first_value(f"SELECT count(*) FROM {table}"):
                raise UsageError(
                    f"{target.location} holds a memory already; name an empty one: another folder,"
                    " or ?tenant=NAME behind the address of a server"
                )
        for table in _TABLES:
            for number in _copy_table(old, new, table):
                progress(table, number)
        for key, value in list(old._db.execute("SELECT key, value FROM meta")):
            if key not in _OWN:
                new._set_meta(key, value)
        new._continue_numbers({table: old._last_number(table) for table in new._numbered_tables()})
        return new._rebuild_index()


def leave_store(source: Store) -> None:
    """Inside a transaction: whoever has it open writes to it no more, and looks where it is now."""
    cast(ForgetRows, source)._count_restore()


def _copy_table(old: FeedRows, new: FeedRows, table: str) -> Iterator[int]:
    # What only one engine has is made there: the project beside a vector's code by a trigger.
    known = old._columns_of(table)
    names = [name for name in new._columns_of(table) if name in known]
    if table == "line_edit" and "rowid" not in names:
        names.append("rowid")
    columns = ", ".join(f'"{name}"' for name in names)
    rows = iter(old._stream_rows(f"SELECT {columns} FROM {table}"))
    if table == "vector_code":
        at = names.index("code")
        rows = (_coded(row, at, old._read_code, new._stored_code) for row in rows)
    number = 0
    while batch := list(islice(rows, _BATCH)):
        new._insert_rows(table, names, batch)
        number += len(batch)
        yield number


def _coded(
    row: tuple[Any, ...], at: int, read: Callable[[Any], bytes], stored: Callable[[bytes], Any]
) -> tuple[Any, ...]:
    return (*row[:at], stored(read(row[at])), *row[at + 1 :])
