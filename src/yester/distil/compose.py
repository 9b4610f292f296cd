"""A session's turns into items: their observations in order, their summaries, and the session's.

What this session or another has told already within the hour is folded into that (`dedup`); what is
kept once for a project is left out where it was met more recently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from yester.agents.values import digest
from yester.distil.dedup import Observed, as_stored, fold, stored_already, unfold
from yester.distil.drafts import Gate
from yester.distil.history import LOOK_BACK
from yester.distil.made import (
    Made,
    as_summary,
    kept_once,
    observation,
    of_session,
    of_turn,
    turn_ref,
    whole,
)
from yester.distil.observe import observe
from yester.distil.outcomes import outcomes
from yester.distil.status import judge_turns
from yester.distil.summaries import (
    Summary,
    as_session,
    as_turn,
    mark_attempts,
    session_summary,
    turn_summary,
)
from yester.distil.turns import View
from yester.distil.work import Committed
from yester.ingest.prepare import shown_texts
from yester.model import DISTILLED, Item, Session, replace
from yester.store.contract import Store

_MESSAGES = 12  # taken apart at once


@dataclass(frozen=True, slots=True)
class Looked:
    """What there is of a session: its turns, which of them stay as they are, what came of it before
    (`known`) and which of that is not made anew (`older`)."""

    session: Session
    turns: Sequence[View]
    commits: Sequence[Sequence[Committed]]
    stay: Collection[str]
    known: Sequence[Item]
    older: Sequence[Item]
    todo: str = ""


@dataclass(frozen=True, slots=True)
class _Telling:
    """A turn that has something to tell, and its share of the turn's tokens for each item."""

    turn: View
    summary: Summary
    share: int


def compose(store: Store, looked: Looked) -> Iterator[Made | None]:
    """The items of the turns that do not stay, with None where others may have a turn."""
    came_out = outcomes(looked.turns, LOOK_BACK)
    yield None
    judged = judge_turns(looked.turns, LOOK_BACK)
    statuses = {turn.key: one for turn, one in zip(looked.turns, judged, strict=True)}
    yield None
    own = {item.ref for item in looked.known}
    observed = Observed()
    told: list[str] = []
    anew = [turn for turn in looked.turns if turn.key not in looked.stay]
    for item in looked.older:
        if item.kind == "observation" and not kept_once(item):
            before = as_stored(store, item)
            bare = unfold(before, anew)
            observed.add(bare)
            told += bare.item.facts
            if bare is not before:
                yield bare
    gate = Gate(shown_texts(store, looked.session.id, looked.session.key), told)
    telling: list[_Telling] = []
    for turn, done, outcome in zip(looked.turns, looked.commits, came_out, strict=True):
        if turn.key in looked.stay:
            continue
        yield from _taken_apart(turn, gate)
        drafts = observe(turn, done, outcome, gate)
        drafts = mark_attempts(turn, drafts, statuses[turn.key])
        summary = turn_summary(turn, drafts, gate, statuses[turn.key])
        yield None
        # A turn's tokens are shared out among all that may be made of it, its own summary and the
        # session's among them: none are counted twice.
        share = turn.tokens // max(len(drafts) + 2 * bool(summary), 1)
        facts: list[str] = []
        for draft in drafts:
            one = observation(looked.session, turn, draft, share)
            if kept_once(one.item):  # another session may take it over
                yield replace(one, repeated=_met_since(store, one.item))
                continue
            facts += one.item.facts
            earlier = observed.find(one.item)
            if earlier is None and one.item.ref not in own:
                other = stored_already(store, one.item, own)
                earlier = unfold(as_stored(store, other), [turn]) if other is not None else None
            one = fold(earlier, one) if earlier is not None else one
            observed.add(one)
            yield one
            yield None
        gate.keep(facts)
        if summary:
            telling.append(_Telling(turn, summary, share))
    yield from _summaries(store, looked, telling)


def _taken_apart(turn: View, gate: Gate) -> Iterator[None]:
    """The messages of a turn, a few at a time."""
    for number, item in enumerate(turn.said):
        gate.findings(item)
        if number % _MESSAGES == _MESSAGES - 1:
            yield None


def _met_since(store: Store, item: Item) -> bool:
    return any(
        old.source == DISTILLED and old.epoch > item.epoch for old in store.find_by_ref(item.ref)
    )


def _summaries(store: Store, looked: Looked, telling: Sequence[_Telling]) -> Iterator[Made]:
    """Of each turn, where several have something to tell; and of the session."""
    session = looked.session
    told = _told(looked.older)
    alone = bool(told) and told[0].type == "session"
    earlier = [
        (-1, source)
        for item in told
        for fact, source in store.evidence([item.id]).get(item.id, ())
        if fact == -1
    ]  # fmt: skip
    if alone and not telling:  # it has one turn still, and its summary stands
        once = as_turn(told[0].sections)
        sections = as_session(replace(as_summary(told[0]), sections=once), looked.todo).sections
        if sections != told[0].sections:
            same = replace(told[0], sections=sections, updated=0, id=0)
            yield Made(same, tuple(earlier))
        return
    if alone:  # it had one turn, and its summary is that turn's now
        ref = turn_ref(session, _turn_of(store, told[0], earlier))
        late = replace(
            told[0], ref=ref, type="turn", epoch=told[0].epoch - 1, updated=0, id=0,
            sections=as_turn(told[0].sections),
        )  # fmt: skip
        told = [late]
        yield Made(late, tuple(earlier))
    several = len(told) + len(telling) > 1
    if several:
        for one in telling:
            yield of_turn(session, one.turn, one.summary, one.share)
    every = [*map(as_summary, told), *(one.summary for one in telling)]
    if not every:
        return
    if several or told:
        last = session_summary(sorted(every, key=lambda one: one.epoch), looked.todo)
    else:
        last = as_session(every[0], looked.todo)
    number = max([*(one.turn.number for one in telling), *(item.prompt_number for item in told)])
    shares = sum(item.discovery_tokens for item in told) + sum(one.share for one in telling)
    sources = [*earlier, *(source for one in telling for source in whole(one.turn))]
    if last:
        yield of_session(session, number, last, shares, sources)


def _told(older: Sequence[Item]) -> list[Item]:
    """The summaries of turns that are not looked at again; one turn alone had its session's."""
    kept = [item for item in older if item.kind == "summary" and item.type == "turn"]
    return kept or [item for item in older if item.kind == "summary" and item.type == "session"]


def _turn_of(store: Store, summary: Item, sources: Sequence[tuple[int, int]]) -> str:
    """The key of the turn that was its session, by the prompt its summary was made of."""
    for item in store.get([source for _, source in sources]):
        if item.kind == "prompt" and item.prompt_number == summary.prompt_number:
            return digest(item.ref)
    return "0"
