"""What people look through, in SQLite: the ledger, the projects, what there is to filter for, and
what is new since they last looked."""

from __future__ import annotations

from collections import defaultdict

import apsw

from yester.model import Feedback, Injection, Project, Session
from yester.store.contract import Facets, MemoryChange, Part
from yester.store.sqlite.maintenance import explains

# `session <> 0` says nothing new, but without it SQLite does not see that it may use the index of
# items by session, and reads every item there is.
SESSION = (
    "SELECT s.key, s.agent, p.key, s.started, s.ended, s.cwd, s.branch, s.title, s.transcript,"
    " (SELECT count(*) FROM item WHERE session = s.id AND session <> 0 AND kind = 'prompt'),"
    " (SELECT count(*) FROM item WHERE session = s.id AND session <> 0), s.id"
    " FROM session s JOIN project p ON p.id = s.project"
)
_WHOLE = -1  # the field of table `length` under which items are counted, whatever they hold


class OverviewRows:
    """The part of `SqliteStore` that those who look through it need."""

    _db: apsw.Connection

    @explains
    def ledger(
        self,
        limit: int,
        *,
        before: int = 0,
        after: int | None = None,
        session: int = 0,
        item: int = 0,
    ) -> list[Injection]:
        found = self._db.execute(
            "SELECT session, event, item, score, tokens, epoch, reason, prompt_number, id"
            " FROM injection WHERE id > ?1 AND (?2 = 0 OR id < ?2) AND (?3 = 0 OR session = ?3)"
            f" AND (?4 = 0 OR item = ?4) ORDER BY id {'DESC' if after is None else ''} LIMIT ?5",
            (after or 0, before, session, item, limit),
        )
        return [Injection(*row) for row in found]

    @explains
    def came_of(self, limit: int, *, before: int = 0, item: int = 0) -> list[Feedback]:
        found = self._db.execute(
            "SELECT item, what, epoch, session, id FROM feedback"
            " WHERE (?1 = 0 OR id < ?1) AND (?2 = 0 OR item = ?2) ORDER BY id DESC LIMIT ?3",
            (before, item, limit),
        )
        return [Feedback(*row) for row in found]

    @explains
    def changed(self) -> int:
        row = self._db.execute("PRAGMA data_version").fetchone()
        assert row is not None
        return int(row[0])

    @explains
    def last_ids(self) -> tuple[int, int]:
        row = self._db.execute(
            "SELECT (SELECT coalesce(max(id), 0) FROM item),"
            " (SELECT coalesce(max(id), 0) FROM injection)"
        ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    @explains
    def last_change(self) -> int:
        # Not the largest id there is: that one goes with its memory.
        row = self._db.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'memory_change'"
        ).fetchone()
        return int(row[0]) if row else 0

    @explains
    def changed_since(self, change: int, most: int) -> list[MemoryChange]:
        found = self._db.execute(
            "SELECT c.id, c.item, i.status, coalesce(m.version, 0) FROM memory_change c"
            " JOIN item i ON i.id = c.item LEFT JOIN memory m ON m.item = c.item"
            " WHERE c.id > ? ORDER BY c.id LIMIT ?", (change, most),
        )  # fmt: skip
        return list(map(MemoryChange._make, found))

    @explains
    def numbered(self, session: int) -> Session | None:
        row = self._db.execute(f"{SESSION} WHERE s.id = ?", (session,)).fetchone()
        return Session(*row) if row else None

    @explains
    def parts(self) -> list[Part]:
        kinds: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for project, kind, items in self._db.execute(
            "SELECT project, kind, items FROM length WHERE field = ? AND items > 0", (_WHOLE,)
        ):
            kinds[project][kind] = items
        found = self._db.execute(
            "SELECT p.id, count(s.id), coalesce(max(s.ended), 0), p.key, p.name, p.root, p.parent"
            " FROM project p LEFT JOIN session s ON s.project = p.id GROUP BY p.id ORDER BY p.name"
        )
        return [
            Part(Project(*about), kinds[id_], sessions, last)
            for id_, sessions, last, *about in found
        ]

    @explains
    def holding(self, project: str) -> dict[str, int]:
        found = self._db.execute(
            "SELECT kind, count(*) FROM item WHERE project = (SELECT id FROM project WHERE key = ?)"
            " GROUP BY kind", (project,),
        )  # fmt: skip
        return dict(found)

    @explains
    def facets(self, most: int) -> Facets:
        def numbers(sql: str, *args: int) -> dict[str, int]:
            return dict(self._db.execute(sql, args))

        return Facets(
            numbers(
                "SELECT kind, sum(items) FROM length WHERE field = ? GROUP BY kind"
                " HAVING sum(items) > 0 ORDER BY 2 DESC",
                _WHOLE,
            ),
            numbers(
                "SELECT type, count(*) FROM item WHERE type <> '' GROUP BY type"
                " ORDER BY 2 DESC, 1 LIMIT ?",
                most,
            ),
            numbers(
                "SELECT concept, count(*) FROM item_concept GROUP BY concept"
                " ORDER BY 2 DESC, 1 LIMIT ?",
                most,
            ),
            numbers("SELECT agent, count(*) FROM session GROUP BY agent ORDER BY 2 DESC, 1"),
        )
