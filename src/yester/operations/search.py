"""Searching: a question in, the hits that fit it out.

"Observations" are observations, memories and notes. As long as nothing has been distilled where a
question looks, or where no observation fits it, raw messages stand for them, and a note says so.
Sessions are found by anything that was said in them.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, field

from yester.memory import Memory
from yester.model import Filters, Hit, Paging, Session, replace
from yester.operations.request import (
    Count,
    Form,
    FormattedRequest,
    Kind,
    Name,
    Names,
    Offset,
    Text,
    make_filters,
)
from yester.operations.rows import Row, Rows
from yester.recall.recall import Answer, Asked, describe_reach
from yester.text.terms import query_terms

What = Literal["", "observations", "sessions", "prompts"]
OBSERVATIONS = ("observation", "memory", "note")
_RAW = ("message",)
_GROUPED = 5  # times as many hits as sessions are looked at, to find so many
_MOST_HITS = 500
_ONLY_TYPES = Meta(description="Only these types: decision, bugfix …")

# --- the question ---------------------------------------------------------------------------------


class SearchRequest(FormattedRequest, kw_only=True):
    limit: Count = 20
    offset: Offset = 0
    query: Annotated[
        Text, Meta(description='Words; also AND OR NOT "phrase" prefix*. Without: newest first.')
    ] = ""
    order: Annotated[
        Literal["relevance", "date_desc", "date_asc"], Meta(description="In which order.")
    ] = field(default="relevance", name="orderBy")
    explain: Annotated[bool, Meta(description="Where scores come from, what was left out.")] = False


class EverythingSearch(SearchRequest, kw_only=True):
    """Search everything, or one kind of thing."""

    what: Annotated[What, Meta(description="Only these; without, everything.")] = field(
        default="", name="type"
    )
    types: Annotated[Names, _ONLY_TYPES] = field(default=[], name="obs_type")
    kinds: Annotated[list[Kind], Meta(description="Only these kinds; narrower than type.")] = field(
        default_factory=list
    )


class ObservationSearch(SearchRequest, kw_only=True):
    """What was found out, decided, fixed."""

    types: Annotated[Names, _ONLY_TYPES] = field(default=[], name="type")


class SessionSearch(SearchRequest, kw_only=True):
    """Sessions, by anything said in them."""


class PromptSearch(SearchRequest, kw_only=True):
    """What the user typed."""


class TypeSearch(SearchRequest, kw_only=True):
    """Items of one type."""

    types: Annotated[
        Name, Meta(min_length=1, description="bugfix, feature, decision … also several.")
    ] = field(name="type")


class FileSearch(SearchRequest, kw_only=True):
    """Items about a file."""

    path: Annotated[
        Name, Meta(min_length=1, description="The file; the end of its path will do.")
    ] = field(name="filePath")


class ConceptSearch(SearchRequest, kw_only=True):
    """Items with a concept."""

    concept: Annotated[Name, Meta(min_length=1, description="gotcha, pattern … also several.")]


def _narrow_search(request: SearchRequest) -> tuple[What, dict[str, tuple[str, ...]]]:
    """What is looked for, and by which filters besides those of every search."""
    match request:
        case EverythingSearch(what=what, kinds=kinds, types=types):
            chosen: What = "" if kinds and what != "sessions" else what
            return chosen, {"types": tuple(types), "kinds": tuple(kinds)}
        case ObservationSearch(types=types):
            return "observations", {"types": tuple(types)}
        case SessionSearch():
            return "sessions", {}
        case PromptSearch():
            return "prompts", {}
        case TypeSearch(types=names):
            return "", {"types": _split_names(names)}
        case FileSearch(path=path):
            return "", {"files": (*request.files, path)}
        case ConceptSearch(concept=names):
            return "", {"concepts": (*request.concepts, *_split_names(names))}
    return "", {}


def _split_names(text: str) -> tuple[str, ...]:
    """One or several, with commas; never none, which would be everything."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) or (text,)


# --- hits -----------------------------------------------------------------------------------------


class FoundHits(NamedTuple):
    """An answer and, where messages stand in for observations, a word on it."""

    answer: Answer
    note: str = ""


def find_hits(memory: Memory, asked: Asked, what: What = "") -> FoundHits:
    """The hits of one of the kinds of things there are; of sessions see `find_sessions`."""

    def answer_among(*kinds: str, **more: Any) -> Answer:
        filters = replace(asked.filters, kinds=kinds)
        return memory.answer(replace(asked, filters=filters, **more))

    if what == "prompts":
        return FoundHits(answer_among("prompt"))
    if what != "observations":
        return FoundHits(memory.answer(asked))
    distilled = replace(asked.filters, kinds=("observation",), types=(), since=None, until=None)
    if not memory.reading.select(distilled, Paging(1)):
        return FoundHits(
            answer_among(*OBSERVATIONS, *_RAW),
            "nothing is distilled here yet: messages stand for observations",
        )
    answer = answer_among(*OBSERVATIONS)
    if answer.hits or (asked.offset and answer_among(*OBSERVATIONS, offset=0, k=1).hits):
        return FoundHits(answer)
    return FoundHits(answer_among(*OBSERVATIONS, *_RAW), "no observation fits: these are messages")


class FoundSession(NamedTuple):
    session: Session
    best: Hit | None  # of what was said in it; None where nothing was looked for


def find_sessions(memory: Memory, asked: Asked) -> tuple[list[FoundSession], Answer | None]:
    """By the best of what was said in them, or the newest."""
    store, filters = memory.reading, asked.filters
    by_items = replace(filters, projects=(), session="", agent="", since=None, until=None)
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


# --- as rows --------------------------------------------------------------------------------------


class LeftOut(Struct, kw_only=True):
    id: int
    score: float
    why: str


class Explained(Struct, kw_only=True):
    """How many candidates each search found, the most each factor can add, what was left out."""

    arms: dict[str, int]
    weights: dict[str, float]
    cut: list[LeftOut]
    more: int


class Found(Struct, kw_only=True):
    query: str
    count: int
    format: Form
    results: list[Row]
    more: Annotated[bool, Meta(description="Is there more behind them? Then go on with offset.")]
    took_ms: float
    type: str | UnsetType = UNSET
    file_path: str | UnsetType = field(default=UNSET, name="filePath")
    concept: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    explain: Explained | UnsetType = UNSET


def search_items(memory: Memory, request: SearchRequest) -> Found:
    began = time.perf_counter()
    what, narrower = _narrow_search(request)
    filters = make_filters(memory, request, **narrower)
    sessions = what == "sessions"
    # One more than is shown tells whether there is more; an explanation tells it, too.
    asked = Asked(
        request.query, filters, request.limit + (sessions or not request.explain), request.offset,
        request.order, request.explain, memory.now,
    )  # fmt: skip
    rows = Rows(memory.reading, query_terms(request.query), request.format == "full")
    answer: Answer | None
    if sessions:
        found, answer = find_sessions(memory, asked)
        note, hits = "", answer.hits if answer else []
        results = [rows.session_row(*one) for one in found[: request.limit]]
        more = len(found) > request.limit
    else:
        answer, note = find_hits(memory, asked, what)
        hits = answer.hits[: request.limit]
        results = rows.hit_rows(hits, request.explain)
        more = len(answer.hits) > request.limit or any(one.score > 0 for one in answer.cut)
    if not results:
        memory.check_names(filters)
    reach = describe_reach(request.query, answer) if answer else ""
    note = "; ".join(filter(None, (note, reach)))
    return Found(
        query=request.query,
        count=len(results),
        format=request.format,
        results=results,
        more=more,
        took_ms=round((time.perf_counter() - began) * 1000, 2),
        type=request.types if isinstance(request, TypeSearch) else UNSET,
        file_path=request.path if isinstance(request, FileSearch) else UNSET,
        concept=request.concept if isinstance(request, ConceptSearch) else UNSET,
        note=note if note and results else UNSET,
        explain=explain_answer(answer) if answer and request.explain else UNSET,
    )


def explain_answer(answer: Answer) -> Explained:
    return Explained(
        arms=dict(answer.arms),
        weights={name: round(value, 4) for name, value in answer.weights.items()},
        cut=[LeftOut(id=one.item, score=round(one.score, 4), why=one.why) for one in answer.cut],
        more=answer.more,
    )
