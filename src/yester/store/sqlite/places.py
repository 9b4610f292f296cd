"""Projects and sessions in SQLite: where things happened, and which sessions wait to be distilled,
refined or archived."""

from __future__ import annotations

from collections.abc import Mapping

from yester.errors import StoreError
from yester.model import (
    EVERYTHING,
    Filters,
    Item,
    Paging,
    Project,
    Queue,
    Session,
    Waiting,
)
from yester.project import bare_project
from yester.store.sqlite import rows
from yester.store.sqlite.ledger import LedgerRows
from yester.store.sqlite.maintenance import explains_errors

# `session <> 0` says nothing new, but without it SQLite does not see that it may use the index of
# items by session, and reads every item there is.
_SESSION = (
    "SELECT s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.branch, s.title, s.transcript,"
    " (SELECT count(*) FROM item WHERE session = s.id AND session <> 0 AND kind = 'prompt'),"
    " (SELECT count(*) FROM item WHERE session = s.id AND session <> 0), s.id"
    " FROM session s JOIN project p ON p.id = s.project"
)
_WAITING = (
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


class PlaceRows(LedgerRows):
    """The part of `SqliteStore` that knows where things happened."""

    # --- writing, inside a transaction -------------------------------------------------------

    def put_project(self, project: Project) -> int:
        if project.key in self._projects:
            return self._projects[project.key]
        row = self._first_row("SELECT id, root, name FROM project WHERE key = ?", project.key)
        if row is None:
            name = self._free_name(project, 0)
            self._db.execute(
                "INSERT INTO project(key, name, root, parent) VALUES (?, ?, ?, ?)",
                (project.key, name, project.root, project.parent),
            )
            id_ = self._db.last_insert_rowid()
            if id_ >= 1 << 24:
                raise StoreError(f"{self._path}: no room for more than 16,777,215 projects")
        else:
            id_ = row[0]
            if project.root and not row[1]:
                self._db.execute("UPDATE project SET root = ? WHERE id = ?", (project.root, id_))
            if row[2].isdigit() and row[2] != project.name:  # by an older version: it says nothing
                name = self._free_name(project, id_)
                self._db.execute("UPDATE project SET name = ? WHERE id = ?", (name, id_))
        self._projects[project.key] = id_
        return id_

    def _free_name(self, project: Project, own: int) -> str:
        """The readable name; where another project than its `own` has it, with more of the key,
        then a number."""
        place = project.key.split(":", 1)[1]
        names = [project.name, "/".join(place.split("/")[-2:]), place]
        for name in names:
            if not self._first_row("SELECT 1 FROM project WHERE name = ? AND id <> ?", name, own):
                return name
        number = 2
        while self._first_row("SELECT 1 FROM project WHERE name = ?", f"{place}~{number}"):
            number += 1
        return f"{place}~{number}"

    def put_session(self, session: Session) -> int:
        project = self.put_project(bare_project(session.project))
        self._db.execute(
            "INSERT INTO session(key, agent, project, started, ended, cwd, branch, title,"
            " transcript) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT(key, agent, project) DO UPDATE SET"
            " started = CASE WHEN started = 0 THEN excluded.started"
            "   WHEN excluded.started = 0 THEN started ELSE min(started, excluded.started) END,"
            " ended = max(ended, excluded.ended),"
            " cwd = iif(cwd = '', excluded.cwd, cwd),"
            " branch = iif(excluded.branch = '', branch, excluded.branch),"
            " title = iif(excluded.title = '', title, excluded.title),"
            " transcript = iif(transcript = '', excluded.transcript, transcript)",
            (session.key, session.agent, project, session.started, session.ended, session.cwd,
             session.branch, session.title, session.transcript),
        )  # fmt: skip
        row = self._first_row(
            "SELECT id FROM session WHERE key = ? AND agent = ? AND project = ?",
            session.key, session.agent, project,
        )  # fmt: skip
        assert row is not None
        self._sessions[session.key, session.agent, project] = row[0]
        return int(row[0])

    def _session_id(self, item: Item, project: int) -> int:
        if not item.session:
            return 0
        known = self._sessions.get((item.session, item.agent, project))
        if known is None:
            known = self.put_session(
                Session(item.session, item.agent, item.project, item.epoch, item.epoch)
            )
        return known

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
    def projects(self) -> list[Project]:
        found = self._db.execute("SELECT key, name, root, parent FROM project ORDER BY name")
        return [Project(*row) for row in found]

    @explains_errors
    def sessions(self, filters: Filters, page: Paging = EVERYTHING) -> list[Session]:
        projects, sessions = self._filter_ids(filters)
        parts, args = ["1"], list[object]()
        for column, ids in (("s.project", projects), ("s.id", sessions)):
            if ids:
                parts.append(f"{column} IN ({','.join('?' * len(ids))})")
                args += ids
        for text, value in (
            ("s.agent = ?", filters.agent or None),
            ("s.ended >= ?", filters.since),
            ("s.started < ?", filters.until),
        ):
            if value is not None:
                parts.append(text)
                args.append(value)
        found = self._db.execute(
            f"{_SESSION} WHERE {' AND '.join(parts)}"
            f" ORDER BY {'s.ended, s.id' if page.oldest_first else 's.ended DESC, s.id DESC'}"
            " LIMIT ? OFFSET ?",
            (*args, page.sql_limit, page.offset),
        )
        return [Session(*row) for row in found]

    @explains_errors
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

    @explains_errors
    def queued_sessions(self, queue: Queue) -> list[Waiting]:
        condition, order = _STAGES[queue.stage]
        found = self._db.execute(
            f"{_WAITING} WHERE {condition} ORDER BY {order} LIMIT :most",
            {
                "stage": queue.stage, "quiet": queue.quiet_since, "ended": queue.ended_before,
                "since": queue.since, "hooked": queue.hooked, "key": queue.key,
                "prefix": rows.prefix_pattern(queue.key),
                "most": -1 if queue.limit is None else queue.limit,
            },
        )  # fmt: skip
        return [Waiting(Session(*row[:12]), row[12], row[13]) for row in found]
