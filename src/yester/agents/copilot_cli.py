"""Copilot CLI's event logs, versions 1.0.64 to 1.0.102 (older ones as far as they can be read).

Indexed: prompts, answers, readable reasoning, each tool execution together with its result, the
summary of a compaction; sub-agents write into the same file and are told by their id. Left out,
and counted by type: hooks (our own injected memory among them), system messages, usage records,
snapshots. Of a prompt only `content` counts: `transformedContent` is what the client made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from yester.agents.base import Reader, Reading
from yester.agents.descriptors import COPILOT_CLI
from yester.agents.transcript import State, Tools, Transcript, block_text, opening
from yester.files import read_text
from yester.model import Item

_REMINDER = re.compile(r"<system_reminder>.*?(?:</system_reminder>|\Z)\s*", re.S)
# What hooks answered to a tool's result is put at its end.
_GUIDANCE = re.compile(
    r'(?:\A|\n)\s*Tool "[^"\n]{1,200}" [a-z]+\. Additional guidance from [A-Za-z]+ hooks:\n.*\Z',
    re.S,
)
_EXITED = re.compile(r"\n?<(?:shellId: \S+ )?(?:completed|exited) with exit code (-?\d+)>\s*\Z")
_RUNNING = re.compile(r"\n?<command with (?:shellId|id): [^<>\n]*>\s*\Z")  # how to wait for it
_CWD = re.compile(r"^cwd: (.+?)\s*$", re.M)
_AGENTS_KEPT = 50


@dataclass(frozen=True, slots=True)
class CopilotState(State):
    agents: tuple[tuple[str, str], ...] = ()  # (id of a sub-agent or of the call for it, its name)


class CopilotReader(Reader):
    def is_transcript(self, path: Path) -> bool:
        """Only Copilot CLI writes typed lines with data that name the line they follow."""
        return any(
            isinstance(kind := record.get("type"), str)
            and "." in kind
            and isinstance(record.get("data"), dict)
            and "parentId" in record
            for record in opening(path)
        )

    def read_items(self, reading: Reading) -> Iterator[Item]:
        state = CopilotState.load(reading.state)
        if not state.session:
            path = reading.path
            named = path.parent.name if path.name == "events.jsonl" else path.stem
            state = replace(state, session=named)
        yield from _Events(reading, state).items()


class _Events(Transcript[CopilotState]):
    agent = COPILOT_CLI.name
    bookkeeping = frozenset({"report_intent", "stop_bash", "update_todo"})
    tools: ClassVar[Tools] = {
        "bash": (("command", "description"), "", False),
        "powershell": (("command", "description"), "", False),
        "read_bash": (("shellId",), "", False),
        "write_bash": (("input",), "", False),
        "view": (("path",), "path", False),
        "edit": (("path", "old_str", "new_str"), "path", True),
        "create": (("path", "file_text"), "path", True),
        "str_replace_editor": (("path", "old_str", "new_str", "file_text"), "path", True),
        "apply_patch": (("patch", "input"), "", False),
        "grep": (("pattern", "path", "glob"), "", False),
        "glob": (("pattern", "path"), "", False),
        "task": (("description", "prompt"), "", False),
        "web_fetch": (("url",), "", False),
        "web_search": (("query",), "", False),
    }

    def record(self, record: dict[str, Any]) -> Iterator[Item]:
        kind, data = record.get("type"), record.get("data")
        if not isinstance(kind, str) or not isinstance(data, dict):
            self.reading.bad(self.number, "no event of a type with data")
            return
        if kind in ("session.start", "session.resume"):
            self._session(data)
        elif not self.state.project:
            self.place(None, _workspace(self.reading.path))
        self.actor = self._who(record.get("agentId") or data.get("parentToolCallId"))
        self.place(record.get("timestamp"))
        if kind.startswith("subagent."):
            self._met(record, data)
        handler = {
            "user.message": self._user,
            "assistant.message": self._assistant,
            "tool.execution_start": self._started,
            "tool.execution_complete": self._completed,
            "session.compaction_complete": self._compacted,
        }.get(kind)
        if handler is None:
            self.reading.skip(kind)
        elif self.actor and not self.reading.options.subagents:
            self.reading.skip("sub-agent")
        else:
            yield from handler(record, data)

    def _session(self, data: Mapping[str, Any]) -> None:
        own, context = data.get("sessionId"), data.get("context")
        if isinstance(own, str) and own:
            self.state = replace(self.state, session=own)
        context = context if isinstance(context, dict) else {}
        cwd = context.get("cwd") or context.get("gitRoot")
        self.place(None, cwd or _workspace(self.reading.path), context.get("branch"))

    def _met(self, record: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Sub-agents get names: `explore:ID`."""
        name, own = data.get("agentName"), record.get("agentId")
        call = data.get("toolCallId")
        known = dict(self.state.agents)
        for key in (own, call):
            if isinstance(key, str) and isinstance(name, str) and name and key not in known:
                known[key] = f"{name}:{own if isinstance(own, str) else key}"
        self.state = replace(self.state, agents=tuple(known.items())[-_AGENTS_KEPT:])

    def _who(self, key: Any) -> str:
        return dict(self.state.agents).get(key, key) if isinstance(key, str) else ""

    # --- what was said -----------------------------------------------------------------------

    def _user(self, record: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Item]:
        text = _REMINDER.sub("", block_text(data.get("content"))).strip()
        ref, source = self.ref(record.get("id"), text), data.get("source")
        if not text:
            self.reading.skip("empty")
        elif self.actor:  # a sub-agent's task is written by the agent that started it
            yield from self.said(ref, text, "task")
        elif source in (None, "", "user"):
            yield self.prompt(ref, text)
        else:
            self.reading.skip("client's own text")

    def _assistant(self, record: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Item]:
        text, thought = block_text(data.get("content")), data.get("reasoningText")
        ref = self.ref(data.get("messageId") or record.get("id"), text)
        if thought:
            yield from self.said(f"{ref}:thinking", thought, "thinking")
        if text.strip() or not data.get("toolRequests"):
            yield from self.said(ref, text)

    def _compacted(self, record: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Item]:
        text = block_text(data.get("summaryContent")).strip()
        if text:
            yield self.compaction(self.ref(record.get("id"), text), text)
        else:
            self.reading.skip("empty")

    # --- what was done -----------------------------------------------------------------------

    def _started(self, _: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Item]:
        key, tool, given = data.get("toolCallId"), data.get("toolName"), data.get("arguments")
        if not isinstance(tool, str) or not tool:
            self.reading.bad(self.number, "tool execution without a tool")
            return
        if not isinstance(given, dict):
            given = {"input": given} if given is not None else {}
        if tool == "update_todo":
            yield from self.todo(block_text(given.get("todos")).strip())
        item = self.call(key, tool, given)
        if tool == "str_replace_editor" and given.get("command") == "view":
            item = replace(item, files_read=item.files_modified, files_modified=())
        yield from self.wait(key, item)

    def _completed(self, _: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Item]:
        result, error = data.get("result"), data.get("error")
        if isinstance(result, dict):
            text = block_text(result.get("content")) or block_text(result.get("detailedContent"))
        else:
            text = block_text(result)
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            text = f"{text}\n{error['message']}"
        text = _RUNNING.sub("", _REMINDER.sub("", _GUIDANCE.sub("", text)))
        shell = data.get("shellExecution")
        code = shell.get("exitCode") if isinstance(shell, dict) else None
        if match := _EXITED.search(text):
            text = text[: match.start()]
            code = int(match[1]) if code is None else code
        failed = data.get("success") is False or code not in (0, None)
        yield from self.answer(data.get("toolCallId"), text, failed, self._edited(data))

    def _edited(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        edits = data.get("fileEdits")
        return tuple(
            self.file(edit["path"])
            for edit in (edits if isinstance(edits, list) else ())
            if isinstance(edit, dict) and isinstance(edit.get("path"), str)
        )


def _workspace(path: Path) -> str:
    """A session's folder, from the file beside its log: early versions wrote it nowhere else."""
    try:
        text = read_text(path.with_name("workspace.yaml"))
    except OSError:
        return ""
    match = _CWD.search(text) if path.name == "events.jsonl" else None
    return match[1] if match else ""


READER = CopilotReader()
