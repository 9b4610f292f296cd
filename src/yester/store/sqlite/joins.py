"""Projects that were joined with another, in SQLite, and how to part them again.

The other project may have rows of its own and get more, so what was whose is written down by id
before anything is moved; both happen in the caller's one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yester.model import Join, Project
from yester.store.sqlite.memories import MemoryRows

# What belongs to a session by an id of its own. What was refined and archived of one that the other
# project had as well stays there: it says what need not be done twice.
_OF_SESSION = ("event", "turn", "injection")
_BY_SESSION = ("item", *_OF_SESSION, "refined", "archived", "owed_start")
_SESSION = ("key", "agent", "started", "ended", "cwd", "branch", "transcript")
# Sessions that the other project has as well: its row stays, and takes what was ours.
_TWINS = (
    "session s JOIN session t ON t.key = s.key AND t.agent = s.agent"
    " AND t.project = (SELECT id FROM project WHERE key = :into)"
)
_OWN = "(SELECT id FROM project WHERE key = :key)"
# What is written down of a project: what it is → id, what it was.
_NOTED = {
    "item": f"SELECT id, session FROM item WHERE project = {_OWN}",
    "memory": "SELECT m.item, m.slug FROM memory m JOIN item i ON i.id = m.item"
    f" WHERE i.project = {_OWN}",
    "child": "SELECT key, '' FROM project WHERE parent = :key",
    "gone": "SELECT json_array(source, ref), '' FROM memory_gone WHERE project = :key",
    "session": "SELECT s.id, iif(t.id IS NULL, '',"
    f" json_array({', '.join(f's.{name}' for name in _SESSION)}))"
    f" FROM {_TWINS.replace('JOIN', 'LEFT JOIN')} WHERE s.project = {_OWN}",
    **{
        table: f"SELECT o.id, o.session FROM {table} o JOIN {_TWINS} WHERE o.session = s.id"
        f" AND s.project = {_OWN}"
        for table in _OF_SESSION
    },
}


class JoinRows(MemoryRows):
    """The part of `SqliteStore` that joins projects so that it can be undone."""

    # --- writing, inside a transaction -------------------------------------------------------

    def merge_project(self, key: str, into: Project, now: int = 0) -> int:
        self._require_lock("places")
        joined = self._note_project(key, into.key, now) if now else 0
        if now and not joined:
            return 0
        moved = self._merge_project(key, into)
        return joined or moved

    def _merge_project(self, key: str, into: Project) -> int:
        row = self._first_row("SELECT id, root FROM project WHERE key = ?", key)
        known = self._first_row("SELECT id FROM project WHERE key = ?", into.key)
        if row is None or (known and known[0] == row[0]):
            self.put_project(into)
            return 0
        own, root = row
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
            target = self.put_project(into)
            self._part_slugs(own, into.key)
            for session in self._all_ids("SELECT id FROM session WHERE project = ?", own):
                self._move_session(session, target)
            self._move_items(ids, target)
            self._db.execute("DELETE FROM project WHERE id = ?", (own,))
        self._notice_moves()
        return len(ids)

    def _move_session(self, id_: int, project: int) -> None:
        twin = self._first_row(
            "SELECT t.id FROM session s JOIN session t ON t.key = s.key AND t.agent = s.agent"
            " WHERE s.id = ? AND t.project = ?", id_, project,
        )  # fmt: skip
        if twin is None:
            self._db.execute("UPDATE session SET project = ? WHERE id = ?", (project, id_))
            return
        for table in _BY_SESSION:
            self._db.execute(
                f"UPDATE OR IGNORE {table} SET session = ? WHERE session = ?", (twin[0], id_)
            )
        self.queue_sessions({twin[0]: 0})
        self._db.execute("DELETE FROM undistilled WHERE session = ?", (id_,))
        self._db.execute("DELETE FROM owed_start WHERE session = ?", (id_,))
        self._db.execute("DELETE FROM session WHERE id = ?", (id_,))

    def _note_project(self, key: str, into: str, now: int) -> int:
        """Write down what is a project's; the id of the join, 0 where there is nothing to join."""
        if key == into:
            return 0
        made = self._first_row(
            "INSERT INTO project_join(key, name, root, parent, into_key, items, sessions, epoch)"
            " SELECT key, name, root, parent, ?2, (SELECT count(*) FROM item WHERE project = p.id),"
            " (SELECT count(*) FROM session WHERE project = p.id), ?3 FROM project p"
            " WHERE key = ?1 RETURNING id", key, into, now,
        )  # fmt: skip
        if made is None:
            return 0
        for what, query in _NOTED.items():
            self._db.execute(
                "INSERT INTO project_join_row(joined, what, id, before)"
                f" SELECT :joined, :what, * FROM ({query})",
                {"joined": made[0], "key": key, "into": into, "what": what},
            )
        return int(made[0])

    def part_project(self, join: Join, into: Project, now: int) -> int:
        self._require_lock("places")
        self._count_move()
        target = self.put_project(into)
        sessions = self._restore_sessions(join.id, target)
        for id_, before in self._noted_rows(join.id, "item"):
            session = sessions.get(int(before), int(before))
            self._db.execute("UPDATE item SET session = ? WHERE id = ?", (session, int(id_)))
        moved = self._all_ids(  # what has come to the sessions since is theirs as well
            "SELECT id FROM item WHERE id IN (SELECT CAST(id AS INTEGER) FROM project_join_row"
            " WHERE joined = ? AND what = 'item') OR session <> 0 AND session IN"
            " (SELECT value FROM json_each(?)) ORDER BY id",
            join.id, str(list(sessions.values())),
        )  # fmt: skip
        self._move_items(moved, target)
        for item, slug in self._noted_rows(join.id, "memory"):
            self._db.execute("UPDATE memory SET slug = ? WHERE item = ?", (slug, int(item)))
        for child, _ in self._noted_rows(join.id, "child"):
            self._db.execute("UPDATE project SET parent = ? WHERE key = ?", (into.key, child))
        for gone, _ in self._noted_rows(join.id, "gone"):
            self._db.execute(
                "UPDATE memory_gone SET project = ? WHERE source = ? AND ref = ?",
                (into.key, *msgspec.json.decode(gone)),
            )
        self._db.execute("UPDATE project_join SET undone = ? WHERE id = ?", (now, join.id))
        self._db.execute("DELETE FROM project_join_row WHERE joined = ?", (join.id,))
        self._notice_moves()
        return len(moved)

    def _restore_sessions(self, joined: int, target: int) -> dict[int, int]:
        """The sessions that were the project's, in it again: former id → present one."""
        found = {}
        for id_, before in self._noted_rows(joined, "session"):
            old = int(id_)
            if before:
                found[old] = self._restore_session(joined, old, msgspec.json.decode(before), target)
            elif self._first_row("SELECT 1 FROM session WHERE id = ?", old):
                self._move_session(old, target)
                found[old] = old
        return found

    def _restore_session(self, joined: int, old: int, row: Sequence[object], target: int) -> int:
        free = self._first_row("SELECT 1 FROM session WHERE id = ?", old) is None
        (new,) = self._first_row(
            f"INSERT INTO session(id, project, title, {', '.join(_SESSION)}) VALUES (?, ?,"
            " coalesce((SELECT title FROM session WHERE key = ?3 AND agent = ?4 LIMIT 1), ''),"
            " ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING id",
            old if free else None, target, *row,
        )  # fmt: skip
        for table in _OF_SESSION:
            self._db.execute(
                f"UPDATE {table} SET session = ? WHERE id IN (SELECT id FROM project_join_row"
                " WHERE joined = ? AND what = ? AND before = ?)",
                (new, joined, table, str(old)),
            )
        return int(new)

    # --- reading -----------------------------------------------------------------------------

    def _noted_rows(self, joined: int, what: str) -> list[tuple[str, str]]:
        found = self._db.execute(
            "SELECT id, before FROM project_join_row WHERE joined = ? AND what = ?", (joined, what)
        )
        return [(str(id_), str(before)) for id_, before in found]
