"""The worker's log: what it did and where it failed, never what it captured.

An exception is logged by its kind and the places it went through; its message may quote a text.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb

LARGEST, KEPT = 1_000_000, 3


class Log:
    def __init__(
        self, folder: Path, clock: Callable[[], float] = time.time, name: str = "worker.log"
    ) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._path = folder / name
        self._clock = clock

    def say(self, text: str) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._clock()))
        try:
            self._rotate()
            with open(self._path, "a", encoding="utf-8", opener=_private) as file:
                file.write(f"{moment} {text}\n")
        except OSError:
            pass  # a full disk must not stop the worker

    def failed(self, what: str, error: BaseException) -> None:
        places = " < ".join(
            f"{Path(frame.filename).name}:{frame.lineno}"
            for frame in reversed(extract_tb(error.__traceback__))
        )
        self.say(f"{what} failed: {type(error).__name__} at {places or 'unknown'}")

    def _rotate(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < LARGEST:
            return
        for number in range(KEPT - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))


def _private(path: str, flags: int) -> int:
    import os

    return os.open(path, flags, 0o600)
