"""What is to be looked at of a session: its items in order, and its uses of tools taken apart.

Of what a tool wrote only what it tells is held, so that long sessions need little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yester.config import Config
from yester.distil.turns import BRIEF_CHARS, BRIEF_TOOLS, Step, View, step_of, views
from yester.model import DISTILLED, Event, Filters, Item, Paging, Turn
from yester.store.contract import Store

if TYPE_CHECKING:
    from yester.text.reader import TitleFinder

LOOK_BACK = 5  # turns within which work is committed and errors end
# A result may come when the next prompt is already typed: then it belongs to the turn before.
_READ_BACK = LOOK_BACK + 1
_PAGE = 200  # items read at once
_STEPS = 25  # taken apart at once


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds where a session did not say otherwise."""

    skipped: frozenset[str] = frozenset()
    window: int = 3_000
    most: int = 0  # new items looked at in one go, to the end of their turn; 0: all there are
    reader: TitleFinder | None = None  # names turns that have no commit; None: rules do

    @classmethod
    def of(cls, config: Config, reader: TitleFinder | None = None) -> Rules:
        skipped = frozenset(config.texts("skip_tools"))
        return cls(skipped, config.number("batch_window_ms"), reader=reader)


def distilled_items(store: Store, session: int) -> list[Item]:
    """What a session was distilled into, by time, whatever became of it."""
    made = Filters(session_id=session, source=DISTILLED)
    return store.select(made, Paging(oldest_first=True, statuses=()))


def _prompt_before(store: Store, session: int, epoch: int, back: int) -> int:
    """When the prompt so many before the last one of that time was typed; 0: there is none."""
    filters = Filters(kinds=("prompt",), until=epoch + 1, session_id=session)
    offset = 0
    while page := store.select(filters, Paging(_PAGE, offset, statuses=())):
        typed = [item for item in page if not item.actor]
        if back < len(typed):
            return typed[back].epoch
        back -= len(typed)
        offset += len(page)
    return 0


class History:
    """The turns since `first` can be made anew; those before them, as far as they have to do with
    them, are there, too."""

    def __init__(self, store: Store, session: int, since: int) -> None:
        self._store = store
        self._session = session
        self._since = since
        self.first = _prompt_before(store, session, since, _READ_BACK) if since else 0
        self.rest = 0  # where to go on another time; 0: this was all
        self.texts: dict[int, str] = {}  # item → the beginning of what a tool was given and gave
        self._items: list[tuple[Item, int]] = []
        self._steps: dict[int, Step] = {}
        self._todo: Item | None = None
        self._new = 0  # items since then

    def read(self, rules: Rules, excerpt: int = 0) -> Iterator[None]:
        """In small steps; `texts` has so many characters of each use of a tool."""
        store = self._store
        turns = store.entries(Turn, {"session": self._session})
        events = store.entries(Event, {"turn": [turn.id for turn in turns]})
        told = {event.item: event for event in events if event.item}
        begin = _prompt_before(store, self._session, self.first, _READ_BACK) if self.first else 0
        after = (begin - 1, 0)
        number = 0
        while page := store.history(self._session, BRIEF_TOOLS, BRIEF_CHARS, after, _PAGE):
            yield
            for item, length in page:
                if self._enough(item, rules.most):
                    self.rest = item.epoch
                    return
                self._new += item.epoch >= self._since
                step = step_of(item, length, told.get(item.id), rules.skipped, rules.window)
                if step is None:
                    if item.type == "todo" and not item.actor:
                        self._todo = item
                    self._items.append((item, length))
                    continue
                self._items.append((step.item, length))
                self._steps[item.id] = step
                if excerpt:
                    self.texts[item.id] = item.body[:excerpt]
                number += 1
                if number % _STEPS == 0:
                    yield
            after = (page[-1][0].epoch, page[-1][0].id)

    def _enough(self, item: Item, most: int) -> bool:
        """Is here a turn to stop before, with enough that is new behind us?"""
        return (
            0 < most <= self._new
            and item.kind == "prompt"
            and not item.actor
            and item.epoch > max(self._since, self._items[0][0].epoch)
        )

    def turns(self) -> list[View]:
        return views(self._items, self._steps)

    def todo(self, turns: list[View]) -> str:
        """What was left to do when it was last said; not what nobody has spoken of for long."""
        if self._todo is None or not turns:
            return ""
        lately = turns[-LOOK_BACK:][0].started
        return self._todo.body if self._todo.epoch >= lately else ""
