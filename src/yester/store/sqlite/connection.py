"""One connection to the SQLite file (WAL): opening, migrating, transactions, and what all parts of
the store share."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Self

import apsw

from yester.errors import StoreReplaced
from yester.model import Filters
from yester.store import migrate, sqlite_file
from yester.store.contract import Lock
from yester.store.lock import write_lock
from yester.store.sqlite import index, maintenance, rows
from yester.store.sqlite.maintenance import PATIENCE, explain_errors, restore_count
from yester.store.sqlite.rows import Condition
from yester.text import terms as tokenizer
from yester.tombstones import Tombstones

if TYPE_CHECKING:
    from yester.store import BeforeMigration
    from yester.store.sqlite.vectors import Codes

_SHORTEST_PREFIX = 6  # of a session's id, as `yester sessions` shows it
NO_SUCH_ID = -1  # a filter that names something unknown must find nothing, not everything


class Connection:
    """Not shared between threads. Open it with `open_folder`."""

    def __init_subclass__(cls) -> None:
        """Database errors come out of every public method of a part as sentences."""
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and not name.startswith("_"):
                setattr(cls, name, maintenance.explains_errors(method))

    def __init__(self, db: apsw.Connection, path: Path, lock: Path, patience: float) -> None:
        self._db = db
        self._path = path
        self._lock = lock
        self._patience = patience
        self._projects: dict[str, int] = {}
        self._sessions: dict[tuple[str, str, int], int] = {}
        self._members: dict[int, bytearray] = {}
        self._codes: dict[str, Codes] = {}
        self._moves: Any = None
        self._index = index.IndexWriter(db)
        self._locked: Lock | None = None
        self._inode = path.stat().st_ino
        self._restores = restore_count(db)
        self._version = 0  # of the schema this yester knows
        self._tombstones = Tombstones(path.parent)

    @classmethod
    def open_folder(
        cls,
        folder: Path,
        *,
        now: int,
        patience: float = PATIENCE,
        steps: Sequence[migrate.Migration] | None = None,
        before_migration: BeforeMigration | None = None,
    ) -> Self:
        """Open or create `folder/yester.db`, bringing its schema up to date. One that nobody may
        write can be read.

        `before_migration(store)` is called once when an existing database is about to be changed.
        """
        path = sqlite_file(folder)
        known = migrate.load_migrations("sqlite") if steps is None else steps
        with explain_errors(path):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                (folder / "run").mkdir(mode=0o700, exist_ok=True)
                # Made by us first: SQLite would use the umask, and -wal and -shm take this over.
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                db = apsw.Connection(str(path))
            except OSError as error:
                if error.errno not in (EROFS, EACCES, EPERM) or not path.exists():
                    raise
                db = maintenance.connect_reader(path)
            try:
                db.set_busy_timeout(int(patience * 1000))
                lock = maintenance.lock_file(folder)
                if db.pragma("journal_mode") != "wal" and not db.readonly("main"):
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
                if migrate.pending_migrations(db, known, str(path)):
                    with write_lock(lock, max(patience, PATIENCE)):
                        store._migrate_schema(known, now, before_migration)
                store._version = known[-1].version
                return store
            except BaseException:
                db.close()
                raise

    def _migrate_schema(
        self, steps: Sequence[migrate.Migration], now: int, before: BeforeMigration | None
    ) -> None:
        """Under the lock: another process may have been faster, or be half way through."""
        pending = migrate.pending_migrations(self._db, steps, str(self._path))
        fresh = migrate.schema_version(self._db) == 0
        if before is not None and pending and not fresh:
            before(self)  # type: ignore[arg-type]  # it is a whole store by then
        migrate.apply_migrations(self._db, pending, now)
        if fresh:
            self._set_meta("tokenizer", str(tokenizer.VERSION))

    def in_place(self) -> bool:
        try:
            return (
                self._path.stat().st_ino == self._inode
                and restore_count(self._db) == self._restores
                and migrate.schema_version(self._db) <= self._version
            )
        except (OSError, apsw.Error):
            return False

    @property
    def location(self) -> str:
        return str(self._path)

    @property
    def size(self) -> int:
        files = (f"{self._path}{end}" for end in ("", "-wal"))
        return sum(os.path.getsize(file) for file in files if os.path.exists(file))  # noqa: PTH110, PTH202

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self, lock: Lock, patience: float | None = None) -> Iterator[None]:
        wait = self._patience if patience is None else patience
        with explain_errors(self._path), write_lock(self._lock, wait):
            self._begin_writing(wait)
            self._locked = lock
            try:
                self._check_ours()
                self._notice_moves()
                self._tombstones.refresh()
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._index.forget_batch()
                self._forget_rows()  # that now never existed
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            finally:
                self._locked = None

    def _require_lock(self, lock: Lock) -> None:
        """There is one writer anyway; another engine would let others in."""
        if self._locked != lock:
            raise RuntimeError(f"this is written in transaction({lock!r}), not in {self._locked!r}")

    def _check_ours(self) -> None:
        """Inside the transaction, so that it holds to its end: still the store that was opened, and
        with a schema we know. Raises before anything is written."""
        migrate.check_version(self._db, self._version, str(self._path))
        if not self.in_place():
            raise StoreReplaced(
                f"{self._path} is another one now: a backup was restored, or something was "
                "forgotten; open it anew"
            )

    def _begin_writing(self, wait: float) -> None:
        """SQLite has a lock of its own, which a foreign tool may hold without having ours."""
        self._db.set_busy_timeout(int(wait * 1000))
        try:
            self._db.execute("BEGIN IMMEDIATE")
        finally:
            self._db.set_busy_timeout(int(self._patience * 1000))

    def _count_move(self) -> None:
        """Other processes see by this number that items have changed their project."""
        self._set_meta("moves", str(int(self._get_meta("moves") or 0) + 1))

    def _notice_moves(self) -> None:
        """What is remembered of rows goes when somebody, we or others, has moved items or restored
        a backup."""
        moves = self._get_meta("moves"), restore_count(self._db)
        if moves != self._moves:
            self._moves = moves
            self._forget_rows()

    def _forget_rows(self) -> None:
        for known in (self._projects, self._sessions, self._members, self._codes):
            known.clear()

    def _file_state(self) -> tuple[int, int]:
        """Another one as soon as anybody, we or others, has written."""
        return self._db.pragma("data_version"), self._db.total_changes()

    def _filter_items(self, filters: Filters, statuses: Sequence[str] = ("active",)) -> Condition:
        return rows.filter_condition(filters, *self._filter_ids(filters), statuses)

    def _filter_ids(self, filters: Filters) -> tuple[list[int], list[int]]:
        projects = [self._project_id(name) or NO_SUCH_ID for name in filters.projects]
        if filters.session_id or not filters.session:
            return projects, [filters.session_id] if filters.session_id else []
        sessions = self._all_ids("SELECT id FROM session WHERE key = ?", filters.session)
        if not sessions and len(filters.session) >= _SHORTEST_PREFIX:
            sessions = self._all_ids(
                "SELECT id FROM session WHERE key LIKE ? ESCAPE '\\'",
                rows.prefix_pattern(filters.session),
            )
        return projects, sessions or [NO_SUCH_ID]

    def _project_id(self, name: str) -> int:
        """By name or key; 0: there is none."""
        return self._first_value("SELECT id FROM project WHERE name = ?1 OR key = ?1", name) or 0

    def _is_forgotten(self, project: str) -> bool:
        """Was this project (a key) forgotten, and nothing of it stored since?"""
        return self._tombstones.knows("project", project) and not self._project_id(project)

    def _get_meta(self, key: str) -> str:
        return self._first_value("SELECT value FROM meta WHERE key = ?", key) or ""

    def _next_id(self, table: str) -> int:
        """No id is given twice, though the newest row may be gone: what was let go is still named
        in ledgers, on screens and in memory; whoever lets go of rows notes it as `last_TABLE`."""
        newest = self._first_value(f"SELECT max(id) FROM {table}") or 0
        return max(newest, int(self._get_meta(f"last_{table}") or 0)) + 1

    def _set_meta(self, key: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def _first_row(self, sql: str, *args: object) -> Any:
        return self._db.execute(sql, args).fetchone()

    def _first_value(self, sql: str, *args: object) -> Any:
        """Of the first row the first value; None where there is none."""
        row = self._first_row(sql, *args)
        return row and row[0]

    def _all_ids(self, sql: str, *args: object) -> list[int]:
        return [row[0] for row in self._db.execute(sql, args)]
