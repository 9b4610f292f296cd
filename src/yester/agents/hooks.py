"""What a client's hook payload says, in yester's words.

A hook knows a thing before the transcript holds it. Both must become the same item: tools have an
id that both know; what was said is known by session, turn and text (`Transcript.alias`), and the
transcript's record takes over what the hook stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from yester.agents.base import Options, Reading
from yester.agents.claude_code import ClaudeCode, Line, Place, compacted
from yester.agents.descriptors import AGENTS, CLAUDE_CODE, hooks_of
from yester.agents.transcript import block_text, plain
from yester.model import Item, Session
from yester.project import Projects, files_root

# After these the transcript holds something no hook has told.
READ_TRANSCRIPT_AFTER = frozenset({"compaction", "agent end", "stop", "stop failure", "end"})

# The session of events that `yester install` and `doctor` make up to see whether hooks work: it is
# answered, and nothing of it is kept.
TRIAL = "yester-trial"

_CLIENT_NAME = re.compile(r"[a-z][a-z0-9-]{1,30}")
_MADE_UP = "hook"  # the id of records that we make of payloads


@dataclass(frozen=True, slots=True)
class Told:
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
    lasted: int = 0  # ms; a transcript dates a call by its beginning
    prompt: str = ""
    source: str = ""
    file: str = ""  # about to be read
    transcripts: tuple[Path, ...] = ()
    items: tuple[Item, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)  # the envelope's


def identify_client(hints: Mapping[str, str], payload: Mapping[str, Any]) -> str:
    """Whose hook it was: what the payload proves, then the client that the command names.

    An agent started inside another inherits its variables, so a variable alone comes last. The
    plugin names Claude Code, and Copilot CLI, which sends no transcript, runs it as well.
    """
    agents, named = AGENTS.values(), hints.get("client", "")
    session, transcript = _text(payload, "session_id"), _text(payload, "transcript_path")
    tellers = [one for one in agents if one.session_variable and one.session_variable in hints]
    proven = (
        *(one for one in agents if one.payload_field and one.payload_field in payload),
        *(one for one in tellers if session and hints[one.session_variable] == session),
        # Claude Code's path is the least telling one and stands first in the table.
        *(
            one
            for one in reversed(agents)
            if one.transcript_path and re.search(one.transcript_path, transcript)
        ),
    )
    if proven:
        return proven[0].name
    if named != CLAUDE_CODE.name and _CLIENT_NAME.fullmatch(named):
        return named
    around = (
        *(one for one in agents if not hints.keys().isdisjoint(one.variables)),
        *tellers,
    )
    unnamed = [one for one in around if session and not (transcript or one.names_transcript)]
    if unnamed:
        return unnamed[0].name
    return around[0].name if around and named != CLAUDE_CODE.name else CLAUDE_CODE.name


def _folder(hints: Mapping[str, str], payload: Mapping[str, Any], cwd: str) -> str:
    """Where the session is at work. Claude Code tells where it began, but only variables that name
    the payload's own session are its own."""
    began, session = hints.get("CLAUDE_PROJECT_DIR", ""), _text(payload, "session_id")
    if began and session and hints.get("CLAUDE_CODE_SESSION_ID") == session:
        return began
    return _text(payload, "cwd") or cwd or began


def understand(
    name: str, cwd: str, hints: Mapping[str, str], payload: Mapping[str, Any], epoch: int
) -> Told:
    """Everything but the items, for which the session must be known."""
    agent = identify_client(hints, payload)
    what = hooks_of(agent).events.get(name, "other")
    actor = ":".join(filter(None, (_text(payload, "agent_type"), _text(payload, "agent_id"))))
    if what == "agent end" and not _text(payload, "agent_type"):
        what = "other"  # compaction is done by an agent, too
    paths = (
        _text(payload, "transcript_path"),
        _text(payload, "agent_transcript_path") if what == "agent end" else "",
    )
    told = Told(
        name=name, what=what, agent=agent, session=_text(payload, "session_id"),
        cwd=_folder(hints, payload, cwd), epoch=epoch,
        turn=_text(payload, "prompt_id") or _text(payload, "turn_id"),
        actor=actor if _text(payload, "agent_id") else "",
        source=_text(payload, "source"),
        transcripts=tuple(Path(path) for path in paths if path), hints=hints,
    )  # fmt: skip
    if what == "prompt":
        return replace(told, prompt=_text(payload, "prompt"))
    if what == "read":
        given = payload.get("tool_input")
        file = _text(given, "file_path") if isinstance(given, Mapping) else ""
        return replace(told, tool=_text(payload, "tool_name"), file=file)
    if what in ("tool", "failure"):
        return replace(
            told, tool=_text(payload, "tool_name"), failed=what == "failure",
            interrupted=payload.get("is_interrupt") is True, lasted=_milliseconds(payload),
            size=_characters(payload.get("tool_input"))
            + _characters(payload.get("tool_response", payload.get("error"))),
        )  # fmt: skip
    return told


def with_items(
    told: Told,
    payload: Mapping[str, Any],
    session: Session,
    projects: Projects,
    options: Options,
    fallback: str,
) -> Told:
    """The same with its items, made by the transcript's own reader from the records the client
    would have written. `fallback` identifies a tool call that has no id."""
    reading = Reading(Path(told.session or "hook"), projects, options)
    reading.state = Place(
        session=told.session, cwd=session.cwd, project=session.project,
        root=files_root(projects.by_key(session.project), session.cwd), title=session.title,
        title_rank=1 if session.title else 0, turn=told.turn,
        prompts=0 if told.actor else session.prompts,  # its file does not know them either
    )  # fmt: skip
    reader = ClaudeCode(reading)
    reader.own_file = reader.actor = told.actor
    reader.epoch = told.epoch - told.lasted
    found = [
        replace(item, source=told.agent, agent=told.agent)
        for record in _records(told, payload, fallback)
        for item in reader.record(record)
    ]
    items = [
        replace(item, ref=item.alias, alias="") if item.ref == _MADE_UP else item
        for item in found
        if item.ref != _MADE_UP or item.alias  # a notice of the client; the transcript brings it
    ]
    return replace(told, items=tuple(items), skipped=dict(reading.skipped))


def _records(told: Told, payload: Mapping[str, Any], fallback: str) -> Iterator[Line]:
    """What Claude Code writes into its transcript when this happens."""

    def record(role: str, content: Any, **more: Any) -> Line:
        return Line(
            type=role, uuid=_MADE_UP, sessionId=told.session, message={"content": content},
            isSidechain=bool(told.actor), **more,
        )  # fmt: skip

    if told.what == "prompt":
        yield record("user", told.prompt)
    elif told.what in ("tool", "failure"):
        key = _text(payload, "tool_use_id") or fallback
        given = payload.get("tool_input")
        yield record(
            "assistant", [{"type": "tool_use", "id": key, "name": told.tool, "input": given}]
        )
        text = (
            _text(payload, "error")
            if told.failed
            else result_text(told.tool, payload.get("tool_response", payload.get("tool_result")))
        )
        result = {"type": "tool_result", "tool_use_id": key, "content": text}
        yield record("user", [{**result, "is_error": told.failed}])
    elif told.what in ("stop", "agent end"):
        yield record(
            "assistant", [{"type": "text", "text": _text(payload, "last_assistant_message")}]
        )
    elif told.what == "compaction":
        yield record("user", compacted(_text(payload, "compact_summary")), isCompactSummary=True)


def result_text(tool: str, response: Any) -> str:
    """A tool's answer as the model saw it, near enough."""
    if isinstance(response, str):
        return response
    if not isinstance(response, dict):
        return block_text(response) or ("" if response is None else plain(response))
    if tool == "Bash":
        parts = (_text(response, "stdout"), _text(response, "stderr").strip())
        return "\n".join(filter(None, parts))
    if tool in ("Write", "Edit", "MultiEdit", "NotebookEdit"):
        return ""  # it repeats the input
    if tool == "Read" and isinstance(response.get("file"), dict):
        return _text(response["file"], "content")
    if tool in ("Glob", "Grep") and isinstance(response.get("filenames"), list):
        names = [name for name in response["filenames"] if isinstance(name, str)]
        if content := _text(response, "content"):
            return content
        if not names:
            return "No matches found" if response.get("mode") == "content" else "No files found"
        counted = f"Found {len(names)} file{'s' * (len(names) != 1)}\n" if tool == "Grep" else ""
        return counted + "\n".join(names)
    return block_text(response.get("content")) or plain(response)


def _milliseconds(payload: Mapping[str, Any]) -> int:
    value = payload.get("duration_ms")
    return int(value) if isinstance(value, int | float) and 0 <= value < 86_400_000 else 0


def _characters(value: Any) -> int:
    """Length of the texts in a value; names of fields and marks of JSON do not count."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))
    if isinstance(value, list):
        return sum(map(_characters, value))
    return 0


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""
