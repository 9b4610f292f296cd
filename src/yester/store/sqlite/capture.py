"""What hooks told, in SQLite: events, turns, muted sessions and what agents were shown."""

from __future__ import annotations

import apsw

from yester.model import Session
from yester.store.sqlite.maintenance import explains

_EVENT = "id, name, epoch, session, turn, actor, tool, failed, item, skipped, window, lag"
_TURN = "key, session, prompt, closing, started, ended, state, transcript, id"


class CaptureRows:
    """The part of `SqliteStore` that capture and its answers need."""

    _db: apsw.Connection

    # --- writing, inside a transaction -------------------------------------------------------

    # --- reading -----------------------------------------------------------------------------

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
