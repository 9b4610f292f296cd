"""From a question to answers: the store's candidates, scored, lifted, near-duplicates collapsed.

    stem      the words as they are, their stems and their other names
    prefix    words nobody has: what begins with them, or what they begin with
    recent    a question that names nothing ("where were we?"): the newest

`Hit.rung` says which of them answered. A question whose words lead nowhere is answered by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from yester.clock import parse_bound
from yester.errors import UsageError
from yester.model import (
    ANYTHING,
    RUNNING,
    Filters,
    Hit,
    Item,
    Paging,
    replace,
    sharer_of,
    team_user,
)
from yester.recall.candidates import JUDGED, Search
from yester.recall.feedback import usefulness
from yester.recall.rank import Ranked, Weights, adjust_scores, collapse_duplicates
from yester.recall.staleness import FRESH, Staleness, Work, work_of
from yester.redact import redact_again
from yester.store.contract import Store
from yester.text.document import item_text
from yester.text.query import Query, parse_query

if TYPE_CHECKING:
    from yester.text.embed import Embedder

ORDERS = ("relevance", "date_desc", "date_asc")
BEFORE, _WORKED = 600, 10  # characters of what was said before, and files of the session
_CUT = 5  # of what is left out that are told one by one
# What has become of the files of these items; those of which nothing is known are not in it.
Fates = Callable[[Sequence[Work]], Mapping[int, Staleness]]
_RELEVANT = 0.5  # of the best one's score, in an order by time
R = TypeVar("R", Ranked, Hit)
_JUST_NOW = 3 * 60_000  # milliseconds since something happened in a session that goes on
_LATELY = 5  # sessions of a project that may go on


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
    raw: bool = False  # who asks chooses among the hits, and redacts what is shown of them

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
    project: str = ""  # where it was asked, as hits have it
    arms: Mapping[str, int] = field(default_factory=dict)  # how many candidates each found
    weights: Mapping[str, float] = field(default_factory=dict)  # of each factor, shared out
    cut: tuple[Cut, ...] = ()  # the best of what was left out
    more: int = 0  # left out besides


def recall_hits(
    store: Store,
    asked: Asked,
    weights: Weights | None = None,
    embedder: Embedder | None = None,
    fates: Fates | None = None,
) -> list[Hit]:
    return answer_question(store, asked, weights, embedder, fates).hits


def _find_running(store: Store, asked: Asked, agent: str) -> str:
    """The session of the project it is asked in where somebody has typed something and something
    happened last, if just now; of the agent that asks, where it is known. What another agent was
    told a minute ago is what this one asks about."""
    latest = store.sessions(Filters(projects=(asked.project,), agent=agent), Paging(_LATELY))
    found = [
        one
        for one in latest
        if asked.project
        and one.prompts
        and one.ended > asked.now - _JUST_NOW
        and not team_user(one.key)
    ]
    return max(found, key=lambda one: one.ended).key if found else ""


def answer_question(
    store: Store,
    asked: Asked,
    weights: Weights | None = None,
    embedder: Embedder | None = None,
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
    if filters.without_session.startswith(RUNNING):
        agent = filters.without_session.removeprefix(RUNNING)
        filters = replace(filters, without_session=_find_running(store, asked, agent))
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
    chosen = _choose_page(found, asked, search.result.project)
    # A turn is shown by its card, unless what is asked for is something else.
    narrowed = replace(
        filters, projects=(), session="", session_id=0, without_session="", without_projects=(),
        since=None, until=None,
    )  # fmt: skip
    cards = search.cards if narrowed == ANYTHING else {}
    page = chosen[asked.offset :]
    shown = {one.id: cards.get(one.candidate.turn or (0, 0), 0) for one in page}
    items = search.reading.read_all([*shown, *filter(None, shown.values())])
    hits, rung = [], search.rung
    for best in page:
        if item := items.get(best.id):
            card = items.get(shown[item.id], item)
            hit = replace(
                make_hit(card, search.result.projects, best.score, asked.raw),
                rung=rung, duplicates=len(best.alike), stale=told.get(item.id, FRESH).text,
                parts=tuple(part for part in (item.id, *best.parts) if part != card.id),
            )  # fmt: skip
            if card is not item:
                excerpt = item_text(item) if asked.raw else redact_again(item_text(item))
                hit = replace(hit, excerpt=excerpt, speaker=item.role)
            if asked.explain:
                by = tuple(name for name, ids in search.arms.items() if item.id in ids)
                hit = replace(hit, factors=search.explain_score(best), arms=by or ("neighbours",))
            hits.append(hit)
    reach = "" if query.must is not None else search.describe_reach(page)
    here = search.result.projects.get(asked.project, asked.project)
    if not asked.explain:
        return Answer(hits, reach, here)
    numbers = {name: len(ids) for name, ids in search.arms.items() if ids}
    cut, more = _explain_cut(found, chosen, asked.offset + asked.k)
    return Answer(hits, reach, here, numbers, search.shares, cut, more + search.far)


def _choose_page(found: list[Ranked], asked: Asked, project: int) -> list[Ranked]:
    """The different ones up to the end of the page, in the order that is asked for."""
    most = asked.offset + asked.k
    if asked.order != "relevance":
        chosen = collapse_duplicates(found, len(found))
        newest_first = asked.order == "date_desc"
        return sorted(chosen, key=lambda one: one.candidate.epoch, reverse=newest_first)[:most]
    chosen = collapse_duplicates(found, most)
    # What is missing to so many of this project: no busy project pushes it out.
    missing = asked.own - sum(one.candidate.project == project for one in chosen)
    if not project or missing <= 0:
        return chosen
    known = {id_ for one in chosen for id_ in (one.id, *one.alike)}
    own = (one for one in found if one.candidate.project == project and one.id not in known)
    return chosen + collapse_duplicates(own, missing)


def _newest_hits(store: Store, asked: Asked, filters: Filters, fates: Fates | None) -> list[Hit]:
    names = {one.key: one.name for one in store.projects()}
    page = Paging(asked.k, asked.offset, oldest_first=asked.order == "date_asc")
    items = store.select(filters, page)
    known: Mapping[int, Staleness] = {}
    if fates is not None and asked.project:
        here = (asked.project, names.get(asked.project))
        own = [one for one in items if one.project in here or names.get(one.project) in here]
        known = _staleness_of(own, fates)
    return [
        replace(
            make_hit(one, names, raw=asked.raw), rung="recent", stale=known.get(one.id, FRESH).text
        )
        for one in items
    ]


def _adjust_found(
    search: Search, asked: Asked, weights: Weights, fates: Fates | None
) -> tuple[list[Ranked], Mapping[int, Staleness]]:
    """What is older than the recency window counts less; then, of the best, what git says is out of
    date; then those more that were of use, and those less that were in the way."""
    found, reading = search.found, search.reading
    if asked.window:
        oldest = asked.now - asked.window
        old = {one.id: weights.outside - 1.0 for one in found if one.candidate.epoch < oldest}
        found = adjust_scores(found, "window", old)
    told: Mapping[int, Staleness] = {}
    if fates is not None and weights.stale and asked.project:
        best = (one.candidate for one in found[:JUDGED])
        own = [one.id for one in best if one.project == search.result.project]
        told = _staleness_of(reading.read_items(own), fates)
        outdated = {id_: -weights.stale * one.factor for id_, one in told.items()}
        found = adjust_scores(found, "stale", outdated, JUDGED)
    if weights.use:
        search.read_best(found)
        use = {id_: weights.use * usefulness(one) for id_, one in reading.used.items()}
        found = adjust_scores(found, "use", use, JUDGED)
    return found, told


def _staleness_of(items: Sequence[Item], fates: Fates) -> Mapping[int, Staleness]:
    """What has become of the files of these items, which are of one project."""
    works = [work_of(item) for item in items if item.files]
    return fates(works) if works else {}


def _explain_cut(
    found: list[Ranked], chosen: list[Ranked], most: int
) -> tuple[tuple[Cut, ...], int]:
    """What was found and is not shown, and why: the best of it one by one, the rest as a number."""
    shown = {one.id for one in chosen}
    alike = {other: one.id for one in chosen for other in one.alike}
    left = [one for one in found if one.id not in shown]
    cut = []
    for one in left[:_CUT]:
        why = f"below the first {most}" if one.score > 0 else "does not fit"
        if same := alike.get(one.id):
            why = f"says the same as #{same}"
        cut.append(Cut(one.id, one.score, why))
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


def make_hit(item: Item, names: Mapping[str, str], score: float = 0.0, raw: bool = False) -> Hit:
    """An item as an answer, redacted once more: it may be older than the newest rule. One that is
    `raw` is not: who asked for it shows few of many, and redacts those."""
    title, text = item.title, item_text(item)
    return Hit(
        id=item.id, ref=item.ref, kind=item.kind, type=item.type,
        project=names.get(item.project, item.project), session=item.session,
        title=title if raw else redact_again(title), text=text if raw else redact_again(text),
        epoch=item.epoch / 1000, score=score,
        role=item.role, tool=item.tool, agent=item.agent, files=item.files,
        prompt_number=item.prompt_number, sharer=sharer_of(item),
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
