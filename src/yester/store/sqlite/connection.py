"""One connection to the SQLite file (WAL): opening, migrating, transactions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import EACCES, EPERM, EROFS
from pathlib import Path
from typing import TYPE_CHECKING, Self

import apsw

from yester.errors import StoreReplaced
from yester.machine import QUIET
from yester.store import migrate, sqlite_file
from yester.store.contract import Lock
from yester.store.lock import write_lock
from yester.store.rows.base import Rows
from yester.store.sqlite import index, maintenance
from yester.store.sqlite.maintenance import PATIENCE, explain_errors, restore_count
from yester.text import terms as tokenizer
from yester.tombstones import Tombstones

if TYPE_CHECKING:
    from yester.store import BeforeMigration
    from yester.store.sqlite.search import Codes


class Connection(Rows):
    """Not shared between threads. Open it with `open_folder`."""

    def __init__(self, db: apsw.Connection, path: Path, lock: Path, patience: float) -> None:
        self._path = path
        self._lock = lock
        self._patience = patience
        self._members: dict[int, bytearray] = {}
        self._codes: dict[str, Codes] = {}
        self._inode = path.stat().st_ino
        self._version = 0  # of the schema this yester knows
        super().__init__(db, index.IndexWriter(db), Tombstones(path.parent))

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        with explain_errors(self._path):
            try:
                yield
            except apsw.SQLError:  # a table or column that is gone: perhaps a newer schema's
                migrate.check_version(self._db, self._version, str(self._path))
                raise

    def _restore_count(self) -> int:
        return restore_count(self._db)

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
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | QUIET, 0o600))
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

    def _forget_rows(self) -> None:
        super()._forget_rows()
        self._members.clear()
        self._codes.clear()

    def _file_state(self) -> tuple[int, int]:
        """Another one as soon as anybody, we or others, has written."""
        return self._db.pragma("data_version"), self._db.total_changes()
