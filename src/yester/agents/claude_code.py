"""Claude Code's transcripts, versions 2.0.64 to 2.1.325: what is said and done, nothing else.

Indexed: prompts, answers, thinking, each tool call together with its result, plans, the last todo
list, the summary of a compaction, and prompts typed while the agent was busy (they stand in queue
records alone). Left out, and counted by reason: progress, snapshots, attachments (our own injected
memory among them), request logs, reminders and everything else the client writes for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Raw

from yester.agents.base import Conversation, Reading, Result, State, strip_client_text, treat_text
from yester.agents.descriptors import CLAUDE_CODE
from yester.agents.sources import Transcript, make_reader
from yester.agents.values import (
    Record,
    decode_json,
    dict_at,
    dicts_at,
    digest,
    join_fields,
    list_at,
    list_blocks,
    load_object,
    nested_text,
    text_at,
    todo_text,
)
from yester.files import SMALL
from yester.model import Item, ToolCall, replace

_TAG = re.compile(r"<(?P<tag>[a-z-]+)>(?P<text>(?:(?!<(?P=tag)>).)*?)</(?P=tag)>", re.S)
_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,3})\b")
_TASK_NUMBER = re.compile(r"#(\d+)")
_NOT_TYPED = ("<", "{", "/")  # notices of the client and its commands, in the queue of prompts


Tasks = tuple[tuple[str, str, str], ...]  # (number, subject, status)


class ClaudeCodeState(State):
    """What must be known of a Claude Code session to go on reading in the middle of it."""

    todos: str = ""
    tasks: Tasks = ()
    queued: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()  # digests of prompts typed while the agent worked


class ClaudeCode(Transcript):
    agent = CLAUDE_CODE.name
    state_type = ClaudeCodeState
    state: ClaudeCodeState
    fields = (
        "type", "uuid", "sessionId", "timestamp", "cwd", "gitBranch", "message", "isMeta",
        "isSidechain", "isCompactSummary", "isApiErrorMessage", "promptId", "agentId",
        "sourceToolUseID", "origin", "planContent", "operation", "content", "customTitle",
        "attachment", "entrypoint",
    )  # fmt: skip
    packed = ("toolUseResult",)

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self._told: Any = None  # of a result, besides what the model is told
        if own := _name_actor(reading.path):
            self.state.actor = self.actor = own

    @staticmethod
    def is_own_record(record: dict[str, Any]) -> bool:
        """Only Claude Code writes lines with a sessionId beside a uuid, a message or its types."""
        if "parts" in dict_at(record, "message") or "systemPayload" in record:
            return False  # Qwen Code's, which has the same envelope
        known = ("file-history-snapshot", "last-prompt", "custom-title", "mode")
        named = any(map(record.get, ("uuid", "operation", "message")))
        return bool(record.get("sessionId") and named) or record.get("type") in known

    def read_items(self) -> Iterator[Item]:
        yield from super().read_items()
        tasks = [{"subject": name, "status": status} for _, name, status in self.state.tasks]
        yield from self.make_todo(f"{self.state.todos}\n{todo_text(tasks)}")

    def read_record(self, line: Record) -> Iterator[Item]:
        kind = line.get("type")
        if kind in ("user", "assistant"):
            content = list_blocks(line["message"]["content"])
            self._place_line(line)
            if kind == "user":
                yield from self._read_user_line(line, content)
            else:
                yield from self._read_assistant_line(line, content)
        elif kind == "queue-operation":
            yield from self._read_queue(line)
        elif kind == "custom-title" and (title := text_at(line, "customTitle")):
            if not self.actor:
                self.state.title = title
                self.register_session()
        elif kind == "attachment" and (prompt := _queued_prompt(line.get("attachment"))):
            self._place_line(line)
            yield from self._make_queued_prompt(prompt)
        else:
            self.reading.skip(kind if isinstance(kind, str) and kind else "untyped")

    def _place_line(self, line: Record) -> None:
        self.state.session = text_at(line, "sessionId") or self.state.session
        self.state.turn = text_at(line, "promptId") or self.state.turn
        if not self.state.actor:
            self.actor = str(line.get("agentId") or "sub-agent") if line.get("isSidechain") else ""
        self.place_record(line.get("timestamp"), line.get("cwd"), line.get("gitBranch"))

    # --- what the user said ------------------------------------------------------------------

    def _read_user_line(self, line: Record, content: list[Any]) -> Iterator[Item]:
        texts = []
        for block in content:
            if block.get("type") == "text":
                texts.append(text_at(block, "text"))
            elif block.get("type") == "tool_result":
                self._told = line.get("toolUseResult")
                yield from self.read_block("", block)
            else:
                self.reading.skip(f"{block.get('type') or 'unknown'} block")
        if plan := text_at(line, "planContent"):
            yield self.make_plan(plan)
        if not texts:
            return
        text = strip_client_text(self.agent, "prompt", "\n".join(texts)).strip()
        if line.get("isMeta") or line.get("sourceToolUseID"):
            self.reading.skip("client's own text")
        elif line.get("isCompactSummary"):
            summary = strip_client_text(self.agent, "summary", text)
            yield self.make_summary(line["uuid"], summary)
        elif text and treat_text(self.agent, text) in ("", "command") and not _is_typed(line):
            yield self.make_notice(line["uuid"], text, "Task")
        else:
            headless = text_at(line, "entrypoint").startswith("sdk")  # claude -p: a program typed
            for item in read_user_text(self, line["uuid"], text):
                by_program = headless and item.kind == "prompt"
                yield replace(item, origin="agent") if by_program else item

    def _read_queue(self, line: Record) -> Iterator[Item]:
        """Prompts typed while the agent worked. `remove` hands one to the running turn, and only
        this record keeps its text; `dequeue` makes a prompt of its own; `popAll` takes all back.
        """
        queued = self.state.queued
        if line.get("operation") == "enqueue" and isinstance(content := line.get("content"), str):
            self.state.queued = (*queued, content)[-50:]
        elif line.get("operation") == "remove" and queued:
            self.state.queued = queued[1:]
            if not queued[0].lstrip().startswith(_NOT_TYPED):
                self._place_line(line)
                yield from self._make_queued_prompt(queued[0])
                return
        elif line.get("operation") == "dequeue":
            self.state.queued = queued[1:]
        elif line.get("operation") == "popAll":
            self.state.queued = ()
        self.reading.skip("queue-operation")

    def _make_queued_prompt(self, text: str) -> Iterator[Item]:
        text = strip_client_text(self.agent, "prompt", text).strip()
        mark = digest(text)
        # Newer clients write the same prompt twice, as queue record and as attachment.
        if not text or not self.state.project or mark in self.state.busy:
            self.reading.skip("queue-operation")
            return
        self.state.busy = (*self.state.busy, mark)[-50:]
        yield self.make_prompt(f"{self.state.session}:queued:{mark}", text)

    # --- what the agent said and did ---------------------------------------------------------

    def _read_assistant_line(self, line: Record, content: list[Any]) -> Iterator[Item]:
        if line.get("isApiErrorMessage") or line["message"].get("model") == "<synthetic>":
            self.reading.skip("client's own text")
            return
        for at, block in enumerate(content):
            ref = line["uuid"] if len(content) == 1 else f"{line['uuid']}:{at}"
            yield from self.read_block(ref, block)

    def read_call(self, key: Any, tool: str, given: Record, ref: str = "") -> Iterator[Item]:
        if tool == "TodoWrite":
            self.state.todos = todo_text(given.get("todos"))
        elif tool == "TaskUpdate":
            self.state.tasks = _update_tasks(self.state.tasks, given)
        elif tool == "ExitPlanMode" and (plan := text_at(given, "plan")):
            yield self.make_plan(plan)
        item = self.make_call(key if isinstance(key, str) else ref, tool, given)
        if tool == "TaskCreate":
            item = replace(item, title=text_at(given, "subject"))  # its number is in the result
        yield from self.await_result(key, item)

    def add_result(self, key: Any, result: Result) -> Iterator[Item]:
        call = self.waiting.get(key) if isinstance(key, str) else None
        tool = call.item.tool if call else ""
        text = strip_client_text(self.agent, "result", result.text, tool)
        if call and tool == "TaskCreate" and (match := _TASK_NUMBER.search(text)):
            task = (match[1], call.item.title, "pending")
            self.state.tasks = (*self.state.tasks, task)[-200:]
        told = _EXIT.match(text) if result.failed else None
        status = int(told[1]) if told else None
        changes = tuple(_read_changes(self._told)) if call and call.item.files_modified else ()
        yield from super().add_result(key, Result(text, result.failed, status, changes=changes))


def read_user_text(talk: Conversation, ref: str, text: str) -> Iterator[Item]:
    """What a text in a user message is: typed, or written by the client."""
    treatment = treat_text(CLAUDE_CODE.name, text)
    if not text:
        talk.reading.skip("reminder")
    elif treatment.startswith("skip "):
        talk.reading.skip(treatment.removeprefix("skip "))
    elif treatment == "compaction":
        yield talk.make_summary(ref, strip_client_text(CLAUDE_CODE.name, "summary", text))
    elif treatment == "shell":
        yield from _read_own_command(talk, ref, text)
    elif treatment == "notification":
        yield talk.make_notice(ref, text, "Task")
    elif typed := _typed_command(text) if treatment == "command" else text:
        yield talk.make_prompt(ref, typed)
    else:
        talk.reading.skip("local command")


def _read_own_command(talk: Conversation, ref: str, text: str) -> Iterator[Item]:
    """A command that the user ran in the client, or what came of one."""
    parts = [(match["tag"], match["text"].strip()) for match in _TAG.finditer(text)]
    body, places = join_fields([part for part in parts if part[1]], named=False)
    commands = [("command", start, end) for tag, start, end in places if tag == "bash-input"]
    said = [(start, end) for tag, start, end in places if tag != "bash-input"]
    call = ToolCall(tuple(commands), (said[0][0], said[-1][1]) if said else None)
    yield talk.make_notice(ref, body, "Bash", "user", call)


def _name_actor(path: Path) -> str:
    """Sub-agents write files of their own, `agent-ID.jsonl`, with their type beside it."""
    if not path.name.startswith("agent-"):
        return ""
    kind = text_at(load_object(path.with_suffix(".meta.json"), SMALL), "agentType")
    number = path.stem.removeprefix("agent-")
    return f"{kind}:{number}" if kind else number


def _read_changes(told: Any) -> Iterator[tuple[str, str]]:
    """What the client tells of a change besides what the model is told: hunks, or a new file."""
    told = decode_json(told) if isinstance(told, Raw) else told
    if text_at(told, "type") == "create":
        yield "", text_at(told, "content")
    for hunk in dicts_at(told, "structuredPatch"):
        lines = [one for one in list_at(hunk, "lines") if isinstance(one, str)]
        before = "\n".join(one[1:] for one in lines if one[:1] in (" ", "-"))
        yield before, "\n".join(one[1:] for one in lines if one[:1] in (" ", "+"))


def _is_typed(line: Record) -> bool:
    origin = line.get("origin")
    return not isinstance(origin, dict) or origin.get("kind") in (None, "human")


def _queued_prompt(attachment: Any) -> str:
    if text_at(attachment, "type") != "queued_command":
        return ""
    prompt = nested_text(attachment.get("prompt"))
    return "" if prompt.lstrip().startswith(_NOT_TYPED) else prompt


def _typed_command(text: str) -> str:
    """`/name arguments`; a command without arguments is a button press, not something said."""
    parts = {match["tag"]: match["text"].strip() for match in _TAG.finditer(text)}
    name, arguments = parts.get("command-name", ""), parts.get("command-args", "")
    return f"/{name.lstrip('/')} {arguments}" if arguments else ""


def _update_tasks(tasks: Tasks, given: Record) -> Tasks:
    number, status = str(given.get("taskId", "")), given.get("status")
    if status == "deleted":
        return tuple(task for task in tasks if task[0] != number)
    return tuple(
        (n, str(given.get("subject", name)), str(status or old)) if n == number else (n, name, old)
        for n, name, old in tasks
    )


READER = make_reader(ClaudeCode)
