"""Projects, sessions and transcripts in SQLite: where things happened."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from yester.errors import StoreError
from yester.model import EVERYTHING, Filters, Item, Paging, Project, Session, Skipped, Source
from yester.project import bare
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
        project = self.put_project(bare(session.project))
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

    def put_source(self, source: Source, skipped: Mapping[str, int]) -> None:
        self._db.execute(
            "INSERT INTO source(path, agent, size, mtime_ns, offset, line, head, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(path) DO UPDATE SET"
            " agent = excluded.agent, size = excluded.size, mtime_ns = excluded.mtime_ns,"
            " offset = excluded.offset, line = excluded.line, head = excluded.head,"
            " state = excluded.state",
            (source.path, source.agent, source.size, source.mtime_ns, source.offset, source.line,
             source.head, msgspec.json.encode(source.state).decode()),
        )  # fmt: skip
        self.append([Skipped(source.agent, reason, n) for reason, n in skipped.items()])

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
    def sources(self, agent: str = "", path: str = "") -> list[Source]:
        wanted = [(name, value) for name, value in (("agent", agent), ("path", path)) if value]
        condition = " AND ".join(["1", *(f"{name} = ?" for name, _ in wanted)])
        found = self._db.execute(
            f"{rows.SOURCE} WHERE {condition} ORDER BY path", [value for _, value in wanted]
        )
        return [rows.source_of(row) for row in found]
