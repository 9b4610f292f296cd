"""Copilot CLI's event logs, versions 1.0.64 to 1.0.102 (older ones as far as they can be read).

Indexed: prompts, answers, readable reasoning, each tool execution together with its result, the
summary of a compaction; sub-agents write into the same file and are told by their id. Left out,
and counted by type: hooks (our own injected memory among them), system messages, usage records,
snapshots. Of a prompt only `content` counts: `transformedContent` is what the client made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yester.agents.base import Result, State, strip_client_text
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import (
    Record,
    dict_at,
    dicts_at,
    input_fields,
    nested_text,
    text_at,
    value_at,
)
from yester.files import read_text
from yester.model import Item, replace

_EXITED = re.compile(
    r"\n?<(?:shellId: \S+ )?(?:completed|exited) with exit code (-?\d{1,10})>\s*\Z"
)
_CWD = re.compile(r"^cwd: (.*\S)\s*$", re.M)
_AGENTS_KEPT = 50


class CopilotState(State):
    agents: tuple[tuple[str, str], ...] = ()  # (id of a sub-agent or of the call for it, its name)


class EventLog(Transcript):
    agent = "copilot-cli"
    state_type = CopilotState
    state: CopilotState

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        """Only Copilot CLI writes typed lines with data that name the line they follow."""
        typed = "." in text_at(record, "type") and isinstance(record.get("data"), dict)
        return typed and "parentId" in record

    @classmethod
    def is_own_file(cls, path: Path) -> bool:
        return _is_history(path) or super().is_own_file(path)

    @staticmethod
    def name_session(path: Path) -> str:
        return path.parent.name if path.name == "events.jsonl" else path.stem

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        if _is_history(self.reading.path):
            yield from self._read_history(record)
            return
        kind, data = record["type"], record["data"]
        if kind in ("session.start", "session.resume"):
            self._begin_session(data)
        if not self.state.project:
            self.place_record(None, _read_workspace(self.reading.path))
        self.actor = self._name_actor(record.get("agentId") or data.get("parentToolCallId"))
        self.place_record(record.get("timestamp"))
        if kind.startswith("subagent."):
            self._note_subagent(record, data)
        handler = {
            "user.message": self._read_user_event,
            "assistant.message": self._read_assistant_event,
            "tool.execution_start": self._read_tool_start,
            "tool.execution_complete": self._read_tool_end,
            "session.compaction_complete": self._read_compaction,
        }.get(kind)
        if handler is None:
            self.reading.skip(kind)
        else:
            yield from handler(record, data)

    def _read_history(self, record: Record) -> Iterator[Item]:
        """The one document of early versions, which tells neither folder nor times."""
        self.state.session = text_at(record, "sessionId") or self.state.session
        self.place_session("")
        self.place_record(record.get("startTime"))
        for number, message in enumerate(dicts_at(record, "chatMessages")):
            yield from self.read_message(f"{self.state.session}:{number}", message)

    def _begin_session(self, data: Record) -> None:
        context = dict_at(data, "context")
        self.state.session = text_at(data, "sessionId") or self.state.session
        self.place_record(None, value_at(context, "cwd", "gitRoot"), context.get("branch"))

    def _note_subagent(self, record: Record, data: Record) -> None:
        """Sub-agents get names: `explore:ID`."""
        name, own = text_at(data, "agentName"), record.get("agentId")
        known = dict(self.state.agents)
        for key in (own, data.get("toolCallId")):
            if isinstance(key, str) and name and key not in known:
                known[key] = f"{name}:{own if isinstance(own, str) else key}"
        self.state.agents = tuple(known.items())[-_AGENTS_KEPT:]

    def _name_actor(self, key: Any) -> str:
        return dict(self.state.agents).get(key, key) if isinstance(key, str) else ""

    # --- what was said -----------------------------------------------------------------------

    def _read_user_event(self, record: Record, data: Record) -> Iterator[Item]:
        text = strip_client_text(self.agent, "prompt", nested_text(data.get("content"))).strip()
        if not text:
            self.reading.skip("empty")
        elif self.actor or data.get("source") in (None, "", "user"):
            yield self.make_prompt(record.get("id"), text)
        else:
            self.reading.skip("client's own text")

    def _read_assistant_event(self, record: Record, data: Record) -> Iterator[Item]:
        text, thought = nested_text(data.get("content")), data.get("reasoningText")
        ref = self.make_ref(data.get("messageId") or record.get("id"), text)
        if thought:
            yield self.make_message(f"{ref}:thinking", thought, "thinking")
        if text.strip() or not data.get("toolRequests"):
            yield self.make_message(ref, text)

    def _read_compaction(self, record: Record, data: Record) -> Iterator[Item]:
        yield self.make_summary(record.get("id"), data.get("summaryContent"))

    # --- what was done -----------------------------------------------------------------------

    def _read_tool_start(self, _: Record, data: Record) -> Iterator[Item]:
        key, tool = data.get("toolCallId"), data["toolName"]
        given = input_fields(data.get("arguments"))
        if tool == "str_replace_editor" and given.get("command") == "view":
            call = self.make_call(key, tool, given)
            call = replace(call, files_read=call.files_modified, files_modified=())
            yield from self.await_result(key, call)
        else:
            yield from self.read_call(key, tool, given)

    def _read_tool_end(self, _: Record, data: Record) -> Iterator[Item]:
        result = data.get("result")
        text = nested_text(result) or nested_text(dict_at(data, "result").get("detailedContent"))
        if isinstance(error := dict_at(data, "error").get("message"), str):
            text = f"{text}\n{error}"
        text = strip_client_text(self.agent, "result", text)
        status = dict_at(data, "shellExecution").get("exitCode")
        if match := _EXITED.search(text):
            text = text[: match.start()]
            status = int(match[1]) if status is None else status
        edited = filter(None, (text_at(edit, "path") for edit in dicts_at(data, "fileEdits")))
        result = Result(text, data.get("success") is False, status, self.file_paths(edited))
        yield from self.add_result(data.get("toolCallId"), result)


def _is_history(path: Path) -> bool:
    return path.suffix == ".json" and path.absolute().parent.name == "history-session-state"


def _read_workspace(path: Path) -> str:
    """A session's folder, from the file beside its log: early versions wrote it nowhere else."""
    text = read_text(path.with_name("workspace.yaml")) if path.name == "events.jsonl" else ""
    match = _CWD.search(text)
    return match[1] if match else ""


READER = make_reader(EventLog)
