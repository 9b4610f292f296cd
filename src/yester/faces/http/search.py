"""Searching: what is asked in, rows of an index or whole items out.

"Observations" are observations, memories and notes. As long as nothing has been distilled where a
question looks, or where no observation fits it, raw messages stand for them, and `note` says so.
Sessions are found by anything that was said in them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from msgspec import UNSET

from yester.faces.http.filters import make_filters
from yester.faces.http.parameters import (
    Asking,
    ByConcept,
    ByFile,
    ByType,
    SearchAll,
    SearchObservations,
    SearchPrompts,
    SearchSessions,
)
from yester.faces.http.rows import Rows, explained, summary_of
from yester.faces.http.shapes import Found, Row
from yester.memory import Memory
from yester.model import Filters, Hit, Paging, Session
from yester.recall.recall import Answer, Asked, describe_reach
from yester.text.terms import query_terms

OBSERVATIONS = ("observation", "memory", "note")
_RAW = ("message",)
_GROUPED = 5  # times as many hits as sessions are looked at, to find so many
_MOST_HITS = 500


def observations(memory: Memory, given: SearchObservations) -> Found:
    return _observed(memory, given, make_filters(memory, given, types=tuple(given.types)))


def prompts(memory: Memory, given: SearchPrompts) -> Found:
    return _plain(memory, given, make_filters(memory, given, kinds=("prompt",)))


def everything(memory: Memory, given: SearchAll) -> Found:
    filters = make_filters(memory, given, types=tuple(given.types), kinds=tuple(given.kinds))
    if given.what == "sessions":
        return _sessions(memory, given, filters)
    if given.kinds or not given.what:
        return _plain(memory, given, filters)
    if given.what == "prompts":
        return _plain(memory, given, replace(filters, kinds=("prompt",)))
    return _observed(memory, given, filters)


def by_type(memory: Memory, given: ByType) -> Found:
    found = _plain(memory, given, make_filters(memory, given, types=_listed(given.types)))
    found.type = given.types
    return found


def by_file(memory: Memory, given: ByFile) -> Found:
    filters = make_filters(memory, given)
    found = _plain(memory, given, replace(filters, files=(*filters.files, given.path)))
    found.file_path = given.path
    return found


def by_concept(memory: Memory, given: ByConcept) -> Found:
    filters = make_filters(memory, given)
    wanted = (*filters.concepts, *_listed(given.concept))
    found = _plain(memory, given, replace(filters, concepts=wanted))
    found.concept = given.concept
    return found


def _listed(text: str) -> tuple[str, ...]:
    """One or several, with commas; never none, which would be everything."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) or (text,)


def sessions(memory: Memory, given: SearchSessions) -> Found:
    return _sessions(memory, given, make_filters(memory, given))


# --- items ----------------------------------------------------------------------------------------


def _asked(memory: Memory, given: Asking, filters: Filters) -> Asked:
    """One more than is shown tells whether there is more; an explanation tells it, too."""
    most = given.limit + (not given.explain)
    return Asked(given.query, filters, most, given.offset, given.order, given.explain, memory.now)


def _plain(memory: Memory, given: Asking, filters: Filters) -> Found:
    began = time.perf_counter()
    return _found(memory, given, filters, memory.answer(_asked(memory, given, filters)), began)


def _observed(memory: Memory, given: Asking, filters: Filters) -> Found:
    began = time.perf_counter()
    answer, note = _distilled(memory, _asked(memory, given, filters))
    return _found(memory, given, filters, answer, began, note)


def _distilled(memory: Memory, asked: Asked) -> tuple[Answer, str]:
    """The answer and, where messages stand in for observations, a word on it."""

    def of(*kinds: str, **more: Any) -> Answer:
        filters = replace(asked.filters, kinds=kinds)
        return memory.answer(replace(asked, filters=filters, **more))

    everywhere = replace(asked.filters, kinds=("observation",), types=(), since=None, until=None)
    if not memory.store.select(everywhere, Paging(1)):
        return (
            of(*OBSERVATIONS, *_RAW),
            "nothing is distilled here yet: messages stand for observations",
        )
    answer = of(*OBSERVATIONS)
    if answer.hits or (asked.offset and of(*OBSERVATIONS, offset=0, k=1).hits):
        return answer, ""
    return of(*OBSERVATIONS, *_RAW), "no observation fits: these are messages"


def _found(
    memory: Memory, given: Asking, filters: Filters, answer: Answer, began: float, note: str = ""
) -> Found:
    if not answer.hits:
        memory.check_names(filters)
    shown = replace(answer, hits=answer.hits[: given.limit])
    note = "; ".join(filter(None, (note, describe_reach(given.query, shown))))
    rows = Rows(memory.store, query_terms(given.query), given.format == "full")
    results = rows.found(shown, given.explain)
    more = len(answer.hits) > given.limit or any(one.score > 0 for one in answer.cut)
    return _told(given, results, more, began, answer if given.explain else None, note)


def _told(
    given: Asking,
    results: list[Row],
    more: bool,
    began: float,
    answer: Answer | None = None,
    note: str = "",
) -> Found:
    return Found(
        query=given.query,
        count=len(results),
        format=given.format,
        results=results,
        more=more,
        took_ms=round((time.perf_counter() - began) * 1000, 2),
        note=note if note and results else UNSET,
        explain=explained(answer) if answer is not None else UNSET,
    )


# --- sessions -------------------------------------------------------------------------------------


def _sessions(memory: Memory, given: Asking, filters: Filters) -> Found:
    """By the best of what was said in them, or the newest."""
    began, store = time.perf_counter(), memory.store
    wanted = given.limit + 1
    answer: Answer | None = None
    found: list[tuple[Session, Hit | None]] = []
    by_items = replace(filters, projects=(), session="", agent="", since=None, until=None)
    if given.query or by_items != Filters():
        most = min(_GROUPED * (given.offset + wanted), _MOST_HITS)
        answer = memory.answer(replace(_asked(memory, given, filters), k=most, offset=0))
        best: dict[tuple[str, str], Hit] = {}
        for one in answer.hits:
            if one.session:
                best.setdefault((one.session, one.agent), one)
        for key, one in list(best.items())[given.offset : given.offset + wanted]:
            if (session := store.session(*key)) is not None:
                found.append((session, one))
    else:
        oldest_first = given.order == "date_asc"
        for session in store.sessions(
            filters, Paging(wanted, given.offset, oldest_first=oldest_first)
        ):
            found.append((session, None))
    rows = Rows(store, query_terms(given.query), given.format == "full")
    results = [_session(memory, rows, session, hit) for session, hit in found[: given.limit]]
    more = len(found) > given.limit
    if not found:
        memory.check_names(filters)
    note = describe_reach(given.query, answer) if answer else ""
    return _told(given, results, more, began, answer if given.explain else None, note)


def _session(memory: Memory, rows: Rows, session: Session, hit: Hit | None) -> Row:
    row = rows.session_row(session, hit, summary_of(memory.store, session))
    if not row.id:
        here = Filters((session.project,), session=session.key, agent=session.agent)
        asked = memory.store.select(replace(here, kinds=("prompt",)), Paging(1, oldest_first=True))
        row.id = next((item.id for item in asked or memory.store.select(here, Paging(1))), 0)
    return row
