"""What people look through, in SQLite: the ledger, the projects, what there is to filter for, and
what is new since they last looked."""

from __future__ import annotations

import apsw

from yester.model import Session
from yester.store.contract import MemoryChange
from yester.store.sqlite.maintenance import explains

# `session <> 0` says nothing new, but without it SQLite does not see that it may use the index of
# items by session, and reads every item there is.
SESSION = (
    "SELECT s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.branch, s.title, s.transcript,"
    " (SELECT count(*) FROM item WHERE session = s.id AND session <> 0 AND kind = 'prompt'),"
    " (SELECT count(*) FROM item WHERE session = s.id AND session <> 0), s.id"
    " FROM session s JOIN project p ON p.id = s.project"
)
_WHOLE = -1  # the field of table `length` under which items are counted, whatever they hold


class OverviewRows:
    """The part of `SqliteStore` that those who look through it need."""

    _db: apsw.Connection

    @explains
    def changed(self) -> int:
        row = self._db.execute("PRAGMA data_version").fetchone()
        assert row is not None
        return int(row[0])

    @explains
    def last_ids(self) -> tuple[int, int]:
        row = self._db.execute(
            "SELECT (SELECT coalesce(max(id), 0) FROM item),"
            " (SELECT coalesce(max(id), 0) FROM injection)"
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    @explains
    def last_change(self) -> int:
        # Not the largest id there is: that one goes with its memory.
        row = self._db.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'memory_change'"
        ).fetchone()
        return int(row[0]) if row else 0

    @explains
    def changed_since(self, change: int, most: int) -> list[MemoryChange]:
        found = self._db.execute(
            "SELECT c.id, c.item, i.status, coalesce(m.version, 0) FROM memory_change c"
            " JOIN item i ON i.id = c.item LEFT JOIN memory m ON m.item = c.item"
            " WHERE c.id > ? ORDER BY c.id LIMIT ?", (change, most),
        )  # fmt: skip
        return list(map(MemoryChange._make, found))

    @explains
    def numbered(self, session: int) -> Session | None:
        row = self._db.execute(f"{SESSION} WHERE s.id = ?", (session,)).fetchone()
        return Session(*row) if row else None
