"""The store in one SQLite file, for one machine. Contract: `contract.Store`, `Maintenance`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import apsw
import msgspec

from yester.errors import FeedExpired
from yester.model import FeedLine, Injection, Item, MemoryChange, Paging
from yester.store.sqlite import maintenance, rows, salvage
from yester.store.sqlite.forgetting import ForgetRows
from yester.store.sqlite.joins import JoinRows
from yester.store.sqlite.maintenance import explain_errors
from yester.store.sqlite.search import SearchRows
from yester.text import terms as tokenizer
from yester.text.document import content_hash

# A cursor is the newest item, line of the ledger and line of the history of memories; without the
# last, none of those. There is one writer, so ids are in the order of commits.
_CURSOR = re.compile(r"([0-9]{1,15})-([0-9]{1,15})(?:-([0-9]{1,15}))?", re.ASCII)


class SqliteStore(ForgetRows, JoinRows, SearchRows):
    """All parts together, what is new, and what looks after the file."""

    def reindex(self) -> int:
        self._index.clear_index()
        self._db.execute("REINDEX")
        number = 0
        for values in self._db.execute(rows.SELECT + " WHERE i.status = 'active' ORDER BY i.id"):
            self._index_again(rows.item_of(values), values[-2], values[-1])
            number += 1
        self._index.write_batch()
        self._set_meta("tokenizer", str(tokenizer.VERSION))
        return number

    def salvage(self, path: Path) -> Counter[str]:
        with explain_errors(path), maintenance.open_copy(path, self._path.parent) as old:
            lost = salvage.copy_readable(old, self._db)
        for id_, item in list(self._changed_items()):
            if item is None:
                self._db.execute("DELETE FROM item WHERE id = ?", (id_,))
            else:  # read again from its transcript, it is put right: its hash is another one then
                self._db.execute("UPDATE item SET hash = ? WHERE id = ?", (content_hash(item), id_))
            lost["item" if item is None else "text"] += 1
        for values in self._db.execute(rows.SELECT):
            item = rows.item_of(values)
            self._link_items([(item.id, item)])
        self._db.execute("DELETE FROM unembedded WHERE item IN (SELECT item FROM vector)")
        self.reindex()
        return Counter({table: rows for table, rows in lost.items() if rows})

    def check(self, by_hash: bool = False) -> list[str]:
        """What is broken. Problems of the index begin with "index:", it can be rebuilt."""
        problems = []
        try:
            found = [text for (text,) in self._db.execute("PRAGMA integrity_check(20)")]
        except apsw.Error as error:
            found = [str(error)]
        try:
            for table, rowid, parent, _ in self._db.execute("PRAGMA foreign_key_check"):
                problems.append(f"database: {table} row {rowid} points to a missing {parent}")
            if by_hash and (changed := [str(id_) for id_, _ in self._changed_items()]):
                ids = ", ".join(changed[:20])
                problems.append(f"database: {len(changed)} items are not what was stored: {ids}")
        except apsw.Error as error:
            found.append(str(error))
        if found != ["ok"]:
            part = "index" if salvage.is_readable(self._db) else "database"
            lines = dict.fromkeys(line for text in found for line in text.splitlines())
            return problems + [f"{part}: {one}" for one in lines if not one.startswith("***")]
        try:
            self._db.execute("INSERT INTO item_text(item_text, rank) VALUES ('integrity-check', 0)")
            row = self._db.execute(
                "SELECT (SELECT count(*) FROM item WHERE status = 'active'),"
                " (SELECT count(*) FROM item_text_docsize), (SELECT count(*) FROM item_terms)"
            ).fetchone()
            assert row is not None
            active, indexed, worded = row
            if not active == indexed == worded:
                problems.append(
                    f"index: {active} items, but {indexed} in the full text"
                    f" and {worded} term vectors"
                )
        except apsw.Error as error:
            problems.append(f"index: {error}")
        return problems

    def _changed_items(self) -> Iterator[tuple[int, Item | None]]:
        """Items whose hash is not that of what stands there; None: it makes no sense at all."""
        sql = f"SELECT i.id, i.hash, {rows.READ}{rows.FROM} WHERE i.id > ? ORDER BY i.id"
        last: int | None = 0
        while last is not None:
            try:
                for id_, hash_, *values in self._db.execute(sql, (last,)):
                    item, last = rows.item_of(values), id_
                    if content_hash(item) != hash_:
                        yield id_, item
                return
            except (msgspec.MsgspecError, UnicodeError):
                last = self._first_value("SELECT min(id) FROM item WHERE id > ?", last)
                yield last or 0, None

    def stale(self) -> str:
        have = self._get_meta("tokenizer") or "none"
        if have == str(tokenizer.VERSION):
            return ""
        return f"indexed with tokenizer version {have}, this yester has {tokenizer.VERSION}"

    def backup(self, path: Path) -> None:
        with explain_errors(self._path):
            maintenance.backup(self._db, path)

    def feed(self, cursor: str = "", limit: int = 500) -> tuple[list[FeedLine], str]:
        end = self._feed_end()
        if not cursor:
            return [], _cursor_of(end)
        match = _CURSOR.fullmatch(cursor)
        place = [int(part or 0) for part in match.groups()] if match else [1 << 62]
        if any(mine > its for mine, its in zip(place, end, strict=False)):
            raise FeedExpired(f"{self._path}: the cursor {cursor!r} is of another store")
        items = self._read_items(" WHERE i.id > ? ORDER BY i.id LIMIT ?", place[0], limit)
        shown = self.entries(Injection, {}, Paging(limit, oldest_first=True, behind=(place[1],)))
        changes = self._db.execute(
            "SELECT c.id, c.item, i.status, coalesce(m.version, 0) FROM memory_change c"
            " JOIN item i ON i.id = c.item LEFT JOIN memory m ON m.item = c.item"
            " WHERE c.id > ? ORDER BY c.id LIMIT ?", (place[2], limit),
        )  # fmt: skip
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
            " (SELECT coalesce(max(id), 0) FROM injection),"
            # Not the largest id there is: that one goes with its memory.
            " coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memory_change'), 0)"
        )
        return list(row)


def _cursor_of(place: list[int]) -> str:
    return "-".join(map(str, place if place[2] else place[:2]))
