"""What a client's hook payload says, in yester's words.

Claude Code's hook knows a thing before the transcript holds it. Both must become the same item:
tools have an id that both know; what was said is known by session, turn and text (`hook_alias`),
and the transcript's record takes over what the hook stored. The hooks of all other clients ask and
ring: what happened is read from their transcripts alone, so nothing can be there twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from yester.agents.base import Options, Reading, list_folders
from yester.agents.claude_code import ClaudeCode, ClaudeCodeState
from yester.agents.descriptors import AGENTS, CLAUDE_CODE, CLAUDE_EVENTS, find_agent
from yester.agents.values import Record, list_at, nested_text, text_at, to_text
from yester.config import Config
from yester.model import Item, Session, replace
from yester.project import Projects, files_root

# After these the transcript holds something no hook has told.
READ_TRANSCRIPT_AFTER = frozenset({"compaction", "agent end", "stop", "stop failure", "end"})
BELLS = READ_TRANSCRIPT_AFTER | {"prompt", "tool", "failure"}

# The session of events that `yester install` and `doctor` make up to see whether hooks work: it is
# answered, and nothing of it is kept.
TRIAL = "yester-trial"

_CLIENT_NAME = re.compile(r"[a-z][a-z0-9-]{1,30}")
_SESSION_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
# What only tools are given that do something.
_ACTS = frozenset(
    {"command", "cmd", "plan", "old_string", "new_string", "content", "edits", "new_source",
     "patch"}
)  # fmt: skip
_MADE_UP = "hook"  # the ref of what only the transcript has an id for


class HookEvent(Struct, frozen=True):
    """One payload, understood. `items` is what can be recalled of it."""

    name: str
    what: str
    agent: str
    session: str
    cwd: str
    epoch: int
    turn: str = ""
    actor: str = ""
    tool: str = ""
    failed: bool = False
    interrupted: bool = False
    size: int = 0  # characters of a tool's input and output
    prompt: str = ""
    source: str = ""
    file: str = ""  # about to be read
    given: Mapping[str, Any] = {}  # to a tool; not to one that is only read with
    output: str | None = None  # of a tool, where it has come
    transcripts: tuple[Path, ...] = ()
    items: tuple[Item, ...] = ()
    skipped: Mapping[str, int] = {}
    hints: Mapping[str, str] = {}  # the envelope's
    id: str = ""  # the name of its file in the spool


def identify_client(hints: Mapping[str, str], payload: Record) -> str:
    """Whose hook it was: the client that the command names, then what the payload proves.

    An agent started inside another inherits its variables, so a variable alone comes last. The
    plugin names Claude Code, and Copilot CLI, which sends no transcript, runs it as well.
    """
    agents, named = AGENTS.values(), hints.get("client", "")
    if named != CLAUDE_CODE.name and _CLIENT_NAME.fullmatch(named):
        return named
    session, transcript = text_at(payload, "session_id"), text_at(payload, "transcript_path")
    tellers = [one for one in agents if one.session_variable and one.session_variable in hints]
    proven = (
        *(one for one in agents if one.payload_field and one.payload_field in payload),
        *(one for one in tellers if session and hints[one.session_variable] == session),
        # Claude Code's path is the least telling one and stands first in the table.
        *(one for one in reversed(agents) if _matches_path(one.transcript_path, transcript)),
    )
    if proven:
        return proven[0].name
    around = [one for one in agents if not hints.keys().isdisjoint(one.variables)]
    around += reversed(tellers)  # Claude Code's, the first, also reach what it has started
    unnamed = [one for one in around if session and not (transcript or one.names_transcript)]
    if unnamed:
        return unnamed[0].name
    return around[0].name if around and named != CLAUDE_CODE.name else CLAUDE_CODE.name


def _matches_path(pattern: str, path: str) -> bool:
    return bool(pattern and re.search(pattern, path))


def session_transcripts(event: HookEvent, config: Config) -> tuple[Path, ...]:
    """Where an event's session is written to: named by the event, or found by its name."""
    agent = find_agent(event.agent)
    if event.transcripts or not _SESSION_NAME.fullmatch(event.session):
        return event.transcripts
    patterns = [name.format(session=event.session) for name in agent.session_files]
    folders = list_folders(agent, config)
    found = (sorted(folder.glob(name)) for folder in folders for name in patterns)
    return tuple(path for paths in found for path in paths)


def _find_cwd(hints: Mapping[str, str], payload: Record, cwd: str) -> str:
    """Where the session is at work. Claude Code tells where it began, but only variables that name
    the payload's own session are its own."""
    began, session = hints.get("CLAUDE_PROJECT_DIR", ""), text_at(payload, "session_id")
    if began and session and hints.get(CLAUDE_CODE.session_variable) == session:
        return began
    roots = (root for root in list_at(payload, "workspace_roots") if isinstance(root, str))
    return text_at(payload, "cwd") or next(roots, "") or cwd or began


def read_payload(
    name: str, cwd: str, hints: Mapping[str, str], payload: Record, epoch: int
) -> HookEvent:
    """Everything but the items, for which the session must be known."""
    agent = identify_client(hints, payload)
    what = CLAUDE_EVENTS.get(name, "other")
    actor = ":".join(filter(None, (text_at(payload, "agent_type"), text_at(payload, "agent_id"))))
    if what == "agent end" and not text_at(payload, "agent_type"):
        what = "other"  # compaction is done by an agent, too
    transcripts = [text_at(payload, "transcript_path")]
    if what == "agent end":
        transcripts.append(text_at(payload, "agent_transcript_path"))
    given = payload.get("tool_input")
    if what == "read" and isinstance(given, dict) and not _ACTS.isdisjoint(given):
        what = "act"
    source = text_at(payload, "source")
    if source == "resume" and find_agent(agent).loses_start:
        source = "startup"
    about_tool = what in ("read", "act", "tool", "failure")
    output = _read_output(what, payload)
    used = (given, payload.get("tool_response", payload.get("error")))
    return HookEvent(
        name=name, what=what, agent=agent,
        session=text_at(payload, "session_id", "conversation_id"),
        cwd=_find_cwd(hints, payload, cwd), epoch=epoch,
        turn=text_at(payload, "prompt_id", "turn_id"),
        actor=actor if text_at(payload, "agent_id") else "",
        tool=text_at(payload, "tool_name") if about_tool else "",
        failed=what == "failure",
        interrupted=about_tool and payload.get("is_interrupt") is True,
        size=sum(map(_count_characters, used)),
        prompt=text_at(payload, "prompt") if what == "prompt" else "",
        source=source,
        file=text_at(given, "file_path") if what == "read" else "",
        given=given if isinstance(given, dict) and what in ("act", "tool", "failure") else {},
        output=output,
        transcripts=tuple(map(Path, filter(None, transcripts))), hints=hints,
    )  # fmt: skip


def _read_output(what: str, payload: Record) -> str | None:
    if what == "failure":
        return text_at(payload, "error")
    if what != "tool":
        return None
    response = payload.get("tool_response", payload.get("tool_result"))
    return result_text(text_at(payload, "tool_name"), response)


def add_items(
    event: HookEvent, payload: Record, session: Session, projects: Projects, options: Options
) -> HookEvent:
    """The same with its items, made by the transcript's own reader as if the client had written it
    down."""
    reading = Reading(Path(event.session or "hook"), projects, options)
    reading.state = ClaudeCodeState(
        session=event.session, actor=event.actor, cwd=session.cwd, project=session.project,
        root=files_root(projects.by_key(session.project), session.cwd), title=session.title,
        turn=event.turn,
        prompts=0 if event.actor else session.prompts,  # its file does not know them either
    )  # fmt: skip
    reader = ClaudeCode(reading)
    # A transcript dates a call by its beginning.
    reader.epoch = event.epoch - (_read_duration(payload) if event.tool else 0)
    items = []
    for record in _make_records(event, payload):
        for item in filter(reading.keeps, reader.read_record(record)):
            if item.ref == _MADE_UP:
                item = replace(item, ref=item.alias, alias="")
            if item.ref:  # else it is a notice of the client; the transcript brings it
                items.append(replace(item, source=event.agent, agent=event.agent))
    return replace(event, items=tuple(items), skipped=dict(reading.skipped))


def _make_records(event: HookEvent, payload: Record) -> Iterator[dict[str, Any]]:
    """The event as the lines of a transcript that the client would write. A tool call that has no
    id is known by the event's."""
    user, assistant = ({"type": who, "uuid": _MADE_UP} for who in ("user", "assistant"))
    if event.what == "prompt":
        yield user | {"message": {"content": event.prompt}}
    elif event.what in ("tool", "failure"):
        key, given = text_at(payload, "tool_use_id"), payload.get("tool_input")
        key = key or f"hook:{event.id}"
        call = {"type": "tool_use", "id": key, "name": event.tool, "input": given}
        yield assistant | {"message": {"content": [call]}}
        response = payload.get("tool_response", payload.get("tool_result"))
        result = {"type": "tool_result", "tool_use_id": key, "content": event.output}
        message = {"content": [result | {"is_error": event.failed}]}
        yield user | {"message": message, "toolUseResult": response}
    elif event.what in ("stop", "agent end"):
        yield assistant | {"message": {"content": text_at(payload, "last_assistant_message")}}
    elif event.what == "compaction":
        summary = text_at(payload, "compact_summary")
        yield user | {"isCompactSummary": True, "message": {"content": summary}}


def result_text(tool: str, response: Any) -> str:
    """A tool's answer as the model saw it, near enough."""
    if isinstance(response, str):
        return response
    if not isinstance(response, dict):
        return nested_text(response) or ("" if response is None else to_text(response))
    if tool == "Bash":
        parts = (text_at(response, "stdout"), text_at(response, "stderr").strip())
        return "\n".join(filter(None, parts))
    if tool in ("Write", "Edit", "MultiEdit", "NotebookEdit"):
        return ""  # it repeats the input
    if tool == "Read" and isinstance(response.get("file"), dict):
        return text_at(response["file"], "content")
    if tool in ("Glob", "Grep") and isinstance(response.get("filenames"), list):
        names = [name for name in response["filenames"] if isinstance(name, str)]
        if content := text_at(response, "content"):
            return content
        if not names:
            return "No matches found" if response.get("mode") == "content" else "No files found"
        counted = f"Found {len(names)} file{'s' * (len(names) != 1)}\n" if tool == "Grep" else ""
        return counted + "\n".join(names)
    return nested_text(response.get("content")) or to_text(response)


def _read_duration(payload: Record) -> int:
    value = payload.get("duration_ms")
    return int(value) if isinstance(value, int | float) and 0 <= value < 86_400_000 else 0


def _count_characters(value: Any) -> int:
    """Length of the texts in a value; names of fields and marks of JSON do not count."""
    if isinstance(value, str):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(_count_characters, parts)) if isinstance(value, dict | list) else 0
