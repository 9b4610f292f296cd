"""Scores, as pure functions of the query, the candidate and the weights.

Nothing here reads a clock, a setting or a store. A factor is normalised by quantities of the query
alone, so an item's score does not depend on k, on the engine or on what else was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from yester.store.base import Candidate, Statistics, inverse_frequency
from yester.text.document import FIELDS, matches, pattern
from yester.text.terms import term_hash


def _fields(**weights: float) -> tuple[float, ...]:
    return tuple(weights.get(name, 0.0) for name in FIELDS)


# How much a term counts by the field it stands in, per kind of item. Messages: content 10, file
# paths 2, tool 1; titled content: title 2, content 10; observations: the title over the narrative.
FIELD_WEIGHTS: Mapping[str, tuple[float, ...]] = {
    "message": _fields(title=0.2, body=1.0, files=0.2, tool=0.1),
    "prompt": _fields(title=0.2, body=1.0, files=0.2),
    "note": _fields(title=0.2, body=1.0, concepts=0.2, files=0.2),
    "summary": _fields(title=0.2, body=1.0, facts=1.0, sections=1.0, files=0.2),
    "observation": _fields(
        title=2.0, subtitle=1.0, body=1.0, facts=1.0, concepts=0.5, files=0.2, sections=1.0
    ),
    "memory": _fields(
        title=2.0, subtitle=1.0, body=1.0, facts=1.0, concepts=1.0, files=0.2, sections=1.0
    ),
}


@dataclass(frozen=True, slots=True)
class Weights:
    """All constants of a score, one set for everything: docs/quality.md has what they reach."""

    k1: float = 1.2
    b: float = 0.9
    # Terms added to a length before it is compared with the mean: among short texts length says
    # little, among long ones much.
    padding: float = 30.0
    thinking: float = 0.7  # what was thought counts less than what was said
    synonym: float = 0.4
    prefix: float = 0.4
    neighbour: float = 0.3  # share of the message before and of the one behind
    phrase: float = 0.1
    outside: float = 0.7  # what is older than the recency window, where one is set
    fields: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: FIELD_WEIGHTS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term asked for, and what counts as it: (terms that must all be there, share)."""

    term: str
    others: tuple[tuple[tuple[str, ...], float], ...] = ()


class Ranked(NamedTuple):
    candidate: Candidate
    score: float
    factors: Mapping[str, float]


class Question:
    """The terms asked for with their weights, ready to score many candidates."""

    def __init__(self, wanted: Sequence[Wanted], statistics: Statistics, weights: Weights) -> None:
        self._weights = weights
        self._lengths = statistics.lengths
        self.telling: dict[str, float] = {}
        self._telling: list[float] = []
        self._shares: dict[int, list[tuple[int, float]]] = {}  # hash → (number of the term, share)
        self._groups: list[tuple[int, tuple[int, ...], float]] = []  # several terms as one
        for number, one in enumerate(wanted):
            held = statistics.frequencies.get(one.term, 0)
            if not held:
                # Known by another name only; else as telling as the rarest: an answer without it
                # is no full match.
                names = [statistics.frequencies.get(t, 0) for group, _ in one.others for t in group]
                held = min((n for n in names if n), default=0)
            telling = inverse_frequency(held, statistics.items)
            self.telling[one.term] = telling
            self._telling.append(telling)
            self._shares.setdefault(term_hash(one.term), []).append((number, 1.0))
            for group, share in one.others:
                hashes = tuple(map(term_hash, group))
                if len(hashes) == 1:
                    self._shares.setdefault(hashes[0], []).append((number, share))
                else:
                    self._groups.append((number, hashes, share))
        grouped = (term for _, group, _ in self._groups for term in group)
        self._wanted = [(term, pattern(term)) for term in {*self._shares, *grouped}]
        self.possible = sum(self._telling) * (weights.k1 + 1)
        self._scales: dict[tuple[str, int], tuple[float, float, float]] = {}

    def rank(self, candidate: Candidate) -> Ranked:
        keyword, matched = self._bm25f(candidate)
        return Ranked(candidate, keyword, {"keyword": keyword, "matched": matched})

    def _bm25f(self, candidate: Candidate) -> tuple[float, float]:
        """BM25F over its possible maximum, and the share of the question's weight that matched."""
        frequencies: dict[int, float] = {}
        for part, length, found in matches(candidate.vector, self._wanted):
            weight, flat, slope = self._scale(candidate.kind, part)
            if not weight:
                continue
            scale = weight / (flat + slope * length)
            for term, count in found:
                for number, share in self._shares.get(term, ()):
                    frequencies[number] = frequencies.get(number, 0.0) + count * scale * share
            if self._groups:
                counts = dict(found)
                for number, group, share in self._groups:
                    together = min(counts.get(term, 0) for term in group)
                    if together:
                        more = together * scale * share
                        frequencies[number] = frequencies.get(number, 0.0) + more
        if not frequencies or not self.possible:
            return 0.0, 0.0
        k1, total, matched = self._weights.k1, 0.0, 0.0
        for number, frequency in frequencies.items():
            telling = self._telling[number]
            total += telling * (k1 + 1) * frequency / (k1 + frequency)
            matched += telling
        keyword = total / self.possible
        if candidate.role == "thinking":
            keyword *= self._weights.thinking
        return keyword, matched * (k1 + 1) / self.possible

    def _scale(self, kind: str, part: int) -> tuple[float, float, float]:
        """(weight, a, b) of a field: a term counts weight / (a + b * length of the field)."""
        known = self._scales.get((kind, part))
        if known is None:
            weights = self._weights
            mean = self._lengths.get((kind, part)) or 1.0
            slope = weights.b / (mean + weights.padding)
            flat = 1 - weights.b + slope * weights.padding
            by_field = weights.fields.get(kind, weights.fields["message"])
            known = self._scales[kind, part] = (by_field[part], flat, slope)
        return known


def lowered(ranked: Ranked, oldest: int, share: float) -> Ranked:
    """A candidate from before the recency window counts less; nothing is ever left out."""
    if ranked.candidate.epoch >= oldest:
        return ranked
    score = ranked.score * share
    factors = {**ranked.factors, "window": score - ranked.score}
    return Ranked(ranked.candidate, score, factors)


def lifted(ranked: Ranked, name: str, by: float) -> Ranked:
    """A score raised by a bonus: what is missing to 1 shrinks by its share, never below 0."""
    share = min(max(by, 0.0), 1.0)
    if not share:
        return ranked
    score = ranked.score + share * (1.0 - ranked.score)
    factors = {**ranked.factors, name: score - ranked.score}
    return Ranked(ranked.candidate, score, factors)
