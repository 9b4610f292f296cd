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
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from yester.files import replace_file
from yester.model import Item, Session

_FORM = b"yester: what was forgotten\n"
_KEY = 32
_RECORD = struct.Struct(">16sq")
_SHORTEST = 24  # characters; less is said twice by chance


def tombstones_file(home: Path) -> Path:
    return home / "forgotten"


def text_of_item(item: Item) -> str:
    """All that an item says, blanks made equal."""
    parts = (
        item.title, item.subtitle, item.body, *item.facts, *item.sections.values(),
    )  # fmt: skip
    return " ".join(" ".join(parts).split())


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
        self._make_mark.cache_clear()
        data = self._path.read_bytes() if found else b""
        if data.startswith(_FORM):
            start = len(_FORM) + _KEY
            self._key = data[len(_FORM) : start]
            whole = len(data) - (len(data) - start) % _RECORD.size
            for mark, made in _RECORD.iter_unpack(data[start:whole]):
                self._marks[mark] = max(made, self._marks.get(mark, made))

    def __len__(self) -> int:
        return len(self._marks)

    # --- asked ---------------------------------------------------------------------------------

    def hides(self, item: Item) -> bool:
        """Is this what was forgotten, or of a session or project that was?"""
        if not self._marks:
            return False
        when = max(item.epoch, item.updated)
        if any(when <= self._time_of(mark) for mark in self._marks_around(item)):
            return True
        said = self._mark_text(item)
        # A note has the time of its file, which is another one as soon as anything else changes.
        return said is not None and (0 if item.kind == "note" else when) <= self._time_of(said)

    def hides_session(self, session: Session) -> bool:
        marks = (
            self._make_mark("session", session.key),
            self._make_mark("project", session.project),
        )
        return bool(self._marks) and any(session.ended <= self._time_of(mark) for mark in marks)

    def hides_project(self, key: str) -> bool:
        return bool(self._marks) and self._make_mark("project", key) in self._marks

    def hides_title(self, session: str, title: str) -> bool:
        return (
            bool(self._marks and title) and self._make_mark("title", session, title) in self._marks
        )

    def hides_ref(self, source: str, kind: str, ref: str) -> bool:
        return bool(self._marks) and self._make_mark("ref", source, kind, ref) in self._marks

    def _marks_around(self, item: Item) -> Iterator[bytes]:
        yield self._make_mark("ref", item.source, item.kind, item.ref)
        if item.alias:
            yield self._make_mark("ref", item.source, item.kind, item.alias)
        yield self._make_mark("project", item.project)
        if item.session:
            yield self._make_mark("session", item.session)

    def _mark_text(self, item: Item) -> bytes | None:
        text = text_of_item(item)
        if len(text) < _SHORTEST and item.kind != "note":
            return None
        return self._digest(("text", item.session or item.project, text))

    def _time_of(self, mark: bytes) -> int:
        return self._marks.get(mark, -1)

    @lru_cache(4096)  # noqa: B019 -- one of these lives as long as its store
    def _make_mark(self, *parts: str) -> bytes:
        return self._digest(parts)

    def _digest(self, parts: Iterable[str]) -> bytes:
        import hmac  # 5 ms that whoever has forgotten nothing need not wait

        message = b"\0".join(part.encode("utf-8", "surrogatepass") for part in parts)
        return hmac.digest(self._key, message, "sha256")[:16]

    # --- written -------------------------------------------------------------------------------

    def add(
        self,
        now: int,
        items: Iterable[Item] = (),
        said: Iterable[Item] = (),
        titles: Iterable[Session] = (),
        sessions: Iterable[str] = (),
        projects: Iterable[str] = (),
    ) -> None:
        """From now on these are forgotten: items by where they stood and what they said, what came
        of them by what it `said` alone (it may be made anew of what is left), whole sessions and
        projects by their keys. On the disk when this returns."""
        self.refresh()
        if not self._key:
            self._key = os.urandom(_KEY)
            self._make_mark.cache_clear()
        new: dict[bytes, int] = {}
        for item in items:
            made = max(now, item.epoch, item.updated)
            new[self._make_mark("ref", item.source, item.kind, item.ref)] = made
            if (mark := self._mark_text(item)) is not None:
                new[mark] = made
        new |= {mark: now for item in said if (mark := self._mark_text(item)) is not None}
        new |= {self._make_mark("title", one.key, one.title): now for one in titles if one.title}
        new |= {self._make_mark("session", key): now for key in sessions}
        new |= {self._make_mark("project", key): now for key in projects}
        self._write({**self._marks, **new})

    def _write(self, marks: Mapping[bytes, int]) -> None:
        records = b"".join(_RECORD.pack(mark, made) for mark, made in sorted(marks.items()))
        replace_file(self._path, _FORM + self._key + records, sync=True)
        self.refresh()
