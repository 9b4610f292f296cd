"""Which sessions wait to be distilled, refined or archived, in SQLite."""

from __future__ import annotations

from collections.abc import Mapping

from yester.model import Queue, Session, Waiting
from yester.store.sqlite import rows
from yester.store.sqlite.maintenance import explains_errors
from yester.store.sqlite.places import PlaceRows

_SESSION = (
    "SELECT s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.branch, s.title, s.transcript,"
    " 0, 0, s.id, coalesce(u.changes, 0), iif(:stage = 'archive', coalesce(a.ended, 0),"
    " coalesce(u.since, 0)) FROM session s JOIN project p ON p.id = s.project"
    " LEFT JOIN undistilled u ON u.session = s.id LEFT JOIN archived a ON a.session = s.id"
)
_HOOKED = "EXISTS (SELECT 1 FROM turn t WHERE t.session = s.id)"
# A turn whose end never came is over when nothing has happened for a while.
_AT_WORK = (
    "(s.ended > :quiet AND EXISTS"
    " (SELECT 1 FROM turn t WHERE t.session = s.id AND t.state = 'open'))"
)
_TRAILING = 60_000  # ms after its end within which something of a session may still be written
_ENDED = (
    "(s.ended <= :quiet OR (s.ended <= :ended AND EXISTS (SELECT 1 FROM event e"
    f" WHERE e.id >= printf('%d', s.ended - {_TRAILING}) AND e.session = s.id"
    " AND e.name = 'SessionEnd')))"
)
# stage → (condition, order)
_STAGES = {
    "distil": (
        f"u.session IS NOT NULL AND NOT {_AT_WORK} AND (NOT :hooked OR {_HOOKED})",
        "s.ended DESC, s.id DESC",
    ),
    "refine": (f"s.ended >= :since AND {_HOOKED}", "s.ended, s.id"),
    "archive": (
        f"s.ended >= :since AND s.ended > coalesce(a.ended, 0) AND {_HOOKED}"
        f" AND u.session IS NULL AND {_ENDED}",
        "s.ended, s.id",
    ),
    "any": (
        "(s.key = :key OR (length(:key) >= 6 AND s.key LIKE :prefix ESCAPE '\\'))",
        "s.key <> :key, s.ended DESC",
    ),
}


class WorkRows(PlaceRows):
    """The part of `SqliteStore` that knows what is still to be done."""

    # --- writing, inside a transaction -------------------------------------------------------

    def queue_sessions(self, since: Mapping[int, int] | None = None) -> int:
        before = self._queued_count()
        if since is None:
            since = dict(self._db.execute("SELECT id, 0 FROM session"))
        self._db.executemany(
            "INSERT INTO undistilled VALUES (?, 1, ?) ON CONFLICT DO UPDATE SET"
            " changes = changes + 1, since = min(since, excluded.since)",
            sorted(since.items()),
        )
        return self._queued_count() - before

    def _queued_count(self) -> int:
        return int(self._first_row("SELECT count(*) FROM undistilled")[0])

    def settle_session(self, waiting: Waiting, rest: int = 0) -> None:
        known = waiting.session.id, waiting.changes
        if rest:
            self._db.execute(
                "UPDATE undistilled SET since = ? WHERE session = ? AND changes = ?",
                (rest, *known),
            )
            return
        self._db.execute("DELETE FROM undistilled WHERE session = ? AND changes = ?", known)
        self._db.execute(
            "UPDATE turn SET distilled = 1 WHERE session = ? AND state <> 'open'", known[:1]
        )

    # --- reading -----------------------------------------------------------------------------

    @explains_errors
    def queued_sessions(self, queue: Queue) -> list[Waiting]:
        condition, order = _STAGES[queue.stage]
        found = self._db.execute(
            f"{_SESSION} WHERE {condition} ORDER BY {order} LIMIT :most",
            {
                "stage": queue.stage, "quiet": queue.quiet_since, "ended": queue.ended_before,
                "since": queue.since, "hooked": queue.hooked, "key": queue.key,
                "prefix": rows.prefix_pattern(queue.key),
                "most": -1 if queue.limit is None else queue.limit,
            },
        )  # fmt: skip
        return [Waiting(Session(*row[:12]), row[12], row[13]) for row in found]
