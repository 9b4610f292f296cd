"""What is new, as it happens: server-sent events for any number of clients.

    event: ready       where the stream stands; the first one
    event: item        a new item, as a row of an index
    event: injection   a line of the ledger: an agent was shown something
    event: memory      a memory was written: its id, and its status and version by now
    event: gap         more was missed than is told again; load what is shown anew

An event's id is the cursor of the store's feed behind it; with it as Last-Event-ID a client goes on
where it was. For each client the store is asked every quarter of a second whether anybody has
committed, which costs microseconds. Nothing is kept of a client but its place: one that is slow is
told the rest when it reads on, and one that does not read at all is dropped.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from yester.errors import FeedExpired, YesterError
from yester.memory import Memory
from yester.model import FeedLine, Injection, Item, MemoryChange
from yester.operations.items import Rows, describe_injections
from yester.store.contract import Store

_POLL = 0.25  # seconds
_BEAT = 15.0  # seconds between signs of life
MOST_MISSED = 2_000  # rows told at once
_CURSOR = re.compile(r"[0-9]{1,15}-[0-9]{1,15}(?:-[0-9]{1,15})?", re.ASCII)


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
            memory = {"id": row.item, "status": row.status, "version": row.version}
            found.append(encode_event("memory", cursor, memory))
        else:
            name = "item" if isinstance(row, Item) else "injection"
            found.append(encode_event(name, cursor, told[name, row.id]))
    return found


def read_feed(memory: Memory, here: str) -> list[Told]:
    """What a client at this place has not been told; a gap where that would be too much, or it
    comes from before a restored backup. Without a place, where the feed ends."""
    store = memory.store
    try:
        lines, end = store.feed(here, MOST_MISSED + 1)
    except FeedExpired:
        return [encode_event("gap", store.feed()[1], {})]
    if not here:
        return [encode_event("ready", end, {})]
    if len(lines) > MOST_MISSED:
        return [encode_event("gap", store.feed()[1], {})]
    return make_events(store, lines)


class Stream:
    """`close` it at the end. `run` calls a function with a memory, in one thread of its own."""

    def __init__(
        self,
        run: Callable[..., Awaitable[list[Told]]],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self._run, self._failed = run, failed
        self._closed = False
        self.clients = 0

    async def follow(self, last: str) -> AsyncGenerator[bytes, None]:
        """What one client is sent, without end."""
        self.clients += 1
        here, failure, quiet = last, "", 0.0
        try:
            yield b"retry: 2000\n" + (encode_event("ready", here, {}).data if here else b"\n")
            while not self._closed:
                try:
                    told, failure = await self._run(read_feed, here), ""
                except (YesterError, OSError) as error:  # restored, busy, gone for a moment
                    told = []
                    if failure != str(error):
                        failure = str(error)
                        self._failed("streaming", error)
                for one in told:
                    here = one.place
                    yield one.data
                quiet = 0.0 if told else quiet + _POLL
                if quiet >= _BEAT:
                    quiet = 0.0
                    yield b": still here\n\n"
                await asyncio.sleep(_POLL)
        finally:
            self.clients -= 1

    def close(self) -> None:
        """Every client's stream ends."""
        self._closed = True
