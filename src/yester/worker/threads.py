"""What the worker does for itself in threads, since it waits for a model.

A `JobThread` has a low priority and a connection of its own: `Embedding` and `Asking`. `Background`
starts them, and starts them anew when the settings change.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from yester.config import Config
from yester.errors import ConfigError, StoreBusy, StoreError
from yester.model import Queue, Waiting
from yester.store import open_store
from yester.store.contract import Store
from yester.store.figures import has_vectors
from yester.worker.jobs import Archiving, current_ms
from yester.worker.power import on_battery
from yester.worker.process import Log

if TYPE_CHECKING:
    from yester.llm.budget import Asker
    from yester.text.embed import Embedder

_NICE = 15
_BUSY_PAUSE, _ERROR_PAUSE = 0.2, 30.0  # seconds
_TICK = 30.0  # seconds between looks at what nobody tells of


class JobThread:
    """`start` it; `wake` it when there may be something to do, `close` it at the end.

    `stored` is called, by the thread, when it has stored what others are to know of."""

    name: ClassVar[str]
    patience: ClassVar[float]  # seconds for other writers
    leave: ClassVar[float | None] = None  # seconds for what is under way at the end; None: all
    settle: ClassVar[float] = 0.0  # seconds between being woken and beginning

    def __init__(self, config: Config, log: Log, stored: Callable[[], None]) -> None:
        self._config, self._log, self._stored = config, log, stored
        self._more, self._ended = threading.Event(), threading.Event()
        self._more.set()
        self._thread = threading.Thread(target=self._run_thread, name=self.name, daemon=True)

    def start(self) -> None:
        if self._is_wanted():
            self._thread.start()

    def wake(self) -> None:
        self._more.set()

    def close(self) -> None:
        self._ended.set()
        self._more.set()
        if self._thread.is_alive():
            self._thread.join(self.leave)

    def _is_wanted(self) -> bool:
        raise NotImplementedError

    def _work_slice(self, store: Store) -> bool:
        """As a job's step; whatever it raises is logged, and tried again after a while."""
        raise NotImplementedError

    def _run_thread(self) -> None:
        with suppress(OSError, AttributeError):  # it is a courtesy
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        try:
            store = open_store(self._config.home, now=current_ms(), patience=self.patience)
        except StoreError as error:
            self._log.say_failure(f"opening the store for {self.name}", error)
            return
        try:
            while not self._ended.is_set():
                self._more.wait(_TICK)
                self._more.clear()
                self._ended.wait(self.settle)
                self._work_off(store)
        finally:
            store.close()

    def _work_off(self, store: Store) -> None:
        try:
            while not self._ended.is_set() and self._work_slice(store):
                pass
        except Exception as error:  # noqa: BLE001 -- a server that is down, a text that breaks it
            busy = isinstance(error, StoreBusy)
            if not busy:
                self._log.say_failure(self.name, error)
            self._ended.wait(_BUSY_PAUSE if busy else _ERROR_PAUSE)
            self._more.set()


class Embedding(JobThread):
    """Vectors for what waits, newest first; not on battery.
    Those who ask a question use the same model; a question never waits for more than one text.

    `embedder` is None until the model is loaded, and stays so where there is none."""

    name = "embedding"
    patience = 0.5
    embedder: Embedder | None = None
    _asked = _absent = False

    def load_soon(self) -> None:
        """Questions will be asked: have the model ready, if there is anything to compare with."""
        if self.embedder is None:
            self._asked = True
            self.wake()

    def _is_wanted(self) -> bool:
        return self._config["embedder"] != "none"

    def _work_slice(self, store: Store) -> bool:
        from yester.ingest.vectors import embed_waiting

        if on_battery() or (self.embedder is None and not self._load_model(store)):
            return False
        assert self.embedder is not None
        return next(embed_waiting(store, self.embedder, self._ended.is_set), 0) > 0

    def _load_model(self, store: Store) -> bool:
        """A model takes a hundred megabytes: not before there is something to do with it."""
        wanted = store.unembedded(1) or (self._asked and has_vectors(store))
        if self._absent or not wanted:
            return False
        from yester.text.embed import open_embedder

        self.embedder = open_embedder(dict(self._config.values), self._config.home)
        self._absent = self.embedder is None
        return not self._absent


class Asking(JobThread):
    """Turns noted by a language model, where the settings name a provider; and sessions archived,
    where they want it: it is asked about them, too."""

    name = "refining"
    patience = 5.0
    leave = 1.0  # the turn is marked as asked about: nobody waits for the answer any more
    settle = 1.0  # what a transcript adds to a turn comes right after its end

    _archiving: Archiving | None = None
    _asker: Asker | None = None

    def __init__(self, config: Config, log: Log, stored: Callable[[], None]) -> None:
        super().__init__(config, log, stored)
        self._distilled: deque[int] = deque()  # sessions that are to be looked at

    def add_session(self, session: int) -> None:
        """It was distilled."""
        self._distilled.append(session)
        self.wake()

    def _is_wanted(self) -> bool:
        return self._config["llm.provider"] != "none" or self._config.flag("archive.on")

    def _work_slice(self, store: Store) -> bool:
        from yester.llm.refine import LATELY

        recent = Queue("refine", since=current_ms() - LATELY)
        if self._archiving is None:  # the first time: whatever a worker before us has left
            self._open_asker(store)
            self._distilled.extend(one.session.id for one in store.queued_sessions(recent))
            self._archiving = Archiving(store, self._log, self._asker)
        if self._archiving.step(self._config):
            return True
        ready = {self._distilled.popleft() for _ in range(len(self._distilled))}
        for waiting in store.queued_sessions(recent) if ready and self._asker else ():
            if waiting.session.id in ready and not self._ended.is_set():
                self._refine_session(store, waiting)
        return False

    def _open_asker(self, store: Store) -> None:
        from yester.llm.budget import open_asker

        try:
            self._asker = open_asker(self._config, store)
        except ConfigError as error:
            self._log.say(f"no turn is refined: {error}")

    def _refine_session(self, store: Store, waiting: Waiting) -> None:
        from yester.cards.turns import DistilRules
        from yester.llm.refine import LATELY, find_unrefined, refine_turns

        session, rules = waiting.session, DistilRules.of(self._config)
        assert self._asker is not None
        with self._log.survive("refining a session"):
            turns = find_unrefined(store, session, current_ms() - LATELY, rules)
            done = 0
            for turn, reason in refine_turns(
                store, self._asker, session, turns, self._ended.is_set
            ):
                done += 1
                what = f"kept as found: {reason}" if reason else "refined"
                self._log.say(f"turn {turn.number} of {session.key[:8]} {what}")
                if not reason and not self._ended.is_set():
                    self._stored()
            if done < len(turns):  # as many calls are under way as may be
                self.add_session(session.id)


class Background:
    """The threads. None runs before `use_settings`; `close` it at the end. `stored` is called, by a
    thread, when a language model's notes of a turn were stored."""

    def __init__(self, config: Config, log: Log, stored: Callable[[], None]) -> None:
        self._log, self._stored = log, stored
        self._used: Config | None = None
        self.embedding = Embedding(config, log, stored)
        self.asking = Asking(config, log, stored)

    def use_settings(self, config: Config) -> None:
        """Begin, or begin anew with other settings."""
        if self._used is not None and self._used.values == config.values:
            return
        self.close()
        self._used = config
        self.embedding = Embedding(config, self._log, self._stored)
        self.asking = Asking(config, self._log, self._stored)
        self.embedding.start()
        self.asking.start()

    def follow_distilled(self, session: int) -> None:
        """A session was distilled: there may be new items, and turns to be noted."""
        self.embedding.wake()
        self.asking.add_session(session)

    def close(self) -> None:
        self.asking.close()
        self.embedding.close()
