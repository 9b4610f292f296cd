"""Sessions: listed, shown, everything recorded of one page by page; and time: what happened around
something, and what happened last.

A transcript is what was recorded, not the agent's file: that would hold what was redacted.
"""

from __future__ import annotations

import re
import time
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from yester.clock import DAY
from yester.errors import NotFound, UsageError
from yester.memory import Memory
from yester.model import Filters, Injection, Paging, replace
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
from yester.operations.request import (
    AgentName,
    Count,
    DatedRequest,
    Form,
    FormattedRequest,
    Kinds,
    Name,
    Offset,
    ProjectName,
    Request,
    Shape,
    Text,
    make_filters,
)
from yester.recall import timeline
from yester.recall.timeline import ANCHORS, LATEST, recent_sessions

_NUMBERED = re.compile(r"S(?P<number>[0-9]{1,9})")
Depth = Annotated[int, Meta(ge=0, le=100)]


class SessionsRequest(DatedRequest, kw_only=True):
    limit: Count = 20
    offset: Offset = 0
    project: ProjectName = ""
    agent: AgentName = ""


class SessionRequest(Request, kw_only=True):
    session: Annotated[
        Name,
        Meta(min_length=1, description="Its number (12 or S12), its id, or 6 characters of it."),
    ]


class TranscriptRequest(SessionRequest, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=200, description="At most so many items.")] = 50
    offset: Offset = 0
    kinds: Kinds = field(default_factory=list)
    format: Shape = "full"


class Sessions(Struct, kw_only=True):
    count: int
    sessions: list[Session]
    more: bool


class SessionShown(Struct, kw_only=True):
    session: Session
    summary: Summary | None
    shown: Annotated[int, Meta(description="Lines of memory its agent was shown.")]
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
    before: Annotated[Depth, Meta(description="How many before it.")] = field(
        default=10, name="depth_before"
    )
    after: Annotated[Depth, Meta(description="How many after it.")] = field(
        default=10, name="depth_after"
    )
    everywhere: Annotated[bool, Meta(description="Of all projects, not of the anchor's own.")] = (
        False
    )


class TimelineRequest(NeighbourRequest, kw_only=True):
    """What happened before and after something."""

    anchor: Annotated[
        Name,
        Meta(
            description="An item's id (12), S and a session's id or number (S12), a time, latest, "
            "or words: what fits them best. Default: latest."
        ),
    ] = ""
    query: Annotated[
        Text,
        Meta(
            description="Without an anchor: around what fits this best; with anchor=latest: around "
            "the newest that fits."
        ),
    ] = ""


class TimelineByQuery(NeighbourRequest, kw_only=True):
    """The same around what fits a question best."""

    query: Annotated[Text, Meta(min_length=1, description="Words to look for.")]
    anchor: Annotated[
        Literal["", "latest"], Meta(description="latest: the newest that fits well, not the best.")
    ] = ""


class Timeline(Struct, kw_only=True):
    """Oldest first. A row of type anchor stands where the anchor is, before the item itself."""

    anchor: str
    anchor_timestamp: int
    depth_before: int
    depth_after: int
    format: Form
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
    """What happened before and after an anchor, which may also be a session's number (S12)."""
    if isinstance(anchor, str):
        anchor = _first_of_session(memory, anchor) or anchor
    return timeline.build_timeline(
        memory.reading, anchor or None, before, after, filters, now or memory.now, query=query,
        everywhere=everywhere, window=memory.config.number("recency_window_days") * DAY,
        answer=memory.answer,
    )  # fmt: skip


def _first_of_session(memory: Memory, anchor: str) -> int:
    """The first item of a session that is named by its number (S12); ids of clients go first."""
    match = _NUMBERED.fullmatch(anchor)
    store = memory.reading
    if match is None or store.sessions(Filters(session=match["number"]), Paging(1)):
        return 0
    here = session_filters(memory.find_session(anchor))
    return next((one.id for one in store.select(here, Paging(1, oldest_first=True))), 0)


def show_timeline(memory: Memory, request: TimelineRequest | TimelineByQuery) -> Timeline:
    began = time.perf_counter()
    anchor = request.anchor.strip()
    query = request.query if not anchor or anchor.lower() == LATEST else ""
    filters = make_filters(memory, request)
    parameter, value = ("query", query) if query else ("anchor", anchor)
    try:
        found = find_neighbours(
            memory, anchor, request.before, request.after, filters, query, request.everywhere
        )
    except NotFound as error:
        if error.parameter:
            raise
        raise NotFound(error.what, ANCHORS, parameter=parameter, value=value) from None
    except UsageError as error:
        what, _, fix = str(error).rpartition("; ")
        raise UsageError(what or fix, fix, parameter=parameter, value=value) from None
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
    project: ProjectName = ""
    limit: Annotated[int, Meta(ge=1, le=50, description="How many sessions.")] = 3
    rows: Annotated[int, Meta(ge=1, le=100, description="How many rows of each.")] = 12


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
