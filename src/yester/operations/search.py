"""Searching: a question in, the hits that fit it out.

"Observations" are observations, memories and notes. As long as nothing has been distilled where a
question looks, or where no observation fits it, raw messages stand for them, and a note says so.
Sessions are found by anything that was said in them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType, field

from yester.context.block import Left
from yester.memory import Memory
from yester.model import Filters, Hit, Paging, Session, replace
from yester.operations import fields
from yester.operations.answer import make_answer
from yester.operations.fields import about
from yester.operations.items import Row, Rows
from yester.operations.request import FormattedRequest, make_filters, split_list
from yester.recall.recall import Answer, Asked, Cut, describe_reach
from yester.store.contract import Store
from yester.store.figures import Facets, filter_facets, item_facets, vector_backlog
from yester.text.terms import query_terms

What = Literal["", "observations", "sessions", "prompts"]
OBSERVATIONS = ("observation", "memory", "note")
_RAW = ("message",)
_GROUPED = 5  # times as many hits as sessions are looked at, to find so many
_MOST_HITS = 500
_MOST_NAMES = 100  # types and concepts to filter for
_ONLY_TYPES = about("Only these types: decision, bugfix …")

# --- the question ---------------------------------------------------------------------------------


class SearchRequest(FormattedRequest, kw_only=True):
    limit: fields.Count = 20
    offset: fields.Offset = 0
    query: Annotated[
        fields.Text, about('Words; also AND OR NOT "phrase" prefix*. Without: newest first.')
    ] = ""
    order: Annotated[Literal["relevance", "date_desc", "date_asc"], about("In which order.")] = (
        field(default="relevance", name="orderBy")
    )
    explain: Annotated[bool, about("Where scores come from, what was left out.")] = False
    near: Annotated[bool, about("No word is known: nearest in meaning.")] = False


class EverythingSearch(SearchRequest, kw_only=True):
    """Search everything, or one kind of thing."""

    what: Annotated[What, about("Only these; without, everything.")] = field(
        default="", name="type"
    )
    types: Annotated[fields.Names, _ONLY_TYPES] = field(default=[], name="obs_type")
    kinds: Annotated[list[fields.Kind], about("Only these kinds; narrower than type.")] = field(
        default_factory=list
    )
    before: Annotated[
        fields.Text | None,
        about(
            "What the agent said last: query is the prompt after it, session (left out) and files "
            "those of its session, no filters."
        ),
    ] = None


class ObservationSearch(SearchRequest, kw_only=True):
    """What was found out, decided, fixed."""

    types: Annotated[fields.Names, _ONLY_TYPES] = field(default=[], name="type")


class SessionSearch(SearchRequest, kw_only=True):
    """Sessions, by anything said in them."""


class PromptSearch(SearchRequest, kw_only=True):
    """What the user typed."""


class TypeSearch(SearchRequest, kw_only=True):
    """Items of one type."""

    types: Annotated[
        fields.Name, about("bugfix, feature, decision … also several.", min_length=1)
    ] = field(name="type")


class FileSearch(SearchRequest, kw_only=True):
    """Items about a file."""

    path: Annotated[fields.Name, about("The file; the end of its path will do.", min_length=1)] = (
        field(name="filePath")
    )


class ConceptSearch(SearchRequest, kw_only=True):
    """Items with a concept."""

    concept: Annotated[fields.Name, about("gotcha, pattern … also several.", min_length=1)]


def _narrow_search(request: SearchRequest) -> tuple[What, dict[str, tuple[str, ...]]]:
    """What is looked for, and by which filters besides those that bear their own names."""
    match request:  # what is written with commas is never none of it, which would be everything
        case EverythingSearch(what=what, kinds=kinds):
            return ("" if kinds and what != "sessions" else what), {}
        case ObservationSearch():
            return "observations", {}
        case SessionSearch():
            return "sessions", {}
        case PromptSearch():
            return "prompts", {}
        case TypeSearch(types=names):
            return "", {"types": tuple(split_list(names)) or (names,)}
        case FileSearch(path=path):
            return "", {"files": (*request.files, path)}
        case ConceptSearch(concept=names):
            return "", {"concepts": (*request.concepts, *(split_list(names) or [names]))}
    return "", {}


# --- what fits ------------------------------------------------------------------------------------


class FoundSession(NamedTuple):
    session: Session
    best: Hit | None  # of what was said in it; None where nothing was looked for


class Matches(NamedTuple):
    """Hits or, where sessions are looked for, sessions; as many as are wanted."""

    what: What
    filters: Filters
    hits: list[Hit]
    sessions: list[FoundSession]
    more: bool  # is there more behind them?
    answer: Answer | None  # to the question, if one was asked
    note: str  # where messages stand in for observations


def find_matches(memory: Memory, request: SearchRequest) -> Matches:
    what, narrower = _narrow_search(request)
    filters = make_filters(memory, request, **narrower)
    filters = memory.narrow_filters(filters, request.query)
    limit, sessions = request.limit, what == "sessions"
    # One more than is shown tells whether there is more; an explanation tells it, too.
    asked = Asked(
        request.query, filters, limit + (sessions or not request.explain), request.offset,
        request.order, request.explain, memory.now, near=request.near,
    )  # fmt: skip
    if isinstance(request, EverythingSearch) and request.before is not None:
        asked = replace(asked, filters=replace(filters, session="", files=()))
        asked = asked.in_conversation(request.before, request.session, request.files)
    if sessions:
        found, answer = _find_sessions(memory, asked)
        more = len(found) > limit
        return Matches(what, filters, [], found[:limit], more, answer, "")
    hits, note = _find_hits(memory, asked, what)
    more = len(hits.hits) > limit or any(one.score > 0 for one in hits.cut)
    return Matches(what, filters, hits.hits[:limit], [], more, hits, note)


def _find_hits(memory: Memory, asked: Asked, what: What) -> tuple[Answer, str]:
    """An answer and, where messages stand in for observations, a word on it."""

    def answer_among(*kinds: str, **more: Any) -> Answer:
        filters = replace(asked.filters, kinds=kinds)
        return memory.answer(replace(asked, filters=filters, **more))

    if what == "prompts":
        return answer_among("prompt"), ""
    if what != "observations":
        return memory.answer(asked), ""
    distilled = replace(asked.filters, kinds=("observation",), types=(), since=None, until=None)
    if not memory.reading.select(distilled, Paging(1)):
        note = "nothing is distilled here yet: messages stand for observations"
        return answer_among(*OBSERVATIONS, *_RAW), note
    answer = answer_among(*OBSERVATIONS)
    if answer.hits or (asked.offset and answer_among(*OBSERVATIONS, offset=0, k=1).hits):
        return answer, ""
    return answer_among(*OBSERVATIONS, *_RAW), "no observation fits: these are messages"


def _find_sessions(memory: Memory, asked: Asked) -> tuple[list[FoundSession], Answer | None]:
    """By the best of what was said in them, or the newest."""
    store, filters = memory.reading, asked.filters
    by_items = replace(
        filters, projects=(), session="", agent="", since=None, until=None, without_projects=()
    )
    if not asked.query and by_items == Filters():
        page = Paging(asked.k, asked.offset, oldest_first=asked.order == "date_asc")
        return [FoundSession(one, None) for one in store.sessions(filters, page)], None
    most = min(_GROUPED * (asked.offset + asked.k), _MOST_HITS)
    answer = memory.answer(replace(asked, k=most, offset=0))
    best: dict[tuple[str, str], Hit] = {}
    for hit in answer.hits:
        if hit.session:
            best.setdefault((hit.session, hit.agent), hit)
    found = [
        FoundSession(session, hit)
        for key, hit in list(best.items())[asked.offset : asked.offset + asked.k]
        if (session := store.session(*key)) is not None
    ]
    return found, answer


# --- what there is to filter for ------------------------------------------------------------------


def count_facets(memory: Memory, request: EverythingSearch) -> Facets:
    """What the hits of a search can be filtered for; without a question, of everything there is."""
    if request.query.strip():
        found = find_matches(memory, replace(request, limit=_MOST_HITS, offset=0))
        best = [*found.hits, *(one.best for one in found.sessions if one.best is not None)]
        facets = item_facets(memory.reading, [hit.id for hit in best], _MOST_NAMES)
    else:
        filters = memory.narrow_filters(make_filters(memory, request), "")
        kinds = {"observations": OBSERVATIONS, "prompts": ("prompt",)}.get(request.what)
        if kinds and not filters.kinds:
            filters = replace(filters, kinds=kinds)
        facets = filter_facets(memory.reading, _MOST_NAMES, filters)
    return make_answer(Facets, facets)


# --- as rows --------------------------------------------------------------------------------------


class LeftOut(Struct, kw_only=True):
    id: int
    score: float
    why: str


class Explained(Struct, kw_only=True):
    """How many candidates each search found, the most each factor can add, what was left out."""

    arms: dict[str, int]
    unembedded: Annotated[int, about("Items that have no vector yet: found by words alone.")]
    weights: dict[str, float]
    cut: list[LeftOut]
    more: int


class Found(Struct, kw_only=True):
    query: str
    count: int
    format: fields.Form
    results: list[Row]
    more: Annotated[bool, about("Is there more behind them? Then go on with offset.")]
    took_ms: float
    type: str | UnsetType = UNSET
    file_path: str | UnsetType = field(default=UNSET, name="filePath")
    concept: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    explain: Explained | UnsetType = UNSET


def search_items(memory: Memory, request: SearchRequest) -> Found:
    began = time.perf_counter()
    found = find_matches(memory, request)
    rows = Rows(memory.reading, query_terms(request.query), request.format == "full")
    results = rows.hit_rows(found.hits, request.explain)
    results += [rows.session_row(*one) for one in found.sessions]
    if not results:
        memory.check_names(found.filters)
    answer = found.answer
    reach = describe_reach(request.query, answer) if answer else ""
    note = "; ".join(filter(None, (found.note, reach)))
    return Found(
        query=request.query,
        count=len(results),
        format=request.format,
        results=results,
        more=found.more,
        took_ms=round((time.perf_counter() - began) * 1000, 2),
        type=request.types if isinstance(request, TypeSearch) else UNSET,
        file_path=request.path if isinstance(request, FileSearch) else UNSET,
        concept=request.concept if isinstance(request, ConceptSearch) else UNSET,
        note=note or UNSET,
        explain=explain_answer(answer, memory.reading) if answer and request.explain else UNSET,
    )


def explain_answer(answer: Answer, store: Store) -> Explained:
    return Explained(
        arms=dict(answer.arms),
        unembedded=vector_backlog(store).waiting,
        weights={name: round(value, 4) for name, value in answer.weights.items()},
        cut=describe_omissions(answer.cut),
        more=answer.more,
    )


def describe_omissions(cut: Sequence[Cut | Left]) -> list[LeftOut]:
    return [LeftOut(id=one.item, score=round(one.score, 4), why=one.why) for one in cut]
