"""What happened around something, and what happened last."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from yester.clock import DAY
from yester.deliver.http import shapes
from yester.deliver.http.access import Access
from yester.deliver.http.parameters import Near, RecentOf, TimelineAt, TimelineBy
from yester.deliver.http.problem import Refusal
from yester.deliver.http.rows import Rows, anchor_row, summary, summary_of
from yester.errors import NotFound, UsageError
from yester.model import Filters, Hit, Paging
from yester.recall.timeline import ANCHORS, LATEST, Timeline, recent_sessions
from yester.recall.timeline import build_timeline as around
from yester.redact import redact

_NUMBERED = re.compile(r"S(?P<number>[0-9]{1,9})")


def at(access: Access, given: TimelineAt) -> shapes.Timeline:
    anchor = given.anchor.strip()
    asks = not anchor or anchor.lower() == LATEST
    return _timeline(access, given, anchor, given.query if asks else "")


def by_query(access: Access, given: TimelineBy) -> shapes.Timeline:
    return _timeline(access, given, given.anchor, given.query)


def _timeline(access: Access, given: Near, anchor: str, query: str) -> shapes.Timeline:
    began = time.perf_counter()
    filters = access.filters(given)
    parameter, value = ("query", query) if query else ("anchor", anchor)
    try:
        found = around(
            access.store, _item_of(access, anchor) or anchor or None, given.before,
            given.after, filters, access.now, query=query, everywhere=given.everywhere,
            window=access.config.number("recency_window_days") * DAY, answer=access.recall,
        )  # fmt: skip
    except NotFound as error:
        raise Refusal(
            404, redact(error.what), parameter=parameter, value=value, fix=ANCHORS
        ) from None
    except UsageError as error:
        what, _, fix = redact(str(error)).rpartition("; ")
        raise Refusal(400, what or fix, parameter=parameter, value=value, fix=fix) from None
    if not (found.before or found.after):
        access.check_names(filters)
    rows = Rows(access.store, full=given.format == "full")
    return shapes.Timeline(
        anchor=anchor or query or "latest",
        anchor_timestamp=int(found.epoch * 1000),
        depth_before=len(found.before),
        depth_after=len(found.after),
        format=given.format,
        timeline=_rows(access, rows, found),
        took_ms=round((time.perf_counter() - began) * 1000, 2),
    )


def _item_of(access: Access, anchor: str) -> int:
    """The first item of a session that is named by its number (S12); ids of clients go first."""
    match = _NUMBERED.fullmatch(anchor)
    if match is None or access.store.sessions(Filters(session=match["number"]), Paging(1)):
        return 0
    session = access.session(anchor)
    here = Filters((session.project,), session=session.key, agent=session.agent)
    return next((one.id for one in access.store.select(here, Paging(1, oldest_first=True))), 0)


def _rows(access: Access, rows: Rows, found: Timeline) -> list[shapes.Row]:
    items = {item.id: item for item in access.store.get([hit.id for hit in found])}

    def of(hits: tuple[Hit, ...]) -> list[shapes.Row]:
        return [rows.row(items[hit.id], hit.text, hit.title) for hit in hits if hit.id in items]

    middle = [anchor_row(int(found.epoch * 1000))]
    if found.anchor is not None:
        for row in of((found.anchor,)):
            row.anchor = True
            middle.append(row)
    return of(found.before) + middle + of(found.after)


def last(access: Access, given: RecentOf) -> shapes.Recent:
    """The last sessions: the summary of each, and an index of what it left behind."""
    store = access.store
    wanted = Filters(projects=(access.project(given.project).key,) if given.project else ())
    rows = Rows(store)
    keys = {name: key for key, name in access.names().items()}
    sessions = []
    for session, hits in recent_sessions(store, wanted, given.limit, given.rows):
        told = summary_of(store, replace(session, project=keys.get(session.project, "")))
        items = {item.id: item for item in store.get([hit.id for hit in hits])}
        index = [
            rows.row(items[hit.id], hit.text, hit.title)
            for hit in hits
            if hit.id in items and (told is None or hit.id != told.id)
        ]
        sessions.append(
            shapes.RecentSession(
                session=rows.session(session),
                summary=summary(told) if told else None,
                observations=index,
            )
        )
    return shapes.Recent(limit=given.limit, project=given.project or "all", sessions=sessions)
