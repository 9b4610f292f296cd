"""The store in one SQLite file, for one machine. Contract: `contract.Store`, `Maintenance`."""

from __future__ import annotations

from pathlib import Path

from yester.store.sqlite import maintenance, rows
from yester.store.sqlite.feed import FeedRows
from yester.store.sqlite.joins import JoinRows
from yester.store.sqlite.maintenance import explain_errors
from yester.store.sqlite.search import SearchRows
from yester.text import terms as tokenizer


class SqliteStore(JoinRows, SearchRows, FeedRows):
    """All parts together, and what looks after the file."""

    def reindex(self) -> int:
        self._index.clear_index()
        number = 0
        for values in self._db.execute(rows.SELECT + " WHERE i.status = 'active' ORDER BY i.id"):
            self._index_again(rows.item_of(values), values[-2], values[-1])
            number += 1
        self._index.write_batch()
        self._set_meta("tokenizer", str(tokenizer.VERSION))
        return number

    def check(self) -> list[str]:
        return maintenance.check(self._db)

    def stale(self) -> str:
        row = self._first_row("SELECT value FROM meta WHERE key = 'tokenizer'")
        have = row[0] if row else "none"
        if have == str(tokenizer.VERSION):
            return ""
        return f"indexed with tokenizer version {have}, this yester has {tokenizer.VERSION}"

    def backup(self, path: Path) -> None:
        with explain_errors(path):
            maintenance.backup(self._db, path)
