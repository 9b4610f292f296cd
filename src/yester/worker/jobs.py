"""What the worker does when nobody waits for it, a slice at a time.

A job is asked for a slice again and again until it says that there is nothing to do. Those that
only work with the store take their turns in the worker's own thread, between hooks: `Joining`,
`Distilling`, `Archiving`. Those that wait for a model are a `JobThread`, which has a low priority
and a connection of its own: `Embedding`, `Refining`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from yester.cards import QUIET
from yester.config import SETTINGS, Config, Value
from yester.errors import ConfigError, SourceError, StoreBusy, StoreError
from yester.ingest.projects import describe_joins, join_next
from yester.model import Queue, Waiting, replace
from yester.project import Projects
from yester.store import open_store
from yester.store.contract import Store
from yester.store.figures import has_vectors
from yester.worker.process import Log
from yester.worker.titles import ReadTitles
from yester.worker.watchdog import TWICE, Marks, Piece, Watchdog

if TYPE_CHECKING:
    from yester.llm.budget import Asker
    from yester.text.embed import Embedder
    from yester.text.reader import Reader

T = TypeVar("T", bound="JobThread")
_NICE = 15
_BUSY_PAUSE, _ERROR_PAUSE = 0.2, 30.0  # seconds
_TICK = 30.0  # seconds between looks at what nobody tells of
_SETTLE = 1.0  # seconds: what a transcript adds to a turn comes right after its end
_ARCHIVE_PAUSE = 600.0  # seconds, for a session that could not be archived
_MOST_ITEMS = 1_000  # new ones of a session, in one go: memory is bounded
_DISTIL_MODULES = (
    "cards.tools", "cards.turns", "cards.statements", "cards.status", "memories.standing",
    "memories.amend", "cards.sessions",
)  # fmt: skip
_READER_MODULES = ("text.models", "text.wordpiece", "text.embed", "text.reader")


class Job(Protocol):
    def step(self, config: Config) -> bool:
        """A slice of work; False: there is nothing to do now. Only what is wrong with the store is
        raised: one session's fault must not stop the others."""


def _now_ms() -> int:
    return int(time.time() * 1000)


# --- in the worker's own thread ------------------------------------------------------------------


class Joining:
    """Projects of an older version that are work trees which are gone."""

    def __init__(
        self, store: Store, log: Log, watchdog: Watchdog, projects: Callable[[], Projects]
    ) -> None:
        self._store, self._log = store, log
        self._watchdog, self._projects = watchdog, projects
        self._done = False

    def step(self, _: Config) -> bool:
        if self._done:
            return False
        found = None
        with self._log.survive("joining work trees"), self._watchdog.asleep():
            # Over all items of a project, in one transaction.
            found = join_next(self._store, self._projects(), _now_ms())
        self._done = found is None  # after a fault, too: until the next start
        if found is not None:
            self._log.say(f"joined: {describe_joins(self._store, [found])}, {found.items} items")
        return not self._done


class Distilling:
    """Sessions whose turn has ended; `done` is given each one that was distilled."""

    def __init__(
        self,
        store: Store,
        log: Log,
        marks: Marks,
        done: Callable[[int], None],
        now: Callable[[], float] = time.time,
        titles: ReadTitles | None = None,
    ) -> None:
        self._store, self._log, self._marks = store, log, marks
        self._done, self._now, self._titles = done, now, titles
        self._piece = Piece("session", "")
        self._steps: Iterator[None] | None = None
        self._session = 0
        self._failed: set[int] = set()  # sessions that cannot be distilled; the others still can

    def step(self, config: Config) -> bool:
        steps, self._steps = self._steps, None  # where the store fails it is begun again
        if steps is None:
            waiting = self._next_session()
            if waiting is None:
                return False
            steps = self._distil_session(waiting, config)
        with self._log.survive("distilling a session"):
            self._marks.begin(self._piece)
            if next(steps, self) is self:
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

    def _distil_session(self, waiting: Waiting, config: Config) -> Iterator[None]:
        titles = self._titles if config.text("embedder") != "none" else None
        modules = (*_DISTIL_MODULES, *(_READER_MODULES if titles is not None else ()))
        for name in modules:  # their tables are a tenth of a second's work together
            import_module(f"yester.{name}")
            yield
        from yester.cards.sessions import DistilReport, distil_session
        from yester.cards.turns import DistilRules

        rules = replace(DistilRules.of(config, titles), most=_MOST_ITEMS)
        now = int(self._now() * 1000)
        yield from distil_session(self._store, waiting, rules, DistilReport(), now)
        if titles is not None:
            titles.hand_over(waiting)
        self._done(waiting.session.id)


class Archiving:
    """Sessions that are over, one in a step, where the settings want it. Where a language model is
    set, the thread that asks it does this (`in_thread`)."""

    def __init__(
        self, store: Store, log: Log, asker: Asker | None = None, in_thread: bool = False
    ) -> None:
        self._store, self._log, self._asker = store, log, asker
        self._in_thread = in_thread
        self._again: dict[int, float] = {}  # session that could not be archived → not before then

    def step(self, config: Config) -> bool:
        has_model = config["llm.provider"] != "none"
        if not config.flag("archive.on") or has_model is not self._in_thread:
            return False
        from yester.llm.archive import archive_session, find_unarchived

        now = _now_ms()
        for waiting in find_unarchived(self._store, now):
            id_ = waiting.session.id
            if self._again.get(id_, 0.0) > time.monotonic():
                continue
            archived = False
            with self._log.survive("archiving a session"):
                try:
                    path, reason = archive_session(self._store, config, waiting, self._asker, now)
                    archived = True
                    if reason:
                        self._log.say(f"archived as found: {reason}")
                    if path is not None:
                        self._log.say(f"session {waiting.session.key[:8]} archived")
                except SourceError as error:
                    self._log.say(f"a session was not archived: {error}")
            if not archived:
                self._again[id_] = time.monotonic() + _ARCHIVE_PAUSE
            return True
        return False


# --- in threads ----------------------------------------------------------------------------------


class JobThread:
    """Begins at once; `wake` it when there may be something to do, `close` it at the end.

    `stored` is called, by the thread, when it has stored what others are to know of."""

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]  # by which it works; the first is "none" where it does not
    patience: ClassVar[float]  # seconds for other writers
    leave: ClassVar[float | None] = None  # seconds for what is under way at the end; None: all

    def __init__(self, config: Config, log: Log, stored: Callable[[], None]) -> None:
        self._config, self._log, self._stored = config, log, stored
        self._more, self._ended = threading.Event(), threading.Event()
        self._more.set()
        self._thread = threading.Thread(target=self._run_thread, name=self.name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        self._more.set()

    def close(self) -> None:
        self._ended.set()
        self._more.set()
        self._thread.join(self.leave)

    def _work_slice(self, store: Store) -> bool:
        """As a job's step; whatever it raises is logged, and tried again after a while."""
        raise NotImplementedError

    def _idle_seconds(self) -> float | None:
        """How long it may sleep when nobody wakes it."""
        return None

    def _run_thread(self) -> None:
        try:
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        except OSError:
            pass  # it is a courtesy
        try:
            store = open_store(self._config.home, now=_now_ms(), patience=self.patience)
        except StoreError as error:
            self._log.say_failure(f"opening the store for {self.name}", error)
            return
        try:
            while not self._ended.is_set():
                self._more.wait(self._idle_seconds())
                self._more.clear()
                self._work_off(store)
            self._end_work(store)
        finally:
            store.close()

    def _end_work(self, store: Store) -> None:
        """What is left to be done when the thread ends."""

    def _work_off(self, store: Store) -> None:
        try:
            while not self._ended.is_set() and self._work_slice(store):
                pass
        except StoreBusy:
            self._ended.wait(_BUSY_PAUSE)
            self._more.set()
        except Exception as error:  # noqa: BLE001 -- a server that is down, a text that breaks it
            self._log.say_failure(self.name, error)
            self._ended.wait(_ERROR_PAUSE)
            self._more.set()


class Embedding(JobThread):
    """Titles for the turns that were distilled without, then vectors for what waits, newest first.
    Those who ask a question use the same model; a question never waits for more than one text.

    `embedder` is None until the model is loaded, and stays so where there is none."""

    name = "embedding"
    settings = ("embedder", *(one.name for one in SETTINGS if one.section == "embed"))
    patience = 0.5
    embedder: Embedder | None = None
    titles: ReadTitles | None = None
    _reader: Reader | None = None
    _asked = _absent = False

    def load_soon(self) -> None:
        """Questions will be asked: have the model ready, if there is anything to compare with."""
        if self.embedder is None:
            self._asked = True
            self.wake()

    def _work_slice(self, store: Store) -> bool:
        from yester.ingest.vectors import embed_waiting

        if self.titles is not None and self.titles.has_unread():
            self._read_title(store, self.titles)
            return True
        if self.embedder is None and not self._load_model(store):
            return False
        assert self.embedder is not None
        return next(embed_waiting(store, self.embedder, self._ended.is_set), 0) > 0

    def _read_title(self, store: Store, titles: ReadTitles) -> None:
        from yester.text.reader import open_reader

        if self._reader is None:
            self._reader = open_reader(self._config.values, self._config.home)
        if self._reader is None:
            titles.give_up()
        elif titles.read_next(store, self._reader):
            self._stored()

    def _end_work(self, store: Store) -> None:
        if self.titles is not None:
            self.titles.put_off(store)

    def _load_model(self, store: Store) -> bool:
        """A model takes a hundred megabytes: not before there is something to do with it."""
        wanted = store.unembedded(1) or (self._asked and has_vectors(store))
        if self._absent or not wanted:
            return False
        from yester.text.embed import open_embedder

        self.embedder = open_embedder(dict(self._config.values), self._config.home)
        self._absent = self.embedder is None
        return not self._absent


class Refining(JobThread):
    """Turns noted by a language model, where the settings name a provider, and sessions archived,
    since it is asked about them, too."""

    name = "refining"
    settings = tuple(one.name for one in SETTINGS if one.section in ("llm", "archive"))
    patience = 5.0
    leave = 1.0  # the turn is marked as asked about: nobody waits for the answer any more

    def __init__(self, config: Config, log: Log, stored: Callable[[], None]) -> None:
        self._due: dict[int, float] = {}  # session → when to look at it
        self._archiving: Archiving | None = None
        self._asker: Asker | None = None
        super().__init__(config, log, stored)

    def add_session(self, session: int) -> None:
        """It was distilled."""
        self._due[session] = time.monotonic() + _SETTLE
        self.wake()

    def _idle_seconds(self) -> float:
        due = min([*self._due.values()], default=float("inf")) - time.monotonic()
        return max(0.0, min(_TICK, due))

    def _work_slice(self, store: Store) -> bool:
        from yester.llm.refine import LATELY

        recent = Queue("refine", since=_now_ms() - LATELY)
        if self._archiving is None:  # the first time: whatever a worker before us has left
            self._open_asker(store)
            for waiting in store.queued_sessions(recent):
                self._due.setdefault(waiting.session.id, time.monotonic() + _SETTLE)
            self._archiving = Archiving(store, self._log, self._asker, in_thread=True)
        if self._archiving.step(self._config):
            return True
        now = time.monotonic()
        ready = [id_ for id_, when in [*self._due.items()] if when <= now]
        if ready and self._asker is not None:
            for waiting in store.queued_sessions(recent):
                if waiting.session.id in ready and not self._ended.is_set():
                    self._refine_session(store, self._asker, waiting)
        for id_ in ready:
            when = self._due.pop(id_)
            if when > now:  # it was told of anew meanwhile
                self._due.setdefault(id_, when)
        return False

    def _open_asker(self, store: Store) -> None:
        from yester.llm.budget import open_asker

        try:
            self._asker = open_asker(self._config, store)
        except ConfigError as error:
            self._log.say(f"no turn is refined: {error}")

    def _refine_session(self, store: Store, asker: Asker, waiting: Waiting) -> None:
        from yester.cards.turns import DistilRules
        from yester.llm.refine import LATELY, find_unrefined, refine_turns

        session = waiting.session
        with self._log.survive("refining a session"):
            turns = find_unrefined(store, session, _now_ms() - LATELY, DistilRules.of(self._config))
            done = 0
            for turn, reason in refine_turns(store, asker, session, turns, self._ended.is_set):
                done += 1
                what = f"kept as found: {reason}" if reason else "refined"
                self._log.say(f"turn {turn.number} of {session.key[:8]} {what}")
                if not reason and not self._ended.is_set():
                    self._stored()
            if done < len(turns):  # as many calls are under way as may be
                self._due[session.id] = time.monotonic() + _SETTLE


class Background:
    """The threads. None runs before `use_settings`; `close` it at the end. `refined` is called, by
    a thread, when a language model's notes of a turn were stored."""

    def __init__(self, log: Log, refined: Callable[[], None]) -> None:
        self._log, self._refined = log, refined
        self.titles = ReadTitles()
        self.embedding: Embedding | None = None
        self.refining: Refining | None = None
        self._used: dict[str, Value] = {}

    def use_settings(self, config: Config) -> None:
        """Begin, or begin anew with other settings."""
        self.embedding = self._renew_thread(Embedding, self.embedding, config)
        if self.embedding is not None:
            self.embedding.titles = self.titles
        self.refining = self._renew_thread(Refining, self.refining, config)

    def _renew_thread(self, kind: type[T], running: T | None, config: Config) -> T | None:
        settings = {name: config[name] for name in kind.settings}
        if settings.items() <= self._used.items():
            return running
        self._used |= settings
        if running is not None:
            running.close()
        wanted = settings[kind.settings[0]] != "none"
        return kind(config, self._log, self._refined) if wanted else None

    def wake_embedding(self) -> None:
        """Items were stored."""
        if self.embedding is not None:
            self.embedding.wake()

    def follow_distilled(self, session: int) -> None:
        """A session was distilled: there may be new items, and turns to be noted."""
        self.wake_embedding()
        if self.refining is not None:
            self.refining.add_session(session)

    def close(self) -> None:
        for thread in (self.refining, self.embedding):
            if thread is not None:
                thread.close()
