"""Sessions, and everything recorded of one, page by page.

The transcript is what was recorded of it, not the agent's file: that would hold what was redacted.
"""

from __future__ import annotations

from yester.deliver.http import shapes
from yester.deliver.http.access import Access, span
from yester.deliver.http.items import distinct_items
from yester.deliver.http.parameters import SessionAt, SessionsOf, TranscriptOf
from yester.deliver.http.rows import Rows, summary, summary_of
from yester.model import Filters, Injection, Paging


def listed(access: Access, given: SessionsOf) -> shapes.Sessions:
    since, until = span(given, access.now)
    projects = (access.project(given.project).key,) if given.project else ()
    filters = Filters(projects, agent=given.agent, since=since, until=until)
    found = access.store.sessions(filters, Paging(given.limit + 1, given.offset))
    if not found:
        access.check_names(filters)
    rows = Rows(access.store)
    told = [rows.session(one) for one in found[: given.limit]]
    return shapes.Sessions(count=len(told), sessions=told, more=len(found) > given.limit)


def one(access: Access, given: SessionAt) -> shapes.SessionShown:
    session = access.session(given.session)
    told = summary_of(access.store, session)
    lines = access.store.entries(Injection, {"session": session.id})
    return shapes.SessionShown(
        session=Rows(access.store).session(session),
        summary=summary(told) if told else None,
        shown=len(lines),
        shown_tokens=sum(line.tokens for line in lines),
    )


def transcript(access: Access, given: TranscriptOf) -> shapes.Transcript:
    """The oldest first."""
    session = access.session(given.session)
    here = Filters(
        (session.project,), tuple(given.kinds), session=session.key, agent=session.agent,
        echoes=True,
    )  # fmt: skip
    found = access.store.select(here, Paging(given.limit + 1, given.offset, oldest_first=True))
    rows = Rows(access.store, full=given.format == "full")
    results = rows.of(found[: given.limit])
    behind = distinct_items(access.store.evidence([row.id for row in results]))
    for row in results:
        if row.id in behind:
            row.sources = list(behind[row.id])
    return shapes.Transcript(
        session=rows.session(session), count=len(results), offset=given.offset, results=results,
        more=len(found) > given.limit,
    )  # fmt: skip
