"""The reader model's titles in the worker, whose own thread must not wait for a model.

A turn that was not read yet is distilled without the reader's title. The embedding thread reads it
afterwards, and the session is distilled once more: that time its titles are known.
"""

from __future__ import annotations

import hashlib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yester.errors import StoreError
from yester.model import Waiting
from yester.store.contract import Store

if TYPE_CHECKING:
    from yester.text.reader import Title, TitleFinder

_MOST_KNOWN = 20_000  # turns; a session that had more would be read again and again


@dataclass(slots=True)
class _Unread:
    """The turns of a session that are to be read, and since when it was distilled without them."""

    session: int
    since: int
    texts: dict[bytes, tuple[str, str]]
    useful: bool = False  # one of them has a title


class ReadTitles:
    """`find_title` and `hand_over` are for the worker's own thread, the rest for the reading one.
    The two share nothing but whole entries of a dict and a deque."""

    def __init__(self) -> None:
        self._known: dict[bytes, Title] = {}
        self._asked: dict[bytes, tuple[str, str]] = {}
        self._unread: deque[_Unread] = deque()
        self._absent = False  # there is no reader

    def find_title(self, request: str, closing: str) -> Title:
        """What is known by now; else it is asked for, and there is none."""
        from yester.text.reader import CLOSING_CHARACTERS, NO_TITLE, REQUEST_CHARACTERS

        texts = request[:REQUEST_CHARACTERS], closing[:CLOSING_CHARACTERS]
        key = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()
        title = self._known.get(key)
        if title is None and not self._absent:
            self._asked[key] = texts
        return title or NO_TITLE

    def hand_over(self, waiting: Waiting) -> None:
        """A session was distilled: what it asked for is to be read."""
        if self._asked:
            self._unread.append(_Unread(waiting.session.id, waiting.since, self._asked))
            self._asked = {}

    def has_unread(self) -> bool:
        return bool(self._unread)

    def read_next(self, store: Store, reader: TitleFinder) -> bool:
        """Read one turn. True: it was the last of its session, which waits to be distilled now."""
        first = self._unread[0]
        if first.texts:
            key, texts = first.texts.popitem()
            if key not in self._known:
                self._remember(key, _find_title_safely(reader, *texts))
            first.useful = first.useful or self._known[key].usable
        if first.texts:
            return False
        if first.useful:
            _queue_session(store, first)
        self._unread.popleft()
        return first.useful

    def give_up(self) -> None:
        """There is no reader: nothing is asked for any more."""
        self._absent = True
        self._unread.clear()

    def put_off(self, store: Store) -> None:
        """The thread ends: the next worker distils these sessions again, and asks again."""
        with suppress(StoreError):
            while self._unread:
                _queue_session(store, self._unread[0])
                self._unread.popleft()

    def _remember(self, key: bytes, title: Title) -> None:
        if len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[key] = title


def _queue_session(store: Store, unread: _Unread) -> None:
    with store.transaction("work"):
        store.queue_sessions({unread.session: unread.since})


def _find_title_safely(reader: TitleFinder, request: str, closing: str) -> Title:
    from yester.text.reader import NO_TITLE

    try:
        return reader.find_title(request, closing)
    except Exception:  # noqa: BLE001 -- one text's fault must not stop the others
        return NO_TITLE
