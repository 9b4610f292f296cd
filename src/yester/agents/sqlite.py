"""Other programs' SQLite databases, read while they may be running: never written, never held.

No transaction stays open between two questions, so a client's writes and checkpoints are never
kept waiting. A database that is not in use is opened as immutable: a plain read-only connection
would leave `-wal` and `-shm` files beside it.
"""

from __future__ import annotations

from pathlib import Path
from stat import S_ISREG
from typing import Any

import apsw

from yester.agents.jsonl import LONGEST_LINE
from yester.files import open_file

_MAGIC = b"SQLite format 3\0"
_BUSY_MS = 2_000


class DatabaseProblem(Exception):
    """A database or a part of it cannot be read; the message says why.

    `passing` tells a lock, which the next run may not meet, from damage, which it will.
    """

    def __init__(self, error: Exception) -> None:
        self.passing = isinstance(error, apsw.BusyError | apsw.LockedError)
        super().__init__(
            "locked by another program; the next run reads it"
            if self.passing
            else f"cannot be read as a database ({error})"
        )


class Database:
    """A read-only view; every question is answered whole or raises DatabaseProblem."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._unused = False
        self._db = self._open()

    def _open(self) -> apsw.Connection:
        for end in ("", "-wal", "-shm", "-journal"):  # SQLite would wait for a pipe
            if not _is_plain(beside(self.path, end), missing=bool(end)):
                raise DatabaseProblem(OSError("not a regular file"))
        self._unused = _writes_ahead(self.path) and not _in_use(self.path)
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        name = self.path.absolute().as_uri() + ("?immutable=1" if self._unused else "")
        try:
            db = apsw.Connection(name, flags=flags)
            db.set_busy_timeout(_BUSY_MS)
            db.limit(apsw.SQLITE_LIMIT_LENGTH, LONGEST_LINE)
            for pragma in ("query_only = 1", "trusted_schema = 0", "cell_size_check = 1"):
                db.execute(f"PRAGMA {pragma}")
        except apsw.Error as error:
            raise DatabaseProblem(error) from None
        return db

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._unused and _in_use(self.path):  # the client has been started meanwhile
            self._db.close()
            self._db = self._open()
        try:
            return list(self._db.execute(sql, values))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise DatabaseProblem(error) from None

    def value(self, sql: str, *values: Any) -> Any:
        """The one value asked for, None if there is none; damage costs it alone and gives b""."""
        try:
            rows = self.rows(sql, *values)
        except DatabaseProblem as problem:
            if problem.passing:
                raise
            return b""
        return rows[0][0] if rows else None

    def columns(self, table: str) -> frozenset[str]:
        """The columns of a table; none if there is no such table."""
        return frozenset(
            row[0] for row in self.rows("SELECT name FROM pragma_table_info(?)", table)
        )

    def close(self) -> None:
        self._db.close()


def is_database(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def has_tables(path: Path, *tables: str) -> bool:
    if not is_database(path):
        return False
    try:
        database = Database(path)
        try:
            return all(database.columns(table) for table in tables)
        finally:
            database.close()
    except DatabaseProblem:
        return False


def stamp(path: Path) -> tuple[int, int]:
    """(size, mtime_ns) of a database with its write-ahead log, which changes before the file."""
    found = [path.stat()]
    wal = beside(path, "-wal")
    if wal.exists():
        found.append(wal.stat())
    return sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def text(value: Any) -> str:
    """A text column asked for as a blob: damaged bytes must not cost the row."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _writes_ahead(path: Path) -> bool:
    """In write-ahead mode, as the header says; else reading leaves nothing behind anyway."""
    try:
        with open_file(path) as file:
            return file.read(19)[18:] == b"\2"
    except OSError:
        return False


def _is_plain(path: Path, missing: bool) -> bool:
    try:
        return S_ISREG(path.stat().st_mode)
    except OSError:
        return missing


def _in_use(path: Path) -> bool:
    """By a program that has it open, or left behind by one that was killed."""
    try:
        return beside(path, "-shm").exists() or beside(path, "-wal").stat().st_size > 0
    except OSError:
        return False
