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
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from yester.agents.base import Reading, Result, State, strip_client_text
from yester.agents.sources import Transcript, make_reader, read_head
from yester.agents.values import (
    Record,
    dict_at,
    dicts_at,
    input_fields,
    join_output,
    list_at,
    list_blocks,
    load_object,
    nested_text,
    text_at,
    to_text,
)
from yester.files import read_text
from yester.model import Item

EXIT_LINE = re.compile(r"^Exit Code: (-?\d{1,10})\b", re.M)
_DOCUMENT = re.compile(rb'\A\s*\{(?=.*?"sessionId"\s*:).*?"projectHash"\s*:', re.S)
_HASH_CHARS = 64  # of a folder name that is a hash, as early versions had
_PROMPTS_KEPT = 50


class GeminiState(State):
    recent: tuple[str, ...] = ()  # ids of the last prompts: one that is written again is no new one


def _is_headed(path: Path) -> bool:
    """Is it one JSON document of ours? Some collectors keep such files under the name .jsonl."""
    if path.suffix not in (".json", ".jsonl"):
        return False
    head = read_head(path, 1024)
    pretty = head.split(b"\n", 1)[0].strip() == b"{"
    return (pretty or path.suffix == ".json") and bool(_DOCUMENT.match(head))


class Chat(Transcript):
    agent = "gemini-cli"
    state_type = GeminiState
    state: GeminiState

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.current, self.given = "", dict[tuple[str, str], Item]()

    @classmethod
    def is_own_file(cls, path: Path) -> bool:
        return _is_headed(path) or super().is_own_file(path)

    @staticmethod
    def is_document(path: Path) -> bool:
        return path.suffix == ".json" or _is_headed(path)

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        """Only Gemini CLI names a session together with the hash of its project."""
        return all(isinstance(record.get(name), str) for name in ("sessionId", "projectHash"))

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        if isinstance(patch := record.get("$set"), dict):
            yield from self._read_patch(patch)
        elif "$rewindTo" in record:
            self.reading.skip("rewind")
        elif isinstance(record.get("sessionId"), str) and "id" not in record:
            self._begin_session(record)
            yield from self._read_messages(record)
        else:
            yield from self._read_message(record)

    def _begin_session(self, head: Record) -> None:
        """The head of the file; it is written again when the session is resumed."""
        own, inner = head["sessionId"], self.reading.path.parent
        actor = own if head.get("kind") == "subagent" else ""
        nested = actor and inner.parent.name == "chats"  # in a folder named after its parent
        self.state.session = inner.name if nested else own
        self.state.actor = self.actor = actor
        cwd, name = _locate_project(self.reading.path, head)
        if not cwd and name and not self.state.project:
            self.state.project = f"name:{name}"
        self.place_record(head.get("startTime"), cwd)
        self.reading.skip("session head")

    def _read_patch(self, patch: Record) -> Iterator[Item]:
        """A change of the head. A whole history in it repeats the messages; only a compression
        adds one, its summary, and only a file without other messages has them nowhere else.
        """
        if not self.state.recent and not self.current:
            yield from self._read_messages(patch)
            return
        for message in dicts_at(patch, "messages"):
            if _is_snapshot(message):
                yield from self._read_message(message)
        again = patch.get("messages")
        self.reading.skip("history written again" if again else "session head")

    def _read_messages(self, record: Record) -> Iterator[Item]:
        for message in dicts_at(record, "messages"):
            yield from self._read_message(message)

    def _read_message(self, message: Record) -> Iterator[Item]:
        kind, own = message.get("type"), text_at(message, "id")
        if not own:
            self.reading.report_bad(self.number, "message without an id")
            return
        self.place_record(message.get("timestamp"))
        if kind not in ("user", "gemini"):
            self.reading.skip(f"{kind} message" if isinstance(kind, str) else "untyped")
        elif kind == "user":
            yield from self._read_user_message(own, message)
        else:
            if own != self.current:
                self.current, self.given = own, {}
            for item in self._read_gemini_message(own, message):
                key = (item.kind, item.ref)
                if self.given.get(key) == item:
                    self.reading.skip("message written again")
                else:
                    self.given[key] = item
                    yield item

    # --- what was said -----------------------------------------------------------------------

    def _read_user_message(self, own: str, message: Record) -> Iterator[Item]:
        typed = nested_text(message.get("displayContent")) or message_text(message.get("content"))
        text = strip_client_text(self.agent, "prompt", typed).strip()
        if not text:
            self.reading.skip("injected context" if typed.strip() else "tool result repeated")
        elif _is_snapshot(message):
            yield self.make_summary(own, text)
        elif self.actor:
            if self.state.recent not in ((), (own,)):
                self.reading.skip("client's own text")  # it drives the sub-agent on
                return
            self.state.recent = (own,)
            yield self.make_prompt(own, text)
        elif own in self.state.recent:
            later = len(self.state.recent) - self.state.recent.index(own) - 1
            yield self.make_prompt(own, text, self.state.prompts - later)
        else:
            self.state.recent = (*self.state.recent, own)[-_PROMPTS_KEPT:]
            yield self.make_prompt(own, text)

    def _read_gemini_message(self, own: str, message: Record) -> Iterator[Item]:
        content = message.get("content")
        thought = join_output(_thought_text(message), message_text(content, thought=True))
        if thought:
            yield self.make_message(f"{own}:thoughts", thought, "thinking")
        text = strip_client_text(self.agent, "answer", message_text(content))
        if text.strip():
            yield self.make_message(own, text)
        for call in dicts_at(message, "toolCalls"):
            yield from self._read_tool_call(own, call)

    def _read_tool_call(self, own: str, call: Record) -> Iterator[Item]:
        tool, given = text_at(call, "name") or "unknown", input_fields(call.get("args"))
        if tool == "write_todos":
            yield from self.make_todo(given.get("todos"))
        self.place_record(call.get("timestamp"))
        item = self.make_call(call.get("id"), tool, given, within=own)
        output, failed = read_responses(call.get("result"))
        output = output or text_at(call, "resultDisplay")
        codes = EXIT_LINE.findall(output) if tool == "run_shell_command" else ()
        status = int(codes[-1]) if codes else None  # the client's own word comes last
        output = strip_client_text(self.agent, "result", output, tool)
        result = Result(output, failed or call.get("status") == "error", status)
        yield result.complete_call(item)


def message_text(content: Any, thought: bool = False) -> str:
    """What a message says, or the thoughts among its parts."""
    return "\n".join(
        part["text"]
        for part in list_blocks(content)
        if isinstance(part.get("text"), str) and bool(part.get("thought")) == thought
    )


def _thought_text(message: Record) -> str:
    return "\n\n".join(
        "\n".join(t for t in (part.get("subject"), part.get("description")) if isinstance(t, str))
        for part in dicts_at(message, "thoughts")
    )


def _is_snapshot(message: Record) -> bool:
    """Is it the summary that stands for compressed history?"""
    return message_text(message.get("content")).lstrip().startswith("<state_snapshot>")


def read_responses(result: Any) -> tuple[str, bool]:
    """(text, did it fail) of a call's result, which are parts for the model."""
    texts: list[str] = []
    failed = False
    for part in list_blocks(result):
        answer = dict_at(part, "functionResponse").get("response")
        if isinstance(answer, dict):
            failed = failed or bool(answer.get("error"))
            values = [answer[key] for key in ("output", "error") if answer.get(key)]
            texts.extend(to_text(value) for value in values or [answer])
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "\n".join(texts), failed


def _locate_project(path: Path, head: Record) -> tuple[str, str]:
    """(working directory, name for want of it) of the project whose chats a file is among."""
    chats = next((folder for folder in path.parents if folder.name == "chats"), None)
    first = next(iter(list_at(head, "directories")), "")
    given = first if isinstance(first, str) else ""
    if chats is None:
        return given, ""
    home, slug = chats.parent.parent.parent, chats.parent.name
    noted = read_text(chats.parent / ".project_root").strip()
    root = noted or _find_listed(home / "projects.json", slug, head.get("projectHash")) or given
    return root, slug[:8] if len(slug) == _HASH_CHARS else slug


def _find_listed(path: Path, slug: str, project_hash: Any) -> str:
    """The folder that the client's list maps to this name, or whose hash is known."""
    for folder, name in dict_at(load_object(path), "projects").items():
        if name == slug or sha256(folder.encode("utf-8", "replace")).hexdigest() in (
            slug,
            project_hash,
        ):
            return str(folder)
    return ""


READER = make_reader(Chat)
