"""What hooks told, in SQLite: events, turns, muted sessions and what agents were shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import apsw

from yester.model import Event, Injection, OwedStart, Session, Turn
from yester.store.sqlite.maintenance import explains

_EVENT = "id, name, epoch, session, turn, actor, tool, failed, item, skipped, window, lag"
_TURN = "key, session, prompt, closing, started, ended, state, transcript, id"


class CaptureRows:
    """The part of `SqliteStore` that capture and its answers need."""

    _db: apsw.Connection

    # --- writing, inside a transaction -------------------------------------------------------

    def put_events(self, events: Sequence[Event]) -> None:
        self._db.executemany(
            f"INSERT OR IGNORE INTO event({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (e.id, e.name, e.epoch, e.session, e.turn, e.actor, e.tool, int(e.failed), e.item,
                 e.skipped, e.window, e.lag)
                for e in events
            ],
        )  # fmt: skip

    def put_turn(self, turn: Turn) -> int:
        self._db.execute(
            "INSERT INTO turn(key, session, prompt, closing, started, ended, state, transcript)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(session, key) DO UPDATE SET"
            " prompt = excluded.prompt, closing = excluded.closing, started = excluded.started,"
            " ended = excluded.ended, state = excluded.state, transcript = excluded.transcript",
            (turn.key, turn.session, turn.prompt, turn.closing, turn.started, turn.ended,
             turn.state, turn.transcript),
        )  # fmt: skip
        return turn.id or self._number(
            "SELECT id FROM turn WHERE session = ? AND key = ?", turn.session, turn.key
        )

    def put_skipped(self, agent: str, skipped: Mapping[str, int]) -> None:
        self._db.executemany(
            "INSERT INTO skipped(agent, reason, records) VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET records = records + excluded.records",
            [(agent, reason, number) for reason, number in skipped.items()],
        )

    def put_injections(self, shown: Sequence[Injection]) -> None:
        self._db.executemany(
            "INSERT INTO injection(session, prompt_number, epoch, event, item, score, tokens,"
            " reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (i.session, i.prompt_number, i.epoch, i.event, i.item, i.score, i.tokens, i.reason)
                for i in shown
            ],
        )

    def put_owed_start(self, session: int, start: OwedStart) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO owed_start(session, event, source, epoch) VALUES (?, ?, ?, ?)",
            (session, start.event, start.source, start.epoch),
        )

    def drop_owed_start(self, session: int, event: str) -> None:
        self._db.execute("DELETE FROM owed_start WHERE session = ? AND event = ?", (session, event))

    def mute(self, session: str, now: int) -> None:
        self._db.execute("INSERT OR IGNORE INTO muted VALUES (?, ?)", (session, now))

    # --- reading -----------------------------------------------------------------------------

    @explains
    def handled(self, ids: Sequence[str]) -> set[str]:
        marks = ",".join("?" * len(ids))
        found = self._db.execute(f"SELECT id FROM event WHERE id IN ({marks})", tuple(ids))
        return {row[0] for row in found}

    @explains
    def events(self, turn: int) -> list[Event]:
        found = self._db.execute(f"SELECT {_EVENT} FROM event WHERE turn = ? ORDER BY id", (turn,))
        return [replace(Event(*row), failed=bool(row[7])) for row in found]

    @explains
    def turn(self, session: int, key: str = "") -> Turn | None:
        wanted, args = ("key = ?", (key,)) if key else ("state = 'open'", ())
        row = self._db.execute(
            f"SELECT {_TURN} FROM turn WHERE session = ? AND {wanted} ORDER BY id DESC LIMIT 1",
            (session, *args),
        ).fetchone()
        return Turn(*row) if row else None

    @explains
    def turns(self, session: int) -> list[Turn]:
        found = self._db.execute(
            f"SELECT {_TURN} FROM turn WHERE session = ? ORDER BY id", (session,)
        )
        return [Turn(*row) for row in found]

    @explains
    def session(self, key: str, agent: str) -> Session | None:
        row = self._db.execute(
            "SELECT s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.branch, s.title,"
            " s.transcript, (SELECT count(*) FROM item"
            "  WHERE session = s.id AND session <> 0 AND kind = 'prompt'), 0, s.id"
            " FROM session s JOIN project p ON p.id = s.project"
            " WHERE s.key = ? AND s.agent = ? ORDER BY s.id LIMIT 1",
            (key, agent),
        ).fetchone()
        return Session(*row) if row else None

    @explains
    def said(self, session: int, kind: str, actor: str, text: str, since: int, until: int) -> int:
        row = self._db.execute(
            "SELECT i.id FROM item i WHERE i.session = ?1 AND i.session <> 0"
            " AND i.epoch BETWEEN ?2 AND ?3"
            " AND i.kind = ?4 AND trim(i.body, ' ' || char(9, 10, 13)) = ?5"
            " AND iif(?6 = '', i.actor = '', i.actor LIKE '%' || ?6)"
            " AND NOT EXISTS (SELECT 1 FROM turn t JOIN event e ON e.turn = t.id"
            "  WHERE t.session = ?1 AND e.item = i.id)"
            " ORDER BY abs(2 * i.epoch - ?2 - ?3) LIMIT 1",
            (session, since, until, kind, text, actor.rpartition(":")[2]),
        ).fetchone()
        return int(row[0]) if row else 0

    @explains
    def injections(self, session: int) -> list[Injection]:
        found = self._db.execute(
            "SELECT session, event, item, score, tokens, epoch, reason, prompt_number"
            " FROM injection WHERE session = ? ORDER BY id",
            (session,),
        )
        return [Injection(*row) for row in found]

    @explains
    def owed_start(self, session: int) -> OwedStart | None:
        row = self._db.execute(
            "SELECT event, source, epoch FROM owed_start WHERE session = ?", (session,)
        ).fetchone()
        return OwedStart(*row) if row else None

    @explains
    def muted(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT session FROM muted")}

    @explains
    def lags(self, limit: int) -> list[int]:
        found = self._db.execute("SELECT lag FROM event ORDER BY id DESC LIMIT ?", (limit,))
        return [row[0] for row in found]

    def _number(self, sql: str, *args: Any) -> int:
        row = self._db.execute(sql, args).fetchone()
        assert row is not None
        return int(row[0])
