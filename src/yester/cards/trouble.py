"""Errors as observations: what ended them, what did not help, and what works instead.

The error's own line is the fact, so that whoever meets it again finds this by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC

from yester.agents.values import digest
from yester.cards.drafts import (
    MOST_FILES,
    WARNING,
    Draft,
    Fact,
    Gate,
    Looked,
    choose_facts,
    filled_sections,
)
from yester.cards.outcomes import Ended, Instead, Stuck, edited_files
from yester.cards.statements import TITLE, cut_clause, shorten_title
from yester.cards.tools import CHECKS, command_line, file_names
from yester.cards.turns import Step, View
from yester.clock import format_day

_LINE, _COMMAND = 160, 100  # characters
_MOST_RUNS = 4
_PLACE = re.compile(
    r"\A(?:[\w./@+\\-]+[:(]\d+(?:[:,]\d+\)?)?:?\s*(?:-\s*)?)+(?:error (?:TS\d+)?:?\s*)?"
)
_SAID_SO = re.compile(
    r"\A(?:(?:error|fatal|ERROR|Error|zsh|bash|sh|\(eval\)):(?:\d+:| line \d+:)?\s*)+"
)
_DURATION = re.compile(r"\s*[\[(]\d[\d.]*m?s[\])]\s*\Z")


def observe_trouble(looked: Looked, gate: Gate) -> list[Draft]:
    """Errors that took several tries, that stayed, and commands that do not work here."""
    came_out = looked.outcomes
    hard = [one for one in came_out.ended if one.attempts > 1 and one.failing.kind != "lint"]
    best: dict[int, Ended] = {}  # a run that fails often tells the same in several ways
    for one in sorted(hard, key=lambda one: -one.error.rank):
        best[one.failing.item.id] = one
    ended = [one for one in hard if best[one.failing.item.id] is one]
    return [
        *(_ended(looked.turn, one, gate) for one in ended[:2]),
        *(_stuck(looked.turn, one, gate) for one in came_out.stuck[:1]),
        *(_substitute(one) for one in came_out.instead[:2]),
    ]


def _ended(turn: View, one: Ended, gate: Gate) -> Draft:
    return Draft(
        f"error:{digest(one.error.fingerprint)}", "bugfix", error_title(one.error.text),
        one.passing.item.epoch, 2.1 if one.attempts > 2 else 1.6,
        subtitle=f"{_quoted(one.failing)} failed {one.attempts} times",
        body=f"It ended after {_changes(one)}.",
        facts=_error_facts(turn, one, one.failing, one.passing, gate),
        concepts=("problem-solution", "gotcha"),
        files_modified=edited_files(one.edits) or edited_files(one.tries),
        tags=(WARNING,) if one.tries else (),
        sections=filled_sections({"tried": _tries(one.tries)}),
    )  # fmt: skip


def _stuck(turn: View, one: Stuck, gate: Gate) -> Draft:
    first = one.tries[0] if one.tries else one.failing
    return Draft(
        f"stuck:{digest(one.error.fingerprint)}", "discovery",
        shorten_title(f"Still failing: {error_title(one.error.text)}"),
        one.failing.item.epoch, 1.7,
        subtitle=f"{_quoted(one.failing)} failed {one.attempts} times",
        body="It was still there when the session ended or went on to something else.",
        facts=_error_facts(turn, one, first, one.failing, gate), concepts=("gotcha",),
        files_modified=edited_files(one.tries), tags=(WARNING,),
        sections=filled_sections({"tried": _tries(one.tries)}),
    )  # fmt: skip


def _error_facts(
    turn: View, one: Ended | Stuck, first: Step, last: Step, gate: Gate
) -> tuple[Fact, ...]:
    """The error's own line, and what the agent said of it while it lasted."""
    during = [i for i in turn.said if first.item.epoch <= i.epoch <= last.item.epoch]
    said = [taken for item in during for taken in gate.findings(item, 1.6)]
    told = (taken.fact for taken in choose_facts(said, most=3, room=600))
    return (Fact(one.error.text, one.failing.item.id), *told)


def _substitute(one: Instead) -> Draft:
    failed, worked = _typed(one.failed), _typed(one.worked)
    status = one.failed.ran.status if one.failed.ran else None
    return Draft(
        f"/command:{digest(one.error.fingerprint, one.failed.main)}", "discovery",
        shorten_title(f"{_first_words(one.failed)} fails: {error_title(one.error.text)}"),
        one.worked.item.epoch, 1.4, subtitle=f"works instead: {cut_clause(worked, _COMMAND)}",
        body=f"`{cut_clause(failed, 200)}` ended with status {status}. "
        f"`{cut_clause(worked, 200)}` did it.",
        facts=(Fact(one.error.text, one.failed.item.id),), concepts=("gotcha",), tags=(WARNING,),
        sections={"last met": format_day(one.failed.item.epoch, UTC)},
    )  # fmt: skip


def observe_checks(looked: Looked) -> list[Draft]:
    """How a check came out, where nothing else tells of it."""
    turn, came_out = looked.turn, looked.outcomes
    failing = [step for step in turn.steps if step.failing and step.kind in CHECKS]
    if came_out.passed:
        title = f"{_quoted(came_out.passed[-1].passing)} passes again"
    elif came_out.ended:
        title = error_title(came_out.ended[-1].error.text)
    elif failing:
        last = failing[-1]
        why = f": {error_title(last.errors[0].text)}" if last.errors else ""
        title = f"{_quoted(last)} fails{why}"
    else:
        return []
    mended = bool(came_out.passed or came_out.ended)
    facts = [Fact(one.error.text, one.failing.item.id) for one in came_out.ended]
    if not mended:
        facts = [Fact(error.text, failing[-1].item.id) for error in failing[-1].errors]
    return [
        Draft(
            "checked", "bugfix" if mended else "discovery", shorten_title(title), turn.ended, 1.0,
            facts=tuple(facts[:3]), concepts=("problem-solution" if mended else "gotcha",),
            files_read=turn.looked_at[:MOST_FILES],
            sections=filled_sections({"outcome": describe_outcome(looked)}),
        )
    ]  # fmt: skip


def describe_outcome(looked: Looked) -> str:
    """How the checks of a turn came out, a line each: the exit status of every run, tests that
    failed before they passed, errors and the changes after which they were gone."""
    lines = list(_run_lines(looked.turn))
    for one in looked.outcomes.passed[-2:]:
        lines.append(
            f"{_quoted(one.passing)}: {one.before.failed} failed, then {one.after.passed} passed"
        )
    alike: set[str] = set()
    for ended in looked.outcomes.ended:
        start = " ".join(ended.error.fingerprint.split()[:6])
        if start not in alike and len(alike) < _MOST_RUNS:
            alike.add(start)
            lines.append(f"{cut_clause(ended.error.text, _LINE)}: gone after {_changes(ended)}")
    return "\n".join(lines)


def _run_lines(turn: View) -> Iterator[str]:
    runs: dict[str, list[str]] = {}
    for step in turn.steps:
        if step.ran is None or step.ran.refused or step.kind not in CHECKS:
            continue
        hidden = step.failing and not step.ran.status  # by a pipe
        told = "0 in a pipe, though tests failed" if hidden else str(step.ran.status)
        runs.setdefault(cut_clause(step.main, _COMMAND), []).append(told)
    for command, every in list(runs.items())[-_MOST_RUNS:]:
        kept = every if len(every) <= _MOST_RUNS else [*every[:2], "…", *every[-2:]]
        yield f"`{command}` ended with status {', '.join(kept)}"


def error_title(text: str) -> str:
    """An error without the place it was met at."""
    bare = _DURATION.sub("", _SAID_SO.sub("", _PLACE.sub("", text)))
    line = " ".join((bare if len(bare) >= 12 else text).split())
    return line if len(line) <= TITLE else line[: line.rfind(" ", 20, TITLE)].rstrip(" ,:;(") + "…"


def _changes(one: Ended) -> str:
    changed = f"changes to {file_names(edited_files(one.edits))}" if one.edits else ""
    commands = [f"`{cut_clause(_typed(step), _COMMAND)}`" for step in one.commands[:2]]
    return " and ".join(filter(None, (changed, ", ".join(commands))))


def _tries(tries: Sequence[Step]) -> str:
    """What did not help: the files that were changed, the commands that were run."""
    lines = [
        f"`{cut_clause(_typed(step), _COMMAND)}`"
        if step.ran is not None
        else f"a change to {file_names(step.edited)}"
        for step in tries
        if step.ran is not None or step.edited
    ]
    return "Did not help: " + ", ".join(dict.fromkeys(lines)) if lines else ""


def _typed(step: Step) -> str:
    return command_line(step.ran.command) if step.ran is not None else ""


def _quoted(step: Step) -> str:
    return f"`{cut_clause(step.main, _COMMAND)}`"


def _first_words(step: Step) -> str:
    """The first words of what was run, up to its first long argument."""
    parts = re.split(r"&&|\|\||;", _typed(step))
    kept: list[str] = []
    for word in next((part for part in parts if step.main in part), parts[0]).split():
        if kept and len(" ".join(kept)) + len(word) > 32:
            break
        kept.append(word)
    return " ".join(kept)
