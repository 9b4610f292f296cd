"""Cursor's conversations, from the three places its versions keep them in.

    projects/SLUG/agent-transcripts/ID/ID.jsonl     messages without ids and most results
    chats/MD5/ID/store.db                           the CLI's, one for each session
    User/globalStorage/state.vscdb                  the editor's, one for all

None of it is documented. What is read is what at least two independent readers of these files agree
on; the rest is left out and counted by its type. The folder of a transcript is looked for by its
SLUG, in which every separator has become a dash. Where the CLI has a store for a session, its
thinner transcript is not looked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from yester.agents.base import Reader, Reading, State, find_title, load_state
from yester.agents.cursor_editor import TABLE, read_conversations, uri_folder
from yester.agents.databases import (
    Database,
    column_text,
    has_tables,
    is_database,
    read_database,
)
from yester.agents.sources import BadLine, Record, Transcript, first_records
from yester.agents.values import (
    decode_object,
    dict_at,
    load_object,
    nested_text,
    parse_time,
    text_at,
    value_at,
)
from yester.model import Item

TRANSCRIPTS = "agent-transcripts"
STORE = "store.db"

_DASHED = re.compile(r"[^A-Za-z0-9]+")

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.S)
_OWN_TEXT = re.compile(r"\s*<[a-z_]+(?: [^>]*)?>")  # <user_info>, <system_reminder> …
_TIMESTAMP = re.compile(
    r"<timestamp>\w+, (\w{3})\w* (\d{1,2}, \d{4}),? (\d{1,2}:\d\d) ?([AP]M)"
    r"(?: \(UTC(?:([+-])(\d{1,2})(?::?(\d\d))?)?\))?"
)

_HASH_BYTES = 32
_MESSAGE, _WORKSPACE = 1, 9  # fields of a root


class CursorReader(Reader):
    def is_transcript(self, path: Path) -> bool:
        """Nobody else has these tables, or lines of a role and a message and nothing besides."""
        if is_database(path):
            store = path.name == STORE and has_tables(path, "blobs", "meta")
            return store or has_tables(path, TABLE)
        seen = list(first_records(path))
        return bool(seen) and all(map(Chat.is_own_record, seen))

    def select_transcripts(self, found: list[Path]) -> Iterable[Path]:
        """Without the transcripts of sessions that have a store: it holds more."""
        stored = {path.parent.name for path in found if path.name == STORE}
        return (path for path in found if path.suffix != ".jsonl" or path.stem not in stored)

    def read_items(self, reading: Reading) -> Iterator[Item | None]:
        if not is_database(reading.path):
            yield from _open_transcript(reading).read_items()
        else:
            yield from read_database(reading, _read_tables)


def _read_tables(reading: Reading, database: Database) -> Iterator[Item | None]:
    if database.table_columns(TABLE):
        yield from read_conversations(reading, database)
    else:
        yield from Store(reading, database).read_items()


def _open_transcript(reading: Reading) -> Chat:
    """Sub-agents have files of their own below their session's."""
    path, chat = reading.path.absolute(), Chat(reading)
    if not chat.state.project:
        above = next((one for one in path.parents if one.name == TRANSCRIPTS), path.parent)
        session = path.relative_to(above).parts[0].removesuffix(".jsonl")
        chat.actor = "" if path.stem == session else f"sub-agent:{path.stem}"
        chat.state = replace(chat.state, session=session, actor=chat.actor)
        chat.place_session(find_folder(above.parent.name))
    chat.epoch = int(path.stat().st_mtime * 1000)  # until a prompt tells its time
    return chat


def find_folder(slug: str, above: Path = Path("/")) -> str:
    """The folder a slug stands for, if it is there; `my-app` and `my/app` look the same in it."""
    return next(_find_folders(_DASHED.sub("-", slug).strip("-"), above), f"/{slug}")


def _find_folders(slug: str, above: Path) -> Iterator[str]:
    try:
        with os.scandir(above) as entries:
            below = sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in below:
        dashed = _DASHED.sub("-", name).strip("-")
        if dashed == slug:
            yield str(above / name)
        elif dashed and slug.startswith(f"{dashed}-"):
            yield from _find_folders(slug[len(dashed) + 1 :], above / name)


@dataclass(frozen=True, slots=True)
class ChatState(State):
    last: str = ""  # of a store: the blob before the place to read on from


class Chat(Transcript):
    agent = "cursor"
    state_type = ChatState
    blob = ""  # the message's own id, in a store

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        bare = record.keys() <= {"role", "message", "timestamp"} and "message" in record
        return bare or record.get("type") == "turn_ended"

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        inner = record.get("message")
        content = (inner if isinstance(inner, dict) else record).get("content")
        role = record.get("role")
        if role not in ("user", "assistant", "tool") or not isinstance(content, str | list):
            self.reading.skip(str(record.get("type") or role or "untyped"))
            return
        if self.skip_subagent():
            return
        options = dict_at(record, "providerOptions", "cursor")
        failed = dict_at(options, "highLevelToolCallResult").get("isError") is True
        self.epoch = parse_time(record.get("timestamp")) or self.epoch
        ref = f"{self.state.session}:{self.blob or self.number}"
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if role == "user":
            texts = [block for block in blocks if text_at(block, "type") == "text"]
            blocks = [block for block in blocks if text_at(block, "type") != "text"]
            said = "\n".join(map(nested_text, texts))
            yield from self._read_user(ref, said, options.get("isSummary") is True)
        for at, block in enumerate(blocks):
            if failed and isinstance(block, dict):
                block["isError"] = True
            yield from self.read_block(f"{ref}:{at}" if at else ref, block)

    def _read_user(self, ref: str, said: str, summary: bool) -> Iterator[Item]:
        """What was typed stands in a tag of its own, between what the client knows."""
        self.epoch = _parse_prompt_time(said) or self.epoch
        queries = [query.strip() for query in _QUERY.findall(said)]
        body = "\n".join(filter(None, queries)) if queries else said.strip()
        if summary and body:
            yield from self.make_summary(ref, body)
        elif body and (queries or not _OWN_TEXT.match(body)):
            yield self.make_prompt(ref, body)
        elif said.strip():
            self.reading.skip("client's own text")

    def read_call(
        self, key: Any, tool: str, given: Mapping[str, Any], ref: str = ""
    ) -> Iterator[Item]:
        return super().read_call(key, tool, given, self.call_ref(key) or ref)


def _parse_prompt_time(said: str) -> int:
    """When a prompt was typed, as the client tells the model: Monday, Aug 31, 2026, 5:52 AM."""
    match = _TIMESTAMP.search(said)
    if match is None:
        return 0
    *moment, sign, hours, minutes = match.groups()
    zone = f" {sign}{int(hours):02}{minutes or '00'}" if sign else ""
    try:
        form = "%b %d, %Y %I:%M %p" + (" %z" if zone else "")
        written = datetime.strptime(" ".join(moment) + zone, form)
        return max(0, int(written.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return 0


class Store(Chat):
    """The CLI's database of one session: messages are blobs, and a root lists them.

    Ids are the blobs' hashes. Only the latest root has them in order (protobuf field 1); it names
    the folder the session ran in as well (field 9), if `meta.json` beside the store does not.
    """

    def __init__(self, reading: Reading, database: Database) -> None:
        self.database = database
        asked = "SELECT CAST(value AS BLOB) FROM meta ORDER BY key = '0' DESC LIMIT 1"
        kept = _decode_hex(column_text(database.select_value(asked)))
        beside = load_object(reading.path.with_name("meta.json")) or {}
        fields = list(_read_fields(self._select_blob(str(kept.get("latestRootBlobId") or ""))))
        self.refs = [
            raw.hex() for field, raw in fields if field == _MESSAGE and len(raw) == _HASH_BYTES
        ]
        state = load_state(ChatState, reading.state)
        if not (0 < reading.line <= len(self.refs) and self.refs[reading.line - 1] == state.last):
            reading.line = 0
            state = _begin_state(reading, kept, beside)
        super().__init__(reading, state)
        if not state.project:
            folders = (uri_folder(raw) for field, raw in fields if field == _WORKSPACE)
            self.place_session(text_at(beside, "cwd") or next(folders, ""))
        self.epoch = (
            parse_time(beside.get("createdAtMs"))
            or parse_time(kept.get("createdAt"))
            or READER.stamp_transcript(reading.path)[1] // 1_000_000
        )

    def _select_blob(self, id_: str) -> bytes:
        asked = "SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?"
        return self.database.select_value(asked, id_) or b""

    def read_source(self) -> Iterator[Record]:
        """The messages that the root lists; a message's number is its line."""
        if not self.refs:
            self.reading.skip("store without messages")
        for at in range(self.reading.line, len(self.refs)):
            self.blob = self.refs[at]
            record = decode_object(self._select_blob(self.blob))
            bad = BadLine(f"message {self.blob} is not a JSON object")
            yield 0, 0, at + 1, bad if record is None else record

    def _keep_place(self, offset: int, line: int, state: State) -> None:
        super()._keep_place(offset, line, state)
        reading = self.reading
        last = self.refs[reading.line - 1] if reading.line else ""
        reading.state = replace(reading.state, last=last)


def _begin_state(reading: Reading, kept: Mapping[str, Any], beside: Mapping[str, Any]) -> ChatState:
    """A store's session is named by its folder; a sub-agent's belongs to the one it works for."""
    session, actor = reading.path.absolute().parent.name, ""
    if isinstance(kept.get("subagentInfo"), dict) or beside.get("isSubagent") is True:
        about = dict_at(kept, "subagentInfo")
        actor = f"{about.get('typeName') or 'sub-agent'}:{session}"
        session = str(value_at(about, "rootParentAgentId", "parentAgentId") or session)
    title = find_title(beside.get("title"), kept.get("name"))
    return ChatState(session=session, actor=actor, title=title)


def _decode_hex(value: str) -> dict[str, Any]:
    """The store's own data: JSON, written as hexadecimal digits."""
    try:
        return decode_object(bytes.fromhex(value)) or {}
    except ValueError:
        return decode_object(value) or {}


def _read_fields(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The byte fields of a protobuf message, as far as it can be read."""
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        kind = tag & 7
        if kind == 0:
            _, at = _read_varint(raw, at)
        elif kind == 2:
            length, at = _read_varint(raw, at)
            if at + length > len(raw):
                return
            yield tag >> 3, raw[at : at + length]
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw) and shift < 64:
        value |= (raw[at] & 0x7F) << shift
        shift += 7
        at += 1
        if raw[at - 1] < 0x80:
            break
    return value, at


READER = CursorReader()
