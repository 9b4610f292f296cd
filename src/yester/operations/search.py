"""Searching: a question in, the hits that fit it out; sessions, listed, shown, and everything
recorded of one page by page; and time: what happened around something, and what happened last.

"Observations" are observations, memories and notes. As long as nothing has been distilled where a
question looks, or where no observation fits it, raw messages stand for them, and a note says so.
Sessions are found by anything that was said in them. A transcript is what was recorded, not the
agent's file: that would hold what was redacted.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType, field

from yester.agents.descriptors import find_agent
from yester.clock import DAY, elapsed_ms
from yester.errors import NotFound, UsageError
from yester.memory import Memory
from yester.model import Filters, Hit, Injection, Item, Paging, Session, replace
from yester.operations import fields, items
from yester.operations import request as requests
from yester.operations.context import LeftOut, describe_omissions, resume_line
from yester.recall import timeline
from yester.recall.recall import Answer, Asked, describe_reach
from yester.recall.timeline import ANCHORS, LATEST, recent_sessions
from yester.redact import redact
from yester.store.contract import Store
from yester.store.figures import Facets, filter_facets, item_facets, vector_backlog
from yester.text.terms import query_terms

What = Literal["", "observations", "sessions", "prompts"]
Order = Literal["relevance", "date_desc", "date_asc"]
OBSERVATIONS = ("observation", "memory", "note")
_RAW = ("message",)
_GROUPED = 5  # times as many hits as sessions are looked at, to find so many
_MOST_HITS = 500
_MOST_NAMES = 100  # types and concepts to filter for

# --- the question ---------------------------------------------------------------------------------


class SearchRequest(requests.FormattedRequest, kw_only=True):
    limit: fields.Count = 20
    offset: fields.Offset = 0
    query: fields.Text = ""
    order: Order = field(default="relevance", name="orderBy")
    explain: bool = False
    near: bool = False


class EverythingSearch(SearchRequest, kw_only=True):
    """Search everything, or one kind of thing."""

    what: What = field(default="", name="type")
    types: fields.Names = field(default=[], name="obs_type")
    kinds: list[fields.Kind] = field(default_factory=list)
    before: fields.Text | None = None


class GroupedSearch(EverythingSearch, kw_only=True):
    """The same for people: with the sessions of the hits, and who speaks in each."""


class ObservationSearch(SearchRequest, kw_only=True):
    """What was found out, decided, fixed."""

    types: fields.Names = field(default=[], name="type")


class SessionSearch(SearchRequest, kw_only=True):
    """Sessions, by anything said in them."""


class PromptSearch(SearchRequest, kw_only=True):
    """What the user typed."""


class TypeSearch(SearchRequest, kw_only=True):
    """Items of one type."""

    types: fields.GivenName = field(name="type")


class FileSearch(SearchRequest, kw_only=True):
    """Items about a file."""

    path: fields.GivenName = field(name="filePath")


class ConceptSearch(SearchRequest, kw_only=True):
    """Items with a concept."""

    concept: fields.GivenName


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
            return "", {"types": tuple(requests.split_list(names)) or (names,)}
        case FileSearch(path=path):
            return "", {"files": (*request.files, path)}
        case ConceptSearch(concept=names):
            return "", {"concepts": (*request.concepts, *(requests.split_list(names) or [names]))}
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
    filters = requests.make_filters(memory, request, **narrower)
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
    wanted = dict(list(best.items())[asked.offset : asked.offset + asked.k])
    known = store.find_sessions(wanted)
    found = [FoundSession(known[key], hit) for key, hit in wanted.items() if key in known]
    return found, answer


# --- what there is to filter for ------------------------------------------------------------------


def count_facets(memory: Memory, request: EverythingSearch) -> Facets:
    """What the hits of a search can be filtered for; without a question, of everything there is."""
    if request.query.strip():
        found = find_matches(memory, replace(request, limit=_MOST_HITS, offset=0))
        best = [*found.hits, *(one.best for one in found.sessions if one.best is not None)]
        facets = item_facets(memory.reading, [hit.id for hit in best], _MOST_NAMES)
    else:
        filters = memory.narrow_filters(requests.make_filters(memory, request), "")
        kinds = {"observations": OBSERVATIONS, "prompts": ("prompt",)}.get(request.what)
        if kinds and not filters.kinds:
            filters = replace(filters, kinds=kinds)
        facets = filter_facets(memory.reading, _MOST_NAMES, filters)
    return requests.make_answer(Facets, facets)


# --- as rows --------------------------------------------------------------------------------------


class Explained(Struct, kw_only=True):
    """How many candidates each search found, the most each factor can add, what was left out."""

    arms: dict[str, int]
    unembedded: int
    weights: dict[str, float]
    cut: list[LeftOut]
    more: int


class Found(requests.Page, kw_only=True):
    query: str
    format: fields.Form
    results: list[items.Row]
    took_ms: float
    type: str | UnsetType = UNSET
    file_path: str | UnsetType = field(default=UNSET, name="filePath")
    concept: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    sessions: list[items.Session] | UnsetType = UNSET
    explain: Explained | UnsetType = UNSET


def search_items(memory: Memory, request: SearchRequest) -> Found:
    began = time.perf_counter()
    found = find_matches(memory, request)
    rows = items.Rows(memory.reading, query_terms(request.query), request.format == "full")
    grouped = isinstance(request, GroupedSearch)
    results = rows.hit_rows(found.hits, request.explain, speakers=grouped)
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
        took_ms=elapsed_ms(began),
        type=request.types if isinstance(request, TypeSearch) else UNSET,
        file_path=request.path if isinstance(request, FileSearch) else UNSET,
        concept=request.concept if isinstance(request, ConceptSearch) else UNSET,
        note=note or UNSET,
        sessions=rows.sessions_of(found.hits) if grouped else UNSET,
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


# --- sessions -------------------------------------------------------------------------------------

Depth = Annotated[int, Meta(ge=0, le=100)]
_IN_ORDER = Paging(oldest_first=True)


class SessionsRequest(requests.DatedRequest, kw_only=True):
    limit: fields.Count = 20
    offset: fields.Offset = 0
    project: fields.ProjectName = ""
    agent: fields.AgentName = ""


class SessionRequest(requests.Request, kw_only=True):
    session: fields.GivenName


class TranscriptRequest(SessionRequest, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    offset: fields.Offset = 0
    kinds: fields.Kinds = field(default_factory=list)
    format: fields.Shape = "full"
    only: Literal["", "said", "prompts", "edits", "errors"] = ""
    find: Annotated[str, Meta(max_length=400)] = ""


class Sessions(requests.Page, kw_only=True):
    sessions: list[items.Session]


class SessionShown(Struct, kw_only=True):
    session: items.Session
    summary: items.Summary | None
    shown: int
    shown_tokens: int
    resume: str


class Transcript(requests.Page, kw_only=True):
    session: items.Session
    offset: int
    results: list[items.Row]
    total: int | UnsetType = UNSET


class SessionFile(Struct):
    """A file of a session: how often it was changed and read, and where last."""

    path: str
    edits: int
    reads: int
    last: int


class SessionFiles(Struct, kw_only=True):
    files: list[SessionFile]


def list_sessions(memory: Memory, request: SessionsRequest) -> Sessions:
    """Sessions, the newest first."""
    filters = requests.make_filters(memory, request)
    found = memory.reading.sessions(filters, Paging(request.limit + 1, request.offset))
    if not found:
        memory.check_names(filters)
    rows = items.Rows(memory.reading)
    sessions = [rows.describe_session(one) for one in found[: request.limit]]
    return Sessions(count=len(sessions), sessions=sessions, more=len(found) > request.limit)


def show_session(memory: Memory, request: SessionRequest) -> SessionShown:
    """One session with its summary."""
    session = memory.find_session(request.session)
    told = items.find_summary(memory.reading, session)
    lines = memory.reading.entries(Injection, {"session": session.id})
    return SessionShown(
        session=items.Rows(memory.reading).describe_session(session),
        summary=items.make_summary(told) if told else None,
        shown=len(lines),
        shown_tokens=sum(line.tokens for line in lines),
        resume=redact(resume_line(session)) if find_agent(session.agent).resume else "",
    )


def show_transcript(memory: Memory, request: TranscriptRequest) -> Transcript:
    """What was recorded of it, in order."""
    store, session = memory.reading, memory.find_session(request.session)
    here = replace(items.session_filters(session, request.kinds), echoes=True)
    total: int | UnsetType = UNSET
    if request.only or request.find:
        passing = [one for one in store.select(here, _IN_ORDER) if _is_wanted(one, request)]
        total, found = len(passing), passing[request.offset :][: request.limit + 1]
    else:
        found = store.select(here, Paging(request.limit + 1, request.offset, oldest_first=True))
    rows = items.Rows(store, full=request.format == "full")
    results = rows.item_rows(found[: request.limit])
    behind = items.distinct_items(store.evidence([row.id for row in results]))
    for row in results:
        if row.id in behind:
            row.sources = list(behind[row.id])
    return Transcript(
        session=rows.describe_session(session), count=len(results), offset=request.offset,
        results=results, more=len(found) > request.limit, total=total,
    )  # fmt: skip


def _is_wanted(item: Item, request: TranscriptRequest) -> bool:
    match request.only:
        case "said" if item.role in ("tool", "thinking"):
            return False
        case "prompts" if item.kind != "prompt":
            return False
        case "edits" if not item.files_modified:
            return False
        case "errors" if "error" not in item.tags:
            return False
    return request.find.casefold() in redact(item.body or item.title).casefold()


def list_session_files(memory: Memory, request: SessionRequest) -> SessionFiles:
    """The files of a session, those that were changed first."""
    here = items.session_filters(memory.find_session(request.session), ("message",))
    edits, reads, last = Counter[str](), Counter[str](), dict[str, int]()
    for item in memory.reading.select(here, _IN_ORDER):
        edits.update(dict.fromkeys(item.files_modified, 1))
        reads.update(dict.fromkeys(item.files_read, 1))
        for path in item.files:
            if path in item.files_modified or not edits[path]:
                last[path] = item.id
    ranked = sorted(last, key=lambda path: (not edits[path], -edits[path] - reads[path], path))
    files = [SessionFile(redact(one), edits[one], reads[one], last[one]) for one in ranked]
    return SessionFiles(files=files)


# --- what happened around something --------------------------------------------------------------


class NeighbourRequest(requests.FormattedRequest, kw_only=True):
    before: Depth = field(default=10, name="depth_before")
    after: Depth = field(default=10, name="depth_after")
    everywhere: bool = False


class TimelineRequest(NeighbourRequest, kw_only=True):
    """What happened before and after something."""

    anchor: fields.Name = ""
    query: fields.Text = ""


class TimelineByQuery(NeighbourRequest, kw_only=True):
    """The same around what fits a question best."""

    query: fields.GivenText
    anchor: Literal["", "latest"] = ""


class Timeline(Struct, kw_only=True):
    """Oldest first. A row of type anchor stands where the anchor is, before the item itself."""

    anchor: str
    anchor_timestamp: int
    depth_before: int
    depth_after: int
    format: fields.Form
    timeline: list[items.Row]
    took_ms: float


def find_neighbours(
    memory: Memory,
    anchor: int | str | None,
    before: int,
    after: int,
    filters: Filters,
    query: str = "",
    everywhere: bool = False,
    now: int = 0,
) -> timeline.Timeline:
    """What happened before and after an anchor, with the memory's settings and search."""
    return timeline.build_timeline(
        memory.reading, anchor or None, before, after, filters, now or memory.now, query=query,
        everywhere=everywhere, window=memory.config.number("recency_window_days") * DAY,
        answer=memory.answer,
    )  # fmt: skip


def show_timeline(memory: Memory, request: TimelineRequest | TimelineByQuery) -> Timeline:
    began = time.perf_counter()
    anchor = request.anchor.strip()
    query = request.query if not anchor or anchor.lower() == LATEST else ""
    filters = requests.make_filters(memory, request)
    try:
        found = find_neighbours(
            memory, anchor, request.before, request.after, filters, query, request.everywhere
        )
    except (NotFound, UsageError) as error:
        error.parameter, error.value = ("query", query) if query else ("anchor", anchor)
        error.fix = ANCHORS if isinstance(error, NotFound) else error.fix
        raise
    if not (found.before or found.after):
        memory.check_names(filters)
    rows = items.Rows(memory.reading, full=request.format == "full")
    return Timeline(
        anchor=anchor or query or "latest",
        anchor_timestamp=int(found.epoch * 1000),
        depth_before=len(found.before),
        depth_after=len(found.after),
        format=request.format,
        timeline=_timeline_rows(rows, found),
        took_ms=elapsed_ms(began),
    )


def _timeline_rows(rows: items.Rows, found: timeline.Timeline) -> list[items.Row]:
    middle = [items.anchor_row(int(found.epoch * 1000))]
    if found.anchor is not None:
        # A neighbour has no score, and beside them the anchor's would say nothing.
        for row in rows.hit_rows([replace(found.anchor, score=0.0)]):
            row.anchor = True
            middle.append(row)
    return rows.hit_rows(found.before) + middle + rows.hit_rows(found.after)


# --- the newest sessions --------------------------------------------------------------------------


class RecentRequest(requests.Request, kw_only=True):
    project: fields.ProjectName = ""
    limit: Annotated[int, Meta(ge=1, le=50)] = 3
    rows: Annotated[int, Meta(ge=1, le=100)] = 12


class RecentSession(Struct, kw_only=True):
    session: items.Session
    summary: items.Summary | None
    observations: list[items.Row]


class Recent(Struct, kw_only=True):
    limit: int
    project: str
    sessions: list[RecentSession]


def show_recent(memory: Memory, request: RecentRequest) -> Recent:
    """The last sessions with their summaries.

    And an index of what each left behind.
    """
    store = memory.reading
    wanted, rows = requests.make_filters(memory, request), items.Rows(store)
    keys = {name: key for key, name in memory.project_names().items()}
    sessions = []
    for session, hits in recent_sessions(store, wanted, request.limit, request.rows):
        told = items.find_summary(store, replace(session, project=keys.get(session.project, "")))
        others = [hit for hit in hits if told is None or hit.id != told.id]
        sessions.append(
            RecentSession(
                session=rows.describe_session(session),
                summary=items.make_summary(told) if told else None,
                observations=rows.hit_rows(others),
            )
        )
    return Recent(limit=request.limit, project=request.project or "all", sessions=sessions)
