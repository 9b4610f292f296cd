"""What agents were shown, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from yester import model
from yester.context.lines import ESTIMATE_NOTE
from yester.memory import Memory, missing_items
from yester.model import Filters, Injection, Item, Paging, Session, UseCounts
from yester.operations import fields
from yester.operations.answer import make_answer
from yester.operations.fields import about
from yester.operations.request import Request
from yester.recall.feedback import GIVEN_BY_HAND, WORTH, usefulness
from yester.redact import redact
from yester.store.contract import Store
from yester.text.sentences import shorten_text

Came = Literal["", "fetched", "opened", "acted-on", "useful", "useless"]
_NOTHING = UseCounts(0, 0, {})
_GONE = Item("", "", title="(gone)")
_BEGINNING, _TITLE = 200, 100  # characters of a prompt, of a title
# What may have come of something, the strongest sign first, and its name here.
_USES: Sequence[tuple[str, Came]] = (
    ("useless", "useless"), ("useful", "useful"), ("acted", "acted-on"), ("opened", "opened"),
    ("fetched", "fetched"),
)  # fmt: skip
LineNumber = Annotated[int, Meta(ge=0, le=fields.LARGEST)]


class LinesRequest(Request, kw_only=True):
    before: Annotated[LineNumber, about("Only lines before this one: the next page.")] = 0
    limit: Annotated[int, about("At most so many lines.", ge=1, le=500)] = 50


class LedgerRequest(LinesRequest, kw_only=True):
    session: Annotated[
        fields.Name, about("Only this session: its number, its id, or 6 characters of it.")
    ] = ""
    item: Annotated[LineNumber, about("Only this item.")] = 0


class FeedbackRequest(LinesRequest, kw_only=True):
    item: Annotated[LineNumber, about("Only of this item.")] = 0


class GiveFeedback(Request, kw_only=True):
    ids: Annotated[list[fields.Id], about("Items.", min_length=1, max_length=fields.MOST_IDS)]
    what: Annotated[
        Literal["useful", "useless", "opened", "undo"],
        about("Whether they were of use; opened: looked at; undo: takes a word back."),
    ]


class Shown(Struct, kw_only=True):
    """A line of the ledger: an item that an agent was shown."""

    id: int
    epoch: int
    event: str
    item: int
    kind: str
    type: str
    title: str
    project: str
    session: str
    session_db_id: int
    prompt_number: int
    score: float
    tokens: Annotated[int, about("What the line cost to read, about.")]
    discovery_tokens: Annotated[int, about("What the item was made from, about.")]
    reason: str
    used: Annotated[Came, about("The most that is known to have come of it.")]
    prompt: Annotated[str, about("The beginning of the prompt it was shown for.")]


class Ledger(Struct, kw_only=True):
    count: int
    injections: list[Shown]
    next_before: Annotated[int, about("The next page: before=…; 0: there is none.")]
    note: str


class Told(Struct, kw_only=True):
    id: int
    item: int
    what: str
    epoch: int
    session_db_id: int


class Feedback(Struct, kw_only=True):
    count: int
    feedback: list[Told]
    next_before: int


class Use(Struct, kw_only=True):
    """What is known of an item's use: from -1 (in the way) over 0 (nothing) to 1."""

    id: int
    use: float
    shown: int
    used_in: int
    feedback: dict[str, int]


class Uses(Struct, kw_only=True):
    items: list[Use]


def list_injections(memory: Memory, request: LedgerRequest) -> Ledger:
    """What agents were shown, the newest first."""
    session = memory.find_session(request.session).id if request.session else 0
    where = {name: id_ for name, id_ in (("session", session), ("item", request.item)) if id_}
    lines = memory.reading.entries(Injection, where, _lines_page(request))
    shown = describe_injections(memory.reading, lines)
    return Ledger(
        count=len(lines), injections=shown, next_before=_next_page(request, lines),
        note=ESTIMATE_NOTE,
    )  # fmt: skip


def _lines_page(request: LinesRequest) -> Paging:
    return Paging(request.limit, behind=(request.before,) if request.before else ())


def _next_page(request: LinesRequest, lines: Sequence[Injection | model.Feedback]) -> int:
    return lines[-1].id if len(lines) == request.limit else 0


def describe_injections(store: Store, lines: Sequence[Injection]) -> list[Shown]:
    items = {item.id: item for item in store.get(sorted({line.item for line in lines}))}
    names = {project.key: project.name for project in store.projects()}
    feedback: defaultdict[int, list[model.Feedback]] = defaultdict(list)
    for one in store.entries(model.Feedback, {"item": list(items)}):
        feedback[one.item].append(one)
    sessions = {
        number: next(iter(store.sessions(Filters(session_id=number))), None)
        for number in {line.session for line in lines}
    }
    prompts = {
        (number, prompt): _prompt_beginning(store, sessions[number], prompt)
        for number, prompt in {(line.session, line.prompt_number) for line in lines}
    }
    shown = []
    for line in lines:
        item, session = items.get(line.item, _GONE), sessions[line.session]
        shown.append(
            make_answer(
                Shown, line, kind=item.kind, type=redact(item.type),
                title=shorten_text(redact(item.title or item.body), _TITLE),
                project=redact(names.get(item.project, item.project)),
                session=session.key if session else "", session_db_id=line.session,
                score=round(line.score, 4), discovery_tokens=item.discovery_tokens,
                used=_strongest_use(line, feedback[line.item]),
                prompt=prompts[line.session, line.prompt_number],
            )
        )  # fmt: skip
    return shown


def _strongest_use(line: Injection, feedback: Sequence[model.Feedback]) -> Came:
    """What came of it where it was shown; the user's word (of no session) counts everywhere."""
    known = {one.what for one in feedback if one.session in (0, line.session)}
    return next((name for what, name in _USES if what in known), "")


def _prompt_beginning(store: Store, session: Session | None, number: int) -> str:
    """The beginning of the prompt of this number in a session."""
    if session is None or not number:
        return ""
    prompts = Filters((session.project,), ("prompt",), session=session.key, agent=session.agent)
    found = store.select(prompts, Paging(1, number - 1, oldest_first=True))
    return redact(found[0].body)[:_BEGINNING] if found else ""


def list_feedback(memory: Memory, request: FeedbackRequest) -> Feedback:
    """What came of it, the newest first."""
    where = {"item": request.item} if request.item else {}
    lines = memory.reading.entries(model.Feedback, where, _lines_page(request))
    told = [make_answer(Told, one, session_db_id=one.session) for one in lines]
    return Feedback(count=len(lines), feedback=told, next_before=_next_page(request, lines))


def give_feedback(memory: Memory, request: GiveFeedback) -> Uses:
    """Say whether items were of use.

    The last word of the user counts; having looked at something adds to what is known.
    """
    ids = list(dict.fromkeys(request.ids))
    record_feedback(memory, ids, request.what)
    return Uses(items=describe_use(memory.store, ids))


def record_feedback(memory: Memory, ids: Sequence[int], what: str) -> None:
    """What the user says of items, or takes back: by `undo` his own word, by `reset` all that came
    of them. With what="" it only makes sure that they are there."""
    known = {item.id for item in memory.reading.get(ids)}
    if missing := [id_ for id_ in ids if id_ not in known]:
        raise missing_items(missing)
    if not what:
        return
    with memory.store.transaction("ledger"):
        if what != "opened":
            taken_back = tuple(WORTH) if what == "reset" else GIVEN_BY_HAND
            for id_ in ids:
                memory.store.retract(model.Feedback, {"item": id_, "what": taken_back})
        if what not in ("undo", "reset"):
            memory.store.append([model.Feedback(id_, what, memory.now) for id_ in ids])


def describe_use(store: Store, ids: Sequence[int]) -> list[Use]:
    known = store.texts(ids).used
    return [
        make_answer(Use, one, id=id_, use=round(usefulness(one), 4))
        for id_ in ids
        for one in [known.get(id_, _NOTHING)]
    ]
