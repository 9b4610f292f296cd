"""run/working: what the worker is at, for the one that comes after it.

    yester 0.1.0                                   another version begins without suspicion
    > 0 ["event", "1770000000123456789-42-0a", 0, 0]    it is at this now; none has ended at it
      1 ["transcript", "/home/sam/…", 52480, 99310]     one has, at byte 52480 of 99310
    .
    failed: MemoryError                            it has ended by itself, and says so

Written before each piece of work, by one call and not synced: it must survive a kill, not a power
cut. An event or a transcript at which two workers have ended, however, is not tried again, unless
there is something new about it: another place that was reached, another size, another version.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TWICE = 2
# Whoever is back sooner than this was killed from outside, for all that can be known, unless it
# has left word: a piece of work takes some hundredths of a second.
_AT_ONCE = 1.0  # seconds
_BY_ITSELF = ("failed: ", "Fatal Python error: ")  # the second is faulthandler's


class Piece(NamedTuple):
    """Something to work on, how far the work has come and how much there is of it."""

    kind: str  # event, transcript, session
    name: str
    reached: int = 0
    size: int = 0


class Working:
    """`begin` a piece of work, `rest` when nothing is under way, `settle` what has gone well."""

    def __init__(self, path: Path, version: str, now: float) -> None:
        self._path = path
        self._head = f"yester {version}"
        self._at: tuple[Piece, ...] = ()
        self._marks = True
        # What work there was → how far it had come, and how many workers have ended there.
        self._ended: dict[tuple[str, str], tuple[Piece, int]] = {}
        self.found: tuple[Piece, ...] = ()  # at which the one before us has ended
        self.another_version = False  # was the one before us of another?
        self._handle = self._faults = -1
        with suppress(OSError):  # a full disk: then nothing is suspected
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._load(now)
            self._write()

    def close(self) -> None:
        if self._faults >= 0:
            faulthandler.disable()
            os.close(self._faults)
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = self._faults = -1

    def ended(self, piece: Piece) -> int:
        """How many workers have ended at it. Of another size it gets one more try."""
        known, number = self._ended.get(piece[:2], (piece, 0))
        if known.reached != piece.reached:
            return 0
        return number if known.size == piece.size else min(number, TWICE - 1)

    def begin(self, *pieces: Piece) -> None:
        if pieces != self._at and (self._marks or not pieces):
            for piece in pieces:
                number = self.ended(piece)
                if self._ended.pop(piece[:2], None) and number:
                    self._ended[piece[:2]] = piece, number
            self._at = pieces
            self._write()

    def rest(self) -> None:
        self.begin()

    def settle(self, *pieces: Piece) -> None:
        if [piece for piece in pieces if self._ended.pop(piece[:2], None)]:
            self._write()

    def forget(self) -> None:
        """All that is known of before: it may be tried again."""
        self._ended.clear()
        self._write()

    def mark_no_more(self) -> None:
        """It has been told to end: whoever kills it from now on does not find it too slow at a
        piece of work, but at all that there is to do."""
        self.rest()
        self._marks = False

    def catch_faults(self) -> None:
        """Have it written here when the interpreter crashes."""
        if self._handle >= 0 and not faulthandler.is_enabled():
            with suppress(OSError):
                self._faults = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
                faulthandler.enable(self._faults, all_threads=False)

    def fail(self, error: BaseException) -> None:
        """Leave word that it was not killed from outside."""
        self._write(f"{_BY_ITSELF[0]}{type(error).__name__}\n")

    def _load(self, now: float) -> None:
        found = os.fstat(self._handle)
        text = os.pread(self._handle, found.st_size, 0).decode("utf-8", "replace")
        head, *lines = text.split("\n")
        if head != self._head:
            self.another_version = bool(head)
            return
        end = lines.index(".") if "." in lines else len(lines)
        by_itself = "".join(lines[end + 1 : end + 2]).startswith(_BY_ITSELF)
        suspect = by_itself or now - found.st_mtime >= _AT_ONCE
        at = []
        for line in lines[:end]:
            with suppress(
                ValueError, TypeError, OverflowError
            ):  # half written: that costs a suspicion
                mark, times, words = line[:1], *line[2:].split(" ", 1)
                kind, name, reached, size = json.loads(words)
                piece, number = Piece(str(kind), str(name), int(reached), int(size)), int(times)
                if mark == ">" and suspect:
                    number += 1
                    at.append(piece)
                if number:
                    self._ended[piece[:2]] = piece, number
        self.found = tuple(at)

    def _write(self, last: str = "") -> None:
        pieces = {piece[:2]: (">", piece, self.ended(piece)) for piece in self._at}
        for key, (piece, number) in self._ended.items():
            pieces.setdefault(key, (" ", piece, number))
        lines = [f"{mark} {number} {json.dumps(piece)}" for mark, piece, number in pieces.values()]
        data = "\n".join([self._head, *lines, ".", last]).encode()
        with suppress(OSError):
            os.pwrite(self._handle, data, 0)
            os.ftruncate(self._handle, len(data))


def clear_marks(path: Path) -> None:
    """It was killed on purpose, so what it was at is not to blame. The caller has its seat."""
    with suppress(OSError):
        data = path.read_bytes()
        path.write_bytes(re.sub(rb"(?m)^>", b" ", data))
