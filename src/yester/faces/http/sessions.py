"""Sessions, and everything recorded of one, page by page.

The transcript is what was recorded of it, not the agent's file: that would hold what was redacted.
"""

from __future__ import annotations

from yester.faces.http import shapes
from yester.faces.http.filters import span
from yester.faces.http.items import distinct_items
from yester.faces.http.parameters import SessionAt, SessionsOf, TranscriptOf
from yester.faces.http.rows import Rows, summary, summary_of
from yester.memory import Memory
from yester.model import Filters, Injection, Paging


def listed(memory: Memory, given: SessionsOf) -> shapes.Sessions:
    since, until = span(given, memory.now)
    projects = (memory.find_project(given.project).key,) if given.project else ()
    filters = Filters(projects, agent=given.agent, since=since, until=until)
    found = memory.store.sessions(filters, Paging(given.limit + 1, given.offset))
    if not found:
        memory.check_names(filters)
    rows = Rows(memory.store)
    told = [rows.session(one) for one in found[: given.limit]]
    return shapes.Sessions(count=len(told), sessions=told, more=len(found) > given.limit)


def one(memory: Memory, given: SessionAt) -> shapes.SessionShown:
    session = memory.find_session(given.session)
    told = summary_of(memory.store, session)
    lines = memory.store.entries(Injection, {"session": session.id})
    return shapes.SessionShown(
        session=Rows(memory.store).session(session),
        summary=summary(told) if told else None,
        shown=len(lines),
        shown_tokens=sum(line.tokens for line in lines),
    )


def transcript(memory: Memory, given: TranscriptOf) -> shapes.Transcript:
    """The oldest first."""
    session = memory.find_session(given.session)
    here = Filters(
        (session.project,), tuple(given.kinds), session=session.key, agent=session.agent,
        echoes=True,
    )  # fmt: skip
    found = memory.store.select(here, Paging(given.limit + 1, given.offset, oldest_first=True))
    rows = Rows(memory.store, full=given.format == "full")
    results = rows.of(found[: given.limit])
    behind = distinct_items(memory.store.evidence([row.id for row in results]))
    for row in results:
        if row.id in behind:
            row.sources = list(behind[row.id])
    return shapes.Transcript(
        session=rows.session(session), count=len(results), offset=given.offset, results=results,
        more=len(found) > given.limit,
    )  # fmt: skip
