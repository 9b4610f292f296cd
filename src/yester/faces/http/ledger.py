"""What agents were shown, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from yester.deliver.lines import ESTIMATE_NOTE
from yester.faces.http import shapes
from yester.faces.http.parameters import FeedbackOf, GiveFeedback, LedgerOf
from yester.faces.http.problem import Refusal
from yester.memory import Memory, join_names
from yester.model import Feedback, Filters, Injection, Paging, Session, UseCounts
from yester.recall.feedback import GIVEN_BY_HAND, usefulness
from yester.redact import redact
from yester.store.contract import Store

_NOTHING = UseCounts(0, 0, {})
_BEGINNING = 200  # characters of a prompt
# What may have come of something, the strongest sign first, and its name here.
_USES: Sequence[tuple[str, shapes.Came]] = (
    ("useless", "useless"), ("useful", "useful"), ("acted", "acted-on"), ("opened", "opened"),
    ("fetched", "fetched"),
)  # fmt: skip


def injections(memory: Memory, given: LedgerOf) -> shapes.Ledger:
    session = memory.find_session(given.session).id if given.session else 0
    where = {name: id_ for name, id_ in (("session", session), ("item", given.item)) if id_}
    page = Paging(given.limit, before=given.before)
    lines = memory.store.entries(Injection, where, page)
    return shapes.Ledger(
        count=len(lines),
        injections=shown(memory.store, lines),
        next_before=lines[-1].id if len(lines) == given.limit else 0,
        note=ESTIMATE_NOTE,
    )


def shown(store: Store, lines: Sequence[Injection]) -> list[shapes.Shown]:
    items = {item.id: item for item in store.get(sorted({line.item for line in lines}))}
    names = {project.key: project.name for project in store.projects()}
    sessions: dict[int, Session | None] = {}
    came: defaultdict[int, list[Feedback]] = defaultdict(list)
    for one in store.entries(Feedback, {"item": list(items)}):
        came[one.item].append(one)
    prompts: dict[tuple[int, int], str] = {}
    told = []
    for line in lines:
        if line.session not in sessions:
            sessions[line.session] = next(
                iter(store.sessions(Filters(session_id=line.session))), None
            )
        item, session = items.get(line.item), sessions[line.session]
        asked = line.session, line.prompt_number
        if session is not None and asked not in prompts:
            prompts[asked] = _prompt(store, session, line.prompt_number)
        told.append(
            shapes.Shown(
                id=line.id, epoch=line.epoch, event=line.event, item=line.item,
                kind=item.kind if item else "", type=redact(item.type) if item else "",
                title=_title(item.title or item.body) if item else "(gone)",
                project=redact(names.get(item.project, item.project)) if item else "",
                session=session.key if session else "", session_db_id=line.session,
                prompt_number=line.prompt_number, score=round(line.score, 4), tokens=line.tokens,
                discovery_tokens=item.discovery_tokens if item else 0,
                reason=redact(line.reason),
                used=_used(line, came.get(line.item, ())),
                prompt=prompts.get(asked, ""),
            )
        )  # fmt: skip
    return told


def _used(line: Injection, came: Sequence[Feedback]) -> shapes.Came:
    """What came of it where it was shown; the user's word (of no session) counts everywhere."""
    known = {one.what for one in came if one.session in (0, line.session)}
    return next((name for what, name in _USES if what in known), "")


def _prompt(store: Store, session: Session, number: int) -> str:
    """The beginning of the prompt of this number in a session."""
    if not number:
        return ""
    here = Filters((session.project,), ("prompt",), session=session.key, agent=session.agent)
    found = store.select(here, Paging(1, number - 1, oldest_first=True))
    return redact(found[0].body)[:_BEGINNING] if found else ""


def _title(text: str) -> str:
    line = " ".join(redact(text).split())
    return line if len(line) <= 100 else line[:99].rstrip() + "…"


def feedback(memory: Memory, given: FeedbackOf) -> shapes.Feedback:
    where = {"item": given.item} if given.item else {}
    rows = memory.store.entries(Feedback, where, Paging(given.limit, before=given.before))
    return shapes.Feedback(
        count=len(rows),
        feedback=[
            shapes.Told(
                id=row.id, item=row.item, what=row.what, epoch=row.epoch, session_db_id=row.session
            )
            for row in rows
        ],
        next_before=rows[-1].id if len(rows) == given.limit else 0,
    )


def give(memory: Memory, given: GiveFeedback) -> shapes.Uses:
    """The last word of the user counts; having looked at something adds to what is known."""
    store, ids = memory.store, list(dict.fromkeys(given.ids))
    known = {item.id for item in store.get(ids)}
    if missing := [f"#{id_}" for id_ in ids if id_ not in known]:
        raise Refusal(
            404, f"no item {join_names(missing)}", parameter="ids", value=",".join(missing),
            fix="a search shows ids",
        )  # fmt: skip
    with store.transaction("ledger"):
        if given.what != "opened":
            for id_ in ids:
                store.retract(Feedback, {"item": id_, "what": GIVEN_BY_HAND})
        if given.what != "undo":
            store.append([Feedback(id_, given.what, memory.now) for id_ in ids])
    return shapes.Uses(items=use(store, ids))


def use(store: Store, ids: Sequence[int]) -> list[shapes.Use]:
    known = store.texts(ids).used
    return [
        shapes.Use(
            id=id_, use=round(usefulness(one), 4), shown=one.shown, used_in=one.used_in,
            feedback=dict(one.feedback),
        )
        for id_ in ids
        for one in [known.get(id_, _NOTHING)]
    ]  # fmt: skip
