"""What hooks have left and what they point to, taken in: events first, then transcripts.

A spool file goes when all that follows from it is stored: the event itself, and what its transcript
says. What cannot be taken in is set aside (spool/bad), so that nothing keeps the others out.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from yester.agents.descriptors import AGENTS
from yester.agents.hooks import READ_TRANSCRIPT_AFTER, HookEvent
from yester.capture.spool import ENDED_WORKER, NewerFormat, Spool, Spooled, read_event
from yester.errors import StoreError
from yester.ingest.events import Events
from yester.model import Source
from yester.worker.answers import Answers
from yester.worker.process import Log
from yester.worker.watchdog import TWICE, Marks, Piece, Watchdog

BATCH = 24  # events in one transaction
SETTLE = 0.15  # seconds a client needs to write down what its hook has told


@dataclass(slots=True)
class _Due:
    """A transcript that is to be read, when, and the spool files that must stay until it is."""

    when: float
    told: HookEvent
    files: list[Path]


class Intake:
    """`stored` is called when something was taken in."""

    def __init__(
        self,
        spool: Spool,
        taker: Events,
        log: Log,
        watchdog: Watchdog,
        marks: Marks,
        answers: Answers,
        stored: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._spool, self._taker, self._log = spool, taker, log
        self._watchdog, self._marks = watchdog, marks
        self._answers, self._stored, self._clock = answers, stored, clock
        self.more = True  # may the spool hold something?
        self.events = 0
        self.last = clock()  # when something was taken in
        self._left: set[str] = set()  # spool files of a newer yester, or that cannot be removed
        self._waiting: list[Path] = []  # of the spool, as it was last listed
        self._held: Counter[Path] = Counter()  # spool files that go when theirs have been read
        self._due: dict[Path, _Due] = {}  # transcripts to be read
        self._reading: Iterator[None] | None = None
        self._opened = Path()  # the transcript it goes through

    @property
    def at_work(self) -> bool:
        """Is there something to do at once?"""
        return self.more or self._reading is not None

    def next_due(self) -> float | None:
        """When the next transcript is to be read."""
        return min((due.when for due in self._due.values()), default=None)

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
        while self.more and self._clock() < until:
            self.more = self._take_batch()
        while not self.more and self._clock() < until and self._read_on():
            pass

    # --- events ------------------------------------------------------------------------------

    def _take_batch(self) -> bool:
        """A batch from the spool; is there more?"""
        if not self._waiting:  # listed once for many batches: there may be thousands
            self._waiting = [
                path
                for path in self._spool.list_waiting()
                if path.name not in self._left and path not in self._held
            ]
        now = self._next_batch()
        batch: list[tuple[Path, Spooled]] = []
        self._watchdog.watch()
        self._marks.begin(*map(_event_piece, now))
        for path in now:
            if self._marks.ended_workers(_event_piece(path)) >= TWICE:
                self._marks.settle(_event_piece(path))
                self._set_aside(path, ENDED_WORKER)
                continue
            try:
                batch.append((path, read_event(path)))
            except FileNotFoundError:
                continue
            except NewerFormat:
                self._left.add(path.name)
            except ValueError:
                self._set_aside(path, "is not an event")
            except OSError as error:
                self._leave_in_spool(path, "reading", error)
        if batch:
            self._store_batch(batch)
            self._marks.settle(*(_event_piece(path) for path, _ in batch))
        self._marks.rest()
        self._answers.write_ledger(self._left)
        return bool(now)  # until a new listing has nothing: more may have come meanwhile

    def _next_batch(self) -> list[Path]:
        """Of what waits. Near an event at which a worker has ended each is taken alone: it may have
        been one of the others in its batch."""
        near = map(_event_piece, self._waiting[:BATCH])
        size = 1 if any(map(self._marks.ended_workers, near)) else BATCH
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        return batch

    def _store_batch(self, batch: list[tuple[Path, Spooled]]) -> None:
        self._marks.begin(*(_event_piece(path) for path, _ in batch))
        try:
            taken = self._taker.take_batch([spooled for _, spooled in batch], self._marks.rest)
        except (StoreError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 -- one event's fault must not keep the others out
            if len(batch) > 1:
                for one in batch:
                    self._store_batch([one])
                return
            self._log.say_failure(f"taking {batch[0][1].id}", error)
            self._set_aside(batch[0][0], "could not be taken in")
            return
        self.events += len(taken.told)
        self.last = self._clock()
        self._stored()
        told = {**taken.told, **taken.again}
        self._answers.note_edits(list(taken.told.values()))
        for path, spooled in batch:
            if spooled.id in taken.unreadable:
                self._set_aside(path, "is not a JSON object")
                continue
            self._held[path] = 1
            if spooled.id in told:
                self._follow_up(path, spooled.id, told[spooled.id])
            self._let_go([path])

    def _follow_up(self, path: Path, id_: str, told: HookEvent) -> None:
        """What follows from an event: its hook may yet ask, its transcript has something new."""
        self._answers.remember_event(id_, told)
        if told.what in READ_TRANSCRIPT_AFTER:
            for transcript in told.transcripts:
                self._held[path] += 1
                self._read_later(transcript, told, [path])

    def _set_aside(self, path: Path, why: str, transcript: Path | None = None) -> None:
        try:
            self._spool.set_aside(path, why, transcript)
            self._log.say(f"{path.name} {why}; moved to spool/bad")
        except OSError as error:
            self._leave_in_spool(path, "setting aside", error)

    def _let_go(self, paths: Iterable[Path]) -> None:
        """Remove spool files nobody holds any more: all that follows from them is stored."""
        for path in paths:
            self._held[path] -= 1
            if self._held[path] > 0:
                continue
            del self._held[path]
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                self._leave_in_spool(path, "removing", error)

    def _leave_in_spool(self, path: Path, what: str, error: OSError) -> None:
        """A spool file that cannot be handled stays where it is, for later."""
        self._left.add(path.name)
        self._log.say_failure(f"{what} {path.name}", error)

    # --- transcripts -------------------------------------------------------------------------

    def _read_later(self, transcript: Path, told: HookEvent, files: list[Path]) -> None:
        known = self._due.get(transcript)
        files = [*known.files, *files] if known else files
        self._due[transcript] = _Due(self._clock() + SETTLE, told, files)

    def _read_on(self) -> bool:
        """A few steps through a transcript; False when there is nothing to read now."""
        if self._reading is None:
            path = min(self._due, key=lambda p: self._due[p].when, default=None)
            if path is None or self._due[path].when > self._clock():
                return False
            ended = self._marks.ended_workers(self._transcript_piece(path))
            due = self._due.pop(path)
            if ended >= TWICE:
                self._leave_unread(path, due.files)
                return True
            self._reading, self._opened = self._read_and_release(path, due), path
        self._watchdog.watch()
        self._marks.begin(self._transcript_piece(self._opened))
        for _ in range(20):
            if next(self._reading, self) is self:
                self._reading = None
                break
        return True

    def _transcript_piece(self, path: Path) -> Piece:
        """A transcript from where the store has it: who has come further was not stopped by it."""
        try:
            size = path.stat().st_size
            known = next(iter(self._taker.store.entries(Source, {"path": str(path)})), None)
        except (OSError, ValueError):  # no file, or a name that is none
            return Piece("transcript", str(path))
        reached = known.offset + known.line if known else 0  # some readers count only one of them
        return Piece("transcript", str(path), reached, size)

    def _leave_unread(self, transcript: Path, files: list[Path]) -> None:
        """Until it grows, another version comes, or `doctor --fix` puts its events back."""
        self._log.say("reading a transcript failed: it has ended the worker twice")
        for path in files:
            del self._held[path]
            self._set_aside(path, f"came with a transcript that {ENDED_WORKER}", transcript)

    def _read_and_release(self, path: Path, due: _Due) -> Iterator[None]:
        try:
            yield from self._read_transcript(path, due.told)
        except (StoreError, OSError):
            self._reading = None
            self._read_later(path, due.told, due.files)
            raise
        self._marks.settle(Piece("transcript", str(path)))
        self._let_go(due.files)
        if self._spool.put_back(path):
            self.more = True

    def _read_transcript(self, path: Path, told: HookEvent) -> Iterator[None]:
        agent = AGENTS.get(told.agent)
        if agent is None or self._taker.refusal(told) or not os.path.isfile(path):  # noqa: PTH113
            return  # (Path.is_file() raises where a folder is closed to us)
        ingest = self._taker.open_ingest(self._marks.rest)
        for _ in ingest.read_slices(agent, path):
            yield
        ingest.flush()
        self._marks.rest()
        self._taker.find_prompts(told.session, told.agent)
        self._stored()
        if ingest.report.failed:
            self._log.say(f"a transcript of {told.agent} could not be read")


def _event_piece(path: Path) -> Piece:
    return Piece("event", path.name)
