"""How things came out: tests that failed and then passed, errors and what ended them, what was
tried and did not help, commands that do not work here and those that did instead.

A run of a check tells only about what it covers: an error has ended when a run that could have
shown it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from yester.cards.tools import CHECKS, Error, RunCounts, command_line, command_words, program_name
from yester.cards.turns import Step, View
from yester.tables import load_pattern

_OPEN = 12  # errors and failed runs that are waited for at once
_FEW_STEPS = 5  # within so many uses of the shell a failed command is tried in another way
_ALIKE = 0.34  # share of common words from which one command is another try at the same thing
_PATHLIKE = re.compile(r"[/.:]|^Test|^test_")


@dataclass(frozen=True, slots=True)
class Ended:
    """An error that stopped, the run that shows it, and what was done in between."""

    error: Error
    failing: Step
    passing: Step
    edits: tuple[Step, ...]
    commands: tuple[Step, ...]
    attempts: int  # runs that showed it
    tries: tuple[Step, ...] = ()  # edits after which it was still there


@dataclass(frozen=True, slots=True)
class Stuck:
    """An error that several changes did not end."""

    error: Error
    failing: Step
    tries: tuple[Step, ...]
    attempts: int


@dataclass(frozen=True, slots=True)
class Instead:
    """A command that failed, and the like of it that worked right afterwards."""

    error: Error
    failed: Step
    worked: Step


@dataclass(frozen=True, slots=True)
class Passed:
    """Tests that failed and then passed."""

    failing: Step
    passing: Step
    before: RunCounts
    after: RunCounts


@dataclass(frozen=True, slots=True)
class Outcomes:
    ended: tuple[Ended, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    instead: tuple[Instead, ...] = ()
    passed: tuple[Passed, ...] = ()


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run that showed an error, and what had been tried since the one before."""

    step: Step
    place: int
    turn: int
    tries: tuple[Step, ...] = ()


@dataclass(slots=True)
class _Open:
    error: Error
    seen: list[_Seen]


def find_outcomes(turns: Sequence[View], back: int) -> list[Outcomes]:
    """For each turn what came to its end in it. What lies more than so many turns back does not
    count, so that looking at the last turns alone gives the same."""
    steps = [step for turn in turns for step in turn.steps]
    numbers = [number for number, turn in enumerate(turns) for _ in turn.steps]
    ended, stuck = _follow_errors(steps, numbers, back)
    instead = _find_substitutes(steps, numbers, back)
    passed = _find_passes(steps, numbers, back)
    made = []
    for turn in turns:
        own = {step.item.id for step in turn.steps}
        made.append(
            Outcomes(
                tuple(one for one in ended if one.passing.item.id in own),
                tuple(one for one in stuck if one.failing.item.id in own),
                tuple(one for one in instead if one.worked.item.id in own),
                tuple(one for one in passed if one.passing.item.id in own),
            )
        )
    return made


def _follow_errors(
    steps: Sequence[Step], turns: Sequence[int], back: int
) -> tuple[list[Ended], list[Stuck]]:
    open_: dict[str, _Open] = {}
    ended: list[Ended] = []
    stuck: list[Stuck] = []
    for place, step in enumerate(steps):
        turn = turns[place]
        if step.ran is None or step.ran.refused or step.kind not in CHECKS:
            continue
        shown = {e.fingerprint: e for e in step.errors} if step.failing else {}
        for mark, one in list(open_.items()):
            last = one.seen[-1]
            if turn - last.turn > back:
                stuck += _give_up_error(one, back)
            elif mark in shown or not covers_run(step, last.step, not shown):
                continue
            else:
                ended += _end_error(one, step, steps[last.place + 1 : place], turn - back)
            del open_[mark]
        for mark, error in shown.items():
            # The one that was seen last stands last, however early it was seen first.
            known = open_.pop(mark, _Open(error, []))
            open_[mark] = known
            between = steps[known.seen[-1].place + 1 : place] if known.seen else ()
            tries = tuple(s for s in between if s.edited or _installs(s))
            known.seen.append(_Seen(step, place, turn, tries))
            if len(open_) > _OPEN:
                stuck += _give_up_error(open_.pop(next(iter(open_))), back)
    return ended, [
        *stuck,
        *(found for one in open_.values() for found in _give_up_error(one, back)),
    ]


def _end_error(one: _Open, passing: Step, between: Sequence[Step], since: int) -> Iterator[Ended]:
    edits = tuple(s for s in between if s.edited)
    commands = tuple(s for s in between if _installs(s))
    last = one.seen[-1].step
    assert passing.ran is not None
    assert last.ran is not None
    if not edits and command_line(passing.ran.command) != command_line(last.ran.command):
        commands += (passing,)  # it was run in another way
    if edits or commands:
        seen = [run for run in one.seen if run.turn >= since]
        tries = tuple(step for run in seen[1:] for step in run.tries)
        attempts = 1 + sum(bool(run.tries) for run in seen[1:])
        yield Ended(one.error, seen[0].step, passing, edits, commands, attempts, tries)


def _give_up_error(one: _Open, back: int) -> Iterator[Stuck]:
    """Several changes, and it was still there when it was last looked for."""
    last = one.seen[-1]
    seen = [run for run in one.seen if run.turn >= last.turn - back]
    tries = tuple(step for run in seen[1:] for step in run.tries)
    attempts = 1 + sum(bool(run.tries) for run in seen[1:])
    if attempts > 1 and any(step.edited for step in tries):
        yield Stuck(one.error, last.step, tries, attempts)


def _installs(step: Step) -> bool:
    """Does it change anything? Looking and checking do not."""
    return step.ran is not None and step.kind == "install" and not step.failed


def covers_run(run: Step, earlier: Step, clean: bool) -> bool:
    """Would this run have shown what the earlier one did?"""
    if run.ran is None or earlier.ran is None or run.kind != earlier.kind:
        return False
    now, then = run.main, earlier.main
    if now == then:
        return True
    if program_name(now) != program_name(then):
        return False
    named, wanted = _named_targets(now), _named_targets(then)
    if not named:
        return clean  # all of it
    return bool(named & wanted) if wanted else False


@lru_cache(maxsize=512)
def _named_targets(command: str) -> frozenset[str]:
    found = command_words(command)[1:]
    return frozenset(word for word in found if _PATHLIKE.search(word) and word[0] != "-")


def _find_substitutes(steps: Sequence[Step], turns: Sequence[int], back: int) -> list[Instead]:
    shell = [(at, step) for at, step in enumerate(steps) if step.ran is not None]
    found: list[Instead] = []
    met: dict[str, int] = {}  # fingerprint → the turn in which it was met last
    for nth, (at, step) in enumerate(shell):
        shown = _not_to_be_used(step)
        if shown is None:
            continue
        others = [
            (_likeness(step, other), then, other)
            for then, other in shell[nth + 1 : nth + 1 + _FEW_STEPS]
            if turns[then] - turns[at] <= back
            and not (other.failing or any(between.edited for between in steps[at:then]))
        ]
        best, then, other = max(others, key=lambda one: one[0], default=(0.0, at, step))
        if best < _ALIKE:
            continue
        mark = shown.fingerprint
        if mark not in met or turns[then] - met[mark] > back:
            found.append(Instead(shown, step, other))
        met[mark] = turns[at]
    return found


def _not_to_be_used(step: Step) -> Error | None:
    """What a command says that does not work here; None for other failures."""
    if step.ran is None or not step.ran.failed or step.kind == "look":
        return None
    if " commit" in step.ran.command or not step.errors:
        return None
    shown = step.errors[0]
    # Wrong for this once: it says nothing about how things are done here.
    if load_pattern("tools", "of the moment").search(shown.text):
        return None
    if step.kind in CHECKS and not load_pattern("tools", "misused").search(shown.text):
        return None  # a check that found something wrong has worked
    return shown


def _likeness(one: Step, other: Step) -> float:
    """How much of two commands is the same; 0 where it is all, or where one only looks."""
    assert one.ran is not None
    assert other.ran is not None
    if other.kind == "look" or other.ran.refused:
        return 0.0
    first, second = command_line(one.ran.command), command_line(other.ran.command)
    here, there = set(command_words(first)), set(command_words(second))
    if first == second or not here | there:
        return 0.0
    return len(here & there) / len(here | there)


def _find_passes(steps: Sequence[Step], turns: Sequence[int], back: int) -> list[Passed]:
    found: list[Passed] = []
    open_: list[tuple[Step, RunCounts, int]] = []
    for place, step in enumerate(steps):
        now, turn = step.counted, turns[place]
        if now is None:
            continue
        open_ = [one for one in open_ if turn - one[2] <= back]
        if now.failed:
            open_ = [one for one in open_ if not covers_run(step, one[0], False)]
            open_ = [*open_[-_OPEN:], (step, now, turn)]
            continue
        for one in list(open_):
            if covers_run(step, one[0], True) and now.passed:
                found.append(Passed(one[0], step, one[1], now))
                open_.remove(one)
    return found


def edited_files(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for step in steps for file in step.edited))
