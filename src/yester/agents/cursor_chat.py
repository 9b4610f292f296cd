"""Messages of a role and blocks of content: what Cursor's transcripts and stores have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from yester.agents.conversation import Conversation, as_fields, moment, text_of
from yester.agents.descriptors import CURSOR
from yester.agents.transcript import State, todo_text
from yester.model import Item

CALLS = frozenset({"tool_use", "tool-call"})
RESULTS = frozenset({"tool_result", "tool-result"})
OUTPUTS = ("result", "experimental_content", "content", "output")
UNTITLED = frozenset({"New Agent", "New Chat", "Untitled"})

_QUERY = re.compile(r"<user_query>(.*?)(?:</user_query>|\Z)", re.S)
_OWN_TEXT = re.compile(r"\s*<[a-z_]+(?: [^>]*)?>")  # <user_info>, <system_reminder> …
_TIMESTAMP = re.compile(
    r"<timestamp>\w+, (?P<month>\w{3})\w* (?P<day>\d{1,2}), (?P<year>\d{4}),?"
    r" (?P<hour>\d{1,2}):(?P<minute>\d\d) ?(?P<half>[AP])M"
    r"(?: \(UTC(?:(?P<zone>[+-]\d{1,2})(?::?(?P<quarter>\d\d))?)?\))?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class ChatState(State):
    last: str = ""  # of a store: the blob before the place to read on from


class Chat(Conversation[ChatState]):
    agent = CURSOR.name
    bookkeeping = frozenset({"TodoWrite", "TodoRead", "todo_write", "todo_read", "UpdateTodos"})
    blob = ""  # the message's own id, in a store

    def record(self, record: dict[str, Any]) -> Iterator[Item]:
        inner = record.get("message")
        role, content = (
            record.get("role"),
            (inner if isinstance(inner, dict) else record).get("content"),
        )
        if role not in ("user", "assistant", "tool") or not isinstance(content, str | list):
            self.reading.skip(str(record.get("type") or role or "untyped"))
            return
        if self.actor and not self.reading.options.subagents:
            self.reading.skip("sub-agent")
            return
        options = _inside(_inside(record, "providerOptions"), "cursor")
        self.epoch = moment(record.get("timestamp")) or self.epoch
        ref = f"{self.state.session}:{self.blob or self.number}"
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if role == "user":
            said = "\n".join(text_of(block) for block in blocks if _kind(block) == "text")
            blocks = [block for block in blocks if _kind(block) != "text"]
            yield from self._user(ref, said, options.get("isSummary") is True)
        for at, block in enumerate(blocks):
            yield from self._block(f"{ref}:{at}" if at else ref, block, options)

    def _user(self, ref: str, said: str, summary: bool) -> Iterator[Item]:
        """What was typed stands in a tag of its own, between what the client knows."""
        self.epoch = _written(said) or self.epoch
        queries = [query.strip() for query in _QUERY.findall(said)]
        body = "\n".join(filter(None, queries)) if queries else said.strip()
        if summary and body:
            yield self.compaction(ref, body)
        elif body and (queries or not _OWN_TEXT.match(body)):
            yield self.prompt(ref, body)
        elif said.strip():
            self.reading.skip("client's own text")

    def _block(self, ref: str, block: Any, options: Mapping[str, Any]) -> Iterator[Item]:
        kind = _kind(block)
        if kind == "text":
            yield from self.said(ref, text_of(block))
        elif kind in ("reasoning", "thinking"):
            yield from self.said(ref, block.get("text") or block.get("thinking"), "thinking")
        elif kind in CALLS:
            yield from self._call(ref, block)
        elif kind in RESULTS:
            said = (
                _inside(options, "highLevelToolCallResult").get("isError"),
                block.get("isError"),
            )
            failed = True in (*said, block.get("is_error"))
            output = next((text_of(block[key]) for key in OUTPUTS if block.get(key)), "")
            key = block.get("toolCallId") or block.get("tool_use_id")
            yield from self.answer(key, output, failed)
        else:
            self.reading.skip(f"{kind or 'unknown'} block")

    def _call(self, ref: str, block: dict[str, Any]) -> Iterator[Item]:
        name = block.get("name") or block.get("toolName")
        name = name if isinstance(name, str) else "unknown"
        key = block.get("id") or block.get("toolCallId")
        given = as_fields(block.get("input", block.get("args")))
        if name in self.bookkeeping:
            yield from self.todo(todo_text(given.get("todos"), "content"))
            if not key:
                self.reading.skip(f"{name} call")
                return
        made = self.call(self.own_ref(key) or ref, name.lower(), given)
        yield from self.wait(key, replace(made, tool=name))


def title_of(*names: Any) -> str:
    """The first that is one; the client's word for having none is none."""
    titles = (name.strip() for name in names if isinstance(name, str))
    return next((title for title in titles if title and title not in UNTITLED), "")


def folder_of(uri: Any) -> str:
    """A local folder from its URI."""
    uri = uri.decode("utf-8", "replace") if isinstance(uri, bytes) else uri
    if not isinstance(uri, str) or not uri.startswith("file:///"):
        return ""
    return unquote(uri.removeprefix("file://"))


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def _inside(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _written(said: str) -> int:
    """When a prompt was typed, as the client tells the model: Monday, Aug 31, 2026, 5:52 AM."""
    match = _TIMESTAMP.search(said)
    if match is None or match["month"].lower() not in _MONTHS:
        return 0
    hour = int(match["hour"]) % 12 + (12 if match["half"] == "P" else 0)
    try:
        written = datetime(
            int(match["year"]), _MONTHS.index(match["month"].lower()) + 1, int(match["day"]),
            hour, int(match["minute"]), tzinfo=UTC if match["zone"] else None,
        )  # fmt: skip
        hours = int(match["zone"] or 0)
        ahead = timedelta(
            hours=hours, minutes=int(match["quarter"] or 0) * (1 if hours >= 0 else -1)
        )
        return max(0, int((written - ahead).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return 0
