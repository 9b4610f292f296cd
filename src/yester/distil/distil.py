"""Sessions into what is distilled from them: read, compose, write; in small steps.

A session is written in one transaction with the mark that it is done, so it can be stopped at any
time. Distilled again, it gives the same items under the same refs; what no longer comes of it goes.
Of a long session only the turns since something new, and some before them, are made anew, and none
that a language model has noted since it last grew (`refining`). Where memory is bounded it is done
in several goes. Turn by turn, in several goes and all at once give the same, with the same reader.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from yester.distil.compose import Looked, compose
from yester.distil.dedup import with_others
from yester.distil.history import LOOK_BACK, History, Rules, distilled_items
from yester.distil.made import Made, kept_once
from yester.distil.turns import View
from yester.distil.work import Committed, assigned
from yester.ingest.prepare import prepare_item
from yester.memories.keeping import keep_rules, link_decisions
from yester.model import Entry, Item, PutCounts, Refinement, Session, Waiting, replace
from yester.store.contract import Store

if TYPE_CHECKING:
    from yester.text.reader import TitleFinder


@dataclass(slots=True)
class Report:
    sessions: int = 0
    turns: int = 0
    steps: int = 0  # uses of tools
    observations: int = 0
    summaries: int = 0
    repeated: int = 0  # told before: folded into that, or left out where it was met since
    rules: int = 0  # that a user typed
    links: int = 0  # between a decision and the one it undoes
    put: PutCounts = field(default_factory=PutCounts)


@dataclass(frozen=True, slots=True)
class _Written:
    """What takes the place of what: `gone` is of turns that were made anew, and came no more."""

    entries: Sequence[Entry]
    gone: Sequence[Item]
    rest: int  # since when the session waits still; 0: it is done


def distil(
    store: Store, waiting: Waiting, rules: Rules, report: Report, now: int = 0
) -> Iterator[None]:
    """Distil a session and store what comes of it, in steps of a few milliseconds. `now` dates
    what is kept for good; 0: the session's end. With `rules.most` it may wait still afterwards."""
    session = waiting.session
    noted = _noted(store, session)
    known = distilled_items(store, session.id)
    history = History(store, session.id, waiting.since)
    yield from history.read(rules)
    first, turns = history.first, history.turns()
    yield
    commits = assigned(turns, LOOK_BACK)
    stay = {
        turn.key
        for turn, done in zip(turns, commits, strict=True)
        if turn.started < first or noted.get(turn.key) == shape(turn, done)
    }
    turns = yield from _read_titles(turns, commits, stay, rules.reader)
    older = [item for item in known if _older(item, turns, stay, first)]
    made: dict[str, Made] = {}
    repeated = 0
    looked = Looked(session, turns, commits, stay, known, older, history.todo(turns))
    for one in compose(store, looked):
        if one is None:
            yield
        elif one.repeated:
            repeated += 1
        else:
            repeated += one.folded
            made[one.item.ref] = one
    again = (turn for turn in turns if turn.started < first or turn.key not in stay)
    looked_at = frozenset(id_ for turn in again for id_ in turn.ids)
    for had in known:
        if had.ref not in made or had in older:
            continue
        made[had.ref] = _as_before(made[had.ref], had)
        if had.kind == "observation" and not kept_once(had):
            made[had.ref] = with_others(store, made[had.ref], had, looked_at)
    entries = []
    for each in made.values():
        entries.append(replace(prepare_item(each.item), evidence=tuple(each.sources)))
        yield
    kept = {item.ref for item in older} | made.keys()
    gone = [
        item
        for item in known
        # What came of turns that are looked at another time stays until then.
        if item.ref not in kept and not (history.rest and item.epoch >= history.rest)
    ]
    written = _Written(entries, gone, history.rest)
    if (put := _write(store, waiting, noted, written)) is None:
        yield from distil(store, waiting, rules, report, now)
        return
    yield
    typed = [turn.prompt for turn in turns if turn.prompt and turn.started >= first]
    report.rules += keep_rules(store, session, typed, now or session.ended)
    yield
    for links in link_decisions(store, session):
        report.links += links
        yield
    report.put += put
    report.repeated += repeated
    report.sessions += not history.rest
    fresh = [turn for turn in turns if turn.key not in stay]
    report.turns += len(fresh)
    report.steps += sum(len(turn.steps) for turn in fresh)
    own = [one.item for one in made.values() if one.item.session == session.key]
    observed = sum(item.kind == "observation" for item in own)
    report.observations += observed
    report.summaries += len(own) - observed


def _read_titles(
    turns: Sequence[View],
    commits: Sequence[Sequence[Committed]],
    stay: Collection[str],
    reader: TitleFinder | None,
) -> Generator[None, None, list[View]]:
    """The turns with what the reader calls them, one in a step. A turn whose work was committed is
    named by its commit; one without a closing message was broken off."""
    named = []
    for turn, done in zip(turns, commits, strict=True):
        if reader and not done and turn.key not in stay and turn.closing is not None:
            request = turn.prompt.body if turn.prompt is not None else ""
            title = reader.find_title(request, turn.closing.body)
            named.append(replace(turn, read_title=title.text) if title.usable else turn)
            yield
        else:
            named.append(turn)
    return named


def _as_before(made: Made, had: Item) -> Made:
    """With the place in a chain of decisions that it had."""
    return replace(made, item=replace(made.item, status=had.status, supersedes=had.supersedes))


def shape(turn: View, commits: Sequence[Committed]) -> str:
    """How far a turn has come: another one when something was added to it, or its work was
    committed later."""
    return f"{turn.ended}-{turn.tokens}-{len(turn.steps)}-{len(commits)}"


def _noted(store: Store, session: Session) -> dict[str, str]:
    """The turns whose notes are a language model's, and how far they had come."""
    made = store.entries(Refinement, {"session": session.id})
    return {one.turn: one.shape for one in made if not one.reason}


def _older(item: Item, turns: Sequence[View], stay: Collection[str], first: int) -> bool:
    """Is it of a turn that is not made anew?"""
    for turn in turns:
        if f":{turn.key}:" in item.ref:
            return turn.key in stay
    own = any(turn.key in stay for turn in turns if turn.number == item.prompt_number != 0)
    return own or item.epoch < first


def _write(
    store: Store, waiting: Waiting, noted: Mapping[str, str], written: _Written
) -> PutCounts | None:
    """None, and nothing done, where a language model has noted a turn meanwhile."""
    # What a decision had undone that is none any more holds again.
    freed = store.get([item.supersedes for item in written.gone if item.supersedes])
    with store.transaction("work"):
        if _noted(store, waiting.session) != noted:
            return None
        if written.gone:
            store.remove([item.id for item in written.gone])
            store.put([prepare_item(replace(item, status="active")) for item in freed])
        put = store.put(written.entries)
        store.settle_session(waiting, written.rest)
    return put
