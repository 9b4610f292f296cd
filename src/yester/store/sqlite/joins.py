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
_SESSION = "key, agent, started, ended, cwd, branch, transcript"


class JoinRows(MemoryRows):
    """The part of `SqliteStore` that joins projects so that it can be undone."""

    # --- writing, inside a transaction -------------------------------------------------------

    def merge_project(self, key: str, into: Project, now: int = 0) -> int:
        self._require_lock("places")
        return self._join_project(key, into, now) if now else self._merge_project(key, into)

    def _merge_project(self, key: str, into: Project) -> int:
        row = self._first_row("SELECT id, root FROM project WHERE key = ?", key)
        known = self._first_row("SELECT id FROM project WHERE key = ?", into.key)
        if row is None or (known and known[0] == row[0]):
            self.put_project(into)
            return 0
        self._db.execute("UPDATE project SET parent = ? WHERE parent = ?", (into.key, key))
        self._db.execute("UPDATE memory_gone SET project = ? WHERE project = ?", (into.key, key))
        self._count_move()
        if known is None:  # nothing to merge with: it is called otherwise, and that is all
            self._db.execute(
                "UPDATE project SET key = ?, name = ?, root = ? WHERE id = ?",
                (into.key, self._free_name(into, row[0]), into.root or row[1], row[0]),
            )
            self._notice_moves()
            return int(self._first_row("SELECT count(*) FROM item WHERE project = ?", row[0])[0])
        target, row = self.put_project(into), row[:1]
        self._part_slugs(row[0], into.key)
        for (session,) in list(self._db.execute("SELECT id FROM session WHERE project = ?", row)):
            self._move_session(session, target)
        ids = [found[0] for found in self._db.execute("SELECT id FROM item WHERE project = ?", row)]
        self._move_items(ids, target)
        self._db.execute("DELETE FROM project WHERE id = ?", row)
        self._notice_moves()
        return len(ids)

    def _move_session(self, id_: int, project: int) -> None:
        twin = self._first_row(
            "SELECT t.id FROM session s JOIN session t ON t.key = s.key AND t.agent = s.agent"
            " WHERE s.id = ? AND t.project = ?", id_, project,
        )  # fmt: skip
        if twin is None:
            self._db.execute("UPDATE session SET project = ? WHERE id = ?", (project, id_))
        else:
            for table in ("item", "event", "turn", "injection", "refined", "archived",
                          "owed_start"):  # fmt: skip
                self._db.execute(
                    f"UPDATE OR IGNORE {table} SET session = ? WHERE session = ?", (twin[0], id_)
                )
            self.queue_sessions({twin[0]: 0})
            self._db.execute("DELETE FROM undistilled WHERE session = ?", (id_,))
            self._db.execute("DELETE FROM owed_start WHERE session = ?", (id_,))
            self._db.execute("DELETE FROM session WHERE id = ?", (id_,))

    def _join_project(self, key: str, into: Project, now: int) -> int:
        row = self._first_row("SELECT id, name, root, parent FROM project WHERE key = ?", key)
        if row is None or key == into.key:
            return 0
        project, *said = row
        counts = self._first_row(
            "SELECT (SELECT count(*) FROM item WHERE project = ?1),"
            " (SELECT count(*) FROM session WHERE project = ?1)", project,
        )  # fmt: skip
        self._db.execute(
            "INSERT INTO project_join(key, name, root, parent, into_key, items, sessions, epoch)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (key, *said, into.key, *counts, now),
        )
        joined = self._db.last_insert_rowid()
        self._note_rows(joined, "item", "SELECT id, session FROM item WHERE project = ?", project)
        self._note_rows(
            joined, "memory",
            "SELECT m.item, m.slug FROM memory m JOIN item i ON i.id = m.item"
            " WHERE i.project = ?", project,
        )  # fmt: skip
        self._note_rows(joined, "child", "SELECT key, '' FROM project WHERE parent = ?", key)
        self._note_rows(
            joined, "gone", "SELECT json_array(source, ref), '' FROM memory_gone"
            " WHERE project = ?", key,
        )  # fmt: skip
        self._note_rows(joined, "session", "SELECT id, '' FROM session WHERE project = ?", project)
        self._note_twins(joined, project, into.key)
        self._merge_project(key, into)
        return joined

    def _note_rows(self, joined: int, what: str, query: str, *args: object) -> None:
        self._db.execute(
            f"INSERT INTO project_join_row(joined, what, id, before) SELECT ?, ?, * FROM ({query})",
            (joined, what, *args),
        )

    def _note_twins(self, joined: int, project: int, into: str) -> None:
        """Sessions that the other project has as well: its row stays, and takes what was ours."""
        twins = self._db.execute(
            "SELECT s.id FROM session s JOIN session t ON t.key = s.key AND t.agent = s.agent"
            " JOIN project p ON p.id = t.project WHERE s.project = ? AND p.key = ?",
            (project, into),
        )
        for (session,) in list(twins):
            row = self._first_row(f"SELECT {_SESSION} FROM session WHERE id = ?", session)
            self._db.execute(
                "UPDATE project_join_row SET before = ? WHERE joined = ? AND what = 'session'"
                " AND id = ?",
                (msgspec.json.encode(row).decode(), joined, str(session)),
            )
            for table in _OF_SESSION:
                query = f"SELECT id, session FROM {table} WHERE session = ?"
                self._note_rows(joined, table, query, session)

    def part_project(self, join: Join, into: Project, now: int) -> int:
        self._require_lock("places")
        self._count_move()
        target = self.put_project(into)
        sessions = self._restore_sessions(join.id, target)
        moved = {
            int(id_): sessions.get(int(before), int(before))
            for id_, before in self._noted_rows(join.id, "item")
            if self._first_row("SELECT 1 FROM item WHERE id = ?", int(id_))
        }
        for id_, session in moved.items():
            self._db.execute("UPDATE item SET session = ? WHERE id = ?", (session, id_))
        for session in sessions.values():  # what has come to them since is theirs as well
            later = self._db.execute("SELECT id FROM item WHERE session = ?", (session,))
            moved.update((row[0], session) for row in later)
        self._move_items(sorted(moved), target)
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
        self._db.execute(
            f"INSERT INTO session(id, project, title, {_SESSION}) VALUES (?, ?, coalesce("
            "(SELECT title FROM session WHERE key = ?3 AND agent = ?4 LIMIT 1), ''),"
            " ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            (old if free else None, target, *row),
        )
        new = self._db.last_insert_rowid()
        for table in _OF_SESSION:
            self._db.execute(
                f"UPDATE {table} SET session = ? WHERE id IN (SELECT id FROM project_join_row"
                " WHERE joined = ? AND what = ? AND before = ?)",
                (new, joined, table, str(old)),
            )
        return new

    # --- reading -----------------------------------------------------------------------------

    def _noted_rows(self, joined: int, what: str) -> list[tuple[str, str]]:
        found = self._db.execute(
            "SELECT id, before FROM project_join_row WHERE joined = ? AND what = ?", (joined, what)
        )
        return [(str(id_), str(before)) for id_, before in found]
