"""What happened around something: the items before and after an anchor, by time (then id). And what
happened last: the newest sessions.

    12, "12", "#12"       an item
    "S4f2a91c0…", "S12"   the first item of a session: its id, 6 characters of it, or its number
    "2026-03-01", "3d"    a point in time, as `yester.clock` reads it; it has no item of its own
    "latest"              the newest item; with a query, the newest of those that fit it well
    any other text        what fits it best; the same as a query without an anchor

The anchor is shown whatever the filters say; they choose what stands around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from yester.clock import parse_time
from yester.errors import NotFound, UsageError
from yester.model import ANYTHING, ECHO, Filters, Hit, Item, Paging, Session, replace
from yester.recall.recall import Answer, Asked, answer_question, keep_relevant, make_hit
from yester.redact import redact
from yester.store.contract import Store

LATEST = "latest"
ANCHORS = (
    "an anchor is an item's id (12 or #12), S and a session's id, a time (3d, 2026-03-01), "
    f"{LATEST}, or words to look for"
)
_Answers = Callable[[Asked], Answer]
_ASKED = 50  # answers among which the newest is looked for
_FEW = 5  # … the best
_JUST_NOW = 10 * 60_000  # ms
_SESSIONS_NAMED = 4
_LIKE_AN_ID = re.compile(r"#?[-+]?\d+")
_LIKE_A_SESSION = re.compile(r"[0-9a-f-]{6,}", re.I)  # of no word; "sad" and "sea" are too short
_LIKE_A_NUMBER = re.compile(r"[0-9]{1,15}")
_LIKE_A_DATE = re.compile(r"\d{4}-\d\d?(-\d\d?\S*)?")


@dataclass(frozen=True, slots=True)
class Timeline:
    """Hits by time, the oldest first. Around a point in time there is no `anchor`."""

    epoch: float  # seconds; where it is anchored
    before: tuple[Hit, ...] = ()
    anchor: Hit | None = None
    after: tuple[Hit, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        anchor = () if self.anchor is None else (self.anchor,)
        return iter((*self.before, *anchor, *self.after))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True, slots=True)
class _Place:
    epoch: int
    item: Item | None = None
    score: float = 0.0


def build_timeline(
    store: Store,
    anchor: int | str | None = None,
    before: int = 10,
    after: int = 10,
    filters: Filters = ANYTHING,
    now: int = 0,
    *,
    query: str = "",
    everywhere: bool = False,
    window: int = 0,
    answer: _Answers | None = None,
) -> Timeline:
    """At most `before` items, the anchor, and at most `after`.

    Where the filters name no project it is the anchor's own, unless `everywhere`. `window` is the
    recency window of a question (`Asked.window`), `answer` is who finds what fits one,
    otherwise the store itself.
    """
    if before < 0 or after < 0:
        raise UsageError(f"before and after must not be negative (before={before}, after={after})")
    asked = Asked(query, filters, now=now, window=window)
    resolved = _best_match_place if query.strip() else _resolve_anchor
    place = resolved(store, asked, anchor, answer or partial(answer_question, store))
    if place.item and place.item.project in filters.without_projects:
        raise NotFound(f"no item #{place.item.id}", "its project is private")
    if place.item and not filters.projects and not everywhere:
        filters = replace(filters, projects=(place.item.project,))
    names = {project.key: project.name for project in store.projects()}
    # Many items may share one moment, a program's import has it for thousands: of these, by id.
    here = (place.epoch, place.item.id if place.item else 0)
    shown = replace(filters, echoes=True)
    earlier = store.select(shown, Paging(before, behind=here))
    later = store.select(shown, Paging(after, oldest_first=True, behind=here))
    return Timeline(
        epoch=place.epoch / 1000,
        before=tuple(make_hit(item, names) for item in reversed(earlier)),
        anchor=make_hit(place.item, names, place.score) if place.item else None,
        after=tuple(make_hit(item, names) for item in later),
    )


def _resolve_anchor(
    store: Store, asked: Asked, anchor: int | str | None, answer: _Answers
) -> _Place:
    if isinstance(anchor, int):
        return _item_place(store, anchor)
    text = (anchor or "").strip() or LATEST
    if _LIKE_AN_ID.fullmatch(text):
        return _item_place(store, int(text.removeprefix("#")))
    if text.lower() == LATEST:
        for item in store.select(replace(asked.filters, echoes=True), Paging(1)):
            return _Place(item.epoch, item)
        raise NotFound("there is nothing to begin from", "run `yester index`, or use fewer filters")
    if text[0] == "S" and (place := _session_place(store, text[1:])):
        return place
    try:
        return _Place(parse_time(text, asked.now, option="anchor"))
    except UsageError:
        if _LIKE_A_DATE.fullmatch(text):
            raise
    return _best_match_place(store, replace(asked, query=text), None, answer)


def _item_place(store: Store, id_: int) -> _Place:
    for item in store.get([id_]):
        if item.status not in ("active", ECHO):
            raise NotFound(f"item #{id_} is {item.status}, and a timeline shows active items only")
        return _Place(item.epoch, item)
    raise NotFound(f"no item #{id_}", "`yester recall` shows ids")


def match_sessions(store: Store, key: str) -> list[Session]:
    """Those with this id or one that begins so, else the one with this number."""
    found = store.sessions(Filters(session=key), Paging(20)) if key else []
    if not found and _LIKE_A_NUMBER.fullmatch(key):
        found = store.sessions(Filters(session_id=int(key)), Paging(1))
    return found


def _session_place(store: Store, key: str) -> _Place | None:
    """By its id, the beginning of it, or its number. None where the text is not meant as a session:
    a word may begin with S as well."""
    keys = list(dict.fromkeys(session.key for session in match_sessions(store, key)))
    if len(keys) > 1:
        alike = ", ".join(f"S{one}" for one in keys[:_SESSIONS_NAMED])
        raise UsageError(f"S{key} may be {alike}", "write more of the id")
    first = Paging(1, oldest_first=True)
    for item in store.select(Filters(session=keys[0], echoes=True), first) if keys else ():
        return _Place(item.epoch, item)
    if keys or _LIKE_A_SESSION.fullmatch(key):
        raise NotFound(f"no item of a session S{key}", "`yester sessions` shows their ids")
    return None


def _best_match_place(
    store: Store, asked: Asked, anchor: int | str | None, answer: _Answers
) -> _Place:
    latest = isinstance(anchor, str) and anchor.strip().lower() == LATEST
    if anchor is not None and not latest:
        raise UsageError(f"a query has no other anchor than {LATEST!r}, but it is {anchor!r}")
    hits = answer(replace(asked, k=_ASKED if latest else _FEW)).hits
    # Who asks through an agent has just typed the words; that is no answer.
    just_now = (asked.now - _JUST_NOW) / 1000
    hits = [one for one in hits if one.kind != "prompt" or one.epoch < just_now] or hits
    if latest:
        hits = sorted(keep_relevant(hits), key=lambda one: (one.epoch, one.id), reverse=True)
    for one in hits:
        for item in store.get([one.id]):
            return _Place(item.epoch, item, one.score)
    raise NotFound(f"nothing fits {asked.query!r}", ANCHORS)


# --- the newest sessions --------------------------------------------------------------------------

_INDEX = ("observation", "memory", "note")
_TAIL = 40  # last messages of a session among which its closing one is looked for


def recent_sessions(
    store: Store, filters: Filters, limit: int = 3, rows: int = 12
) -> list[tuple[Session, list[Hit]]]:
    """The last `limit` sessions that pass the filters, the newest first, with at most `rows` hits
    each, the oldest first. Sessions come with their project's readable name.

    A summary speaks for everything before it. What came later, or all of a session without one, is
    told by its prompts and by the agent's closing message."""
    if limit < 0 or rows < 0:
        raise UsageError(f"limit and rows must not be negative (limit={limit}, rows={rows})")
    names = {project.key: project.name for project in store.projects()}
    told = []
    for session in store.sessions(filters, Paging(limit)):
        hits = [make_hit(item, names) for item in _session_story(store, session, rows)]
        project = names.get(session.project, session.project)
        told.append((replace(session, project=project, title=redact(session.title)), hits))
    return told


def _session_story(store: Store, session: Session, rows: int) -> list[Item]:
    here = Filters(projects=(session.project,), session=session.key, agent=session.agent)
    summaries = store.select(replace(here, kinds=("summary",)), Paging(rows))
    here_after = replace(here, since=summaries[0].epoch + 1) if summaries else here
    ending = summaries[:1] + _closing_message(store, here_after)
    titles = {one.title for one in summaries} - {""}
    noted = store.select(replace(here, kinds=_INDEX), Paging(rows))
    others = [
        *summaries[1:],
        *store.select(replace(here_after, kinds=("prompt",)), Paging(rows)),
        *(one for one in noted if one.title not in titles),  # a card says the same, and more
    ]
    # How it ended is worth more than any one thing that happened on the way.
    kept = ending + sorted(others, key=_time_order, reverse=True)[: max(rows - len(ending), 0)]
    return sorted(kept[:rows], key=_time_order)


def _closing_message(store: Store, here: Filters) -> list[Item]:
    """The last thing the agent itself said."""
    for item in store.select(replace(here, kinds=("message",)), Paging(_TAIL)):
        if item.role == "assistant" and not item.actor:
            return [item]
    return []


def _time_order(item: Item) -> tuple[int, int]:
    return item.epoch, item.id
