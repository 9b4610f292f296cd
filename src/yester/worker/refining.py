"""Turns noted by a language model, in the background: a thread with a connection of its own.
Sessions that have ended are archived here, too, since a model is asked about them.

Only where the settings name a provider. It is told of sessions that were distilled and waits a
moment before it asks: what a transcript adds to a turn comes right after its end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from yester.config import Config
from yester.distil.history import Rules
from yester.errors import ConfigError, StoreBusy, StoreError
from yester.llm.budget import Asker, open_asker
from yester.llm.refine import LATELY, find_unrefined, refine_turns
from yester.model import Queue, Waiting
from yester.store import open_store
from yester.store.contract import Store
from yester.worker.archiving import Archiving
from yester.worker.log import Log

SETTLE = 1.0  # seconds
_NICE = 15
_BUSY_PAUSE, _ERROR_PAUSE = 1.0, 30.0
_PATIENCE = 5.0  # seconds for other writers
_TICK = 30.0  # seconds between looks at what nobody tells of
_LEAVE = 1.0  # seconds for an answer that is under way; the turn is marked as asked about


class Refining:
    """Begins at once; tell it of sessions with `wake`, `close` it at the end.

    `stored` is called when something was stored."""

    def __init__(self, config: Config, log: Log, stored: Callable[[], None]) -> None:
        self._config = config
        self._log = log
        self._stored = stored
        self._archiving = Archiving(log)
        self._told: SimpleQueue[int] = SimpleQueue()
        self._due: dict[int, float] = {}  # session → when to look at it
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refining", daemon=True)
        self._thread.start()

    def wake(self, session: int) -> None:
        """It was distilled."""
        self._told.put(session)

    def close(self) -> None:
        """A call that takes longer than a moment is left alone: nobody waits for it any more."""
        self._ended.set()
        self._told.put(0)
        self._thread.join(_LEAVE)

    def _run(self) -> None:
        try:
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        except OSError:
            pass  # it is a courtesy
        try:
            store = open_store(self._config.home, now=_now(), patience=_PATIENCE)
        except StoreError as error:
            self._log.failed("opening the store for refining", error)
            return
        try:
            self._loop(store, self._asker(store))
        finally:
            store.close()

    def _asker(self, store: Store) -> Asker | None:
        try:
            return open_asker(self._config, store)
        except ConfigError as error:
            self._log.say(f"no turn is refined: {error}")
            return None

    def _loop(self, store: Store, asker: Asker | None) -> None:
        first = True  # whatever a worker before us has left
        while not self._ended.is_set():
            try:
                if first:
                    self._see(store.queued_sessions(Queue("refine", since=_now() - LATELY)))
                    first = False
                self._listen()
                while not self._ended.is_set() and self._archiving.step(store, self._config, asker):
                    pass
                ready = {id_ for id_, when in self._due.items() if when <= time.monotonic()}
                if not ready or self._ended.is_set():
                    continue
                for waiting in store.queued_sessions(Queue("refine", since=_now() - LATELY)):
                    if waiting.session.id in ready and asker is not None:
                        self._refine(store, asker, waiting)
                for id_ in ready:
                    if self._due[id_] <= time.monotonic():
                        del self._due[id_]
            except StoreBusy:
                self._ended.wait(_BUSY_PAUSE)
            except StoreError as error:
                self._log.failed("refining", error)
                self._ended.wait(_ERROR_PAUSE)

    def _see(self, sessions: list[Waiting]) -> None:
        for waiting in sessions:
            self._due[waiting.session.id] = time.monotonic() + SETTLE

    def _listen(self) -> None:
        """Until the next session is due, or somebody tells of one."""
        wait = _TICK
        if self._due:
            wait = min(wait, max(0.0, min(self._due.values()) - time.monotonic()))
        try:
            session = self._told.get(timeout=wait)
            if session:
                self._due[session] = time.monotonic() + SETTLE
        except Empty:
            pass

    def _refine(self, store: Store, asker: Asker, waiting: Waiting) -> None:
        session = waiting.session
        try:
            turns = find_unrefined(store, session, _now() - LATELY, Rules.of(self._config))
            done = 0
            for turn, refined in refine_turns(store, asker, session, turns, self._ended.is_set):
                done += 1
                what = f"kept as found: {refined.reason}" if refined.reason else "refined"
                self._log.say(f"turn {turn.number} of {session.key[:8]} {what}")
                if not refined.reason and not self._ended.is_set():
                    self._stored()
            if done < len(turns):  # as many calls are under way as may be
                self._due[session.id] = time.monotonic() + SETTLE
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 -- one session's fault must not stop the others
            self._log.failed("refining a session", error)


def _now() -> int:
    return int(time.time() * 1000)
