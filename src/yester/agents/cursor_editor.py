"""The Cursor editor's database, one for all conversations: `state.vscdb`, table cursorDiskKV.

    composerData:ID        a conversation: title, folder, and the order of its bubbles
    bubbleId:ID:BUBBLE     a message: text, thinking, or one tool call with its result

Cursor replaces a row to change it, which puts it at the end: the last row of a conversation tells
whether it is new, and up to which row everything has been read. The table beside it, ItemTable,
holds the user's tokens among other things and is not looked at; a workspace's own one is asked for
its list of conversations and nothing else, where these do not say which folder they belong to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yester.agents.base import Reading
from yester.agents.conversation import (
    TODO_TOOLS,
    Conversation,
    an_object,
    as_fields,
    load,
    load_state,
    moment,
    placed,
    text_of,
)
from yester.agents.cursor_chat import folder_of, title_of
from yester.agents.descriptors import CURSOR
from yester.agents.sqlite import Database, DatabaseProblem, text
from yester.agents.transcript import State, decoded, todo_text
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


def conversations(reading: Reading, database: Database) -> Iterator[Item]:
    before = reading.state = load_state(Progress, reading.state)
    workspaces = _Workspaces(reading.path)
    whole = True
    for id_, row in database.rows(_CHANGED, before.row):
        try:
            yield from _read(reading, database, workspaces, text(id_), before.row)
        except DatabaseProblem as problem:
            reading.bad(row, f"conversation {text(id_)}: {problem}")
            whole = whole and not problem.passing  # else the next run tries again from here
        if whole:
            reading.state = Progress(row)


def _read(
    reading: Reading, database: Database, workspaces: _Workspaces, id_: str, since: int
) -> Iterator[Item]:
    asked = f"SELECT CAST(value AS BLOB) FROM {TABLE} WHERE key = ?"
    key = f"composerData:{id_}"
    row = database.value(f"SELECT rowid FROM {TABLE} WHERE key = ?", key) or 0
    value = database.value(asked, key)
    data = an_object(value)
    if data is None and value not in (None, b"null"):
        reading.bad(row, f"conversation {id_} is not a JSON object")
    talk = _Composer(reading, id_, data or {}, workspaces)
    if talk.actor and not reading.options.subagents:
        reading.skip("sub-agent")
        return
    inline = (data or {}).get("conversation")
    if isinstance(inline, list) and inline:  # early versions kept all of it in one row
        for at, bubble in enumerate(inline):
            if isinstance(bubble, dict):
                ref = bubble.get("bubbleId")
                yield from talk.bubble(ref if isinstance(ref, str) else f"{id_}:{at}", bubble, True)
        return
    prefix = f"bubbleId:{id_}:"
    rows = {
        text(key)[len(prefix) :]: number
        for number, key in database.rows(
            f"SELECT rowid, CAST(key AS BLOB) FROM {TABLE} WHERE key >= ? AND key < ?"
            " ORDER BY rowid", prefix, f"bubbleId:{id_};",
        )
    }  # fmt: skip
    if not rows:
        reading.skip("empty conversation")
    kinds = talk.order()
    for bubble_id in [*kinds, *(one for one in rows if one not in kinds)]:  # or not listed yet
        number = rows.get(bubble_id, 0)
        if number > since or (number and kinds.get(bubble_id) == _USER):
            value = database.value(asked, prefix + bubble_id)
            found = an_object(value)
            if found is not None:
                found.setdefault("type", kinds.get(bubble_id))
                yield from talk.bubble(bubble_id, found, number > since)
            elif value in (None, b"null"):
                reading.skip("cleared bubble")
            else:
                reading.bad(number, f"bubble {bubble_id} is not a JSON object")
    if row > since and rows:
        talk.meet()  # the title may be all that changed
        yield from talk.ended()


class _Composer(Conversation[State]):
    agent = CURSOR.name

    def __init__(
        self, reading: Reading, id_: str, data: dict[str, Any], workspaces: _Workspaces
    ) -> None:
        session, actor, about = id_, "", data.get("subagentInfo")
        if isinstance(about, dict) and about.get("parentComposerId"):
            actor = f"{about.get('subagentTypeName') or 'sub-agent'}:{id_}"
            session = str(about.get("rootParentConversationId") or about["parentComposerId"])
        state = State(session=session, actor=actor, title=title_of(data.get("name")))
        cwd = _cwd(data) or workspaces.folder(id_)
        super().__init__(reading, placed(reading, state, cwd))
        self.id, self.data = id_, data
        self.epoch = moment(data.get("createdAt")) or moment(data.get("lastUpdatedAt"))

    def order(self) -> dict[str, Any]:
        """Bubble → who speaks, in the order they are shown."""
        listed = self.data.get("fullConversationHeadersOnly")
        return {
            one["bubbleId"]: one.get("type")
            for one in (listed if isinstance(listed, list) else ())
            if isinstance(one, dict) and isinstance(one.get("bubbleId"), str)
        }

    def bubble(self, ref: str, bubble: dict[str, Any], new: bool) -> Iterator[Item]:
        self.epoch = moment(bubble.get("createdAt")) or _timed(bubble) or self.epoch
        said = bubble.get("text") or bubble.get("rawText")
        said = said.strip() if isinstance(said, str) else ""
        if bubble.get("type") == _USER:
            if not said:
                self.reading.skip("empty")
            elif new:
                yield self.prompt(ref, said)
            elif not self.actor:
                self.count_prompt(said)
        elif new:
            thinking, call = bubble.get("thinking"), self._call_of(ref, bubble)
            if thought := text_of(thinking).strip():
                yield from self.said(f"{ref}:thinking", thought, "thinking")
            if call:
                yield from self._call(f"{ref}:tool", call)
            if said or not (thought or call):
                yield from self.said(ref, said)

    def ended(self) -> Iterator[Item]:
        summary = self.data.get("latestConversationSummary")
        summary = summary.get("summary") if isinstance(summary, dict) else None
        summary = summary.get("summary") if isinstance(summary, dict) else summary
        if isinstance(summary, str) and summary.strip():
            yield self.compaction(f"{self.id}:summary", summary.strip())

    def _call_of(self, ref: str, bubble: dict[str, Any]) -> dict[str, Any] | None:
        """A bubble's tool call; before version 3 it stands beside the conversation."""
        call = bubble.get("toolFormerData")
        if not isinstance(call, dict):
            listed = self.data.get("capabilities")
            for one in listed if isinstance(listed, list) else ():
                kept = one.get("data") if isinstance(one, dict) else None
                calls = kept.get("bubbleDataMap") if isinstance(kept, dict) else None
                calls = decoded(calls) if isinstance(calls, str) else calls
                call = calls.get(ref) if isinstance(calls, dict) else None
                if isinstance(call, dict):
                    break
        return call if isinstance(call, dict) and isinstance(call.get("name"), str) else None

    def _call(self, ref: str, call: dict[str, Any]) -> Iterator[Item]:
        given = as_fields(call.get("rawArgs") or call.get("params"))
        result, error = call.get("result"), text_of(call.get("error"))
        found = decoded(result) if isinstance(result, str) else result
        if call["name"].lower() in TODO_TOOLS:
            todos = found.get("finalTodos") if isinstance(found, Mapping) else None
            yield from self.todo(todo_text(todos or given.get("todos"), "content"))
        output = text_of(found) or text_of(result) or error
        key = call.get("toolCallId")
        yield from self.tool(
            ref, key.split()[0] if isinstance(key, str) and key.strip() else None, call["name"],
            given, output, call.get("status") == "error" or bool(error),
        )  # fmt: skip


class _Workspaces:
    """Which folder a conversation belongs to, as the workspaces of earlier versions list them."""

    def __init__(self, path: Path) -> None:
        self._storage = path.absolute().parent.parent / "workspaceStorage"
        self._folders: dict[str, str] | None = None

    def folder(self, id_: str) -> str:
        if self._folders is None:
            self._folders = {}
            for file in sorted(self._storage.glob("*/workspace.json")):
                folder = folder_of((load(file) or {}).get("folder"))
                for one in self._listed(file.with_name("state.vscdb")) if folder else ():
                    self._folders.setdefault(one, folder)
        return self._folders.get(id_, "")

    def _listed(self, path: Path) -> Iterator[str]:
        if not path.exists():
            return
        try:
            database = Database(path)
            try:
                rows = database.rows(
                    "SELECT CAST(value AS BLOB) FROM ItemTable WHERE key = 'composer.composerData'"
                )
            finally:
                database.close()
        except DatabaseProblem:
            return
        for (value,) in rows:
            listed = (an_object(value) or {}).get("allComposers")
            for one in listed if isinstance(listed, list) else ():
                if isinstance(one, dict) and isinstance(one.get("composerId"), str):
                    yield one["composerId"]


def _cwd(data: dict[str, Any]) -> str:
    workspace, repositories = data.get("workspaceIdentifier"), data.get("trackedGitRepos")
    uri = workspace.get("uri") if isinstance(workspace, dict) else None
    path = uri.get("fsPath") if isinstance(uri, dict) else None
    first = repositories[0] if isinstance(repositories, list) and repositories else None
    path = path or (first.get("repoPath") if isinstance(first, dict) else None)
    return path if isinstance(path, str) else ""


def _timed(bubble: dict[str, Any]) -> int:
    timing = bubble.get("timingInfo")
    if not isinstance(timing, dict):
        return 0
    start = moment(timing.get("clientStartTime"))
    if start >= _YEAR_2000:
        return start
    ends = (moment(timing.get(f"client{name}Time")) for name in ("RpcSend", "Settle", "End"))
    return max(0, next(filter(None, ends), start) - start)
