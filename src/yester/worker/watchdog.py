"""Ends the worker when a step of it takes far too long: the next hook starts another one.

A timer of the kernel's and a signal nobody handles: it acts whatever the process is doing, where a
thread would wait for the interpreter's lock. Where it was is written into the log, without values.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HUNG = 60.0  # seconds; a step is meant to take some hundredths of one


class Watchdog:
    """`watch` before each step, `sleep` when none is under way. `seconds` 0: never."""

    def __init__(self, log: Path, seconds: float) -> None:
        self._seconds = seconds
        self._log = -1
        if seconds:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with suppress(OSError):  # a full disk: it ends without a word
                self._log = os.open(log, flags, 0o600)
                faulthandler.register(signal.SIGALRM, self._log, all_threads=False, chain=True)

    def watch(self) -> None:
        if self._seconds:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def sleep(self) -> None:
        if self._seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """For a step that may rightly take minutes."""
        self.sleep()
        yield
        self.watch()

    def close(self) -> None:
        """A timer outlives what a process runs instead of itself."""
        self.sleep()
        if self._log >= 0:
            faulthandler.unregister(signal.SIGALRM)
            os.close(self._log)
            self._log, self._seconds = -1, 0.0
