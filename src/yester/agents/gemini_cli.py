"""Gemini CLI's chats: the JSON lines of 0.61, and the one JSON document of older versions.

Indexed: prompts as they were typed, answers, thoughts, each tool call together with its result,
the last todo list, the summary of a compression. A message is written again whenever it grows: the
later version has the same ref and replaces the earlier one. Left out, and counted by reason: what
hooks put into prompts and results (our own injected memory among them), the session's context, the
content of referenced files, tool results repeated as messages, and rewritten histories, which
repeat all messages under new ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from yester.agents.base import Reader, Reading
from yester.agents.descriptors import GEMINI_CLI
from yester.agents.jsonl import LONGEST_LINE, taken_apart
from yester.agents.transcript import (
    State,
    Tools,
    Transcript,
    block_text,
    decoded,
    joined,
    opening,
    plain,
    todo_text,
)
from yester.files import open_file, read_bytes, read_text
from yester.model import Item

_HOOK = re.compile(r"\s*<hook_context>.*?(?:</hook_context>|\Z)", re.S)
_CONTEXT = re.compile(
    r"\s*<(session_context|loaded_context)>.*?(?:</\1>|\Z)"
    r"|\n?--- Content from referenced files ---.*?(?:--- End of content ---|\Z)",
    re.S,
)
# What the shell tool says besides the output.
_SHELL = re.compile(
    r"^(?:</?untrusted_context>|Process Group PGID: .*|Background PIDs: \(none\)|Error: \(none\)"
    r"|Signal: (?:\(none\)|0)|Exit Code: 0)\n?",
    re.M,
)
_EXIT = re.compile(r"^Exit Code: -?[1-9]", re.M)
_DOCUMENT = re.compile(rb'\A\s*\{(?=.*?"sessionId"\s*:).*?"projectHash"\s*:', re.S)
_HASH_CHARS = 64  # of a folder name that is a hash, as early versions had
_PROMPTS_KEPT = 50


@dataclass(frozen=True, slots=True)
class GeminiState(State):
    recent: tuple[str, ...] = ()  # ids of the last prompts: one that is written again is no new one


class GeminiReader(Reader):
    def is_transcript(self, path: Path) -> bool:
        """Only Gemini CLI names a session together with the hash of its project."""
        return _is_document(path) or any(
            isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str)
            for record in opening(path)
        )

    def read_items(self, reading: Reading) -> Iterator[Item]:
        if reading.path.suffix == ".json" or _is_document(reading.path):
            yield from _Chat(reading, GeminiState()).document()
        else:
            yield from _Chat(reading, GeminiState.load(reading.state)).items()


def _is_document(path: Path) -> bool:
    """One JSON document; some collectors keep such files under the name .jsonl."""
    if path.suffix not in (".json", ".jsonl"):
        return False
    try:
        with open_file(path) as file:
            head = file.read(1024)
    except OSError:
        return False
    pretty = head.split(b"\n", 1)[0].strip() == b"{"
    return (pretty or path.suffix == ".json") and bool(_DOCUMENT.match(head))


class _Chat(Transcript[GeminiState]):
    agent = GEMINI_CLI.name
    tools: ClassVar[Tools] = {
        "run_shell_command": (("command", "description"), "", False),
        "read_file": (("file_path", "absolute_path"), "file_path", False),
        "read_many_files": (("include", "paths"), "", False),
        "write_file": (("file_path", "content"), "file_path", True),
        "replace": (("file_path", "old_string", "new_string"), "file_path", True),
        "grep_search": (("pattern", "dir_path", "include"), "", False),
        "search_file_content": (("pattern", "path", "include"), "", False),
        "glob": (("pattern", "dir_path"), "", False),
        "list_directory": (("dir_path", "path"), "", False),
        "invoke_agent": (("agent_name", "prompt"), "", False),
        "web_fetch": (("url", "prompt"), "", False),
        "google_web_search": (("query",), "", False),
        "save_memory": (("fact",), "", False),
    }

    def __init__(self, reading: Reading, state: GeminiState) -> None:
        super().__init__(reading, state)
        self.current, self.given = "", dict[tuple[str, str], Item]()

    def document(self) -> Iterator[Item]:
        """A file that is one JSON document and rewritten as a whole: read from the beginning."""
        reading = self.reading
        size = reading.path.stat().st_size
        reading.offset, reading.line, reading.state = 0, 0, None
        if size > LONGEST_LINE:
            reading.bad(1, f"longer than {LONGEST_LINE >> 20} MB")
            return
        raw = read_bytes(reading.path, LONGEST_LINE)
        whole = decoded(raw)
        if not isinstance(whole, dict):  # cut off in the middle, or two at once
            whole = next(iter(taken_apart(raw.decode("utf-8", "replace"))), None)
        self.number = 1
        if whole is None:
            reading.bad(1, "not JSON")
        else:
            yield from self.record(whole)
        reading.offset = size

    def record(self, record: dict[str, Any]) -> Iterator[Item]:
        if isinstance(patch := record.get("$set"), dict):
            yield from self._patched(patch)
        elif "$rewindTo" in record:
            self.reading.skip("rewind")
        elif isinstance(record.get("sessionId"), str) and "id" not in record:
            self._session(record)
            yield from self._messages(record.get("messages"))
        else:
            yield from self._message(record)

    def _session(self, head: Mapping[str, Any]) -> None:
        """The head of the file; it is written again when the session is resumed."""
        own, inner = head["sessionId"], self.reading.path.parent
        actor = own if head.get("kind") == "subagent" else ""
        nested = actor and inner.parent.name == "chats"  # in a folder named after its parent
        self.state = replace(self.state, session=inner.name if nested else own, actor=actor)
        self.actor = actor
        cwd, name = _folder(self.reading.path, head)
        if not cwd and name and not self.state.project:
            self.state = replace(self.state, project=f"name:{name}")
        self.place(head.get("startTime"), cwd)
        self.reading.skip("session head")

    def _patched(self, patch: Mapping[str, Any]) -> Iterator[Item]:
        """A change of the head. A whole history in it repeats the messages; only a compression
        adds one, its summary, and only a file without other messages has them nowhere else.
        """
        history = patch.get("messages")
        if not self.state.recent and not self.current:
            yield from self._messages(history)
            return
        for message in history if isinstance(history, list) else ():
            if isinstance(message, dict) and _snapshot(message):
                yield from self._message(message)
        self.reading.skip("history written again" if history else "session head")

    def _messages(self, messages: Any) -> Iterator[Item]:
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict):
                yield from self._message(message)
            else:
                self.reading.bad(self.number, "no message")

    def _message(self, message: Mapping[str, Any]) -> Iterator[Item]:
        kind, own = message.get("type"), message.get("id")
        if not isinstance(own, str) or not own:
            self.reading.bad(self.number, "message without an id")
            return
        if not self.state.session:
            self.state = replace(self.state, session=self.reading.path.stem)
        self.place(message.get("timestamp"))
        if kind not in ("user", "gemini"):
            self.reading.skip(f"{kind} message" if isinstance(kind, str) else "untyped")
        elif self.actor and not self.reading.options.subagents:
            self.reading.skip("sub-agent")
        elif kind == "user":
            yield from self._user(own, message)
        else:
            if own != self.current:
                self.current, self.given = own, {}
            for item in self._gemini(own, message):
                key = (item.kind, item.ref)
                if self.given.get(key) == item:
                    self.reading.skip("message written again")
                else:
                    self.given[key] = item
                    yield item

    # --- what was said -----------------------------------------------------------------------

    def _user(self, own: str, message: Mapping[str, Any]) -> Iterator[Item]:
        typed = block_text(message.get("displayContent")) or _text(message.get("content"))
        text = _CONTEXT.sub("", _HOOK.sub("", typed)).strip()
        if not text:
            self.reading.skip("injected context" if typed.strip() else "tool result repeated")
        elif _snapshot(message):
            yield self.compaction(own, text)
        elif self.actor:
            if self.state.recent not in ((), (own,)):
                self.reading.skip("client's own text")  # it drives the sub-agent on
                return
            self.state = replace(self.state, recent=(own,))
            yield from self.said(own, text, "task")
        elif own in self.state.recent:
            later = len(self.state.recent) - self.state.recent.index(own) - 1
            yield self.prompt(own, text, self.state.prompts - later)
        else:
            self.state = replace(self.state, recent=(*self.state.recent, own)[-_PROMPTS_KEPT:])
            yield self.prompt(own, text)

    def _gemini(self, own: str, message: Mapping[str, Any]) -> Iterator[Item]:
        thoughts, calls = message.get("thoughts"), message.get("toolCalls")
        thought = joined(_thoughts(thoughts), _text(message.get("content"), thought=True))
        if thought:
            yield from self.said(f"{own}:thoughts", thought, "thinking")
        text = _HOOK.sub("", _text(message.get("content")))
        if text.strip():
            yield from self.said(own, text)
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and isinstance(call.get("name"), str):
                yield from self._call(own, call)
            else:
                self.reading.bad(self.number, "tool call without a name")

    def _call(self, own: str, call: Mapping[str, Any]) -> Iterator[Item]:
        tool, given = call["name"], call.get("args")
        if not isinstance(given, dict):
            given = {"input": given} if given is not None else {}
        if "absolute_path" in given:
            given = {**given, "file_path": given["absolute_path"], "absolute_path": None}
        if tool == "write_todos":
            yield from self.todo(todo_text(given.get("todos"), "description"))
            self.reading.skip("write_todos call")
            return
        self.place(call.get("timestamp"))
        item = self.call(call.get("id"), tool, given, within=own)
        output, failed = _result(call.get("result"))
        output = output or block_text(call.get("resultDisplay"))
        output = _HOOK.sub("", output)
        if tool == "run_shell_command":
            failed = failed or bool(_EXIT.search(output))
            output = _SHELL.sub("", output).removeprefix("Output: ")
        tags = ("error",) if failed or call.get("status") == "error" else ()
        yield from self.unless_empty(replace(item, body=joined(item.body, output), tags=tags))


def _parts(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"text": content}]
    parts = content if isinstance(content, list) else [content]
    return [{"text": part} if isinstance(part, str) else part for part in parts if part]


def _text(content: Any, thought: bool = False) -> str:
    """What a message says, or the thoughts among its parts."""
    return "\n".join(
        part["text"]
        for part in _parts(content)
        if isinstance(part, dict)
        and isinstance(part.get("text"), str)
        and bool(part.get("thought")) == thought
    )


def _thoughts(thoughts: Any) -> str:
    return "\n\n".join(
        "\n".join(t for t in (part.get("subject"), part.get("description")) if isinstance(t, str))
        for part in (thoughts if isinstance(thoughts, list) else ())
        if isinstance(part, dict)
    )


def _snapshot(message: Mapping[str, Any]) -> bool:
    """Is it the summary that stands for compressed history?"""
    return _text(message.get("content")).lstrip().startswith("<state_snapshot>")


def _result(result: Any) -> tuple[str, bool]:
    """(text, did it fail) of a call's result, which are parts for the model."""
    texts: list[str] = []
    failed = False
    for part in _parts(result):
        if not isinstance(part, dict):
            continue
        answer = part.get("functionResponse")
        answer = answer.get("response") if isinstance(answer, dict) else None
        if isinstance(answer, dict):
            failed = failed or bool(answer.get("error"))
            values = [answer[key] for key in ("output", "error") if answer.get(key)]
            texts.extend(plain(value) for value in values or [answer])
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "\n".join(texts), failed


def _folder(path: Path, head: Mapping[str, Any]) -> tuple[str, str]:
    """(working directory, name for want of it) of the project whose chats a file is among."""
    chats = next((folder for folder in path.parents if folder.name == "chats"), None)
    directories = head.get("directories")
    first = directories[0] if isinstance(directories, list) and directories else ""
    given = first if isinstance(first, str) else ""
    if chats is None:
        return given, ""
    home, slug = chats.parent.parent.parent, chats.parent.name
    try:
        root = read_text(chats.parent / ".project_root").strip()
    except (OSError, ValueError):
        root = ""
    root = root or _listed(home / "projects.json", slug, head.get("projectHash")) or given
    return root, slug[:8] if len(slug) == _HASH_CHARS else slug


def _listed(path: Path, slug: str, project_hash: Any) -> str:
    """The folder that the client's list maps to this name, or whose hash is known."""
    try:
        table = decoded(read_bytes(path, LONGEST_LINE))
    except OSError:
        return ""
    projects = table.get("projects") if isinstance(table, dict) else None
    for folder, name in projects.items() if isinstance(projects, dict) else ():
        if name == slug or sha256(folder.encode("utf-8", "replace")).hexdigest() in (
            slug, project_hash,
        ):  # fmt: skip
            return str(folder)
    return ""


READER = GeminiReader()
