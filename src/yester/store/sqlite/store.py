"""The store in one SQLite file, for one machine. Contract: `contract.Store`, `Maintenance`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from yester.model import Item
from yester.store.rows import rows
from yester.store.rows.feed import FeedRows
from yester.store.rows.forgetting import ForgetRows
from yester.store.rows.joins import JoinRows
from yester.store.rows.sharing import RoamRows, ShareRows
from yester.store.sqlite import maintenance, salvage
from yester.store.sqlite.maintenance import explain_errors
from yester.store.sqlite.search import FileSearch
from yester.text.document import content_hash


class SqliteStore(FileSearch, ForgetRows, JoinRows, FeedRows, RoamRows, ShareRows):
    """All parts together, what is new, and what looks after the file."""

    def reindex(self) -> int:
        self._db.execute("REINDEX")
        return self._rebuild_index()

    def salvage(self, path: Path) -> Counter[str]:
        """What can be read of a damaged database, into this store, which is new: every row that
        can be, and an index over it; by table how many could not. Needs a transaction."""
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

    def _last_number(self, table: str) -> int:
        if table not in self._numbered_tables():
            return int(self._first_value(f"SELECT max(id) FROM {table}") or 0)
        # Not the largest id there is: that one goes with its memory.
        sequence = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        return int(self._first_value(sequence, table) or 0)

    def _numbered_tables(self) -> Sequence[str]:
        return ("memory_change",)

    def _continue_numbers(self, last: Mapping[str, int]) -> None:
        for table, number in last.items():
            self._db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            self._db.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, number))

    def _stream_rows(self, sql: str) -> Iterable[tuple[Any, ...]]:
        found: Iterable[tuple[Any, ...]] = self._db.execute(sql)
        return found

    def _columns_of(self, table: str) -> dict[str, bool]:
        info = self._db.execute("SELECT name, pk > 0 FROM pragma_table_info(?)", (table,))
        return {name: bool(is_key) for name, is_key in info}

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

    def backup(self, path: Path) -> None:
        """A consistent copy at `path`, made while others read and write."""
        with explain_errors(self._path):
            maintenance.backup(self._db, path)
