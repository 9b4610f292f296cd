"""From a question to answers: the store's candidates, scored, lifted, near-duplicates collapsed.

    stem      the words as they are, their stems and their other names
    prefix    words nobody has: what begins with them, or what they begin with
    recent    a question that names nothing ("where were we?"): the newest

`Hit.rung` says which of them answered. A question whose words lead nowhere is answered by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from yester.clock import parse_bound
from yester.errors import UsageError
from yester.model import ANYTHING, Candidate, Filters, Hit, Item, Paging, replace
from yester.recall.candidates import JUDGED, QueryEmbedder, Reading, Search, sort_ranked
from yester.recall.feedback import usefulness
from yester.recall.rank import Ranked, Weights, adjust_score
from yester.recall.staleness import FRESH, Staleness, Work, work_of
from yester.redact import redact
from yester.store.contract import Store
from yester.text.document import item_text, read_fields
from yester.text.query import Query, parse_query

ORDERS = ("relevance", "date_desc", "date_asc")
BEFORE, _WORKED = 600, 10  # characters of what was said before, and files of the session
_CUT = 5  # of what is left out that are told one by one
# What has become of the files of these items; those of which nothing is known are not in it.
Fates = Callable[[Sequence[Work]], Mapping[int, Staleness]]
# Share of common terms from which two texts say the same; shorter ones must be equal.
_SAME, _SHORT = 0.9, 8
_RELEVANT = 0.5  # of the best one's score, in an order by time
R = TypeVar("R", Ranked, Hit)


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
    worked: tuple[str, ...] = ()  # files of the session so far, the ends of paths; no filter
    own: int = 0  # of the project where it is asked at least so many, where they fit at all
    near: bool = False  # where nothing has any word of the question: what is nearest in meaning

    def in_conversation(self, before: str, session: str, files: Sequence[str]) -> Asked:
        """The query as a prompt: asked with the end of what the agent said before it and with the
        files of its session so far (edited ones first, the newest first). Of that session nothing
        is answered. It need not have words in common with what answers it."""
        # On lines of their own the words are words: nobody writes operators to an agent.
        query = "\n".join(f"{self.query}\n{before[-BEFORE:]}".split())
        ends = dict.fromkeys("/".join(path.strip("/").split("/")[-2:]) for path in files)
        filters = replace(self.filters, without_session=session)
        worked = tuple(ends)[:_WORKED]
        return replace(self, query=query, filters=filters, worked=worked, near=True)


@dataclass(frozen=True, slots=True)
class Cut:
    """Found, and not among the answers."""

    item: int
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits, how far the search had to go for them, and where it was asked to explain itself,
    how they came about.

    `reach`, where the words asked did not do:
    prefix     no item has these words; the answers have words that begin alike
    meaning    the answers have none of the words: they are nearest in meaning, near or not; without
               hits, something may be near in meaning, and was not asked for (`Asked.near`)
    recent     the question names nothing to look for; the answers are the newest
    """

    hits: list[Hit]
    reach: str = ""
    arms: Mapping[str, int] = field(default_factory=dict)  # how many candidates each found
    weights: Mapping[str, float] = field(default_factory=dict)  # of each factor, shared out
    cut: tuple[Cut, ...] = ()  # the best of what was left out
    more: int = 0  # left out besides


def recall_hits(
    store: Store,
    asked: Asked,
    weights: Weights | None = None,
    embedder: QueryEmbedder | None = None,
    fates: Fates | None = None,
) -> list[Hit]:
    return answer_question(store, asked, weights, embedder, fates).hits


def answer_question(
    store: Store,
    asked: Asked,
    weights: Weights | None = None,
    embedder: QueryEmbedder | None = None,
    fates: Fates | None = None,
) -> Answer:
    """The k best answers after `offset`. Without a query the filters alone decide, newest first.

    `fates` is asked about the best ones of the project it is asked in; outdated ones sink a little
    and say so.
    """
    weights = weights or Weights()
    if asked.order not in ORDERS:
        raise UsageError(f"order {asked.order!r} is not known; it is one of {', '.join(ORDERS)}")
    if asked.k < 0 or asked.offset < 0:
        raise UsageError(f"k and offset must not be negative (k={asked.k}, offset={asked.offset})")
    query = parse_query(asked.query)
    filters = narrow_filters(asked.filters, query, asked.now)
    if not query.named and query.must is None:
        if asked.query.strip() and not (query.terms or query.filters):
            return Answer([])  # signs and brackets: nothing in it that could be looked for
        hits = _newest_hits(store, asked, filters, fates)
        return Answer(hits, "recent" if hits and query.terms else "")
    search = Search(store, asked, query, filters, weights, embedder)
    if not search.found and query.only_quoted:
        # Quotation marks may be just that: better the words than nothing.
        query = replace(query, must=None)
        search = Search(store, asked, query, filters, weights, embedder)
    if not asked.near and search.words_unknown:
        return Answer([], "meaning" if search.near else "")
    found, told = _adjust_found(search, asked, weights, fates)
    found = search.fold_turns(found)
    if asked.order != "relevance":
        found = keep_relevant(found)
    most = asked.offset + asked.k
    chosen = _choose_page(found, asked, search.result.project)
    cut, more = _explain_cut(found, chosen, most)
    chosen = chosen[asked.offset :]
    # A turn is shown by its card, unless what is asked for is something else.
    narrowed = replace(
        filters, projects=(), session="", session_id=0, without_session="", without_projects=()
    )
    cards = search.cards if narrowed == ANYTHING else {}
    shown = {
        one.best.candidate.id: cards.get(one.best.candidate.turn or (0, 0), 0) for one in chosen
    }
    search.reading.read_items([*shown, *filter(None, shown.values())])
    hits, arms, rung = [], search.arms, search.rung
    for best, alike in chosen:
        if item := search.reading.items.get(best.candidate.id):
            card = search.reading.items.get(shown[item.id], item)
            hit = make_hit(card, search.result.projects, best.score)
            stale = told.get(item.id, FRESH).text
            hit = replace(hit, rung=rung, duplicates=len(alike), stale=stale)
            if card is not item:
                hit = replace(hit, excerpt=redact(item_text(item)), speaker=item.role)
            parts = (item.id, *best.parts) if card is not item else best.parts
            hit = replace(hit, parts=tuple(part for part in parts if part != card.id))
            if asked.explain:
                by = tuple(name for name, ids in arms.items() if item.id in ids) or ("neighbours",)
                hit = replace(hit, factors=best.factors, arms=by)
            hits.append(hit)
    reach = _search_reach(parse_query(asked.query), rung, chosen)
    if not asked.explain:
        return Answer(hits, reach)
    numbers = {name: len(ids) for name, ids in arms.items() if ids}
    return Answer(hits, reach, numbers, search.shares, cut, more + search.far)


def _choose_page(found: list[Ranked], asked: Asked, project: int) -> list[Chosen]:
    """The different ones up to the end of the page, in the order that is asked for."""
    most = asked.offset + asked.k
    if asked.order == "relevance":
        chosen = collapse_duplicates(found, most)
        if asked.own and project:
            chosen += _missing_own(found, chosen, project, asked.own)
        return chosen
    newest_first = asked.order == "date_desc"
    chosen = collapse_duplicates(found, len(found))
    chosen.sort(key=lambda one: one.best.candidate.epoch, reverse=newest_first)
    return chosen[:most]


def _missing_own(
    found: Iterable[Ranked], chosen: Sequence[Chosen], project: int, wanted: int
) -> list[Chosen]:
    """What is missing to so many of this project: no busy project pushes it out."""
    shown = {one.best.candidate.id for one in chosen}
    there = sum(one.best.candidate.project == project for one in chosen)
    alike = {id_ for one in chosen for id_ in one.alike}
    own = (
        one
        for one in found
        if one.candidate.project == project and one.candidate.id not in shown | alike
    )
    return collapse_duplicates(own, wanted - there) if there < wanted else []


def _newest_hits(store: Store, asked: Asked, filters: Filters, fates: Fates | None) -> list[Hit]:
    names = {one.key: one.name for one in store.projects()}
    page = Paging(asked.k, asked.offset, oldest_first=asked.order == "date_asc")
    items = store.select(filters, page)
    known: Mapping[int, Staleness] = {}
    if fates is not None and asked.project:
        here = (asked.project, names.get(asked.project))
        own = [one for one in items if one.project in here or names.get(one.project) in here]
        reading = Reading(store)
        reading.read_items([one.id for one in own if one.files])
        known = _staleness_of(reading, own, fates)
    return [
        replace(make_hit(one, names), rung="recent", stale=known.get(one.id, FRESH).text)
        for one in items
    ]


def _adjust_found(
    search: Search, asked: Asked, weights: Weights, fates: Fates | None
) -> tuple[list[Ranked], Mapping[int, Staleness]]:
    """What is older than the recency window counts less; then, of the best, what git says is out of
    date; then those more that were of use, and those less that were in the way."""
    found, reading = search.found, search.reading
    if asked.window:
        oldest, less = asked.now - asked.window, weights.outside - 1.0
        found = sort_ranked(
            adjust_score(one, "window", less if one.candidate.epoch < oldest else 0.0)
            for one in found
        )
    told: Mapping[int, Staleness] = {}
    if fates is not None and weights.stale and asked.project:
        first = (one.candidate for one in found[:JUDGED])
        own = [one.id for one in first if one.project == search.result.project]
        told = _staleness_of(reading, reading.read_items(own), fates)
        outdated = {id_: -weights.stale * one.factor for id_, one in told.items()}
        found = _adjust_best(found, "stale", outdated)
    if weights.use:
        reading.read_best(found)
        use = {id_: weights.use * usefulness(one) for id_, one in reading.used.items()}
        found = _adjust_best(found, "use", use)
    return found, told


def _adjust_best(found: list[Ranked], why: str, by: Mapping[int, float]) -> list[Ranked]:
    adjusted = (adjust_score(one, why, by.get(one.candidate.id, 0.0)) for one in found[:JUDGED])
    return sort_ranked(adjusted) + found[JUDGED:]


def _search_reach(query: Query, rung: str, chosen: Sequence[Chosen]) -> str:
    if not chosen or query.must is not None or not query.terms:
        return ""
    if not any(one.best.factors.get("matched") for one in chosen):
        return "meaning"
    return "prefix" if rung == "prefix" else ""


def _staleness_of(reading: Reading, items: Sequence[Item], fates: Fates) -> Mapping[int, Staleness]:
    """What has become of the files of these items, which are of one project."""
    items = [item for item in items if item.files]
    if not items:
        return {}
    branches = reading.branches
    return fates([work_of(item, branches.get((item.session, item.agent), "")) for item in items])


def _explain_cut(
    found: list[Ranked], chosen: list[Chosen], most: int
) -> tuple[tuple[Cut, ...], int]:
    """What was found and is not shown, and why: the best of it one by one, the rest as a number."""
    shown = {one.best.candidate.id for one in chosen}
    alike = {other: one.best.candidate.id for one in chosen for other in one.alike}
    left = [one for one in found if one.candidate.id not in shown]
    cut = []
    for one in left[:_CUT]:
        why = f"below the first {most}" if one.score > 0 else "does not fit"
        if same := alike.get(one.candidate.id):
            why = f"says the same as #{same}"
        cut.append(Cut(one.candidate.id, one.score, why))
    return tuple(cut), len(left) - len(cut)


def keep_relevant(found: Sequence[R]) -> list[R]:
    """Those that fit well enough to be put in the order of time, of what is there the best first:
    by time, what hardly fits would stand among what was looked for."""
    return [one for one in found if one.score >= _RELEVANT * found[0].score]


def narrow_filters(filters: Filters, query: Query, now: int) -> Filters:
    """The filters together with those written into the question (`project:shop since:1w`)."""
    changes: dict[str, Any] = {}
    for name, value in query.filters:
        if name in ("since", "until"):
            changes[name] = parse_bound(value, now, option=f"{name}:", end=name == "until")
        elif name in ("session", "agent", "tool"):
            changes[name] = value
        else:
            many = f"{name}s"
            changes[many] = (*changes.get(many, getattr(filters, many)), value)
    return replace(filters, **changes)


class Chosen(NamedTuple):
    best: Ranked
    alike: list[int]  # near-duplicates it stands for


def collapse_duplicates(found: Iterable[Ranked], most: int) -> list[Chosen]:
    """The first `most` different ones."""
    kept: list[tuple[Chosen, set[int]]] = []
    by_hash: dict[bytes, int] = {}
    for one in found:
        if one.score <= 0:
            break
        at = by_hash.get(one.candidate.hash)
        terms = terms_of(one.candidate)
        if at is None:
            at = next((i for i, (_, other) in enumerate(kept) if same_words(terms, other)), None)
        if at is not None:
            kept[at][0].alike.append(one.candidate.id)
            continue
        if len(kept) >= most:
            break
        by_hash[one.candidate.hash] = len(kept)
        kept.append((Chosen(one, []), terms))
    return [one for one, _ in kept]


def terms_of(candidate: Candidate) -> set[int]:
    return set[int]().union(*(field.hashes for field in read_fields(candidate.vector)))


def same_words(one: set[int], other: set[int]) -> bool:
    smaller, larger = sorted((len(one), len(other)))
    if smaller < _SHORT or smaller < _SAME * larger:
        return False
    common = len(one & other)
    return common >= _SAME * (len(one) + len(other) - common)


def make_hit(item: Item, names: Mapping[str, str], score: float = 0.0) -> Hit:
    """An item as an answer, redacted once more: it may be older than the newest rule."""
    return Hit(
        id=item.id, ref=item.ref, kind=item.kind, type=item.type,
        project=names.get(item.project, item.project), session=item.session,
        title=redact(item.title), text=redact(item_text(item)),
        epoch=item.epoch / 1000, score=score,
        role=item.role, tool=item.tool, agent=item.agent, files=item.files,
        prompt_number=item.prompt_number,
    )  # fmt: skip


def group_by_session(hits: Sequence[Hit]) -> list[tuple[str, list[Hit]]]:
    """Hits of one session together, in the order of their best one."""
    groups: dict[str, list[Hit]] = {}
    for one in hits:
        groups.setdefault(one.session or f"item {one.id}", []).append(one)
    return list(groups.items())


def describe_reach(query: str, answer: Answer) -> str:
    """How far a search had to go, as a sentence without its full stop; "" where the words did."""
    if not answer.reach:
        return ""
    if answer.reach == "recent":
        return "the question names nothing to look for; these are the newest"
    words = "this word" if len(parse_query(query).terms) == 1 else "any of these words"
    if not answer.hits:
        return f"no item has {words}; near shows what is nearest in meaning"
    if answer.hits and answer.hits[0].rung == "stem":  # others may, which the filters keep out
        return f"none of these has {words}; they are nearest in meaning"
    end = "these begin alike" if answer.reach == "prefix" else "these are nearest in meaning"
    return f"no item has {words}; {end}"
