"""claude-mem: its database in every schema it has had, RageLtd's fork, and files exported from it.

What is there is found by column, not by version: names were changed and columns added over time.
Rows of a database and objects of an export have the same names, so both are read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from yester.agents.base import Reading
from yester.agents.sources import Database, has_tables, is_database, read_head
from yester.agents.values import Record, digest, first_line, to_text
from yester.files import read_bytes
from yester.model import Item, Session
from yester.operate.importers import base
from yester.operate.importers.base import Import, MemoryReader, read_texts

_LARGEST = 1 << 29  # bytes of an export
_HOSTS = {"claude": "claude-code", "gemini": "gemini-cli", "copilot": "copilot-cli"}
# The program's own agent watching, which it has recorded by mistake.
_OBSERVERS = ("observer-sessions",)
_OBSERVED = ("You are a Claude-Mem", "Hello memory agent")
_MANUAL = "manual-"  # how the session of what the user asked to keep begins
_HOST_SESSION = ("content_session_id", "claude_session_id")
_SESSION = ("memory_session_id", "sdk_session_id", *_HOST_SESSION)
_SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")


def _first_text(row: Record, *names: str) -> str:
    """The first of these columns that says something."""
    texts = (value.strip() for name in names if isinstance(value := row.get(name), str))
    return next(filter(None, texts), "")


def _first_time(row: Record, name: str) -> int:
    return base.read_time(row.get(f"{name}_at_epoch"), row.get(f"{name}_at"))


# --- what a row of each table says ---------------------------------------------------------------


def _describe_note(row: Record, kind: str = "observation") -> dict[str, Any]:
    if to_text(row.get("memory_session_id") or "").startswith(_MANUAL):
        kind = "memory"
    # An explanation may stand behind the concept.
    concepts = (one.partition(":")[0].strip() for one in read_texts(row.get("concepts")))
    return {
        "kind": kind, "body": _first_text(row, "narrative", "text", "subtitle", "title"),
        "title": _first_text(row, "title"), "subtitle": _first_text(row, "subtitle"),
        "type": "note" if kind == "memory" else _first_text(row, "type"),
        "facts": read_texts(row.get("facts")), "concepts": tuple(dict.fromkeys(concepts)),
        "files_modified": read_texts(row.get("files_modified")),
    }  # fmt: skip


def _describe_server_item(row: Record) -> dict[str, Any]:
    kinds = {"summary": "summary", "prompt": "prompt", "manual": "memory"}
    return _describe_note(row, kinds.get(to_text(row.get("kind")), "observation"))


def _describe_summary(row: Record) -> dict[str, Any]:
    return {
        "kind": "summary",
        "body": _first_text(row, "completed", "learned", "notes", *_SECTIONS),
        "title": first_line(_first_text(row, *_SECTIONS)),
        "sections": {name: text for name in _SECTIONS if (text := _first_text(row, name))},
        "files_modified": read_texts(row.get("files_edited")),
    }


def _describe_prompt(row: Record) -> dict[str, Any]:
    number = row.get("prompt_number")
    return {
        "kind": "prompt", "body": _first_text(row, "prompt_text"), "role": "user",
        "prompt_number": number if isinstance(number, int) else 0,
    }  # fmt: skip


def _describe_waiting(row: Record) -> dict[str, Any]:
    """A tool call, or the agent's last message, that it had not dealt with yet."""
    tool = _first_text(row, "tool_name")
    call = f"{_first_text(row, 'tool_input')}\n\n{_first_text(row, 'tool_response')}".strip()
    return {
        "kind": "message", "body": call if tool else _first_text(row, "last_assistant_message"),
        "role": "tool" if tool else "assistant", "tool": tool,
    }  # fmt: skip


_TABLES: Mapping[str, Callable[[Record], dict[str, Any]]] = {
    "observations": _describe_note,
    "session_summaries": _describe_summary,
    "user_prompts": _describe_prompt,
    "pending_messages": _describe_waiting,
    "memory_items": _describe_server_item,
}


class _Pass:
    """One pass over one file; `read_table` gives the rows of a table."""

    def __init__(self, source: Import, read_table: Callable[[str], Iterator[Record]]) -> None:
        self.source, self.read_table = source, read_table
        self.reading, self.places = source
        self.sessions: dict[str, Record] = {}  # by each of the ids it has
        self.projects: dict[str, str] = {}  # of the server's tables: id → folder or name

    def read_items(self) -> Iterator[Item]:
        for row in self.read_table("projects"):
            self.projects[to_text(row["id"])] = _first_text(row, "root_path", "name")
        for table in ("sdk_sessions", "server_sessions"):
            for row in self.read_table(table):
                self._add_session(row)
        for table, describe in _TABLES.items():
            for row in self.read_table(table):
                try:
                    item = self._make_item(table, row, **describe(row))
                except (AttributeError, LookupError, TypeError, ValueError) as error:
                    place = f"{table}/{row.get('id', '?')}"
                    self.reading.report_bad(place, f"not understood ({type(error).__name__})")
                    continue
                if isinstance(item, Item):
                    yield item
                else:
                    self.reading.skip(item)

    def _tell_session(self, key: str, agent: str, project: str, row: Record) -> None:
        """What is known of a session besides what was noted in it."""
        if key and key not in self.reading.sessions:
            place = self.places.find_project(project, key, agent).key
            times = _first_time(row, "started"), _first_time(row, "completed")
            title = _first_text(row, "custom_title", "title")
            self.reading.sessions[key] = Session(key, agent, place, *times, title=title)

    def _add_session(self, row: Record) -> None:
        """A session, which two tables may tell of."""
        names = [row[name] for name in (*_SESSION, "id") if isinstance(row.get(name), str)]
        known = next((self.sessions[name] for name in names if name in self.sessions), {})
        told = {name: value for name, value in row.items() if value not in (None, "")}
        self.sessions |= {name: {**told, **known} for name in filter(None, names)}

    def _make_item(self, table: str, row: Record, kind: str, body: str, **more: Any) -> Item | str:
        """An item in its session and project; or why there is none."""
        names = (row.get(name) for name in (*_SESSION, "server_session_id"))
        session = next((self.sessions[one] for one in names if one in self.sessions), {})
        project = session.get("project") or row.get("project") or row.get("cwd")
        project = project or self.projects.get(row.get("project_id") or "", "")
        if row.get("legacy_observation_id") is not None:
            return "there twice"
        if project in _OBSERVERS or body.startswith(_OBSERVED):
            return "the observer's own"
        key = _first_text(session, *_HOST_SESSION) or _first_text(row, *_HOST_SESSION)
        agent = to_text(session.get("platform_source") or "claude")
        agent = _HOSTS.get(agent, agent)
        if kind == "prompt" and self.places.has_transcript(key, agent):
            return "in the transcript already"
        epoch, tokens = _first_time(row, "created"), row.get("discovery_tokens")
        # Its own id is a number that another machine's database has as well.
        ref = f"{table}/{row['id']}:{digest(str(epoch), more.get('title') or body)}"
        if not (key or is_database(self.reading.path)) and self.places.store.find_by_ref(ref):
            return "known already"  # and there with its session, perhaps
        self._tell_session(key, agent, to_text(project), session)
        return self.source.make_item(
            ref, kind, to_text(project), body=body, epoch=epoch, session=key, agent=agent,
            files_read=read_texts(row.get("files_read")),
            discovery_tokens=tokens if isinstance(tokens, int) and tokens > 0 else 0, **more,
        )  # fmt: skip


# --- databases and exports -----------------------------------------------------------------------


class _Export(msgspec.Struct):
    """An export, or a corpus, which has observations alone."""

    observations: list[msgspec.Raw] = []
    sdk_sessions: list[msgspec.Raw] = msgspec.field(default_factory=list, name="sessions")
    session_summaries: list[msgspec.Raw] = msgspec.field(default_factory=list, name="summaries")
    user_prompts: list[msgspec.Raw] = msgspec.field(default_factory=list, name="prompts")


def _is_own_file(path: Path) -> bool:
    if is_database(path):
        return has_tables(path, ("sdk_sessions",), ("memory_items", "server_sessions"))
    head = read_head(path, 4096) if path.suffix == ".json" else b""
    return head.lstrip().startswith(b"{") and (b'"observations"' in head or b'"query"' in head)


def _read_memories(source: Import) -> Iterator[Item]:
    reading = source.reading
    if is_database(reading.path):
        with Database(reading.path) as database:
            yield from _Pass(source, partial(source.read_rows, database)).read_items()
        return
    try:
        export = msgspec.json.decode(read_bytes(reading.path, _LARGEST), type=_Export)
    except msgspec.MsgspecError as error:
        reading.report_bad(0, f"no export of claude-mem ({error})")
        return
    yield from _Pass(source, partial(_decode_rows, reading, export)).read_items()


def _decode_rows(reading: Reading, export: _Export, table: str) -> Iterator[Record]:
    for number, raw in enumerate(getattr(export, table, []), 1):
        try:
            yield msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            reading.report_bad(f"{table}[{number}]", str(error))


READERS = dict.fromkeys(("claude-mem", "rageltd"), MemoryReader(_is_own_file, _read_memories))
