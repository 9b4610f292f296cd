"""The Cursor CLI's store, one for each session: messages are blobs, and a root lists them.

Ids are the blobs' hashes. Only the root has them in order (protobuf field 1); it names the folder
the session ran in as well (field 9), if `meta.json` beside the store does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from yester.agents.base import Reading
from yester.agents.conversation import an_object, load, moment, placed
from yester.agents.cursor_chat import Chat, ChatState, folder_of, title_of
from yester.agents.sqlite import Database, stamp, text
from yester.model import Item

_HASH_BYTES = 32
_MESSAGE, _WORKSPACE = 1, 9  # fields of a root


class Store(Chat):
    """The CLI's: what is read is what the latest root lists, in its order."""

    def __init__(self, reading: Reading, database: Database) -> None:
        self.database = database
        asked = "SELECT CAST(value AS BLOB) FROM meta ORDER BY key = '0' DESC LIMIT 1"
        kept = _from_hex(text(database.value(asked)))
        beside = load(reading.path.with_name("meta.json")) or {}
        fields = list(_fields(self._blob(str(kept.get("latestRootBlobId") or ""))))
        self.refs = [
            raw.hex() for field, raw in fields if field == _MESSAGE and len(raw) == _HASH_BYTES
        ]
        state = ChatState.load(reading.state)
        if not (0 < reading.line <= len(self.refs) and self.refs[reading.line - 1] == state.last):
            reading.line = 0
            cwd = next((folder_of(raw) for field, raw in fields if field == _WORKSPACE), "")
            state = _beginning(reading, kept, beside, cwd)
        super().__init__(reading, state)
        self.epoch = (
            moment(beside.get("createdAtMs"))
            or moment(kept.get("createdAt"))
            or stamp(reading.path)[1] // 1_000_000
        )

    def _blob(self, id_: str) -> bytes:
        return self.database.value("SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?", id_) or b""

    def items(self) -> Iterator[Item]:
        if not self.refs:
            self.reading.skip("store without messages")
        for at in range(self.reading.line, len(self.refs)):
            self.blob, self.number = self.refs[at], at + 1
            self._start, self._before = 0, self.state
            self._mark(0, at, self.state)
            record = an_object(self._blob(self.blob))
            if record is None:
                self.reading.bad(at + 1, f"message {self.blob} is not a JSON object")
            else:
                yield from self.record(record)
            yield from self._give_up()
            self.state = replace(self.state, last=self.blob)
            self._mark(0, at + 1, self.state)
        for call in self.waiting.values():
            yield from self._unanswered(call)


def _beginning(
    reading: Reading, kept: Mapping[str, Any], beside: Mapping[str, Any], cwd: str
) -> ChatState:
    """A store's session is named by its folder; a sub-agent's belongs to the one it works for."""
    session, actor = reading.path.absolute().parent.name, ""
    about = kept.get("subagentInfo")
    if isinstance(about, dict) or beside.get("isSubagent") is True:
        about = about if isinstance(about, dict) else {}
        actor = f"{about.get('typeName') or 'sub-agent'}:{session}"
        session = str(about.get("rootParentAgentId") or about.get("parentAgentId") or session)
    named = beside.get("cwd")
    cwd = named if isinstance(named, str) and named else cwd
    title = title_of(beside.get("title"), kept.get("name"))
    return placed(reading, ChatState(session=session, actor=actor, title=title), cwd)


def _from_hex(value: str) -> dict[str, Any]:
    """The store's own data: JSON, written as hexadecimal digits."""
    try:
        return an_object(bytes.fromhex(value)) or {}
    except ValueError:
        return an_object(value) or {}


def _fields(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The byte fields of a protobuf message, as far as it can be read."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        kind = tag & 7
        if kind == 0:
            _, at = _varint(raw, at)
        elif kind == 2:
            length, at = _varint(raw, at)
            if at + length > len(raw):
                return
            yield tag >> 3, raw[at : at + length]
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw) and shift < 64:
        value |= (raw[at] & 0x7F) << shift
        shift += 7
        at += 1
        if raw[at - 1] < 0x80:
            break
    return value, at
