"""Errors that runs have shown, and what ended each of them, right by construction: an error ended
when a run of the same passed, and what ended it is what was changed in between.

An error that a second try did not show ended by itself; one that a test was written for was meant;
what a run that passed prints as well is a test's own log. None of them teaches anything, and all
are written down so that nobody is told of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from yester.agents.values import digest
from yester.cards.outcomes import covers_run, find_substitute
from yester.cards.tools import CHECKS, Error, check_parts, command_words, error_fingerprint
from yester.cards.turns import Step, View
from yester.model import Failure, replace
from yester.store.contract import Store
from yester.tables import load_pattern

_MOST = 4  # changes that are named
_LONGEST = 200  # characters of an error's line
_SKIPS = re.compile(r"--no-verify\b")


def error_mark(error: Error) -> str:
    return digest(error.fingerprint)


def command_mark(typed: str) -> str:
    """What is the same for two runs of a command, whatever numbers and times stand in it."""
    return digest(" ".join(command_words(error_fingerprint(typed))))


def find_failures(turns: Sequence[View], back: int) -> list[Failure]:
    """One for each run and error it showed, and one for each that a run printed which passed. What
    lies more than so many turns apart has nothing to do with each other, so that looking at the
    last turns alone gives the same for them."""
    runs = _Runs(
        [step for turn in turns for step in turn.steps],
        [number for number, turn in enumerate(turns) for _ in turn.steps],
        back,
    )
    found = [
        runs.follow_error(place, error)
        for place, step in enumerate(runs.steps)
        if shows_errors(step)
        for error in step.errors
    ]
    printed: dict[str, Failure] = {}
    for step in runs.steps:
        for error in step.errors if step.checks and step.passed else ():
            printed.setdefault(error.fingerprint, _make_failure(step, error, "printed"))
    return [*found, *printed.values()]


def refuted_failures(store: Store, project: str, turns: Sequence[View]) -> list[Failure]:
    """Commands of the project that were said not to work here, and have worked since: that they
    failed was over by itself."""
    worked = {
        command_mark(step.typed): step.item.epoch
        for turn in turns
        for step in turn.steps
        if step.ran.command and not step.ran.refused and _passes(step)
    }
    found = store.entries(Failure, {"command": list(worked), "came": "instead"})
    older = {one.item: one for one in found if one.epoch < worked[one.command]}
    own = [item.id for item in store.get(list(older)) if item.project == project]
    return [replace(older[id_], came="itself") for id_ in own]


def shows_errors(step: Step) -> bool:
    """Looking for something that is not there is no failure."""
    return bool(step.failing and step.errors and step.kind != "look")


@dataclass(frozen=True, slots=True)
class _Runs:
    """All steps of a session; each is known by its place among them."""

    steps: Sequence[Step]
    turns: Sequence[int]  # the number of each step's turn
    back: int

    def follow_error(self, place: int, error: Error) -> Failure:
        failing = self.steps[place]
        last = place  # run that showed it
        gone = 0  # the first run behind that one which did not, whatever else it showed
        tried: list[int] = []
        for at in range(place + 1, len(self.steps)):
            if self.turns[at] - self.turns[last] > self.back:
                break
            step = self.steps[at]
            if step.failing and any(error.fingerprint == one.fingerprint for one in step.errors):
                tried += _ids(self._changes(last, at))
                last, gone = at, 0
            elif not _is_same_run(step, self.steps[last]):
                continue
            elif _passes(step):
                return self._ended(place, error, last, gone or at, at, tried)
            elif step.counted and not gone:
                gone = at
        instead = find_substitute(self.steps, self.turns, place, self.back)
        if instead is None or instead[0].fingerprint != error.fingerprint:
            return _make_failure(failing, error, "left", tried=tried)
        worked = self.steps[instead[1]].item
        return _make_failure(failing, error, "instead", worked.epoch, worked.id, tried=tried)

    def _ended(
        self, place: int, error: Error, last: int, gone: int, passing: int, tried: list[int]
    ) -> Failure:
        failing, step = self.steps[place], self.steps[passing]
        changes = self._changes(last, gone)
        edits = [one for one in changes if one.edited]
        if edits:
            came = "meant" if self._was_meant(place, edits) else "fixed"
        elif step.typed != self.steps[last].typed and not changes:
            came = "instead" if _is_another_way(self.steps[last], step, error) else "itself"
        else:
            came = "fixed" if changes else "itself"
        ids = _ids(edits or changes)
        return _make_failure(failing, error, came, step.item.epoch, step.item.id, ids, tried)

    def _changes(self, since: int, until: int) -> list[Step]:
        """What was done between two runs: edits, else commands that are no look and no check."""
        between = self.steps[since + 1 : until]
        edits = [step for step in between if step.edited]
        acts = [s for s in between if s.ran.command and not s.failing and not s.ran.refused]
        acts = [step for step in acts if step.kind in ("install", "vcs", "") and not step.commits]
        return edits or acts

    def _was_meant(self, place: int, edits: Iterable[Step]) -> bool:
        """A test that was written before what it tests: since the run before only tests were
        changed, and what ended it was another file."""
        tests = load_pattern("tools", "test file")
        step = self.steps[place]
        if step.kind != "test":
            return False
        before = place
        while before > 0 and not (
            self.steps[before - 1].kind == "test" or self.turns[place] - self.turns[before - 1] > 1
        ):
            before -= 1
        written = {file for one in self.steps[before:place] for file in one.edited}
        ending = {file for one in edits for file in one.edited}
        only_tests = bool(written) and all(map(tests.search, written))
        return only_tests and not all(map(tests.search, ending))


def _is_same_run(run: Step, earlier: Step) -> bool:
    """Not one that was refused, or leaves out the check that failed."""
    if run.ran.refused or not run.ran.command or _SKIPS.search(run.ran.command):
        return False
    if earlier.kind in CHECKS:
        # The error may be that of another check in the same command.
        beside = check_parts(earlier.ran.command) - {earlier.main}
        return beside <= check_parts(run.ran.command) and covers_run(run, earlier, clean=True)
    return run.main == earlier.main


def _is_another_way(failing: Step, passing: Step, error: Error) -> bool:
    """Is this how to run it? Not where the error was of the moment, or other tests were run."""
    if failing.kind in CHECKS and failing.main != passing.main:
        return False
    return not load_pattern("tools", "of the moment").search(error.text)


def _passes(step: Step) -> bool:
    return step.passed is True if step.kind in CHECKS else not step.failing


def _ids(steps: Iterable[Step]) -> list[int]:
    return [step.item.id for step in steps]


def _make_failure(
    step: Step, error: Error, came: str, ended: int = 0, run: int = 0,
    changes: Sequence[int] = (), tried: Sequence[int] = (),
) -> Failure:  # fmt: skip
    return Failure(
        step.item.id, error_mark(error), error.text[:_LONGEST], command_mark(step.typed),
        step.item.epoch, came, ended, run, tuple(dict.fromkeys(changes))[-_MOST:],
        tuple(dict.fromkeys(tried))[-_MOST:],
    )  # fmt: skip
