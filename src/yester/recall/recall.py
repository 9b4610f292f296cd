"""From a question to answers: the store's candidates, scored, near-duplicates collapsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from yester.errors import UsageError
from yester.model import Filters, Hit, Item
from yester.recall.rank import Question, Ranked, Weights
from yester.store.base import Store
from yester.text.terms import query_terms

CANDIDATES = 400
ORDERS = ("relevance", "date_desc", "date_asc")
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


def recall(store: Store, asked: Asked, weights: Weights | None = None) -> list[Hit]:
    """The k best answers after `offset`. Without a query the filters alone decide, newest first."""
    if asked.order not in ORDERS:
        raise UsageError(f"order {asked.order!r} is not known; it is one of {', '.join(ORDERS)}")
    if asked.k < 0 or asked.offset < 0:
        raise UsageError(f"k and offset must not be negative (k={asked.k}, offset={asked.offset})")
    names = {project.key: project.name for project in store.projects()}
    terms = query_terms(asked.query)
    if not terms:
        if asked.query.strip():
            return []  # nothing in it that could be looked for
        items = store.newest(asked.filters, asked.k, asked.offset, asked.order == "date_asc")
        return [hit(item, names) for item in items]
    question = Question(terms, store.statistics(terms, asked.filters), weights or Weights())
    found = store.candidates(terms, asked.filters, CANDIDATES)
    ranked = sorted(
        map(question.rank, found), key=lambda r: (-r.score, -r.candidate.epoch, -r.candidate.id)
    )
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
            hits.append(
                replace(hit(item, names), score=best.score, factors=factors, duplicates=duplicates)
            )
    return hits


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
    for part in one.fields:
        words.update(part.counts)
    return words


def _same(one: set[int], other: set[int]) -> bool:
    smaller, larger = sorted((len(one), len(other)))
    if smaller < _SHORT or smaller < _SAME * larger:
        return False
    common = len(one & other)
    return common >= _SAME * (len(one) + len(other) - common)


def hit(item: Item, names: Mapping[str, str]) -> Hit:
    return Hit(
        id=item.id, ref=item.ref, kind=item.kind, type=item.type,
        project=names.get(item.project, item.project), session=item.session, title=item.title,
        text=item.body, epoch=item.epoch / 1000, score=0.0, role=item.role, tool=item.tool,
        agent=item.agent, files=item.files, prompt_number=item.prompt_number,
    )  # fmt: skip


def by_session(hits: Sequence[Hit]) -> list[tuple[str, list[Hit]]]:
    """Hits of one session together, in the order of their best one."""
    groups: dict[str, list[Hit]] = {}
    for one in hits:
        groups.setdefault(one.session or f"item {one.id}", []).append(one)
    return list(groups.items())
