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
from itertools import islice, pairwise
from math import log
from typing import TYPE_CHECKING, Any

from yester import model
from yester.errors import ModelError
from yester.model import Candidate, Expression, Filters, Item, Probe, TurnKey, replace
from yester.recall import rank
from yester.recall.rank import (
    Question,
    Ranked,
    Scale,
    Signals,
    Wanted,
    Weights,
    collapse_duplicates,
    sort_ranked,
)
from yester.store.contract import Store
from yester.text.query import Query, is_short_form, other_names
from yester.text.terms import text_terms

if TYPE_CHECKING:
    from yester.recall.recall import Asked
    from yester.text.embed import Embedder

_TOUCHING = 100
_LIKELIEST, _TURNS = 40, 24  # candidates whose neighbours are looked at, turns of which all is
_READ = 8  # candidates whose text is read for words side by side
_LIKELY, _SPARE = 100, 2  # of which those that will be answers are guessed, and how many more
JUDGED = 30  # of the best whose use, and what became of whose files, is looked at
_MOST_TERMS = 80
_FAR = 0.15  # nearness below which a vector alone is no reason to be an answer
_CONVERSATION = ("message", "prompt")
_MOST_PATHS = 20
_PATH = re.compile(r"(?<![\w.+-])[\w.+-]++(?:/[\w.+-]++)+|\b[\w-]{1,99}\.[a-z]{1,4}\b")
_WORD = re.compile(r"[\w-]+")


class Reading:
    """The texts of what was found and what is known of their use, each asked for once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: set[int] = set()
        self._looked_up: set[int] = set()
        self.items: dict[int, Item] = {}
        self.used: dict[int, model.UseCounts] = {}

    def read_all(self, ids: Sequence[int], use_of: Sequence[int] = ()) -> dict[int, Item]:
        """All items known by now, these among them, but for those that are gone; and what is known
        of the use of others, which goes with the same question to the store."""
        missing = [id_ for id_ in ids if id_ not in self._read]
        used = [id_ for id_ in use_of if id_ not in self._looked_up]
        if missing or used:
            found = self._store.texts(missing, used)
            self._read.update(missing)
            self._looked_up.update(missing, used)
            self.items.update((item.id, item) for item in found.items)
            self.used.update(found.used)
        return self.items

    def read_items(self, ids: Sequence[int]) -> list[Item]:
        items = self.read_all(ids)
        return [items[id_] for id_ in ids if id_ in items]


class Search:
    """What is `found` for a question, the best first, and what was known of it: probe the store,
    look around the likeliest, score, and lift what only its text can lift.

    `bench/learn.py` tries other weights on it. In the `signals`, keyword, vector and recency are
    weighed already: what they were made of is in `words` and `beside`, in `near`, and in the
    candidate.
    """

    def __init__(
        self,
        store: Store,
        asked: Asked,
        query: Query,
        filters: Filters,
        weights: Weights,
        embedder: Embedder | None,
    ) -> None:
        """Asks the store once for what is found, once for what stands beside it, once for texts."""
        self._store, self._asked = store, asked
        self._weights, self._embedder = weights, embedder
        self._query = _most_telling(store, query, filters)
        self._other_names = other_names(self._query.terms)
        self.reading = Reading(store)
        self._probe = self._make_probe(filters)
        self.result = store.probe(self._probe)
        self._candidates = list(self.result.candidates)
        self.near, self._having = dict(self.result.near), dict(self.result.having)
        self.beside: Mapping[int, tuple[int, int]] = {}
        self.said: dict[TurnKey, float] = {}  # how well what was said in a turn matches as a whole
        self.cards: Mapping[TurnKey, int] = {}
        self.signals: dict[int, Signals] = {}
        self._scale = Scale(weights, frozenset())  # no factor, where there were only exclusions
        self.far = 0  # found, but neither in words nor in meaning near enough
        question = Question(self._wanted_terms(), self.result.statistics, weights)
        self.telling = question.telling
        self.words = {one.id: question.match_words(one) for one in self._candidates}
        if query.must is not None and not query.terms and not query.prefixes:
            equals = sort_ranked(Ranked(one, 1.0) for one in self._candidates)
            self.found = self._drop_unfulfilling(equals)
            return
        self._look_around(question)
        ranked = self._score_candidates()
        self.far = len(self._candidates) - len(ranked)
        self.found = self._lift_phrases(self._drop_unfulfilling(sort_ranked(ranked)))

    @property
    def arms(self) -> dict[str, frozenset[int]]:
        """What each arm found."""
        touching = frozenset((*self.result.touching, *self.result.named))
        near = frozenset(self.result.near)
        return {"words": self.result.words, "vectors": near, "files": touching}

    @property
    def shares(self) -> Mapping[str, float]:
        """Of each factor in a score, for this question."""
        return self._scale.shares

    @property
    def words_unknown(self) -> bool:
        """Has nothing that passes the filters any word of the question, nor a file it names?"""
        if self._query.must is not None or self.result.named:
            return False
        return not any(self.words[id_].matched for id_ in self.result.words if id_ in self.words)

    @property
    def rung(self) -> str:
        """How far the search by words had to go."""
        terms, held = self._query.terms, self.result.statistics.frequencies
        groups = (group for groups in self._other_names.values() for group in groups)
        others = (term for group in groups for term in group)
        return "stem" if not terms or any(held[term] for term in (*terms, *others)) else "prefix"

    def describe_reach(self, chosen: Sequence[Ranked]) -> str:
        """How far it had to go for these answers (`Answer.reach`)."""
        if not chosen or not self._query.terms:
            return ""
        if not any(self.words[one.id].matched for one in chosen):
            return "meaning"
        return "prefix" if self.rung == "prefix" else ""

    # --- what is asked -----------------------------------------------------------------------

    def _make_probe(self, filters: Filters) -> Probe:
        query, weights, embedder = self._query, self._weights, self._embedder
        # The question as it would be said: what restricts it is not what it is about.
        text = self._asked.query
        for name, value in query.filters:
            for written in (f"{name}:{value}", f'{name}:"{value}"'):
                text = text.replace(written, " ")
        # Every term to be looked for, with the most it can count for.
        shares = dict.fromkeys((*query.terms, *query.prefixes), 1.0)
        for term in query.terms:
            for group in self._other_names.get(term, ()):
                share = self._share_of_name(term, group) / len(group)
                for other in group:
                    shares[other] = max(shares.get(other, 0.0), share)
        paths = tuple(dict.fromkeys(_PATH.findall(text)))[:_MOST_PATHS] if weights.named else ()
        vector = None
        if embedder is not None and weights.vector and query.must is None:
            vector = _embed_beside(embedder, text)
        return Probe(
            filters, shares,
            begin=dict.fromkeys(query.terms, weights.prefix) | dict.fromkeys(query.prefixes, 1.0),
            words=weights.words, must=query.must, vector=vector,
            model=embedder.sha if embedder is not None else "", nearest=weights.nearest,
            files=self._asked.files, paths=paths, most_files=_TOUCHING,
            names=_concept_names(text), project=self._asked.project,
            own=self._asked.own > 0, worked=self._asked.worked,
        )  # fmt: skip

    def _wanted_terms(self) -> list[Wanted]:
        """What is asked for, and what counts as it."""
        weights, alike = self._weights, self.result.alike
        wanted = []
        for term in self._query.terms:
            names = self._other_names.get(term, ())
            others = [(group, self._share_of_name(term, group)) for group in names]
            others += [((name,), weights.prefix) for name in alike.get(term, ())]
            wanted.append(Wanted(term, tuple(others)))
        for prefix in self._query.prefixes:
            wanted.append(Wanted(prefix, tuple(((name,), 1.0) for name in alike.get(prefix, ()))))
        return wanted

    def _share_of_name(self, term: str, group: Sequence[str]) -> float:
        """How much of a match another name of a term is."""
        short = len(group) == 1 and is_short_form(term, group[0])
        return self._weights.short if short else self._weights.synonym

    # --- what stands beside it ---------------------------------------------------------------

    def _look_around(self, question: Question) -> None:
        """In a conversation the answer often stands beside the words of the question: so what
        stands beside the likeliest is known from here on, and how near all are."""
        ordered = sorted(self._candidates, key=self._likelihood_of)
        likeliest: list[int] = []
        if self._weights.neighbour and self._query.must is None:
            talk = (one.id for one in ordered if one.kind in _CONVERSATION)
            likeliest = list(islice(talk, _LIKELIEST))
        most = max(_TURNS, self._asked.offset + self._asked.k)
        turns = list(dict.fromkeys(turn for one in ordered if (turn := one.turn)))[:most]
        if not likeliest and not turns and not self._has_vector():
            return
        known = list(self.words)
        probe = self._probe if self.result.concepts else replace(self._probe, names=())
        more = self._store.around(probe, likeliest, known, self.near.keys(), turns)
        self.cards = more.cards
        if self._weights.said:
            self.said = {turn: question.match_said(said) for turn, said in more.said.items()}
        self.beside = more.pairs
        self.words |= {one.id: question.match_words(one) for one in more.candidates}
        # They lift others whatever they are, but must pass the filters themselves.
        self._candidates += [one for one in more.candidates if one.id in more.passing]
        self.near |= more.near
        self._having |= more.having

    def _likelihood_of(self, one: Candidate) -> float:
        """The smaller, the likelier."""
        near = self.near.get(one.id)
        return -self.words[one.id].keyword - (near.cosine if near else 0.0)

    def _has_vector(self) -> bool:
        return self._probe.vector is not None and self._probe.vector() is not None

    def _lift_by_neighbours(self) -> dict[int, float]:
        """The keyword score of each, raised by those of its neighbours."""
        part = self._weights.neighbour
        scores = {id_: one.keyword for id_, one in self.words.items()}
        raised = dict(scores)
        for id_, pair in self.beside.items():
            for other in filter(None, pair):
                raised[id_] += part * scores.get(other, 0.0)
                if other in scores and other not in self.beside:
                    raised[other] += part * scores[id_]
        return {id_: min(1.0, score) for id_, score in raised.items()}

    # --- what it is worth --------------------------------------------------------------------

    def _score_candidates(self) -> list[Ranked]:
        asked, weights, result, near = self._asked, self._weights, self.result, self.near
        keyword = self._lift_by_neighbours()
        files, named, concepts = (
            {id_: rank.matched_share(number, of) for id_, number in counts.items()}
            for counts, of in (
                (result.touching, len(asked.files)),
                (result.named, len(self._probe.paths)),
                (self._having, result.concepts),
            )
        )
        if weights.relative:
            best = max(keyword.values(), default=0.0) or 1.0
            keyword = {id_: value / best for id_, value in keyword.items()}
            if asked.files:
                items = self.reading.read_items(list(self.words))
                files = {item.id: rank.files_overlap(item.files, asked.files) for item in items}
        usable = {
            "keyword": True, "recency": True, "importance": True, "vector": self._has_vector(),
            "files": bool(asked.files), "named": bool(result.named),
            "concepts": result.concepts > 0, "project": result.project > 0,
        }  # fmt: skip
        scale = Scale(weights, frozenset(name for name, yes in usable.items() if yes))
        self._scale = scale
        worth = {
            key: (rank.by_type(weights.half_life, *key), rank.by_type(weights.importances, *key))
            for key in {(one.kind, one.type) for one in self._candidates}
        }
        ranked: list[Ranked] = []
        for one in self._candidates:
            part, matched = near.get(one.id), self.words[one.id]
            close = None
            if part is not None and self._embedder is not None:
                many = weights.parts * log(part.parts) if one.kind in _CONVERSATION else 0.0
                close = rank.cosine_closeness(part.cosine - many, self._embedder.band)
            touching = one.id in result.touching or one.id in result.named
            if not matched.keyword and (close or 0.0) < _FAR and not touching:
                continue
            half_life, importance = worth[one.kind, one.type]
            self.signals[one.id] = signals = Signals(
                keyword[one.id] * (weights.printed if one.role == "tool" else 1.0),
                close,
                files.get(one.id, 0.0),
                named.get(one.id, 0.0),
                rank.recency_factor(asked.now - one.epoch, half_life, weights.spread),
                importance,
                concepts.get(one.id, 0.0),
                1.0 if result.project and one.project == result.project else 0.0,
            )
            ranked.append(Ranked(one, scale.score_signals(signals)))
        return ranked

    def explain_score(self, one: Ranked) -> dict[str, float]:
        """What each factor added to a score, and what is known of how well any part of it fits."""
        if one.id not in self.signals:  # found by its files alone, or by what must be in it
            return dict(one.adjusted)
        parts = (one.id, *one.parts)
        factors = self._scale.name_factors(self.signals[one.id])
        factors["matched"] = max(self.words[part].matched for part in parts)
        if one.id in self.near:
            factors["cosine"] = max(self.near[part].cosine for part in parts if part in self.near)
        return {**factors, **one.adjusted}

    def fold_turns(self, found: Iterable[Ranked]) -> list[Ranked]:
        """The answers: of each turn the best item, raised by what was said in the turn as a whole
        and by the files of the session that it has edited."""
        weights, files = self._weights, len(self._asked.worked)
        answers, folded = [], dict[TurnKey, list[Ranked]]()
        for one in found:
            turn = one.candidate.turn
            if turn is None:
                answers.append(one)
            else:
                folded.setdefault(turn, []).append(one)
        by_id = {one.id: one for one in self._candidates} if self.result.edited else {}
        for place, (_, item) in self.result.edited.items():
            if weights.worked and item in by_id:
                folded.setdefault(place, [Ranked(by_id[item], weights.worked_alone)])
        if not folded:
            return answers
        for turn, (best, *others) in folded.items():
            if not (others or turn in self.said or turn in self.result.edited):
                answers.append(best)
                continue
            edited, _ = self.result.edited.get(turn, (0, 0))
            said = weights.said * self.said.get(turn, 0.0)
            worked = weights.worked * rank.matched_share(edited, files)
            added = {"said": said, "worked": worked}
            raised = {name: value for name, value in added.items() if value}
            adjusted = {**best.adjusted, **raised}
            parts = tuple(one.id for one in others)
            score = best.score + said + worked
            answers.append(best._replace(score=score, adjusted=adjusted, parts=parts))
        return sort_ranked(answers)

    def read_best(self, found: Sequence[Ranked]) -> None:
        """What is looked at next, and most of what will be shown, in one go."""
        best, read = found[:JUDGED], list[Ranked]()
        if not self.reading.items:
            # Whether files have changed since is asked of all that are judged.
            judged = self._weights.stale and self._asked.project
            read = [*best[: JUDGED if judged else _READ], *self._likely_answers(found)]
        shown = (self.cards.get(one.candidate.turn or (0, 0), 0) for one in read)
        ids = dict.fromkeys((*(one.id for one in read), *filter(None, shown)))
        self.reading.read_all(list(ids), [one.id for one in best])

    def _likely_answers(self, found: Sequence[Ranked]) -> list[Ranked]:
        """What `fold_turns` will probably put first."""
        firsts = dict[object, tuple[float, Ranked]]()
        for one in found[:_LIKELY]:
            turn = one.candidate.turn
            said = self.said.get(turn, 0.0) if turn else 0.0
            firsts.setdefault(turn or one.id, (one.score + self._weights.said * said, one))
        ordered = sorted(firsts.values(), key=lambda pair: -pair[0])
        most = self._asked.offset + self._asked.k + _SPARE
        return collapse_duplicates((one for _, one in ordered), most)

    # --- what its text says ------------------------------------------------------------------

    def _drop_unfulfilling(self, found: list[Ranked]) -> list[Ranked]:
        """Without what only seemed to hold a phrase, or cannot be told by terms."""
        must = self._query.must
        if must is None:
            return found
        items = self.reading.read_all([one.id for one in found])
        return [one for one in found if fulfils_demand(items[one.id], must)]

    def _lift_phrases(self, found: list[Ranked]) -> list[Ranked]:
        """Words asked side by side that stand side by side in a text lift it."""
        part, terms = self._weights.phrase, self._query.terms
        if not part or len(terms) < 2 or len(found) < 2:
            return found
        self.read_best(found)
        shares = {
            one.id: part * adjacent_share(self.reading.items[one.id], terms, self.telling)
            for one in found[:_READ]
        }
        return rank.adjust_scores(found, "phrase", shares, _READ)


def _most_telling(store: Store, query: Query, filters: Filters) -> Query:
    """The same with fewer words where they are very many: those of a pasted file that are rarest
    ask the same."""
    if len(query.terms) <= _MOST_TERMS:
        return query
    known = store.probe(Probe(filters, dict.fromkeys(query.terms, 1.0))).statistics.frequencies
    rarest = sorted((n, term) for term, n in known.items() if n)[:_MOST_TERMS]
    kept = {term for _, term in rarest}
    return replace(query, terms=tuple(term for term in query.terms if term in kept))


def _embed_beside(embedder: Embedder, text: str) -> Callable[[], Any]:
    """The question's vector, made in a thread of its own: the search by words goes on meanwhile."""
    from concurrent.futures import ThreadPoolExecutor  # a search by words needs none

    thread = ThreadPoolExecutor(1, "embed")
    vector = thread.submit(embedder.embed_query, text)
    thread.shutdown(wait=False)

    def wait_for_vector() -> Any:
        # A server that is down must not cost the answer: then the words alone decide.
        with suppress(ModelError):
            return vector.result()
        return None

    return wait_for_vector


def _concept_names(text: str) -> list[str]:
    """What in a question could be a concept: its words, and two or three joined (how-it-works)."""
    words = _WORD.findall(text.lower())
    pairs = [f"{a}-{b}" for a, b in pairwise(words)]
    triples = [f"{a}-{b}-{c}" for (a, b), (_, c) in pairwise(pairwise(words))]
    return [*words, *pairs, *triples] if len(words) <= _MOST_TERMS else []


# --- what only the text itself can tell: which words stand side by side ---------------------------

_NEAR = 4  # words
_READ_CHARS = 4_000  # of a text, for the bonus; a phrase that must be there is looked for in all


def fulfils_demand(item: Item, must: Expression) -> bool:
    """Does the item hold what the question demands? Words have been looked up by the store."""
    texts = [item.title, item.subtitle, item.body, *item.facts, *item.sections.values()]
    texts += [" ".join((*item.concepts, *item.tags)), *item.files, item.tool]
    return _holds_expression([list(text_terms(text)) for text in texts], must)


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
    size = distance + 1 if distance else len(wanted)
    passages = (field[at : at + size] for at, term in enumerate(field) if term in wanted)
    if distance:
        return any(set(wanted) <= set(passage) for passage in passages)
    return any(passage == list(wanted) for passage in passages)


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
