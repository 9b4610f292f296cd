"""What was committed behind a cursor, in SQLite: one writer, so ids are in the order of commits.

A cursor is the newest item, line of the ledger and line of the history of memories; without the
last, none of those.
"""

from __future__ import annotations

import re
from typing import Any

from yester.errors import FeedExpired
from yester.model import FeedLine, Injection, MemoryChange, Paging
from yester.store.sqlite import rows
from yester.store.sqlite.ledger import LedgerRows
from yester.store.sqlite.maintenance import explains_errors

_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})(?:-([0-9]{1,15}))?", re.ASCII)


class FeedRows(LedgerRows):
    """The part of `SqliteStore` that tells what is new."""

    _asked: Any = None  # the state of the file in which nothing was behind a cursor, and that one

    @explains_errors
    def feed(self, cursor: str = "", limit: int = 500) -> tuple[list[FeedLine], str]:
        state = self._first_row("PRAGMA data_version")[0], self._db.total_changes(), cursor
        if cursor and state == self._asked:
            return [], cursor
        end = self._feed_end()
        if not cursor:
            return [], _cursor_of(end)
        match = _CURSOR.fullmatch(cursor)
        place = [int(part or 0) for part in match.groups()] if match else [1 << 62]
        if any(mine > its for mine, its in zip(place, end, strict=False)):
            raise FeedExpired(f"{self._path}: the cursor {cursor!r} is of another store")
        lines: list[FeedLine] = []
        for at, found in enumerate(self._rows_behind(place, limit)):
            for id_, row in found:
                place[at] = id_
                lines.append(FeedLine(_cursor_of(place), row))
        if not lines:
            self._asked = state
        return lines, _cursor_of(place)

    def _feed_end(self) -> list[int]:
        row = self._first_row(
            "SELECT (SELECT coalesce(max(id), 0) FROM item),"
            " (SELECT coalesce(max(id), 0) FROM injection),"
            # Not the largest id there is: that one goes with its memory.
            " coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memory_change'), 0)"
        )
        return list(row)

    def _rows_behind(self, place: list[int], limit: int) -> list[list[tuple[int, Any]]]:
        items = self._db.execute(
            f"{rows.SELECT} WHERE i.id > ? ORDER BY i.id LIMIT ?", (place[0], limit)
        )
        shown = self.entries(Injection, {}, Paging(limit, oldest_first=True, after=place[1]))
        changes = self._db.execute(
            "SELECT c.id, c.item, i.status, coalesce(m.version, 0) FROM memory_change c"
            " JOIN item i ON i.id = c.item LEFT JOIN memory m ON m.item = c.item"
            " WHERE c.id > ? ORDER BY c.id LIMIT ?", (place[2], limit),
        )  # fmt: skip
        return [
            [(row[0], rows.item_of(row)) for row in items],
            [(line.id, line) for line in shown],
            [(row[0], MemoryChange._make(row)) for row in changes],
        ]


def _cursor_of(place: list[int]) -> str:
    return "-".join(map(str, place if place[2] else place[:2]))
