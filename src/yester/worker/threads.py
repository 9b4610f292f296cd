"""What the worker does for itself in a thread, since it waits for a model: titles of turns that are
being distilled, vectors for what is stored, notes of a language model where the settings name a
provider, archives where they want them, and a backup a day.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from typing import TYPE_CHECKING, TypeAlias

from yester.config import Config
from yester.errors import ConfigError, StoreBusy, StoreError
from yester.machine import on_battery
from yester.model import Queue, Session
from yester.store import find_target, open_store
from yester.store.contract import Store
from yester.store.figures import has_vectors
from yester.worker.jobs import Archiving, current_ms
from yester.worker.process import Log

if TYPE_CHECKING:
    from yester.llm.budget import Asker
    from yester.text.embed import Embedder
    from yester.text.reader import Title, TitleFinder

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
