"""Structured memories in SQLite: what an item has no place for, and the history of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from yester.errors import StoreChanged
from yester.model import Change, Filters, Memo
from yester.store.contract import Entry, MemoFile, Put
from yester.store.sqlite import rows
from yester.store.sqlite.maintenance import explains

_LONGEST_SLUG = 80
_SELECT = (
    f"SELECT {rows.READ}, m.slug, m.scope, m.path, m.content, m.version, m.since, m.reason"
    f"{rows.FROM} LEFT JOIN memory m ON m.item = i.id"
)
_CHANGE = "item, epoch, who, what, why, before, after, act, id"


class MemoryRows:
    """The part of `SqliteStore` that knows structured memories."""

    _db: apsw.Connection

    # --- writing, inside a transaction -------------------------------------------------------

    def put_memo(self, entry: Entry, memo: Memo, change: Change) -> int:
        item = entry.item
        known = self._one(
            "SELECT i.id, coalesce(m.version, 0) FROM item i LEFT JOIN memory m ON m.item = i.id"
            " WHERE i.ref = ? AND i.kind = 'memory' AND i.source = ?", item.ref, item.source,
        )  # fmt: skip
        if (known or (0, 0)) != (memo.item.id, memo.version):
            raise StoreChanged(
                f"memory {memo.slug or item.ref!r} has been written by somebody else meanwhile; "
                "read it again and repeat the change"
            )
        self._put([entry], lifted=True)
        id_: int = self._one(
            "SELECT id FROM item WHERE ref = ? AND kind = 'memory' AND source = ?",
            item.ref, item.source,
        )[0]  # fmt: skip
        self._db.execute(
            "INSERT INTO memory(item, slug, scope, path, content, version, since, reason)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(item) DO UPDATE SET"
            " slug = excluded.slug, scope = excluded.scope, path = excluded.path,"
            " content = excluded.content, version = excluded.version, since = excluded.since,"
            " reason = excluded.reason",
            (id_, memo.slug, memo.scope, memo.path, _json(memo.content), memo.version + 1,
             memo.since, memo.reason),
        )  # fmt: skip
        self._db.execute("DELETE FROM memory_tag WHERE item = ?", (id_,))
        if item.status == "active":
            self._db.executemany(
                "INSERT OR IGNORE INTO memory_tag(tag, item) VALUES (?, ?)",
                [(tag, id_) for tag in item.tags],
            )
        self._db.execute(
            "INSERT INTO memory_change(act, item, epoch, who, what, why, before, after)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (change.act or self.new_act(), id_, change.epoch, change.who, change.what, change.why,
             _json(change.before), _json(change.after)),
        )  # fmt: skip
        return id_

    def put_file(self, item: int, raw: bytes, hash_: str) -> None:
        self._db.execute(
            "UPDATE memory SET file = ?, file_hash = ?, file_version = version WHERE item = ?",
            (raw, hash_, item),
        )

    def drop_memo(self, item: int, epoch: int, why: str) -> None:
        row = self._one(
            "SELECT i.source, i.ref, coalesce(m.slug, ''), i.type, p.key, i.project, i.kind"
            " FROM item i JOIN project p ON p.id = i.project LEFT JOIN memory m ON m.item = i.id"
            " WHERE i.id = ? AND i.kind = 'memory'", item,
        )  # fmt: skip
        if row is None:
            return
        self._db.execute(
            "INSERT OR REPLACE INTO memory_gone VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*row[:5], epoch, why),
        )
        self._drop_item(item, row[5], row[6])

    def _part_slugs(self, project: int, other: str) -> None:
        """Names of a project's memories that the other project (a key) has as well are made
        different, before the two become one."""
        twins = self._db.execute(
            "SELECT m.item, m.slug FROM memory m JOIN item i ON i.id = m.item"
            " WHERE i.project = ? AND m.slug IN (SELECT o.slug FROM memory o"
            " JOIN item j ON j.id = o.item JOIN project p ON p.id = j.project WHERE p.key = ?)",
            (project, other),
        ).fetchall()
        for item, slug in twins:
            self._db.execute(
                "UPDATE memory SET slug = ? WHERE item = ?",
                (self.free_slug(other, str(slug)), item),
            )

    def new_act(self) -> int:
        row = self._one("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'memory_change'")
        return int(row[0]) if row else 1

    # --- reading -----------------------------------------------------------------------------

    @explains
    def memos(self, ids: Sequence[int]) -> list[Memo]:
        found = {
            row[0]: _memo(row)
            for row in self._db.execute(
                f"{_SELECT} WHERE i.kind = 'memory' AND i.id IN (SELECT value FROM json_each(?))",
                (str(list(ids)),),
            )
        }
        return [found[id_] for id_ in ids if id_ in found]

    @explains
    def memories(
        self,
        filters: Filters,
        statuses: Sequence[str] = ("active",),
        tags: Sequence[str] = (),
        limit: int = -1,
        offset: int = 0,
    ) -> list[Memo]:
        among = f"i.kind = 'memory' AND i.status IN ({','.join('?' * len(statuses))})"
        condition, args = rows.where(filters, *self._filter_ids(filters), status=among)
        for _ in tags:
            condition += " AND EXISTS (SELECT 1 FROM json_each(i.tags) WHERE value = ?)"
        # Of one type there are few: sorting those is cheaper than walking all in order. The plus
        # keeps the planner from it.
        updated = "+i.updated" if filters.types else "i.updated"
        found = self._db.execute(
            f"{_SELECT} WHERE {condition} ORDER BY {updated} DESC, i.id DESC LIMIT ? OFFSET ?",
            (*statuses, *args, *tags, limit, offset),
        )
        return [_memo(row) for row in found]

    @explains
    def memories_named(self, slug: str) -> list[Memo]:
        found = self._db.execute(f"{_SELECT} WHERE m.slug = ? ORDER BY i.id", (slug,))
        return [_memo(row) for row in found]

    @explains
    def files(self, items: Sequence[int]) -> dict[int, MemoFile]:
        found = self._db.execute(
            "SELECT item, file, file_hash, file_version FROM memory"
            " WHERE file IS NOT NULL AND item IN (SELECT value FROM json_each(?))",
            (str(list(items)),),
        )
        return {item: MemoFile(*rest) for item, *rest in found}

    @explains
    def free_slug(self, project: str, slug: str) -> str:
        number, free = 1, slug
        while self._one(
            "SELECT 1 FROM memory m JOIN item i ON i.id = m.item JOIN project p ON p.id = i.project"
            " WHERE m.slug = ?1 AND p.key = ?2"
            " UNION ALL SELECT 1 FROM memory_gone WHERE slug = ?1 AND project = ?2",
            free, project,
        ):  # fmt: skip
            number += 1
            free = f"{slug[: _LONGEST_SLUG - 8].rstrip('-')}-{number}"
        return free

    @explains
    def replaced_by(self, item: int) -> int:
        row = self._one(
            "SELECT id FROM item WHERE supersedes = ? AND supersedes <> 0 AND kind = 'memory'"
            " ORDER BY id DESC LIMIT 1", item,
        )  # fmt: skip
        return int(row[0]) if row else 0

    @explains
    def changes(self, item: int = 0, act: int = 0, limit: int = -1) -> list[Change]:
        wanted = [(name, value) for name, value in (("item", item), ("act", act)) if value]
        condition = " AND ".join(["1", *(f"{name} = ?" for name, _ in wanted)])
        found = self._db.execute(
            f"SELECT {_CHANGE} FROM memory_change WHERE {condition} ORDER BY id DESC LIMIT ?",
            (*(value for _, value in wanted), limit),
        )
        return [Change(*row[:5], *map(msgspec.json.decode, row[5:7]), *row[7:]) for row in found]

    @explains
    def gone(self, source: str, ref: str) -> bool:
        return self._is_gone(source, ref)

    def _is_gone(self, source: str, ref: str) -> bool:
        return (
            self._one("SELECT 1 FROM memory_gone WHERE source = ? AND ref = ?", source, ref)
            is not None
        )

    def _stays(self, id_: int, source: str, ref: str) -> bool:
        """Is this a memory that only `put_memo` may write, or none that may come back?"""
        if not id_:
            return self._is_gone(source, ref)
        return (
            self._one(
                "SELECT 1 FROM item i WHERE i.id = ? AND (i.status <> 'active'"
                " OR EXISTS (SELECT 1 FROM memory m WHERE m.item = i.id))", id_,
            )
            is not None
        )  # fmt: skip

    def _one(self, sql: str, *args: object) -> Any:
        raise NotImplementedError

    def _put(self, entries: Sequence[Entry], lifted: bool = False) -> Put:
        raise NotImplementedError

    def _drop_item(self, id_: int, project: int, kind: str) -> None:
        raise NotImplementedError

    def _filter_ids(self, filters: Filters) -> tuple[list[int], list[int]]:
        raise NotImplementedError


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _memo(row: tuple[Any, ...]) -> Memo:
    item = rows.item(row)
    slug, scope, path, content, version, since, reason = row[-7:]
    if slug is None:  # an item that a program gave: a memory all the same
        return Memo(item, f"item-{item.id}", content={"text": item.body}, since=item.updated)
    return Memo(item, slug, scope, path, msgspec.json.decode(content), version, since, reason)
