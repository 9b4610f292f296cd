"""Sessions, and everything recorded of one, page by page.

The transcript is what was recorded of it, not the agent's file: that would hold what was redacted.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from yester.memory import Memory
from yester.model import Filters, Injection, Paging, replace
from yester.operations.items import distinct_items
from yester.operations.request import (
    AgentName,
    Count,
    DatedRequest,
    Kinds,
    Name,
    Offset,
    ProjectName,
    Request,
    Shape,
    find_project_keys,
    read_dates,
)
from yester.operations.rows import (
    Row,
    Rows,
    Session,
    Summary,
    find_summary,
    make_summary,
    session_filters,
)


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
    since, until = read_dates(request, memory.now)
    projects = find_project_keys(memory, request.project)
    filters = Filters(projects, agent=request.agent, since=since, until=until)
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
