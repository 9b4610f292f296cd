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
from functools import cache
from itertools import pairwise
from math import log
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from yester import model
from yester.errors import ModelError
from yester.model import Candidate, Expression, Filters, Item, Nearness, Probe, ProbeResult, replace
from yester.recall import rank
from yester.recall.rank import Question, Ranked, Scale, Signals, Wanted, Weights, Words
from yester.store.contract import Store
from yester.text.query import Query, other_names
from yester.text.terms import text_terms

if TYPE_CHECKING:
    from yester.recall.recall import Asked

_TOUCHING = 100
_LIKELIEST = 40  # candidates whose neighbours are looked at
_READ = 8  # candidates whose text is read for words side by side
_READ_AHEAD = 10  # whose text is fetched then: most of them are answers
JUDGED = 30  # of the best whose use, and what became of whose files, is looked at
_MOST_TERMS = 80
_FAR = 0.15  # nearness below which a vector alone is no reason to be an answer
_TENTH, _TWENTIETH = 9, 19  # places, the first being 0
_CONVERSATION = ("message", "prompt")
_MOST_PATHS = 20
_PATH = re.compile(r"[\w.+-]+(?:/[\w.+-]+)+|\b[\w-]+\.[a-z]{1,4}\b")
_NOWHERE = Nearness(0.0, 1)
_WORD = re.compile(r"[\w-]+")


class Search(NamedTuple):
    """What a search found, the best first, and what was known of it."""

    found: list[Ranked]
    rung: str  # how far the search by words had to go
    reading: Reading  # what was read of it
    result: ProbeResult
    # Of each factor in a score, for this question: none where there were only exclusions.
    shares: Mapping[str, float] = {}
    far: int = 0  # found, but neither in words nor in meaning near enough
    # `bench/learn.py` tries other weights on these. In the signals, keyword, vector and recency are
    # weighed already: what they were made of is in `words` and `beside`, in `near`, and in the
    # candidate.
    signals: Mapping[int, Signals] = {}
    words: Mapping[int, Words] = {}
    beside: Mapping[int, tuple[int, int]] = {}
    near: Mapping[int, Nearness] = {}
    telling: Mapping[str, float] = {}

    @property
    def arms(self) -> dict[str, frozenset[int]]:
        """What each arm found."""
        touching = frozenset((*self.result.touching, *self.result.named))
        near = frozenset(self.result.near)
        return {"words": self.result.words, "vectors": near, "files": touching}


class QueryEmbedder(Protocol):
    """What a search needs of an embedder."""

    @property
    def sha(self) -> str: ...
    @property
    def band(self) -> tuple[float, float]: ...
    def embed_query(self, text: str) -> Any: ...


class OneQuestion:
    """An embedder for several searches with one question, which is embedded once, in a thread of
    its own: the first search by words goes on meanwhile, and someone is waiting for both."""

    def __init__(self, embedder: QueryEmbedder, text: str) -> None:
        self.sha, self.band = embedder.sha, embedder.band
        self._embedder, self._text = embedder, text
        self._vector: Any = None
        self._failure: Exception | None = None
        self._thread = Thread(target=self._embed_text, daemon=True)
        self._thread.start()

    def _embed_text(self) -> None:
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


class Reading:
    """The texts of what was found and what is known of their use, each asked for once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: set[int] = set()
        self._looked_up: set[int] = set()
        self.items: dict[int, Item] = {}
        self.used: dict[int, model.UseCounts] = {}
        self.branches: dict[tuple[str, str], str] = {}

    def read_items(self, ids: Sequence[int], use_of: Sequence[int] = ()) -> list[Item]:
        """The items in this order, those that are gone left out; and what is known of the use of
        others, which goes with the next question to the store."""
        missing = [id_ for id_ in ids if id_ not in self._read]
        used = [id_ for id_ in use_of if id_ not in self._looked_up]
        if missing or used:
            found = self._store.texts(missing, used)
            self._read.update(missing)
            self._looked_up.update(missing, used)
            self.items.update((item.id, item) for item in found.items)
            self.used.update(found.used)
            self.branches.update(found.branches)
        return [self.items[id_] for id_ in ids if id_ in self.items]


def read_best(reading: Reading, found: Sequence[Ranked]) -> None:
    """What is looked at next, and most of what will be shown, in one go."""
    ids = [one.candidate.id for one in found[:JUDGED]]
    reading.read_items(ids[:_READ_AHEAD], ids)


def search_candidates(
    store: Store,
    asked: Asked,
    query: Query,
    filters: Filters,
    weights: Weights,
    embedder: QueryEmbedder | None,
) -> Search:
    """Asks the store once for what is found, once for what stands beside it, once for texts."""
    text = _without_filters(asked.query, query)
    paths = tuple(dict.fromkeys(_PATH.findall(text)))[:_MOST_PATHS] if weights.named else ()
    query, names = _with_other_names(store, query, filters)
    probe = replace(
        _probe_words(query, names, weights),
        filters=filters, vector=_embed_later(embedder, text, query, weights),
        model=embedder.sha if embedder is not None else "", nearest=weights.nearest,
        files=asked.files, paths=paths, most_files=_TOUCHING, names=_concept_names(text),
        project=asked.project,
    )  # fmt: skip
    result = store.probe(probe)
    reading = Reading(store)
    rung = _search_rung(query, names, result)
    if query.must is not None and not query.terms and not query.prefixes:
        equals = sort_ranked(Ranked(one, 1.0, {}) for one in result.candidates)  # only exclusions
        return Search(_drop_unfulfilling(reading, equals, query), rung, reading, result)
    question = Question(_wanted_terms(query, names, result, weights), result.statistics, weights)
    words = {one.id: question.match_words(one) for one in result.candidates}
    candidates, near, having = list(result.candidates), dict(result.near), dict(result.having)
    vector = probe.vector() if probe.vector is not None else None
    likeliest = []
    if weights.neighbour and query.must is None:
        likeliest = _likeliest_messages(candidates, words, near)
    beside: Mapping[int, tuple[int, int]] = {}
    if likeliest or vector is not None:
        more = store.around(probe, likeliest, list(words), near.keys())
        beside = more.pairs
        words |= {one.id: question.match_words(one) for one in more.candidates}
        # They lift others whatever they are, but must pass the filters themselves.
        candidates += [one for one in more.candidates if one.id in more.passing]
        near |= more.near
        having |= more.having
    keyword = _lift_by_neighbours(words, beside, weights.neighbour)
    files = {id_: rank.matched_share(n, len(asked.files)) for id_, n in result.touching.items()}
    if weights.relative:
        best = max(keyword.values(), default=0.0) or 1.0
        keyword = {id_: value / best for id_, value in keyword.items()}
        if asked.files:
            items = reading.read_items(list(words))
            files = {item.id: rank.files_overlap(item.files, asked.files) for item in items}
    usable = {
        "keyword": True, "recency": True, "importance": True, "vector": vector is not None,
        "files": bool(asked.files), "named": bool(result.named), "concepts": result.concepts > 0,
        "project": result.project > 0,
    }  # fmt: skip
    scale = Scale(weights, frozenset(name for name, yes in usable.items() if yes))
    worth = {
        key: (rank.by_type(weights.half_life, *key), rank.by_type(weights.importances, *key))
        for key in {(one.kind, one.type) for one in candidates}
    }
    cosines = sorted((part.cosine for part in near.values()), reverse=True)
    twentieth = cosines[min(_TWENTIETH, len(cosines) - 1)] if cosines else 0.0
    ranked: list[Ranked] = []
    signals_of: dict[int, Signals] = {}
    for one in candidates:
        part, matched = near.get(one.id), words[one.id]
        close = None
        if part is not None and embedder is not None:
            many = weights.parts * log(part.parts) if one.kind in _CONVERSATION else 0.0
            close = rank.cosine_closeness(part.cosine - many, embedder.band)
        touching = one.id in result.touching or one.id in result.named
        if not matched.keyword and (close or 0.0) < _FAR and not touching:
            continue
        half_life, importance = worth[one.kind, one.type]
        signals_of[one.id] = signals = Signals(
            keyword[one.id] * (weights.printed if one.role == "tool" else 1.0),
            close,
            files.get(one.id, 0.0),
            rank.matched_share(result.named.get(one.id, 0), len(paths)),
            rank.recency_factor(asked.now - one.epoch, half_life, weights.spread),
            importance,
            rank.matched_share(having.get(one.id, 0), result.concepts),
            1.0 if result.project and one.project == result.project else 0.0,
        )
        facts = {"matched": matched.matched, "fit": matched.fit}
        if part is not None:
            facts |= {"cosine": part.cosine, "ahead": part.cosine - twentieth}
        ranked.append(scale.score_candidate(one, signals, facts))
    far = len(candidates) - len(ranked)
    ranked = _drop_unfulfilling(reading, sort_ranked(ranked), query)
    # How far each is above the tenth: what stands out is more likely to be meant.
    tenth = ranked[min(_TENTH, len(ranked) - 1)].score if ranked else 0.0
    for each in ranked:
        each.factors["lead"] = each.score - tenth
    ranked = _lift_phrases(reading, ranked, query, question.telling, weights.phrase)
    return Search(
        ranked, rung, reading, result, scale.shares, far, signals_of, words, beside, near,
        question.telling,
    )  # fmt: skip


def _without_filters(text: str, query: Query) -> str:
    """The question as it would be said: what restricts it is not what it is about."""
    for name, value in query.filters:
        for written in (f"{name}:{value}", f'{name}:"{value}"'):
            text = text.replace(written, " ")
    return text


def _embed_later(
    embedder: QueryEmbedder | None, text: str, query: Query, weights: Weights
) -> Callable[[], Any] | None:
    if embedder is None or not weights.vector or query.must is not None:
        return None

    @cache
    def embed_once() -> Any:
        # A server that is down must not cost the answer: then the words alone decide.
        with suppress(ModelError):
            return embedder.embed_query(text)
        return None

    return embed_once


_OtherNames = Mapping[str, Sequence[tuple[str, ...]]]


def _with_other_names(store: Store, query: Query, filters: Filters) -> tuple[Query, _OtherNames]:
    terms = query.terms
    if len(terms) > _MOST_TERMS:  # a pasted file: its most telling words ask the same
        known = store.probe(Probe(filters, dict.fromkeys(terms, 1.0))).statistics.frequencies
        rarest = sorted((n, term) for term, n in known.items() if n)[:_MOST_TERMS]
        kept = {term for _, term in rarest}
        query = replace(query, terms=tuple(term for term in terms if term in kept))
    return query, other_names(query.terms)


def _probe_words(query: Query, names: _OtherNames, weights: Weights) -> Probe:
    """Every term to be looked for, with the most it can count for."""
    shares = dict.fromkeys((*query.terms, *query.prefixes), 1.0)
    for term in query.terms:
        for group in names.get(term, ()):
            for other in group:
                shares[other] = max(shares.get(other, 0.0), weights.synonym / len(group))
    begin = dict.fromkeys(query.terms, weights.prefix) | dict.fromkeys(query.prefixes, 1.0)
    return Probe(terms=shares, begin=begin, words=weights.words, must=query.must)


def _wanted_terms(
    query: Query, names: _OtherNames, found: ProbeResult, weights: Weights
) -> list[Wanted]:
    """What is asked for, and what counts as it."""
    wanted = []
    for term in query.terms:
        others = [(group, weights.synonym) for group in names.get(term, ())]
        others += [((name,), weights.prefix) for name in found.alike.get(term, ())]
        wanted.append(Wanted(term, tuple(others)))
    for prefix in query.prefixes:
        wanted.append(Wanted(prefix, tuple(((n,), 1.0) for n in found.alike.get(prefix, ()))))
    return wanted


def _search_rung(query: Query, names: _OtherNames, found: ProbeResult) -> str:
    others = (term for groups in names.values() for group in groups for term in group)
    held = found.statistics.frequencies
    return "stem" if not query.terms or any(held[t] for t in (*query.terms, *others)) else "prefix"


def _concept_names(text: str) -> list[str]:
    """What in a question could be a concept: its words, and two or three joined (how-it-works)."""
    words = _WORD.findall(text.lower())
    pairs = [f"{a}-{b}" for a, b in pairwise(words)]
    triples = [f"{a}-{b}-{c}" for (a, b), (_, c) in pairwise(pairwise(words))]
    return [*words, *pairs, *triples] if len(words) <= _MOST_TERMS else []


def sort_ranked(found: Iterable[Ranked]) -> list[Ranked]:
    return sorted(found, key=lambda r: (-r.score, -r.candidate.epoch, -r.candidate.id))


def _likeliest_messages(
    found: list[Candidate], words: Mapping[int, Words], near: Mapping[int, Nearness]
) -> list[int]:
    """The messages whose neighbours are looked at: in a conversation the answer often stands beside
    the words of the question."""
    talk = sorted(
        (one.id for one in found if one.kind in _CONVERSATION),
        key=lambda id_: -(words[id_].keyword + near.get(id_, _NOWHERE).cosine),
    )
    return talk[:_LIKELIEST]


def _lift_by_neighbours(
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


def _drop_unfulfilling(reading: Reading, found: list[Ranked], query: Query) -> list[Ranked]:
    """Without what only seemed to hold a phrase, or cannot be told by terms."""
    if query.must is None:
        return found
    reading.read_items([one.candidate.id for one in found])
    return [one for one in found if fulfils_demand(reading.items[one.candidate.id], query.must)]


def _lift_phrases(
    reading: Reading, found: list[Ranked], query: Query, telling: Mapping[str, float], part: float
) -> list[Ranked]:
    """Words asked side by side that stand side by side in a text lift it."""
    if not part or len(query.terms) < 2 or len(found) < 2:
        return found
    first = found[:_READ]
    read_best(reading, found)
    texts = reading.items
    raised = []
    for one in first:
        share = adjacent_share(texts[one.candidate.id], query.terms, telling)
        raised.append(rank.adjust_score(one, "phrase", part * share))
    return sort_ranked(raised) + found[_READ:]


# --- what only the text itself can tell: which words stand side by side ---------------------------

_NEAR = 4  # words
_READ_CHARS = 4_000  # of a text, for the bonus; a phrase that must be there is looked for in all


def fulfils_demand(item: Item, must: Expression) -> bool:
    """Does the item hold what the question demands? Words have been looked up by the store."""
    return _holds_expression([list(text_terms(text)) for text in _item_texts(item)], must)


def _item_texts(item: Item) -> list[str]:
    parts = [item.title, item.subtitle, item.body, *item.facts, *item.sections.values()]
    return [*filter(None, parts), " ".join((*item.concepts, *item.tags)), *item.files, item.tool]


def _holds_expression(fields: list[list[str]], must: Expression) -> bool:
    match must:
        case model.Word(wanted):
            return all(any(term in field for field in fields) for term in wanted)
        case model.Prefix(text):
            return any(term.startswith(text) for field in fields for term in field)
        case model.Phrase(wanted, distance):
            return any(_stand_near(field, wanted, distance) for field in fields)
        case model.Every(parts):
            return all(_holds_expression(fields, part) for part in parts)
        case model.Some(parts):
            return any(_holds_expression(fields, part) for part in parts)
        case model.Without(part):
            return not _holds_expression(fields, part)


def _stand_near(field: list[str], wanted: Sequence[str], distance: int) -> bool:
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


def adjacent_share(item: Item, asked: Sequence[str], telling: Mapping[str, float]) -> float:
    """0 to 1: how much of what is asked side by side stands so; close by counts half."""
    pairs = {pair: min(telling.get(t, 0.0) for t in pair) for pair in pairwise(asked)}
    possible = sum(pairs.values())
    if not possible:
        return 0.0
    wanted = set(asked)
    text = f"{item.title}\n{item.body[:_READ_CHARS]}"
    places = [(at, term) for at, term in enumerate(text_terms(text)) if term in wanted]
    close: dict[tuple[str, str], float] = {}
    for (at, one), (behind, other) in pairwise(places):
        if (one, other) in pairs and behind - at <= _NEAR:
            share = 1.0 if behind - at == 1 else 0.5
            close[one, other] = max(share, close.get((one, other), 0.0))
    return sum(share * pairs[pair] for pair, share in close.items()) / possible
