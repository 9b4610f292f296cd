"""What the readers of JSON lines share: one pass over one transcript.

A tool call and its result become one item. The call waits until its result comes, and so does the
place to read on from: whatever is committed meanwhile, the next run meets the call again.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from yester.agents.base import Reading, first_line, relative
from yester.agents.jsonl import Bad, records
from yester.model import Item, Session
from yester.project import files_root

# tool → (input fields that make the text, in order; field with the file; does it change the file)
Tools = Mapping[str, tuple[tuple[str, ...], str, bool]]

# A call that got no result within so many lines was interrupted; it is stored without one. Copilot
# writes all a sub-agent does between the call that started it and its result.
_PATIENCE_LINES = 1_000
_LOOKED_AT = 20  # records that tell whose file it is
_WEAKEST_ID = 8  # characters; local models number their calls, "call_0" in every session
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")

_decoder = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class State:
    """What must be known to go on reading in the middle of a file."""

    session: str = ""
    actor: str = ""  # the sub-agent whose file this is
    cwd: str = ""
    branch: str = ""
    project: str = ""
    root: str = ""
    title: str = ""
    prompts: int = 0
    turn: str = ""  # the client's id of the prompt that is worked on
    answered: tuple[str, ...] = ()  # calls before this place whose result is behind it, but known

    @classmethod
    def load(cls, stored: Any) -> Self:
        if isinstance(stored, cls):
            return stored
        try:
            return msgspec.convert(dict(stored or {}), cls)
        except (msgspec.ValidationError, TypeError, ValueError):
            return cls()  # another version's state: begin with an empty one


S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class Waiting:
    """An item that is not complete yet, and where to read on from to meet it again."""

    item: Item
    offset: int
    line: int
    state: State


class Transcript(ABC, Generic[S]):
    """One pass over one file: the state so far and the calls that wait for their result."""

    agent: ClassVar[str]
    tools: ClassVar[Tools]
    bookkeeping: ClassVar[frozenset[str]] = frozenset()  # tools whose calls say nothing themselves

    def __init__(self, reading: Reading, state: S) -> None:
        self.reading = reading
        self.state = state
        self.actor = state.actor
        self.waiting: dict[str, Waiting] = {}
        self._answered: dict[str, int] = {}  # key of a call: the line of its result
        self._ahead = set(state.answered)
        self.number = reading.line
        self.timestamp = ""
        self.epoch = 0
        self._start = -1
        self._before: State = state  # the state at the beginning of the line

    @staticmethod
    def decode(raw: bytes) -> Any:
        """A line as the record the reader wants; msgspec's errors and ValueError: it is none."""
        return _decoder.decode(raw)

    @staticmethod
    def convert(value: dict[str, Any]) -> Any:
        """The same of an object that was found in a line of several."""
        return value

    @abstractmethod
    def record(self, record: Any) -> Iterator[Item]:
        """What one record of the file gives; most give nothing."""

    def items(self) -> Iterator[Item]:
        reading = self.reading
        for start, end, number, record in records(
            reading.path, reading.offset, reading.line, self.decode, self.convert
        ):
            if start != self._start:  # glued records share a line: it is read as a whole again
                self._start, self._before = start, self.state
            self.number = number
            self._mark(start, number - 1, self._before)
            if isinstance(record, Bad):
                reading.bad(number, record.reason)
            else:
                yield from self.record(record)
            yield from self._give_up()
            self._mark(end, number, self.state)
        for call in self.waiting.values():
            yield from self._unanswered(call)

    def _mark(self, offset: int, line: int, state: State) -> None:
        """Where to read on from: here, or at the first item that may still be completed."""
        reading = self.reading
        for call in self.waiting.values():
            offset, line, state = call.offset, call.line, call.state
            break
        if self._answered:
            self._answered = {key: at for key, at in self._answered.items() if at > line}
        if self._answered or self._ahead or state.answered:
            state = replace(state, answered=(*self._answered, *self._ahead))
        reading.offset, reading.line, reading.state = offset, line, state

    def _give_up(self) -> Iterator[Item]:
        while self.waiting:
            key, call = next(iter(self.waiting.items()))
            if self.number - call.line <= _PATIENCE_LINES:
                return
            del self.waiting[key]
            yield from self._unanswered(call)

    def _unanswered(self, call: Waiting) -> Iterator[Item]:
        if call.item.tool in self.bookkeeping:
            self.reading.skip(f"{call.item.tool} call")
        else:
            self.reading.unanswered.add(call.item.ref)
            yield from self.unless_empty(call.item)

    def unless_empty(self, item: Item) -> Iterator[Item]:
        if item.body.strip():
            yield item
        else:
            self.reading.skip("empty")

    # --- where and when ----------------------------------------------------------------------

    def place(self, timestamp: Any, cwd: Any = "", branch: Any = "") -> None:
        """Time and session of a record; a session's first folder decides its project."""
        if isinstance(timestamp, str):
            self.timestamp = timestamp
            self.epoch = epoch(timestamp) or self.epoch
        if isinstance(branch, str) and branch and branch != self.state.branch:
            self.state = replace(self.state, branch=branch)
        if isinstance(cwd, str) and cwd and not self.state.project:
            found = self.reading.projects.of(cwd)
            root = files_root(found, cwd)
            self.state = replace(self.state, cwd=cwd, project=found.key, root=root)
        state = self.state
        if state.project and self.epoch:
            self.reading.met(
                state.session, self.epoch, lambda: Session(
                    state.session, self.agent, state.project, self.epoch, self.epoch, state.cwd,
                    state.branch, "" if self.actor else state.title,
                    "" if self.actor else str(self.reading.path),
                )
            )  # fmt: skip

    def file(self, path: str) -> str:
        """A path as seen from the project's root; agents also name it from where they are."""
        if self.state.cwd and not (path.startswith(("/", "\\", "~")) or _DRIVE.match(path)):
            path = f"{self.state.cwd.rstrip('/')}/{path.removeprefix('./')}"
        return relative(path, self.state.root)

    def ref(self, own: Any, *parts: str) -> str:
        """The client's own id, or one made of content: files are rewritten, line numbers move."""
        if isinstance(own, str) and own:
            return own
        place = self.timestamp or str(self.number)
        return f"{self.state.session}:{digest(place, *parts)}"

    # --- items -------------------------------------------------------------------------------

    def item(self, ref: str, kind: str, role: str, body: str, **more: Any) -> Item:
        self.reading.messages += 1
        state = self.state
        return Item(
            ref=ref, kind=kind, project=state.project or self.reading.projects.of("").key,
            session=state.session, source=self.agent, agent=self.agent, actor=self.actor, role=role,
            epoch=self.epoch, body=body, alias=self.alias(role, body),
            **{"prompt_number": state.prompts, **more},
        )  # fmt: skip

    def alias(self, role: str, text: str) -> str:
        """What a hook would call this, which knows neither the record's id nor its place.

        Tools have ids that both know.
        """
        if role == "tool":
            return ""
        who = self.actor.rpartition(":")[2]  # its number; its type is told by another file
        return f"hook:{self.state.session}:{digest(self.state.turn, who, role, text.strip())}"

    def prompt(self, ref: str, text: str, number: int = 0) -> Item:
        """What the user typed; `number` is that of a prompt which is written again."""
        if not number:
            number = self.state.prompts + 1
            self.state = replace(self.state, prompts=number)
        title = first_line(text) if number == 1 else ""
        if title:
            self.state = replace(self.state, title=title)
            self.reading.entitle(self.state.session, title)
        return self.item(
            ref, "prompt", "user", text, prompt_number=number, title=title,
            type="first_prompt" if number == 1 else "", origin="user", trust=1.0,
        )  # fmt: skip

    def said(self, ref: str, text: Any, role: str = "assistant") -> Iterator[Item]:
        """An answer, a thought, or the task of a sub-agent."""
        if role == "thinking" and not self.reading.options.thinking:
            self.reading.skip("thinking")
        elif isinstance(text, str) and text.strip():
            yield self.item(ref, "message", role, text.strip())
        else:
            self.reading.skip("empty")

    def compaction(self, ref: str, text: str) -> Item:
        title = f"Summary at compaction: {self.state.title}" if self.state.title else "Summary"
        return self.item(ref, "summary", "assistant", text, type="compact", title=title)

    def plan(self, text: str) -> Item:
        ref = f"{self.state.session}:plan:{digest(text)}"
        return self.item(ref, "note", "assistant", text, type="plan", title=first_line(text))

    def todo(self, text: str) -> Iterator[Item]:
        """The todo list as it is now; the one before had the same ref."""
        if text:
            title = f"Todo list: {self.state.title}" if self.state.title else "Todo list"
            ref = f"{self.state.session}:todo" + (f":{self.actor}" if self.actor else "")
            yield self.item(ref, "note", "assistant", text, type="todo", title=title)

    def call(
        self, key: Any, tool: str, given: Mapping[str, Any], within: str = "", **more: Any
    ) -> Item:
        """A tool call without its result; patches and known fields tell the files."""
        fields, file_field, changes = self.tools.get(tool, ((), "", False))
        text = input_text(given, fields)
        named = given.get(file_field) if file_field else None
        files_named = (self.file(named),) if isinstance(named, str) and named else ()
        patched = tuple(dict.fromkeys(map(self.file, _PATCHED.findall(text))))
        ref = self.ref(key, tool, text)
        if len(ref) < _WEAKEST_ID:
            ref = f"{within or f'{self.state.session}:{self.number}'}:{ref}"
        return self.item(
            ref, "message", "tool", text, tool=tool,
            files_read=() if changes else files_named,
            files_modified=files_named + patched if changes else patched, **more,
        )  # fmt: skip

    def wait(self, key: Any, item: Item) -> Iterator[Item]:
        """Keep an item until it is completed under this key."""
        if not isinstance(key, str) or not key:
            yield from self.unless_empty(item)
            return
        if key in self.waiting:
            yield from self._unanswered(self.waiting.pop(key))
        self.waiting[key] = Waiting(item, self._start, self.number - 1, self._before)

    def answer(
        self, key: Any, text: str, failed: bool, changed: tuple[str, ...] = ()
    ) -> Iterator[Item]:
        """The result of a call, with it if it is known."""
        name = key if isinstance(key, str) else ""
        call = self.waiting.pop(name, None)
        tags = ("error",) if failed else ()
        if call or name in self._ahead:
            self._answered[name] = self.number
            self._ahead.discard(name)
        if call is None and name in self._answered:
            self.reading.skip("result already read")
            return
        if call is None:
            ref = f"{self.ref(key, text)}:result"
            yield from self.unless_empty(
                self.item(ref, "message", "tool", text, origin="tool", tags=tags)
            )
            return
        self.reading.messages += 1
        if call.item.tool in self.bookkeeping:
            self.reading.skip(f"{call.item.tool} call")
            return
        body = joined(call.item.body, text)
        modified = tuple(dict.fromkeys(call.item.files_modified + changed))
        yield from self.unless_empty(
            replace(call.item, body=body, tags=tags, files_modified=modified)
        )


def decoded(text: Any) -> Any:
    """The value of JSON inside JSON; None where it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return None


def opening(path: Path) -> Iterator[dict[str, Any]]:
    """The first records of a file, to tell whose it is."""
    if path.suffix != ".jsonl":
        return
    try:
        for _, _, _, record in islice(records(path, 0, 0, _decoder.decode, dict), _LOOKED_AT):
            if isinstance(record, dict):
                yield record
    except OSError:
        return


def input_text(given: Mapping[str, Any], fields: tuple[str, ...]) -> str:
    if not fields:
        return "\n".join(f"{key}: {plain(value)}" for key, value in given.items())
    return "\n".join(plain(given[key]) for key in fields if given.get(key))


def plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return ""


def joined(first: str, second: str) -> str:
    """Input, a blank line, output."""
    parts = (first.strip("\n").rstrip(), second.strip("\n").rstrip())
    return "\n\n".join(part for part in parts if part)


def block_text(content: Any, *kinds: str) -> str:
    """The text of content that is a text or a list of blocks; `kinds` are those that count."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(
        block["text"]
        for block in blocks
        if isinstance(block, dict)
        and isinstance(block.get("text"), str)
        and (not kinds or block.get("type") in kinds)
    )


def todo_text(todos: Any, field: str) -> str:
    marks = {"completed": "x", "in_progress": ">"}
    return "\n".join(
        f"[{marks.get(str(todo.get('status')), ' ')}] {todo[field]}"
        for todo in (todos if isinstance(todos, list) else ())
        if isinstance(todo, dict) and isinstance(todo.get(field), str)
    )


def digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def epoch(timestamp: str) -> int:
    try:
        moment = datetime.fromisoformat(timestamp)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0, int(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
