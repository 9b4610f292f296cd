"""What transcripts are kept in: JSON lines, Markdown, other programs' SQLite databases.

Each is read as it really is: growing, cut off, rewritten, damaged, or locked by who writes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from errno import EFBIG
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, Final, Generic, NamedTuple, TypeVar

import apsw
import msgspec

from yester.agents.base import Reading, load_state
from yester.agents.values import LONGEST_LINE, split_objects
from yester.files import open_file
from yester.model import Item

T = TypeVar("T")

# --- JSON lines ----------------------------------------------------------------------------------

ENDLESS = 4 * LONGEST_LINE  # bytes without a line end, after which the file is no transcript
PIECE = 4 * 1024 * 1024  # of a line, between two pauses
_FIRST_RECORDS = 20  # that tell whose file it is
_decode_dict = msgspec.json.Decoder(dict[str, Any]).decode


class Pause(Enum):
    PAUSE = "PAUSE"


PAUSE: Final = Pause.PAUSE  # nothing yet: whoever has other things to do can do them here


class BadLine(NamedTuple):
    """A line that holds no record."""

    reason: str


def read_records(
    path: Path, offset: int, line: int, decode: Callable[[bytes], T], convert: Callable[[Any], T]
) -> Iterator[tuple[int, int, int, T | BadLine | Pause]]:
    """(start, end, line number, record, BadLine or PAUSE) from `offset` on.

    `decode` takes a line's bytes; where it fails, glued records are taken apart with the standard
    library and handed to `convert`. An unfinished last line is left for the next run. A file
    without line ends raises OSError.
    """
    with open_file(path) as file:
        file.seek(offset)
        for raw, length in _read_lines(file, path):
            if not length:
                yield offset, offset, line, PAUSE
                continue
            start, offset, line = offset, offset + length, line + 1
            complete = raw.endswith(b"\n")
            if length >= LONGEST_LINE + complete:
                yield start, offset, line, BadLine(f"longer than {LONGEST_LINE >> 20} MB")
                continue
            if raw.isspace():
                continue
            try:
                yield start, offset, line, decode(raw)
                continue
            except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
                pass
            found = split_objects(raw.decode("utf-8", "replace"))
            if found:
                for value in found:
                    yield start, offset, line, convert(value)
            elif complete:
                yield start, offset, line, BadLine("not JSON")
            else:
                return  # still being written


def first_records(path: Path) -> Iterator[dict[str, Any]]:
    """The first records of a file, to tell whose it is."""
    if path.suffix != ".jsonl":
        return
    try:
        for *_, record in islice(read_records(path, 0, 0, _decode_dict, dict), _FIRST_RECORDS):
            if isinstance(record, dict):
                yield record
    except OSError:
        return


def _read_lines(file: BinaryIO, path: Path) -> Iterator[tuple[bytes, int]]:
    """Each line with its length; of one that is too long only the end. Length 0: a pause."""
    parts: list[bytes] = []
    length = 0
    while part := file.readline(PIECE):
        length += len(part)
        if length > LONGEST_LINE:
            parts.clear()
        parts.append(part)
        if part.endswith(b"\n") or len(part) < PIECE:
            yield b"".join(parts), length
            parts, length = [], 0
        elif length >= ENDLESS:
            raise OSError(EFBIG, f"no line end in {ENDLESS >> 20} MB", str(path))
        else:
            yield b"", 0
    if length:
        yield b"".join(parts), length


# --- Markdown ------------------------------------------------------------------------------------

# An unfinished last line that begins like this may become a mark: it is left for the next run.
_MARK_BEGINS = ("#", ">", "_", "<", "-")
_CHUNK = 1 << 20
_LONGEST_BLOCK = 8 << 20  # characters


@dataclass(frozen=True, slots=True)
class MarkdownState:
    before: str = ""  # digest of everything before the place to read on from


M = TypeVar("M", bound=MarkdownState)


@dataclass(slots=True)
class Block(Generic[M]):
    """Lines that belong together, with the place and the state before the first of them."""

    kind: str
    offset: int
    line: int
    state: M
    lines: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


class Markdown(ABC, Generic[M]):
    """One pass over one file: from where the last run ended, or from the start if it changed.

    A block is finished when the next one begins, so the last one is read again by the next run.
    Reading on is safe only while everything before is what it was: a digest of it is kept.
    """

    def __init__(self, reading: Reading, kind: type[M]) -> None:
        self.reading = reading
        self.state = load_state(kind, reading.state)
        self._passed = blake2b(digest_size=16)
        if reading.offset and not self._is_unchanged():
            reading.offset = reading.line = 0
            self.state = kind()
            self._passed = blake2b(digest_size=16)

    @abstractmethod
    def block_kind(self, text: str) -> str | None:
        """The kind of block this line begins; None if it goes on with the last one."""

    @abstractmethod
    def read_block(self, block: Block[M]) -> Iterator[Item]:
        """What a block gives. It may be read twice, from the same state."""

    def read_blocks(self) -> Iterator[Item]:
        block: Block[M] | None = None
        for offset, number, text in self._read_lines():
            kind = self.block_kind(text)
            if kind is not None or block is None:
                if block:
                    yield from self.read_block(block)
                state = replace(self.state, before=self._passed.hexdigest())
                block = Block(kind or "", offset, number, state)
                reading = self.reading
                reading.offset, reading.line, reading.state = offset, number, state
            block.size += len(text)
            if block.size > _LONGEST_BLOCK:
                self.reading.skip("line of an endless block")
            else:
                block.lines.append(text)
        if block:  # read, but not passed
            yield from self.read_block(block)

    def _read_lines(self) -> Iterator[tuple[int, int, str]]:
        offset, number = self.reading.offset, self.reading.line
        with open_file(self.reading.path) as file:
            file.seek(offset)
            while raw := file.readline(LONGEST_LINE):
                text = raw.decode("utf-8", "replace").rstrip("\r\n")
                if not raw.endswith(b"\n") and text.lstrip().startswith(_MARK_BEGINS):
                    return
                yield offset, number, text
                self._passed.update(raw)
                offset, number = offset + len(raw), number + 1

    def _is_unchanged(self) -> bool:
        left = self.reading.offset
        with open_file(self.reading.path) as file:
            while left > 0 and (chunk := file.read(min(left, _CHUNK))):
                self._passed.update(chunk)
                left -= len(chunk)
        return left == 0 and self._passed.hexdigest() == self.state.before


def starts_with(path: Path, mark: str) -> bool:
    """Is this the first thing a Markdown file says?"""
    head = _read_head(path, 4096) if path.suffix == ".md" else b""
    return head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").startswith(mark)


# --- SQLite --------------------------------------------------------------------------------------

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
        self._unused = False
        self._db = self._open()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def _open(self) -> apsw.Connection:
        for end in ("", "-wal", "-shm", "-journal"):  # SQLite would wait for a pipe
            if not _is_regular(_path_beside(self.path, end), missing=bool(end)):
                raise DatabaseProblem(OSError("not a regular file"))
        # In write-ahead mode, as the header says; else reading leaves nothing behind anyway.
        self._unused = _read_head(self.path, 19)[18:] == b"\2" and not _in_use(self.path)
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
        rows = self.select_rows("SELECT name FROM pragma_table_info(?)", table)
        return frozenset(row[0] for row in rows)


def read_database(
    reading: Reading, read: Callable[[Reading, Database], Iterator[T]]
) -> Iterator[T]:
    """What `read` finds in the transcript, which is a database; as far as it can be read."""
    try:
        with Database(reading.path) as database:
            yield from read(reading, database)
    except DatabaseProblem as problem:
        reading.report_bad(0, str(problem))


def is_database(path: Path) -> bool:
    return _read_head(path, len(_MAGIC)) == _MAGIC


def has_tables(path: Path, *tables: str) -> bool:
    if not is_database(path):
        return False
    try:
        with Database(path) as database:
            return all(map(database.table_columns, tables))
    except DatabaseProblem:
        return False


def stamp_database(path: Path) -> tuple[int, int]:
    """(size, mtime_ns) of a database with its write-ahead log, which changes before the file."""
    found = [path.stat()]
    wal = _path_beside(path, "-wal")
    if wal.exists():
        found.append(wal.stat())
    return sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)


def column_text(value: Any) -> str:
    """A text column asked for as a blob: damaged bytes must not cost the row."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _path_beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _read_head(path: Path, size: int) -> bytes:
    """The first bytes of a file; none if it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(size)
    except OSError:
        return b""


def _is_regular(path: Path, missing: bool) -> bool:
    try:
        return S_ISREG(path.stat().st_mode)
    except OSError:
        return missing


def _in_use(path: Path) -> bool:
    """By a program that has it open, or left behind by one that was killed."""
    try:
        return _path_beside(path, "-shm").exists() or _path_beside(path, "-wal").stat().st_size > 0
    except OSError:
        return False
