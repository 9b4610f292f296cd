"""How things came out: tests that failed and then passed, errors and what ended them, what was
tried and did not help, commands that do not work here and those that did instead.

A run of a check tells only about what it covers: an error has ended when a run that could have
shown it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise

from yester.cards.tools import CHECKS, Error, command_words, file_names, program_name
from yester.cards.turns import Step, View
from yester.model import replace
from yester.tables import load_pattern
from yester.text.statements import TITLE, cut_clause, word_overlap

_OPEN = 12  # errors and failed runs that are waited for at once
_FEW_STEPS = 5  # within so many uses of the shell a failed command is tried in another way
_ALIKE = 0.34  # share of common words from which one command is another try at the same thing
_PATHLIKE = re.compile(r"[/.:]|^Test|^test_")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Something that failed, and what came of it."""

    error: Error
    failing: Step  # the first run that showed it
    last: Step  # the run that shows it no more, that worked instead, or that showed it last
    edits: tuple[Step, ...] = ()  # after which it was gone
    commands: tuple[Step, ...] = ()
    tries: tuple[Step, ...] = ()  # after which it was still there
    shown: Error | None = None  # as the last run said it, where it was still there
    attempts: int = 1

    @property
    def changes(self) -> str:
        """After what it was gone."""
        changed = f"changes to {file_names(edited_files(self.edits))}" if self.edits else ""
        commands = [quote_command(step, typed=True) for step in self.commands[:2]]
        return " and ".join(filter(None, (changed, ", ".join(commands))))

    @property
    def tried(self) -> str:
        """What did not help: the files that were changed, the commands that were run."""
        lines = [
            f"a change to {file_names(step.edited)}"
            if step.edited
            else quote_command(step, typed=True)
            for step in self.tries
        ]
        return "Did not help: " + ", ".join(dict.fromkeys(lines)) if lines else ""


@dataclass(slots=True)
class Outcomes:
    """What came to its end in a turn."""

    ended: list[Outcome] = field(default_factory=list)  # errors that stopped
    stuck: list[Outcome] = field(default_factory=list)  # errors that several changes did not end
    instead: list[Outcome] = field(default_factory=list)  # commands that the like of them replaced
    passed: list[tuple[Step, Step]] = field(default_factory=list)  # tests that failed, then passed


def find_outcomes(turns: Sequence[View], back: int) -> list[Outcomes]:
    """For each turn what came to its end in it. What lies more than so many turns back does not
    count, so that looking at the last turns alone gives the same."""
    runs = _Runs(
        [step for turn in turns for step in turn.steps],
        [number for number, turn in enumerate(turns) for _ in turn.steps],
        back,
        [Outcomes() for _ in turns],
    )
    runs.follow_errors()
    runs.find_substitutes()
    runs.find_passes()
    return runs.found


@dataclass(frozen=True, slots=True)
class _Runs:
    """All steps of a session; each is known by its place among them."""

    steps: Sequence[Step]
    turns: Sequence[int]  # the number of each step's turn
    back: int
    found: list[Outcomes]  # of each turn

    def follow_errors(self) -> None:
        open_: dict[str, tuple[Error, list[int]]] = {}  # fingerprint → the runs that showed it
        said: dict[str, Error] = {}  # fingerprint → as it was said last
        for place, step in enumerate(self.steps):
            if not step.checks:
                continue
            shown = {e.fingerprint: e for e in step.errors} if step.failing else {}
            for mark, (error, seen) in list(open_.items()):
                if self._is_far(seen[-1], place):
                    self._give_up(error, seen, said[mark])
                elif mark in shown or not covers_run(step, self.steps[seen[-1]], not shown):
                    continue
                else:
                    self._end_failure(error, seen, place)
                del open_[mark]
            for mark, error in shown.items():
                # The one that was seen last stands last, however early it was seen first.
                first, seen = open_.pop(mark, (error, []))
                open_[mark], said[mark] = (first, [*seen, place]), error
                if len(open_) > _OPEN:
                    oldest = next(iter(open_))
                    self._give_up(*open_.pop(oldest), said[oldest])
        for mark, (error, seen) in open_.items():
            self._give_up(error, seen, said[mark])

    def _is_far(self, place: int, later: int) -> bool:
        return self.turns[later] - self.turns[place] > self.back

    def _end_failure(self, error: Error, seen: Sequence[int], place: int) -> None:
        """It ended if anything was done about it, or it was run in another way."""
        passing, between = self.steps[place], self.steps[seen[-1] + 1 : place]
        edits = tuple(step for step in between if step.edited)
        commands = tuple(step for step in between if _installs(step))
        if not edits and passing.typed != self.steps[seen[-1]].typed:
            commands += (passing,)
        if edits or commands:
            one = replace(self._sum_up(error, seen, place), edits=edits, commands=commands)
            self.found[self.turns[place]].ended.append(one)

    def _give_up(self, error: Error, seen: Sequence[int], shown: Error) -> None:
        """Several changes, and it was still there when it was last looked for."""
        one = replace(self._sum_up(error, seen, seen[-1]), shown=shown)
        if one.attempts > 1 and any(step.edited for step in one.tries):
            self.found[self.turns[seen[-1]]].stuck.append(one)

    def _sum_up(self, error: Error, seen: Sequence[int], last: int) -> Outcome:
        near = [place for place in seen if not self._is_far(place, last)]
        tries: tuple[Step, ...] = ()
        attempts = 1
        for before, after in pairwise(near):
            between = self.steps[before + 1 : after]
            tried = tuple(step for step in between if step.edited or _installs(step))
            tries += tried
            attempts += bool(tried)
        return Outcome(error, self.steps[near[0]], self.steps[last], tries=tries, attempts=attempts)

    def find_substitutes(self) -> None:
        met: dict[str, int] = {}  # fingerprint → where it was met last
        for place, step in enumerate(self.steps):
            found = find_substitute(self.steps, self.turns, place, self.back)
            if found is None:
                continue
            shown, then = found
            mark = shown.fingerprint
            if mark not in met or self._is_far(met[mark], then):
                worked = Outcome(shown, step, self.steps[then])
                self.found[self.turns[then]].instead.append(worked)
            met[mark] = place

    def find_passes(self) -> None:
        open_: list[int] = []  # runs with failures
        for place, step in enumerate(self.steps):
            if not step.counted:
                continue
            open_ = [one for one in open_ if not self._is_far(one, place)]
            clean = not step.counted.failed
            covered = [one for one in open_ if covers_run(step, self.steps[one], clean)]
            open_ = [one for one in open_ if one not in covered]
            if not clean:
                open_ = [*open_[-_OPEN:], place]
            else:
                passed = self.found[self.turns[place]].passed
                passed += [(self.steps[one], step) for one in covered]


def find_substitute(
    steps: Sequence[Step], turns: Sequence[int], place: int, back: int
) -> tuple[Error, int] | None:
    """What a command says that does not work here, and where one like it did soon after, with
    nothing changed in between."""
    shown = _unusable_command(steps[place])
    if shown is None:
        return None
    later = range(place + 1, len(steps))
    shell = islice((at for at in later if steps[at].ran.command), _FEW_STEPS)
    others = [
        (_likeness(steps[place], steps[then]), then)
        for then in shell
        if turns[then] - turns[place] <= back
        and not steps[then].failing
        and not any(between.edited for between in steps[place:then])
    ]
    best, then = max(others, key=lambda one: one[0], default=(0.0, place))
    return (shown, then) if best >= _ALIKE else None


def _installs(step: Step) -> bool:
    """Does it change anything? Looking and checking do not."""
    return step.kind == "install" and not step.failed


def covers_run(run: Step, earlier: Step, clean: bool) -> bool:
    """Would this run have shown what the earlier one did?"""
    if run.kind != earlier.kind:
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


def _unusable_command(step: Step) -> Error | None:
    """What a command says that does not work here; None for other failures."""
    if not step.ran.failed or step.kind == "look":
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
    if other.kind == "look" or other.ran.refused or one.typed == other.typed:
        return 0.0
    return word_overlap(command_words(one.typed), command_words(other.typed))


def edited_files(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for step in steps for file in step.edited))


# --- in words ------------------------------------------------------------------------------------

_LINE, _COMMAND = 160, 100  # characters
_MOST_RUNS = 4
_PLACE = re.compile(
    r"\A(?:[\w./@+\\-]+[:(]\d+(?:[:,]\d+\)?)?:?\s*(?:-\s*)?)+(?:error (?:TS\d+)?:?\s*)?"
)
_SAID_SO = re.compile(
    r"\A(?:(?:error|fatal|ERROR|Error|zsh|bash|sh|\(eval\)):(?:\d+:| line \d+:)?\s*)+"
)


def describe_outcomes(turn: View, found: Outcomes) -> str:
    """How the checks of a turn came out, a line each: the exit status of every run, tests that
    failed before they passed, errors and the changes after which they were gone."""
    lines = list(_run_lines(turn))
    for failing, passing in found.passed[-2:]:
        lines.append(f"{quote_command(passing)}: {failing.counted}, then {passing.counted}")
    for ended in found.ended[:_MOST_RUNS]:
        lines.append(f"{cut_clause(ended.error.text, _LINE)}: gone after {ended.changes}")
    return "\n".join(lines)


def _run_lines(turn: View) -> Iterator[str]:
    runs: dict[str, list[str]] = {}
    for step in turn.steps:
        if step.checks:
            hidden = step.failing and not step.ran.status  # by a pipe
            told = f"0 in a pipe ({step.counted})" if hidden else str(step.ran.status)
            runs.setdefault(quote_command(step), []).append(told)
    for command, every in list(runs.items())[-_MOST_RUNS:]:
        kept = every if len(every) <= _MOST_RUNS else [*every[:2], "…", *every[-2:]]
        yield f"{command} ended with status {', '.join(kept)}"


def error_title(text: str) -> str:
    """An error without the place it was met at."""
    bare = load_pattern("tools", "duration").sub("", _SAID_SO.sub("", _PLACE.sub("", text)))
    line = " ".join((bare if len(bare) >= 12 else text).split())
    return line if len(line) <= TITLE else line[: line.rfind(" ", 20, TITLE)].rstrip(" ,:;(") + "…"


def quote_command(step: Step, typed: bool = False) -> str:
    """The part of it that matters, or all of it as it was `typed`."""
    return f"`{cut_clause(step.typed if typed else step.main, _COMMAND)}`"
