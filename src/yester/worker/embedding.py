"""Vectors, made in the background: a thread of low priority with a connection of its own.

It loads the model when it is first wanted, works off what waits, newest first, and then waits to be
told of more. Those who ask a question use the same model; a question never waits for more than one
text.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yester.errors import StoreBusy, StoreError
from yester.ingest.embedding import embed_waiting
from yester.store import open_store
from yester.store.contract import Store
from yester.store.figures import has_vectors
from yester.text.embed import Embedder, open_embedder
from yester.worker.log import Log

_NICE = 15
_BUSY_PAUSE, _ERROR_PAUSE = 0.2, 30.0


class Embedding:
    """Begins at once; `wake` it when items were stored, `close` it at the end.

    `embedder` is None until the model is loaded, and stays so where there is none."""

    def __init__(self, home: Path, settings: Mapping[str, Any], now: int, log: Log) -> None:
        self.embedder: Embedder | None = None
        self._home = home
        self._settings = dict(settings)
        self._now = now
        self._log = log
        self._more = threading.Event()
        self._asked = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="embedding", daemon=True)
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """Items were stored."""
        self._more.set()

    def want(self) -> None:
        """Questions will be asked: have the model ready, if there is anything to compare with."""
        if self.embedder is None:
            self._asked = True
            self._more.set()

    def close(self) -> None:
        self._ended.set()
        self._more.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            if hasattr(os, "setpriority"):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        except OSError:
            pass  # it is a courtesy
        try:
            store = open_store(self._home, now=self._now, patience=0.5)
        except StoreError as error:
            self._log.failed("opening the store for vectors", error)
            return
        try:
            self._loop(store)
        finally:
            store.close()

    def _loop(self, store: Store) -> None:
        while not self._ended.is_set():
            self._more.wait()
            self._more.clear()
            try:
                if self.embedder is None and self._is_wanted(store):
                    self.embedder = open_embedder(self._settings, self._home)
                    if self.embedder is None:
                        return
                if self.embedder is not None:
                    for _ in embed_waiting(store, self.embedder, self._ended.is_set):
                        pass
            except StoreBusy:
                self._ended.wait(_BUSY_PAUSE)
                self._more.set()
            except StoreError as error:
                self._log.failed("storing vectors", error)
                self._ended.wait(_ERROR_PAUSE)
                self._more.set()
            except Exception as error:  # noqa: BLE001 -- a server that is down, a text that breaks it
                self._log.failed("embedding", error)
                self._ended.wait(_ERROR_PAUSE)
                self._more.set()

    def _is_wanted(self, store: Store) -> bool:
        """A model takes a hundred megabytes: not before there is something to do with it."""
        return bool(store.unembedded(1)) or (self._asked and has_vectors(store))
