"""The store in one SQLite file (WAL), for one machine. Contract: `contract.Store`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import apsw
import msgspec

from yester.errors import StoreError, StoreReplaced
from yester.model import DISTILLED, Filters, Item, Project, Session, Skipped, Source
from yester.project import bare
from yester.store import store_file
from yester.store.contract import Candidate, Entry, Put, Statistics, Store
from yester.store.lock import write_lock
from yester.store.migrate import (
    Migration,
    check_version,
    migrate,
    migrations,
    pending,
    version,
)
from yester.store.sqlite import index, rows
from yester.store.sqlite import maintenance as care
from yester.store.sqlite.capture import CaptureRows
from yester.store.sqlite.feedback import FeedbackRows
from yester.store.sqlite.joins import JoinRows
from yester.store.sqlite.ledger import LedgerRows
from yester.store.sqlite.maintenance import PATIENCE, explained, explains
from yester.store.sqlite.memories import MemoryRows
from yester.store.sqlite.overview import SESSION, OverviewRows
from yester.store.sqlite.vectors import NOT_EMBEDDED, Codes, VectorRows
from yester.store.sqlite.work import DistilRows
from yester.text import terms as tokenizer
from yester.text.document import document
from yester.text.query import Expression

_BATCH = 2_000  # documents held while the whole index is written
_SHORTEST_PREFIX = 6  # of a session's id, as `yester sessions` shows it
_NO_SUCH_ID = -1  # a filter that names something unknown must find nothing, not everything


class SqliteStore(
    CaptureRows,
    DistilRows,
    FeedbackRows,
    JoinRows,
    MemoryRows,
    OverviewRows,
    LedgerRows,
    VectorRows,
):
    """One connection; not shared between threads. Open it with `SqliteStore.open(folder)`."""

    def __init__(self, db: apsw.Connection, path: Path, lock: Path, patience: float) -> None:
        self._db = db
        self._path = path
        self._lock = lock
        self._patience = patience
        self._projects: dict[str, int] = {}
        self._sessions: dict[tuple[str, str, int], int] = {}
        self._index = index.IndexWriter(db)
        self._writes = 0
        self._members = index.Members()
        self._moves: Any = None
        self._codes: dict[str, Codes] = {}
        self._inode = path.stat().st_ino
        self._restores = care.restores(db)
        self._version = 0  # of the schema this yester knows
        self._measured: tuple[tuple[int, int], dict[tuple[int, ...], Any]] = ((0, -1), {})

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        now: int,
        patience: float = PATIENCE,
        steps: Sequence[Migration] | None = None,
        before_migration: Callable[[Store], None] | None = None,
    ) -> SqliteStore:
        """Open or create `folder/yester.db`, bringing its schema up to date.

        `before_migration(store)` is called once when an existing database is about to be changed.
        """
        path = store_file(folder)
        known = migrations("sqlite") if steps is None else steps
        with explained(path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / "run").mkdir(mode=0o700, exist_ok=True)
            # Made by us first: SQLite would use the umask, and -wal and -shm take this mode over.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            db = apsw.Connection(str(path))
            try:
                db.set_busy_timeout(int(patience * 1000))
                lock = care.lock_file(folder)
                if db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                    # Several openings of a new file at once: the switch does not wait by itself.
                    with write_lock(lock, max(patience, PATIENCE)):
                        db.execute("PRAGMA journal_mode = WAL")
                for pragma in (
                    "synchronous = FULL",  # a committed batch survives a power cut
                    "cache_size = -8000",
                    "foreign_keys = ON",
                    "journal_size_limit = 16777216",
                ):
                    db.execute(f"PRAGMA {pragma}")
                store = cls(db, path, lock, patience)
                if pending(db, known, str(path)):
                    with write_lock(lock, max(patience, PATIENCE)):
                        store._migrate(known, now, before_migration)
                store._version = known[-1].version
                return store
            except BaseException:
                db.close()
                raise

    def _migrate(
        self,
        steps: Sequence[Migration],
        now: int,
        before: Callable[[Store], None] | None,
    ) -> None:
        """Under the lock: another process may have been faster, or be half way through."""
        if not pending(self._db, steps, str(self._path)):
            return
        fresh = version(self._db) == 0
        if before is not None and not fresh:
            before(self)
        migrate(self._db, steps, str(self._path), now)
        if fresh:
            self._set_meta("tokenizer", str(tokenizer.VERSION))

    def in_place(self) -> bool:
        try:
            return (
                self._path.stat().st_ino == self._inode
                and care.restores(self._db) == self._restores
                and version(self._db) <= self._version
            )
        except (OSError, apsw.Error):
            return False

    @property
    def location(self) -> str:
        return str(self._path)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self, patience: float | None = None) -> Iterator[None]:
        wait = self._patience if patience is None else patience
        with explained(self._path), write_lock(self._lock, wait):
            self._begin(wait)
            self._writes += 1
            try:
                self._check_ours()
                self._notice_moves()
                yield
                self._db.execute("COMMIT")
            except BaseException:
                # What was remembered of rows that now never existed must go as well.
                self._projects.clear()
                self._sessions.clear()
                self._index.forget()
                self._members.forget()
                self._codes.clear()
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _check_ours(self) -> None:
        """Inside the transaction, so that it holds to its end: still the store that was opened, and
        with a schema we know. Raises before anything is written."""
        check_version(self._db, self._version, str(self._path))
        if not self.in_place():
            raise StoreReplaced(f"{self._path} holds a restored backup now; open it anew")

    def _begin(self, wait: float) -> None:
        """SQLite has a lock of its own, which a foreign tool may hold without having ours."""
        self._db.set_busy_timeout(int(wait * 1000))
        try:
            self._db.execute("BEGIN IMMEDIATE")
        finally:
            self._db.set_busy_timeout(int(self._patience * 1000))

    # --- writing -----------------------------------------------------------------------------

    def put_project(self, project: Project) -> int:
        if project.key in self._projects:
            return self._projects[project.key]
        row = self._one("SELECT id, root, name FROM project WHERE key = ?", project.key)
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
            if not self._one("SELECT 1 FROM project WHERE name = ? AND id <> ?", name, own):
                return name
        number = 2
        while self._one("SELECT 1 FROM project WHERE name = ?", f"{place}~{number}"):
            number += 1
        return f"{place}~{number}"

    def merge_project(self, key: str, into: Project) -> int:
        row = self._one("SELECT id, root FROM project WHERE key = ?", key)
        known = self._one("SELECT id FROM project WHERE key = ?", into.key)
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
            return int(self._one("SELECT count(*) FROM item WHERE project = ?", row[0])[0])
        target, row = self.put_project(into), row[:1]
        self._part_slugs(row[0], into.key)
        for (session,) in list(self._db.execute("SELECT id FROM session WHERE project = ?", row)):
            self._move_session(session, target)
        ids = [found[0] for found in self._db.execute("SELECT id FROM item WHERE project = ?", row)]
        self._move_items(ids, target)
        self._db.execute("DELETE FROM project WHERE id = ?", row)
        self._notice_moves()
        return len(ids)

    def _move_items(self, ids: Sequence[int], project: int) -> None:
        for id_ in ids:
            values = self._one(f"{rows.SELECT} WHERE i.id = ?", id_)
            item = rows.item(values)
            self._index.remove(id_, values[-2], item.kind)
            self._db.execute("UPDATE item SET project = ? WHERE id = ?", (project, id_))
            self._reindexed(item, project, values[-1])
        self._index.write()

    def _reindexed(self, item: Item, project: int, session: int) -> None:
        if item.status == "active":
            self._index.add(item.id, project, session, item, document(item))
        if len(self._index) >= _BATCH:
            self._index.write()

    def _count_move(self) -> None:
        """Other processes see by this number that items have changed their project."""
        moves = self._one("SELECT value FROM meta WHERE key = 'moves'")
        self._set_meta("moves", str(int(moves[0]) + 1 if moves else 1))

    def _notice_moves(self) -> None:
        """What is remembered of rows goes when somebody, we or others, has moved items or restored
        a backup."""
        moves = self._one("SELECT value FROM meta WHERE key = 'moves'"), care.restores(self._db)
        if moves != self._moves:
            self._moves = moves
            self._members.forget()
            self._projects.clear()
            self._sessions.clear()
            self._codes.clear()

    def _move_session(self, id_: int, project: int) -> None:
        twin = self._one(
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
            self._want_distilled({twin[0]: 0})
            self._db.execute("DELETE FROM undistilled WHERE session = ?", (id_,))
            self._db.execute("DELETE FROM owed_start WHERE session = ?", (id_,))
            self._db.execute("DELETE FROM session WHERE id = ?", (id_,))

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
        row = self._one(
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

    def put(self, entries: Sequence[Entry]) -> Put:
        return self._put(entries)

    def _put(self, entries: Sequence[Entry], lifted: bool = False) -> Put:
        """`lifted`: structured memories may be written as well; what changed of one need not stand
        in its texts."""
        # The same identity twice in one batch: the later one is the truth.
        latest = {(e.item.source, e.item.kind, e.item.ref): e for e in entries}
        unchanged = 0
        next_id = self._next_id()
        hooked = self._one("SELECT 1 FROM event LIMIT 1") is not None
        new: list[tuple[object, ...]] = []
        replaced: list[tuple[object, ...]] = []
        touched: dict[int, int] = {}
        for (source, kind, ref), entry in latest.items():
            old = self._one(
                "SELECT id, hash, project FROM item WHERE ref = ? AND kind = ? AND source = ?",
                ref, kind, source,
            )  # fmt: skip
            item = entry.item
            if old is None and hooked and item.alias:
                old = self._adopted(item)
            same = old is not None and old[1] == entry.hash
            if not lifted and kind == "memory":
                same = same or self._stays(old[0] if old else 0, source, ref)
            if same and not lifted:
                unchanged += 1
                continue
            project = self.put_project(bare(item.project))
            session = self._session_id(item, project)
            if session and source != DISTILLED and kind != "memory":  # what comes of a session
                touched[session] = min(item.epoch, touched.get(session, item.epoch))
            if old is None:
                id_, next_id = next_id, next_id + 1
            else:
                id_ = old[0]
                self._unlink(id_, old[2], kind)
                if old[2] != project:
                    self._count_move()
            into = new if old is None else replaced
            into.append(rows.row(item, id_, entry.hash, project, session))
            if item.status == "active":
                self._index.add(id_, project, session, item, entry.document)
        self._db.executemany(rows.INSERT, new)
        self._db.executemany(rows.REPLACE, replaced)
        self._link(chain(new, replaced))
        self._want_vectors(chain(new, replaced))
        self._want_distilled(touched)
        self._index.write()
        return Put(len(new), len(replaced), unchanged)

    def _next_id(self) -> int:
        """No id is given twice: what was let go is still named in ledgers and on screens."""
        row = self._one(
            "SELECT max((SELECT coalesce(max(id), 0) FROM item), coalesce("
            "(SELECT cast(value AS INTEGER) FROM meta WHERE key = 'last_item'), 0))"
        )
        return int(row[0]) + 1

    def _drop_item(self, id_: int, project: int, kind: str) -> None:
        self._set_meta("last_item", str(self._next_id() - 1))
        self._unlink(id_, project, kind)
        self._index.write()
        self._db.execute("DELETE FROM item WHERE id = ?", (id_,))

    def _adopted(self, item: Item) -> Any:
        """The row a hook made of the same thing, from now on under the transcript's ref."""
        old = self._one(
            "SELECT id, hash, project FROM item WHERE ref = ? AND kind = ? AND source = ?",
            item.alias, item.kind, item.source,
        )  # fmt: skip
        if old is not None:
            self._db.execute("UPDATE item SET ref = ? WHERE id = ?", (item.ref, old[0]))
        return old

    def _link(self, item_rows: Iterable[tuple[object, ...]]) -> None:
        """Files and concepts into tables of their own."""
        column = {name: at for at, name in enumerate(rows.COLUMNS)}
        files, concepts = [], []
        for row in item_rows:
            id_ = row[0]
            for modified, name in enumerate(("files_read", "files_modified")):
                text = row[column[name]]
                if text != "[]":
                    assert isinstance(text, str)
                    files += [
                        (rows.file_name(p), id_, p, modified) for p in msgspec.json.decode(text)
                    ]
            text = row[column["concepts"]]
            if text != "[]":
                assert isinstance(text, str)
                concepts += [(concept.lower(), id_) for concept in msgspec.json.decode(text)]
        self._db.executemany(
            "INSERT INTO item_file(name, item, path, modified) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET modified = max(modified, excluded.modified)",
            files,
        )
        self._db.executemany("INSERT OR IGNORE INTO item_concept VALUES (?, ?)", concepts)

    def _want_vectors(self, item_rows: Iterable[tuple[object, ...]]) -> None:
        role, status, epoch = (rows.COLUMNS.index(name) for name in ("role", "status", "epoch"))
        self._db.executemany(
            "INSERT OR REPLACE INTO unembedded"
            " VALUES (?, ?, cast(1000 * unixepoch('subsec') AS INTEGER))",
            [
                (row[0], row[epoch])
                for row in item_rows
                if row[role] not in NOT_EMBEDDED and row[status] == "active"
            ],
        )

    def _unlink(self, id_: int, project: int, kind: str) -> None:
        self._index.remove(id_, project, kind)
        self._forget_vectors(id_)
        self._db.execute("DELETE FROM unembedded WHERE item = ?", (id_,))
        (old,) = self.get([id_])
        for path in old.files:
            self._db.execute(
                "DELETE FROM item_file WHERE name = ? AND item = ?", (rows.file_name(path), id_)
            )
        for concept in old.concepts:
            self._db.execute(
                "DELETE FROM item_concept WHERE concept = ? AND item = ?", (concept.lower(), id_)
            )

    def remove(self, ids: Sequence[int]) -> None:
        for id_ in ids:
            row = self._one("SELECT project, kind FROM item WHERE id = ?", id_)
            if row is not None:
                self._unlink(id_, *row)
                self._db.execute("DELETE FROM item WHERE id = ?", (id_,))
                self._db.execute("DELETE FROM item_evidence WHERE item = ?", (id_,))
        self._index.write()

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

    def reindex(self) -> int:
        self._index.clear()
        number = 0
        for values in self._db.execute(rows.SELECT + " WHERE i.status = 'active' ORDER BY i.id"):
            self._reindexed(rows.item(values), values[-2], values[-1])
            number += 1
        self._index.write()
        self._set_meta("tokenizer", str(tokenizer.VERSION))
        return number

    # --- reading -----------------------------------------------------------------------------

    @explains
    def get(self, ids: Sequence[int]) -> list[Item]:
        found = {
            row[0]: rows.item(row)
            for row in self._db.execute(
                rows.SELECT + " WHERE i.id IN (SELECT value FROM json_each(?))", (str(list(ids)),)
            )
        }
        return [found[id_] for id_ in ids if id_ in found]

    def items(self, after: int = 0) -> Iterator[Item]:
        for row in self._db.execute(rows.SELECT + " WHERE i.id > ? ORDER BY i.id", (after,)):
            yield rows.item(row)

    @explains
    def find(self, ref: str) -> list[Item]:
        found = self._db.execute(rows.SELECT + " WHERE i.ref = ? ORDER BY i.id", (ref,))
        return [rows.item(row) for row in found]

    @explains
    def candidates(
        self,
        terms: Sequence[tuple[str, float, int]],
        filters: Filters,
        limit: int,
        must: Expression | None = None,
    ) -> list[Candidate]:
        projects, sessions = self._filter_ids(filters)
        by_token = (
            not (filters.files or filters.concepts) and filters.since is filters.until is None
        )
        exact = ("", ()) if by_token else rows.where(filters, projects, sessions)
        narrowing = index.filter_query(filters, projects, sessions)
        if wanted := index.match(must):
            narrowing.append(wanted)
        excluded = index.unwanted(must)
        members = None
        if by_token and len(narrowing) == len(projects) == 1 and not (excluded or wanted):
            members = self._members_of(projects[0])
        ids = index.likeliest(self._db, terms, narrowing, excluded, exact, limit, members)
        return index.load(self._db, ids)

    def _mask(self, filters: Filters) -> bytearray | None:
        """Which items pass, for filters that name one project and nothing else."""
        if replace(filters, projects=()) != Filters() or len(filters.projects) != 1:
            return None
        project = self._filter_ids(filters)[0][0]
        return self._members_of(project) if project != _NO_SUCH_ID else bytearray()

    def _members_of(self, project: int) -> bytearray:
        self._notice_moves()
        return self._members.of(self._db, project)

    @explains
    def load(self, ids: Sequence[int], filters: Filters | None = None) -> list[Candidate]:
        if not ids:
            return []
        filters = filters or Filters()
        return index.load(self._db, ids, rows.where(filters, *self._filter_ids(filters)))

    @explains
    def touching(self, files: Sequence[str], filters: Filters, limit: int) -> dict[int, int]:
        condition, args = rows.where(filters, *self._filter_ids(filters))
        return index.touching(self._db, files, condition, args, limit)

    @explains
    def concepts(self, names: Sequence[str], items: Sequence[int]) -> tuple[int, dict[int, int]]:
        return index.concepts(self._db, names, items)

    @explains
    def project_number(self, name: str) -> int:
        found = self._one("SELECT id FROM project WHERE name = ?1 OR key = ?1", name)
        return int(found[0]) if found else 0

    @explains
    def neighbours(self, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        return index.neighbours(self._db, ids)

    @explains
    def alike(self, term: str, most: int) -> list[str]:
        return index.alike(self._db, term, most)

    @explains
    def newest(
        self, filters: Filters, limit: int, offset: int = 0, oldest_first: bool = False
    ) -> list[Item]:
        condition, args = rows.where(filters, *self._filter_ids(filters))
        order = "i.epoch, i.id" if oldest_first else "i.epoch DESC, i.id DESC"
        found = self._db.execute(
            f"{rows.SELECT} WHERE {condition} ORDER BY {order} LIMIT ? OFFSET ?",
            (*args, limit, offset),
        )
        return [rows.item(row) for row in found]

    @explains
    def statistics(self, terms: Sequence[str], filters: Filters) -> Statistics:
        projects = self._filter_ids(filters)[0]
        items, lengths = self._lengths(tuple(projects))
        return Statistics(items, index.frequencies(self._db, terms, projects), lengths)

    def _lengths(self, projects: tuple[int, ...]) -> tuple[int, Mapping[tuple[str, int], float]]:
        """Remembered until somebody writes: `data_version` tells of others."""
        version = (self._one("PRAGMA data_version")[0], self._writes)
        if self._measured[0] != version:
            self._measured = (version, {})
        known = self._measured[1]
        if projects not in known:
            known[projects] = index.lengths(self._db, projects)
        found: tuple[int, Mapping[tuple[str, int], float]] = known[projects]
        return found

    def _filter_ids(self, filters: Filters) -> tuple[list[int], list[int]]:
        projects: list[int] = []
        for name in filters.projects:
            found = self._one("SELECT id FROM project WHERE name = ?1 OR key = ?1", name)
            projects.append(found[0] if found else _NO_SUCH_ID)
        sessions: list[int] = []
        if filters.session:
            exact = self._db.execute("SELECT id FROM session WHERE key = ?", (filters.session,))
            sessions = [row[0] for row in exact]
            if not sessions and len(filters.session) >= _SHORTEST_PREFIX:
                alike = self._db.execute(
                    "SELECT id FROM session WHERE key LIKE ? ESCAPE '\\'",
                    (rows.prefix_pattern(filters.session),),
                )
                sessions = [row[0] for row in alike]
            sessions = sessions or [_NO_SUCH_ID]
        return projects, sessions

    @explains
    def projects(self) -> list[Project]:
        found = self._db.execute("SELECT key, name, root, parent FROM project ORDER BY name")
        return [Project(*row) for row in found]

    @explains
    def sessions(
        self, filters: Filters, limit: int, offset: int = 0, oldest_first: bool = False
    ) -> list[Session]:
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
            f"{SESSION} WHERE {' AND '.join(parts)}"
            f" ORDER BY {'s.ended, s.id' if oldest_first else 's.ended DESC, s.id DESC'}"
            " LIMIT ? OFFSET ?",
            (*args, limit, offset),
        )
        return [Session(*row) for row in found]

    @explains
    def source(self, path: str) -> Source | None:
        found = self._db.execute(f"{rows.SOURCE} WHERE path = ?", (path,)).fetchone()
        return None if found is None else rows.source(found)

    @explains
    def sources(self, agent: str) -> list[Source]:
        found = self._db.execute(f"{rows.SOURCE} WHERE agent = ? ORDER BY path", (agent,))
        return [rows.source(row) for row in found]

    @property
    def size(self) -> int:
        files = (f"{self._path}{end}" for end in ("", "-wal"))
        return sum(os.path.getsize(file) for file in files if os.path.exists(file))  # noqa: PTH110, PTH202

    # --- looking after itself ----------------------------------------------------------------

    def check(self) -> list[str]:
        return care.check(self._db)

    def stale(self) -> str:
        row = self._one("SELECT value FROM meta WHERE key = 'tokenizer'")
        have = row[0] if row else "none"
        if have == str(tokenizer.VERSION):
            return ""
        return f"indexed with tokenizer version {have}, this yester has {tokenizer.VERSION}"

    def backup(self, path: Path) -> None:
        with explained(path):
            care.backup(self._db, path)

    def _set_meta(self, key: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def _one(self, sql: str, *args: object) -> Any:
        return self._db.execute(sql, args).fetchone()
