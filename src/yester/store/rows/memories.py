"""Structured memories in SQLite: what an item has no place for, and the history of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs

from yester import model
from yester.errors import StoreChanged
from yester.model import ANYTHING, EVERYTHING, Change, Filters, Memo, Paging, replace
from yester.store.rows import rows
from yester.store.rows.items import ItemRows

_LONGEST_SLUG = 80
_COLUMNS = ("slug", "scope", "path", "content", "version", "since", "reason")
_PUT = rows.put_sql("memory", ("item", *_COLUMNS), ["item"])
_SELECT = (
    f"SELECT {rows.READ}, {', '.join(f'm.{name}' for name in _COLUMNS)}"
    f"{rows.FROM} LEFT JOIN memory m ON m.item = i.id"
)


class MemoryRows(ItemRows):
    """The part of `SqliteStore` that knows structured memories."""

    # --- writing, inside a transaction -------------------------------------------------------

    def put_memo(self, entry: model.Entry, memo: Memo, change: Change) -> int:
        self._require_lock("memories")
        item = entry.item
        known = self._first_row(
            "SELECT i.id, coalesce(m.version, 0) FROM item i LEFT JOIN memory m ON m.item = i.id"
            " WHERE i.ref = ? AND i.kind = 'memory' AND i.source = ?", item.ref, item.source,
        )  # fmt: skip
        if (known or (0, 0)) != (memo.item.id, memo.version):
            raise StoreChanged(
                f"memory {memo.slug or item.ref!r} has been written by somebody else meanwhile; "
                "read it again and repeat the change"
            )
        self.put([entry], lifted=True)
        id_: int = self._known_row(item.source, "memory", item.ref)[0]
        values = structs.asdict(replace(memo, version=memo.version + 1))
        self._db.execute(_PUT, values | {"item": id_, "content": rows.json_text(memo.content)})
        act = change.act or self._last_number("memory_change") + 1
        self._append_row(replace(change, item=id_, act=act))
        return id_

    def put_memo_file(self, item: int, raw: bytes, hash_: str) -> None:
        self._db.execute(
            "UPDATE memory SET file = ?, file_hash = ?, file_version = version WHERE item = ?",
            (raw, hash_, item),
        )

    def _part_slugs(self, project: int, other: str) -> None:
        """Names of a project's memories that the other project (a key) has or had as well are made
        different, before the two become one."""
        own = self._db.execute(
            "SELECT m.item, m.slug FROM memory m JOIN item i ON i.id = m.item WHERE i.project = ?",
            (project,),
        )
        slugs = [(self.free_slug(other, str(slug)), item) for item, slug in own]
        self._db.executemany("UPDATE memory SET slug = ? WHERE item = ?", slugs)

    # --- reading -----------------------------------------------------------------------------

    def memos(
        self,
        filters: Filters = ANYTHING,
        page: Paging = EVERYTHING,
        *,
        ids: Sequence[int] | None = None,
        slug: str = "",
        tags: Sequence[str] = (),
    ) -> list[Memo]:
        statuses = () if ids is not None or slug else page.statuses
        condition = self._filter_items(filters, statuses)
        condition.require("i.kind = 'memory'")
        if ids is not None:
            condition.require("i.id IN (SELECT value FROM json_each(?))", str(list(ids)))
        if slug:
            condition.require("m.slug = ?", slug)
        for tag in tags:
            condition.require("EXISTS (SELECT 1 FROM json_each(i.tags, '$') WHERE value = ?)", tag)
        # Of one type there are few: sorting those is cheaper than walking all in order. The plus
        # keeps the planner from it.
        updated = "+i.updated" if filters.types or ids is not None else "i.updated"
        where = condition.page_clause(page, updated, "i.id")
        found = self._db.execute(_SELECT + where, condition.values)
        memos = [_memo_of(row) for row in found]
        if ids is None:
            return memos
        by_id = {memo.item.id: memo for memo in memos}
        return [by_id[id_] for id_ in ids if id_ in by_id]

    def memo_files(self, items: Sequence[int]) -> dict[int, model.MemoFile]:
        found = self._db.execute(
            "SELECT item, file, file_hash, file_version FROM memory"
            " WHERE file IS NOT NULL AND item IN (SELECT value FROM json_each(?))",
            (str(list(items)),),
        )
        return {item: model.MemoFile(*rest) for item, *rest in found}

    def free_slug(self, project: str, slug: str) -> str:
        number, free = 1, slug
        while self._first_row(
            "SELECT 1 FROM memory m JOIN item i ON i.id = m.item JOIN project p ON p.id = i.project"
            " WHERE m.slug = ?1 AND p.key = ?2"
            " UNION ALL SELECT 1 FROM memory_gone WHERE slug = ?1 AND project = ?2",
            free,
            project,
        ):
            number += 1
            free = f"{slug[: _LONGEST_SLUG - 8].rstrip('-')}-{number}"
        return free


def _memo_of(row: tuple[Any, ...]) -> Memo:
    item = rows.item_of(row)
    slug, scope, path, content, version, since, reason = row[-7:]
    if slug is None:  # an item that a program gave: a memory all the same
        return Memo(item, f"item-{item.id}", content={"text": item.body}, since=item.updated)
    return Memo(item, slug, scope, path, msgspec.json.decode(content), version, since, reason)
