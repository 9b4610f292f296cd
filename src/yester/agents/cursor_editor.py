"""The Cursor editor's database, one for all conversations: `state.vscdb`, table cursorDiskKV.

    composerData:ID        a conversation: title, folder, and the order of its bubbles
    bubbleId:ID:BUBBLE     a message: text, thinking, or one tool call with its result

Cursor replaces a row to change it, which puts it at the end: the last row of a conversation tells
whether it is new, and up to which row everything has been read. The table beside it, ItemTable,
holds the user's tokens among other things and is not looked at; a workspace's own one is asked for
its list of conversations and nothing else, where these do not say which folder they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from yester.agents.base import TODO_TOOLS, Conversation, Reading, State, find_title, load_state
from yester.agents.databases import Database, DatabaseProblem, column_text, read_changed
from yester.agents.values import (
    decode_json,
    decode_object,
    dict_at,
    dicts_at,
    input_fields,
    list_at,
    load_object,
    nested_text,
    parse_time,
    text_at,
    value_at,
)
from yester.model import Item

TABLE = "cursorDiskKV"

_USER = 1
_YEAR_2000 = 946_684_800_000  # a start before it is a duration, to be taken from the end

_CHANGED = f"""
SELECT CAST(id AS BLOB), max(row) FROM (
    SELECT rowid AS row, substr(key, 14) AS id FROM {TABLE}
    WHERE key >= 'composerData:' AND key < 'composerData;'
    UNION ALL
    SELECT rowid, substr(key, 10, instr(substr(key, 10), ':') - 1) FROM {TABLE}
    WHERE key >= 'bubbleId:' AND key < 'bubbleId;'
) GROUP BY id HAVING max(row) > ? ORDER BY 2
"""


@dataclass(frozen=True, slots=True)
class Progress:
    row: int = 0  # what changed up to here has been read


def read_conversations(reading: Reading, database: Database) -> Iterator[Item]:
    before = reading.state = load_state(Progress, reading.state)
    workspaces = _Workspaces(reading.path)
    changed = (
        (
            f"conversation {column_text(id_)}",
            Progress(row),
            _read_conversation(reading, database, workspaces, column_text(id_), before.row),
        )
        for id_, row in database.select_rows(_CHANGED, before.row)
    )
    yield from read_changed(reading, changed)


def _read_conversation(
    reading: Reading, database: Database, workspaces: _Workspaces, id_: str, since: int
) -> Iterator[Item]:
    asked = f"SELECT CAST(value AS BLOB) FROM {TABLE} WHERE key = ?"
    key = f"composerData:{id_}"
    row = database.select_value(f"SELECT rowid FROM {TABLE} WHERE key = ?", key) or 0
    value = database.select_value(asked, key)
    data = decode_object(value)
    if data is None and value not in (None, b"null"):
        reading.report_bad(row, f"conversation {id_} is not a JSON object")
    talk = _Composer(reading, id_, data or {}, workspaces)
    if talk.skip_subagent():
        return
    if inline := list_at(data, "conversation"):  # early versions kept all of it in one row
        for at, bubble in enumerate(inline):
            if isinstance(bubble, dict):
                ref = bubble.get("bubbleId")
                ref = ref if isinstance(ref, str) else f"{id_}:{at}"
                yield from talk.read_bubble(ref, bubble, True)
        return
    prefix = f"bubbleId:{id_}:"
    rows = {
        column_text(key)[len(prefix) :]: number
        for number, key in database.select_rows(
            f"SELECT rowid, CAST(key AS BLOB) FROM {TABLE} WHERE key >= ? AND key < ?"
            " ORDER BY rowid", prefix, f"bubbleId:{id_};",
        )
    }  # fmt: skip
    if not rows:
        reading.skip("empty conversation")
    kinds = talk.list_bubbles()
    for bubble_id in [*kinds, *(one for one in rows if one not in kinds)]:  # or not listed yet
        number = rows.get(bubble_id, 0)
        if number > since or (number and kinds.get(bubble_id) == _USER):
            value = database.select_value(asked, prefix + bubble_id)
            found = decode_object(value)
            if found is not None:
                found.setdefault("type", kinds.get(bubble_id))
                yield from talk.read_bubble(bubble_id, found, number > since)
            elif value in (None, b"null"):
                reading.skip("cleared bubble")
            else:
                reading.report_bad(number, f"bubble {bubble_id} is not a JSON object")
    if row > since and rows:
        talk.register_session()  # the title may be all that changed
        yield from talk.read_summary()


class _Composer(Conversation):
    agent = "cursor"

    def __init__(
        self, reading: Reading, id_: str, data: dict[str, Any], workspaces: _Workspaces
    ) -> None:
        session, actor, about = id_, "", dict_at(data, "subagentInfo")
        if about.get("parentComposerId"):
            actor = f"{about.get('subagentTypeName') or 'sub-agent'}:{id_}"
            session = str(value_at(about, "rootParentConversationId", "parentComposerId"))
        state = State(session=session, actor=actor, title=find_title(data.get("name")))
        super().__init__(reading, state)
        self.place_session(_find_cwd(data) or workspaces.find_folder(id_))
        self.id, self.data = id_, data
        self.epoch = parse_time(data.get("createdAt")) or parse_time(data.get("lastUpdatedAt"))

    def list_bubbles(self) -> dict[str, Any]:
        """Bubble → who speaks, in the order they are shown."""
        return {
            one["bubbleId"]: one.get("type")
            for one in dicts_at(self.data, "fullConversationHeadersOnly")
            if isinstance(one.get("bubbleId"), str)
        }

    def read_bubble(self, ref: str, bubble: dict[str, Any], new: bool) -> Iterator[Item]:
        self.epoch = parse_time(bubble.get("createdAt")) or _bubble_time(bubble) or self.epoch
        said = text_at(bubble, "text", "rawText").strip()
        if bubble.get("type") == _USER:
            if said:
                yield from self.read_prompt(ref, said, new)
            else:
                self.reading.skip("empty")
        elif new:
            call = self._find_call(ref, bubble)
            thought = nested_text(bubble.get("thinking")).strip()
            if thought:
                yield from self.make_message(f"{ref}:thinking", thought, "thinking")
            if call:
                yield from self._read_call(f"{ref}:tool", call)
            if said or not (thought or call):
                yield from self.make_message(ref, said)

    def read_summary(self) -> Iterator[Item]:
        summary = dict_at(self.data, "latestConversationSummary", "summary").get("summary")
        summary = summary or dict_at(self.data, "latestConversationSummary").get("summary")
        if isinstance(summary, str):
            yield from self.make_summary(f"{self.id}:summary", summary)

    def _find_call(self, ref: str, bubble: dict[str, Any]) -> dict[str, Any] | None:
        """A bubble's tool call; before version 3 it stands beside the conversation."""
        call = bubble.get("toolFormerData")
        if not isinstance(call, dict):
            maps = (
                dict_at(one, "data").get("bubbleDataMap")
                for one in dicts_at(self.data, "capabilities")
            )
            calls = (decode_json(one) if isinstance(one, str) else one for one in maps)
            call = next(filter(None, (dict_at(one, ref) for one in calls)), {})
        return call if isinstance(call.get("name"), str) else None

    def _read_call(self, ref: str, call: dict[str, Any]) -> Iterator[Item]:
        given = input_fields(value_at(call, "rawArgs", "params"))
        result, error = call.get("result"), nested_text(call.get("error"))
        found = decode_json(result) if isinstance(result, str) else result
        if call["name"].lower() in TODO_TOOLS:
            yield from self.make_todo(list_at(found, "finalTodos") or given.get("todos"))
        output = nested_text(found) or nested_text(result) or error
        key = next(iter(text_at(call, "toolCallId").split()), None)
        failed = call.get("status") == "error" or bool(error)
        yield from self.make_answered_call(ref, key, call["name"], given, output, failed)


class _Workspaces:
    """Which folder a conversation belongs to, as the workspaces of earlier versions list them."""

    def __init__(self, path: Path) -> None:
        self._storage = path.absolute().parent.parent / "workspaceStorage"
        self._folders: dict[str, str] | None = None

    def find_folder(self, id_: str) -> str:
        if self._folders is None:
            self._folders = {}
            for file in sorted(self._storage.glob("*/workspace.json")):
                if folder := uri_folder(text_at(load_object(file), "folder")):
                    for one in self._list_conversations(file.with_name("state.vscdb")):
                        self._folders.setdefault(one, folder)
        return self._folders.get(id_, "")

    def _list_conversations(self, path: Path) -> Iterator[str]:
        if not path.exists():
            return
        try:
            with Database(path) as database:
                rows = database.select_rows(
                    "SELECT CAST(value AS BLOB) FROM ItemTable WHERE key = 'composer.composerData'"
                )
        except DatabaseProblem:
            return
        for (value,) in rows:
            for one in dicts_at(decode_object(value), "allComposers"):
                if isinstance(one.get("composerId"), str):
                    yield one["composerId"]


def _find_cwd(data: dict[str, Any]) -> str:
    first = next(iter(list_at(data, "trackedGitRepos")), None)
    folder = text_at(dict_at(data, "workspaceIdentifier", "uri"), "fsPath")
    return folder or text_at(first, "repoPath")


def _bubble_time(bubble: dict[str, Any]) -> int:
    timing = dict_at(bubble, "timingInfo")
    start = parse_time(timing.get("clientStartTime"))
    if start >= _YEAR_2000:
        return start
    ends = (parse_time(timing.get(f"client{name}Time")) for name in ("RpcSend", "Settle", "End"))
    return max(0, next(filter(None, ends), start) - start)


def uri_folder(uri: Any) -> str:
    """A local folder from its URI."""
    uri = uri.decode("utf-8", "replace") if isinstance(uri, bytes) else uri
    if not isinstance(uri, str) or not uri.startswith("file:///"):
        return ""
    return unquote(uri.removeprefix("file://"))
