"""Turns as they happened: a row each, with what came of it; and how many there were on each day."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Struct, field

from yester.cards.titles import plan_title
from yester.clock import DAY, QUARTER, format_day, parse_bound, parse_time
from yester.context.cards import find_turn_cards
from yester.context.lines import card_status
from yester.memory import Memory
from yester.model import Filters, Item, Paging, Session
from yester.operations import fields
from yester.operations import request as requests
from yester.operations.fields import about
from yester.redact import redact, redact_value
from yester.store.contract import Store
from yester.text.sentences import one_line

_TITLE, _REASON = 160, 400  # characters
_MOST_FILES = 40  # of a turn
_REMEMBERED = 600.0  # seconds


class TurnsRequest(requests.DatedRequest, kw_only=True):
    limit: Annotated[int, about("At most so many.", ge=1, le=500)] = 100
    offset: fields.Offset = 0
    project: fields.ProjectName = ""
    session: Annotated[fields.Name, about("Only this session: its number, or its id.")] = ""
    order: Literal["date_desc", "date_asc"] = field(default="date_desc", name="orderBy")


class DaysRequest(requests.Request, kw_only=True):
    project: fields.ProjectName = ""


class TurnRow(Struct, kw_only=True):
    """A prompt and what came of it."""

    id: int
    card: int
    number: int
    session_db_id: int
    session: str
    agent: str
    project: str
    created_at_epoch: int
    title: str
    prompt: str
    status: str
    evidence: str
    why: str
    types: list[str]
    files: list[str]


class Turns(Struct, kw_only=True):
    count: int
    turns: list[TurnRow]
    more: bool


class Day(Struct, kw_only=True):
    day: str
    turns: int


class Days(Struct, kw_only=True):
    days: list[Day]


def list_turns(memory: Memory, request: TurnsRequest) -> Turns:
    """Turns with what came of each: its status by evidence, what was found out, files.

    The newest first.
    """
    session = memory.find_session(request.session) if request.session else None
    more: dict[str, object] = {"kinds": ("prompt",), "echoes": True, "session": ""}
    if session is not None:
        more["session_id"] = session.id
    filters = requests.make_filters(memory, request, **more)
    page = Paging(request.limit + 1, request.offset, oldest_first=request.order == "date_asc")
    prompts = memory.reading.select(filters, page)
    rows = describe_turns(memory.reading, prompts[: request.limit])
    return Turns(count=len(rows), turns=rows, more=len(prompts) > request.limit)


def describe_turns(store: Store, prompts: Sequence[Item]) -> list[TurnRow]:
    """A row for each prompt, in their order."""
    known = store.find_sessions({(one.session, one.agent) for one in prompts if one.session})
    names = {project.key: project.name for project in store.projects()}
    sessions = [known.get((one.session, one.agent)) for one in prompts]
    keys = [
        (session.id, prompt.prompt_number) if session and prompt.prompt_number else None
        for session, prompt in zip(sessions, prompts, strict=True)
    ]
    wanted = {key for key in keys if key}
    cards = find_turn_cards(store, wanted) if wanted else {}
    types = _find_types(store, prompts)
    return [
        _describe_turn(
            prompt, session, cards.get(key) if key else None,
            names.get(prompt.project, prompt.project),
            types.get((prompt.session, prompt.prompt_number), ()),
        )
        for prompt, session, key in zip(prompts, sessions, keys, strict=True)
    ]  # fmt: skip


def _find_types(store: Store, prompts: Sequence[Item]) -> Mapping[tuple[str, int], list[str]]:
    """What was found out in each turn, by the words for it; one of every sort."""
    found: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    if not prompts:
        return found
    times = [one.epoch for one in prompts]
    one_session = {one.session for one in prompts}
    filters = Filters(
        projects=tuple({one.project for one in prompts}), kinds=("observation",),
        session=one_session.pop() if len(one_session) == 1 else "",
        since=min(times), until=max(times) + DAY,
    )  # fmt: skip
    for item in store.select(filters, Paging(oldest_first=True)):
        types = found[item.session, item.prompt_number]
        if item.type and item.type not in types:
            types.append(item.type)
    return found


def _describe_turn(
    prompt: Item, session: Session | None, card: Item | None, project: str, types: Iterable[str]
) -> TurnRow:
    asked = plan_title(prompt.body) or prompt.body or prompt.title
    said = one_line(redact(asked)[: 4 * _TITLE], _TITLE)
    return TurnRow(
        id=prompt.id, card=card.id if card else 0, number=prompt.prompt_number,
        session_db_id=session.id if session else 0,
        session=redact(session.title) if session else "", agent=redact(prompt.agent),
        project=redact(project), created_at_epoch=prompt.epoch,
        title=redact(card.title) if card and card.title else said, prompt=said,
        status=card_status(card) if card else "",
        evidence=redact(card.subtitle.partition(": ")[2]) if card else "",
        why=redact(one_line(card.body, _REASON)) if card else "",
        types=[redact(one) for one in types],
        files=redact_value(list(card.files_modified[:_MOST_FILES])) if card else [],
    )  # fmt: skip


def count_turn_days(memory: Memory, request: DaysRequest) -> Days:
    """On which days something was asked, and how often: by the server's clock, the newest first."""
    filters = requests.make_filters(memory, request, kinds=("prompt",))
    midnight = parse_time("today", memory.now)
    today = _count_days(memory.reading, filters, midnight)
    prompts = memory.reading.totals("indexed", where={"kind": "prompt"})[0][0] or 0
    # Days that are over are counted anew only where their number of prompts is another one.
    state = (midnight, prompts - today.total())
    name = f"days {filters!r}"

    def count_past() -> tuple[tuple[int, int], Counter[str]]:
        return state, _count_days(memory.reading, filters)

    known, past = memory.cached(name, _REMEMBERED, count_past)
    if known != state:
        _, past = memory.cached(name, -1.0, count_past)
    counts = past | today
    return Days(days=[Day(day=day, turns=counts[day]) for day in sorted(counts, reverse=True)])


def _count_days(store: Store, filters: Filters, since: int = 0) -> Counter[str]:
    counts: Counter[str] = Counter()
    day, end = "", 0
    for quarter, number in store.totals("item", ("quarter",), filters=filters, since=since):
        if (epoch := quarter * QUARTER) >= end:
            day = format_day(epoch)
            end = parse_bound(day, epoch, end=True) if day else 0
        if day:
            counts[day] += number
    return counts
