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
from yester.recall.arms import Around, Asks, in_order, ranked
from yester.recall.rank import Ranked, Weights, lowered
from yester.redact import redact
from yester.store.base import Store
from yester.text.document import decode
from yester.text.query import Query, parse
from yester.when import moment

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
    now: int = 0
    window: int = 0  # milliseconds; what is older counts less
    project: str = ""  # where it is asked, by name or key; no filter
    files: tuple[str, ...] = ()  # what is being touched; no filter


def recall(
    store: Store,
    asked: Asked,
    weights: Weights | None = None,
    embedder: Asks | None = None,
) -> list[Hit]:
    """The k best answers after `offset`. Without a query the filters alone decide, newest first."""
    weights = weights or Weights()
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
    around = Around(asked.now, asked.project, asked.files)
    text = _without_filters(asked.query, query)
    found, rung = ranked(store, text, query, filters, around, weights, embedder)
    if not found and query.quoted:
        # Quotation marks may be just that: better the words than nothing.
        query = replace(query, must=None)
        found, rung = ranked(store, text, query, filters, around, weights, embedder)
    if asked.window:
        oldest = asked.now - asked.window
        found = in_order(lowered(one, oldest, weights.outside) for one in found)
    chosen = collapse(found, asked.offset + asked.k)
    if asked.order != "relevance":
        newest_first = asked.order == "date_desc"
        chosen.sort(key=lambda pair: pair[0].candidate.epoch, reverse=newest_first)
    chosen = chosen[asked.offset :]
    texts = {item.id: item for item in store.get([best.candidate.id for best, _ in chosen])}
    hits = []
    for best, duplicates in chosen:
        if item := texts.get(best.candidate.id):
            factors = best.factors if asked.explain else {}
            one = hit(item, names, best.score, rung)
            hits.append(replace(one, factors=factors, duplicates=duplicates))
    return hits


def _without_filters(text: str, query: Query) -> str:
    """The question as it would be said: what restricts it is not what it is about."""
    for name, value in query.filters:
        for written in (f"{name}:{value}", f'{name}:"{value}"'):
            text = text.replace(written, " ")
    return text


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


def collapse(found: Iterable[Ranked], most: int) -> list[tuple[Ranked, int]]:
    """The first `most` different ones, each with the number of near-duplicates it stands for."""
    kept: list[tuple[Ranked, set[int], int]] = []
    by_hash: dict[bytes, int] = {}
    for one in found:
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
