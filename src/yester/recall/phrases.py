"""What only the text itself can tell: which words stand side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from yester.model import Item
from yester.text.query import Every, Expression, Phrase, Prefix, Some, Without, Word
from yester.text.terms import terms

_NEAR = 4  # words
_READ_CHARS = 4_000  # of a text, for the bonus; a phrase that must be there is looked for in all


def fulfils(item: Item, must: Expression) -> bool:
    """Does the item hold what the question demands? Words have been looked up by the store."""
    return _holds([list(terms(text)) for text in _texts(item)], must)


def _texts(item: Item) -> list[str]:
    parts = [item.title, item.subtitle, item.body, *item.facts, *item.sections.values()]
    return [*filter(None, parts), " ".join((*item.concepts, *item.tags)), *item.files, item.tool]


def _holds(fields: list[list[str]], must: Expression) -> bool:
    match must:
        case Word(wanted):
            return all(any(term in field for field in fields) for term in wanted)
        case Prefix(text):
            return any(term.startswith(text) for field in fields for term in field)
        case Phrase(wanted, distance):
            return any(_near(field, wanted, distance) for field in fields)
        case Every(parts):
            return all(_holds(fields, part) for part in parts)
        case Some(parts):
            return any(_holds(fields, part) for part in parts)
        case Without(part):
            return not _holds(fields, part)


def _near(field: list[str], wanted: Sequence[str], distance: int) -> bool:
    """In this order side by side, or, with a distance, in any order within so many words."""
    if not distance:
        size = len(wanted)
        starts = (at for at, term in enumerate(field) if term == wanted[0])
        return any(field[at : at + size] == list(wanted) for at in starts)
    places = [(at, term) for at, term in enumerate(field) if term in wanted]
    needed = set(wanted)
    for first, (begin, _) in enumerate(places):
        seen = set()
        for at, term in places[first:]:
            if at - begin > distance:
                break
            seen.add(term)
            if seen == needed:
                return True
    return False


def adjacent(item: Item, asked: Sequence[str], telling: Mapping[str, float]) -> float:
    """0 to 1: how much of what is asked side by side stands so; close by counts half."""
    pairs = {pair: min(telling.get(t, 0.0) for t in pair) for pair in pairwise(asked)}
    possible = sum(pairs.values())
    if not possible:
        return 0.0
    wanted = set(asked)
    text = f"{item.title}\n{item.body[:_READ_CHARS]}"
    places = [(at, term) for at, term in enumerate(terms(text)) if term in wanted]
    close: dict[tuple[str, str], float] = {}
    for (at, one), (behind, other) in pairwise(places):
        if (one, other) in pairs and behind - at <= _NEAR:
            share = 1.0 if behind - at == 1 else 0.5
            close[one, other] = max(share, close.get((one, other), 0.0))
    return sum(share * pairs[pair] for pair, share in close.items()) / possible
