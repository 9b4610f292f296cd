"""What keeps one piece of work from stopping the worker for ever: a watchdog, and marks.

`Watchdog` ends the worker when a step of it takes far too long: the next hook starts another one.
Two timers of the kernel's. One counts the processor's time, and its signal is nobody's to handle:
it acts whatever the process is doing, where a thread would wait for the interpreter's lock. The
other counts the time on the wall, for a step that waits for something that never comes; it goes on
while the process is stopped (SIGSTOP, a frozen container), so only several of its ticks end it:
while it is stopped, they are one. Where the worker was is written into the log, without values.

`Marks` is run/working: what the worker is at, for the one that comes after it.

    yester 0.1.0                        another version begins without suspicion
    {"at": [["event", "1770000000123456789-42-0a", 0, 0]],            it is at this now
     "ended": [[["transcript", "/home/sam/…", 52480, 99310], 1]]}     one has ended at byte 52480
    failed: MemoryError                 it has ended by itself, and says so

Written before each piece of work, by one call and not synced: it must survive a kill, not a power
cut. An event or a transcript at which two workers have ended, however, is not tried again, unless
there is something new about it: another place that was reached, another size, another version.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import msgspec

from yester.machine import QUIET

HUNG = 60.0  # seconds; a step is meant to take some hundredths of one
_TICKS = 4  # of the time on the wall
TWICE = 2
# Whoever is back sooner than this was killed from outside, for all that can be known, unless it
# has left word: a piece of work takes some hundredths of a second.
_AT_ONCE = 1.0  # seconds
_BY_ITSELF = ("failed: ", "Fatal Python error: ")  # the second is faulthandler's


class Watchdog:
    """`watch` before each step, `sleep` when none is under way. Nothing happens before `start`."""

    def __init__(self, log: Path) -> None:
        self._path = log
        self._seconds = 0.0
        self._ticks = 0
        self._log = -1

    def start(self, seconds: float) -> None:
        """From now on a step may take so long; 0: any time."""
        self._seconds = seconds
        if seconds:
            signal.signal(signal.SIGALRM, self._count_tick)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | QUIET
            with suppress(OSError):  # a full disk: it ends without a word
                self._log = os.open(self._path, flags, 0o600)
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

    def _count_tick(self, number: int, _: FrameType | None) -> None:
        self._ticks += 1
        if self._ticks >= _TICKS:
            if self._log >= 0:
                faulthandler.dump_traceback(self._log, all_threads=False)
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


class Piece(NamedTuple):
    """Something to work on, how far the work has come and how much there is of it."""

    kind: str  # event, transcript, session
    name: str
    reached: int = 0
    size: int = 0


class _Marked(msgspec.Struct):
    at: tuple[Piece, ...]
    ended: tuple[tuple[Piece, int], ...]


class Marks:
    """`begin_work` on pieces, on none when nothing is under way, `settle` what has gone well."""

    def __init__(self, path: Path, version: str, now: float) -> None:
        self._head = f"yester {version}"
        self._at: tuple[Piece, ...] = ()
        self._marks = True
        self._catches = False
        # What work there was → how far it had come, and how many workers have ended there.
        self._ended: dict[tuple[str, str], tuple[Piece, int]] = {}
        self.found: tuple[Piece, ...] = ()  # at which the one before us has ended
        self.another_version = False  # was the one before us of another?
        self._handle = -1
        with suppress(OSError):  # a full disk: then nothing is suspected
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | QUIET, 0o600)
            self._load_marks(now)
            self._write_marks()

    def close(self) -> None:
        if self._handle >= 0:
            if self._catches:
                faulthandler.disable()
            os.close(self._handle)
        self._handle = -1

    def ended_workers(self, piece: Piece) -> int:
        """How many workers have ended at it. Of another size it gets one more try."""
        known, number = self._ended.get(piece[:2], (piece, 0))
        if known.reached != piece.reached:
            return 0
        return number if known.size == piece.size else min(number, TWICE - 1)

    def begin_work(self, *pieces: Piece) -> None:
        if pieces != self._at and (self._marks or not pieces):
            for piece in pieces:
                number = self.ended_workers(piece)
                if self._ended.pop(piece[:2], None) and number:
                    self._ended[piece[:2]] = piece, number
            self._at = pieces
            self._write_marks()

    def settle(self, *pieces: Piece) -> None:
        if [piece for piece in pieces if self._ended.pop(piece[:2], None)]:
            self._write_marks()

    def forget(self) -> None:
        """All that is known of before: it may be tried again."""
        self._ended.clear()
        self._write_marks()

    def end_marking(self) -> None:
        """It has been told to end: whoever kills it from now on does not find it too slow at a
        piece of work, but at all that there is to do."""
        self.begin_work()
        self._marks = False

    def catch_faults(self) -> None:
        """Have it written here when the interpreter crashes."""
        if self._handle >= 0 and not faulthandler.is_enabled():
            faulthandler.enable(self._handle, all_threads=False)
            self._catches = True

    def leave_word(self, error: BaseException) -> None:
        """Leave word that it was not killed from outside."""
        self._write_marks(f"{_BY_ITSELF[0]}{type(error).__name__}\n")

    def _load_marks(self, now: float) -> None:
        found = os.fstat(self._handle)
        text = os.pread(self._handle, found.st_size, 0).decode("utf-8", "replace")
        head, marks, last = (text + "\n\n").split("\n", 2)
        if head != self._head:
            self.another_version = bool(head)
            return
        # Half written: that costs a suspicion.
        with suppress(ValueError, RecursionError, msgspec.ValidationError):
            before = msgspec.convert(json.loads(marks), _Marked)
            self._ended = {piece[:2]: (piece, number) for piece, number in before.ended}
            if last.startswith(_BY_ITSELF) or now - found.st_mtime >= _AT_ONCE:
                self.found = before.at
        for piece in self.found:
            _, number = self._ended.get(piece[:2], (piece, 0))
            self._ended[piece[:2]] = piece, number + 1

    def _write_marks(self, last: str = "") -> None:
        marks = json.dumps({"at": self._at, "ended": [*self._ended.values()]})
        data = f"{self._head}\n{marks}\n{last}".encode()
        with suppress(OSError):
            os.pwrite(self._handle, data, 0)
            os.ftruncate(self._handle, len(data))
            os.lseek(self._handle, len(data), os.SEEK_SET)  # a fault is written behind it


def clear_marks(path: Path) -> None:
    """It was killed on purpose, so what it was at is not to blame. The caller has its seat."""
    with suppress(OSError):
        head = path.read_text("utf-8", "replace").partition("\n")[0]
        Marks(path, head.removeprefix("yester "), 0.0).close()
