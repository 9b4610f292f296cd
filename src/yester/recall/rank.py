"""Scores, as pure functions of the query, the candidate and the weights.

Nothing here reads a clock, a setting or a store. A factor is normalised by quantities of the query
alone, so an item's score does not depend on k, on the engine or on what else was found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from yester.clock import DAY
from yester.model import Candidate, Statistics, replace
from yester.text.document import FIELDS, count_said, find_matches, hash_bytes, read_fields
from yester.text.terms import inverse_frequency, term_hash

# --- the factors of a score, each from 0 to 1: none knows what else was found ---------------------


def recency_factor(age: int, half_life: float, spread: float = 1.0) -> float:
    """1 now (and for what is dated tomorrow), falling with a half-life in days.

    With a spread, half of it falls so many times faster and half so many times slower: what is of
    yesterday stands out, and what is a year old still differs from what is three.
    """
    if half_life <= 0:
        return 0.0
    days = max(age, 0) / DAY
    if spread == 1.0:
        return float(2.0 ** (-days / half_life))
    fast, slow = half_life / spread, half_life * spread
    return float((2.0 ** (-days / fast) + 2.0 ** (-days / slow)) / 2)


def matched_share(matched: int, wanted: int) -> float:
    return min(1.0, matched / wanted) if wanted > 0 else 0.0


def files_overlap(files: Collection[str], here: Collection[str]) -> float:
    """The share of an item's files that are among those here; the end of a path will do."""
    ends = {"/" + path.strip("/").lower() for path in here}
    found = 0
    for path in files:
        end = "/" + path.strip("/").lower()
        found += any(one.endswith(end) or end.endswith(one) for one in ends)
    return matched_share(found, len(files))


def cosine_closeness(cosine: float, band: tuple[float, float]) -> float:
    """A cosine as 0–1: 0 at or below what unrelated texts have, 1 at or above what equals have."""
    low, high = band
    return min(1.0, max(0.0, (cosine - low) / (high - low)))


def by_type(table: Mapping[str, float], kind: str, type_: str) -> float:
    """The row of the type, else of the kind, else of "" (whatever is not in the table)."""
    if type_ and type_ in table:
        return table[type_]
    return table.get(kind, table[""])


# --- the weights ----------------------------------------------------------------------------------

# How much a kind of item is worth before anything is known of its text.
SEED_IMPORTANCE: Mapping[str, float] = {
    "decision": 0.8, "bugfix": 0.7, "discovery": 0.6, "feature": 0.5, "refactor": 0.4,
    "change": 0.3, "": 0.3,
}  # fmt: skip
IMPORTANCE: Mapping[str, float] = {
    **SEED_IMPORTANCE,
    "constraint": 0.9, "preference": 0.8, "runbook": 0.7, "tech_debt": 0.6, "rule": 0.9,
    "session_summary": 0.5, "summary": 0.5, "plan": 0.5, "memory": 0.6, "prompt": 0.4,
    "message": 0.3,
}  # fmt: skip

# Days after which something counts half as new.
SEED_HALF_LIFE: Mapping[str, float] = {"": 2.0}
HALF_LIFE: Mapping[str, float] = {
    "decision": 180.0, "constraint": 365.0, "preference": 365.0, "rule": 365.0, "runbook": 180.0,
    "tech_debt": 180.0, "": 35.0,
}  # fmt: skip


def _field_weights(**weights: float) -> tuple[float, ...]:
    return tuple(weights.get(name, 0.0) for name in FIELDS)


# How much a term counts by the field it stands in, per kind of item. Messages: content 10, file
# paths 2, tool 1; titled content: title 2, content 10; observations: the title over the narrative.
FIELD_WEIGHTS: Mapping[str, tuple[float, ...]] = {
    "message": _field_weights(title=0.2, body=1.0, files=0.2, tool=0.1),
    "prompt": _field_weights(title=0.2, body=1.0, files=0.2),
    "note": _field_weights(title=0.2, body=1.0, concepts=0.2, files=0.2),
    "summary": _field_weights(title=0.2, body=1.0, facts=1.0, sections=1.0, files=0.2),
    "observation": _field_weights(
        title=2.0, subtitle=1.0, body=1.0, facts=1.0, concepts=0.5, files=0.2, sections=1.0
    ),
    "memory": _field_weights(
        title=2.0, subtitle=1.0, body=1.0, facts=1.0, concepts=1.0, files=0.2, sections=1.0
    ),
}


# Among a handful of items a word that one of them has would tell nothing, and one that none has
# everything. To say how much of a question is matched (not to rank: that measured worse), a small
# collection is taken to be a part of one of this size.
_FEWEST = 200


@dataclass(frozen=True, slots=True)
class Weights:
    """All constants of a score, one set for everything: docs/quality.md has what they reach.

    A score is the weighted mean of the factors a question can use: without files or vectors, theirs
    drop out. Found by `bench/learn.py` on all development sets together.
    """

    keyword: float = 1.0
    vector: float = 1.0
    files: float = 0.4
    recency: float = 0.3
    named: float = 0.1  # files the question names
    importance: float = 0.02
    concepts: float = 0.1
    project: float = 0.1
    spread: float = 3.5  # of half-lives: 10 and 120 days where it is 35
    half_life: Mapping[str, float] = field(default_factory=lambda: HALF_LIFE)
    importances: Mapping[str, float] = field(default_factory=lambda: IMPORTANCE)
    # Of the many parts of a long message one is near by chance: so much less, times ln(parts).
    parts: float = 0.04
    # What has no vector is taken to be about as near as its words say.
    unembedded: float = 0.9
    # A long question names many things; what holds its most telling terms is a full match.
    telling_terms: int = 8
    relative: bool = False  # keyword over the best one found, not over the possible; sum, no mean
    k1: float = 1.2
    b: float = 0.9
    # Terms added to a length before it is compared with the mean: among short texts length says
    # little, among long ones much.
    padding: float = 30.0
    thinking: float = 0.7  # what was thought counts less than what was said
    # What a tool printed holds every word of what it was about; what was said or found out says it.
    printed: float = 0.8
    synonym: float = 0.4
    short: float = 0.98  # as "db" is "database": the same word, in fewer letters
    prefix: float = 0.4
    neighbour: float = 0.5  # share of the words of the message before and of the one behind
    phrase: float = 0.1
    outside: float = 0.7  # what is older than the recency window, where one is set
    stale: float = 0.15  # so much less where all its files are gone
    use: float = 0.1  # so much more or less for what was of use, or never
    # Added to the best item of a turn: for what was said in it as one text, and for the share of
    # the session's files that it has edited; what a turn found by these files alone begins with.
    said: float = 0.2
    worked: float = 0.2
    worked_alone: float = 0.12
    fields: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: FIELD_WEIGHTS)
    # Candidates by words and by meaning: what a search costs grows with them.
    words: int = 220
    nearest: int = 200

    def with_half_life(self, days: int) -> Weights:
        """The same with one half-life for everything; 0: as they are."""
        return replace(self, half_life={"": float(days)}, spread=1.0) if days else self

    @classmethod
    def seed_profile(cls) -> Weights:
        """The published formula the project began with: a sum of recency (half-life 2 days), type,
        similarity (words over the best match, half a point for concepts), files and project."""
        return cls(
            keyword=1.0, vector=0.0, files=1.0, recency=1.0, importance=1.0, concepts=0.5,
            project=0.1, named=0.0, spread=1.0, half_life=SEED_HALF_LIFE,
            importances=SEED_IMPORTANCE, neighbour=0.0, phrase=0.0, stale=0.0, use=0.0,
            telling_terms=0, relative=True, said=0.0, worked=0.0,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """A term asked for, and what counts as it: (terms that must all be there, share)."""

    term: str
    others: tuple[tuple[tuple[str, ...], float], ...] = ()


class Ranked(NamedTuple):
    """A candidate with its score, and what has raised or lowered that; where it stands for its
    turn, also the other items of that turn that were found, the best first; and near-duplicates
    that it stands for."""

    candidate: Candidate
    score: float
    adjusted: Mapping[str, float] = {}
    parts: tuple[int, ...] = ()
    alike: tuple[int, ...] = ()

    @property
    def id(self) -> int:
        return self.candidate.id


class Words(NamedTuple):
    """What a candidate's words say: how well it matches what is most telling in the question, the
    share of the question's weight that matched, and how well it matches the whole of it."""

    keyword: float
    matched: float
    fit: float


# What is said in a turn, taken as one text: how much its length counts, and the usual length.
_SAID_B, _SAID_LENGTH = 0.75, 400.0
NO_WORDS = Words(0.0, 0.0, 0.0)


class Question:
    """The terms asked for with their weights, ready to score many candidates."""

    def __init__(self, wanted: Sequence[Wanted], statistics: Statistics, weights: Weights) -> None:
        self._weights = weights
        self._lengths = statistics.lengths
        self.telling: dict[str, float] = {}
        self._telling: list[float] = []
        self._fair: list[float] = []
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
            self._fair.append(inverse_frequency(held, max(statistics.items, _FEWEST)))
            self._shares.setdefault(term_hash(one.term), []).append((number, 1.0))
            for group, share in one.others:
                hashes = tuple(map(term_hash, group))
                if len(hashes) == 1:
                    self._shares.setdefault(hashes[0], []).append((number, share))
                else:
                    self._groups.append((number, hashes, share))
        grouped = (term for _, group, _ in self._groups for term in group)
        self._wanted = {term: hash_bytes(term) for term in (*self._shares, *grouped)}
        # Those that are asked for, not what only counts a little as one of them.
        own = [term for term, held in self._shares.items() if 1.0 in [share for _, share in held]]
        self._asked = {term: self._wanted[term] for term in own}
        rarest = sorted(self._telling, reverse=True)
        self._whole, self._all_fair = sum(rarest) * (weights.k1 + 1), sum(self._fair)
        self._full = sum(rarest[: weights.telling_terms or None]) * (weights.k1 + 1)
        self._most_telling = sum(rarest[:8]) * (weights.k1 + 1)
        self._scales: dict[tuple[str, int], tuple[float, float, float]] = {}

    def match_words(self, candidate: Candidate) -> Words:
        """BM25F over its possible maximum, and the share of the question's weight that matched."""
        frequencies: dict[int, float] = {}
        for part, length, found in find_matches(candidate.vector, self._wanted):
            weight, flat, slope = self._field_scale(candidate.kind, part)
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
        if not frequencies:
            return NO_WORDS
        k1, total, matched = self._weights.k1, 0.0, 0.0
        for number, frequency in frequencies.items():
            total += self._telling[number] * (k1 + 1) * frequency / (k1 + frequency)
            matched += self._fair[number]
        keyword = min(1.0, total / self._full)
        if candidate.role == "thinking":
            keyword *= self._weights.thinking
        return Words(keyword, matched / self._all_fair, total / self._whole)

    def match_said(self, vectors: Collection[bytes]) -> float:
        """BM25 over its possible maximum of what was said in a turn, as one text."""
        length, found = count_said(vectors, self._asked)
        if not found or not self._most_telling:
            return 0.0
        counts: dict[int, int] = {}
        for term, count in found.items():
            for number, share in self._shares[term]:
                if share == 1.0:
                    counts[number] = counts.get(number, 0) + count
        k1 = self._weights.k1
        flat = k1 * (1 - _SAID_B + _SAID_B * length / _SAID_LENGTH)
        parts = (self._telling[term] * n * (k1 + 1) / (n + flat) for term, n in counts.items())
        score = sum(parts)
        return min(1.0, score / self._most_telling)

    def _field_scale(self, kind: str, part: int) -> tuple[float, float, float]:
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


class Signals(NamedTuple):
    """What is known of a candidate, each from 0 to 1; `vector` is None where it has none."""

    keyword: float = 0.0
    vector: float | None = None
    files: float = 0.0
    named: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    concepts: float = 0.0
    project: float = 0.0


TOLD = ("matched", "cosine")  # in a hit's factors, but no part of its score


class Scale:
    """The weights of the factors that one question can use, shared out."""

    def __init__(self, weights: Weights, usable: frozenset[str]) -> None:
        self._unembedded = weights.unembedded
        used = {name: getattr(weights, name) for name in Signals._fields if name in usable}
        whole = 1.0 if weights.relative else sum(used.values())
        self.shares = {name: weight / (whole or 1.0) for name, weight in used.items()}
        place = Signals._fields.index
        self._places = [(place(name), share) for name, share in self.shares.items()]

    def score_signals(self, signals: Signals) -> float:
        """The sum of what `name_factors` tells; hundreds are scored for a question."""
        score, unembedded = 0.0, self._unembedded * signals[0]
        for place, share in self._places:
            value = signals[place]
            score += share * (unembedded if value is None else value)
        return score

    def name_factors(self, signals: Signals) -> dict[str, float]:
        """What each factor adds to the score."""
        unembedded = self._unembedded * signals[0]
        weighed = [
            share * (unembedded if (value := signals[place]) is None else value)
            for place, share in self._places
        ]
        return dict(zip(self.shares, weighed, strict=True))


def adjust_score(ranked: Ranked, why: str, by: float) -> Ranked:
    """A score raised (0 to 1): what is missing to 1 shrinks by that share; or lowered (-1 to 0) by
    that share of itself."""
    if not by:
        return ranked
    score = ranked.score + by * (1.0 - ranked.score if by > 0 else ranked.score)
    return ranked._replace(score=score, adjusted={**ranked.adjusted, why: score - ranked.score})


def sort_ranked(found: Iterable[Ranked]) -> list[Ranked]:
    return sorted(found, key=lambda r: (-r.score, -r.candidate.epoch, -r.candidate.id))


def adjust_scores(
    found: list[Ranked], why: str, by: Mapping[int, float], most: int | None = None
) -> list[Ranked]:
    """The first `most` (all) with their scores raised or lowered by item, in their new order."""
    best = (adjust_score(one, why, by.get(one.id, 0.0)) for one in found[:most])
    return sort_ranked(best) + (found[most:] if most is not None else [])


# Share of common terms from which two texts say the same; shorter ones must be equal.
_SAME, _SHORT = 0.9, 8


def collapse_duplicates(found: Iterable[Ranked], most: int) -> list[Ranked]:
    """The first `most` different ones, each with those that are alike."""
    kept: list[Ranked] = []
    words: list[frozenset[int]] = []
    by_hash: dict[bytes, int] = {}
    for one in found:
        if one.score <= 0:
            break
        at = by_hash.get(one.candidate.hash)
        if at is None:
            terms = terms_of(one.candidate.vector)
            low, high = _SAME * len(terms), len(terms) / _SAME  # of another size none says the same
            alike = (i for i, other in enumerate(words) if low <= len(other) <= high)
            at = next((i for i in alike if same_words(terms, words[i])), None)
        if at is not None:
            kept[at] = kept[at]._replace(alike=(*kept[at].alike, one.id))
            continue
        if len(kept) >= most:
            break
        by_hash[one.candidate.hash] = len(kept)
        kept.append(one)
        words.append(terms)
    return kept


@lru_cache(64)  # what is looked at first to know which texts to read is looked at again
def terms_of(vector: bytes) -> frozenset[int]:
    return frozenset[int]().union(*(field.hashes for field in read_fields(vector)))


def same_words(one: Set[int], other: Set[int]) -> bool:
    sizes = len(one), len(other)
    if min(sizes) < max(_SHORT, _SAME * max(sizes)):
        return False
    common = len(one & other)
    return common >= _SAME * (sum(sizes) - common)
