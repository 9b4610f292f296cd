"""Turns as they happened: a row each, with what came of it, and how many there were on each day.

And what goes on at this moment: the sessions in which agents work, what is open over all projects,
and what was decided in the last days. A session is running while something of it is new and its end
has not been told. Where hooks tell of events, they say which tool is under way; else the last tool
of the transcript does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from yester import model
from yester.cards.titles import plan_title
from yester.cards.tools import call_title, split_call
from yester.clock import DAY, QUARTER, format_day, parse_bound, parse_time
from yester.context.cards import OPEN_FOR, find_open_ends, find_turn_cards, read_cards
from yester.context.lines import card_status
from yester.memory import Memory
from yester.model import Event, Feedback, Filters, Injection, Item, Paging, Session, Turn, replace
from yester.operations import fields, items
from yester.operations import request as requests
from yester.recall.feedback import WORTH
from yester.redact import redact, redact_value
from yester.store.contract import Store
from yester.text.sentences import one_line, shorten_text

_TITLE, _REASON = 160, 400  # characters
_MOST_FILES = 40  # of a turn
_REMEMBERED = 600.0  # seconds
_NOTHING, _NO_SESSION = Item("", ""), Session("", "")


class TurnsRequest(requests.DatedRequest, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    offset: fields.Offset = 0
    project: fields.ProjectName = ""
    session: fields.Name = ""
    order: Literal["date_desc", "date_asc"] = field(default="date_desc", name="orderBy")


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


class Turns(requests.Page, kw_only=True):
    turns: list[TurnRow]


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
            prompt, session or _NO_SESSION, cards.get(key, _NOTHING) if key else _NOTHING,
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
    prompt: Item, session: Session, card: Item, project: str, types: Iterable[str]
) -> TurnRow:
    asked = plan_title(prompt.body) or prompt.body or prompt.title
    said = one_line(redact(asked)[: 4 * _TITLE], _TITLE)
    return TurnRow(
        id=prompt.id, card=card.id, number=prompt.prompt_number, session_db_id=session.id,
        session=redact(session.title), agent=redact(prompt.agent), project=redact(project),
        created_at_epoch=prompt.epoch, title=redact(card.title) or said, prompt=said,
        status=card_status(card), evidence=redact(card.subtitle.partition(": ")[2]),
        why=redact(one_line(card.body, _REASON)), types=[redact(one) for one in types],
        files=redact_value(list(card.files_modified[:_MOST_FILES])),
    )  # fmt: skip


def count_turn_days(memory: Memory, request: requests.ProjectRequest) -> Days:
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


# --- what goes on at this moment ------------------------------------------------------------------

_RUNNING = 20 * 60_000  # ms without a sign, after which nobody works in it
_MOST = 12  # sessions at once
_LOOKED = 200  # items of a turn that are looked at
_OPEN, _PROJECTS = 30, 20  # open ends; projects, the last used, in which they are looked for
_DECIDED = 20
_WEEK = 7 * DAY
_TEXT = 300  # characters
_LABEL = 120
_FILES = 3
_SUBAGENTS = 20  # prompts of sub-agents behind the user's last one
_CACHED = 0.5  # seconds; several tabs ask the same
ToolState = Literal["", "running", "done", "failed"]


class ToolUse(Struct, kw_only=True):
    item: int
    name: str
    title: str
    state: ToolState
    epoch: int


class RunningSession(Struct, kw_only=True):
    """A session in which an agent works."""

    session: items.Session
    prompt: str
    prompt_number: int
    asked: int
    waits: bool
    tool: ToolUse | None
    errors: int
    given: int
    given_tokens: int
    used: int


class OpenLine(Struct, kw_only=True):
    """Something that was left undone, and the turn it was left in."""

    item: int
    title: str
    text: str
    status: str
    project: str
    epoch: int
    session_db_id: int
    files: list[str]


class Now(Struct, kw_only=True):
    now: int
    running: list[RunningSession]
    open: list[OpenLine]
    decided: list[items.Row]
    empty: bool
    connected: bool
    last: int


def show_now(memory: Memory, request: requests.ProjectRequest) -> Now:
    """What agents do at this moment, what is open, and what was decided in the last seven days."""
    key = f"now {request.project}"
    return memory.cached(key, _CACHED, lambda: _look_around(memory, request))


def _look_around(memory: Memory, request: requests.ProjectRequest) -> Now:
    store, now = memory.reading, memory.now
    filters, rows = requests.make_filters(memory, request), items.Rows(memory.reading)
    recent = store.sessions(replace(filters, since=now - _RUNNING), Paging(_MOST))
    newest = store.select(model.ANYTHING, Paging(1))
    return Now(
        now=now,
        running=[
            one
            for session in recent
            if not model.team_user(session.key)
            for one in _describe_running(store, rows, session)
        ],
        open=_find_open(store, filters, now),
        decided=rows.item_rows(_find_decided(store, filters, now)),
        empty=not newest,
        connected=bool(store.entries(Event, page=Paging(1))),
        last=max((one.epoch for one in newest), default=0),
    )


# --- sessions in which agents work ----------------------------------------------------------------


def _describe_running(
    store: Store, rows: items.Rows, session: model.Session
) -> Iterator[RunningSession]:
    """None where its end was told."""
    turn = next(iter(store.entries(Turn, {"session": session.id}, Paging(1))), None)
    # Only of a session with hooks there are events to look for.
    events = store.entries(Event, {"session": session.id}, Paging(1)) if turn else ()
    if any(event.name == "SessionEnd" for event in events):
        return
    here = items.session_filters(session)
    prompts = store.select(replace(here, kinds=("prompt",)), Paging(_SUBAGENTS))
    prompt = next((one for one in prompts if not one.actor), _NOTHING)
    since = replace(here, kinds=("message",), since=prompt.epoch or None)
    said = store.select(since, Paging(_LOOKED))
    tools = [one for one in said if one.role == "tool"]
    lines = store.entries(Injection, {"session": session.id})
    feedback = store.entries(Feedback, {"item": sorted({line.item for line in lines})})
    helped = {one.item for one in feedback if one.session == session.id and WORTH[one.what] > 0}
    tool = _describe_tool(tools[0]) if tools else None
    waits = bool(said) and said[0].role == "assistant"
    if turn is not None:
        waits = turn.state != "open"
    if waits and tool is not None and tool.state == "running":
        tool.state = ""
    yield RunningSession(
        session=rows.describe_session(session),
        prompt=shorten_text(redact(prompt.body), _TEXT),
        prompt_number=prompt.prompt_number,
        asked=prompt.epoch or session.started,
        waits=waits,
        tool=tool,
        errors=sum("error" in one.tags for one in tools),
        given=len({line.item for line in lines}),
        given_tokens=sum(line.tokens for line in lines),
        used=len(helped),
    )


def _describe_tool(item: Item) -> ToolUse:
    state: ToolState = "failed" if "error" in item.tags else "done"
    if state == "done" and item.call is not None and split_call(item)[1] is None:
        state = "running"
    title = shorten_text(redact(call_title(item) or item.title or item.body), _LABEL)
    return ToolUse(item=item.id, name=redact(item.tool), title=title, state=state, epoch=item.epoch)


# --- what is open, what was decided ---------------------------------------------------------------


def _find_open(store: Store, filters: Filters, now: int) -> list[OpenLine]:
    """What was left undone, over all projects, the newest first."""
    rows = store.totals("session", by=("project",), sums=("last",))
    keys = [
        key
        for key, last in sorted(rows, key=lambda row: -row[1])
        if last >= now - OPEN_FOR and key not in filters.without_projects
    ]
    names = {project.key: redact(project.name) for project in store.projects()}
    found = []
    for key in [one for one in keys if one in (filters.projects or keys)][:_PROJECTS]:
        cards = read_cards(store, Filters(projects=(key,)))
        for end in find_open_ends(cards):
            text = shorten_text(redact(end.text or end.card.body), _TEXT)
            found.append(_describe_open(store, end.card, text, names.get(key, "")))
    return sorted(found, key=lambda one: -one.epoch)[:_OPEN]


def _describe_open(store: Store, card: Item, text: str, project: str) -> OpenLine:
    session = store.session(card.session, card.agent)
    return OpenLine(
        item=card.id, title=shorten_text(redact(card.title), _LABEL), text=text,
        status=card_status(card), project=project, epoch=card.epoch,
        session_db_id=session.id if session else 0,
        files=[redact(file) for file in card.files_modified[:_FILES]],
    )  # fmt: skip


def _find_decided(store: Store, filters: Filters, now: int) -> Sequence[Item]:
    kinds = ("memory", "observation")
    wanted = replace(filters, kinds=kinds, types=("decision",), since=now - _WEEK)
    return store.select(wanted, Paging(_DECIDED))
