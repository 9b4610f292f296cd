"""What was forgotten, so that it stays forgotten: the file `forgotten` of a home.

It holds no text and no name: keyed digests of where something stood (source, kind and ref; a whole
session; a whole project) and of what it said, each with the time up to which it counts. It is a
file of its own, beside the database, so that a restored backup obeys it. What is said anew after
that time is stored.

    a line       its form
    32 bytes     the key
    24 bytes …   a mark and a time (ms), each; of a torn end nothing is read

Where other machines of the same owner have forgotten something, theirs follows: each set under the
key of its home, since a mark says nothing under another one.

    a line       the other form
    a set …      32 bytes: the key; 8 bytes: how many; so many marks and times. The first is ours

What something said counts within its session, or its project where it has none: the same few words
said elsewhere are another person's yes.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from yester.files import replace_file
from yester.model import Item, Session, replace

Key = tuple[str, ...]  # what a mark is made of

_FORM = b"yester: what was forgotten\n"
_FORM_OF_MANY = b"yester: what was forgotten, here and elsewhere\n"
_KEY = 32
_RECORD = struct.Struct(">16sq")
_NUMBER = struct.Struct(">q")
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


class Marks(NamedTuple):
    """What one home has forgotten: its key, and the time of each digest under it."""

    key: bytes
    times: dict[bytes, int]

    def digest(self, key: Key) -> bytes:
        import hmac  # 5 ms that whoever has forgotten nothing need not wait

        message = b"\0".join(part.encode("utf-8", "surrogatepass") for part in key)
        return hmac.digest(self.key, message, "sha256")[:16]

    def add(self, times: Mapping[bytes, int]) -> Marks:
        later = {mark: max(made, self.times.get(mark, made)) for mark, made in times.items()}
        return Marks(self.key, {**self.times, **later})

    @property
    def records(self) -> bytes:
        return b"".join(_RECORD.pack(mark, made) for mark, made in sorted(self.times.items()))

    @classmethod
    def from_records(cls, key: bytes, records: bytes) -> Marks:
        """Of a torn end nothing is read; of a mark that is there twice the later time counts."""
        whole, times = len(records) - len(records) % _RECORD.size, dict[bytes, int]()
        for mark, made in _RECORD.iter_unpack(records[:whole]):
            times[mark] = max(made, times.get(mark, made))
        return cls(key, times)


class Tombstones:
    """As the file of a home says; none where there is none."""

    def __init__(self, home: Path) -> None:
        self._path = tombstones_file(home)
        self._stamp: tuple[int, int] | None = None
        self._sets: list[Marks] = []  # the first is ours
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
        self._stamp, self._sets = stamp, []
        data = self._path.read_bytes() if found else b""
        if data.startswith(_FORM):
            rest = data[len(_FORM) :]
            self._sets = [Marks.from_records(rest[:_KEY], rest[_KEY:])]
        elif data.startswith(_FORM_OF_MANY):
            self._sets = list(_read_sets(data[len(_FORM_OF_MANY) :]))

    def __len__(self) -> int:
        return sum(len(one.times) for one in self._sets)

    @property
    def own(self) -> Marks:
        """What this home itself has forgotten."""
        return self._sets[0] if self._sets else Marks(b"", {})

    @property
    def others(self) -> list[Marks]:
        return self._sets[1:]

    def find_new(self, theirs: Marks) -> Marks:
        """What of another home's is not known here yet."""
        known: Mapping[bytes, int] = next(
            (one.times for one in self._sets if one.key == theirs.key), {}
        )
        new = {mark: at for mark, at in theirs.times.items() if at > known.get(mark, -1)}
        return Marks(theirs.key, new)

    def hides(self, item: Item) -> bool:
        """Is this what was forgotten, or of a session or project that was?"""
        if not len(self):
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
        found = (one.times.get(one.digest(key), -1) for one in self._sets if one.times)
        return max(found, default=-1) if key else -1

    def add(self, keys: Mapping[Key, int], theirs: Marks | None = None) -> None:
        """From now on these are forgotten, each up to its time, and what another home has. On the
        disk when this returns."""
        self.refresh()
        own = self.own if self.own.key else Marks(os.urandom(_KEY), {})
        own = own.add({own.digest(key): made for key, made in keys.items() if key})
        others = {one.key: one for one in self.others}
        if theirs is not None and theirs.key == own.key:  # of a copy of this home, or of its past
            own = own.add(theirs.times)
        elif theirs is not None and theirs.times:
            others[theirs.key] = others.get(theirs.key, Marks(theirs.key, {})).add(theirs.times)
        data = _FORM + own.key + own.records
        if others:
            sets = (own, *others.values())
            parts = (one.key + _NUMBER.pack(len(one.times)) + one.records for one in sets)
            data = _FORM_OF_MANY + b"".join(parts)
        replace_file(self._path, data, sync=True)
        self.refresh()


def _read_sets(data: bytes) -> Iterator[Marks]:
    while len(data) >= _KEY + _NUMBER.size:
        (number,) = _NUMBER.unpack_from(data, _KEY)
        start = _KEY + _NUMBER.size
        end = start + number * _RECORD.size
        yield Marks.from_records(data[:_KEY], data[start:end])
        data = data[end:]
