"""Projects that are joined with another, in SQLite, and how to part them again.

The other project may have rows of its own and get more, so whose items and sessions were is written
down by id before anything is moved; both happen in the caller's one transaction.
"""

from __future__ import annotations

import msgspec

from yester.model import Join, Project, Session
from yester.store.records import LEDGER
from yester.store.rows.memories import MemoryRows

# What belongs to a session: it goes to that of the same client where the other project has it, too.
_NUMBERED = ("item", "event", "turn", "injection")
_OF_SESSION = (*_NUMBERED, "refined", "archived", "owed_start")
# What names a row of these within its session.
_KEYS = {
    table.name: [name for name in table.key if name != "session"]
    for table in LEDGER.values()
    if "session" in table.key
}
# What is written down of a project: what it is → id, and what it was. Of sessions that the other
# project has as well, whose row will be gone, what that row says and which rows were theirs.
_TWINS = (
    "session s {} JOIN session t ON t.key = s.key AND t.agent = s.agent"
    " AND t.project = (SELECT id FROM project WHERE key = :into) WHERE s.project = :own"
)
_OF_TWINS = f"session IN (SELECT s.id FROM {_TWINS.format('')})"
_NOTED = {
    "item": "SELECT id, session FROM item WHERE project = :own",
    **{table: f"SELECT id, session FROM {table} WHERE {_OF_TWINS}" for table in _NUMBERED[1:]},
    "session": "SELECT s.id, iif(t.id IS NULL, '', CAST(json_array(s.key, s.agent, s.started,"
    f" s.ended, s.cwd, s.branch, s.transcript) AS TEXT)) FROM {_TWINS.format('LEFT')}",
    "memory": "SELECT m.item, m.slug FROM memory m JOIN item i ON i.id = m.item"
    " WHERE i.project = :own",
}


class JoinRows(MemoryRows):
    """The part of `SqliteStore` that joins projects so that it can be undone."""

    # --- writing, inside a transaction -------------------------------------------------------

    def merge_project(self, key: str, into: Project, now: int = 0) -> int:
        self._require_lock("places")
        row = self._first_row("SELECT id, root FROM project WHERE key = ?", key)
        known = self._first_row("SELECT id FROM project WHERE key = ?", into.key)
        if row is None or key == into.key:
            self._make_project(into)
            return 0
        own, root = row
        joined = self._note_project(own, into.key, now) if now else 0
        ids = self._all_ids("SELECT id FROM item WHERE project = ?", own)
        self._db.execute("UPDATE project SET parent = ? WHERE parent = ?", (into.key, key))
        self._db.execute("UPDATE memory_gone SET project = ? WHERE project = ?", (into.key, key))
        self._count_move()
        if known is None:  # nothing to merge with: it is called otherwise, and that is all
            self._db.execute(
                "UPDATE project SET key = ?, name = ?, root = ? WHERE id = ?",
                (into.key, self._free_name(into, own), into.root or root, own),
            )
        else:
            target = self._make_project(into)
            self._part_slugs(own, into.key)
            for session in self._all_ids("SELECT id FROM session WHERE project = ?", own):
                self._move_session(session, target)
            self._move_items(ids, target)
            self._db.execute("DELETE FROM project WHERE id = ?", (own,))
        self._notice_moves()
        return joined or len(ids)

    def _move_session(self, id_: int, project: int) -> None:
        twin = self._first_row(
            "SELECT t.id FROM session s JOIN session t ON t.key = s.key AND t.agent = s.agent"
            " WHERE s.id = ? AND t.project = ?", id_, project,
        )  # fmt: skip
        if twin is None:
            self._db.execute("UPDATE session SET project = ? WHERE id = ?", (project, id_))
            return
        for table in _OF_SESSION:
            same = "".join(f" AND o.{name} = {table}.{name}" for name in _KEYS.get(table, ()))
            alone = (
                f" AND NOT EXISTS (SELECT 1 FROM {table} o WHERE o.session = ?1{same})"
                if table in _KEYS
                else ""
            )
            self._db.execute(
                f"UPDATE {table} SET session = ?1 WHERE session = ?2{alone}", (twin[0], id_)
            )
        self.queue_sessions({twin[0]: 0})
        self._db.execute("DELETE FROM undistilled WHERE session = ?", (id_,))
        self._db.execute("DELETE FROM owed_start WHERE session = ?", (id_,))
        self._db.execute("DELETE FROM session WHERE id = ?", (id_,))

    def _note_project(self, own: int, into: str, now: int) -> int:
        """Write down what is a project's; the id of the join."""
        (joined,) = self._first_row(
            "INSERT INTO project_join(key, name, root, parent, into_key, items, sessions, epoch)"
            " SELECT key, name, root, parent, ?2, (SELECT count(*) FROM item WHERE project = p.id),"
            " (SELECT count(*) FROM session WHERE project = p.id), ?3 FROM project p"
            " WHERE id = ?1 RETURNING id", own, into, now,
        )  # fmt: skip
        for what, query in _NOTED.items():
            self._db.execute(
                f"INSERT INTO project_join_row SELECT :joined, :what, * FROM ({query})",
                {"joined": joined, "what": what, "own": own, "into": into},
            )
        return int(joined)

    def part_project(self, join: Join, into: Project, now: int) -> int:
        self._require_lock("places")
        self._count_move()
        target = self._make_project(into)
        sessions: dict[str, int] = {}  # former id → present one
        for old, row in self._noted_rows(join.id, "session"):
            if row:
                sessions[old] = self._restore_session(into.key, *msgspec.json.decode(row))
            elif self._first_row("SELECT 1 FROM session WHERE id = ?", int(old)):
                self._move_session(int(old), target)
                sessions[old] = int(old)
        for table in _NUMBERED:
            self._db.executemany(
                f"UPDATE {table} SET session = ? WHERE id = ?",
                [(sessions.get(was, was), id_) for id_, was in self._noted_rows(join.id, table)],
            )
        moved = self._all_ids(  # what has come to the sessions since is theirs as well
            "SELECT id FROM item WHERE id IN (SELECT CAST(id AS BIGINT) FROM project_join_row"
            " WHERE joined = ? AND what = 'item') OR session <> 0 AND session IN"
            " (SELECT value FROM json_each(?)) ORDER BY id",
            join.id,
            str(list(sessions.values())),
        )
        self._move_items(moved, target)
        slugs = [(slug, item) for item, slug in self._noted_rows(join.id, "memory")]
        self._db.executemany("UPDATE memory SET slug = ? WHERE item = ?", slugs)
        self._db.execute("UPDATE project_join SET undone = ? WHERE id = ?", (now, join.id))
        self._db.execute("DELETE FROM project_join_row WHERE joined = ?", (join.id,))
        self._notice_moves()
        return len(moved)

    def _restore_session(
        self, project: str, key: str, agent: str, started: int, ended: int, *places: str
    ) -> int:
        """A session that the other project has as well, in its own again."""
        twin = self.session(key, agent)
        cwd, branch, transcript = places
        title = twin.title if twin else ""
        return self.put_session(
            Session(key, agent, project, started, ended, cwd, branch, title, transcript)
        )

    # --- reading -----------------------------------------------------------------------------

    def _noted_rows(self, joined: int, what: str) -> list[tuple[str, str]]:
        found = self._db.execute(
            "SELECT id, before FROM project_join_row WHERE joined = ? AND what = ?", (joined, what)
        )
        return [(str(id_), str(before)) for id_, before in found]
