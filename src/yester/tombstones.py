"""What was forgotten, so that it stays forgotten: the file `forgotten` of a home.

It holds no text and no name: keyed digests of where something stood (source, kind and ref; a whole
session; a whole project) and of what it said, each with the time up to which it counts. It is a
file of its own, beside the database, so that a restored backup obeys it. What is said anew after
that time is stored.

    a line       its form
    32 bytes     the key
    24 bytes …   a mark and a time (ms), each; of a torn end nothing is read

What something said counts within its session, or its project where it has none: the same few words
said elsewhere are another person's yes.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path

from yester.files import replace_file
from yester.model import Item, Session, replace

Key = tuple[str, ...]  # what a mark is made of

_FORM = b"yester: what was forgotten\n"
_KEY = 32
_RECORD = struct.Struct(">16sq")
_WORD = re.compile(r"[a-z0-9]+")
_SHORTEST = 24  # characters; less is said twice by chance


def tombstones_file(home: Path) -> Path:
    return home / "forgotten"


def ref_key(item: Item) -> Key:
    return ("ref", item.source, item.kind, item.ref)


def text_key(item: Item) -> Key:
    """All that an item says, blanks made equal; () where that is too little to know it by."""
    parts = (item.title, item.subtitle, item.body, *item.facts, *item.sections.values())
    text = " ".join(" ".join(parts).split())
    if len(text) < _SHORTEST and item.kind != "note":
        return ()
    return ("text", item.session or item.project, text)


def label_keys(session: Session) -> list[Key]:
    """What a session is called."""
    return [("title", session.key, text) for text in (session.title, session.branch) if text]


def lost_words(before: str, after: str) -> set[str]:
    """Words that stand in the first text alone, as something may be called by them."""
    return {*_WORD.findall(before.lower())} - {*_WORD.findall(after.lower())}


class Tombstones:
    """As the file of a home says; none where there is none."""

    def __init__(self, home: Path) -> None:
        self._path = tombstones_file(home)
        self._stamp: tuple[int, int] | None = None
        self._marks: dict[bytes, int] = {}
        self._key = b""
        self.refresh()

    def refresh(self) -> None:
        """Somebody else may have written."""
        try:
            found = self._path.stat()
        except OSError:
            found = None
        stamp = (found.st_mtime_ns, found.st_size) if found else None
        if stamp == self._stamp:
            return
        self._stamp, self._key, self._marks = stamp, b"", {}
        data = self._path.read_bytes() if found else b""
        if data.startswith(_FORM):
            start = len(_FORM) + _KEY
            self._key = data[len(_FORM) : start]
            whole = len(data) - (len(data) - start) % _RECORD.size
            for mark, made in _RECORD.iter_unpack(data[start:whole]):
                self._marks[mark] = max(made, self._marks.get(mark, made))

    def __len__(self) -> int:
        return len(self._marks)

    def hides(self, item: Item) -> bool:
        """Is this what was forgotten, or of a session or project that was?"""
        if not self._marks:
            return False
        around = [ref_key(item), ("project", item.project), ("session", item.session)]
        if item.alias:
            around.append(("ref", item.source, item.kind, item.alias))
        when = max(item.epoch, item.updated)
        if any(when <= self._time_of(key) for key in around):
            return True
        # A note has the time of its file, which is another one as soon as anything else changes.
        return (0 if item.kind == "note" else when) <= self._time_of(text_key(item))

    def hides_session(self, session: Session) -> bool:
        keys = (("session", session.key), ("project", session.project))
        return any(session.ended <= self._time_of(key) for key in keys)

    def knows(self, *key: str) -> bool:
        """Was this forgotten, whenever?"""
        return self._time_of(key) >= 0

    def clean_session(self, session: Session) -> Session:
        """Without what it is called, where that was forgotten."""
        labels = self.clean_labels(session.key, {"title": session.title, "branch": session.branch})
        return replace(session, title=labels["title"], branch=labels["branch"])

    def clean_labels(self, session: str, labels: Mapping[str, str]) -> dict[str, str]:
        return {
            name: "" if self.knows("title", session, text) else text
            for name, text in labels.items()
        }

    def _time_of(self, key: Key) -> int:
        return self._marks.get(self._digest(key), -1) if self._marks and key else -1

    def _digest(self, key: Key) -> bytes:
        import hmac  # 5 ms that whoever has forgotten nothing need not wait

        message = b"\0".join(part.encode("utf-8", "surrogatepass") for part in key)
        return hmac.digest(self._key, message, "sha256")[:16]

    def add(self, keys: Mapping[Key, int]) -> None:
        """From now on these are forgotten, each up to its time. On the disk when this returns."""
        self.refresh()
        self._key = self._key or os.urandom(_KEY)
        marks = {**self._marks, **{self._digest(key): made for key, made in keys.items() if key}}
        records = b"".join(_RECORD.pack(mark, made) for mark, made in sorted(marks.items()))
        replace_file(self._path, _FORM + self._key + records, sync=True)
        self.refresh()
