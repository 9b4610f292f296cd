"""Which files the work is about right now: what git calls changed, asked in the background.

A hook does not wait for git. What was seen last is used, and looked at again for the next time.
"""

from __future__ import annotations

import threading
import time

from yester import git
from yester.worker.log import Log

MOST = 20  # files; of a larger change no single one says what it is about
_PATIENCE = 0.15  # seconds for all that git is asked
_FOLDERS = 32  # remembered


class Surroundings:
    """Begins with the first folder; `close` it at the end."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[str, tuple[str, ...]] = {}
        self._wanted: dict[str, None] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False

    def touched(self, folder: str) -> tuple[str, ...]:
        """The files that were changed there when it was last looked at; then look again."""
        with self._changed:
            self._wanted[folder] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="git", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._known.get(folder, ())

    def wait(self, folder: str, seconds: float) -> bool:
        """Has it been looked at, at least once?"""
        with self._changed:
            return self._changed.wait_for(lambda: folder in self._known, seconds)

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._wanted)
                if self._ended:
                    return
                folder = next(iter(self._wanted))
                del self._wanted[folder]
            files = self._look(folder)
            with self._changed:
                if len(self._known) >= _FOLDERS:
                    self._known.clear()
                self._known[folder] = files
                self._changed.notify_all()

    def _look(self, folder: str) -> tuple[str, ...]:
        try:
            told = git.signals(folder, time.monotonic() + _PATIENCE)
        except Exception as error:  # noqa: BLE001 -- whatever a repository holds, recall goes on
            self._log.failed("asking git", error)
            return ()
        files = tuple(name for name in told.changed if not name.endswith("/"))
        return files if len(files) <= MOST else ()
