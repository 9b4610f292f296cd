"""Conversations that are not a file of lines: rows of a database, blocks of Markdown, many files.

Their readers say what happened, in order, and get the items for it. Calls and results stand
together there, and the client often has a title of its own, so that is what this adds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from yester.agents.base import Reading, first_line
from yester.agents.jsonl import LONGEST_LINE, taken_apart
from yester.agents.transcript import S, Tools, Transcript, epoch, joined
from yester.agents.transcript import decoded as value_of
from yester.files import read_bytes
from yester.model import Item, Session
from yester.project import files_root

T = TypeVar("T")

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

    def record(self, record: dict[str, Any]) -> Iterator[Item]:  # noqa: ARG002
        yield from ()  # told by its reader, not by lines

    def meet(self) -> None:
        """Register the session, and its title when that is new."""
        state = self.state
        self.reading.met(
            state.session, self.epoch, lambda: Session(
                state.session, self.client or self.agent, state.project, self.epoch, self.epoch,
                state.cwd, transcript=str(self.reading.path),
            )
        )  # fmt: skip
        if state.title != self._titled and not self.actor:
            self._titled = state.title
            self.reading.entitle(state.session, state.title)

    def item(self, ref: str, kind: str, role: str, body: str, **more: Any) -> Item:
        self.meet()
        made = super().item(ref, kind, role, body, **more)
        return replace(made, agent=self.client) if self.client else made

    def count_prompt(self, text: str) -> None:
        """A prompt that needs no item (any more) still counts, and may name the session."""
        state = self.state
        title = state.title or first_line(text)
        self.state = replace(state, prompts=state.prompts + 1, title=title)

    def prompt(self, ref: str, text: str, number: int = 0) -> Item:
        if self.actor:  # a sub-agent's task is written by the agent that started it
            return self.item(ref, "message", "task", text)
        given = self.state.title
        made = super().prompt(ref, text, number)
        if given:  # the client's own word counts more than the first line
            self.state = replace(self.state, title=given)
        self.meet()
        return made

    def tool(
        self, ref: str, key: Any, name: str, given: Any, output: str = "", failed: bool = False
    ) -> Iterator[Item]:
        """A call and what came of it; the bookkeeping of todo lists is left out."""
        if name.lower() in TODO_TOOLS:
            self.reading.skip(f"{name} call")
            return
        made = self.call(self.own_ref(key) or ref, name.lower(), as_fields(given))
        tags = ("error",) if failed else ()
        yield from self.unless_empty(
            replace(made, tool=name, body=joined(made.body, output), tags=tags)
        )

    def own_ref(self, key: Any) -> str:
        """A call's own id where that is one: some providers number calls in each session."""
        if not isinstance(key, str) or not key:
            return ""
        return key if _RANDOM.search(key) else f"{self.state.session}:{key}"


def placed(reading: Reading, state: S, cwd: str) -> S:
    """A state in its project."""
    project = reading.projects.of(cwd)
    return replace(state, cwd=cwd, project=project.key, root=files_root(project, cwd))


def as_fields(given: Any) -> Mapping[str, Any]:
    """A call's input by name, some of it kept as JSON text; what names the file is "file"."""
    fields = given
    if isinstance(given, str):
        fields = value_of(given)
    if not isinstance(fields, Mapping):
        return {} if given in (None, "") else {"input": given}
    file = next((fields[k] for k in FILE_FIELDS if isinstance(fields.get(k), str)), None)
    rest = {key: value for key, value in fields.items() if key not in FILE_FIELDS}
    return {"file": file, **rest} if file else fields


def text_of(content: Any, deep: int = 5) -> str:
    """The text of a message or result that is a text, a list of blocks, or one block."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and deep:
        return "\n".join(filter(None, (text_of(part, deep - 1) for part in content)))
    if isinstance(content, Mapping) and deep:
        for key in ("text", "value", "output", "content", "contents"):
            if content.get(key):
                return text_of(content[key], deep - 1)
    return ""


def an_object(raw: Any) -> dict[str, Any] | None:
    """A JSON object, or None for anything else."""
    if not isinstance(raw, bytes | str):
        return None
    value = value_of(raw)
    if value is None:
        text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
        try:
            value = next(iter(taken_apart(text)), None)
        except RecursionError:
            return None
    return value if isinstance(value, dict) else None


def load(path: Path) -> dict[str, Any] | None:
    """The object of a JSON file, if there is one."""
    try:
        return an_object(read_bytes(path, LONGEST_LINE))
    except (OSError, ValueError):
        return None


def moment(value: Any) -> int:
    """Milliseconds from a number of them or an ISO time; 0 where there is no telling."""
    if isinstance(value, str):
        return epoch(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(value) if 0 < value < 1 << 43 else 0  # beyond that lies the year 2248


def load_state(cls: type[T], stored: Any) -> T:
    """What a reader remembered; another version's memory is none."""
    if isinstance(stored, cls):
        return stored
    try:
        return msgspec.convert(dict(stored or {}), cls)
    except (msgspec.ValidationError, TypeError, ValueError):
        return cls()
