"""Transcripts that are files of lines (JSON and Markdown), and SQLite databases of other programs,
which may be running.

Each is read as it really is: growing, cut off, rewritten or damaged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from errno import EFBIG, ENOTSUP
from functools import cache
from importlib import import_module
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, TypedDict

import apsw
import msgspec

from yester.agents import base
from yester.agents.values import (
    LONGEST_LINE,
    Record,
    decode_json,
    dict_at,
    dicts_at,
    input_fields,
    list_blocks,
    nested_text,
    split_objects,
    text_at,
    value_at,
)
from yester.files import open_file, read_bytes
from yester.model import Item

# --- JSON lines ----------------------------------------------------------------------------------

ENDLESS = 4 * LONGEST_LINE  # bytes without a line end, after which the file is no transcript
_FIRST_RECORDS = 20  # that tell whose file it is


class BadLine(NamedTuple):
    """A line that holds no record."""

    reason: str


# (start, end, line number, record) of what a line holds
LineRecord = tuple[int, int, int, dict[str, Any] | BadLine]
Names = tuple[str, ...]  # of fields, columns, tables


@cache
def _record_decoder(fields: Names, packed: Names) -> msgspec.json.Decoder[dict[str, Any]]:
    """Unpacks these fields of a line, of any type, and passes over the others; leaves `packed`."""
    if not fields:
        return msgspec.json.Decoder(dict[str, Any])
    types = dict.fromkeys(fields, Any) | dict.fromkeys(packed, msgspec.Raw)
    return msgspec.json.Decoder(TypedDict("Fields", types, total=False))  # type: ignore[operator]


def read_records(
    path: Path, offset: int, line: int, fields: Names = (), packed: Names = ()
) -> Iterator[LineRecord]:
    """The records from `offset` on, with these fields or all; those that are `packed` as JSON.

    Glued records are taken apart with the standard library. An unfinished last line is left for the
    next run. A file without line ends raises OSError.
    """
    decode = _record_decoder(fields, packed).decode
    with _open_lines(path, offset) as file:
        for raw, length in _read_lines(file, path):
            start, offset, line = offset, offset + length, line + 1
            if length > len(raw):
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
            for value in found:
                yield start, offset, line, value
            if not found and not raw.endswith(b"\n"):
                return  # still being written
            if not found:
                yield start, offset, line, BadLine("not JSON")


def first_records(path: Path) -> Iterator[dict[str, Any]]:
    """The first records of a file, to tell whose it is."""
    if ".jsonl" not in path.suffixes:
        return
    try:
        for *_, record in islice(read_records(path, 0, 0), _FIRST_RECORDS):
            if isinstance(record, dict):
                yield record
    except OSError:
        return


def _open_lines(path: Path, offset: int) -> BinaryIO:
    """A file, or what was compressed into it, from this byte of it on."""
    if path.suffix != ".zst":
        file = open_file(path)
        file.seek(offset)
        return file
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise OSError(ENOTSUP, "is compressed; run: pip install zstandard", str(path)) from None
    reader = zstandard.ZstdDecompressor().stream_reader(open_file(path), closefd=True)
    reader.seek(offset)
    return BufferedReader(reader)


def _read_lines(file: BinaryIO, path: Path) -> Iterator[tuple[bytes, int]]:
    """Each line with its length; of one that is too long only the end."""
    length = 0
    while raw := file.readline(LONGEST_LINE):
        length += len(raw)
        if length >= ENDLESS:
            raise OSError(EFBIG, f"no line end in {ENDLESS >> 20} MB", str(path))
        if raw.endswith(b"\n") or len(raw) < LONGEST_LINE:
            yield raw, length
            length = 0
    if length:
        yield b"", length


def read_head(path: Path, size: int) -> bytes:
    """The first bytes of a file; none if it cannot be read."""
    try:
        with open_file(path) as file:
            return file.read(size)
    except OSError:
        return b""


# --- transcripts of JSON lines -------------------------------------------------------------------

# A call that got no result within so many lines was interrupted; it is stored without one. Copilot
# writes all a sub-agent does between the call that started it and its result.
_PATIENCE_LINES = 1_000


class Waiting(NamedTuple):
    """An item that is not complete yet, and its line."""

    item: Item
    line: int


class Transcript(base.Conversation, ABC):
    """One pass over one file of records: the state so far and the calls that wait for their result.

    A tool call and its result become one item: the call waits until its result comes. The place to
    read on from is the last line before which nothing waited, so the next run meets both again.
    """

    state_type: ClassVar[type[base.State]] = base.State
    fields: ClassVar[Names] = ()  # of a record that are looked at; none named: all
    packed: ClassVar[Names] = ()  # those that are unpacked only where they are needed

    def __init__(self, reading: base.Reading, state: base.State | None = None) -> None:
        if self.is_document(reading.path):
            reading.offset, reading.line, reading.state = 0, 0, None
        state = state or reading.load_state(self.state_type)
        state.session = state.session or self.name_session(reading.path)
        super().__init__(reading, state)
        self.waiting: dict[str, Waiting] = {}

    @classmethod
    def is_own_file(cls, path: Path) -> bool:
        return any(map(cls.is_own_record, first_records(path)))

    @staticmethod
    def is_document(path: Path) -> bool:
        """Is it one JSON document? Then it is written anew whenever it grows."""
        return path.suffix == ".json"

    @staticmethod
    def is_own_record(_: dict[str, Any]) -> bool:
        """Does only this agent write such a record?"""
        return False

    @staticmethod
    def name_session(path: Path) -> str:
        """The session of a file whose records have not named it yet."""
        return path.stem

    @abstractmethod
    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        """What one record of the file gives; most give nothing."""

    def session_file(self) -> str:
        return "" if self.state.actor else super().session_file()

    def read_source(self) -> Iterator[LineRecord]:
        """The records from the place to read on from; of a document all, or itself."""
        reading = self.reading
        if self.is_document(reading.path):
            whole = decode_json(read_bytes(reading.path, LONGEST_LINE))
            found = whole if isinstance(whole, list) else [whole]
            rows = [one if isinstance(one, dict) else BadLine("not JSON") for one in found]
            return ((0, 0, number, row) for number, row in enumerate(rows, 1))
        return read_records(reading.path, reading.offset, reading.line, self.fields, self.packed)

    def read_items(self) -> Iterator[Item]:
        end = self.reading.offset
        for start, stop, number, record in self.read_source():
            end = stop
            if number != self.number:  # glued records share a line: it is read as a whole again
                self.keep_place(start)
                self.number = number
            if isinstance(record, BadLine):
                self.reading.report_bad(number, record.reason)
            else:
                try:
                    yield from self.read_record(record)
                except (AttributeError, LookupError, TypeError, ValueError) as error:
                    # Not of the form its type promises: that costs this record alone.
                    self.reading.report_bad(number, f"not understood ({type(error).__name__})")
            yield from self._give_up_waiting()
        self.keep_place(end)
        yield from (call.item for call in self.waiting.values())

    def keep_place(self, offset: int) -> None:
        """Behind the line that was read: here the next run goes on, unless something waits."""
        if not self.waiting:
            reading = self.reading
            reading.offset, reading.line, reading.state = offset, self.number, copy(self.state)

    def _give_up_waiting(self) -> Iterator[Item]:
        for key, call in list(self.waiting.items()):
            if self.number - call.line > _PATIENCE_LINES:
                yield self.waiting.pop(key).item

    def read_message(self, ref: str, message: Record) -> Iterator[Item]:
        """A message in the form of the models' interfaces."""
        role, blocks = text_at(message, "role"), list_blocks(message.get("content"))
        if role == "tool" and "tool_call_id" in message:
            yield from self.add_result(message["tool_call_id"], base.Result(message.get("content")))
            return
        if role not in ("user", "assistant", "tool"):
            self.reading.skip(role or text_at(message, "type") or "untyped")
            return
        if role == "user":
            typed = [nested_text(one) for one in blocks if one.get("type") == "text"]
            blocks = [one for one in blocks if one.get("type") != "text"]
            if said := "\n".join(typed).strip():
                yield from self.read_typed(ref, said, message)
        for at, block in enumerate(blocks):
            yield from self.read_block(f"{ref}:{at}" if at else ref, block)
        for call in dicts_at(message, "tool_calls"):
            function = dict_at(call, "function")
            given = input_fields(function.get("arguments"))
            yield from self.read_call(call.get("id"), text_at(function, "name"), given)

    def read_typed(self, ref: str, said: str, _: Record) -> Iterator[Item]:
        """A user's message: what was typed, without what the client has put into it."""
        if text := base.strip_client_text(self.agent, "prompt", said).strip():
            yield self.make_prompt(ref, text)
        else:
            self.reading.skip("client's own text")

    def read_block(self, ref: str, block: Any) -> Iterator[Item]:
        """A part of a message in the form of the models' interfaces: said, thought or done."""
        kind = text_at(block, "type")
        if kind == "text":
            yield self.make_message(ref, block)
        elif kind in ("thinking", "reasoning", "think"):
            yield self.make_message(ref, text_at(block, "text", "thinking", "think"), "thinking")
        elif kind in ("tool_use", "tool-call", "toolCall"):
            key, tool = value_at(block, "id", "toolCallId"), text_at(block, "name", "toolName")
            given = value_at(block, "input", "args", "arguments")
            yield from self.read_call(key, tool or "unknown", input_fields(given), ref)
        elif kind in ("tool_result", "tool-result"):
            output = value_at(block, "result", "experimental_content", "content", "output")
            failed = True in (block.get("is_error"), block.get("isError"))
            key = value_at(block, "tool_use_id", "toolCallId")
            yield from self.add_result(key, base.Result(output, failed))
        else:
            self.reading.skip(f"{kind or 'unknown'} block")

    def read_call(self, key: Any, tool: str, given: Record, ref: str = "") -> Iterator[Item]:
        """A call that waits for its result; one for the todo list tells that at once."""
        if tool.lower() in base.TODO_TOOLS:
            yield from self.make_todo(value_at(given, "todos", "plan"))
        yield from self.await_result(key, self.make_call(ref or key, tool, given))

    def await_result(self, key: Any, item: Item) -> Iterator[Item]:
        """Keep an item until it is completed under this key."""
        if not isinstance(key, str) or not key:
            yield item
            return
        if key in self.waiting:
            yield self.waiting.pop(key).item
        self.waiting[key] = Waiting(item, self.number)

    def add_result(self, key: Any, result: base.Result) -> Iterator[Item]:
        """The result of a call, with it if it is known."""
        call = self.waiting.pop(key, None) if isinstance(key, str) else None
        if call is None:
            ref = f"{self.make_ref(key, result.text)}:result"
            item = self.make_item(ref, "message", "tool", "", origin="tool")
            yield result.complete_call(item)
        else:
            self.reading.messages += 1
            yield result.complete_call(call.item)


# --- Markdown ------------------------------------------------------------------------------------

# An unfinished last line that begins like this may become a mark: it is left for the next run.
_MARK_BEGINS = ("#", ">", "_", "<", "-")
_LONGEST_BLOCK = 8 << 20  # characters


class Markdown(base.Conversation, ABC):
    """One pass over one file of blocks of lines, always from its start: such files are written anew
    as they grow, and what has not changed is stored once. A block ends where the next one begins.
    """

    state_type: ClassVar[type[base.State]]
    begins: ClassVar[str]  # the first thing that such a file says

    def __init__(self, reading: base.Reading) -> None:
        reading.offset = reading.line = 0
        super().__init__(reading, self.state_type())

    @classmethod
    def is_own_file(cls, path: Path) -> bool:
        head = read_head(path, 4096) if path.suffix == ".md" else b""
        return head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n").startswith(cls.begins)

    @abstractmethod
    def block_kind(self, text: str) -> str | None:
        """The kind of block this line begins; None if it goes on with the last one."""

    @abstractmethod
    def read_block(self, kind: str, lines: list[str]) -> Iterator[Item]:
        """What a block gives."""

    def read_items(self) -> Iterator[Item]:
        block: tuple[str, list[str]] = ("", [])
        size = 0
        for text in self._read_lines():
            kind = self.block_kind(text)
            if kind is not None:
                yield from self.read_block(*block) if block[1] else ()
                block, size = (kind, []), 0
            size += len(text)
            if size > _LONGEST_BLOCK:
                self.reading.skip("line of an endless block")
            else:
                block[1].append(text)
        yield from self.read_block(*block) if block[1] else ()

    def _read_lines(self) -> Iterator[str]:
        with open_file(self.reading.path) as file:
            while raw := file.readline(LONGEST_LINE):
                text = raw.decode("utf-8", "replace").rstrip("\r\n")
                if not raw.endswith(b"\n") and text.lstrip().startswith(_MARK_BEGINS):
                    return
                self.reading.offset += len(raw)
                yield text


def make_reader(kind: type[Transcript | Markdown]) -> base.Reader:
    """The reader of an agent whose transcripts are all of one kind."""
    return base.Reader(kind.is_own_file, lambda reading: kind(reading).read_items())


# --- databases -----------------------------------------------------------------------------------

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
        self, table: str, columns: Names, rest: str = "", *values: Any
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
    reading: base.Reading, list_parts: Callable[[Database], Iterator[Part]]
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
    list_parts: Callable[[base.Reading, Database], Iterator[Part]], *alternatives: Names
) -> base.Reader:
    """The reader of an agent that keeps its sessions in databases with one of these groups of
    tables."""
    return base.Reader(
        lambda path: has_tables(path, *alternatives),
        lambda reading: read_database(reading, lambda database: list_parts(reading, database)),
    )


def is_database(path: Path) -> bool:
    return read_head(path, len(_MAGIC)) == _MAGIC


def has_tables(path: Path, *alternatives: Names) -> bool:
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
