"""What is new, as it happens: server-sent events for any number of clients, from one thread.

    event: ready       where the stream stands; the first one
    event: item        a new item, as a row of an index
    event: injection   a line of the ledger: an agent was shown something
    event: memory      a memory was written: its id, and its status and version by now
    event: gap         more was missed than is told again; load what is shown anew

An event's id is `ITEM-LINE-CHANGE`: the newest item, line of the ledger and line of the history of
memories the client has been told of; without the last, none of those. With it as Last-Event-ID a
client goes on where it was. The thread asks SQLite every
quarter of a second whether anybody has committed, which costs microseconds, and only while somebody
listens. Every event is encoded once and kept in one ring for all: a client that is slow keeps
nothing but its place, and one that does not read at all is dropped.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import islice
from typing import NamedTuple

import msgspec

from yester.deliver.http import ledger
from yester.deliver.http.access import Access, Home
from yester.deliver.http.memory_shapes import MemoryWritten
from yester.deliver.http.rows import Rows
from yester.errors import YesterError
from yester.model import Injection, Page
from yester.store.contract import Store

_POLL = 0.25  # seconds
_BEAT = 15.0  # seconds between signs of life
_KEPT = 1_000  # events in the ring
_READ = 500  # rows of each kind read at a time
MOST_MISSED = 2_000  # rows told to a client that comes back
_PLACE = re.compile(r"([0-9]{1,15})-([0-9]{1,15})(?:-([0-9]{1,15}))?", re.ASCII)


class Place(NamedTuple):
    item: int
    line: int
    change: int = 0

    def __str__(self) -> str:
        return "-".join(map(str, self if self.change else self[:2]))

    def past(self, other: Place) -> bool:
        """Is it behind the other in anything?"""
        return any(mine > its for mine, its in zip(self, other, strict=True))


class Told(NamedTuple):
    """An event as it is sent, and the place a client is at behind it."""

    place: Place
    data: bytes


def place(text: str) -> Place | None:
    """A Last-Event-ID; None where it is none of ours."""
    match = _PLACE.fullmatch(text.strip())
    return Place(*(int(part or 0) for part in match.groups())) if match else None


def written(name: str, at: Place, value: object) -> Told:
    """JSON holds no raw line break, so nothing in it can end an event or begin another."""
    data = msgspec.json.encode(value)
    return Told(at, b"event: %s\nid: %s\ndata: %s\n\n" % (name.encode(), str(at).encode(), data))


def news(store: Store, since: Place, until: Place | None = None, most: int = _READ) -> list[Told]:
    """What has come since (and not behind `until`), items first; at most so many of each."""
    found = []
    items = list(islice(store.items(since.item), most))
    for row in Rows(store).of(item for item in items if until is None or item.id <= until.item):
        since = since._replace(item=row.id)
        found.append(written("item", since, row))
    page = Page(most, after=since.line, oldest_first=True)
    lines = store.entries(Injection, page=page)
    for line in ledger.shown(store, [o for o in lines if until is None or o.id <= until.line]):
        since = since._replace(line=line.id)
        found.append(written("injection", since, line))
    for one in store.changed_since(since.change, most):
        if until is None or one.id <= until.change:
            since = since._replace(change=one.id)
            told = MemoryWritten(id=one.item, status=one.status, version=one.version)
            found.append(written("memory", since, told))
    return found


def missed(access: Access, since: Place, until: Place) -> list[Told]:
    """What a client that comes back has not been told; a gap where that would be too much."""
    if sum(end - begin for begin, end in zip(since, until, strict=True)) > MOST_MISSED:
        return [written("gap", until, {})]
    return news(access.store, since, until, MOST_MISSED) or [written("gap", until, {})]


class Stream:
    """`close` it at the end. `missed` (above) is called through `read`, in a thread of the pool."""

    def __init__(
        self,
        home: Home,
        read: Callable[[Place, Place], Awaitable[list[Told]]],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self._home, self._read, self._failed = home, read, failed
        self._ring: deque[Told] = deque(maxlen=_KEPT)
        self._begin = self._end = Place(0, 0)  # before the first event of the ring, behind the last
        self._news = asyncio.Event()
        self._ready = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._poke = threading.Event()
        self._anew = False  # somebody listens again: what came meanwhile is not news
        self._closed = False
        self.clients = 0

    # --- clients, in the loop -------------------------------------------------------------------

    async def events(self, last: Place | None) -> AsyncGenerator[bytes, None]:
        """What one client is sent, without end."""
        self.clients += 1
        if self.clients == 1:
            self._begin_anew()
        try:
            await self._ready.wait()
            here = self._end if last is None else last
            yield b"retry: 2000\n" + written("ready", here, {}).data
            while not self._closed:
                news = self._news
                behind = await self._behind(here)
                for one in behind:
                    here = one.place
                    yield one.data
                if behind:
                    continue
                try:
                    await asyncio.wait_for(news.wait(), _BEAT)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self.clients -= 1

    async def _behind(self, here: Place) -> list[Told]:
        """What comes behind a place: from the ring or, where it does not reach, the store."""
        end = self._end
        if here == end:
            return []
        if here.past(end):  # a backup was restored
            return [written("gap", end, {})]
        if self._begin.past(here):
            return await self._read(here, end)
        return [one for one in self._ring if one.place.past(here)]

    def _publish(self, told: list[Told]) -> None:
        for one in told:
            if len(self._ring) == _KEPT:
                self._begin = self._ring[0].place
            self._ring.append(one)
        self._end = told[-1].place
        self._awake()

    def _reset(self, at: Place) -> None:
        self._ring.clear()
        self._begin = self._end = at
        self._ready.set()
        self._awake()

    def _awake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """In the loop: every client's stream ends."""
        self._closed = True
        self._ready.set()
        self._awake()
        self._poke.set()

    def _begin_anew(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready.clear()
        self._anew = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="stream", daemon=True)
            self._thread.start()
        self._poke.set()

    # --- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        access = Access(self._home)
        known: Store | None = None
        version, at, said = -1, Place(0, 0), ""
        while not self._closed:
            try:
                store = access.store
                if self._anew or store is not known:
                    self._anew, known = False, store
                    version = store.changed()
                    at = Place(*store.last_ids(), store.last_change())
                    self._tell(self._reset, at)
                elif (now := store.changed()) != version:
                    told = news(store, at)
                    if told:
                        at = told[-1].place
                        self._tell(self._publish, told)
                    if len(told) < _READ:  # else there may be more
                        version = now
                said = ""
            except (YesterError, OSError) as error:  # restored, busy, gone for a moment
                if said != str(error):
                    said = str(error)
                    self._failed("streaming", error)
                known = None
            self._poke.wait(_POLL if self.clients else None)
            self._poke.clear()
        access.close()

    def _tell(self, what: Callable[..., None], *args: object) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(what, *args)
        except RuntimeError:  # the loop has ended
            self._closed = True
