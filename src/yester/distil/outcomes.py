"""How things came out: tests that failed and then passed, errors and what ended them, what was
tried and did not help, commands that do not work here and those that did instead.

A run of a check tells only about what it covers: an error has ended when a run that could have
shown it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from yester.distil.commands import CHECKS, main_part, program, typed, words
from yester.distil.fingerprint import Error, errors
from yester.distil.turns import Step, View

_FEW_STEPS = 5  # within so many uses of the shell a failed command is tried in another way
_ALIKE = 0.34  # share of common words from which one command is another try at the same thing
# Wrong for this once: it says nothing about how things are done here.
_OF_THE_MOMENT = re.compile(
    r"no such file|not a directory|cannot access|can't read|pathspec|conflict"
    r"|already exists|not found: /|nothing to commit|rejected|diverg|unstaged|uncommitted"
    r"|up to date|timed? ?out"
    r"|could not resolve host|connection|already claimed|not a git repository|HTTP \d"
    r"|rate limit|overwritten|single revision",
    re.I,
)
_MISUSED = re.compile(
    r"unrecogni[sz]ed|unknown|unexpected argument|command not found|missing script|script not found"
    r"|no such (?:command|option|task)|invalid (?:option|argument|flag)|illegal option"
    r"|not installed"
    r"|could not (?:find|determine)|no module named|cannot find (?:module|package)",
    re.I,
)
_PATHLIKE = re.compile(r"[/.:]|^Test|^test_")


@dataclass(frozen=True, slots=True)
class Counted:
    passed: int
    failed: int


# How test runners sum up: name, pattern with `passed` and `failed`, example, what it tells.
RUNNERS: tuple[tuple[str, str, str, tuple[int, int]], ...] = (
    (
        "pytest",
        r"^=*+[ \t]*+(?:(?P<failed>\d+) failed,? ?)?(?:(?P<passed>\d+) passed)?(?:, )?.*\bin"
        r" [\d.]+s\b",
        "=== 2 failed, 10 passed in 0.31s ===",
        (10, 2),
    ),
    (
        "jest",
        r"^Tests:\s+(?:(?P<failed>\d+) failed, )?(?:\d+ (?:skipped"
        r"|todo), )*(?:(?P<passed>\d+) passed, )?\d+ total",
        "Tests:       1 failed, 5 passed, 6 total",
        (5, 1),
    ),
    (
        "vitest",
        r"^[ \t]*+Tests[ \t]++(?:(?P<failed>\d+) failed \| )?(?:(?P<passed>\d+) passed)?.*\(\d+\)",
        "      Tests  1 failed | 5 passed (6)",
        (5, 1),
    ),
    (
        "bun",
        r"^ +(?P<passed>\d+) pass\n(?: +\d+ (?:skip|todo)\n)* +(?P<failed>\d+) fail",
        " 124 pass\n 1 fail\n",
        (124, 1),
    ),
    (
        "cargo",
        r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed",
        "test result: FAILED. 3 passed; 1 failed; 0 ignored",
        (3, 1),
    ),
    (
        "unittest",
        r"^Ran (?P<passed>\d+) tests? in [\d.]+s\s+FAILED \((?:failures=(?P<failed>\d+))?.*\)",
        "Ran 5 tests in 0.01s\n\nFAILED (failures=1)",
        (4, 1),
    ),
    (
        "unittest, all well",
        r"^Ran (?P<passed>\d+) tests? in [\d.]+s\s+OK",
        "Ran 5 tests in 0.01s\n\nOK",
        (5, 0),
    ),
    (
        "mocha",
        r"^[ \t]++(?P<passed>\d+) passing\b.*(?:\n[ \t]+\d+ pending)?(?:\n[ \t]+(?P<failed>\d+)"
        r" failing)?",
        "  7 passing (20ms)\n  2 failing",
        (7, 2),
    ),
    (
        "rspec",
        r"^(?P<passed>\d+) examples?, (?P<failed>\d+) failures?",
        "10 examples, 1 failure",
        (9, 1),
    ),
    (
        "exunit",
        r"^(?P<passed>\d+) tests?, (?P<failed>\d+) failures?",
        "10 tests, 1 failure",
        (9, 1),
    ),
    (
        "maven",
        r"Tests run: (?P<passed>\d+), Failures: (?P<failed>\d+)",
        "Tests run: 5, Failures: 1, Errors: 0",
        (4, 1),
    ),
    (
        "dotnet",
        r"Failed:\s+(?P<failed>\d+), Passed:\s+(?P<passed>\d+)",
        "Failed!  - Failed:     1, Passed:     5, Skipped: 0",
        (5, 1),
    ),
    (
        "ctest",
        r"tests passed, (?P<failed>\d+) tests failed out of (?P<passed>\d+)",
        "80% tests passed, 1 tests failed out of 5",
        (4, 1),
    ),
    (
        "phpunit",
        r"^Tests: (?P<passed>\d+), Assertions: \d+(?:, (?:Errors|Failures): (?P<failed>\d+))?",
        "Tests: 5, Assertions: 9, Failures: 1.",
        (4, 1),
    ),
    ("tap", r"^# pass\s+(?P<passed>\d+)\n# fail\s+(?P<failed>\d+)", "# pass  5\n# fail  1", (5, 1)),
)
_COUNTS_ALL = frozenset({"unittest", "rspec", "exunit", "maven", "ctest", "phpunit"})
_RUNNERS = tuple((name, re.compile(pattern, re.M)) for name, pattern, _, _ in RUNNERS)
_GO_OK = re.compile(r"^ok  \t", re.M)
_GO_FAIL = re.compile(r"^FAIL\t\S", re.M)
_GO_CASE = re.compile(r"^--- (PASS|FAIL): ", re.M)


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
    before: bool = False  # it was there before anything was changed


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
    before: Counted
    after: Counted


@dataclass(frozen=True, slots=True)
class Outcomes:
    ended: tuple[Ended, ...] = ()
    stuck: tuple[Stuck, ...] = ()
    instead: tuple[Instead, ...] = ()
    passed: tuple[Passed, ...] = ()


@lru_cache(maxsize=64)
def counted(output: str) -> Counted | None:
    """What a test run counted; several runners in one output are added up."""
    for name, pattern in _RUNNERS:
        found = [m.groupdict() for m in pattern.finditer(output)]
        if any(any(match.values()) for match in found):
            failed = sum(int(match.get("failed") or 0) for match in found)
            passed = sum(int(match.get("passed") or 0) for match in found)
            return Counted(max(passed - failed, 0) if name in _COUNTS_ALL else passed, failed)
    cases = _GO_CASE.findall(output)
    good, bad = len(_GO_OK.findall(output)), len(_GO_FAIL.findall(output))
    if good or bad:
        failed = max(cases.count("FAIL"), bad)
        return Counted(max(good, cases.count("PASS")), failed)
    return None


@dataclass(slots=True)
class _Open:
    error: Error
    first: Step
    last: Step
    place: int  # of the last run that showed it
    attempts: int = 1
    before: bool = False
    tries: list[Step] = field(default_factory=list)


def failing(step: Step) -> bool:
    """Did a run of a check fail? A pipe hides the status; then the counts tell."""
    if step.ran is None or step.ran.refused:
        return False
    if step.ran.failed:
        return True
    found = counted(step.ran.output) if step.kind == "test" else None
    return found is not None and found.failed > 0


def outcomes(turns: Sequence[View]) -> list[Outcomes]:
    """For each turn what came to its end in it."""
    steps = [step for turn in turns for step in turn.steps]
    ended, stuck = _errors(steps)
    instead = _instead(steps)
    passed = _passed(steps)
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


def _errors(steps: Sequence[Step]) -> tuple[list[Ended], list[Stuck]]:
    open_: dict[str, _Open] = {}
    ended: list[Ended] = []
    changed = False
    for place, step in enumerate(steps):
        changed = changed or bool(step.edited)
        if step.ran is None or step.ran.refused or step.kind not in CHECKS:
            continue
        shown = {e.fingerprint: e for e in errors(step.ran.output)} if failing(step) else {}
        for mark, one in list(open_.items()):
            if mark in shown or not covers(step, one.last, not shown):
                continue
            between = steps[one.place + 1 : place]
            edits = tuple(s for s in between if s.edited)
            commands = tuple(s for s in between if _does(s))
            if (
                not edits
                and one.last.ran
                and typed(step.ran.command) != typed(one.last.ran.command)
            ):
                commands += (step,)  # it was run in another way
            if edits or commands:
                ended.append(
                    Ended(
                        one.error,
                        one.first,
                        step,
                        edits,
                        commands,
                        one.attempts,
                        tuple(one.tries),
                        one.before,
                    )
                )
            del open_[mark]
        for mark, error in shown.items():
            known = open_.get(mark)
            if known is None:
                open_[mark] = _Open(error, step, step, place, before=not changed)
            else:
                tried = [s for s in steps[known.place + 1 : place] if s.edited or _does(s)]
                known.attempts += bool(tried)
                known.tries += tried
                known.last, known.place = step, place
    stuck = [
        Stuck(one.error, one.last, tuple(one.tries), one.attempts)
        for one in open_.values()
        if one.attempts > 1 and any(step.edited for step in one.tries)
    ]
    return ended, stuck


def _does(step: Step) -> bool:
    """Does it change anything? Looking and checking do not."""
    return step.ran is not None and step.kind == "install" and not step.failed


def covers(run: Step, earlier: Step, clean: bool) -> bool:
    """Would this run have shown what the earlier one did?"""
    if run.ran is None or earlier.ran is None or run.kind != earlier.kind:
        return False
    now, then = main_part(run.ran.command), main_part(earlier.ran.command)
    if now == then:
        return True
    if program(now) != program(then):
        return False
    named, wanted = _targets(now), _targets(then)
    if not named:
        return clean  # all of it
    return bool(named & wanted) if wanted else False


def _targets(command: str) -> set[str]:
    return {word for word in words(command)[1:] if _PATHLIKE.search(word) and word[0] != "-"}


def _instead(steps: Sequence[Step]) -> list[Instead]:
    shell = [(at, step) for at, step in enumerate(steps) if step.ran is not None]
    found: list[Instead] = []
    known: set[str] = set()
    for nth, (at, step) in enumerate(shell):
        assert step.ran is not None
        if not step.ran.failed or step.kind == "look" or " commit" in step.ran.command:
            continue
        shown = errors(step.ran.output, most=1)
        if not shown or shown[0].fingerprint in known or _OF_THE_MOMENT.search(shown[0].text):
            continue
        if step.kind in CHECKS and not _MISUSED.search(shown[0].text):
            continue  # a check that found something wrong has worked
        others = [
            (_alike(step, other), other)
            for then, other in shell[nth + 1 : nth + 1 + _FEW_STEPS]
            if not (failing(other) or any(between.edited for between in steps[at:then]))
        ]
        best, other = max(others, key=lambda pair: pair[0], default=(0.0, step))
        if best >= _ALIKE:
            known.add(shown[0].fingerprint)
            found.append(Instead(shown[0], step, other))
    return found


def _alike(one: Step, other: Step) -> float:
    """How much of two commands is the same; 0 where it is all, or where one only looks."""
    assert one.ran is not None
    assert other.ran is not None
    if other.kind == "look" or other.ran.refused:
        return 0.0
    first, second = typed(one.ran.command), typed(other.ran.command)
    here, there = set(words(first)), set(words(second))
    if first == second or not here | there:
        return 0.0
    return len(here & there) / len(here | there)


def _passed(steps: Sequence[Step]) -> list[Passed]:
    found: list[Passed] = []
    open_: list[tuple[Step, Counted]] = []
    for step in steps:
        if step.ran is None or step.kind != "test":
            continue
        now = counted(step.ran.output)
        if now is None:
            continue
        if now.failed:
            open_ = [one for one in open_ if not covers(step, one[0], False)]
            open_.append((step, now))
            continue
        for one in list(open_):
            if covers(step, one[0], True) and now.passed:
                found.append(Passed(one[0], step, one[1], now))
                open_.remove(one)
    return found


def files(steps: Iterable[Step]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file for step in steps for file in step.edited))
