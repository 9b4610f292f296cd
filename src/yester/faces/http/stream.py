"""What is new, as it happens: server-sent events for any number of clients.

    event: ready       where the stream stands; the first one
    event: item        a new item, as a row of an index
    event: injection   a line of the ledger: an agent was shown something
    event: memory      a memory was written: its id, and its status and version by now
    event: gap         more was missed than is told again; load what is shown anew

An event's id is the cursor of the store's feed behind it; with it as Last-Event-ID a client goes on
where it was. While somebody listens, the store is asked every quarter of a second whether anybody
has committed, which costs microseconds. What came last is encoded once for all: a client that is
slow keeps nothing but its place and is told the rest from the store, and one that does not read at
all is dropped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from yester.errors import FeedExpired, YesterError
from yester.memory import Memory
from yester.model import FeedLine, Injection, Item, MemoryChange
from yester.operations.items import Rows
from yester.operations.ledger import describe_injections
from yester.store.contract import Store

_POLL = 0.25  # seconds
_BEAT = 15.0  # seconds between signs of life
_READ = 500  # rows of each kind read at a time
MOST_MISSED = 2_000  # rows told to a client that comes back
_CURSOR = re.compile(r"[0-9]{1,15}-[0-9]{1,15}(?:-[0-9]{1,15})?", re.ASCII)


class MemoryWritten(msgspec.Struct, kw_only=True):
    """A memory was written, and what it is by now."""

    id: int
    status: str
    version: int


class Told(NamedTuple):
    """An event as it is sent, and the place a client is at behind it."""

    place: str
    data: bytes


def is_cursor(text: str) -> bool:
    """Could it be an id of ours?"""
    return _CURSOR.fullmatch(text.strip()) is not None


def encode_event(name: str, at: str, value: object) -> Told:
    """JSON holds no raw line break, so nothing in it can end an event or begin another."""
    data = msgspec.json.encode(value)
    return Told(at, b"event: %s\nid: %s\ndata: %s\n\n" % (name.encode(), at.encode(), data))


def make_events(store: Store, lines: Sequence[FeedLine]) -> list[Told]:
    """Lines of the feed as events."""
    items = Rows(store).item_rows(line.row for line in lines if isinstance(line.row, Item))
    shown = describe_injections(store, [one.row for one in lines if isinstance(one.row, Injection)])
    told: dict[tuple[str, int], object] = {("item", row.id): row for row in items}
    told |= {("injection", row.id): row for row in shown}
    found = []
    for cursor, row in lines:
        if isinstance(row, MemoryChange):
            memory = MemoryWritten(id=row.item, status=row.status, version=row.version)
            found.append(encode_event("memory", cursor, memory))
        else:
            name = "item" if isinstance(row, Item) else "injection"
            found.append(encode_event(name, cursor, told[name, row.id]))
    return found


def find_missed(memory: Memory, since: str, until: str) -> list[Told]:
    """What a client that comes back has not been told; a gap where that would be too much, or it
    comes from before a restored backup."""
    try:
        lines, _ = memory.store.feed(since, MOST_MISSED + 1)
    except FeedExpired:
        return [encode_event("gap", until, {})]
    if len(lines) > MOST_MISSED:
        return [encode_event("gap", until, {})]
    return make_events(memory.store, lines)


def read_feed(memory: Memory, at: str, known: Store | None) -> tuple[list[Told], str, Store]:
    """What came behind a place, where the feed ends now, and the store; without a place, or where a
    restored backup has taken the place of the store that was known, nothing came."""
    store = memory.store
    if not at or store is not known:
        return [], store.feed()[1], store
    lines, end = store.feed(at, _READ)
    return make_events(store, lines), end, store


class Stream:
    """`close` it at the end. `run` calls a function with a memory, in one thread of its own."""

    def __init__(
        self,
        run: Callable[..., Awaitable[Any]],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self._run, self._failed = run, failed
        self._last: list[Told] = []  # what came last
        self._begin = self._end = ""  # the places before and behind that
        self._news, self._ready = asyncio.Event(), asyncio.Event()
        self._poller: asyncio.Task[None] | None = None
        self._anew = True  # somebody listens again: what came meanwhile is not news
        self._closed = False
        self.clients = 0

    async def follow(self, last: str | None) -> AsyncGenerator[bytes, None]:
        """What one client is sent, without end."""
        self.clients += 1
        if self.clients == 1:
            self._anew = True
            self._ready.clear()
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll_store())
        try:
            await self._ready.wait()
            here = self._end if last is None else last
            yield b"retry: 2000\n" + encode_event("ready", here, {}).data
            while not self._closed:
                news = self._news
                behind = await self._events_behind(here)
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

    async def _events_behind(self, here: str) -> list[Told]:
        """What comes behind a place: what came last or, from farther back, out of the store."""
        if here == self._end:
            return []
        if here == self._begin:
            return self._last
        missed: list[Told] = await self._run(find_missed, here, self._end)
        return missed

    async def _poll_store(self) -> None:
        known, said = None, ""
        while self.clients and not self._closed:
            at, self._anew = "" if self._anew else self._end, False
            try:
                told, end, store = await self._run(read_feed, at, known)
                if told or not at or store is not known:
                    self._last, self._begin, self._end = told, self._end if told else end, end
                    self._ready.set()
                    self._wake_clients()
                known, said = store, ""
            except (YesterError, OSError) as error:  # restored, busy, gone for a moment
                if said != str(error):
                    said = str(error)
                    self._failed("streaming", error)
                self._anew = True
            await asyncio.sleep(_POLL)

    def _wake_clients(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """Every client's stream ends."""
        self._closed = True
        self._ready.set()
        self._wake_clients()
