"""Candidates from every side, and one score for each of them.

    words      what holds the most telling terms
    vectors    what is nearest in meaning, where a model is there
    files      what was about the files that are touched now

Each arm finds on its own; what one found is scored by all factors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from math import log
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from yester.errors import ModelError
from yester.model import Filters
from yester.recall.factors import by_type, closeness, overlap, recency, share
from yester.recall.phrases import adjacent, fulfils
from yester.recall.rank import (
    Question,
    Ranked,
    Scale,
    Signals,
    Wanted,
    Weights,
    Words,
    lifted,
)
from yester.store.contract import Candidate, Near, Store, inverse_frequency
from yester.text.query import Query
from yester.text.synonyms import alternatives

if TYPE_CHECKING:
    from yester.text.embed import Embedder

TOUCHING = 100
_LIFTED = 40  # candidates whose neighbours are looked at
_READ = 8  # candidates whose text is read for words side by side
_ALIKE = 12
_MOST_TERMS = 80
_FAR = 0.15  # nearness below which a vector alone is no reason to be an answer
_CONVERSATION = ("message", "prompt")
_MOST_PATHS = 20
_PATH = re.compile(r"[\w.+-]+(?:/[\w.+-]+)+|\b[\w-]+\.[a-z]{1,4}\b")
_NOWHERE = Near(0.0, 1)
_WORD = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Around:
    """What is known besides the question: when and where it is asked, and what is being touched."""

    now: int = 0
    project: str = ""  # name or key
    files: tuple[str, ...] = ()


class Search(NamedTuple):
    """What a search found, the best first, and how."""

    found: list[Ranked]
    rung: str  # how far the search by words had to go
    arms: Mapping[str, int] = {}  # how many each arm found
    shares: Mapping[str, float] = {}  # of each factor in a score, for this question
    far: int = 0  # found, but neither in words nor in meaning near enough


class OneQuestion:
    """An embedder for several searches with one question, which is embedded once, in a thread of
    its own: the first search by words goes on meanwhile, and someone is waiting for both."""

    def __init__(self, embedder: Embedder, text: str) -> None:
        self.sha, self.band = embedder.sha, embedder.band
        self._embedder, self._text = embedder, text
        self._vector: Any = None
        self._failure: Exception | None = None
        self._thread = Thread(target=self._embed, daemon=True)
        self._thread.start()

    def _embed(self) -> None:
        try:
            self._vector = self._embedder.embed_query(self._text)
        except Exception as error:  # noqa: BLE001 -- raised where somebody asks
            self._failure = error

    def embed_query(self, text: str) -> Any:
        if text != self._text:
            return self._embedder.embed_query(text)
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._vector


class Asks(Protocol):
    """What a search needs of an embedder."""

    @property
    def sha(self) -> str: ...
    @property
    def band(self) -> tuple[float, float]: ...
    def embed_query(self, text: str) -> Any: ...


class Gathered(NamedTuple):
    """What the arms knew of their answers; `bench/learn.py` tries other weights on it.

    In the signals, keyword, vector and recency are weighed already: what they were made of is in
    `words` and `beside`, in `near`, and in the candidate.
    """

    answers: list[Candidate]
    signals: Mapping[int, Signals]
    words: Mapping[int, Words]
    beside: Mapping[int, tuple[int, int]]
    near: Mapping[int, Near]
    usable: frozenset[str]
    telling: Mapping[str, float]


def ranked(
    store: Store,
    text: str,
    query: Query,
    filters: Filters,
    around: Around,
    weights: Weights,
    embedder: Asks | None,
    watch: Callable[[Gathered], None] | None = None,
) -> Search:
    question, found, rung = _by_words(store, query, filters, weights)
    if query.must is not None and not query.terms and not query.prefixes:
        plain = [Ranked(one, 1.0, {}) for one in found]  # nothing but exclusions
        return Search(_fulfilling(store, in_order(plain), query), rung)
    vector = None
    if embedder is not None and weights.vector and query.must is None:
        # A server that is down must not cost the answer: then the words alone decide.
        with suppress(ModelError):
            vector = embedder.embed_query(text)
    near: dict[int, Near] = {}
    if vector is not None and embedder is not None:
        near = dict(store.nearest(vector, embedder.sha, filters, weights.nearest))
    touching = store.touching(around.files, filters, TOUCHING) if around.files else {}
    paths = tuple(dict.fromkeys(_PATH.findall(text)))[:_MOST_PATHS]
    named = store.touching(paths, filters, TOUCHING) if paths and weights.named else {}
    known = {one.id for one in found}
    arms = {"words": known, "vectors": near.keys(), "files": touching.keys() | named.keys()}
    by_arm = {name: frozenset(ids) for name, ids in arms.items()}
    if query.must is None:
        found += store.load([id_ for id_ in (*near, *touching, *named) if id_ not in known])
    words = {one.id: question.words(one) for one in found}
    beside: dict[int, tuple[int, int]] = {}
    if weights.neighbour and query.must is None:
        beside = _beside(store, found, words, near)
        missing = {id_ for pair in beside.values() for id_ in pair if id_ and id_ not in words}
        more = store.load(sorted(missing))
        words |= {one.id: question.words(one) for one in more}
        # They lift others whatever they are, but must pass the filters themselves. A session is of
        # one project, so that much they do.
        in_project = replace(filters, projects=()) == Filters()
        found += more if in_project else store.load(sorted(missing), filters)
    if vector is not None and embedder is not None:
        near |= store.cosines(vector, embedder.sha, [id_ for id_ in words if id_ not in near])
    keyword = _lifted(words, beside, weights.neighbour)
    if weights.relative:
        best = max(keyword.values(), default=0.0)
        keyword = {id_: value / best if best else 0.0 for id_, value in keyword.items()}
    files = {id_: share(number, len(around.files)) for id_, number in touching.items()}
    if weights.relative and around.files:
        files = {item.id: overlap(item.files, around.files) for item in store.get(list(words))}
    concepts, held = store.concepts(_names(text), list(words))
    own = store.project_number(around.project) if around.project else 0
    usable = {
        "keyword": True, "recency": True, "importance": True, "vector": vector is not None,
        "files": bool(around.files), "named": bool(named), "concepts": concepts > 0,
        "project": own > 0,
    }  # fmt: skip
    scale = Scale(weights, frozenset(name for name, yes in usable.items() if yes))
    cosines = sorted((part.cosine for part in near.values()), reverse=True)
    twentieth = cosines[min(19, len(cosines) - 1)] if cosines else 0.0
    result = []
    far = 0
    known_of: dict[int, Signals] = {}
    worth = _worth(weights)
    for one in found:
        part, said = near.get(one.id), words[one.id]
        close = None
        if part is not None and embedder is not None:
            many = weights.parts * log(part.parts) if one.kind in _CONVERSATION else 0.0
            close = closeness(part.cosine - many, embedder.band)
        about = one.id in touching or one.id in named
        if not said.keyword and (close or 0.0) < _FAR and not about:
            far += 1
            continue
        half_life, importance = worth(one.kind, one.type)
        signals = Signals(
            keyword[one.id] * (weights.printed if one.role == "tool" else 1.0),
            close,
            files.get(one.id, 0.0),
            share(named[one.id], len(paths)) if one.id in named else 0.0,
            recency(around.now - one.epoch, half_life, weights.spread),
            importance,
            share(held[one.id], concepts) if one.id in held else 0.0,
            1.0 if own and one.project == own else 0.0,
        )
        told = {"matched": said.matched, "fit": said.fit}
        if part is not None:
            told["cosine"] = part.cosine
            told["ahead"] = part.cosine - twentieth
        known_of[one.id] = signals
        found_by = tuple([name for name, ids in by_arm.items() if one.id in ids])
        result.append(scale.ranked(one, signals, told, found_by or ("neighbours",)))
    result = _leading(_fulfilling(store, in_order(result), query))
    if watch is not None:
        answers = [one.candidate for one in result]
        used = frozenset(scale.shares)
        watch(Gathered(answers, known_of, words, beside, near, used, question.telling))
    result = _side_by_side(store, result, query, question.telling, weights.phrase)
    numbers = {name: len(ids) for name, ids in by_arm.items() if ids}
    return Search(result, rung, numbers, scale.shares, far)


def _worth(weights: Weights) -> Callable[[str, str], tuple[float, float]]:
    """(kind, type) → half-life and importance, looked up once: there are few of them."""

    @cache
    def found(kind: str, type_: str) -> tuple[float, float]:
        return by_type(weights.half_life, kind, type_), by_type(weights.importances, kind, type_)

    return found


def _leading(found: list[Ranked]) -> list[Ranked]:
    """How far each is above the tenth: what stands out is more likely to be meant."""
    tenth = found[min(9, len(found) - 1)].score if found else 0.0
    for one in found:
        one.factors["lead"] = one.score - tenth
    return found


def _by_words(
    store: Store, query: Query, filters: Filters, weights: Weights
) -> tuple[Question, list[Candidate], str]:
    terms = query.terms
    if len(terms) > _MOST_TERMS:  # a pasted file: its most telling words ask the same
        known = store.statistics(terms, filters).frequencies
        rarest = sorted((n, term) for term, n in known.items() if n)[:_MOST_TERMS]
        kept = {term for _, term in rarest}
        query = replace(query, terms=tuple(term for term in terms if term in kept))
    names = alternatives(query.terms)
    asked = {*query.terms, *(term for groups in names.values() for g in groups for term in g)}
    statistics = store.statistics(list(asked), filters)
    wanted = []
    for term in query.terms:
        others = [(group, weights.synonym) for group in names.get(term, ())]
        if not statistics.frequencies[term]:
            others += [((name,), weights.prefix) for name in store.alike(term, _ALIKE)]
        wanted.append(Wanted(term, tuple(others)))
    for prefix in query.prefixes:
        wanted.append(Wanted(prefix, tuple(((n,), 1.0) for n in store.alike(prefix, _ALIKE))))
    held = any(statistics.frequencies.values())
    rung = "stem" if held or not query.terms else "prefix"
    shares = _shares(wanted)
    if shares.keys() - asked:
        statistics = store.statistics(list(shares), filters)
    question = Question(wanted, statistics, weights)
    postings = [
        (term, share_ * inverse_frequency(n, statistics.items), n)
        for term, share_ in shares.items()
        if (n := statistics.frequencies[term])
    ]
    if not postings and query.must is None:
        return question, [], rung
    return question, store.candidates(postings, filters, weights.words, query.must), rung


def _shares(wanted: Sequence[Wanted]) -> dict[str, float]:
    """Every term to be looked for, with the most it can count for."""
    shares = {one.term: 1.0 for one in wanted}
    for one in wanted:
        for group, part in one.others:
            for term in group:
                shares[term] = max(shares.get(term, 0.0), part / len(group))
    return shares


def _names(text: str) -> list[str]:
    """What in a question could be a concept: its words, and two or three joined (how-it-works)."""
    words = _WORD.findall(text.lower())
    pairs = [f"{a}-{b}" for a, b in pairwise(words)]
    triples = [f"{a}-{b}-{c}" for (a, b), (_, c) in pairwise(pairwise(words))]
    return [*words, *pairs, *triples] if len(words) <= _MOST_TERMS else []


def in_order(found: Iterable[Ranked]) -> list[Ranked]:
    return sorted(found, key=lambda r: (-r.score, -r.candidate.epoch, -r.candidate.id))


def _beside(
    store: Store,
    found: list[Candidate],
    words: Mapping[int, Words],
    near: Mapping[int, Near],
) -> dict[int, tuple[int, int]]:
    """What stands before and behind the likeliest messages. In a conversation the answer often
    stands beside the words of the question."""
    talk = sorted(
        (one.id for one in found if one.kind in _CONVERSATION),
        key=lambda id_: -(words[id_].keyword + near.get(id_, _NOWHERE).cosine),
    )
    return store.neighbours(talk[:_LIFTED]) if talk else {}


def _lifted(
    words: Mapping[int, Words], beside: Mapping[int, tuple[int, int]], part: float
) -> dict[int, float]:
    """The keyword score of each, raised by those of its neighbours."""
    scores = {id_: one.keyword for id_, one in words.items()}
    raised: dict[int, float] = dict(scores)
    for id_, pair in beside.items():
        for other in filter(None, pair):
            raised[id_] += part * scores.get(other, 0.0)
            if other in scores and other not in beside:
                raised[other] += part * scores[id_]
    return {id_: min(1.0, score) for id_, score in raised.items()}


def _fulfilling(store: Store, found: list[Ranked], query: Query) -> list[Ranked]:
    """Without what only seemed to hold a phrase, or cannot be told by terms."""
    if query.must is None:
        return found
    texts = {item.id: item for item in store.get([one.candidate.id for one in found])}
    return [one for one in found if fulfils(texts[one.candidate.id], query.must)]


def _side_by_side(
    store: Store, found: list[Ranked], query: Query, telling: Mapping[str, float], part: float
) -> list[Ranked]:
    """Words asked side by side that stand side by side in a text lift it."""
    if not part or len(query.terms) < 2 or len(found) < 2:
        return found
    first = found[:_READ]
    texts = {item.id: item for item in store.get([one.candidate.id for one in first])}
    raised = [
        lifted(one, "phrase", part * adjacent(texts[one.candidate.id], query.terms, telling))
        for one in first
    ]
    return in_order(raised) + found[_READ:]
