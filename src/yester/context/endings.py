"""What ended an error that was met before: found by its mark, told in one line.

Only what holds is told: of several endings the last one, and none where errors of this kind end by
themselves, where a test was written to fail, or where every ending was another one, as of an
error that says too little. The same project goes before all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from yester.cards.tools import replaced_texts, typed_command
from yester.clock import Calendar
from yester.context.block import Here
from yester.context.cards import find_card, holds
from yester.context.lines import one_line, quote_text, short_name
from yester.model import Failure, Filters, Item, replace
from yester.store.contract import Store
from yester.tables import load_pattern
from yester.text.prose import strip_marks
from yester.text.statements import is_reason, split_statements

_ENDED = ("fixed", "instead")
_TITLE, _WHY, _CODE, _COMMAND = 90, 120, 70, 90  # characters
_MESSAGES = 6  # before the run that passed, in which a cause is looked for
_SEVERAL = 3  # endings that have nothing in common: the error says too little


@dataclass(frozen=True, slots=True)
class Ending:
    """An error that was met before, and what came of it the last time that anything did."""

    failure: Failure
    failing: Item  # the run that showed it
    times: int  # that it was met, each once until it ended
    last: int  # when
    run: Item | None = None  # that showed it no more
    changes: tuple[Item, ...] = ()
    tried: tuple[Item, ...] = ()
    card: Item | None = None  # of the turn in which it ended, else in which it was met
    cause: str = ""  # the last that was named before the run that passed
    foreign: str = ""  # the name of the project, where it is another one

    @property
    def ended(self) -> bool:
        return self.failure.came in _ENDED

    @property
    def shown_item(self) -> int:
        """The item that a line about it is of: what is done like it was used."""
        if self.failure.came == "instead" and self.run is not None:
            return self.run.id
        return self.card.id if self.card is not None else self.failing.id

    @property
    def files(self) -> tuple[str, ...]:
        return _edited_files(self.changes)


def find_ending(
    store: Store, marks: Sequence[str], here: Here, asked: bool = False
) -> Ending | None:
    """For the errors of a run, the most telling first; what the asking session has met itself it
    knows. As of `here.now`: what came later is not known yet. `asked`: a person wants to know."""
    for mark in marks:
        met = [row for row in store.entries(Failure, {"mark": mark}) if row.epoch < here.now]
        items = {item.id: item for item in store.get([row.item for row in met])}
        met = [row for row in met if row.item in items and not _is_hidden(items[row.item], here)]
        own = [row for row in met if items[row.item].project == here.project.key]
        rows = own or (met if here.everywhere else [])
        episodes = _join_episodes(rows, items, here.now)
        found = _choose_ending(store, episodes)
        if found is None:
            continue
        one = _read_ending(store, found, episodes, items, here)
        # What was changed in another project's file says nothing here, but why may.
        if asked or not (one.foreign and (not one.ended or (one.files and not one.cause))):
            return one
    return None


def _is_hidden(item: Item, here: Here) -> bool:
    own = bool(here.session) and item.session == here.session
    return own or item.project in here.private


def _join_episodes(rows: Iterable[Failure], items: dict[int, Item], now: int) -> list[Failure]:
    """One for each time that it was met, however many runs showed it; the newest first."""
    found: dict[tuple[str, int], Failure] = {}
    for row in sorted(rows, key=lambda row: -row.epoch):
        over = 0 < row.ended < now
        key = items[row.item].session, row.run if over else -(row.came == "printed")
        known = found.get(key)
        tried = row.tried if known is None or len(row.tried) >= len(known.tried) else known.tried
        came = row.came if over or row.came == "printed" else "left"
        base = known or row
        found[key] = replace(base, came=came, tried=tried)
    return list(found.values())


def _choose_ending(store: Store, episodes: Sequence[Failure]) -> Failure | None:
    if any(one.came == "printed" for one in episodes):
        return None
    ended = [one for one in episodes if one.came in _ENDED]
    vain = [one for one in episodes if one.came in ("itself", "meant")]
    if not ended:
        stuck = [one for one in episodes if one.tried]
        return stuck[0] if len(stuck) > 1 and not vain else None
    return None if len(vain) >= len(ended) else _agreed_ending(store, ended)


def _agreed_ending(store: Store, ended: Sequence[Failure]) -> Failure | None:
    """The last one; of several, the last that has anything in common with another."""
    if len(ended) < _SEVERAL:
        return ended[0]
    ids = [id_ for one in ended for id_ in (one.run, *one.changes)]
    items = {item.id: item for item in store.get(ids)}
    ways = [_way_of(one, items) for one in ended]
    for at, way in enumerate(ways):
        if any(way & other for other in (*ways[:at], *ways[at + 1 :])):
            return ended[at]
    return None


def _way_of(one: Failure, items: dict[int, Item]) -> set[str]:
    """The files that were changed, the commands that were run."""
    found = [items[id_] for id_ in (one.changes or (one.run,)) if id_ in items]
    return {
        *_edited_files(found),
        *(typed_command(item) for item in found if not item.files_modified),
    }


def _read_ending(
    store: Store, one: Failure, episodes: Sequence[Failure], items: dict[int, Item], here: Here
) -> Ending:
    failing = items[one.item]
    found = {item.id: item for item in store.get([one.run, *one.changes, *one.tried])}
    run = found.get(one.run)
    card = find_card(store, run or failing)
    names = {project.key: project.name for project in store.projects()}
    foreign = names.get(failing.project, "") if failing.project != here.project.key else ""
    return Ending(
        one, failing, len(episodes), episodes[0].epoch, run,
        tuple(found[id_] for id_ in one.changes if id_ in found),
        tuple(found[id_] for id_ in one.tried if id_ in found), card,
        _find_cause(store, failing, run) if run is not None and one.changes else "", foreign,
    )  # fmt: skip


def _find_cause(store: Store, failing: Item, run: Item) -> str:
    """What the agent said of why, of which the run that passed is the proof."""
    between = Filters(session=failing.session, agent=failing.agent, kinds=("message",),
                      since=failing.epoch, until=run.epoch)  # fmt: skip
    said = [item for item in store.select(between) if item.role == "assistant" and not item.actor]
    own = load_pattern("statements", "of the agent")
    for item in said[:_MESSAGES]:
        for one in split_statements(item.body):
            if is_reason(one.text) and not own.search(one.text) and "guess" not in one.tells:
                return strip_marks(one.text)
    return ""


def _edited_files(items: Iterable[Item]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for item in items for file in item.files_modified))


# --- in words ------------------------------------------------------------------------------------


def ending_lines(one: Ending, calendar: Calendar) -> list[str]:
    """The line about it, then shorter ones that say less."""
    several = one.times > 1
    times, last = (f"Seen {one.times} times", "last ") if several else ("Seen before", "")
    turn = f", turn {one.card.id}" if one.card is not None else f", item {one.failing.id}"
    where = f" in {short_name(one.foreign)}" if one.foreign else ""
    head = f"{times}{where} ({last}{calendar.day_label(one.last)}{turn}): "
    way = _describe_way(one)
    why = f", because {quote_text(one_line(one.cause, _WHY))}" if one.cause else ""
    tried = f"; {_describe_changes(one.tried[:2])} did not help" if one.tried else ""
    forms = (f"{way}{why}{tried}", f"{way}{tried}", way)
    return list(dict.fromkeys(f"{head}{form}." for form in forms))


def _describe_way(one: Ending) -> str:
    if one.failure.came == "instead" and one.run is not None:
        return f"{quote_text(one_line(typed_command(one.run), _COMMAND))} worked instead"
    if not one.ended or not one.changes:
        return "nothing has ended it"
    card, files = one.card, one.files
    if files and card is not None and holds(card) and set(card.files_modified) <= set(files):
        return f"ended by {quote_text(one_line(card.title, _TITLE))} in {_name_files(files)}"
    return f"ended by {_describe_changes(one.changes)}{_describe_edit(one.changes)}"


def _describe_edit(changes: Sequence[Item]) -> str:
    """The line that was put in, where it was one."""
    pairs = [pair for item in changes for pair in replaced_texts(item)]
    if len(pairs) != 1:
        return ""
    old, new = ([line.strip() for line in text.split("\n")] for text in pairs[0])
    added = [line for line in new if line and line not in old]
    return f" ({quote_text(one_line(added[0], _CODE))})" if len(added) == 1 else ""


def _describe_changes(changes: Sequence[Item]) -> str:
    files = _edited_files(changes)
    if files:
        return f"a change to {_name_files(files)}"
    typed = dict.fromkeys(filter(None, map(typed_command, changes)))
    return " and ".join(quote_text(one_line(one, _COMMAND)) for one in list(typed)[-2:])


def _name_files(files: Sequence[str]) -> str:
    names = dict.fromkeys(short_name(file.rsplit("/", 1)[-1]) for file in files)
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(list(names)[:2]) + more
