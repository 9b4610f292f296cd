"""Sessions: listed, shown, everything recorded of one page by page; and time: what happened around
something, and what happened last.

A transcript is what was recorded, not the agent's file: that would hold what was redacted.
"""

from __future__ import annotations

import time
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from yester.clock import DAY
from yester.errors import NotFound, UsageError
from yester.memory import Memory
from yester.model import Filters, Injection, Paging, replace
from yester.operations import fields
from yester.operations.fields import about
from yester.operations.items import (
    Row,
    Rows,
    Session,
    Summary,
    anchor_row,
    distinct_items,
    find_summary,
    make_summary,
    session_filters,
)
from yester.operations.request import DatedRequest, FormattedRequest, Request, make_filters
from yester.recall import timeline
from yester.recall.timeline import ANCHORS, LATEST, recent_sessions

Depth = Annotated[int, Meta(ge=0, le=100)]


class SessionsRequest(DatedRequest, kw_only=True):
    limit: fields.Count = 20
    offset: fields.Offset = 0
    project: fields.ProjectName = ""
    agent: fields.AgentName = ""


class SessionRequest(Request, kw_only=True):
    session: Annotated[
        fields.Name, about("Its number (12 or S12), its id, or 6 characters of it.", min_length=1)
    ]


class TranscriptRequest(SessionRequest, kw_only=True):
    limit: Annotated[int, about("At most so many items.", ge=1, le=200)] = 50
    offset: fields.Offset = 0
    kinds: fields.Kinds = field(default_factory=list)
    format: fields.Shape = "full"


class Sessions(Struct, kw_only=True):
    count: int
    sessions: list[Session]
    more: bool


class SessionShown(Struct, kw_only=True):
    session: Session
    summary: Summary | None
    shown: Annotated[int, about("Lines of memory its agent was shown.")]
    shown_tokens: int


class Transcript(Struct, kw_only=True):
    session: Session
    count: int
    offset: int
    results: list[Row]
    more: bool


def list_sessions(memory: Memory, request: SessionsRequest) -> Sessions:
    """Sessions, the newest first."""
    filters = make_filters(memory, request)
    found = memory.reading.sessions(filters, Paging(request.limit + 1, request.offset))
    if not found:
        memory.check_names(filters)
    rows = Rows(memory.reading)
    sessions = [rows.describe_session(one) for one in found[: request.limit]]
    return Sessions(count=len(sessions), sessions=sessions, more=len(found) > request.limit)


def show_session(memory: Memory, request: SessionRequest) -> SessionShown:
    """One session with its summary."""
    session = memory.find_session(request.session)
    told = find_summary(memory.reading, session)
    lines = memory.reading.entries(Injection, {"session": session.id})
    return SessionShown(
        session=Rows(memory.reading).describe_session(session),
        summary=make_summary(told) if told else None,
        shown=len(lines),
        shown_tokens=sum(line.tokens for line in lines),
    )


def show_transcript(memory: Memory, request: TranscriptRequest) -> Transcript:
    """What was recorded of it, in order."""
    store, session = memory.reading, memory.find_session(request.session)
    here = replace(session_filters(session, request.kinds), echoes=True)
    found = store.select(here, Paging(request.limit + 1, request.offset, oldest_first=True))
    rows = Rows(store, full=request.format == "full")
    results = rows.item_rows(found[: request.limit])
    behind = distinct_items(store.evidence([row.id for row in results]))
    for row in results:
        if row.id in behind:
            row.sources = list(behind[row.id])
    return Transcript(
        session=rows.describe_session(session), count=len(results), offset=request.offset,
        results=results, more=len(found) > request.limit,
    )  # fmt: skip


# --- what happened around something --------------------------------------------------------------


class NeighbourRequest(FormattedRequest, kw_only=True):
    before: Annotated[Depth, about("How many before it.")] = field(default=10, name="depth_before")
    after: Annotated[Depth, about("How many after it.")] = field(default=10, name="depth_after")
    everywhere: Annotated[bool, about("Of all projects, not of the anchor's own.")] = False


class TimelineRequest(NeighbourRequest, kw_only=True):
    """What happened before and after something."""

    anchor: Annotated[
        fields.Name,
        about(
            "An item's id (12), S and a session's id or number (S12), a time, latest, "
            "or words: what fits them best. Default: latest."
        ),
    ] = ""
    query: Annotated[
        fields.Text,
        about(
            "Without an anchor: around what fits this best; with anchor=latest: around "
            "the newest that fits."
        ),
    ] = ""


class TimelineByQuery(NeighbourRequest, kw_only=True):
    """The same around what fits a question best."""

    query: Annotated[fields.Text, about("Words to look for.", min_length=1)]
    anchor: Annotated[
        Literal["", "latest"], about("latest: the newest that fits well, not the best.")
    ] = ""


class Timeline(Struct, kw_only=True):
    """Oldest first. A row of type anchor stands where the anchor is, before the item itself."""

    anchor: str
    anchor_timestamp: int
    depth_before: int
    depth_after: int
    format: fields.Form
    timeline: list[Row]
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
    filters = make_filters(memory, request)
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
    rows = Rows(memory.reading, full=request.format == "full")
    return Timeline(
        anchor=anchor or query or "latest",
        anchor_timestamp=int(found.epoch * 1000),
        depth_before=len(found.before),
        depth_after=len(found.after),
        format=request.format,
        timeline=_timeline_rows(rows, found),
        took_ms=round((time.perf_counter() - began) * 1000, 2),
    )


def _timeline_rows(rows: Rows, found: timeline.Timeline) -> list[Row]:
    middle = [anchor_row(int(found.epoch * 1000))]
    if found.anchor is not None:
        # A neighbour has no score, and beside them the anchor's would say nothing.
        for row in rows.hit_rows([replace(found.anchor, score=0.0)]):
            row.anchor = True
            middle.append(row)
    return rows.hit_rows(found.before) + middle + rows.hit_rows(found.after)


# --- the newest sessions --------------------------------------------------------------------------


class RecentRequest(Request, kw_only=True):
    project: fields.ProjectName = ""
    limit: Annotated[int, about("How many sessions.", ge=1, le=50)] = 3
    rows: Annotated[int, about("How many rows of each.", ge=1, le=100)] = 12


class RecentSession(Struct, kw_only=True):
    session: Session
    summary: Summary | None
    observations: list[Row]


class Recent(Struct, kw_only=True):
    limit: int
    project: str
    sessions: list[RecentSession]


def show_recent(memory: Memory, request: RecentRequest) -> Recent:
    """The last sessions with their summaries.

    And an index of what each left behind.
    """
    store = memory.reading
    wanted, rows = make_filters(memory, request), Rows(store)
    keys = {name: key for key, name in memory.project_names().items()}
    sessions = []
    for session, hits in recent_sessions(store, wanted, request.limit, request.rows):
        told = find_summary(store, replace(session, project=keys.get(session.project, "")))
        others = [hit for hit in hits if told is None or hit.id != told.id]
        sessions.append(
            RecentSession(
                session=rows.describe_session(session),
                summary=make_summary(told) if told else None,
                observations=rows.hit_rows(others),
            )
        )
    return Recent(limit=request.limit, project=request.project or "all", sessions=sessions)
