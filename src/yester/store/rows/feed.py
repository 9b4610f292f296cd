"""What is new in a store, and its index made anew."""

from __future__ import annotations

import re
from collections.abc import Iterable

from yester.errors import FeedExpired
from yester.model import FeedLine, Injection, Item, MemoryChange, Paging
from yester.store.rows import rows
from yester.store.rows.memories import MemoryRows
from yester.text import terms as tokenizer

# A cursor is the newest item, line of the ledger and line of the history of memories; without the
# last, none of those. There is one writer, so ids are in the order of commits.
_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})(?:-([0-9]{1,15}))?", re.ASCII)


class FeedRows(MemoryRows):
    """The part of a store that tells what has been written since."""

    @property
    def location(self) -> str:
        raise NotImplementedError

    def _rebuild_index(self) -> int:
        """The whole index anew from the rows; the number of items."""
        self._index.clear_index()
        number = 0
        for values in self._db.execute(rows.SELECT + " WHERE i.status = 'active' ORDER BY i.id"):
            self._index_again(rows.item_of(values), values[-2], values[-1])
            number += 1
        self._index.write_batch()
        self._set_meta("tokenizer", str(tokenizer.VERSION))
        return number

    def stale(self) -> str:
        have = self._get_meta("tokenizer") or "none"
        if have == str(tokenizer.VERSION):
            return ""
        return f"indexed with tokenizer version {have}, this yester has {tokenizer.VERSION}"

    def feed(self, cursor: str = "", limit: int = 500) -> tuple[list[FeedLine], str]:
        end = self._feed_end()
        if not cursor:
            return [], _cursor_of(end)
        match = _CURSOR.fullmatch(cursor)
        place = [int(part or 0) for part in match.groups()] if match else [1 << 62]
        if any(mine > its for mine, its in zip(place, end, strict=False)):
            raise FeedExpired(f"{self.location}: the cursor {cursor!r} is of another store")
        items = self._read_items(" WHERE i.id > ? ORDER BY i.id LIMIT ?", place[0], limit)
        shown = self.entries(Injection, {}, Paging(limit, oldest_first=True, behind=(place[1],)))
        changes = self._db.execute(
            "SELECT c.id, c.item, i.status, coalesce(m.version, 0) FROM memory_change c"
            " JOIN item i ON i.id = c.item LEFT JOIN memory m ON m.item = c.item"
            " WHERE c.id > ? ORDER BY c.id LIMIT ?",
            (place[2], limit),
        )
        lines: list[FeedLine] = []
        behind: list[Iterable[Item | Injection | MemoryChange]]
        behind = [items, shown, map(MemoryChange._make, changes)]
        for at, found in enumerate(behind):
            for row in found:
                place[at] = row.id
                lines.append(FeedLine(_cursor_of(place), row))
        return lines, _cursor_of(place)

    def _feed_end(self) -> list[int]:
        row = self._first_row(
            "SELECT (SELECT coalesce(max(id), 0) FROM item),"
            " (SELECT coalesce(max(id), 0) FROM injection)"
        )
        return [*row, self._last_number("memory_change")]


def _cursor_of(place: list[int]) -> str:
    return "-".join(map(str, place if place[2] else place[:2]))
