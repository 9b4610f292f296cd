"""Where opencode keeps its sessions: two versions of a database, and JSON files before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from yester.agents.base import Reading
from yester.agents.conversation import an_object, load, load_state, moment
from yester.agents.jsonl import LONGEST_LINE
from yester.agents.sqlite import Database, stamp, text
from yester.files import read_bytes

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
class Kept:
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


class Store(Protocol):
    def messages(self, session: Kept) -> Iterator[Message]:
        """In order: those that are new, and at least all of the user's."""
        ...

    def parts(self, message: Message) -> Parts: ...

    def todos(self, session: Kept) -> Any: ...


class Tables:
    """A database. Rows are rewritten in place: what is new is told by their stamps."""

    def __init__(self, reading: Reading, database: Database) -> None:
        self.reading = reading
        self.database = database
        self.before = load_state(Progress, reading.state)
        self.since = max(self.before.since - _OVERLAP_MS, 0)
        # No row can be newer than the file: a wrong clock must not hide what comes later.
        self.latest = stamp(reading.path)[1] // 1_000_000
        self.rows: dict[str, int] = {}
        self._columns: dict[str, frozenset[str]] = {}

    def sessions(self) -> dict[str, Kept]:
        """All of them, in the order they changed."""
        found = self._sessions(*FIRST) | self._sessions(*SECOND)
        if not found and not (self._known(FIRST[0]) or self._known(SECOND[0])):
            self.reading.bad(0, "no table of sessions; this version of opencode is not known")
        return dict(sorted(found.items(), key=lambda pair: pair[1].changed))

    def is_new(self, session: Kept) -> bool:
        before = self.before.rows.get(session.table, 0)
        return session.changed >= self.since or session.row > before

    def messages(self, session: Kept) -> Iterator[Message]:
        table, before = session.table, self.before.rows.get(session.table, 0)
        changed, created = self._ask(table, "time_updated"), self._ask(table, "time_created")
        if table == SECOND[1]:
            kind, order = f"CAST({self._ask(table, 'type')} AS BLOB)", self._ask(table, "seq")
        else:
            kind, order = "NULL", f"{created}, id"
            newest = f"SELECT max({self._ask('part', 'time_updated')}) FROM part"
            changed = (
                f"max(coalesce({changed}, 0),"
                f" coalesce(({newest} WHERE message_id = {table}.id), 0))"
            )
        for row, id_, kind_, time, stamped in self.database.rows(
            f"SELECT rowid, CAST(id AS BLOB), {kind}, {created}, {changed} FROM {table}"
            f" WHERE session_id = ? ORDER BY {order}", session.id,
        ):  # fmt: skip
            new = row > before or self._time(stamped) >= self.since
            if not new and text(kind_) not in ("", "user"):
                continue
            info = self._data(table, row, text(id_))
            if info is not None:
                said = text(kind_) or str(info.get("role") or "")
                yield Message(text(id_), moment(time), new, said, info)

    def parts(self, message: Message) -> Parts:
        if "role" not in message.info:
            yield from inside(message)
            return
        listed = "SELECT rowid, CAST(id AS BLOB) FROM part WHERE message_id = ? ORDER BY id"
        for row, id_ in self.database.rows(listed, message.id):
            part = self._data("part", row, text(id_))
            if part is not None:
                yield text(id_), part

    def _data(self, table: str, row: int, id_: str) -> dict[str, Any] | None:
        raw = self.database.value(f"SELECT CAST(data AS BLOB) FROM {table} WHERE rowid = ?", row)
        found = an_object(raw)
        if found is None and raw is not None:
            self.reading.bad(row, f"{table} {id_} is not a JSON object")
        return found

    def todos(self, session: Kept) -> Any:
        if not {"session_id", "content", "status", "position"} <= self._known("todo"):
            return None
        rows = self.database.rows(
            "SELECT CAST(content AS BLOB), CAST(status AS BLOB) FROM todo WHERE session_id = ?"
            " ORDER BY position", session.id,
        )  # fmt: skip
        return [{"content": text(content), "status": text(status)} for content, status in rows]

    def _sessions(self, table: str, messages: str, *parts: str) -> dict[str, Kept]:
        if not all(map(self._known, (table, messages, *parts))):
            return {}
        changed: dict[str, int] = {}
        last: dict[str, int] = {}
        for name in (messages, *parts):
            stamped = self._ask(name, "time_updated")
            for key, time, row in self.database.rows(
                f"SELECT CAST(session_id AS BLOB), max({stamped}), max(rowid)"
                f" FROM {name} GROUP BY session_id"
            ):
                id_ = text(key)
                changed[id_] = max(self._time(time), changed.get(id_, 0))
                last.setdefault(id_, row)
        self.rows[messages] = max(last.values(), default=0)
        names = ("id", "parent_id", "directory", "title", "agent")
        fields = ", ".join(f"CAST({self._ask(table, name)} AS BLOB)" for name in names)
        found = {}
        for time, *words in self.database.rows(
            f"SELECT {self._ask(table, 'time_updated')}, {fields} FROM {table}"
        ):
            id_, parent, directory, title, agent = map(text, words)
            newest = max(self._time(time), changed.get(id_, 0))
            found[id_] = Kept(
                id_, parent, directory, title, agent, messages, newest, last.get(id_, 0)
            )
        return found

    def _known(self, table: str) -> frozenset[str]:
        if table not in self._columns:
            self._columns[table] = self.database.columns(table)
        return self._columns[table]

    def _ask(self, table: str, column: str) -> str:
        """A column, or NULL (counted once) in a version that has none of this name."""
        if column in self._known(table):
            return column
        if not self.reading.skipped[f"no column {table}.{column}"]:
            self.reading.skip(f"no column {table}.{column}")
        return "NULL"

    def _time(self, value: Any) -> int:
        """When a row was stamped; one without a time counts as new."""
        return min(moment(value), self.latest) or self.latest


class Files:
    """The storage folder of early versions: a file for each session, message and part."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.storage = reading.path.absolute().parents[2]

    def sessions(self) -> dict[str, Kept]:
        """The one of this file and those above it."""
        found: dict[str, Kept] = {}
        id_ = self.reading.path.stem
        for _ in range(_DEEPEST):
            info = load(self.reading.path.with_name(f"{id_}.json"))
            if info is None or id_ in found:
                break
            parent, directory, title = (
                word if isinstance(word := info.get(name), str) else ""
                for name in ("parentID", "directory", "title")
            )
            found[id_] = Kept(id_, parent, directory, title)
            id_ = found[id_].parent
        return found

    def messages(self, session: Kept) -> Iterator[Message]:
        for file, info in self._objects("message", session.id):
            time = info.get("time")
            created = moment(time.get("created")) if isinstance(time, dict) else 0
            yield Message(file, created, True, str(info.get("role") or ""), info)

    def parts(self, message: Message) -> Parts:
        yield from self._objects("part", message.id)

    def todos(self, session: Kept) -> Any:
        try:
            raw = read_bytes(self.storage / "todo" / f"{session.id}.json", LONGEST_LINE)
        except OSError:
            return None
        return (an_object(b'{"todos":' + raw + b"}") or {}).get("todos")

    def _objects(self, kind: str, folder: str) -> Parts:
        for file in sorted((self.storage / kind / folder).glob("*.json")):
            found = load(file)
            if found is None:
                self.reading.bad(1, f"{kind} {file.stem} is not a JSON object")
            else:
                yield file.stem, found


def inside(message: Message) -> Parts:
    """The parts of a version 2 message, in the form version 1 keeps them."""
    content, files = message.info.get("content"), message.info.get("files")
    for at, part in enumerate(content if isinstance(content, list) else ()):
        yield f"{message.id}:{at}", part if isinstance(part, dict) else {}
    if message.kind == "user":
        yield message.id, {"type": "text", "text": message.info.get("text")}
        for file in files if isinstance(files, list) else ():
            name = file.get("name") if isinstance(file, dict) else None
            yield message.id, {"type": "file", "filename": name}


def root_of(id_: str, sessions: dict[str, Kept]) -> str:
    for _ in range(_DEEPEST):
        parent = sessions[id_].parent if id_ in sessions else ""
        if not parent:
            break
        id_ = parent
    return id_
