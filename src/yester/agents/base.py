"""What reads an agent's transcripts, how far it is, and the items it makes of them.

A reader yields items of one file. It streams, keeps its progress in a `Reading` so that the caller
can commit at any item and resume there, and never stops for a bad record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import msgspec

from yester.agents.descriptors import Agent
from yester.agents.values import (
    Record,
    decode_object,
    digest,
    first_line,
    input_fields,
    join_fields,
    join_output,
    nested_text,
    parse_time,
    relative_path,
    to_text,
    todo_text,
    trim_text,
)
from yester.config import Config
from yester.model import Item, Session, ToolCall, replace
from yester.project import Projects, files_root
from yester.spans import move_spans
from yester.tables import load_pattern, load_table

_PROBLEMS_KEPT = 20

S = TypeVar("S")


class Options(msgspec.Struct, frozen=True):
    thinking: bool = True
    subagents: bool = True


class Reading(msgspec.Struct):
    """How far one pass over one transcript is, and what it met besides items.

    `offset`, `line` and `state` name a place from which reading on yields everything not yet
    yielded (and perhaps some of it again, which identity makes harmless).
    """

    path: Path
    projects: Projects
    options: Options
    offset: int = 0
    line: int = 0
    state: Any = None  # the reader's own; a mapping when it comes back from the store
    messages: int = 0
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    excluded: bool = False  # something was left out because of its folder
    problems: list[str] = []
    sessions: dict[str, Session] = {}  # those met so far, by key
    noted: dict[str, Session] = {}  # as they were last written

    def load_state(self, kind: type[S]) -> S:
        """What the reader remembered; what another version has stored begins empty."""
        if isinstance(self.state, kind):
            return self.state
        try:
            return msgspec.convert(dict(self.state or {}), kind)
        except (msgspec.ValidationError, TypeError, ValueError):
            return kind()

    @property
    def modified_at(self) -> int:
        """When the transcript was changed last, in milliseconds."""
        return stamp_transcript(self.path)[1] // 1_000_000

    def keeps(self, item: Item) -> bool:
        """Is it to be kept? What is not is counted."""
        if item.actor and not self.options.subagents:
            self.skip("sub-agent")
        elif item.role == "thinking" and not self.options.thinking:
            self.skip("thinking")
        elif item.tool.lower() in BOOKKEEPING:
            self.skip(f"{item.tool} call")
        elif not item.body.strip():
            self.skip("empty")
        else:
            return True
        return False

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1

    def report_bad(self, line: int | str, reason: str) -> None:
        """A record that cannot be read: counted; the first ones are named with file:line, or with
        what else a record is known by."""
        self.skipped["unreadable"] += 1
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(f"{self.path}:{line}: {reason}")

    def decode_cell(self, raw: Any, kind: str, id_: str, row: int) -> dict[str, Any] | None:
        """The JSON object in a row of a database; a cleared one is counted."""
        found = decode_object(raw)
        if found is None and raw in (None, b"null"):
            self.skip(f"cleared {kind}")
        elif found is None:
            self.report_bad(row, f"{kind} {id_} is not a JSON object")
        return found


def stamp_transcript(path: Path) -> tuple[int, int]:
    """(size, mtime in ns) of what changes whenever there is something new to read: a database's
    write-ahead log changes before the database."""
    log = path.with_name(f"{path.name}-wal")
    stats = [one.stat() for one in (path, log) if one is path or one.exists()]
    return sum(one.st_size for one in stats), max(one.st_mtime_ns for one in stats)


class Reader(NamedTuple):
    """What an agent's module knows of its transcripts; kept there as `READER`."""

    is_transcript: Callable[[Path], bool]  # is this file one of the agent's?
    parse_items: Callable[[Reading], Iterator[Item]]  # all that it holds

    def read_items(self, reading: Reading) -> Iterator[Item]:
        """What of a transcript is to be kept."""
        return filter(reading.keeps, self.parse_items(reading))


def load_reader(agent: str) -> Reader:
    """The reader of an agent, by its name."""
    reader: Reader = import_module(f"yester.agents.{agent.replace('-', '_')}").READER
    return reader


def list_folders(agent: Agent, config: Config) -> list[Path]:
    """Where an agent keeps its files."""
    named = agent.folders
    texts = config.texts(named) if isinstance(named, str) else named
    return [Path(text).expanduser() for text in texts]


def find_transcripts(agent: Agent, config: Config) -> Iterator[Path]:
    """The transcripts where this agent keeps them."""
    for above in list_folders(agent, config):
        for pattern in agent.transcripts:
            yield from sorted(above.glob(pattern))


# --- what all clients' tools and texts are known by ----------------------------------------------


class Tool(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    input: tuple[str, ...]
    file: str = ""


_TABLE = load_table("transcripts")
TOOLS = {name: row for row in msgspec.convert(_TABLE["tool"], list[Tool]) for name in row.names}
_UNTITLED = re.compile(_TABLE["untitled"], re.S)
TODO_TOOLS = frozenset(_TABLE["todo"])
BOOKKEEPING = TODO_TOOLS.union(_TABLE["bookkeeping"])
CLIENT_TEXTS: Mapping[str, Mapping[str, list[str]]] = _TABLE["texts"]
_CLEANINGS = [
    (row, re.compile(row["pattern"].replace("\n", ""), re.S | re.M)) for row in _TABLE["clean"]
]


def find_title(*names: Any) -> str:
    """The first that is a title; a client's word for having none is none."""
    titles = (name.strip() for name in names if isinstance(name, str))
    return next((one for one in titles if one and not _UNTITLED.fullmatch(one)), "")


def name_prompt(text: str) -> str:
    """What a prompt is called: its first line, of a plan that is handed over the plan's own."""
    return first_line(load_pattern("statements", "plan").sub("", text, count=1))


def treat_text(client: str, text: str) -> str:
    """What is to become of a text in a user message, as the table says; "" for what was typed."""
    rows = CLIENT_TEXTS[client].items()
    return next((what for what, starts in rows if text.startswith(tuple(starts))), "")


def strip_client_text(client: str, of: str, text: str, tool: str = "") -> str:
    """A prompt, answer, result or summary without what the client has put into it."""
    for row, pattern in _CLEANINGS:
        if row["client"] == client and of in row["of"] and row.get("tool", tool) == tool:
            text = pattern.sub(row.get("to", ""), text)
    return text


# --- items ---------------------------------------------------------------------------------------

_WEAKEST_ID = 8  # characters; local models number their calls, "call_0" in every session
_RANDOM = re.compile(r"[A-Za-z0-9]{16}")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.*\S)\s*$", re.M)
_LONGEST_OPTION, _OPTIONS_KEPT = 200, 20  # characters, number
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class State(msgspec.Struct):
    """What must be known to go on reading in the middle of a file."""

    session: str = ""
    actor: str = ""  # the sub-agent whose file this is
    cwd: str = ""
    branch: str = ""
    project: str = ""
    root: str = ""
    title: str = ""
    prompts: int = 0
    turn: str = ""  # the client's id of the prompt that is worked on


class Conversation:
    """Where in a client's history we are, and the items for what is met there."""

    agent: ClassVar[str]
    client = ""  # it happened in, if not the reader's own

    def __init__(self, reading: Reading, state: State) -> None:
        self.reading = reading
        self.state = state
        self.actor = state.actor  # who does what is read now
        self.number = reading.line
        self.timestamp = ""
        self.epoch = 0

    # --- where and when ----------------------------------------------------------------------

    def place_record(self, timestamp: Any, cwd: Any = "", branch: Any = "") -> None:
        """Time and session of a record; a session's first folder decides its project."""
        if isinstance(timestamp, str):
            self.timestamp = timestamp
            self.epoch = parse_time(timestamp) or self.epoch
        if isinstance(branch, str) and branch:
            self.state.branch = branch
        if isinstance(cwd, str) and cwd and not self.state.project:
            self.place_session(cwd)
        if self.epoch:
            self.register_session()

    def place_session(self, cwd: str) -> None:
        project = self.reading.projects.by_folder(cwd)
        self.state.cwd, self.state.project = cwd, project.key
        self.state.root = files_root(project, cwd)

    def register_session(self) -> None:
        """Register the session with its span and title, if its project is known."""
        state, sessions = self.state, self.reading.sessions
        if not state.project:
            return
        known = sessions.get(state.session) or Session(
            state.session, self.client or self.agent, state.project, cwd=state.cwd,
            branch=state.branch, transcript=self.session_file(),
        )  # fmt: skip
        title = known.title if self.actor else state.title
        sessions[state.session] = replace(known.widen_to(self.epoch), title=title)

    def session_file(self) -> str:
        return str(self.reading.path)

    def file_path(self, path: str) -> str:
        """A path as seen from the project's root; agents also name it from where they are."""
        if self.state.cwd and not (path.startswith(("/", "\\", "~")) or _DRIVE.match(path)):
            path = f"{self.state.cwd.rstrip('/')}/{path.removeprefix('./')}"
        return relative_path(path, self.state.root)

    def file_paths(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self.file_path, paths)))

    # --- what was said -----------------------------------------------------------------------

    def make_ref(self, own: Any, *parts: str) -> str:
        """The client's own id, or one made of content: files are rewritten, line numbers move."""
        if isinstance(own, str) and own:
            return own
        place = self.timestamp or str(self.number)
        return f"{self.state.session}:{digest(place, *parts)}"

    def make_item(self, ref: str, kind: str, role: str, body: str, **more: Any) -> Item:
        self.register_session()
        self.reading.messages += 1
        state = self.state
        return Item(
            ref=ref, kind=kind, project=state.project or self.reading.projects.by_folder("").key,
            session=state.session, source=self.agent, agent=self.client or self.agent,
            actor=self.actor, role=role, epoch=self.epoch, body=body,
            alias=self.hook_alias(role, body), **{"prompt_number": state.prompts, **more},
        )  # fmt: skip

    def hook_alias(self, role: str, text: str) -> str:
        """What a hook would call this, which knows neither the record's id nor its place.

        Tools have ids that both know.
        """
        if role == "tool":
            return ""
        who = self.actor.rpartition(":")[2]  # its number; its type is told by another file
        return f"hook:{self.state.session}:{digest(self.state.turn, who, role, text.strip())}"

    def count_prompt(self, text: str) -> None:
        """The first prompt names the session."""
        state = self.state
        state.title = state.title or ("" if state.prompts else name_prompt(text))
        state.prompts += 1

    def read_prompt(self, own: Any, text: str, new: bool) -> Iterator[Item]:
        """A prompt of a conversation that is read again when it grows: an earlier one counts."""
        if new:
            yield self.make_prompt(own, text)
        elif not self.actor:
            self.count_prompt(text)

    def make_prompt(self, own: Any, text: str, number: int = 0) -> Item:
        """What the user typed; `number` is that of a prompt which is written again.

        A sub-agent's task is written by the agent that started it, not by a person.
        """
        ref = self.make_ref(own, text)
        if self.actor:
            return self.make_item(ref, "message", "task", text)
        if not number:
            self.count_prompt(text)
            number = self.state.prompts
        return self.make_item(
            ref, "prompt", "user", text, prompt_number=number,
            title=name_prompt(text) if number == 1 else "",
            type="first_prompt" if number == 1 else "", origin="user", trust=1.0,
        )  # fmt: skip

    def make_message(self, own: Any, content: Any, role: str = "assistant") -> Item:
        """An answer, a thought, or the task of a sub-agent."""
        text = nested_text(content)
        return self.make_item(self.make_ref(own, text), "message", role, text.strip())

    def make_notice(
        self, own: Any, text: str, tool: str, origin: str = "tool", call: ToolCall | None = None
    ) -> Item:
        """What a tool says outside of a call, or what came of one that the user made."""
        ref, call = self.make_ref(own, text), call or ToolCall(result=(0, len(text)))
        return self.make_item(ref, "message", "tool", text, tool=tool, origin=origin, call=call)

    def make_summary(self, own: Any, content: Any) -> Item:
        text = nested_text(content)
        ref, body, title = self.make_ref(own, text), text.strip(), self.state.title
        title = f"Summary at compaction: {title}" if title else "Summary"
        return self.make_item(ref, "summary", "assistant", body, type="compact", title=title)

    def make_plan(self, text: str) -> Item:
        ref = f"{self.state.session}:plan:{digest(text)}"
        return self.make_item(ref, "note", "assistant", text, type="plan", title=first_line(text))

    def make_todo(self, todos: Any) -> Iterator[Item]:
        """The todo list as it is now; the one before had the same ref."""
        if text := todo_text(todos):
            title = f"Todo list: {self.state.title}" if self.state.title else "Todo list"
            ref = f"{self.state.session}:todo" + (f":{self.actor}" if self.actor else "")
            yield self.make_item(ref, "note", "assistant", text, type="todo", title=title)

    # --- what was done -----------------------------------------------------------------------

    def make_call(self, key: Any, tool: str, given: Any, within: str = "", **more: Any) -> Item:
        """A tool call without its result; patches and known fields tell the files."""
        given = input_fields(given)
        row = TOOLS.get(tool.lower(), Tool((), ()))
        named = (name for name in _TABLE["file_fields"] if given.get(name))
        file_field = next((name for name in named if isinstance(given[name], str)), "")
        file = given[file_field] if file_field else ""
        wanted = [file_field if name == "file" and file else name for name in row.input]
        chosen = [name for name in wanted if given.get(name)] if row.input else list(given)
        fields = [(name, to_text(given[name])) for name in chosen]
        text, places = join_fields(fields, named=not row.input)
        options, left_out = _read_options(given, chosen)
        call = ToolCall(tuple(places), options=options, cut=left_out)
        files = self.file_paths([file] if file and row.file else [])
        patched = self.file_paths(_PATCHED.findall(text))
        ref = self.make_ref(key, tool, text)
        if len(ref) < _WEAKEST_ID:
            ref = f"{within or f'{self.state.session}:{self.number}'}:{ref}"
        return self.make_item(
            ref, "message", "tool", text, tool=tool, call=call,
            files_read=files if row.file == "read" else (),
            files_modified=files + patched if row.file == "changed" else patched, **more,
        )  # fmt: skip

    def make_answered_call(self, ref: str, key: Any, tool: str, given: Any, result: Result) -> Item:
        """A call and what came of it, where both stand together."""
        return result.complete_call(self.make_call(self.call_ref(key) or ref, tool, given))

    def call_ref(self, key: Any) -> str:
        """A call's own id where that is one: some providers number calls in each session."""
        if not isinstance(key, str) or not key:
            return ""
        return key if _RANDOM.search(key) else f"{self.state.session}:{key}"


class Result(NamedTuple):
    """What came of a call, as the client tells it: in whatever form, with an exit status or not."""

    content: Any
    failed: bool = False
    status: Any = None
    changed: tuple[str, ...] = ()  # files
    changes: tuple[tuple[str, str], ...] = ()  # as `Item.changes`

    @property
    def text(self) -> str:
        return nested_text(self.content)

    def complete_call(self, item: Item) -> Item:
        """A tool call together with this result."""
        told = type(self.status) is int and -(1 << 31) <= self.status < 1 << 32
        status = self.status if told else None
        body, given = join_output(item.body, self.text), trim_text(item.body)
        call = item.call or ToolCall()
        if given != item.body:
            begin = len(item.body) - len(item.body.lstrip("\n"))
            trimmed = ((0, begin, ""), (begin + len(given), len(item.body), ""))
            call = call.move_to(move_spans(call.spans, trimmed))
        place = (len(body) - len(trim_text(self.text)), len(body))
        return replace(
            item,
            body=body,
            call=replace(call, result=place, status=status),
            tags=("error",) if self.failed or status else (),
            files_modified=tuple(dict.fromkeys(item.files_modified + self.changed)),
            changes=self.changes,
        )


def _read_options(given: Record, shown: Iterable[str]) -> tuple[dict[str, str], bool]:
    """The input that is not in a call's text, as far as it is short, and whether some is not."""
    texts = {name: to_text(value) for name, value in given.items() if name not in shown}
    short = {name: text for name, text in texts.items() if len(text) <= _LONGEST_OPTION}
    return dict(list(short.items())[:_OPTIONS_KEPT]), len(texts) > min(len(short), _OPTIONS_KEPT)
