"""Transcripts and items into the store: prepared outside the write lock, written in short batches.

A batch holds items together with the places their transcripts have been read to, so after Ctrl-C
or kill -9 the next run goes on where the last committed batch ended, and nothing is stored twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from errno import EINVAL
from functools import partial
from hashlib import blake2b
from pathlib import Path
from stat import S_ISREG
from typing import Any

import msgspec
from msgspec import Struct, field

from yester.agents.base import Options, Reader, Reading, load_reader, stamp_transcript
from yester.agents.descriptors import Agent
from yester.capture.rules import Rules
from yester.errors import YesterError
from yester.files import open_file
from yester.ingest import prepare
from yester.known_secrets import FoundSecrets, SessionSecrets
from yester.model import Entry, Item, Muted, Project, PutCounts, Session, Skipped, Source, replace
from yester.project import EXCLUDED, Projects
from yester.redact import redact, redact_value
from yester.store import find_item, maintenance_of
from yester.store.contract import Store

# The write lock is held for one batch: other writers (a hook's event) must not wait longer.
_LOCK_SECONDS = 0.18
_SMALLEST, _LARGEST = 200, 4_000
_LARGEST_TEXT = 8_000_000  # characters waiting in one batch, whatever their number
_FINGERPRINT = 1024
_SQLITE = b"SQLite format 3\0"
_EXCLUDED = "excluded"  # in a source's state: by which rules something was left out of it
_SPOKEN = ("title", "todos", "tasks", "queued")  # in a source's state: what somebody said


class Report(Struct):
    """What a run did."""

    files: int = 0
    unchanged: int = 0
    failed: int = 0
    bytes: int = 0
    messages: int = 0
    put: PutCounts = field(default_factory=PutCounts)
    skipped: Counter[str] = field(default_factory=Counter)
    problems: list[str] = []
    secrets_elsewhere: int = 0  # items that held one which another item of the session gave away


class _Pending(Struct):
    """What is collected for the next batch."""

    entries: list[Entry] = []
    text: int = 0  # characters
    projects: dict[str, Project] = {}
    sessions: dict[tuple[str, str], Session] = {}
    sources: dict[str, tuple[Source, Counter[str]]] = {}


class Ingest(Struct, dict=True):
    """Collects prepared items and writes them in batches sized to keep the lock short."""

    store: Store
    projects: Projects
    options: Options
    rules: Rules = field(default_factory=Rules)
    before_storing: Callable[[], None] = lambda: None  # it may then have to wait for other writers
    found: FoundSecrets | None = None  # in which sessions; without it, in none
    clock: Callable[[], float] = time.monotonic
    find_reader: Callable[[str], Reader] = load_reader
    report: Report = field(default_factory=Report)
    compactions: list[Item] = []  # that nobody had told of
    _unnamed: set[str] = set()  # sessions whose first prompt may not be kept
    _shown: dict[tuple[str, str], list[prepare.Shown]] = {}
    _size: int = 1_000
    _pending: _Pending = field(default_factory=_Pending)

    def __post_init__(self) -> None:
        self._muted = {one.session for one in self.store.entries(Muted)}

    def add_entry(self, entry: Entry, project: Project | None = None) -> None:
        if project is not None:
            self._pending.projects[project.key] = project
        if entry.item.type == "compact" and not self.store.find_by_ref(entry.item.ref):
            self.compactions.append(entry.item)
        self._pending.entries.append(entry)
        self._pending.text += len(entry.item.body)

    def _refusal(self, item: Item) -> str:
        """Why this may not be kept, or ""."""
        if item.project == EXCLUDED.key:
            return "excluded"
        root = self.projects.by_key(item.project).root
        if item.session in self._muted or self.rules.is_off(root, item.session, item.epoch):
            return "off"
        return "own answer" if prepare.is_own_answer(item) else ""

    def _find_shown(self, item: Item) -> list[prepare.Shown]:
        """What the agent was shown in the session."""
        key = (item.session, item.agent)
        if key not in self._shown:
            known = self.store.session(*key) if item.session else None
            self._shown[key] = prepare.shown_texts(self.store, known.id, known.key) if known else []
        return self._shown[key]

    def _is_outdated(self, item: Item) -> bool:
        """Is a call without its result stored with it? A hook told it before the client had written
        it down; the transcript may not be read again for long (a sub-agent's is not)."""
        if item.call is None or item.call.result is not None:
            return False
        old = find_item(self.store, item.identity)
        return old is not None and prepare.is_beginning(item, old)

    @property
    def is_full(self) -> bool:
        return len(self._pending.entries) >= self._size or self._pending.text >= _LARGEST_TEXT

    def flush(self) -> PutCounts:
        """Write what has been collected; all of it or, on an error, nothing."""
        pending = self._pending
        if not (pending.entries or pending.sources):
            return PutCounts()
        self.before_storing()
        began = self.clock()
        with self.store.transaction("items"):
            for project in pending.projects.values():
                self.store.put_project(project)
            for session in pending.sessions.values():
                self.store.put_session(session)
            entries = [entry for entry in pending.entries if not self._is_outdated(entry.item)]
            result = self.store.put(self._hide_found(entries))
            for source, skipped in pending.sources.values():
                left_out = [Skipped(source.agent, why, n) for why, n in skipped.items()]
                self.store.append([source, *left_out])
            if self.found:
                self.report.secrets_elsewhere += prepare.spread_secrets(self.store, self.found)
        if self.found:
            self.found.changed.clear()
        if pending.entries:
            pace = _LOCK_SECONDS / max(self.clock() - began, 0.001)
            fitting = int(len(pending.entries) * pace)
            self._size = min(max(fitting, _SMALLEST), _LARGEST)
        self.report.put += result
        self._pending = _Pending()
        return result

    def _hide_found(self, entries: list[Entry]) -> list[Entry]:
        """Those that stand before the place where a value was known to be a secret, without it."""
        found = self.found
        if not found:
            return entries
        hidden = [prepare.hide_found(entry, found) for entry in entries]
        changed = zip(hidden, entries, strict=True)
        self.report.secrets_elsewhere += sum(new is not old for new, old in changed)
        return hidden

    def read_transcript(self, agent: Agent, path: Path) -> None:
        """Read a transcript from where the last run ended; an unchanged one costs a stat."""
        for _ in self.read_slices(agent, path):
            pass

    def read_slices(self, agent: Agent, path: Path) -> Iterator[int]:
        """The same in small steps, for a caller that has other things to do between them; yields
        how many bytes of the file each has dealt with."""
        try:
            yield from self._read_file(agent, path)
        except YesterError:
            raise  # the store, not the transcript
        except Exception as error:  # noqa: BLE001 -- one reader's fault must not cost the others
            reason = f", a fault in yester ({type(error).__name__}: {error})"
            if isinstance(error, OSError):
                reason = f" ({error.strerror or error})"
            self.report.failed += 1
            self.report.problems.append(f"{path}: cannot be read{reason}")

    def _read_file(self, agent: Agent, path: Path) -> Iterator[int]:
        found = path.stat()
        if not S_ISREG(found.st_mode):
            raise OSError(EINVAL, "not a regular file")
        reader = self.find_reader(agent.name)
        size, mtime_ns = stamp_transcript(path)
        known = next(iter(self.store.entries(Source, {"path": str(path)})), None)
        left_out = known.state.get(_EXCLUDED) if known else None
        if left_out is not None and left_out != self.rules.fingerprint():
            known = None  # the user has changed what is excluded: begin again
        if known and (known.size, known.mtime_ns) == (size, mtime_ns):
            self.report.unchanged += 1
            yield found.st_size
            return
        reading = Reading(path, self.projects, self.options)
        if known and found.st_size >= known.offset and _head_hash(path, known.head) == known.head:
            reading.offset, reading.line = known.offset, known.line
            reading.state = self._in_present_project(known.state)
        source = Source(str(path), agent.name, size, mtime_ns, 0, 0, _head_hash(path))
        begun = shown = reading.offset
        self.report.files += 1
        yield begun
        for item in reader.read_items(reading):
            if reason := self._refusal(item):
                reading.skip(reason)
                reading.excluded = reading.excluded or reason == "excluded"
                if item.kind == "prompt" and item.title:
                    self._unnamed.add(item.session)
            else:
                self.add_entry(
                    prepare.mark_echo(
                        prepare.prepare_item(item, found=self.found),
                        partial(self._find_shown, item),
                    )
                )
            before, shown = shown, max(shown, reading.offset)
            yield shown - before
            if self.is_full:
                # Unfinished: no size can match it.
                self._note_source(replace(source, size=-1, mtime_ns=0), reading)
                self.flush()
        self._note_source(source, reading)
        self.report.bytes += found.st_size - begun
        self.report.messages += reading.messages
        self.report.problems += reading.problems
        if self.is_full:
            self.flush()
        yield found.st_size - shown

    def _known_in(self, session: str) -> SessionSecrets | None:
        return self.found.of_session(session) if self.found else None

    def _in_present_project(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """A session's project may have been renamed or joined since its transcript was last read:
        reading on must not make it anew."""
        key, cwd = state.get("project"), state.get("cwd")
        if not key or not cwd or key in {one.key for one in self.store.projects()}:
            return state
        return {**state, "project": self.projects.by_folder(cwd).key}

    def _note_source(self, source: Source, reading: Reading) -> None:
        state = msgspec.to_builtins(reading.state) if reading.state is not None else {}
        silent = self._muted | self._unnamed
        if state.get("session") in silent or state.get("project") == EXCLUDED.key:
            state = {name: value for name, value in state.items() if name not in _SPOKEN}
        if reading.excluded:
            state[_EXCLUDED] = self.rules.fingerprint()
        state = redact_value(state, self._known_in(str(state.get("session") or "")))
        source = replace(source, offset=reading.offset, line=reading.line, state=state)
        self._pending.sources[source.path] = (source, reading.skipped)
        self.report.skipped += reading.skipped
        reading.skipped = Counter()
        for session in reading.sessions.values():
            if session.project == EXCLUDED.key or session.key in self._muted:
                continue
            if reading.noted.get(session.key) == session:
                continue  # a database may hold thousands
            reading.noted[session.key] = session
            known = self._known_in(session.key)
            title = "" if session.key in silent else redact(session.title, known=known)
            branch, cwd = (redact(text, known=known) for text in (session.branch, session.cwd))
            clean = replace(session, title=title, branch=branch, cwd=cwd)
            self._pending.sessions[session.key, session.agent] = clean
            self._pending.projects[session.project] = self.projects.by_key(session.project)


def _head_hash(path: Path, like: str = "") -> str:
    """The first bytes of a file as "length:hash"; `like` says how many were taken before.

    A database counts its pages there: it is the same file while its inode is the same.
    """
    length = int(like.split(":", 1)[0]) if like else _FINGERPRINT
    with open_file(path) as file:
        head = file.read(max(length, len(_SQLITE)))
    if head.startswith(_SQLITE):
        return f"0:inode {path.stat().st_ino}"
    head = head[:length]
    return f"{len(head)}:{blake2b(head, digest_size=8).hexdigest()}"


def add_items(store: Store, items: Iterable[tuple[Item, Project]]) -> PutCounts:
    """Items of a program with their projects, in batches; each batch is all or nothing."""
    rebuild_if_stale(store)
    ingest = Ingest(store, Projects({}), Options())
    for item, project in items:
        ingest.add_entry(prepare.prepare_item(item), project)
        if ingest.is_full:
            ingest.flush()
    ingest.flush()
    return ingest.report.put


def rebuild_if_stale(store: Store) -> int:
    """Another version's terms must not be mixed with ours: build the index anew before writing."""
    care = maintenance_of(store)
    if not care.stale():
        return 0
    with store.transaction("index"):
        return care.reindex()
