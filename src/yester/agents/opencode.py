"""opencode's sessions, versions 0 to 2: what was said and done, nothing else.

    1.x   opencode.db, tables session, message, part: a message's parts are rows of their own
    2.x   opencode.db, tables session_v2, session_message: parts stand inside their message
    0.x   storage/session/PROJECT/ID.json, with storage/message/SESSION and storage/part/MESSAGE

Confirmed by opencode's own schema and migration, version 2 by two other readers. A session with a
parent is a sub-agent's and belongs to its root. Left out, and counted by reason: what the client
adds to a prompt by itself (synthetic, ignored), steps, snapshots, patches and everything else it
writes for itself. A database is read while opencode runs and never written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from yester.agents.base import (
    Conversation,
    Reader,
    Reading,
    Result,
    State,
    find_title,
    stamp_files,
)
from yester.agents.databases import Database, Part, column_text, has_tables, read_database
from yester.agents.values import (
    decode_json,
    dict_at,
    list_at,
    load_object,
    nested_text,
    parse_time,
    text_at,
    value_at,
)
from yester.files import read_text
from yester.model import Item, replace

FIRST = ("session", "message", "part")
SECOND = ("session_v2", "session_message")

# Rows are stamped before they are committed: look back a little further than the last one seen.
_OVERLAP_MS = 60_000
_DEEPEST = 20  # sub-agents of sub-agents

Parts = Iterator[tuple[str, dict[str, Any]]]  # (id, part), all in the form version 1 keeps them


class Progress(Struct, frozen=True):
    """What has been read: everything stamped before `since`, and every message up to a row."""

    since: int = 0
    rows: dict[str, int] = {}  # by table


class StoredSession(NamedTuple):
    """A session as it is kept."""

    id: str
    parent: str
    directory: str
    title: str
    agent: str = ""
    messages: str = ""  # their table
    changed: int = 0
    row: int = 0  # of its last message


class Message(NamedTuple):
    id: str
    epoch: int
    new: bool  # changed since the last run; an earlier one is there to be counted
    kind: str  # user, assistant, or what version 2 calls it
    info: dict[str, Any]
    parts: Parts


def _is_transcript(path: Path) -> bool:
    if path.suffix == ".json":
        in_storage = path.parent.parent.name == "session"
        return in_storage and text_at(load_object(path), "id") == path.stem
    return has_tables(path, FIRST, SECOND)


def _read_items(reading: Reading) -> Iterator[Item]:
    if reading.path.suffix == ".json":
        return Files(reading).read_items()
    return read_database(reading, lambda database: Sessions(reading, database).list_changed())


class Sessions:
    """A database's. Rows are rewritten in place: what is new is told by their stamps."""

    def __init__(self, reading: Reading, database: Database) -> None:
        self.reading = reading
        self.database = database
        self.before = reading.state = reading.load_state(Progress)
        self.since = max(self.before.since - _OVERLAP_MS, 0)
        # No row can be newer than the file: a wrong clock must not hide what comes later.
        self.latest = reading.modified_at
        self.rows: dict[str, int] = {}

    def list_changed(self) -> Iterator[Part]:
        """Those with something new, in the order they changed: up to there all is read."""
        sessions = self._select_sessions()
        reached = self.before
        for session in sorted(sessions.values(), key=lambda one: one.changed):
            if session.changed >= self.since or session.row > self._last_row(session):
                reached = replace(reached, since=max(session.changed, reached.since))
                talk = Talk(self.reading, session, sessions)
                told = talk.read_items(self._select_messages(session), self._select_todos(session))
                yield Part(f"session {session.id}", reached, told)
        yield Part("", replace(reached, rows=self.rows), iter(()))

    def _last_row(self, session: StoredSession) -> int:
        """The last message that an earlier run can have seen."""
        return self.before.rows.get(session.messages, 0)

    def _row_time(self, value: Any) -> int:
        """When a row was stamped; one without a time counts as new."""
        return min(parse_time(value), self.latest) or self.latest

    def _select_newest(
        self, table: str, by: str, rest: str = "", *values: str
    ) -> dict[str, tuple[int, int]]:
        """When the newest row of each session or message was stamped, and its last row."""
        stamp = self.database.column_or_null(table, "time_updated")
        asked = f"SELECT CAST({by} AS BLOB), max({stamp}), max(rowid) FROM {table} {rest}"
        rows = self.database.select_rows(f"{asked} GROUP BY {by}", *values)
        return {column_text(key): (self._row_time(time), row) for key, time, row in rows}

    def _select_sessions(self) -> dict[str, StoredSession]:
        found: dict[str, StoredSession] = {}
        for tables in (FIRST, SECOND):
            if all(map(self.database.table_columns, tables)):
                found |= {one.id: one for one in self._select_generation(*tables)}
        if not self.rows:
            self.reading.report_bad(
                0, "no table of sessions; this version of opencode is not known"
            )
        return found

    def _select_generation(self, table: str, messages: str, *parts: str) -> Iterator[StoredSession]:
        stamped = [self._select_newest(name, "session_id") for name in (messages, *parts)]
        self.rows[messages] = max((row for _, row in stamped[0].values()), default=0)
        texts = ("id", "parent_id", "directory", "title", "agent")
        for record in self.database.select_records(table, (*texts, "time_updated")):
            id_, parent, directory, title, agent = (text_at(record, name) for name in texts)
            newest = [one.get(id_, (0, 0)) for one in stamped]
            changed = max(self._row_time(record["time_updated"]), *(time for time, _ in newest))
            last = newest[0][1]
            yield StoredSession(id_, parent, directory, title, agent, messages, changed, last)

    def _select_messages(self, session: StoredSession) -> Iterator[Message]:
        """In order: those that are new, and at least all of the user's."""
        table, before = session.messages, self._last_row(session)
        of_session = ("WHERE session_id = ?", session.id)
        first = table == FIRST[1]
        parts = self._select_newest("part", "message_id", *of_session) if first else {}
        own = () if first else ("type", "seq")
        columns = ("rowid", "id", "time_created", "time_updated", *own)
        rows = self.database.select_records(table, columns, *of_session)
        for row in sorted(rows, key=_message_place):
            id_, kind = text_at(row, "id"), text_at(row, "type")
            stamp = max(self._row_time(row["time_updated"]), parts.get(id_, (0, 0))[0])
            new = row["rowid"] > before or stamp >= self.since
            if not new and kind not in ("", "user"):
                continue
            if info := self._select_data(table, row["rowid"], id_):
                kind = kind or str(info.get("role") or "")
                inner = self._select_parts(id_, kind, info)
                yield Message(id_, parse_time(row["time_created"]), new, kind, info, inner)

    def _select_parts(self, message: str, kind: str, info: dict[str, Any]) -> Parts:
        if "role" in info:
            of_message = ("WHERE message_id = ? ORDER BY id", message)
            for row in self.database.select_records("part", ("rowid", "id"), *of_message):
                if part := self._select_data("part", row["rowid"], text_at(row, "id")):
                    yield text_at(row, "id"), part
            return
        for at, part in enumerate(list_at(info, "content")):
            yield f"{message}:{at}", part if isinstance(part, dict) else {}
        if kind == "user":
            yield message, {"type": "text", "text": info.get("text")}
            for file in list_at(info, "files"):
                yield message, {"type": "file", "filename": text_at(file, "name")}

    def _select_data(self, table: str, row: int, id_: str) -> dict[str, Any] | None:
        asked = f"SELECT CAST(data AS BLOB) FROM {table} WHERE rowid = ?"
        return self.reading.decode_cell(self.database.select_value(asked, row), table, id_, row)

    def _select_todos(self, session: StoredSession) -> Iterator[Any]:
        if {"session_id", "position"} <= self.database.table_columns("todo"):
            listed = ("WHERE session_id = ? ORDER BY position", session.id)
            yield from self.database.select_records("todo", ("content", "status"), *listed)


class Files:
    """The folder of version 0: a file for each session, message and part."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.storage = _storage_folder(reading.path)

    def read_items(self) -> Iterator[Item]:
        sessions = self._load_sessions()
        if session := sessions.get(self.reading.path.stem):
            talk = Talk(self.reading, session, sessions)
            yield from talk.read_items(self._load_messages(session), self._load_todos(session))
        else:
            self.reading.report_bad(1, "not a JSON object")

    def _load_sessions(self) -> dict[str, StoredSession]:
        """The one of this file and those above it."""
        found: dict[str, StoredSession] = {}
        id_, folder = self.reading.path.stem, self.reading.path.parent
        while id_ not in found and (info := load_object(folder / f"{id_}.json")):
            parent, directory, title = (
                text_at(info, name) for name in ("parentID", "directory", "title")
            )
            found[id_] = StoredSession(id_, parent, directory, title)
            id_ = parent
        return found

    def _load_messages(self, session: StoredSession) -> Iterator[Message]:
        for id_, info in self._load_objects("message", session.id):
            created = parse_time(dict_at(info, "time").get("created"))
            parts = self._load_objects("part", id_)
            yield Message(id_, created, True, text_at(info, "role"), info, parts)

    def _load_todos(self, session: StoredSession) -> Iterator[Any]:
        found = decode_json(read_text(self.storage / "todo" / f"{session.id}.json"))
        yield from found if isinstance(found, list) else ()

    def _load_objects(self, kind: str, folder: str) -> Parts:
        for file in sorted((self.storage / kind / folder).glob("*.json")):
            if found := load_object(file):
                yield file.stem, found
            else:
                self.reading.report_bad(1, f"{kind} {file.stem} is not a JSON object")


def _storage_folder(path: Path) -> Path:
    return path.absolute().parent.parent.parent


def _stamp_transcript(path: Path) -> tuple[int, int]:
    """A session's file does not change with its messages and their parts."""
    if path.suffix != ".json":
        return stamp_files(path)
    storage = _storage_folder(path)
    messages = list((storage / "message" / path.stem).glob("*.json"))
    return stamp_files(path, *messages, *(storage / "part" / one.stem for one in messages))


def _find_root(id_: str, sessions: dict[str, StoredSession]) -> str:
    for _ in range(_DEEPEST):
        parent = sessions[id_].parent if id_ in sessions else ""
        if not parent:
            break
        id_ = parent
    return id_


class Talk(Conversation):
    """One session's messages as items, wherever they are kept."""

    agent = "opencode"

    def __init__(
        self, reading: Reading, session: StoredSession, sessions: dict[str, StoredSession]
    ) -> None:
        root = _find_root(session.id, sessions)
        actor = "" if root == session.id else f"{session.agent or 'sub-agent'}:{session.id}"
        state = State(session=root, actor=actor, title=find_title(session.title))
        super().__init__(reading, state)
        self.place_session(session.directory)

    def read_items(self, messages: Iterator[Message], todos: Iterator[Any]) -> Iterator[Item]:
        message = None
        for message in messages:
            self.epoch = message.epoch or self.epoch
            if message.kind == "user":
                yield from self._read_prompt(message)
            elif message.new:
                yield from self._read_other_message(message)
        if message:
            self.register_session()  # the title may be all that changed
            yield from self.make_todo(list(todos))

    def _read_prompt(self, message: Message) -> Iterator[Item]:
        """What the user typed; an earlier prompt is only counted."""
        texts, named, left_out = [], [], []
        for _, part in message.parts:
            reason = _skip_reason(part)
            if reason == "file part" and (file := _attached_file(part)):
                named.append(file)
            elif reason:
                left_out.append(reason)
            else:
                texts.append(_strip_quotes(nested_text(part).strip()))
        body = "\n".join(texts)
        if message.new:
            self.reading.skipped.update(left_out)
        if body:
            for prompt in self.read_prompt(message.id, body, message.new):
                yield replace(prompt, files_read=self.file_paths(named))

    def _read_other_message(self, message: Message) -> Iterator[Item]:
        info, parts = message.info, list(message.parts)
        if info.get("summary") is True or message.kind == "compaction":
            texts = [nested_text(part) for _, part in parts if part.get("type") == "text"]
            body = "\n".join([*texts, nested_text(info.get("summary"))])
            yield self.make_summary(message.id, body)
        elif message.kind == "assistant":
            if not parts:
                self.reading.skip("failed answer" if info.get("error") else "empty")
            for ref, part in parts:
                yield from self._read_part(ref, part)
        elif message.kind == "shell":  # a command the user ran
            given = {"command": info.get("command")}
            result = Result(info.get("output"), status=info.get("exit"))
            yield self.make_answered_call(message.id, None, "shell", given, result)
        else:
            self.reading.skip(message.kind or "unknown message")

    def _read_part(self, ref: str, part: dict[str, Any]) -> Iterator[Item]:
        kind = part.get("type")
        if kind == "tool":
            yield from self._read_tool_part(ref, part)
        elif kind == "reasoning":
            yield self.make_message(ref, part.get("text"), "thinking")
        elif reason := _skip_reason(part):
            self.reading.skip(reason)
        else:
            yield self.make_message(ref, part.get("text"))

    def _read_tool_part(self, ref: str, part: dict[str, Any]) -> Iterator[Item]:
        """Version 1: tool, callID, state.output; version 2: name, id, state.content."""
        state = dict_at(part, "state")
        error = dict_at(state, "error").get("message", state.get("error"))
        output = nested_text(value_at(state, "output", "content")) or error
        status = dict_at(state, "metadata").get("exit")
        result = Result(output, state.get("status") == "error", status)
        tool, key = text_at(part, "tool", "name") or "unknown", value_at(part, "callID", "id")
        yield self.make_answered_call(ref, key, tool, state.get("input"), result)


def _message_place(row: dict[str, Any]) -> tuple[int, int, str]:
    return parse_time(row.get("seq")), parse_time(row["time_created"]), text_at(row, "id")


def _skip_reason(part: dict[str, Any]) -> str:
    """Why a part is not something said, or nothing."""
    if part.get("type") != "text":
        return f"{part.get('type') or 'unknown'} part"
    return next((f"{why} part" for why in ("synthetic", "ignored") if part.get(why)), "")


def _strip_quotes(said: str) -> str:
    """`opencode run` puts what it is given into quotation marks."""
    inner = said[1:-1]
    return inner.strip() if said == f'"{inner}"' and '"' not in inner else said


def _attached_file(part: dict[str, Any]) -> str:
    source = part.get("source")
    return text_at(source, "path") if isinstance(source, dict) else text_at(part, "filename")


READER = Reader(_is_transcript, _read_items, stamp_transcript=_stamp_transcript)
