"""Items of what was said and done, made while a transcript is read from its place on.

`Transcript` reads JSON lines. A tool call and its result become one item: the call waits until its
result comes, and so does the place to read on from. Whatever is committed meanwhile, the next run
meets the call again. `Conversation` is for what is no file of lines: rows of a database, blocks of
Markdown, many files. Calls and results stand together there, and the client often has a title of
its own.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from yester.agents.base import Reading, load_state
from yester.agents.sources import PAUSE, BadLine, Pause, read_records
from yester.agents.values import (
    decode_json,
    digest,
    first_line,
    input_text,
    join_output,
    parse_time,
    relative_path,
)
from yester.model import Item, Session
from yester.project import files_root

# tool → (input fields that make the text, in order; field with the file; does it change the file)
Tools = Mapping[str, tuple[tuple[str, ...], str, bool]]

# A call that got no result within so many lines was interrupted; it is stored without one. Copilot
# writes all a sub-agent does between the call that started it and its result.
_PATIENCE_LINES = 1_000
_WEAKEST_ID = 8  # characters; local models number their calls, "call_0" in every session
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$", re.M)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")

_decode_dict = msgspec.json.Decoder(dict[str, Any]).decode


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
    def decode_record(raw: bytes) -> Any:
        """A line as the record the reader wants; msgspec's errors and ValueError: it is none."""
        return _decode_dict(raw)

    @staticmethod
    def convert_record(value: dict[str, Any]) -> Any:
        """The same of an object that was found in a line of several."""
        return value

    @abstractmethod
    def read_record(self, record: Any) -> Iterator[Item]:
        """What one record of the file gives; most give nothing."""

    def read_source(self) -> Iterator[tuple[int, int, int, Any | BadLine | Pause]]:
        """(start, end, line number, record, BadLine or PAUSE) from the place to read on from."""
        reading = self.reading
        return read_records(
            reading.path, reading.offset, reading.line, self.decode_record, self.convert_record
        )

    def read_items(self) -> Iterator[Item | None]:
        reading = self.reading
        for start, end, number, record in self.read_source():
            if record is PAUSE:
                yield None
                continue
            if number != self.number:  # glued records share a line: it is read as a whole again
                self._start, self._before, self.number = start, self.state, number
            self._keep_place(start, number - 1, self._before)
            if isinstance(record, BadLine):
                reading.report_bad(number, record.reason)
            else:
                yield from self.read_record(record)
            yield from self._give_up_waiting()
            self._keep_place(end, number, self.state)
        for call in self.waiting.values():
            yield from self._give_unanswered(call)

    def _keep_place(self, offset: int, line: int, state: State) -> None:
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

    def _give_up_waiting(self) -> Iterator[Item]:
        while self.waiting:
            key, call = next(iter(self.waiting.items()))
            if self.number - call.line <= _PATIENCE_LINES:
                return
            del self.waiting[key]
            yield from self._give_unanswered(call)

    def _give_unanswered(self, call: Waiting) -> Iterator[Item]:
        if call.item.tool in self.bookkeeping:
            self.reading.skip(f"{call.item.tool} call")
        else:
            self.reading.unanswered.add(call.item.ref)
            yield from self.skip_empty(call.item)

    def skip_empty(self, item: Item) -> Iterator[Item]:
        if item.body.strip():
            yield item
        else:
            self.reading.skip("empty")

    def skip_subagent(self) -> bool:
        """Is this a sub-agent's, and are these to be left out? Then it is counted."""
        if self.actor and not self.reading.options.subagents:
            self.reading.skip("sub-agent")
            return True
        return False

    # --- where and when ----------------------------------------------------------------------

    def place_record(self, timestamp: Any, cwd: Any = "", branch: Any = "") -> None:
        """Time and session of a record; a session's first folder decides its project."""
        if isinstance(timestamp, str):
            self.timestamp = timestamp
            self.epoch = parse_time(timestamp) or self.epoch
        if isinstance(branch, str) and branch and branch != self.state.branch:
            self.state = replace(self.state, branch=branch)
        if isinstance(cwd, str) and cwd and not self.state.project:
            self.state = place_state(self.reading, self.state, cwd)
        state = self.state
        if state.project and self.epoch:
            self.reading.note_session(
                state.session, self.epoch, lambda: Session(
                    state.session, self.agent, state.project, self.epoch, self.epoch, state.cwd,
                    state.branch, "" if self.actor else state.title,
                    "" if self.actor else str(self.reading.path),
                )
            )  # fmt: skip

    def file_path(self, path: str) -> str:
        """A path as seen from the project's root; agents also name it from where they are."""
        if self.state.cwd and not (path.startswith(("/", "\\", "~")) or _DRIVE.match(path)):
            path = f"{self.state.cwd.rstrip('/')}/{path.removeprefix('./')}"
        return relative_path(path, self.state.root)

    def make_ref(self, own: Any, *parts: str) -> str:
        """The client's own id, or one made of content: files are rewritten, line numbers move."""
        if isinstance(own, str) and own:
            return own
        place = self.timestamp or str(self.number)
        return f"{self.state.session}:{digest(place, *parts)}"

    # --- items -------------------------------------------------------------------------------

    def make_item(self, ref: str, kind: str, role: str, body: str, **more: Any) -> Item:
        self.reading.messages += 1
        state = self.state
        return Item(
            ref=ref, kind=kind, project=state.project or self.reading.projects.of("").key,
            session=state.session, source=self.agent, agent=self.agent, actor=self.actor, role=role,
            epoch=self.epoch, body=body, alias=self.hook_alias(role, body),
            **{"prompt_number": state.prompts, **more},
        )  # fmt: skip

    def hook_alias(self, role: str, text: str) -> str:
        """What a hook would call this, which knows neither the record's id nor its place.

        Tools have ids that both know.
        """
        if role == "tool":
            return ""
        who = self.actor.rpartition(":")[2]  # its number; its type is told by another file
        return f"hook:{self.state.session}:{digest(self.state.turn, who, role, text.strip())}"

    def make_prompt(self, ref: str, text: str, number: int = 0) -> Item:
        """What the user typed; `number` is that of a prompt which is written again."""
        if not number:
            number = self.state.prompts + 1
            self.state = replace(self.state, prompts=number)
        title = first_line(text) if number == 1 else ""
        if title:
            self.state = replace(self.state, title=title)
            self.reading.set_title(self.state.session, title)
        return self.make_item(
            ref, "prompt", "user", text, prompt_number=number, title=title,
            type="first_prompt" if number == 1 else "", origin="user", trust=1.0,
        )  # fmt: skip

    def make_message(self, ref: str, text: Any, role: str = "assistant") -> Iterator[Item]:
        """An answer, a thought, or the task of a sub-agent."""
        if role == "thinking" and not self.reading.options.thinking:
            self.reading.skip("thinking")
        elif isinstance(text, str) and text.strip():
            yield self.make_item(ref, "message", role, text.strip())
        else:
            self.reading.skip("empty")

    def make_summary(self, ref: str, text: str) -> Item:
        title = f"Summary at compaction: {self.state.title}" if self.state.title else "Summary"
        return self.make_item(ref, "summary", "assistant", text, type="compact", title=title)

    def make_plan(self, text: str) -> Item:
        ref = f"{self.state.session}:plan:{digest(text)}"
        return self.make_item(ref, "note", "assistant", text, type="plan", title=first_line(text))

    def make_todo(self, text: str) -> Iterator[Item]:
        """The todo list as it is now; the one before had the same ref."""
        if text:
            title = f"Todo list: {self.state.title}" if self.state.title else "Todo list"
            ref = f"{self.state.session}:todo" + (f":{self.actor}" if self.actor else "")
            yield self.make_item(ref, "note", "assistant", text, type="todo", title=title)

    def make_call(
        self, key: Any, tool: str, given: Mapping[str, Any], within: str = "", **more: Any
    ) -> Item:
        """A tool call without its result; patches and known fields tell the files."""
        fields, file_field, changes = self.tools.get(tool, ((), "", False))
        text = input_text(given, fields)
        named = given.get(file_field) if file_field else None
        files_named = (self.file_path(named),) if isinstance(named, str) and named else ()
        patched = tuple(dict.fromkeys(map(self.file_path, _PATCHED.findall(text))))
        ref = self.make_ref(key, tool, text)
        if len(ref) < _WEAKEST_ID:
            ref = f"{within or f'{self.state.session}:{self.number}'}:{ref}"
        return self.make_item(
            ref, "message", "tool", text, tool=tool,
            files_read=() if changes else files_named,
            files_modified=files_named + patched if changes else patched, **more,
        )  # fmt: skip

    def await_result(self, key: Any, item: Item) -> Iterator[Item]:
        """Keep an item until it is completed under this key."""
        if not isinstance(key, str) or not key:
            yield from self.skip_empty(item)
            return
        if key in self.waiting:
            yield from self._give_unanswered(self.waiting.pop(key))
        self.waiting[key] = Waiting(item, self._start, self.number - 1, self._before)

    def add_result(
        self, key: Any, text: str, failed: bool, changed: tuple[str, ...] = ()
    ) -> Iterator[Item]:
        """The result of a call, with it if it is known."""
        name = key if isinstance(key, str) else ""
        call = self.waiting.pop(name, None)
        if call or name in self._ahead:
            self._answered[name] = self.number
            self._ahead.discard(name)
        if call is None and name in self._answered:
            self.reading.skip("result already read")
            return
        if call is None:
            ref = f"{self.make_ref(key, text)}:result"
            tags = ("error",) if failed else ()
            yield from self.skip_empty(
                self.make_item(ref, "message", "tool", text, origin="tool", tags=tags)
            )
            return
        self.reading.messages += 1
        if call.item.tool in self.bookkeeping:
            self.reading.skip(f"{call.item.tool} call")
            return
        item = complete_call(call.item, text, failed)
        modified = tuple(dict.fromkeys(item.files_modified + changed))
        yield from self.skip_empty(replace(item, files_modified=modified))


# The names different tools and versions have for the file they work on; it is called "file" below.
FILE_FIELDS = (
    "filePath", "file_path", "target_file", "targetFile", "relativeWorkspacePath",
    "relative_workspace_path", "notebook_path", "target_notebook", "path",
)  # fmt: skip
_NEW_TEXT = (
    "oldString", "old_string", "newString", "new_string", "content", "contents", "instructions",
    "code_edit", "streamingContent",
)  # fmt: skip

# Of opencode and Cursor, in lower case.
TOOLS: Tools = {
    **dict.fromkeys(
        ("bash", "shell", "run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2"),
        (("command", "description", "explanation"), "", False),
    ),
    **dict.fromkeys(
        ("read", "read_file", "read_file_v2", "readfile"), (("file",), "file", False)
    ),
    **dict.fromkeys(
        (
            "write", "edit", "multiedit", "search_replace", "strreplace", "edit_file",
            "edit_file_v2", "write_file", "edit_notebook", "editnotebook", "delete",
            "delete_file", "reapply",
        ),
        (("file", *_NEW_TEXT), "file", True),
    ),
    **dict.fromkeys(
        ("patch", "apply_patch", "applypatch"), (("patchText", "patch", "input"), "", False)
    ),
    **dict.fromkeys(
        ("grep", "glob", "list", "codebase_search", "grep_search", "file_search", "semanticsearch"),
        (("pattern", "query", "glob_pattern", "file", "include", "explanation"), "", False),
    ),
    **dict.fromkeys(("task", "subagent"), (("description", "prompt"), "", False)),
    "webfetch": (("url",), "", False),
    "websearch": (("query",), "", False),
}  # fmt: skip
TODO_TOOLS = frozenset({"todowrite", "todoread", "todo_write", "todo_read", "updatetodos"})

_RANDOM = re.compile(r"[A-Za-z0-9]{16}")


class Conversation(Transcript[S]):
    """Where in a client's history we are, and the items for what is met there."""

    tools = TOOLS

    def __init__(self, reading: Reading, state: S, client: str = "") -> None:
        super().__init__(reading, state)
        self.client = client  # it happened in, if not the reader's own
        self._titled = ""

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:  # noqa: ARG002
        yield from ()  # told by its reader, not by lines

    def register_session(self) -> None:
        """Register the session, and its title when that is new."""
        state = self.state
        self.reading.note_session(
            state.session, self.epoch, lambda: Session(
                state.session, self.client or self.agent, state.project, self.epoch, self.epoch,
                state.cwd, transcript=str(self.reading.path),
            )
        )  # fmt: skip
        if state.title != self._titled and not self.actor:
            self._titled = state.title
            self.reading.set_title(state.session, state.title)

    def make_item(self, ref: str, kind: str, role: str, body: str, **more: Any) -> Item:
        self.register_session()
        made = super().make_item(ref, kind, role, body, **more)
        return replace(made, agent=self.client) if self.client else made

    def count_prompt(self, text: str) -> None:
        """A prompt that needs no item (any more) still counts, and may name the session."""
        state = self.state
        title = state.title or first_line(text)
        self.state = replace(state, prompts=state.prompts + 1, title=title)

    def make_prompt(self, ref: str, text: str, number: int = 0) -> Item:
        if self.actor:  # a sub-agent's task is written by the agent that started it
            return self.make_item(ref, "message", "task", text)
        given = self.state.title
        made = super().make_prompt(ref, text, number)
        if given:  # the client's own word counts more than the first line
            self.state = replace(self.state, title=given)
        self.register_session()
        return made

    def make_tool_call(
        self, ref: str, key: Any, name: str, given: Any, output: str = "", failed: bool = False
    ) -> Iterator[Item]:
        """A call and what came of it; the bookkeeping of todo lists is left out."""
        if name.lower() in TODO_TOOLS:
            self.reading.skip(f"{name} call")
            return
        item = self.make_call(self.call_ref(key) or ref, name.lower(), named_fields(given))
        yield from self.skip_empty(complete_call(replace(item, tool=name), output, failed))

    def call_ref(self, key: Any) -> str:
        """A call's own id where that is one: some providers number calls in each session."""
        if not isinstance(key, str) or not key:
            return ""
        return key if _RANDOM.search(key) else f"{self.state.session}:{key}"


def complete_call(call: Item, output: str, failed: bool) -> Item:
    """A tool call with its result."""
    tags = ("error",) if failed else ()
    return replace(call, body=join_output(call.body, output), tags=tags)


def begin_state(kind: type[S], reading: Reading, session: str) -> S:
    """The state to read on from; at a file's beginning, one of this session."""
    state = load_state(kind, reading.state)
    return state if state.session else replace(state, session=session)


def place_state(reading: Reading, state: S, cwd: str) -> S:
    """A state in its project."""
    project = reading.projects.of(cwd)
    return replace(state, cwd=cwd, project=project.key, root=files_root(project, cwd))


def named_fields(given: Any) -> Mapping[str, Any]:
    """A call's input by name, some of it kept as JSON text; what names the file is "file"."""
    fields = given
    if isinstance(given, str):
        fields = decode_json(given)
    if not isinstance(fields, Mapping):
        return {} if given in (None, "") else {"input": given}
    file = next((fields[k] for k in FILE_FIELDS if isinstance(fields.get(k), str)), None)
    rest = {key: value for key, value in fields.items() if key not in FILE_FIELDS}
    return {"file": file, **rest} if file else fields
