"""From a question to answers: the store's candidates, scored, lifted, near-duplicates collapsed.

    stem      the words as they are, their stems and their other names
    prefix    words nobody has: what begins with them, or what they begin with
    recent    a question that names nothing ("where were we?"): the newest

`Hit.rung` says which of them answered. A question whose words lead nowhere is answered by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from yester.errors import UsageError
from yester.model import Filters, Hit, Item
from yester.recall.phrases import adjacent, fulfils
from yester.recall.rank import Question, Ranked, Wanted, Weights, lifted, lowered
from yester.redact import redact
from yester.store.base import Store, inverse_frequency
from yester.text.document import decode
from yester.text.query import Query, parse
from yester.text.synonyms import alternatives
from yester.when import moment

CANDIDATES = 220
DAY = 86_400_000
ORDERS = ("relevance", "date_desc", "date_asc")
_LIFTED = 60  # candidates whose neighbours are looked at
_READ = 8  # candidates whose text is read for words side by side
_ALIKE = 12
_MOST_TERMS = 80
_CONVERSATION = ("message", "prompt")
# Share of common terms from which two texts say the same; shorter ones must be equal.
_SAME, _SHORT = 0.9, 8


@dataclass(frozen=True, slots=True)
class Asked:
    query: str = ""
    filters: Filters = field(default_factory=Filters)
    k: int = 10
    offset: int = 0
    order: str = "relevance"
    explain: bool = False
    now: int = 0
    window: int = 0  # milliseconds; what is older counts less


def recall(store: Store, asked: Asked, weights: Weights | None = None) -> list[Hit]:
    """The k best answers after `offset`. Without a query the filters alone decide, newest first."""
    if asked.order not in ORDERS:
        raise UsageError(f"order {asked.order!r} is not known; it is one of {', '.join(ORDERS)}")
    if asked.k < 0 or asked.offset < 0:
        raise UsageError(f"k and offset must not be negative (k={asked.k}, offset={asked.offset})")
    names = {project.key: project.name for project in store.projects()}
    query = parse(asked.query)
    filters = narrowed(asked.filters, query, asked.now)
    if not query.named and query.must is None:
        if asked.query.strip() and not (query.terms or query.filters):
            return []  # signs and brackets: nothing in it that could be looked for
        items = store.newest(filters, asked.k, asked.offset, asked.order == "date_asc")
        return [hit(item, names, rung="recent") for item in items]
    ranked, rung = _ranked(store, query, filters, weights or Weights())
    if not ranked and query.quoted:
        # Quotation marks may be just that: better the words than nothing.
        query = replace(query, must=None)
        ranked, rung = _ranked(store, query, filters, weights or Weights())
    if asked.window:
        share = (weights or Weights()).outside
        ranked = _sorted(lowered(one, asked.now - asked.window, share) for one in ranked)
    chosen = collapse(ranked, asked.offset + asked.k)
    if asked.order != "relevance":
        newest_first = asked.order == "date_desc"
        chosen.sort(key=lambda pair: pair[0].candidate.epoch, reverse=newest_first)
    chosen = chosen[asked.offset :]
    texts = {item.id: item for item in store.get([best.candidate.id for best, _ in chosen])}
    hits = []
    for best, duplicates in chosen:
        if item := texts.get(best.candidate.id):
            factors = best.factors if asked.explain else {}
            found = hit(item, names, best.score, rung)
            hits.append(replace(found, factors=factors, duplicates=duplicates))
    return hits


def narrowed(filters: Filters, query: Query, now: int) -> Filters:
    """The filters together with those written into the question (`project:shop since:1w`)."""
    changes: dict[str, Any] = {}
    for name, value in query.filters:
        if name in ("since", "until"):
            changes[name] = moment(value, now, option=f"{name}:")
        elif name in ("session", "agent", "tool"):
            changes[name] = value
        else:
            many = f"{name}s"
            changes[many] = (*changes.get(many, getattr(filters, many)), value)
    return replace(filters, **changes)


def _ranked(
    store: Store, query: Query, filters: Filters, weights: Weights
) -> tuple[list[Ranked], str]:
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
        (term, share * inverse_frequency(n, statistics.items), n)
        for term, share in shares.items()
        if (n := statistics.frequencies[term])
    ]
    if not postings and query.must is None:
        return [], rung
    found = store.candidates(postings, filters, CANDIDATES, query.must)
    ranked = _sorted(map(question.rank, found))
    if not query.terms and not query.prefixes:
        return [one._replace(score=1.0) for one in ranked], rung  # nothing but exclusions
    ranked = _with_neighbours(store, ranked, weights.neighbour)
    return _with_text(store, ranked, query, question.telling, weights.phrase), rung


def _shares(wanted: Sequence[Wanted]) -> dict[str, float]:
    """Every term to be looked for, with the most it can count for."""
    shares = {one.term: 1.0 for one in wanted}
    for one in wanted:
        for group, share in one.others:
            for term in group:
                shares[term] = max(shares.get(term, 0.0), share / len(group))
    return shares


def _sorted(ranked: Iterable[Ranked]) -> list[Ranked]:
    return sorted(ranked, key=lambda r: (-r.score, -r.candidate.epoch, -r.candidate.id))


def _with_neighbours(store: Store, ranked: list[Ranked], share: float) -> list[Ranked]:
    """In a conversation the answer often stands beside the words of the question."""
    scores = {one.candidate.id: one.score for one in ranked}
    talk = [r.candidate.id for r in ranked[:_LIFTED] if r.candidate.kind in _CONVERSATION]
    beside = store.neighbours(talk) if share and len(ranked) > 1 else {}
    raised = []
    for one in ranked:
        before, behind = beside.get(one.candidate.id, (0, 0))
        near = scores.get(before, 0.0) + scores.get(behind, 0.0)
        raised.append(lifted(one, "neighbours", share * near))
    return _sorted(raised)


def _with_text(
    store: Store, ranked: list[Ranked], query: Query, telling: Mapping[str, float], share: float
) -> list[Ranked]:
    """Look into the texts: drop what only seemed to hold a phrase, lift words side by side."""
    if query.must is not None:
        texts = {item.id: item for item in store.get([one.candidate.id for one in ranked])}
        ranked = [r for r in ranked if fulfils(texts[r.candidate.id], query.must)]
    if not share or len(query.terms) < 2 or len(ranked) < 2:
        return ranked
    first = ranked[:_READ]
    texts = {item.id: item for item in store.get([one.candidate.id for one in first])}
    raised = [
        lifted(one, "phrase", share * adjacent(texts[one.candidate.id], query.terms, telling))
        for one in first
    ]
    return _sorted(raised) + ranked[_READ:]


def collapse(ranked: Iterable[Ranked], most: int) -> list[tuple[Ranked, int]]:
    """The first `most` different ones, each with the number of near-duplicates it stands for."""
    kept: list[tuple[Ranked, set[int], int]] = []
    by_hash: dict[bytes, int] = {}
    for one in ranked:
        if one.score <= 0:
            break
        at = by_hash.get(one.candidate.hash)
        words = _words(one)
        if at is None:
            at = next((i for i, (_, other, _) in enumerate(kept) if _same(words, other)), None)
        if at is not None:
            best, other, number = kept[at]
            kept[at] = (best, other, number + 1)
            continue
        if len(kept) >= most:
            break
        by_hash[one.candidate.hash] = len(kept)
        kept.append((one, words, 0))
    return [(best, number) for best, _, number in kept]


def _words(one: Ranked) -> set[int]:
    words: set[int] = set()
    for part in decode(one.candidate.vector):
        words.update(part.counts)
    return words


def _same(one: set[int], other: set[int]) -> bool:
    smaller, larger = sorted((len(one), len(other)))
    if smaller < _SHORT or smaller < _SAME * larger:
        return False
    common = len(one & other)
    return common >= _SAME * (len(one) + len(other) - common)


def hit(item: Item, names: Mapping[str, str], score: float = 0.0, rung: str = "") -> Hit:
    """An item as an answer, redacted once more: it may be older than the newest rule."""
    return Hit(
        id=item.id, ref=item.ref, kind=item.kind, type=item.type,
        project=names.get(item.project, item.project), session=item.session,
        title=redact(item.title), text=redact(item.body), epoch=item.epoch / 1000, score=score,
        role=item.role, tool=item.tool, agent=item.agent, files=item.files,
        prompt_number=item.prompt_number, rung=rung,
    )  # fmt: skip


def by_session(hits: Sequence[Hit]) -> list[tuple[str, list[Hit]]]:
    """Hits of one session together, in the order of their best one."""
    groups: dict[str, list[Hit]] = {}
    for one in hits:
        groups.setdefault(one.session or f"item {one.id}", []).append(one)
    return list(groups.items())
