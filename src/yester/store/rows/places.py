"""Projects and sessions in SQLite: where things happened, and which sessions wait to be distilled,
refined or archived."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain, count

from msgspec import structs

from yester.model import EVERYTHING, Filters, Item, Paging, Project, Queue, Session, Waiting
from yester.project import bare_project
from yester.store.rows import rows
from yester.store.rows.ledger import LedgerRows

_SESSION = (
    "s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.branch, s.title, s.transcript,"
    " {prompts}, {items}, s.id"
)
_FROM = " FROM session s JOIN project p ON p.id = s.project"
# `session <> 0` says nothing new, but without it SQLite does not see that it may use the index of
# items by session, and reads every item there is.
_OWN = "SELECT count(*) FROM item WHERE session = s.id AND session <> 0"
_PROMPTS = f"({_OWN} AND kind = 'prompt')"
_WAITING = (
    f"SELECT {_SESSION.format(prompts=0, items=0)}, coalesce(u.changes, 0),"
    f" iif(:stage = 'archive', coalesce(a.ended, 0), coalesce(u.since, 0)){_FROM}"
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
        f"u.session IS NOT NULL AND NOT {_AT_WORK} AND (:hooked = 0 OR {_HOOKED})",
        "s.ended DESC, s.id DESC",
    ),
    "refine": (f"s.ended >= :since AND {_HOOKED}", "s.ended, s.id"),
    "archive": (
        f"s.ended >= :since AND s.ended > coalesce(a.ended, 0) AND {_HOOKED}"
        f" AND u.session IS NULL AND {_ENDED}",
        "s.ended, s.id",
    ),
    "any": ("s.id IN (SELECT value FROM json_each(:sessions))", "s.ended DESC"),
}


class PlaceRows(LedgerRows):
    """The part of `SqliteStore` that knows where things happened."""

    # --- writing, inside a transaction -------------------------------------------------------

    def put_project(self, project: Project) -> int:
        if self._is_forgotten(project.key):
            return 0
        return self._make_project(project)

    def _make_project(self, project: Project) -> int:
        if project.key in self._projects:
            return self._projects[project.key]
        row = self._first_row("SELECT id, root, name FROM project WHERE key = ?", project.key)
        if row is None:
            name = self._free_name(project, 0)
            (id_,) = self._first_row(
                "INSERT INTO project(key, name, root, parent) VALUES (?, ?, ?, ?) RETURNING id",
                project.key, name, project.root, project.parent,
            )  # fmt: skip
        else:
            id_ = row[0]
            if project.root and not row[1]:
                self._db.execute("UPDATE project SET root = ? WHERE id = ?", (project.root, id_))
            if row[2].isdigit() and row[2] != project.name:  # by an older version: it says nothing
                name = self._free_name(project, id_)
                self._db.execute("UPDATE project SET name = ? WHERE id = ?", (name, id_))
        self._projects[project.key] = id_
        return int(id_)

    def _free_name(self, project: Project, own: int) -> str:
        """The readable name; where another project than its `own` has it, with more of the key,
        then a number."""
        place = project.key.split(":", 1)[1]
        numbered = (f"{place}~{number}" for number in count(2))
        names = chain((project.name, "/".join(place.split("/")[-2:]), place), numbered)
        taken = "SELECT 1 FROM project WHERE name = ? AND id <> ?"
        return next(name for name in names if not self._first_row(taken, name, own))

    def put_session(self, session: Session) -> int:
        if self._tombstones.hides_session(session):
            return 0
        project = self._make_project(bare_project(session.project))
        values = structs.asdict(self._tombstones.clean_session(session)) | {"project": project}
        ((id_,),) = self._db.execute(
            "INSERT INTO session(key, agent, project, started, ended, cwd, branch, title,"
            " transcript) VALUES"
            " (:key, :agent, :project, :started, :ended, :cwd, :branch, :title, :transcript)"
            " ON CONFLICT(key, agent, project) DO UPDATE SET"
            " started = CASE WHEN session.started = 0 THEN excluded.started"
            "   WHEN excluded.started = 0 THEN session.started"
            "   ELSE min(session.started, excluded.started) END,"
            " ended = max(session.ended, excluded.ended),"
            " cwd = iif(session.cwd = '', excluded.cwd, session.cwd),"
            " branch = iif(excluded.branch = '', session.branch, excluded.branch),"
            " title = iif(excluded.title = '', session.title, excluded.title),"
            " transcript = iif(session.transcript = '', excluded.transcript, session.transcript)"
            " RETURNING id",
            values,
        )
        self._sessions[session.key, session.agent, project] = id_
        return int(id_)

    def _session_id(self, item: Item, project: int) -> int:
        if not item.session:
            return 0
        known = self._sessions.get((item.session, item.agent, project))
        return known or self.put_session(
            Session(item.session, item.agent, item.project, item.epoch, item.epoch)
        )

    def queue_sessions(self, since: Mapping[int, int] | None = None) -> None:
        if since is None:
            since = dict(self._db.execute("SELECT id, 0 FROM session"))
        self._db.executemany(
            "INSERT INTO undistilled(session, changes, since) VALUES (?, 1, ?)"
            " ON CONFLICT(session) DO UPDATE SET"
            " changes = undistilled.changes + 1,"
            " since = min(undistilled.since, excluded.since)",
            sorted(since.items()),
        )

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

    def projects(self) -> list[Project]:
        found = self._db.execute("SELECT key, name, root, parent FROM project ORDER BY name")
        return [Project(*row) for row in found]

    def sessions(self, filters: Filters, page: Paging = EVERYTHING) -> list[Session]:
        projects, sessions = self._filter_ids(filters)
        condition = rows.Condition()
        condition.require_one_of("s.project", projects)
        condition.require_one_of("s.id", sessions)
        condition.require_one_of("s.agent", filter(None, [filters.agent]))
        condition.leave_out_projects("s.project", filters)
        if filters.since is not None:
            condition.require("s.ended >= ?", filters.since)
        if filters.until is not None:
            condition.require("s.started < ?", filters.until)
        where = condition.page_clause(page, "s.ended", "s.id")
        return self._read_sessions(where, f"({_OWN})", *condition.values)

    def session(self, key: str, agent: str) -> Session | None:
        return self.find_sessions([(key, agent)]).get((key, agent))

    def find_sessions(
        self, wanted: Collection[tuple[str, str]], prompts: bool = True
    ) -> dict[tuple[str, str], Session]:
        if not wanted:
            return {}
        asked = list(wanted)
        pairs = [{"a": self._stored_text(key), "b": agent} for key, agent in asked]
        columns = _SESSION.format(prompts=_PROMPTS if prompts else "0", items="0")
        found = self._db.execute(
            "WITH w AS MATERIALIZED (SELECT key AS n, value ->> 'a' AS key, value ->> 'b' AS agent"
            f" FROM json_each(?, '$')) SELECT w.n, {columns} FROM w CROSS JOIN session s"
            " ON s.key = w.key AND s.agent = w.agent JOIN project p ON p.id = s.project"
            " ORDER BY s.id DESC",  # the first of several is looked at last, and stays
            (rows.json_text(pairs),),
        )
        return {asked[int(n)]: Session(*row) for n, *row in found}

    def _read_sessions(self, where: str, items: str, *values: object) -> list[Session]:
        columns = _SESSION.format(prompts=_PROMPTS, items=items)
        return [
            Session(*row) for row in self._db.execute(f"SELECT {columns}{_FROM}{where}", values)
        ]

    def queued_sessions(self, queue: Queue) -> list[Waiting]:
        condition, order = _STAGES[queue.stage]
        found = self._db.execute(
            f"{_WAITING} WHERE {condition} ORDER BY {order} LIMIT :most",
            {
                "stage": queue.stage, "quiet": queue.quiet_since, "ended": queue.ended_before,
                "since": queue.since, "hooked": queue.hooked,
                "sessions": str(self._filter_ids(Filters(session=queue.key))[1]),
                "most": rows.ALL if queue.limit is None else queue.limit,
            },
        )  # fmt: skip
        return [Waiting(Session(*row[:12]), row[12], row[13]) for row in found]
