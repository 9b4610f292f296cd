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
    k1: float = 1.2
    b: float = 0.5
    thinking: float = 0.7  # what was thought counts less than what was said
    fields: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: FIELD_WEIGHTS)


@dataclass(frozen=True, slots=True)
class Ranked:
    candidate: Candidate
    fields: Sequence[FieldTerms]
    score: float
    factors: Mapping[str, float]


class Question:
    """The terms asked for with their weights, ready to score many candidates."""

    def __init__(self, terms: Sequence[str], statistics: Statistics, weights: Weights) -> None:
        self._weights = weights
        self._lengths = statistics.lengths
        self.terms = [
            (term, term_hash(term), inverse_frequency(n, statistics.items))
            for term in terms
            if (n := statistics.frequencies.get(term, 0))
        ]
        unknown = [term for term in terms if not statistics.frequencies.get(term)]
        known = sum(weight for _, _, weight in self.terms)
        # A term nobody has is as telling as the rarest: an answer without it is no full match.
        missing = len(unknown) * inverse_frequency(0, statistics.items)
        self.possible = (known + missing) * (weights.k1 + 1)

    def rank(self, candidate: Candidate) -> Ranked:
        fields = decode(candidate.vector)
        keyword, factors = self._bm25f(candidate, fields)
        return Ranked(candidate, fields, keyword, factors)

    def _bm25f(
        self, candidate: Candidate, fields: Sequence[FieldTerms]
    ) -> tuple[float, dict[str, float]]:
        weights = self._weights
        by_field = weights.fields.get(candidate.kind, weights.fields["message"])
        scales = []
        for part in fields:
            mean = self._lengths.get((candidate.kind, part.field)) or 1.0
            length = 1 - weights.b + weights.b * part.length / mean
            scales.append((part.counts, by_field[part.field] / length))
        total, matched = 0.0, 0.0
        for _, number, telling in self.terms:
            frequency = 0.0
            for counts, scale in scales:
                if number in counts:
                    frequency += counts[number] * scale
            if frequency:
                total += telling * (weights.k1 + 1) * frequency / (weights.k1 + frequency)
                matched += telling
        if not total or not self.possible:
            return 0.0, {"keyword": 0.0, "matched": 0.0}
        keyword = total / self.possible
        if candidate.role == "thinking":
            keyword *= weights.thinking
        return keyword, {"keyword": keyword, "matched": matched * (weights.k1 + 1) / self.possible}
