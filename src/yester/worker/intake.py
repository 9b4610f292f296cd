"""What hooks have left and what they point to, taken in: events first, then transcripts.

A spool file goes when all that follows from it is stored: the event itself, and what its transcript
says. What cannot be taken in is set aside (spool/bad), so that nothing keeps the others out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from yester.agents.descriptors import AGENTS, find_agent
from yester.agents.hooks import BELLS, READ_TRANSCRIPT_AFTER, HookEvent, session_transcripts
from yester.capture.spool import ENDED_WORKER, NewerFormat, Spool, Spooled, read_event
from yester.errors import StoreError
from yester.ingest.events import Events
from yester.model import Source
from yester.worker.answers import Answers
from yester.worker.process import Log
from yester.worker.watchdog import TWICE, Marks, Piece, Watchdog

BATCH = 24  # events in one transaction
SETTLE = 0.15  # seconds a client needs to write down what its hook has told


class _Due(Struct):
    """A transcript that is to be read, when, and the spool files that must stay until it is."""

    path: Path
    when: float
    told: HookEvent
    files: list[Path]


class Intake(Struct):
    """`stored` is called when something was taken in, `refresh` before: an event must be judged by
    settings that are at least as new as it is."""

    spool: Spool
    taker: Events
    log: Log
    watchdog: Watchdog
    marks: Marks
    answers: Answers
    stored: Callable[[], None]
    refresh: Callable[[], None]
    clock: Callable[[], float]
    more: bool = True  # may the spool hold something?
    events: int = 0
    last: float = 0.0  # when something was taken in
    _left: set[str] = set()  # files of a newer yester, or not to be removed
    _waiting: list[Path] = []  # of the spool, as it was last listed
    _due: dict[Path, _Due] = {}  # transcripts to be read
    _opened: _Due | None = None  # the one that is being read
    _reading: Iterator[None] = field(default_factory=lambda: iter(()))

    def __post_init__(self) -> None:
        self.last = self.clock()

    @property
    def at_work(self) -> bool:
        """Is there something to do at once?"""
        return self.more or self._opened is not None

    def next_due(self) -> float:
        """When the next transcript is to be read."""
        return min((due.when for due in self._due.values()), default=float("inf"))

    def make_all_due(self) -> bool:
        """Let everything be due now; is there anything?"""
        for due in self._due.values():
            due.when = 0.0
        return self.at_work or bool(self._due)

    def look_again(self) -> None:
        """At everything, also what could not be taken in before."""
        self.more = True
        self._left.clear()

    def work_until(self, until: float) -> None:
        while self.more and self.clock() < until:
            self.more = self._take_batch()
        while not self.more and self.clock() < until and self._read_on():
            pass

    # --- events ------------------------------------------------------------------------------

    def _take_batch(self) -> bool:
        """A batch from the spool; is there more?"""
        if not self._waiting:  # listed once for many batches: there may be thousands
            held = self._held_files()
            self._waiting = [
                path
                for path in self.spool.list_waiting()
                if path.name not in self._left and path not in held
            ]
            self.refresh()
        # Near an event at which a worker has ended each is taken alone: it may have been one of the
        # others in its batch.
        near = map(_event_piece, self._waiting[:BATCH])
        size = 1 if any(map(self.marks.ended_workers, near)) else BATCH
        now, self._waiting = self._waiting[:size], self._waiting[size:]
        self._store_events(now)
        self.marks.settle(*map(_event_piece, now))
        self.marks.begin_work()
        self.answers.write_ledger(self._left)
        return bool(now)  # until a new listing has nothing: more may have come meanwhile

    def _store_events(self, paths: Sequence[Path]) -> None:
        self.watchdog.watch()
        self.marks.begin_work(*map(_event_piece, paths))
        batch = {path: spooled for path in paths if (spooled := self._read_event(path))}
        if not batch:
            return
        try:
            taken = self.taker.take_batch([*batch.values()], self.marks.begin_work)
        except (StoreError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 -- one event's fault must not keep the others out
            for path in batch:
                if len(batch) > 1:
                    self._store_events([path])
                else:
                    self.log.say_failure(f"taking {path.name}", error)
                    self._set_aside(path, "could not be taken in")
            return
        self.events += len(taken.new)
        self.last = self.clock()
        self.stored()
        self.answers.note_deeds(taken.new)
        told = {one.id: one for one in (*taken.new, *taken.again)}
        for path in batch:
            if path.name in taken.unreadable:
                self._set_aside(path, "is not a JSON object")
            elif path.name in told:
                self._follow_up(path, told[path.name])
        self._let_go(path for path in batch if path.name not in taken.unreadable)

    def _read_event(self, path: Path) -> Spooled | None:
        """None: it was set aside, or stays where it is."""
        try:
            if self.marks.ended_workers(_event_piece(path)) < TWICE:
                return read_event(path)
            self._set_aside(path, ENDED_WORKER)
        except FileNotFoundError:
            pass
        except NewerFormat:
            self._left.add(path.name)
        except ValueError:
            self._set_aside(path, "is not an event")
        except OSError as error:
            self._leave_in_spool(path, "reading", error)
        return None

    def _follow_up(self, path: Path, told: HookEvent) -> None:
        """What follows from an event: its hook may yet ask, its transcript has something new."""
        self.answers.remember_event(told)
        if told.what in (BELLS if find_agent(told.agent).bell else READ_TRANSCRIPT_AFTER):
            for transcript in session_transcripts(told, self.taker.config):
                self._read_later(transcript, told, [path])

    def _held_files(self) -> set[Path]:
        """Spool files that go when the transcripts they name have been read."""
        due = [*self._due.values(), *filter(None, [self._opened])]
        return {path for one in due for path in one.files}

    def _let_go(self, paths: Iterable[Path]) -> None:
        """Remove spool files nobody holds any more: all that follows from them is stored."""
        held = self._held_files()
        for path in paths:
            try:
                if path not in held:
                    path.unlink(missing_ok=True)
            except OSError as error:
                self._leave_in_spool(path, "removing", error)

    def _set_aside(self, path: Path, why: str, transcript: Path | None = None) -> None:
        try:
            self.spool.set_aside(path, why, transcript)
            self.log.say(f"{path.name} {why}; moved to spool/bad")
        except OSError as error:
            self._leave_in_spool(path, "setting aside", error)

    def _leave_in_spool(self, path: Path, what: str, error: OSError) -> None:
        """A spool file that cannot be handled stays where it is, for later."""
        self._left.add(path.name)
        self.log.say_failure(f"{what} {path.name}", error)

    # --- transcripts -------------------------------------------------------------------------

    def _read_later(self, transcript: Path, told: HookEvent, files: list[Path]) -> None:
        known = self._due.get(transcript)
        files = [*known.files, *files] if known else files
        self._due[transcript] = _Due(transcript, self.clock() + SETTLE, told, files)

    def read_now(self, told: HookEvent, until: float) -> None:
        """What a session's transcript has new, as far as there is time."""
        for transcript in session_transcripts(told, self.taker.config):
            self._read_later(transcript, told, [])
            self._due[transcript].when = 0.0
        while self.clock() < until and self._read_on():
            pass

    def _read_on(self) -> bool:
        """A few steps through a transcript; False when there is nothing to read now."""
        due = self._opened
        if due is None:
            due = min(self._due.values(), key=lambda one: one.when, default=None)
            if due is None or due.when > self.clock():
                return False
            ended = self.marks.ended_workers(self._transcript_piece(due.path))
            del self._due[due.path]
            if ended >= TWICE:
                self._leave_unread(due)
                return True
            self._opened, self._reading = due, self._read_transcript(due.path, due.told)
        self.watchdog.watch()
        self.marks.begin_work(self._transcript_piece(due.path))
        try:
            finished = any(next(self._reading, self) is self for _ in range(20))
        except (StoreError, OSError):
            self._opened = None
            self._read_later(due.path, due.told, due.files)
            raise
        if finished:
            self._opened = None
            self.marks.settle(Piece("transcript", str(due.path)))
            self._let_go(due.files)
            if self.spool.put_back(due.path):
                self.more = True
        return True

    def _transcript_piece(self, path: Path) -> Piece:
        """A transcript from where the store has it: who has come further was not stopped by it."""
        try:
            size = path.stat().st_size
            known = next(iter(self.taker.store.entries(Source, {"path": str(path)})), None)
        except (OSError, ValueError):  # no file, or a name that is none
            return Piece("transcript", str(path))
        reached = known.offset + known.line if known else 0  # some readers count only one of them
        return Piece("transcript", str(path), reached, size)

    def _leave_unread(self, due: _Due) -> None:
        """Until it grows, another version comes, or `doctor --fix` puts its events back."""
        self.log.say("reading a transcript failed: it has ended the worker twice")
        for path in due.files:
            self._set_aside(path, f"came with a transcript that {ENDED_WORKER}", due.path)

    def _read_transcript(self, path: Path, told: HookEvent) -> Iterator[None]:
        agent = AGENTS.get(told.agent)
        if agent is None or self.taker.refusal(told) or not os.path.isfile(path):  # noqa: PTH113
            return  # (Path.is_file() raises where a folder is closed to us)
        ingest = self.taker.open_ingest(self.marks.begin_work)
        for _ in ingest.read_slices(agent, path):
            yield
        ingest.flush()
        self.marks.begin_work()
        self.taker.find_prompts(told.session, told.agent)
        self.taker.owe_compacted(ingest.compactions)
        self.stored()
        if ingest.report.failed:
            self.log.say(f"a transcript of {told.agent} could not be read")


def _event_piece(path: Path) -> Piece:
    return Piece("event", path.name)
