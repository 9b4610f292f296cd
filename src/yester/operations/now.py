"""What goes on at this moment: the sessions in which agents work, what is open over all projects,
and what was decided in the last days.

A session is running while something of it is new and its end has not been told. Where hooks tell of
events, they say which tool is under way; else the last tool of the transcript does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from yester import model
from yester.cards.tools import call_title, split_call
from yester.clock import DAY
from yester.context.cards import OPEN_FOR, find_open_ends, read_cards
from yester.context.lines import card_status
from yester.memory import Memory
from yester.model import Event, Feedback, Filters, Injection, Item, Paging, Turn, replace
from yester.operations import fields, items
from yester.operations import request as requests
from yester.recall.feedback import WORTH
from yester.redact import redact
from yester.store.contract import Store
from yester.text.sentences import shorten_text

_RUNNING = 20 * 60_000  # ms without a sign, after which nobody works in it
_MOST = 12  # sessions at once
_LOOKED = 200  # items of a turn that are looked at
_OPEN, _PROJECTS = 30, 20  # open ends; projects, the last used, in which they are looked for
_DECIDED = 20
_WEEK = 7 * DAY
_TEXT = 300  # characters
_TITLE = 120
_FILES = 3
_SUBAGENTS = 20  # prompts of sub-agents behind the user's last one
_CACHED = 0.5  # seconds; several tabs ask the same
ToolState = Literal["", "running", "done", "failed"]


class NowRequest(requests.Request, kw_only=True):
    project: fields.ProjectName = ""


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


def show_now(memory: Memory, request: NowRequest) -> Now:
    """What agents do at this moment, what is open, and what was decided in the last seven days."""
    key = f"now {request.project}"
    return memory.cached(key, _CACHED, lambda: _look_around(memory, request))


def _look_around(memory: Memory, request: NowRequest) -> Now:
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
    event: Event | None = None
    if turn is not None:  # only of a session with hooks there are events to look for
        event = next(iter(store.entries(Event, {"session": session.id}, Paging(1))), None)
    if event is not None and event.name == "SessionEnd":
        return
    here = items.session_filters(session)
    prompts = store.select(replace(here, kinds=("prompt",)), Paging(_SUBAGENTS))
    prompt = next((one for one in prompts if not one.actor), None)
    since = replace(here, kinds=("message",), since=prompt.epoch if prompt else None)
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
        prompt=shorten_text(redact(prompt.body), _TEXT) if prompt else "",
        prompt_number=prompt.prompt_number if prompt else 0,
        asked=prompt.epoch if prompt else session.started,
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
    title = shorten_text(redact(call_title(item) or item.title or item.body), _TITLE)
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
        for end in find_open_ends(cards, now):
            text = shorten_text(redact(end.text or end.card.body), _TEXT)
            found.append(_describe_open(store, end.card, text, names.get(key, "")))
    return sorted(found, key=lambda one: -one.epoch)[:_OPEN]


def _describe_open(store: Store, card: Item, text: str, project: str) -> OpenLine:
    session = store.session(card.session, card.agent)
    return OpenLine(
        item=card.id, title=shorten_text(redact(card.title), _TITLE), text=text,
        status=card_status(card), project=project, epoch=card.epoch,
        session_db_id=session.id if session else 0,
        files=[redact(file) for file in card.files_modified[:_FILES]],
    )  # fmt: skip


def _find_decided(store: Store, filters: Filters, now: int) -> Sequence[Item]:
    kinds = ("memory", "observation")
    wanted = replace(filters, kinds=kinds, types=("decision",), since=now - _WEEK)
    return store.select(wanted, Paging(_DECIDED))
