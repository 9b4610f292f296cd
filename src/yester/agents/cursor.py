"""Cursor's conversations, from the two kinds of databases its versions keep them in.

    chats/MD5/ID/store.db                           the CLI's, one for each session
    User/globalStorage/state.vscdb                  the editor's, one for all

None of it is documented. What is read is what at least two independent readers of these files agree
on; the rest is left out and counted by its type. The thinner agent-transcripts beside them hold the
same conversations without ids, times and results, and are not read.

The editor's database has a table cursorDiskKV:

    composerData:ID        a conversation: title, folder, and the order of its bubbles
    bubbleId:ID:BUBBLE     a message: text, thinking, or one tool call with its result

Cursor replaces a row to change it, which puts it at the end: the last row of a conversation tells
whether it is new, and up to which row everything has been read. The table beside it, ItemTable,
holds the user's tokens among other things and is not looked at; a workspace's own one is asked for
its list of conversations and nothing else, where these do not say which folder they belong to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from yester.agents import sources
from yester.agents.base import TODO_TOOLS, Conversation, Reading, Result, State, find_title
from yester.agents.values import (
    Record,
    decode_json,
    decode_object,
    dict_at,
    dicts_at,
    input_fields,
    list_at,
    list_blocks,
    load_object,
    nested_text,
    parse_local_time,
    parse_time,
    text_at,
    value_at,
)
from yester.model import Item

TABLE = "cursorDiskKV"

_USER = 1
_STEPS = ("Start", "RpcSend", "Settle", "End")
_YEAR_2000 = 946_684_800_000  # a time before it counts from the editor's own start

_CHANGED = f"""
SELECT CAST(id AS BLOB), max(row) FROM (
    SELECT rowid AS row, substr(key, 14) AS id FROM {TABLE}
    WHERE key >= 'composerData:' AND key < 'composerData;'
    UNION ALL
    SELECT rowid, substr(key, 10, instr(substr(key, 10), ':') - 1) FROM {TABLE}
    WHERE key >= 'bubbleId:' AND key < 'bubbleId;'
) GROUP BY id HAVING max(row) > ? ORDER BY 2
"""


_LISTED = "SELECT CAST(value AS BLOB) FROM ItemTable WHERE key = 'composer.composerData'"

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.S)
_OWN_TEXT = re.compile(r"\A\s*<[a-z_]+(?: [^>]*)?>")  # <user_info>, <system_reminder> …
_TIMESTAMP = re.compile(
    r"<timestamp>\w+, (\w{3})\w* (\d{1,2}, \d{4}),? (\d{1,2}:\d\d) ?([AP]M)"
    r"(?: \(UTC(?:([+-])(\d{1,2})(?::?(\d\d))?)?\))?"
)

_HASH_BYTES = 32
_MESSAGE, _WORKSPACE = 1, 9  # fields of a root


def _list_parts(reading: Reading, database: sources.Database) -> Iterator[sources.Part]:
    if database.table_columns(TABLE):
        yield from _list_conversations(reading, database)
    else:
        yield sources.Part("messages", None, Store(reading, database).read_items())


class StoreState(State):
    last: str = ""  # the blob before the place to read on from


class Store(sources.Transcript):
    """The CLI's database of one session: messages are blobs, and a root lists them.

    Ids are the blobs' hashes. Only the latest root has them in order (protobuf field 1); it names
    the folder the session ran in as well (field 9), if `meta.json` beside the store does not.
    """

    agent = "cursor"
    state: StoreState

    def __init__(self, reading: Reading, database: sources.Database) -> None:
        self.database, self.blob = database, ""
        asked = "SELECT CAST(value AS BLOB) FROM meta ORDER BY key = '0' DESC LIMIT 1"
        kept = _decode_hex(sources.column_text(database.select_value(asked)))
        beside = load_object(reading.path.with_name("meta.json")) or {}
        fields = list(_read_fields(self._select_blob(str(kept.get("latestRootBlobId") or ""))))
        self.refs = [
            raw.hex() for field, raw in fields if field == _MESSAGE and len(raw) == _HASH_BYTES
        ]
        state = reading.load_state(StoreState)
        if not (0 < reading.line <= len(self.refs) and self.refs[reading.line - 1] == state.last):
            reading.line = 0
            state = _begin_state(reading, kept, beside)
        super().__init__(reading, state)
        if not state.project:
            folders = (uri_folder(raw) for field, raw in fields if field == _WORKSPACE)
            self.place_session(text_at(beside, "cwd") or next(folders, ""))
        began = parse_time(beside.get("createdAtMs")) or parse_time(kept.get("createdAt"))
        self.epoch = began or reading.modified_at

    def _select_blob(self, id_: str) -> bytes:
        asked = "SELECT CAST(data AS BLOB) FROM blobs WHERE id = ?"
        return self.database.select_value(asked, id_) or b""

    def read_source(self) -> Iterator[sources.LineRecord]:
        """The messages that the root lists; a message's number is its line."""
        if not self.refs:
            self.reading.skip("store without messages")
        for at in range(self.reading.line, len(self.refs)):
            self.blob = self.refs[at]
            record = decode_object(self._select_blob(self.blob))
            bad = sources.BadLine(f"message {self.blob} is not a JSON object")
            yield 0, 0, at + 1, bad if record is None else record

    def keep_place(self, offset: int) -> None:
        self.state.last = self.refs[self.number - 1] if self.number else ""
        super().keep_place(offset)

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        options = dict_at(record, "providerOptions", "cursor")
        if dict_at(options, "highLevelToolCallResult").get("isError") is True:
            blocks = list_blocks(record.get("content"))
            record = {**record, "content": [{**one, "isError": True} for one in blocks]}
        yield from self.read_message(f"{self.state.session}:{self.blob}", record)

    def read_typed(self, ref: str, said: str, record: Record) -> Iterator[Item]:
        """What was typed stands in a tag of its own, between what the client knows."""
        self.epoch = _parse_prompt_time(said) or self.epoch
        queries = [query.strip() for query in _QUERY.findall(said)]
        body = "\n".join(filter(None, queries)) if queries else said
        if body and dict_at(record, "providerOptions", "cursor").get("isSummary") is True:
            yield self.make_summary(ref, body)
        elif body and (queries or not _OWN_TEXT.match(body)):
            yield self.make_prompt(ref, body)
        else:
            self.reading.skip("client's own text")

    def read_call(self, key: Any, tool: str, given: Record, ref: str = "") -> Iterator[Item]:
        return super().read_call(key, tool, given, self.call_ref(key) or ref)


def _parse_prompt_time(said: str) -> int:
    """When a prompt was typed, as the client tells the model: Monday, Aug 31, 2026, 5:52 AM."""
    match = _TIMESTAMP.search(said)
    if match is None:
        return 0
    *moment, sign, hours, minutes = match.groups()
    zone = f" {sign}{int(hours):02}{minutes or '00'}" if sign else ""
    form = "%b %d, %Y %I:%M %p" + (" %z" if zone else "")
    return parse_local_time(" ".join(moment) + zone, form)


def _begin_state(reading: Reading, kept: Record, beside: Record) -> StoreState:
    """A store's session is named by its folder; a sub-agent's belongs to the one it works for."""
    session, actor = reading.path.absolute().parent.name, ""
    if isinstance(kept.get("subagentInfo"), dict) or beside.get("isSubagent") is True:
        about = dict_at(kept, "subagentInfo")
        actor = f"{about.get('typeName') or 'sub-agent'}:{session}"
        session = str(value_at(about, "rootParentAgentId", "parentAgentId") or session)
    title = find_title(beside.get("title"), kept.get("name"))
    return StoreState(session=session, actor=actor, title=title)


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


# --- the editor's database -----------------------------------------------------------------------


def _list_conversations(reading: Reading, database: sources.Database) -> Iterator[sources.Part]:
    before = reading.state = reading.load_state(sources.RowProgress)
    folders = cache(lambda: dict(_list_workspaces(reading.path)))
    for raw, row in database.select_rows(_CHANGED, before.row):
        id_ = sources.column_text(raw)
        talk = Composer(reading, database, id_, before.row)
        yield sources.Part(
            f"conversation {id_}", sources.RowProgress(row), talk.read_items(folders)
        )


class Composer(Conversation):
    """One conversation of the editor, of which everything up to the row `since` has been read."""

    agent = "cursor"

    def __init__(self, reading: Reading, database: sources.Database, id_: str, since: int) -> None:
        super().__init__(reading, State(session=id_))
        self.id, self.database, self.since = id_, database, since

    def read_items(self, folders: Callable[[], Mapping[str, str]]) -> Iterator[Item]:
        key = f"composerData:{self.id}"
        row = self.database.select_value(f"SELECT rowid FROM {TABLE} WHERE key = ?", key) or 0
        data = self._select_object("conversation", key, row) or {}
        self._begin_session(data, folders)
        listed = dicts_at(data, "fullConversationHeadersOnly")  # in the order they are shown
        speakers = {text_at(one, "bubbleId"): one.get("type") for one in listed}
        rows = self._select_bubbles()
        if not rows:
            self.reading.skip("empty conversation")
        for ref in dict.fromkeys((*speakers, *rows)):  # some are not listed yet
            number, speaker = rows.get(ref, 0), speakers.get(ref)
            if number > self.since or (number and speaker == _USER):
                found = self._select_object("bubble", f"bubbleId:{self.id}:{ref}", number)
                if found is not None:
                    found.setdefault("type", speaker)
                    yield from self._read_bubble(ref, found, number > self.since)
        if row > self.since and rows:
            self.register_session()  # the title may be all that changed
            latest = dict_at(data, "latestConversationSummary")
            summary = text_at(dict_at(latest, "summary"), "summary") or text_at(latest, "summary")
            if summary:
                yield self.make_summary(f"{self.id}:summary", summary)

    def _select_object(self, kind: str, key: str, row: int) -> dict[str, Any] | None:
        asked = f"SELECT CAST(value AS BLOB) FROM {TABLE} WHERE key = ?"
        value = self.database.select_value(asked, key)
        return self.reading.decode_cell(value, kind, key.rpartition(":")[2], row)

    def _begin_session(self, data: Record, folders: Callable[[], Mapping[str, str]]) -> None:
        about = dict_at(data, "subagentInfo")
        if about.get("parentComposerId"):
            root = value_at(about, "rootParentConversationId", "parentComposerId")
            self.actor = f"{about.get('subagentTypeName') or 'sub-agent'}:{self.id}"
            self.state.session, self.state.actor = str(root), self.actor
        self.state.title = find_title(data.get("name"))
        first = next(iter(list_at(data, "trackedGitRepos")), None)
        folder = text_at(dict_at(data, "workspaceIdentifier", "uri"), "fsPath")
        self.place_session(folder or text_at(first, "repoPath") or folders().get(self.id, ""))
        self.epoch = parse_time(value_at(data, "createdAt", "lastUpdatedAt"))

    def _select_bubbles(self) -> dict[str, int]:
        """Bubble → its row, in the order they were written."""
        prefix = f"bubbleId:{self.id}:"
        rows = self.database.select_rows(
            f"SELECT rowid, CAST(key AS BLOB) FROM {TABLE} WHERE key >= ? AND key < ?"
            " ORDER BY rowid", prefix, f"bubbleId:{self.id};",
        )  # fmt: skip
        return {sources.column_text(key)[len(prefix) :]: number for number, key in rows}

    def _read_bubble(self, ref: str, bubble: dict[str, Any], new: bool) -> Iterator[Item]:
        timing = dict_at(bubble, "timingInfo")
        stamps = (bubble.get("createdAt"), *(timing.get(f"client{name}Time") for name in _STEPS))
        times = filter(lambda time: time >= _YEAR_2000, map(parse_time, stamps))
        self.epoch = next(times, self.epoch)
        said = text_at(bubble, "text", "rawText").strip()
        if bubble.get("type") == _USER:
            if said:
                yield from self.read_prompt(ref, said, new)
            else:
                self.reading.skip("empty")
        elif new:
            call = dict_at(bubble, "toolFormerData")
            thought = nested_text(bubble.get("thinking"))
            if thought.strip():
                yield self.make_message(f"{ref}:thinking", thought, "thinking")
            if tool := text_at(call, "name"):
                yield from self._read_tool_bubble(f"{ref}:tool", tool, call)
            if said or not (thought.strip() or tool):
                yield self.make_message(ref, said)

    def _read_tool_bubble(self, ref: str, tool: str, call: dict[str, Any]) -> Iterator[Item]:
        given = input_fields(value_at(call, "rawArgs", "params"))
        result, error = call.get("result"), nested_text(call.get("error"))
        found = decode_json(result) if isinstance(result, str) else result
        if tool.lower() in TODO_TOOLS:
            yield from self.make_todo(list_at(found, "finalTodos") or given.get("todos"))
        output = nested_text(found) or nested_text(result) or error
        key = next(iter(text_at(call, "toolCallId").split()), None)
        about = found if isinstance(found, dict) else {}
        status = about.get("exitCodeV2", about.get("exitCode"))
        result = Result(output, call.get("status") == "error" or bool(error), status)
        yield self.make_answered_call(ref, key, tool, given, result)


def _list_workspaces(path: Path) -> Iterator[tuple[str, str]]:
    """Conversations and the folders they belong to, as the workspaces of earlier versions list
    them; where two do, the last one counts."""
    storage = path.absolute().parent.parent / "workspaceStorage"
    for file in sorted(storage.glob("*/workspace.json"), reverse=True):
        folder = uri_folder(text_at(load_object(file), "folder"))
        try:
            with sources.Database(file.with_name("state.vscdb")) as database:
                listed = database.select_value(_LISTED)
        except sources.DatabaseProblem:
            continue
        for one in dicts_at(decode_object(listed), "allComposers") if folder else ():
            yield text_at(one, "composerId"), folder


def uri_folder(uri: Any) -> str:
    """A local folder from its URI."""
    uri = uri.decode("utf-8", "replace") if isinstance(uri, bytes) else uri
    if not isinstance(uri, str) or not uri.startswith("file:///"):
        return ""
    return unquote(uri.removeprefix("file://"))


READER = sources.make_database_reader(_list_parts, (TABLE,), ("blobs", "meta"))
