"""What the worker does between hooks when nobody waits for it, a slice at a time.

A job is asked for a slice again and again until it says that there is nothing to do. What waits for
a model has a thread of its own (`threads`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING

from msgspec import Struct

from yester.cards import QUIET
from yester.config import Config
from yester.errors import SourceError
from yester.model import Queue, Waiting, replace
from yester.store.contract import Store
from yester.worker.process import Log, start_exchange
from yester.worker.watchdog import TWICE, Marks, Piece

if TYPE_CHECKING:
    import subprocess

    from yester.cards.sessions import Steps
    from yester.llm.budget import Asker
    from yester.text.reader import Title, TitleFinder

_NOTES_PAUSE = 600.0  # seconds between two looks at the notes of agents and repositories
_EXCHANGE_PAUSE, _FIRST_EXCHANGE = 600.0, 30.0  # seconds; the same with machines and servers
# The command that exchanges: where its state stands, and what is said when it fails.
_EXCHANGES = {
    "roam": ("roam.json", "the machines are not in step; yester roam says why"),
    "share": ("share.json", "the team's server was not reached; yester share says why"),
}
_ENDED: Future[Title] = Future()  # no step is left
_MOST_ITEMS = 1_000  # new ones of a session, in one go: memory is bounded

# A slice of work; False: there is nothing to do now. Only what is wrong with the store is raised:
# one session's fault must not stop the others.
Step = Callable[[Config], bool]


def current_ms() -> int:
    return int(time.time() * 1000)


class Chore(Struct):
    """Slices of work until there is none; again when it `waits`. After a fault it does not."""

    name: str
    work: Step
    log: Log
    waits: bool = True

    def step(self, config: Config) -> bool:
        waited, self.waits = self.waits, False
        if waited:
            with self.log.survive(self.name):
                self.waits = self.work(config)
        return waited


class Distilling:
    """Sessions whose turn has ended; `done` is given each one that was distilled. While the reader
    names a turn in its thread, there is nothing to do."""

    def __init__(
        self,
        store: Store,
        log: Log,
        marks: Marks,
        done: Callable[[int], None],
        now: Callable[[], float] = time.time,
        reader: TitleFinder | None = None,
    ) -> None:
        self._store, self._log, self._marks = store, log, marks
        self._done, self._now = done, now
        self._piece = Piece("session", "")
        self._steps: Steps | None = None
        self._session = 0
        self._failed: set[int] = set()  # sessions that cannot be distilled; the others still can
        self._reader = reader
        self._title: Future[Title] | None = None  # that is waited for

    @property
    def at(self) -> tuple[Piece, ...]:
        """What goes on in another thread."""
        return (self._piece,) if self._title is not None and not self._title.done() else ()

    def step(self, config: Config) -> bool:
        if self.at:
            return False
        steps, self._steps = self._steps, None  # where the store fails it is begun again
        if steps is None:
            waiting = self._next_session()
            if waiting is None:
                return False
            steps = self._distil_session(waiting, config)
        with self._log.survive("distilling a session"):
            self._marks.begin_work(self._piece)
            self._title = next(steps, _ENDED)
            if self._title is _ENDED:
                self._title = None
                self._marks.settle(self._piece)
            else:
                self._steps = steps
            return True
        self._failed.add(self._session)
        return True

    def _next_session(self) -> Waiting | None:
        quiet_since = int(self._now() * 1000) - QUIET
        limit = len(self._failed) + 1
        queue = Queue("distil", hooked=True, quiet_since=quiet_since, limit=limit)
        for waiting in self._store.queued_sessions(queue):
            if waiting.session.id in self._failed:
                continue
            self._session = waiting.session.id
            self._piece = Piece("session", waiting.session.key, waiting.since, waiting.changes)
            if self._marks.ended_workers(self._piece) < TWICE:
                return waiting
            self._log.say("distilling a session failed: it has ended the worker twice")
            self._failed.add(self._session)
            return self._next_session()
        return None

    def _distil_session(self, waiting: Waiting, config: Config) -> Steps:
        # The thread loads what is needed: that takes some tenths of a second.
        loaded = self._reader.find_title("", "") if self._reader is not None else None
        while isinstance(loaded, Future) and not loaded.done():
            yield loaded
        from yester.cards.sessions import DistilReport, distil_session
        from yester.cards.turns import DistilRules

        yield None
        rules = replace(DistilRules.of(config, self._reader), most=_MOST_ITEMS)
        now = int(self._now() * 1000)
        yield from distil_session(self._store, waiting, rules, DistilReport(), now)
        self._done(waiting.session.id)


class FollowingNotes:
    """What agents and their users have noted down, and the memory folders of repositories."""

    def __init__(self, store: Store, log: Log, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._log, self._clock = store, log, clock
        self._steps: Iterator[int] | None = None
        self._again = 0.0

    def step(self, config: Config) -> bool:
        if self._steps is None and self._clock() < self._again:
            return False
        from yester.capture.rules import load_rules
        from yester.operate.notes import follow_notes

        steps, self._steps = self._steps, None  # after a fault it is begun again
        self._again = self._clock() + _NOTES_PAUSE
        with self._log.survive("reading notes"):
            steps = steps or follow_notes(self._store, config, load_rules(config), current_ms())
            if next(steps, None) is not None:
                self._steps = steps
        return self._steps is not None


class Exchanging:
    """The user's machines, or a team, brought into step by a process of its own: what goes over a
    network waits for others, and none of that is for the worker's loop."""

    def __init__(self, log: Log, command: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock, self._command = log, clock, command
        self._file, self._failure = _EXCHANGES[command]
        self.process: subprocess.Popen[bytes] | None = None
        self._again = clock() + _FIRST_EXCHANGE
        self._failed = False

    def step(self, config: Config) -> bool:
        if self.process is not None and (code := self.process.poll()) is not None:
            if code and not self._failed:  # once, however long the place cannot be reached
                self._log.say(self._failure)
            self.process, self._failed = None, bool(code)
        if self.process is None and self._clock() >= self._again:
            self._again = self._clock() + _EXCHANGE_PAUSE
            if (config.home / self._file).exists():
                with self._log.survive(f"starting yester {self._command}"):
                    self.process = start_exchange(config.home, self._command)
        return False


class Archiving:
    """Sessions that are over, one in a step, where the settings want it."""

    def __init__(self, store: Store, log: Log, asker: Asker | None = None) -> None:
        self._store, self._log, self._asker = store, log, asker
        self._failed: set[int] = set()  # sessions that could not be archived

    def step(self, config: Config) -> bool:
        if not config.flag("archive.on"):
            return False
        from yester.llm.archive import archive_session, find_unarchived

        now = current_ms()
        for waiting in find_unarchived(self._store, now):
            id_ = waiting.session.id
            if id_ in self._failed:
                continue
            with self._log.survive("archiving a session"):
                try:
                    path, reason = archive_session(self._store, config, waiting, self._asker, now)
                    if reason:
                        self._log.say(f"archived as found: {reason}")
                    if path is not None:
                        self._log.say(f"session {waiting.session.key[:8]} archived")
                    return True
                except SourceError as error:
                    self._log.say(f"a session was not archived: {error}")
            self._failed.add(id_)
            return True
        return False
