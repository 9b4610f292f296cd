"""opencode's sessions, versions 0.x to 2.0: what was said and done, nothing else.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yester.agents.base import (
    Conversation,
    Reader,
    Reading,
    Result,
    State,
    find_title,
    load_state,
    stamp_files,
)
from yester.agents.databases import (
    Database,
    column_text,
    has_tables,
    is_database,
    read_changed,
    read_database,
)
from yester.agents.values import (
    LONGEST_LINE,
    decode_json,
    dict_at,
    list_at,
    load_object,
    nested_text,
    parse_time,
    text_at,
    value_at,
)
from yester.files import read_bytes
from yester.model import Item, replace

FIRST = ("session", "message", "part")
SECOND = ("session_v2", "session_message")

# Rows are stamped before they are committed: look back a little further than the last one seen.
_OVERLAP_MS = 60_000
_DEEPEST = 20  # sub-agents of sub-agents

Parts = Iterator[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Progress:
    """What has been read: everything stamped before `since`, and every message up to a row."""

    since: int = 0
    rows: dict[str, int] = field(default_factory=dict)  # by table


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as it is kept."""

    id: str
    parent: str = ""
    directory: str = ""
    title: str = ""
    agent: str = ""
    table: str = ""  # of its messages
    changed: int = 0
    row: int = 0  # of its last message


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    epoch: int
    new: bool  # changed since the last run; an earlier one is there to be counted
    kind: str  # user, assistant, or what version 2 calls it
    info: dict[str, Any]


class DatabaseStore:
    """A database. Rows are rewritten in place: what is new is told by their stamps."""

    def __init__(self, reading: Reading, database: Database) -> None:
        self.reading = reading
        self.database = database
        self.before = load_state(Progress, reading.state)
        self.since = max(self.before.since - _OVERLAP_MS, 0)
        # No row can be newer than the file: a wrong clock must not hide what comes later.
        self.latest = READER.stamp_transcript(reading.path)[1] // 1_000_000
        self.rows: dict[str, int] = {}

    def list_sessions(self) -> dict[str, StoredSession]:
        """All of them, in the order they changed."""
        found: dict[str, StoredSession] = {}
        for table, *messages in (FIRST, SECOND):
            if all(map(self.database.table_columns, (table, *messages))):
                found |= {one.id: one for one in self._select_sessions(table, *messages)}
        if not self.rows:
            self.reading.report_bad(
                0, "no table of sessions; this version of opencode is not known"
            )
        return dict(sorted(found.items(), key=lambda pair: pair[1].changed))

    def _select_sessions(self, table: str, messages: str, *parts: str) -> Iterator[StoredSession]:
        stamped = [self._select_newest(name, "session_id") for name in (messages, *parts)]
        self.rows[messages] = max((row for _, row in stamped[0].values()), default=0)
        columns = ("id", "parent_id", "directory", "title", "agent", "time_updated")
        for record in self.database.select_records(table, columns):
            id_, parent, directory, title, agent = (text_at(record, name) for name in columns[:5])
            newest = [one.get(id_, (0, 0)) for one in stamped]
            changed = max(self._row_time(record["time_updated"]), *(time for time, _ in newest))
            last = newest[0][1]
            yield StoredSession(id_, parent, directory, title, agent, messages, changed, last)

    def _select_newest(
        self, table: str, by: str, rest: str = "", *values: str
    ) -> dict[str, tuple[int, int]]:
        """When the newest row of each session or message was stamped, and its last row."""
        stamp = self.database.column_or_null(table, "time_updated")
        asked = f"SELECT CAST({by} AS BLOB), max({stamp}), max(rowid) FROM {table} {rest}"
        rows = self.database.select_rows(f"{asked} GROUP BY {by}", *values)
        return {column_text(key): (self._row_time(time), row) for key, time, row in rows}

    def is_new(self, session: StoredSession) -> bool:
        before = self.before.rows.get(session.table, 0)
        return session.changed >= self.since or session.row > before

    def read_messages(self, session: StoredSession) -> Iterator[Message]:
        """In order: those that are new, and at least all of the user's."""
        table, before = session.table, self.before.rows.get(session.table, 0)
        of_session = ("WHERE session_id = ?", session.id)
        first = table == FIRST[1]
        parts = self._select_newest("part", "message_id", *of_session) if first else {}
        own = () if first else ("type", "seq")
        columns = ("rowid", "id", "time_created", "time_updated", *own)
        for row in sorted(
            self.database.select_records(table, columns, *of_session),
            key=lambda row: (
                *(parse_time(row.get(c)) for c in ("seq", "time_created")),
                text_at(row, "id"),
            ),
        ):
            id_, kind = text_at(row, "id"), text_at(row, "type")
            stamp = max(self._row_time(row["time_updated"]), parts.get(id_, (0, 0))[0])
            new = row["rowid"] > before or stamp >= self.since
            if not new and kind not in ("", "user"):
                continue
            info = self._read_data(table, row["rowid"], id_)
            if info is not None:
                kind = kind or str(info.get("role") or "")
                yield Message(id_, parse_time(row["time_created"]), new, kind, info)

    def read_parts(self, message: Message) -> Parts:
        if "role" not in message.info:
            yield from _split_message(message)
            return
        of_message = ("WHERE message_id = ? ORDER BY id", message.id)
        for row in self.database.select_records("part", ("rowid", "id"), *of_message):
            part = self._read_data("part", row["rowid"], text_at(row, "id"))
            if part is not None:
                yield text_at(row, "id"), part

    def _read_data(self, table: str, row: int, id_: str) -> dict[str, Any] | None:
        asked = f"SELECT CAST(data AS BLOB) FROM {table} WHERE rowid = ?"
        return self.reading.decode_cell(self.database.select_value(asked, row), table, id_, row)

    def read_todos(self, session: StoredSession) -> Any:
        if not {"session_id", "position"} <= self.database.table_columns("todo"):
            return None
        listed = ("WHERE session_id = ? ORDER BY position", session.id)
        return self.database.select_records("todo", ("content", "status"), *listed)

    def _row_time(self, value: Any) -> int:
        """When a row was stamped; one without a time counts as new."""
        return min(parse_time(value), self.latest) or self.latest


class FileStore:
    """The storage folder of early versions: a file for each session, message and part."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.storage = reading.path.absolute().parents[2]

    def list_sessions(self) -> dict[str, StoredSession]:
        """The one of this file and those above it."""
        found: dict[str, StoredSession] = {}
        id_ = self.reading.path.stem
        for _ in range(_DEEPEST):
            info = load_object(self.reading.path.with_name(f"{id_}.json"))
            if info is None or id_ in found:
                break
            parent = text_at(info, "parentID")
            directory, title = text_at(info, "directory"), text_at(info, "title")
            found[id_] = StoredSession(id_, parent, directory, title)
            id_ = parent
        return found

    def read_messages(self, session: StoredSession) -> Iterator[Message]:
        for file, info in self._read_objects("message", session.id):
            created = parse_time(dict_at(info, "time").get("created"))
            yield Message(file, created, True, str(info.get("role") or ""), info)

    def read_parts(self, message: Message) -> Parts:
        yield from self._read_objects("part", message.id)

    def read_todos(self, session: StoredSession) -> Any:
        try:
            return decode_json(
                read_bytes(self.storage / "todo" / f"{session.id}.json", LONGEST_LINE)
            )
        except OSError:
            return None

    def _read_objects(self, kind: str, folder: str) -> Parts:
        for file in sorted((self.storage / kind / folder).glob("*.json")):
            found = load_object(file)
            if found is None:
                self.reading.report_bad(1, f"{kind} {file.stem} is not a JSON object")
            else:
                yield file.stem, found


def _split_message(message: Message) -> Parts:
    """The parts of a version 2 message, in the form version 1 keeps them."""
    for at, part in enumerate(list_at(message.info, "content")):
        yield f"{message.id}:{at}", part if isinstance(part, dict) else {}
    if message.kind == "user":
        yield message.id, {"type": "text", "text": message.info.get("text")}
        for file in list_at(message.info, "files"):
            yield message.id, {"type": "file", "filename": text_at(file, "name")}


def _find_root(id_: str, sessions: dict[str, StoredSession]) -> str:
    for _ in range(_DEEPEST):
        parent = sessions[id_].parent if id_ in sessions else ""
        if not parent:
            break
        id_ = parent
    return id_


class OpencodeReader(Reader):
    def is_transcript(self, path: Path) -> bool:
        if is_database(path):
            return has_tables(path, *FIRST) or has_tables(path, *SECOND)
        in_storage = path.suffix == ".json" and path.parent.parent.name == "session"
        return in_storage and (load_object(path) or {}).get("id") == path.stem

    def stamp_transcript(self, path: Path) -> tuple[int, int]:
        if path.suffix != ".json":
            return super().stamp_transcript(path)
        storage = path.absolute().parents[2]
        messages = list((storage / "message" / path.stem).glob("*.json"))
        return stamp_files(path, *messages, *(storage / "part" / one.stem for one in messages))

    def parse_items(self, reading: Reading) -> Iterator[Item | None]:
        if reading.path.suffix == ".json":
            yield from _read_file(reading)
        else:
            yield from read_database(reading, _read_sessions)


def _read_file(reading: Reading) -> Iterator[Item]:
    storage = FileStore(reading)
    sessions = storage.list_sessions()
    session = sessions.get(reading.path.stem)
    if session is None:
        reading.report_bad(1, "not a JSON object")
    else:
        root = _find_root(session.id, sessions)
        yield from _Session(reading, session, root, storage).read_items()


def _read_sessions(reading: Reading, database: Database) -> Iterator[Item]:
    """The sessions with something new, in the order they changed: up to there all is read."""
    tables = DatabaseStore(reading, database)
    before = reading.state = tables.before
    sessions = tables.list_sessions()
    changed = [
        (
            f"session {session.id}",
            replace(before, since=max(session.changed, before.since)),
            _Session(reading, session, _find_root(session.id, sessions), tables).read_items(),
        )
        for session in sessions.values()
        if tables.is_new(session)
    ]
    whole = ("", replace(changed[-1][1] if changed else before, rows=tables.rows), iter(()))
    yield from read_changed(reading, [*changed, whole])


class _Session(Conversation):
    """One session's messages as items, wherever they are kept."""

    agent = "opencode"

    def __init__(
        self, reading: Reading, session: StoredSession, root: str, store: DatabaseStore | FileStore
    ) -> None:
        actor = "" if root == session.id else f"{session.agent or 'sub-agent'}:{session.id}"
        state = State(session=root, actor=actor, title=find_title(session.title))
        super().__init__(reading, state)
        self.place_session(session.directory)
        self.session = session
        self.store = store

    def read_items(self) -> Iterator[Item]:
        message = None
        for message in self.store.read_messages(self.session):
            self.epoch = message.epoch or self.epoch
            if message.kind == "user":
                yield from self._read_prompt(message)
            elif message.new:
                yield from self._read_other_message(message)
        if message:
            self.register_session()  # the title may be all that changed
            yield from self.make_todo(self.store.read_todos(self.session))

    def _read_prompt(self, message: Message) -> Iterator[Item]:
        """What the user typed; an earlier prompt is only counted."""
        texts, named, left_out = [], [], []
        for _, part in self.store.read_parts(message):
            reason = _skip_reason(part)
            if reason == "file part" and (file := _attached_file(part)):
                named.append(file)
            elif reason:
                left_out.append(reason)
            else:
                texts.append(nested_text(part))
        body = _strip_quotes("\n".join(texts).strip())
        if message.new:
            self.reading.skipped.update(left_out)
        if body:
            for prompt in self.read_prompt(message.id, body, message.new):
                yield replace(prompt, files_read=self.file_paths(named))

    def _read_other_message(self, message: Message) -> Iterator[Item]:
        info, parts = message.info, list(self.store.read_parts(message))
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


READER = OpencodeReader()
