"""What developers call by several names. Looked up for questions only, and counted for less.

The names are those of `tables/synonyms.toml`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from yester.tables import load_table
from yester.text.terms import terms

Names = tuple[str, ...]


@cache
def _load_names() -> tuple[dict[str, tuple[Names, ...]], dict[Names, tuple[Names, ...]]]:
    """Other names by a single term, and by the terms of a name of several words."""
    single: dict[str, dict[Names, None]] = {}
    several: dict[Names, dict[Names, None]] = {}
    for group in load_table("synonyms")["groups"]:
        expanded = [tuple(terms(name)) for name in group]
        for names in expanded:
            others = dict.fromkeys(other for other in expanded if other and other != names)
            if len(names) == 1:
                single.setdefault(names[0], {}).update(others)
            elif names:
                several.setdefault(names, {}).update(others)
    return (
        {term: tuple(others) for term, others in single.items()},
        {names: tuple(others) for names, others in several.items()},
    )


def alternatives(asked: Sequence[str]) -> dict[str, tuple[Names, ...]]:
    """term → other names, for the terms of a question; "rate limit" is one thing, "rate" is not."""
    single, several = _load_names()
    found = {term: list(single.get(term, ())) for term in asked}
    there = set(asked)
    for names, others in several.items():
        if there.issuperset(names):
            for term in names:
                found[term] += others
    return {term: tuple(dict.fromkeys(others)) for term, others in found.items() if others}
