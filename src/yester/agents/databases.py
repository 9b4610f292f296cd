"""Transcripts that are SQLite databases of other programs, which may be running."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

from yester.agents.base import Reader, Reading
from yester.agents.sources import read_head
from yester.agents.values import LONGEST_LINE
from yester.model import Item

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
    """A read-only view of a database whose program may be running: never written, never held.

    No transaction stays open between two questions, so the program's writes and checkpoints are
    never kept waiting. A database that is not in use is opened as immutable: a plain read-only
    connection would leave `-wal` and `-shm` files beside it. Every question is answered whole or
    raises DatabaseProblem.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._columns: dict[str, frozenset[str]] = {}
        self._unused = False
        self._db = self._open()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _open(self) -> apsw.Connection:
        # In write-ahead mode, as the header says; else reading leaves nothing behind anyway.
        self._unused = read_head(self.path, 19)[18:] == b"\2" and not _in_use(self.path)
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

    def select_rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._unused and _in_use(self.path):  # the client has been started meanwhile
            self._db.close()
            self._db = self._open()
        try:
            return list(self._db.execute(sql, values))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise DatabaseProblem(error) from None

    def select_records(
        self, table: str, columns: tuple[str, ...], rest: str = "", *values: Any
    ) -> list[dict[str, Any]]:
        """Rows by column; None for a column that this version does not have.

        Texts are asked for as blobs: damaged bytes must not cost the row.
        """
        known = [self.column_or_null(table, name) for name in columns]
        fields = ", ".join(f"iif(typeof({n}) = 'text', CAST({n} AS BLOB), {n})" for n in known)
        rows = self.select_rows(f"SELECT {fields} FROM {table} {rest}", *values)
        return [dict(zip(columns, map(_decode_blob, row), strict=True)) for row in rows]

    def select_value(self, sql: str, *values: Any) -> Any:
        """The one value asked for, None if there is none; damage costs it alone and gives b""."""
        try:
            rows = self.select_rows(sql, *values)
        except DatabaseProblem as problem:
            if problem.passing:
                raise
            return b""
        return rows[0][0] if rows else None

    def table_columns(self, table: str) -> frozenset[str]:
        """The columns of a table; none if there is no such table."""
        if table not in self._columns:
            rows = self.select_rows("SELECT name FROM pragma_table_info(?)", table)
            self._columns[table] = frozenset(row[0] for row in rows)
        return self._columns[table]

    def column_or_null(self, table: str, column: str) -> str:
        return column if column in {"rowid", *self.table_columns(table)} else "NULL"


class RowProgress(msgspec.Struct, frozen=True):
    row: int = 0  # what changed, or was added, up to here has been read


class Part(NamedTuple):
    """A part of a database with something new in it, and what has been read when it is read."""

    name: str
    state: Any  # None: its items keep their place themselves
    items: Iterator[Item]


def read_database(
    reading: Reading, list_parts: Callable[[Database], Iterator[Part]]
) -> Iterator[Item]:
    """The items of a transcript that is a database, as far as it can be read.

    A part that cannot be read costs only itself. If it is locked, the next run begins before it.
    """
    whole = True
    try:
        with Database(reading.path) as database:
            for part in list_parts(database):
                try:
                    yield from part.items
                except DatabaseProblem as problem:
                    reading.report_bad(0, f"{part.name}: {problem}")
                    whole = whole and not problem.passing
                if whole and part.state is not None:
                    reading.state = part.state
    except DatabaseProblem as problem:
        reading.report_bad(0, str(problem))


def make_database_reader(
    list_parts: Callable[[Reading, Database], Iterator[Part]], *alternatives: tuple[str, ...]
) -> Reader:
    """The reader of an agent that keeps its sessions in databases with one of these groups of
    tables."""
    return Reader(
        lambda path: has_tables(path, *alternatives),
        lambda reading: read_database(reading, lambda database: list_parts(reading, database)),
    )


def is_database(path: Path) -> bool:
    return read_head(path, len(_MAGIC)) == _MAGIC


def has_tables(path: Path, *alternatives: tuple[str, ...]) -> bool:
    """Is it a database with all the tables of one of these groups?"""
    if not is_database(path):
        return False
    try:
        with Database(path) as database:
            return any(all(map(database.table_columns, tables)) for tables in alternatives)
    except DatabaseProblem:
        return False


def column_text(value: Any) -> str:
    """A text column asked for as a blob: damaged bytes must not cost the row."""
    text = _decode_blob(value)
    return text if isinstance(text, str) else ""


def _decode_blob(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _in_use(path: Path) -> bool:
    """By a program that has it open, or left behind by one that was killed."""
    shared, log = (path.with_name(path.name + end) for end in ("-shm", "-wal"))
    try:
        return shared.exists() or log.stat().st_size > 0
    except OSError:
        return False
