"""run/working: what the worker is at, for the one that comes after it.

    yester 0.1.0                           another version begins without suspicion
    > 0 "event 1770000000123456789-42-0a"  it is at this now, and no worker has ended at it before
      1 "transcript /home/sam/…"           one has; it is taken alone
    .

Written before each piece of work, by one call and not synced: it must survive a kill, not a power
cut. An event or a transcript at which two workers have ended, however, is not tried again.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

TWICE = 2
# Whoever is back sooner than this was killed from outside, for all that can be known: a piece of
# work takes some hundredths of a second, and a worker that ends by itself waits for the next hook.
_AT_ONCE = 3.0  # seconds


class Working:
    """`begin` a piece of work, `rest` when nothing is under way, `settle` what has gone well."""

    def __init__(self, path: Path, version: str, now: float) -> None:
        self._head = f"yester {version}"
        self._at: tuple[str, ...] = ()
        self._ended: dict[str, int] = {}  # piece of work → how many workers have ended at it
        self.found: tuple[str, ...] = ()  # at which the one before us has ended
        self._handle = -1
        with suppress(OSError):  # a full disk: then nothing is suspected
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._load(now)
            self._write()

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def ended(self, piece: str) -> int:
        """How many workers have ended at it."""
        return self._ended.get(piece, 0)

    def begin(self, *pieces: str) -> None:
        if pieces != self._at:
            self._at = pieces
            self._write()

    def rest(self) -> None:
        self.begin()

    def settle(self, *pieces: str) -> None:
        for piece in pieces:
            self._ended.pop(piece, None)

    def _load(self, now: float) -> None:
        found = os.fstat(self._handle)
        text = os.pread(self._handle, found.st_size, 0).decode("utf-8", "replace")
        head, *lines = text.split("\n")
        if head != self._head:
            return
        suspect = now - found.st_mtime >= _AT_ONCE
        at = []
        for line in lines:
            if line == ".":
                break
            with suppress(ValueError):  # half written: an unlucky moment costs a suspicion
                mark, times, piece = line[:1], *line[2:].split(" ", 1)
                name, number = str(json.loads(piece)), int(times)
                if mark == ">" and suspect:
                    number += 1
                    at.append(name)
                if number:
                    self._ended[name] = number
        self.found = tuple(at)

    def _write(self) -> None:
        pieces = {piece: f"> {self.ended(piece)}" for piece in self._at}
        pieces |= {piece: f"  {n}" for piece, n in self._ended.items() if piece not in pieces}
        lines = [f"{mark} {json.dumps(piece)}" for piece, mark in pieces.items()]
        data = "\n".join([self._head, *lines, ".", ""]).encode()
        with suppress(OSError):
            os.pwrite(self._handle, data, 0)
            os.ftruncate(self._handle, len(data))
