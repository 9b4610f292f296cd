"""Claude Code's transcripts, versions 2.0.64 to 2.1.325: what is said and done, nothing else.

Indexed: prompts, answers, thinking, each tool call together with its result, plans, the last todo
list, the summary of a compaction, and prompts typed while the agent was busy (they stand in queue
records alone). Left out, and counted by reason: progress, snapshots, attachments (our own injected
memory among them), request logs, reminders and everything else the client writes for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from yester.agents.base import Reader, Reading
from yester.agents.conversation import State, Tools, Transcript, begin_state
from yester.agents.descriptors import CLAUDE_CODE
from yester.agents.sources import first_records
from yester.agents.values import block_text, digest, input_fields, load_object, text_at, todo_text
from yester.files import SMALL
from yester.model import Item


class Line(msgspec.Struct):
    """The fields we look at, of any type: a surprise in one must not cost the line."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    sessionId: Any = None  # noqa: N815
    timestamp: Any = None
    cwd: Any = None
    gitBranch: Any = None  # noqa: N815
    message: Any = None
    isMeta: Any = None  # noqa: N815
    isSidechain: Any = None  # noqa: N815
    isCompactSummary: Any = None  # noqa: N815
    isApiErrorMessage: Any = None  # noqa: N815
    promptId: Any = None  # noqa: N815
    agentId: Any = None  # noqa: N815
    sourceToolUseID: Any = None  # noqa: N815
    origin: Any = None
    planContent: Any = None  # noqa: N815
    operation: Any = None
    content: Any = None
    customTitle: Any = None  # noqa: N815
    attachment: Any = None


_decode_line = msgspec.json.Decoder(Line).decode
_FIELDS = frozenset(Line.__struct_fields__)


# Text a client puts into user messages: what starts with the key is treated as the value says.
USER_TEXT: tuple[tuple[str, str], ...] = (
    ("<local-command-caveat>", "skip local command"),
    ("<local-command-stdout>", "skip local command"),
    ("<local-command-stderr>", "skip local command"),
    ("Caveat: The messages below were generated", "skip local command"),
    ("[Request interrupted", "skip interruption"),
    ("<command-name>", "command"),
    ("<command-message>", "command"),
    ("<bash-input>", "shell"),
    ("<bash-stdout>", "shell"),
    ("<bash-stderr>", "shell"),
    ("<task-notification>", "notification"),
    ("This session is being continued from a previous conversation", "compaction"),
)

# Bookkeeping of the client; what matters of it is in the todo list.
SKIPPED_TOOLS = frozenset(
    {"TodoRead", "TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "ToolSearch"}
)

TOOLS: Tools = {
    "Bash": (("command", "description"), "", False),
    "PowerShell": (("command", "description"), "", False),
    "Read": (("file_path",), "file_path", False),
    "Edit": (("file_path", "old_string", "new_string"), "file_path", True),
    "MultiEdit": (("file_path", "edits"), "file_path", True),
    "Write": (("file_path", "content"), "file_path", True),
    "NotebookEdit": (("notebook_path", "new_source"), "notebook_path", True),
    "Grep": (("pattern", "path", "glob"), "", False),
    "Glob": (("pattern", "path"), "", False),
    "LS": (("path",), "", False),
    "Task": (("description", "prompt"), "", False),
    "Agent": (("description", "prompt"), "", False),
    "WebFetch": (("url", "prompt"), "", False),
    "WebSearch": (("query",), "", False),
    "ExitPlanMode": (("plan",), "", False),
}

_TAG = re.compile(r"<(?P<tag>[a-z-]+)>(?P<text>.*?)</(?P=tag)>", re.S)
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)\s*", re.S)
_LINE_NUMBER = re.compile(r"^ *\d+(?:→|\t)", re.M)  # the client's, not the file's
# Results in which the client says that a call went well.
_SAYS_NOTHING = re.compile(
    r"\(Bash completed with no output\)|File created successfully at: [^\n]*"
    r"|The file [^\n]* has been updated(?: successfully)?\.(?: All occurrences [^\n]*)?"
    r"(?: \(file state is current in your context[^\n]*\))?"
)
# What the client puts around the summary when it compacts a session.
_COMPACTED_HEAD = re.compile(
    r"\AThis session is being continued from a previous conversation[^\n]*\n+(?:<analysis>.*?"
    r"</analysis>\s*)?", re.S
)  # fmt: skip
_COMPACTED_TAIL = re.compile(
    r"\n+If you need specific details from before compaction |\n+(?:Please c|C)ontinue the"
    r" conversation from where (?:it|we) left"
)
_ANALYSIS = re.compile(r"<analysis>.*?</analysis>", re.S)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.S)
_TASK_NUMBER = re.compile(r"#(\d+)")
_NOT_TYPED = ("<", "{", "/")  # notices of the client and its commands, in the queue of prompts


@dataclass(frozen=True, slots=True)
class ClaudeCodeState(State):
    """What must be known of a Claude Code session to go on reading in the middle of it."""

    title_rank: int = 0  # 1 first prompt, 2 given by the user
    todos: str = ""
    tasks: tuple[tuple[str, str, str], ...] = ()  # (number, subject, status)
    queued: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()  # digests of prompts typed while the agent worked


class ClaudeCodeReader(Reader):
    def is_transcript(self, path: Path) -> bool:
        """Only Claude Code writes lines with a sessionId beside a uuid, a message or its types."""
        return any(
            (line.get("sessionId") and any(map(line.get, ("uuid", "operation", "message"))))
            or line.get("type") in ("file-history-snapshot", "last-prompt", "custom-title", "mode")
            for line in first_records(path)
        )

    def read_items(self, reading: Reading) -> Iterator[Item | None]:
        yield from ClaudeCode(reading).read_items()


class ClaudeCode(Transcript[ClaudeCodeState]):
    agent = CLAUDE_CODE.name
    tools = TOOLS
    bookkeeping = SKIPPED_TOOLS

    @staticmethod
    def decode_record(raw: bytes) -> Line:
        return _decode_line(raw)

    @staticmethod
    def convert_record(value: dict[str, Any]) -> Line:
        return Line(**{key: value[key] for key in _FIELDS & value.keys()})

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading, begin_state(ClaudeCodeState, reading, reading.path.stem))
        self.own_file = _name_actor(reading.path)  # of a sub-agent that has one
        self.actor = self.own_file

    def read_items(self) -> Iterator[Item | None]:
        yield from super().read_items()
        tasks = [{"subject": name, "status": status} for _, name, status in self.state.tasks]
        lists = (self.state.todos, todo_text(tasks, "subject"))
        yield from self.make_todo("\n".join(filter(None, lists)))

    def read_record(self, line: Line) -> Iterator[Item]:
        kind = line.type
        if kind in ("user", "assistant"):
            content = line.message.get("content") if isinstance(line.message, dict) else None
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            if not isinstance(content, list):
                self.reading.report_bad(self.number, f"{kind} record without a message")
                return
            self._place_line(line)
            if line.isSidechain and not self.reading.options.subagents:
                self.reading.skip("sub-agent")
            elif kind == "user":
                yield from self._read_user(line, content)
            else:
                yield from self._read_assistant(line, content)
        elif kind == "queue-operation":
            yield from self._read_queue(line)
        elif kind == "custom-title" and isinstance(line.customTitle, str):
            self._rank_title(line.customTitle, 2)
        elif kind == "attachment" and (prompt := _queued_prompt(line.attachment)):
            self._place_line(line)
            yield from self._make_queued_prompt(prompt)
        else:
            self.reading.skip(kind if isinstance(kind, str) and kind else "untyped")

    def _place_line(self, line: Line) -> None:
        session = line.sessionId
        if isinstance(session, str) and session and session != self.state.session:
            self.state = replace(self.state, session=session)
        if isinstance(line.promptId, str) and line.promptId != self.state.turn:
            self.state = replace(self.state, turn=line.promptId)
        if not self.own_file:
            self.actor = str(line.agentId or "sub-agent") if line.isSidechain else ""
        self.place_record(line.timestamp, line.cwd, line.gitBranch)

    def _rank_title(self, title: str, rank: int) -> None:
        if title and rank >= self.state.title_rank and not self.actor:
            self.state = replace(self.state, title=title, title_rank=rank)
            self.reading.set_title(self.state.session, title)

    # --- what the user said ------------------------------------------------------------------

    def _read_user(self, line: Line, content: list[Any]) -> Iterator[Item]:
        texts = []
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "tool_result":
                yield from self._read_result(block)
            elif kind == "text" and isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif isinstance(block, str):
                texts.append(block)
            else:
                self.reading.skip(f"{kind or 'unknown'} block")
        if isinstance(line.planContent, str) and line.planContent:
            yield self.make_plan(line.planContent)
        if not texts:
            return
        if line.isMeta or line.sourceToolUseID:
            self.reading.skip("client's own text")
        elif not isinstance(line.uuid, str):
            self.reading.report_bad(self.number, "user record without a uuid")
        else:
            yield from self._read_text(line, strip_reminders("\n".join(texts)).strip())

    def _read_text(self, line: Line, text: str) -> Iterator[Item]:
        treatment = treat_text(text)
        if not text:
            self.reading.skip("reminder")
        elif line.isCompactSummary or treatment == "compaction":
            yield self.make_summary(line.uuid, strip_compaction(text))
        elif treatment.startswith("skip "):
            self.reading.skip(treatment.removeprefix("skip "))
        elif treatment == "shell":
            body = "\n".join(match["text"].strip() for match in _TAG.finditer(text)).strip()
            yield from self.skip_empty(
                self.make_item(line.uuid, "message", "tool", body, tool="Bash", origin="user")
            )
        elif treatment == "notification" or not _is_typed(line):
            yield self.make_item(line.uuid, "message", "tool", text, tool="Task", origin="tool")
        elif line.isSidechain:
            # A sub-agent's task is written by the agent that started it, not by a person.
            yield self.make_item(line.uuid, "message", "task", text)
        elif typed := typed_command(text) if treatment == "command" else text:
            yield self._make_prompt(line.uuid, typed)
        else:
            self.reading.skip("local command")

    def _make_prompt(self, ref: str, text: str) -> Item:
        titled = self.state.title_rank > 0
        title = self.state.title
        item = self.make_prompt(ref, text)
        if titled:  # by the user: the first prompt does not name the session any more
            self._rank_title(title, self.state.title_rank)
        elif item.title:
            self.state = replace(self.state, title_rank=1)
        return item

    def _read_queue(self, line: Line) -> Iterator[Item]:
        """Prompts typed while the agent worked. `remove` hands one to the running turn, and only
        this record keeps its text; `dequeue` makes a prompt of its own; `popAll` takes all back.
        """
        queued = self.state.queued
        if line.operation == "enqueue" and isinstance(line.content, str):
            self.state = replace(self.state, queued=(*queued, line.content)[-50:])
        elif line.operation == "remove" and queued:
            self.state = replace(self.state, queued=queued[1:])
            if not queued[0].lstrip().startswith(_NOT_TYPED):
                self._place_line(line)
                yield from self._make_queued_prompt(queued[0])
                return
        elif line.operation == "dequeue":
            self.state = replace(self.state, queued=queued[1:])
        elif line.operation == "popAll":
            self.state = replace(self.state, queued=())
        self.reading.skip("queue-operation")

    def _make_queued_prompt(self, text: str) -> Iterator[Item]:
        text = strip_reminders(text).strip()
        mark = digest(text)
        # Newer clients write the same prompt twice, as queue record and as attachment.
        if not text or not self.state.project or mark in self.state.busy:
            self.reading.skip("queue-operation")
            return
        self.state = replace(self.state, busy=(*self.state.busy, mark)[-50:])
        yield self._make_prompt(f"{self.state.session}:queued:{mark}", text)

    # --- what the agent said and did ---------------------------------------------------------

    def _read_assistant(self, line: Line, content: list[Any]) -> Iterator[Item]:
        if line.isApiErrorMessage or line.message.get("model") == "<synthetic>":
            self.reading.skip("client's own text")
            return
        if not isinstance(line.uuid, str):
            self.reading.report_bad(self.number, "assistant record without a uuid")
            return
        for at, block in enumerate(content):
            kind = block.get("type") if isinstance(block, dict) else None
            ref = line.uuid if len(content) == 1 else f"{line.uuid}:{at}"
            if kind == "text":
                yield from self.make_message(ref, block.get("text"))
            elif kind == "thinking":  # newer clients keep only the signature: empty
                yield from self.make_message(ref, block.get("thinking"), "thinking")
            elif kind == "tool_use" and isinstance(block.get("name"), str):
                yield from self._read_call(block, ref)
            else:
                self.reading.skip(f"{kind or 'unknown'} block")

    def _read_call(self, block: dict[str, Any], ref: str) -> Iterator[Item]:
        name, key, given = block["name"], block.get("id"), input_fields(block.get("input"))
        if name == "TodoWrite":
            self.state = replace(self.state, todos=todo_text(given.get("todos"), "content"))
        elif name == "TaskUpdate":
            self.state = replace(self.state, tasks=_update_tasks(self.state.tasks, given))
        elif name == "ExitPlanMode" and (plan := text_at(given, "plan")):
            yield self.make_plan(plan)
        item = self.make_call(key if isinstance(key, str) and key else ref, name, given)
        if name == "TaskCreate" and isinstance(given.get("subject"), str):
            item = replace(item, title=given["subject"])  # its number comes with the result
        yield from self.await_result(key, item)

    def _read_result(self, block: dict[str, Any]) -> Iterator[Item]:
        key, text = block.get("tool_use_id"), strip_reminders(block_text(block.get("content")))
        call = self.waiting.get(key) if isinstance(key, str) else None
        if _SAYS_NOTHING.fullmatch(text):
            text = ""
        elif call and call.item.tool == "Read":
            text = _LINE_NUMBER.sub("", text)
        elif call and call.item.tool == "TaskCreate" and (match := _TASK_NUMBER.search(text)):
            task = (match[1], call.item.title, "pending")
            self.state = replace(self.state, tasks=(*self.state.tasks, task)[-200:])
        yield from self.add_result(key, text, block.get("is_error") is True)


def treat_text(text: str) -> str:
    """What is to become of a text in a user message: what `USER_TEXT` says, or a prompt."""
    return next((what for start, what in USER_TEXT if text.startswith(start)), "prompt")


def strip_reminders(text: str) -> str:
    return _REMINDER.sub("", text)


def tagged_parts(text: str) -> dict[str, str]:
    """`<tag>text</tag>` by tag."""
    return {match["tag"]: match["text"].strip() for match in _TAG.finditer(text)}


def strip_compaction(text: str) -> str:
    """The summary of a compaction, the same from the transcript's form and from the hook's."""
    text = _COMPACTED_TAIL.split(_COMPACTED_HEAD.sub("", text), maxsplit=1)[0]
    text = _ANALYSIS.sub("", text, count=1)
    text = _SUMMARY.sub(lambda found: f"Summary:\n{found[1].strip()}", text, count=1)
    return re.sub(r"\n\n+", "\n\n", text).strip()


def _name_actor(path: Path) -> str:
    """Sub-agents write files of their own, `agent-ID.jsonl`, with their type beside it."""
    if not path.name.startswith("agent-"):
        return ""
    kind = text_at(load_object(path.with_suffix(".meta.json"), SMALL), "agentType")
    number = path.stem.removeprefix("agent-")
    return f"{kind}:{number}" if kind else number


def _is_typed(line: Line) -> bool:
    return not isinstance(line.origin, dict) or line.origin.get("kind") in (None, "human")


def _queued_prompt(attachment: Any) -> str:
    if text_at(attachment, "type") != "queued_command":
        return ""
    prompt = block_text(attachment.get("prompt"))
    return "" if prompt.lstrip().startswith(_NOT_TYPED) else prompt


def typed_command(text: str) -> str:
    """`/name arguments`; a command without arguments is a button press, not something said."""
    parts = tagged_parts(text)
    name, arguments = parts.get("command-name", ""), parts.get("command-args", "")
    return f"/{name.lstrip('/')} {arguments}" if arguments else ""


def _update_tasks(
    tasks: tuple[tuple[str, str, str], ...], given: Mapping[str, Any]
) -> tuple[tuple[str, str, str], ...]:
    number, status = str(given.get("taskId", "")), given.get("status")
    if status == "deleted":
        return tuple(task for task in tasks if task[0] != number)
    return tuple(
        (n, str(given.get("subject", name)), str(status or old)) if n == number else (n, name, old)
        for n, name, old in tasks
    )


READER = ClaudeCodeReader()
