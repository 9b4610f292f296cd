"""Scores, as pure functions of the query, the candidate and the weights.

Nothing here reads a clock, a setting or a store. A factor is normalised by quantities of the query
alone, so an item's score does not depend on k, on the engine or on what else was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from yester.store.base import Candidate, Statistics, inverse_frequency
from yester.text.document import FIELDS, FieldTerms, decode
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
    """All constants of a score. Found by bench/tune.py on all dev sets at once."""

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
    fields: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: FIELD_WEIGHTS)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term asked for, and what counts as it: (terms that must all be there, share)."""

    term: str
    others: tuple[tuple[tuple[str, ...], float], ...] = ()


@dataclass(frozen=True, slots=True)
class Ranked:
    candidate: Candidate
    fields: Sequence[FieldTerms]
    score: float
    factors: Mapping[str, float]


class Question:
    """The terms asked for with their weights, ready to score many candidates."""

    def __init__(self, wanted: Sequence[Wanted], statistics: Statistics, weights: Weights) -> None:
        self._weights = weights
        self._lengths = statistics.lengths
        self._terms: list[tuple[float, int, list[tuple[tuple[int, ...], float]]]] = []
        self.telling: dict[str, float] = {}
        total = 0.0
        for one in wanted:
            holding = statistics.frequencies.get(one.term, 0)
            if not holding:
                # Known by another name only; else as telling as the rarest: an answer without it
                # is no full match.
                names = [statistics.frequencies.get(t, 0) for group, _ in one.others for t in group]
                holding = min((n for n in names if n), default=0)
            telling = self.telling[one.term] = inverse_frequency(holding, statistics.items)
            total += telling
            others = [(tuple(map(term_hash, group)), share) for group, share in one.others]
            self._terms.append((telling, term_hash(one.term), others))
        self.possible = total * (weights.k1 + 1)

    def rank(self, candidate: Candidate) -> Ranked:
        fields = decode(candidate.vector)
        keyword, matched = self._bm25f(candidate, fields)
        return Ranked(candidate, fields, keyword, {"keyword": keyword, "matched": matched})

    def _bm25f(self, candidate: Candidate, fields: Sequence[FieldTerms]) -> tuple[float, float]:
        """BM25F over its possible maximum, and the share of the question's weight that matched."""
        weights = self._weights
        by_field = weights.fields.get(candidate.kind, weights.fields["message"])
        scales = []
        for part in fields:
            mean = self._lengths.get((candidate.kind, part.field)) or 1.0
            relative = (part.length + weights.padding) / (mean + weights.padding)
            scale = by_field[part.field] / (1 - weights.b + weights.b * relative)
            scales.append((part.counts, scale))
        total, matched = 0.0, 0.0
        for telling, number, others in self._terms:
            frequency = 0.0
            for counts, scale in scales:
                if number in counts:
                    frequency += counts[number] * scale
                for group, share in others:
                    found = min(counts.get(other, 0) for other in group)
                    if found:
                        frequency += found * scale * share
            if frequency:
                total += telling * (weights.k1 + 1) * frequency / (weights.k1 + frequency)
                matched += telling
        if not total:
            return 0.0, 0.0
        keyword = total / self.possible
        if candidate.role == "thinking":
            keyword *= weights.thinking
        return keyword, matched * (weights.k1 + 1) / self.possible


def lifted(ranked: Ranked, name: str, by: float) -> Ranked:
    """A score raised by a bonus: what is missing to 1 shrinks by its share, never below 0."""
    share = min(max(by, 0.0), 1.0)
    if not share:
        return ranked
    score = ranked.score + share * (1.0 - ranked.score)
    factors = {**ranked.factors, name: score - ranked.score}
    return Ranked(ranked.candidate, ranked.fields, score, factors)
