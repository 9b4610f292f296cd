"""What the worker does between hooks when nobody waits for it, a slice at a time.

A job is asked for a slice again and again until it says that there is nothing to do. What waits for
a model has a thread of its own: titles of turns that are being distilled, vectors for what is
stored, notes of a language model where the settings name a provider, archives where they want them,
and a backup a day.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from yester.cards import QUIET
from yester.config import Config
from yester.errors import ConfigError, SourceError, StoreBusy, StoreError
from yester.machine import on_battery
from yester.model import Queue, Session, Waiting, replace
from yester.store import find_target, open_store
from yester.store.contract import Store
from yester.store.figures import has_vectors
from yester.worker.process import Log, start_exchange
from yester.worker.watchdog import TWICE, Marks, Piece

if TYPE_CHECKING:
    import subprocess

    from yester.cards.sessions import Steps
    from yester.llm.budget import Asker
    from yester.text.embed import Embedder
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


# --- what waits for a model ----------------------------------------------------------------------

_TurnTexts: TypeAlias = "tuple[str, str, Callable[[str], str] | None]"  # request, closing message
_NICE = 15
_PATIENCE = 5.0  # seconds for other writers
_BUSY_PAUSE, _ERROR_PAUSE = 0.2, 30.0  # seconds
_TICK = 30.0  # seconds between looks at what nobody tells of
_SETTLE = 1.0  # seconds: what a transcript adds to a turn comes right after its end
_LEAVE = 1.0  # seconds for a language model at the end: its turn is marked as asked about


class Background:
    """The `work` of a thread, which does not run before `use_settings`; `close` it at the end."""

    def __init__(self, config: Config, log: Log, ready: Callable[[], None]) -> None:
        self._log, self._ready = log, ready
        self._used: Config | None = None
        self.work = Work(config, log, ready)

    def find_title(
        self, request: str, closing: str, mend: Callable[[str], str] | None = None, /
    ) -> Future[Title]:
        return self.work.find_title(request, closing, mend)

    def use_settings(self, config: Config) -> None:
        """Begin, or begin anew with other settings."""
        if self._used is None or self._used.values != config.values:
            self.close()
            self._used, self.work = config, Work(config, self._log, self._ready)
            self.work.start()

    def close(self) -> None:
        if self.work.is_alive():
            self.work.end()


class Work(threading.Thread):
    """Has a low priority and a connection of its own. `ready` is called, by the thread, when a
    title is found, and when a language model's notes of a turn were stored."""

    # None until the model is loaded, and where there is none. Those who ask a question use it as
    # well: a question never waits for more than one text.
    embedder: Embedder | None = None
    backs_up_after = 60.0  # seconds from one look to the next; a start has better to do
    reader: TitleFinder | None = None  # opened when it is wanted first
    _is_asked = _absent = False  # will there be questions? is there no model?
    _asker: Asker | None = None
    _archiving: Archiving | None = None

    def __init__(self, config: Config, log: Log, ready: Callable[[], None]) -> None:
        super().__init__(name="background", daemon=True)
        self._config, self._log, self._ready = config, log, ready
        self._titles: deque[tuple[Future[Title], _TurnTexts]] = deque()
        self._has_reader = True
        self._more, self._ended = threading.Event(), threading.Event()
        self._more.set()
        self._distilled: deque[tuple[float, int]] = deque()  # when to look at which session
        self._embeds = config["embedder"] != "none"
        self._asks = config["llm.provider"] != "none"
        self._writes = self._asks or config.flag("archive.on")
        self._backup_due = time.monotonic() + self.backs_up_after

    def wake(self) -> None:
        """There may be something to do."""
        self._more.set()

    def find_title(
        self, request: str, closing: str, mend: Callable[[str], str] | None = None, /
    ) -> Future[Title]:
        """A turn's title, when there is time for it; none where the thread has ended."""
        title: Future[Title] = Future()
        self._titles.append((title, (request, closing, mend)))
        self.wake()
        if self._ended.is_set():
            self._drop_titles()
        return title

    def load_soon(self) -> None:
        """Questions will be asked: have the model ready, if there is anything to compare with."""
        if self.embedder is None:
            self._is_asked = True
            self.wake()

    def add_session(self, session: int) -> None:
        """It was distilled: there may be new items, and turns to be noted."""
        if self._writes:  # nobody else takes it out again
            self._distilled.append((time.monotonic() + _SETTLE, session))
        self.wake()

    def seconds_to_rest(self) -> float:
        """How long there is nothing to do unless somebody wakes us."""
        return max(0.0, self._distilled[0][0] - time.monotonic()) if self._distilled else _TICK

    def end(self) -> None:
        self._ended.set()
        self._more.set()
        self.join(_LEAVE if self._asks else None)

    def run(self) -> None:
        with suppress(OSError, AttributeError):  # it is a courtesy
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        home = self._config.home
        try:
            target = find_target(home)
            with closing(
                open_store(target, now=current_ms(), home=home, patience=_PATIENCE)
            ) as store:
                while not self._ended.is_set():
                    self._more.wait(self.seconds_to_rest())
                    self._more.clear()
                    self._work_off(store)
        except (StoreError, ConfigError) as error:  # nothing else raises them here
            self._log.say_failure("opening the store in the background", error)
        finally:
            self._ended.set()
            self._drop_titles()

    def _work_off(self, store: Store) -> None:
        try:
            while not self._ended.is_set() and (
                self._read_title()
                or self._back_up(store)
                or self._embed(store)
                or self._ask_model(store)
            ):
                pass
        except Exception as error:  # noqa: BLE001 -- a server that is down, a text that breaks it
            busy = isinstance(error, StoreBusy)
            if not busy:
                self._log.say_failure("working in the background", error)
            self._ended.wait(_BUSY_PAUSE if busy else _ERROR_PAUSE)
            self._more.set()

    def _read_title(self) -> bool:
        """The oldest that is waited for; one text's fault must not stop the others."""
        if not self._titles:
            return False
        from yester.text.reader import NO_TITLE, open_reader

        title, texts = self._titles.popleft()
        found: Title | Future[Title] = NO_TITLE
        with self._log.survive("reading a title", raises=()):
            if self.reader is None and self._has_reader:
                from yester.cards.sessions import load_patterns

                load_patterns()
                self.reader = open_reader(self._config.values, self._config.home)
                self._has_reader = self.reader is not None
            found = self.reader.find_title(*texts) if self.reader is not None else NO_TITLE
        title.set_result(found.result() if isinstance(found, Future) else found)
        self._ready()
        return True

    def _drop_titles(self) -> None:
        from yester.text.reader import NO_TITLE

        while self._titles:
            with suppress(IndexError):  # another thread was faster
                self._titles.popleft()[0].set_result(NO_TITLE)

    def _back_up(self, store: Store) -> bool:
        """A backup a day."""
        if time.monotonic() < self._backup_due:
            return False
        from yester.operate.backups import make_daily_backup

        self._backup_due = time.monotonic() + self.backs_up_after
        kept = self._config.number("backups_kept")
        path = make_daily_backup(store, self._config.home, kept, current_ms())
        if path is not None:
            self._log.say(f"backed up: {path.name}")
        return path is not None

    def _embed(self, store: Store) -> bool:
        """Vectors for what waits, newest first; not on battery."""
        from yester.ingest.vectors import embed_waiting

        if not self._embeds or on_battery() or not self._load_model(store):
            return False
        assert self.embedder is not None
        return next(embed_waiting(store, self.embedder, self._ended.is_set), 0) > 0

    def _load_model(self, store: Store) -> bool:
        """A model takes a hundred megabytes: not before there is something to do with it."""
        if self.embedder is None and not self._absent:
            if not (store.unembedded(1) or (self._is_asked and has_vectors(store))):
                return False
            from yester.text.embed import open_embedder, why_not

            values = dict(self._config.values)
            self.embedder = open_embedder(values, self._config.home)
            self._absent = self.embedder is None
            if self._absent:
                self._log.say(f"no vectors are made: {why_not(values, self._config.home)}")
        return self.embedder is not None

    def _ask_model(self, store: Store) -> bool:
        """A session archived, else those noted that were distilled."""
        if not self._writes:
            return False
        from yester.llm.budget import open_asker
        from yester.llm.refine import LATELY

        recent = Queue("refine", since=current_ms() - LATELY)
        if self._archiving is None:  # the first time: whatever a worker before us has left
            try:
                self._asker = open_asker(self._config, store) if self._asks else None
            except ConfigError as error:
                self._log.say(f"no turn is refined: {error}")
            for one in store.queued_sessions(recent) if self._asker is not None else ():
                self.add_session(one.session.id)
            self._archiving = Archiving(store, self._log, self._asker)
        if self._archiving.step(self._config):
            return True
        ready = set()
        while self._distilled and self._distilled[0][0] <= time.monotonic():
            ready.add(self._distilled.popleft()[1])
        for waiting in store.queued_sessions(recent) if ready and self._asker else ():
            if waiting.session.id in ready and not self._ended.is_set():
                self._refine_session(store, waiting.session)
        return False

    def _refine_session(self, store: Store, session: Session) -> None:
        from yester.cards.turns import DistilRules
        from yester.llm.refine import LATELY, find_unrefined, refine_turns

        assert self._asker is not None
        stop, rules = self._ended.is_set, DistilRules.of(self._config)
        with self._log.survive("refining a session"):
            turns = find_unrefined(store, session, current_ms() - LATELY, rules)
            done = 0
            for turn, reason in refine_turns(store, self._asker, session, turns, stop):
                done += 1
                what = f"kept as found: {reason}" if reason else "refined"
                self._log.say(f"turn {turn.number} of {session.key[:8]} {what}")
                if not reason and not stop():
                    self._ready()
            if done < len(turns):  # as many calls are under way as may be
                self.add_session(session.id)
