"""What happened around something, and what happened last."""

from __future__ import annotations

import re
import time
from dataclasses import replace

from yester.clock import DAY
from yester.errors import NotFound, UsageError
from yester.faces.http import shapes
from yester.faces.http.filters import make_filters
from yester.faces.http.parameters import Near, RecentOf, TimelineAt, TimelineBy
from yester.faces.http.problem import Refusal
from yester.faces.http.rows import Rows, anchor_row, summary, summary_of
from yester.memory import Memory
from yester.model import Filters, Hit, Paging
from yester.recall.timeline import ANCHORS, LATEST, Timeline, recent_sessions
from yester.recall.timeline import build_timeline as around
from yester.redact import redact

_NUMBERED = re.compile(r"S(?P<number>[0-9]{1,9})")


def at(memory: Memory, given: TimelineAt) -> shapes.Timeline:
    anchor = given.anchor.strip()
    asks = not anchor or anchor.lower() == LATEST
    return _timeline(memory, given, anchor, given.query if asks else "")


def by_query(memory: Memory, given: TimelineBy) -> shapes.Timeline:
    return _timeline(memory, given, given.anchor, given.query)


def _timeline(memory: Memory, given: Near, anchor: str, query: str) -> shapes.Timeline:
    began = time.perf_counter()
    filters = make_filters(memory, given)
    parameter, value = ("query", query) if query else ("anchor", anchor)
    at = _item_of(memory, anchor) or anchor or None
    try:
        found = around(
            memory.store, at, given.before, given.after, filters, memory.now, query=query,
            everywhere=given.everywhere,
            window=memory.config.number("recency_window_days") * DAY, answer=memory.answer,
        )  # fmt: skip
    except NotFound as error:
        raise Refusal(
            404, redact(error.what), parameter=parameter, value=value, fix=ANCHORS
        ) from None
    except UsageError as error:
        what, _, fix = redact(str(error)).rpartition("; ")
        raise Refusal(400, what or fix, parameter=parameter, value=value, fix=fix) from None
    if not (found.before or found.after):
        memory.check_names(filters)
    rows = Rows(memory.store, full=given.format == "full")
    return shapes.Timeline(
        anchor=anchor or query or "latest",
        anchor_timestamp=int(found.epoch * 1000),
        depth_before=len(found.before),
        depth_after=len(found.after),
        format=given.format,
        timeline=_rows(memory, rows, found),
        took_ms=round((time.perf_counter() - began) * 1000, 2),
    )


def _item_of(memory: Memory, anchor: str) -> int:
    """The first item of a session that is named by its number (S12); ids of clients go first."""
    match = _NUMBERED.fullmatch(anchor)
    if match is None or memory.store.sessions(Filters(session=match["number"]), Paging(1)):
        return 0
    session = memory.find_session(anchor)
    here = Filters((session.project,), session=session.key, agent=session.agent)
    return next((one.id for one in memory.store.select(here, Paging(1, oldest_first=True))), 0)


def _rows(memory: Memory, rows: Rows, found: Timeline) -> list[shapes.Row]:
    items = {item.id: item for item in memory.store.get([hit.id for hit in found])}

    def of(hits: tuple[Hit, ...]) -> list[shapes.Row]:
        return [rows.row(items[hit.id], hit.text, hit.title) for hit in hits if hit.id in items]

    middle = [anchor_row(int(found.epoch * 1000))]
    if found.anchor is not None:
        for row in of((found.anchor,)):
            row.anchor = True
            middle.append(row)
    return of(found.before) + middle + of(found.after)


def last(memory: Memory, given: RecentOf) -> shapes.Recent:
    """The last sessions: the summary of each, and an index of what it left behind."""
    store = memory.store
    wanted = Filters(projects=(memory.find_project(given.project).key,) if given.project else ())
    rows = Rows(store)
    keys = {name: key for key, name in memory.project_names().items()}
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
