"""What the distiller needs, in SQLite: which sessions wait, their history, and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import apsw

from yester.model import DISTILLED, ECHO, Item, Session
from yester.store.contract import Waiting
from yester.store.sqlite import rows
from yester.store.sqlite.maintenance import explains

_SESSION = (
    "SELECT s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.branch, s.title, s.transcript,"
    " 0, 0, s.id, coalesce(u.changes, 0), coalesce(u.since, 0)"
    " FROM session s JOIN project p ON p.id = s.project LEFT JOIN undistilled u ON u.session = s.id"
)
_OF_SESSION = "i.session = ? AND i.session <> 0"  # only so their index is used
_ENDS = (3_000, 2_000)  # characters of a tool's input and output that are looked at
_HOOKED = "EXISTS (SELECT 1 FROM turn t WHERE t.session = s.id)"
# A turn whose end never came is over when nothing has happened for a while.
_AT_WORK = (
    "(s.ended > ? AND EXISTS (SELECT 1 FROM turn t WHERE t.session = s.id AND t.state = 'open'))"
)

_TRAILING = 60_000  # ms after its end within which something of a session may still be written


class DistilRows:
    """The part of `SqliteStore` that distilling needs."""

    _db: apsw.Connection

    # --- writing, inside a transaction -------------------------------------------------------

    def _want_distilled(self, since: Mapping[int, int]) -> None:
        """Sessions, and when the earliest of what is new in them happened."""
        self._db.executemany(
            "INSERT INTO undistilled VALUES (?, 1, ?) ON CONFLICT DO UPDATE SET"
            " changes = changes + 1, since = min(since, excluded.since)",
            sorted(since.items()),
        )

    def put_distilled(
        self,
        session: int,
        changes: int,
        evidence: Mapping[str, Iterable[tuple[int, int]]],
        rest: int = 0,
    ) -> None:
        self.put_evidence(evidence)
        if rest:
            self._db.execute(
                "UPDATE undistilled SET since = ? WHERE session = ? AND changes = ?",
                (rest, session, changes),
            )
            return
        self._db.execute(
            "DELETE FROM undistilled WHERE session = ? AND changes = ?", (session, changes)
        )
        self._db.execute(
            "UPDATE turn SET distilled = 1 WHERE session = ? AND state <> 'open'", (session,)
        )

    def put_evidence(self, evidence: Mapping[str, Iterable[tuple[int, int]]]) -> None:
        for ref, sources in evidence.items():
            row = self._db.execute(
                "SELECT id FROM item WHERE ref = ? AND source = ?", (ref, DISTILLED)
            ).fetchone()
            if row is not None:
                self._db.execute("DELETE FROM item_evidence WHERE item = ?", row)
                self._db.executemany(
                    "INSERT OR IGNORE INTO item_evidence VALUES (?, ?, ?)",
                    [(row[0], fact, source) for fact, source in sources],
                )

    def want_distilled(self, session: int, since: int) -> None:
        self._want_distilled({session: since})

    def distil_again(self) -> int:
        before = self._undistilled()
        self._want_distilled(dict(self._db.execute("SELECT id, 0 FROM session")))
        return self._undistilled() - before

    def _undistilled(self) -> int:
        row = self._db.execute("SELECT count(*) FROM undistilled").fetchone()
        assert row is not None
        return int(row[0])

    # --- reading -----------------------------------------------------------------------------

    @explains
    def waiting(self, hooked: bool, quiet_since: int, limit: int) -> list[Waiting]:
        live = f" AND {_HOOKED} AND NOT {_AT_WORK}" if hooked else f" AND NOT {_AT_WORK}"
        found = self._db.execute(
            f"{_SESSION} WHERE u.session IS NOT NULL{live}"
            " ORDER BY s.ended DESC, s.id DESC LIMIT ?",
            (quiet_since, limit),
        )
        return [_waiting(row) for row in found]

    @explains
    def distillable(self, key: str) -> list[Waiting]:
        found = self._db.execute(
            f"{_SESSION} WHERE s.key = ?1 OR (length(?1) >= 6 AND s.key LIKE ?2 ESCAPE '\\')"
            " ORDER BY s.key <> ?1, s.ended DESC",
            (key, rows.prefix_pattern(key)),
        )
        return [_waiting(row) for row in found]

    @explains
    def history(
        self, session: int, brief: Collection[str], chars: int, after: tuple[int, int], limit: int
    ) -> list[tuple[Item, int]]:
        names = sorted(brief)
        # The whole body of what is only glanced at would be most of what is read, and of long
        # output the middle.
        body = (
            f"CASE WHEN i.role = 'thinking' OR i.tool IN ({','.join('?' * len(names))})"
            " THEN substr(i.body, 1, ?) WHEN i.role = 'tool' AND length(i.body) > ?"
            " THEN substr(i.body, 1, ?) || char(10) || '…' || char(10) || substr(i.body, ?)"
            " ELSE i.body END"
        )
        head, tail = _ENDS
        select = rows.SELECT.replace("i.body,", f"{body},", 1).replace(
            "i.session FROM", "i.session, length(i.body) FROM", 1
        )
        found = self._db.execute(
            f"{select} WHERE {_OF_SESSION} AND i.source <> ? AND i.kind <> 'memory'"
            " AND i.status IN ('active', ?) AND (i.epoch, i.id) > (?, ?)"
            " ORDER BY i.epoch, i.id LIMIT ?",
            (*names, chars, head + tail, head, -tail, session, DISTILLED, ECHO, *after, limit),
        )
        return [(rows.item(row), row[-1]) for row in found]

    @explains
    def prompt_before(self, session: int, epoch: int, back: int) -> int:
        row = self._db.execute(
            f"SELECT i.epoch FROM item i WHERE {_OF_SESSION} AND i.kind = 'prompt' AND i.actor = ''"
            " AND i.epoch <= ? ORDER BY i.epoch DESC, i.id DESC LIMIT 1 OFFSET ?",
            (session, epoch, back),
        ).fetchone()
        return int(row[0]) if row else 0

    @explains
    def distilled(self, session: int) -> list[Item]:
        found = self._db.execute(
            f"{rows.SELECT} WHERE {_OF_SESSION} AND i.source = ? ORDER BY i.epoch, i.id",
            (session, DISTILLED),
        )
        return [rows.item(row) for row in found]

    @explains
    def evidence(self, item: int) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for fact, source in self._db.execute(
            "SELECT fact, source FROM item_evidence WHERE item = ? ORDER BY fact, source", (item,)
        ):
            found[fact] = (*found.get(fact, ()), source)
        return found

    @explains
    def made_from(self, items: Sequence[int]) -> dict[int, tuple[int, ...]]:
        return self._pairs(
            "SELECT DISTINCT e.item, e.source FROM item_evidence e"
            " JOIN item i ON i.id = e.source WHERE e.item IN (SELECT value FROM json_each(?))"
            " ORDER BY e.item, i.epoch, e.source",
            items,
        )

    @explains
    def made_into(self, items: Sequence[int]) -> dict[int, tuple[int, ...]]:
        return self._pairs(
            "SELECT DISTINCT e.source, e.item FROM item_evidence e JOIN item i ON i.id = e.item"
            " WHERE e.source IN (SELECT value FROM json_each(?)) AND i.status = 'active'"
            " ORDER BY e.source, i.epoch, e.item",
            items,
        )

    def _pairs(self, sql: str, items: Sequence[int]) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for one, other in self._db.execute(sql, (str(list(items)),)):
            found[one] = (*found.get(one, ()), other)
        return found

    @explains
    def lately(self, since: int) -> list[Waiting]:
        found = self._db.execute(
            f"{_SESSION} WHERE s.ended >= ? AND {_HOOKED} ORDER BY s.ended, s.id", (since,)
        )
        return [_waiting(row) for row in found]

    @explains
    def unarchived(self, since: int, ended_before: int, quiet_since: int) -> list[Waiting]:
        select = _SESSION.replace("coalesce(u.since, 0)", "coalesce(a.ended, 0)")
        found = self._db.execute(
            f"{select} LEFT JOIN archived a ON a.session = s.id"
            f" WHERE s.ended >= ?1 AND s.ended > coalesce(a.ended, 0) AND {_HOOKED}"
            " AND u.session IS NULL AND (s.ended <= ?3 OR (s.ended <= ?2 AND EXISTS"
            " (SELECT 1 FROM event e WHERE e.id >= printf('%d', s.ended - ?4)"
            "  AND e.session = s.id AND e.name = 'SessionEnd'))) ORDER BY s.ended, s.id",
            (since, ended_before, quiet_since, _TRAILING),
        )
        return [_waiting(row) for row in found]


def _waiting(row: tuple[Any, ...]) -> Waiting:
    return Waiting(Session(*row[:12]), row[12], row[13])
