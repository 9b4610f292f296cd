"""What the worker does for itself in threads, since it waits for a model.

A `JobThread` has a low priority and a connection of its own: `Embedding`, which also reads titles,
and `Refining`. `Background` starts them, and starts them anew when their settings change.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, TypeVar

from yester.config import SETTINGS, Config
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
    from yester.text.reader import Reader, Title, TitleFinder

T = TypeVar("T", bound="JobThread")
_NICE = 15
_BUSY_PAUSE, _ERROR_PAUSE = 0.2, 30.0  # seconds
_TICK = 30.0  # seconds between looks at what nobody tells of
_SETTLE = 1.0  # seconds: what a transcript adds to a turn comes right after its end
_MOST_KNOWN = 20_000  # turns with a title; a session that had more would be read again and again


class JobThread:
    """`start` it; `wake` it when there may be something to do, `close` it at the end.

    `stored` is called, by the thread, when it has stored what others are to know of."""

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]]  # by which it works; not where the first is "none"
    patience: ClassVar[float]  # seconds for other writers
    leave: ClassVar[float | None] = None  # seconds for what is under way at the end; None: all

    def __init__(
        self, config: Config, log: Log, stored: Callable[[], None], titles: ReadTitles
    ) -> None:
        self._config, self._log, self._stored, self._titles = config, log, stored, titles
        self._more, self._ended = threading.Event(), threading.Event()
        self._more.set()
        self._started = False
        self._thread = threading.Thread(target=self._run_thread, name=self.name, daemon=True)

    def start(self) -> None:
        self._started = True
        if self._config[self.settings[0]] != "none":
            self._thread.start()

    def is_right_for(self, config: Config) -> bool:
        """Was it started with the same settings?"""
        return self._started and all(self._config[name] == config[name] for name in self.settings)

    def wake(self) -> None:
        self._more.set()

    def close(self) -> None:
        self._ended.set()
        self._more.set()
        if self._thread.is_alive():
            self._thread.join(self.leave)

    def _work_slice(self, store: Store) -> bool:
        """As a job's step; whatever it raises is logged, and tried again after a while."""
        raise NotImplementedError

    def _idle_seconds(self) -> float | None:
        """How long it may sleep when nobody wakes it."""
        return None

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
        except Exception as error:  # noqa: BLE001 -- a server that is down, a text that breaks it
            busy = isinstance(error, StoreBusy)
            if not busy:
                self._log.say_failure(self.name, error)
            self._ended.wait(_BUSY_PAUSE if busy else _ERROR_PAUSE)
            self._more.set()


# --- titles --------------------------------------------------------------------------------------


class ReadTitles:
    """The reader model's titles in the worker, whose own thread must not wait for a model. A turn
    that was not read yet is distilled without the reader's title. The embedding thread reads it
    afterwards, and the session is distilled once more: that time its titles are known.

    `find_title` and `hand_over` are for the worker's own thread, the rest for the reading one.
    The two share nothing but whole entries of a dict and a deque."""

    def __init__(self) -> None:
        self._known: dict[bytes, Title] = {}
        self._asked: dict[bytes, tuple[str, str]] = {}
        self._unread: deque[tuple[Waiting, dict[bytes, tuple[str, str]]]] = deque()
        self._absent = False  # there is no reader

    def find_title(
        self, request: str, closing: str, _: Callable[[str], str] | None = None
    ) -> Title:
        """What is known by now; else it is asked for, and there is none."""
        from yester.text.reader import CLOSING_CHARACTERS, NO_TITLE, REQUEST_CHARACTERS

        texts = request[:REQUEST_CHARACTERS], closing[:CLOSING_CHARACTERS]
        key = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()
        title = self._known.get(key)
        if title is None and not self._absent:
            self._asked[key] = texts
        return title or NO_TITLE

    def hand_over(self, waiting: Waiting) -> None:
        """A session was distilled: what it asked for is to be read."""
        if self._asked:
            self._unread.append((waiting, self._asked))
            self._asked = {}

    def has_unread(self) -> bool:
        return bool(self._unread)

    def read_next(
        self, store: Store, reader: TitleFinder, stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Read the turns of a session. True: it waits to be distilled now."""
        waiting, texts = self._unread[0]
        useful = False
        for key, texts_of_turn in texts.items():
            if stop():
                return False
            title = self._known.get(key) or self._read_title(key, reader, texts_of_turn)
            useful = useful or title.usable
        if useful:
            _queue_again(store, waiting)
        self._unread.popleft()
        return useful

    def give_up(self) -> None:
        """There is no reader: nothing is asked for any more."""
        self._absent = True
        self._unread.clear()

    def put_off(self, store: Store) -> None:
        """The thread ends: the next worker distils these sessions again, and asks again."""
        with suppress(StoreError):
            while self._unread:
                _queue_again(store, self._unread[0][0])
                self._unread.popleft()

    def _read_title(self, key: bytes, reader: TitleFinder, texts: tuple[str, str]) -> Title:
        from yester.cards.titles import title_mender
        from yester.text.reader import NO_TITLE

        title = NO_TITLE
        with suppress(Exception):  # one text's fault must not stop the others
            title = reader.find_title(*texts, title_mender(*texts))
        if len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[key] = title
        return title


def _queue_again(store: Store, waiting: Waiting) -> None:
    with store.transaction("work"):
        store.queue_sessions({waiting.session.id: waiting.since})


class Embedding(JobThread):
    """Titles for the turns that were distilled without, then vectors for what waits, newest first;
    these not on battery.
    Those who ask a question use the same model; a question never waits for more than one text.

    `embedder` is None until the model is loaded, and stays so where there is none."""

    name = "embedding"
    settings = ("embedder", *(one.name for one in SETTINGS if one.section == "embed"))
    patience = 0.5
    embedder: Embedder | None = None
    _reader: Reader | None = None
    _asked = _absent = False

    def _idle_seconds(self) -> float:
        return _TICK  # `yester index` is another process, and the machine may be plugged in

    def load_soon(self) -> None:
        """Questions will be asked: have the model ready, if there is anything to compare with."""
        if self.embedder is None:
            self._asked = True
            self.wake()

    def _work_slice(self, store: Store) -> bool:
        from yester.ingest.vectors import embed_waiting

        if self._titles.has_unread():
            self._read_titles(store)
            return True
        if on_battery() or (self.embedder is None and not self._load_model(store)):
            return False
        assert self.embedder is not None
        return next(embed_waiting(store, self.embedder, self._ended.is_set), 0) > 0

    def _read_titles(self, store: Store) -> None:
        from yester.text.reader import open_reader

        if self._reader is None:
            self._reader = open_reader(self._config.values, self._config.home)
        if self._reader is None:
            self._titles.give_up()
        elif self._titles.read_next(store, self._reader, self._ended.is_set):
            self._stored()

    def _end_work(self, store: Store) -> None:
        self._titles.put_off(store)

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

    _archiving: Archiving | None = None
    _asker: Asker | None = None

    def __init__(
        self, config: Config, log: Log, stored: Callable[[], None], titles: ReadTitles
    ) -> None:
        super().__init__(config, log, stored, titles)
        self._due: dict[int, float] = {}  # session → when to look at it

    def add_session(self, session: int) -> None:
        """It was distilled."""
        self._due[session] = time.monotonic() + _SETTLE
        self.wake()

    def _idle_seconds(self) -> float:
        due = min([*self._due.values()], default=float("inf")) - time.monotonic()
        return max(0.0, min(_TICK, due))

    def _work_slice(self, store: Store) -> bool:
        from yester.llm.refine import LATELY

        recent = Queue("refine", since=current_ms() - LATELY)
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
            turns = find_unrefined(
                store, session, current_ms() - LATELY, DistilRules.of(self._config)
            )
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
    """The threads. None runs before `use_settings`; `close` it at the end. `stored` is called, by a
    thread, when a language model's notes of a turn, or titles, were stored."""

    def __init__(self, config: Config, log: Log, stored: Callable[[], None]) -> None:
        self._log, self._stored = log, stored
        self.titles = ReadTitles()
        self.embedding = Embedding(config, log, stored, self.titles)
        self.refining = Refining(config, log, stored, self.titles)

    def use_settings(self, config: Config) -> None:
        """Begin, or begin anew with other settings."""
        self.embedding = self._renew_thread(self.embedding, config)
        self.refining = self._renew_thread(self.refining, config)

    def _renew_thread(self, thread: T, config: Config) -> T:
        if thread.is_right_for(config):
            return thread
        thread.close()
        thread = type(thread)(config, self._log, self._stored, self.titles)
        thread.start()
        return thread

    def follow_distilled(self, session: int) -> None:
        """A session was distilled: there may be new items, and turns to be noted."""
        self.embedding.wake()
        self.refining.add_session(session)

    def close(self) -> None:
        self.refining.close()
        self.embedding.close()
