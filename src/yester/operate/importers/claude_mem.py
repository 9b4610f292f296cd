"""claude-mem: its database in every schema it has had, RageLtd's fork, and files exported from it.

What is there is found by column, not by version: names were changed and columns added over time.
Rows of a database and objects of an export have the same names, so both are read here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from yester.agents.base import Reading
from yester.agents.databases import Database, DatabaseProblem, has_tables, is_database
from yester.agents.sources import read_head
from yester.agents.values import digest, first_line, to_text
from yester.files import read_bytes
from yester.model import Item, Session, replace
from yester.operate.importers.base import (
    MemoryReader,
    Places,
    make_import,
    read_rows,
    read_texts,
    read_time,
)

Record = Mapping[str, Any]

_LARGEST = 1 << 29  # bytes of an export
_HOSTS = {"claude": "claude-code", "gemini": "gemini-cli", "copilot": "copilot-cli"}
# The program's own agent watching, which it has recorded by mistake.
_OBSERVERS = ("observer-sessions",)
_OBSERVED = ("You are a Claude-Mem", "Hello memory agent")
_MANUAL = "manual-"  # how the session of what the user asked to keep begins
_SESSION = ("memory_session_id", "sdk_session_id", "content_session_id", "claude_session_id")
_HOST_SESSION = ("content_session_id", "claude_session_id")
_TIMES = ("created_at_epoch", "created_at")
_NOTE = (
    "id", "project", "type", "title", "subtitle", "text", "narrative", "facts", "concepts",
    "files_read", "files_modified", "discovery_tokens", *_SESSION, *_TIMES,
)  # fmt: skip
_SECTIONS = ("request", "investigated", "learned", "completed", "next_steps", "notes")
# table → its name in an export, and the columns that are read
_TABLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "observations": ("observations", _NOTE),
    "session_summaries": (
        "summaries",
        ("id", "project", *_SECTIONS, "files_read", "files_edited", "discovery_tokens",
         *_SESSION, *_TIMES),
    ),
    "user_prompts": ("prompts", ("id", "prompt_number", "prompt_text", *_SESSION, *_TIMES)),
    "pending_messages": (
        "pending",
        ("id", "tool_name", "tool_input", "tool_response", "last_assistant_message", "cwd",
         *_SESSION, *_TIMES),
    ),
    "memory_items": (
        "items", (*_NOTE, "kind", "project_id", "server_session_id", "legacy_observation_id"),
    ),
}  # fmt: skip
_SESSION_COLUMNS = (
    *_SESSION, "id", "project", "project_id", "platform_source", "custom_title", "title",
    "started_at_epoch", "started_at", "completed_at_epoch", "completed_at",
)  # fmt: skip


class _Pass:
    """One pass over one file."""

    def __init__(self, reading: Reading, places: Places) -> None:
        self.reading, self.places = reading, places
        self.sessions: dict[str, Record] = {}  # by each of the ids it has
        self.told: set[str] = set()  # sessions whose title and time are known
        self.projects: dict[str, str] = {}  # of the server's tables: id → folder or name

    def add_session(self, row: Record) -> None:
        """A session, which two tables may tell of."""
        names = [row[name] for name in (*_SESSION, "id") if isinstance(row.get(name), str)]
        known = next((self.sessions[name] for name in names if name in self.sessions), {})
        told = {name: value for name, value in row.items() if value not in (None, "")}
        self.sessions |= {name: {**told, **known} for name in filter(None, names)}

    def read_record(self, table: str, row: Record) -> Item | None:
        """What a row gives; a row that is not as it should be costs no more than itself."""
        try:
            found: Item | None = getattr(self, f"_read_{table}")(row)
            return found
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            place = f"{table}/{row.get('id', '?')}"
            self.reading.report_bad(place, f"not understood ({type(error).__name__})")
            return None

    def _make(self, table: str, row: Record, kind: str, text: str, **more: Any) -> Item | None:
        """An item in its session and project."""
        session = self._find_session(row)
        project = session.get("project") or row.get("project")
        project = project or self.projects.get(row.get("project_id") or "", "")
        if project in _OBSERVERS or text.startswith(_OBSERVED):
            self.reading.skip("the observer's own")
            return None
        key = _first_text(session, *_HOST_SESSION) or _first_text(row, *_HOST_SESSION)
        agent = to_text(session.get("platform_source") or "claude")
        agent = _HOSTS.get(agent, agent)
        if kind == "prompt" and self.places.has_transcript(key, agent):
            self.reading.skip("in the transcript already")
            return None
        epoch = read_time(*(row.get(name) for name in _TIMES))
        # Its own id is a number that another machine's database has as well.
        ref = f"{table}/{row['id']}:{digest(str(epoch), more.get('title') or text)}"
        if not (key or is_database(self.reading.path)) and self.places.store.find_by_ref(ref):
            self.reading.skip("known already")  # and there with its session, perhaps
            return None
        item = make_import(
            self.reading, self.places, ref, kind, to_text(project or ""), body=text,
            epoch=epoch, session=key, agent=agent, **more,
        )  # fmt: skip
        if key and key not in self.told:
            self.told.add(key)
            self._tell_session(self.reading.sessions[key], session)
        return item

    def _tell_session(self, known: Session, row: Record) -> None:
        started = read_time(row.get("started_at_epoch"), row.get("started_at"))
        ended = read_time(row.get("completed_at_epoch"), row.get("completed_at"))
        self.reading.sessions[known.key] = replace(
            known,
            started=min(started or known.started, known.started),
            ended=max(known.ended, ended),
            title=known.title or _first_text(row, "custom_title", "title"),
        )

    def _find_session(self, row: Record) -> Record:
        names = (row.get(name) for name in (*_SESSION, "server_session_id"))
        return next((self.sessions[one] for one in names if one in self.sessions), {})

    # --- a row of each table ---------------------------------------------------------------------

    def _read_observations(self, row: Record) -> Item | None:
        kind = "observation"
        if to_text(row.get("memory_session_id") or "").startswith(_MANUAL):
            kind = "memory"
        return self._read_note_row("observations", row, kind)

    def _read_memory_items(self, row: Record) -> Item | None:
        if row.get("legacy_observation_id") is not None:
            self.reading.skip("there twice")
            return None
        kinds = {"summary": "summary", "prompt": "prompt", "manual": "memory"}
        kind = kinds.get(to_text(row.get("kind")), "observation")
        return self._read_note_row("memory_items", row, kind)

    def _read_note_row(self, table: str, row: Record, kind: str) -> Item | None:
        texts = ("narrative", "text", "subtitle", "title")
        # An explanation may stand behind the concept.
        concepts = (one.partition(":")[0].strip() for one in read_texts(row.get("concepts")))
        return self._make(
            table, row, kind, _first_text(row, *texts), title=_first_text(row, "title"),
            type="note" if kind == "memory" else _first_text(row, "type"),
            subtitle=_first_text(row, "subtitle"), facts=read_texts(row.get("facts")),
            concepts=tuple(dict.fromkeys(concepts)),
            files_read=read_texts(row.get("files_read")),
            files_modified=read_texts(row.get("files_modified")),
            discovery_tokens=_number(row.get("discovery_tokens")),
        )  # fmt: skip

    def _read_session_summaries(self, row: Record) -> Item | None:
        sections = {name: text for name in _SECTIONS if (text := _first_text(row, name))}
        return self._make(
            "session_summaries", row, "summary",
            _first_text(row, "completed", "learned", "notes", *_SECTIONS),
            title=first_line(_first_text(row, "request", *_SECTIONS)), sections=sections,
            files_read=read_texts(row.get("files_read")),
            files_modified=read_texts(row.get("files_edited")),
            discovery_tokens=_number(row.get("discovery_tokens")),
        )  # fmt: skip

    def _read_user_prompts(self, row: Record) -> Item | None:
        text = _first_text(row, "prompt_text")
        number = _number(row.get("prompt_number"))
        return self._make("user_prompts", row, "prompt", text, role="user", prompt_number=number)

    def _read_pending_messages(self, row: Record) -> Item | None:
        tool = _first_text(row, "tool_name")
        text = f"{_first_text(row, 'tool_input')}\n\n{_first_text(row, 'tool_response')}".strip()
        if not tool:
            text = _first_text(row, "last_assistant_message")
        return self._make(
            "pending_messages", {"project": row.get("cwd"), **row}, "message", text,
            role="tool" if tool else "assistant", tool=tool,
        )  # fmt: skip


def _first_text(row: Record, *names: str) -> str:
    """The first of these columns that says something."""
    for name in names:
        value = row.get(name)
        if isinstance(value, str) and (text := value.strip()):
            return text
    return ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


# --- databases and exports -----------------------------------------------------------------------


def _is_own_file(path: Path) -> bool:
    if is_database(path):
        return has_tables(path, ("sdk_sessions",), ("memory_items", "server_sessions"))
    head = read_head(path, 4096) if path.suffix == ".json" else b""
    return head.lstrip().startswith(b"{") and (b'"observations"' in head or b'"query"' in head)


def _read_memories(reading: Reading, places: Places) -> Iterator[Item]:
    this = _Pass(reading, places)
    yield from _read_database(this) if is_database(reading.path) else _read_export(this)


def _read_database(this: _Pass) -> Iterator[Item]:
    reading = this.reading
    try:
        with Database(reading.path) as database:
            for row in read_rows(reading, database, "projects", ("id", "name", "root_path")):
                this.projects[to_text(row["id"])] = _first_text(row, "root_path", "name")
            for table in ("sdk_sessions", "server_sessions"):
                for row in read_rows(reading, database, table, _SESSION_COLUMNS):
                    this.add_session(row)
            for table, (_, columns) in _TABLES.items():
                for row in read_rows(reading, database, table, columns):
                    if item := this.read_record(table, row):
                        yield item
    except DatabaseProblem as problem:
        reading.report_bad(0, str(problem))


class _Export(msgspec.Struct):
    """An export, or a corpus, which has observations alone."""

    sessions: list[msgspec.Raw] = []
    observations: list[msgspec.Raw] = []
    summaries: list[msgspec.Raw] = []
    prompts: list[msgspec.Raw] = []


def _read_export(this: _Pass) -> Iterator[Item]:
    reading = this.reading
    try:
        export = msgspec.json.decode(read_bytes(reading.path, _LARGEST), type=_Export)
    except msgspec.MsgspecError as error:
        reading.report_bad(0, f"no export of claude-mem ({error})")
        return
    for row in _decode_rows(reading, "sessions", export.sessions):
        this.add_session(row)
    for table, (name, _) in _TABLES.items():
        for row in _decode_rows(reading, name, getattr(export, name, [])):
            if item := this.read_record(table, row):
                yield item


def _decode_rows(reading: Reading, name: str, rows: list[msgspec.Raw]) -> Iterator[Record]:
    for number, raw in enumerate(rows, 1):
        try:
            yield msgspec.json.decode(raw, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            reading.report_bad(f"{name}[{number}]", str(error))


READER = MemoryReader(_is_own_file, _read_memories)
