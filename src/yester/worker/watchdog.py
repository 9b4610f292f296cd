"""Ends the worker when a step of it takes far too long: the next hook starts another one.

Two timers of the kernel's. One counts the processor's time, and its signal is nobody's to handle:
it acts whatever the process is doing, where a thread would wait for the interpreter's lock. The
other counts the time on the wall, for a step that waits for something that never comes; it goes on
while the process is stopped (SIGSTOP, a frozen container), so only several of its ticks end it:
while it is stopped, they are one. Where the worker was is written into the log, without values.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

HUNG = 60.0  # seconds; a step is meant to take some hundredths of one
_TICKS = 4  # of the time on the wall


class Watchdog:
    """`watch` before each step, `sleep` when none is under way. `seconds` 0: never."""

    def __init__(self, log: Path, seconds: float) -> None:
        self._seconds = seconds
        self._ticks = 0
        self._log = -1
        if seconds:
            signal.signal(signal.SIGALRM, self._tick)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            with suppress(OSError):  # a full disk: it ends without a word
                self._log = os.open(log, flags, 0o600)
                faulthandler.register(signal.SIGPROF, self._log, all_threads=False, chain=True)

    def watch(self) -> None:
        if self._seconds:
            self._ticks = 0
            signal.setitimer(signal.ITIMER_REAL, self._seconds / _TICKS, self._seconds / _TICKS)
            signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def sleep(self) -> None:
        if self._seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """For a step that may rightly take minutes."""
        self.sleep()
        yield
        self.watch()

    def close(self) -> None:
        """A timer outlives what a process runs instead of itself."""
        self.sleep()
        if self._seconds:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self._log >= 0:
            faulthandler.unregister(signal.SIGPROF)
            os.close(self._log)
        self._log, self._seconds = -1, 0.0

    def _tick(self, number: int, _: FrameType | None) -> None:
        self._ticks += 1
        if self._ticks >= _TICKS:
            if self._log >= 0:
                faulthandler.dump_traceback(self._log, all_threads=False)
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
