"""The same insight is stored once: within an hour of event time and a project, titles that share
more than four fifths of their words are the same; within a session at any time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from yester.distil.titles import near
from yester.model import Filters, Item
from yester.store.base import Store, inverse_frequency
from yester.text.terms import terms

HOUR = 3_600_000
SAME = 0.8  # share of common words from which on two titles are one
_CANDIDATES = 20


def title_terms(title: str) -> frozenset[str]:
    return frozenset(terms(title))


def same_title(one: frozenset[str], other: frozenset[str]) -> bool:
    return near(one, other) > SAME


def stored_already(store: Store, item: Item, own: Iterable[str] = ()) -> int:
    """The observation another session has stored of the same thing, or 0. `own` are refs that do
    not count: those this item may replace."""
    wanted = title_terms(item.title)
    if not wanted:
        return 0
    filters = Filters(
        projects=(item.project,), kinds=("observation",), since=item.epoch - HOUR,
        until=item.epoch + HOUR + 1,
    )  # fmt: skip
    numbers = store.statistics(sorted(wanted), filters)
    asked = [
        (term, inverse_frequency(held, numbers.items), held)
        for term in sorted(wanted)
        if (held := numbers.frequencies.get(term, 0))
    ]
    if len(asked) < SAME * len(wanted):
        return 0
    found = store.candidates(
        sorted(asked, key=lambda one: one[2])[: _enough(len(wanted))], filters, _CANDIDATES
    )
    passed_over = frozenset(own)
    for other in store.get([one.id for one in found]):
        if other.ref not in passed_over and same_title(wanted, title_terms(other.title)):
            return other.id
    return 0


class Titles:
    """Those of a session so far."""

    def __init__(self, titles: Iterable[str] = ()) -> None:
        self._by_term: defaultdict[str, list[frozenset[str]]] = defaultdict(list)
        for title in titles:
            self._add(title_terms(title))

    def take(self, title: str) -> bool:
        """False where one before it is the same, nearly or wholly."""
        own = title_terms(title)
        rarest = sorted(own, key=lambda term: (len(self._by_term.get(term, ())), term))
        near_by = (other for term in rarest[: _enough(len(own))] for other in self._by_term[term])
        if any(same_title(own, other) for other in near_by):
            return False
        self._add(own)
        return True

    def _add(self, title: frozenset[str]) -> None:
        for term in title:
            self._by_term[term].append(title)


def distinct(items: Sequence[Item]) -> list[Item]:
    """Without those whose title one before them has, nearly or wholly."""
    titles = Titles()
    return [item for item in items if titles.take(item.title)]


def _enough(number: int) -> int:
    """Of so many of its words a title that is the same has at least one."""
    return int(number * (1 - SAME)) + 1
