"""Which of the hits an agent is given: at most so many, and among equals the more binding ones.

A hit's category adds nothing to its score; it only decides between hits that fit equally well. So
no category can bring in its entries by itself, and tags count as what they are, words.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from yester.memories.categories import priority
from yester.model import Hit

TIE = 0.01  # of the better score


def in_order(hits: Sequence[Hit], own: Container[int] = ()) -> list[Hit]:
    """The best first; of those within 1 % of each other what is `own` (ids: of the project that is
    asked in) before others, then decisions before constraints and so on."""
    ranked = sorted(hits, key=lambda hit: (-hit.score, hit.id))
    ordered: list[Hit] = []
    while ranked:
        floor = ranked[0].score - TIE * abs(ranked[0].score)
        tied = [hit for hit in ranked if hit.score >= floor]
        ordered += sorted(tied, key=lambda hit: (hit.id not in own, _binding(hit), -hit.score))
        ranked = ranked[len(tied) :]
    return ordered


def _binding(hit: Hit) -> int:
    return priority(hit.kind, hit.type)


def selected(hits: Sequence[Hit], most: int) -> list[Hit]:
    """At most `most` of them (the setting `max_inject`)."""
    return in_order(hits)[: max(most, 0)]
