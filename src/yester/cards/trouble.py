"""Errors as observations: what ended them, what did not help, and what works instead.

The error's own line is the fact, so that whoever meets it again finds this by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC

from yester.agents.values import digest
from yester.cards.drafts import MOST_FILES, WARNING, Draft, Fact, Gate, Looked, choose_facts
from yester.cards.outcomes import Outcome, edited_files
from yester.cards.statements import TITLE, Statement, cut_clause, shorten_title
from yester.cards.tools import Error, file_names
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
    found = looked.outcomes
    hard = [one for one in found.ended if one.attempts > 1 and one.failing.kind != "lint"]
    return [
        *(_ended(looked.turn, one, gate) for one in hard[:2]),
        *(_stuck(looked.turn, one, gate) for one in found.stuck[:1]),
        *(_substitute(one) for one in found.instead[:2]),
    ]


def _ended(turn: View, one: Outcome, gate: Gate) -> Draft:
    return Draft(
        f"error:{digest(one.error.fingerprint)}", "bugfix", error_title(one.error.text),
        one.last.item.epoch, 2.1 if one.attempts > 2 else 1.6,
        subtitle=f"{_quoted(one.failing)} failed {one.attempts} times",
        body=f"It ended after {_changes(one)}.", facts=_error_facts(turn, one, gate),
        concepts=("problem-solution", "gotcha"),
        files_modified=edited_files(one.edits) or edited_files(one.tries),
        tags=(WARNING,) if one.tries else (), sections={"tried": _tries(one)},
    )  # fmt: skip


def _stuck(turn: View, one: Outcome, gate: Gate) -> Draft:
    return Draft(
        f"stuck:{digest(one.error.fingerprint)}", "discovery",
        shorten_title(f"Still failing: {error_title(one.error.text)}"),
        one.last.item.epoch, 1.7,
        subtitle=f"{_quoted(one.last)} failed {one.attempts} times",
        body="It was still there when the session ended or went on to something else.",
        facts=_error_facts(turn, one, gate), concepts=("gotcha",),
        files_modified=edited_files(one.tries), tags=(WARNING,), sections={"tried": _tries(one)},
    )  # fmt: skip


def _error_facts(turn: View, one: Outcome, gate: Gate) -> tuple[Fact, ...]:
    """The error's own line, and what the agent said of it while it lasted."""
    since, until = one.failing.item.epoch, one.last.item.epoch
    during = [item for item in turn.said if since <= item.epoch <= until]
    said = [fact for item in during for fact in gate.findings(item, 1.6)]
    return (_error_fact(one.error, one.failing), *choose_facts(said, most=3, room=600))


def _error_fact(error: Error, step: Step) -> Fact:
    return Fact(Statement(error.text), step.item.id)


def _substitute(one: Outcome) -> Draft:
    failed, worked = one.failing.typed, one.last.typed
    status = one.failing.ran.status if one.failing.ran else None
    return Draft(
        f"/command:{digest(one.error.fingerprint, one.failing.main)}", "discovery",
        shorten_title(f"{_first_words(one.failing)} fails: {error_title(one.error.text)}"),
        one.last.item.epoch, 1.4, subtitle=f"works instead: {cut_clause(worked, _COMMAND)}",
        body=f"`{cut_clause(failed, 200)}` ended with status {status}. "
        f"`{cut_clause(worked, 200)}` did it.",
        facts=(_error_fact(one.error, one.failing),), concepts=("gotcha",), tags=(WARNING,),
        sections={"last met": format_day(one.failing.item.epoch, UTC)},
    )  # fmt: skip


def observe_checks(looked: Looked) -> list[Draft]:
    """How a check came out, where nothing else tells of it."""
    turn, passed, ended = looked.turn, looked.outcomes.passed, looked.outcomes.ended
    failing = [step for step in turn.steps if step.failing and step.checks]
    facts = [_error_fact(one.error, one.failing) for one in ended]
    if passed:
        title = f"{_quoted(passed[-1][1])} passes again"
    elif ended:
        title = error_title(ended[-1].error.text)
    elif failing:
        last = failing[-1]
        facts = [_error_fact(error, last) for error in last.errors]
        title = ": ".join([f"{_quoted(last)} fails", *(error_title(one.text) for one in facts[:1])])
    else:
        return []
    mended = bool(passed or ended)
    return [
        Draft(
            "checked", "bugfix" if mended else "discovery", shorten_title(title), turn.ended, 1.0,
            facts=tuple(facts[:3]), concepts=("problem-solution" if mended else "gotcha",),
            files_read=turn.looked_at[:MOST_FILES], sections={"outcome": describe_outcome(looked)},
        )
    ]  # fmt: skip


def describe_outcome(looked: Looked) -> str:
    """How the checks of a turn came out, a line each: the exit status of every run, tests that
    failed before they passed, errors and the changes after which they were gone."""
    lines = list(_run_lines(looked.turn))
    for failing, passing in looked.outcomes.passed[-2:]:
        lines.append(f"{_quoted(passing)}: {failing.counted}, then {passing.counted}")
    for ended in looked.outcomes.ended[:_MOST_RUNS]:
        lines.append(f"{cut_clause(ended.error.text, _LINE)}: gone after {_changes(ended)}")
    return "\n".join(lines)


def _run_lines(turn: View) -> Iterator[str]:
    runs: dict[str, list[str]] = {}
    for step in turn.steps:
        if step.ran is not None and step.checks:
            hidden = step.failing and not step.ran.status  # by a pipe
            told = f"0 in a pipe ({step.counted})" if hidden else str(step.ran.status)
            runs.setdefault(_quoted(step), []).append(told)
    for command, every in list(runs.items())[-_MOST_RUNS:]:
        kept = every if len(every) <= _MOST_RUNS else [*every[:2], "…", *every[-2:]]
        yield f"{command} ended with status {', '.join(kept)}"


def error_title(text: str) -> str:
    """An error without the place it was met at."""
    bare = _DURATION.sub("", _SAID_SO.sub("", _PLACE.sub("", text)))
    line = " ".join((bare if len(bare) >= 12 else text).split())
    return line if len(line) <= TITLE else line[: line.rfind(" ", 20, TITLE)].rstrip(" ,:;(") + "…"


def _changes(one: Outcome) -> str:
    changed = f"changes to {file_names(edited_files(one.edits))}" if one.edits else ""
    commands = [f"`{cut_clause(step.typed, _COMMAND)}`" for step in one.commands[:2]]
    return " and ".join(filter(None, (changed, ", ".join(commands))))


def _tries(one: Outcome) -> str:
    """What did not help: the files that were changed, the commands that were run."""
    lines = [
        f"a change to {file_names(step.edited)}"
        if step.edited
        else f"`{cut_clause(step.typed, _COMMAND)}`"
        for step in one.tries
    ]
    return "Did not help: " + ", ".join(dict.fromkeys(lines)) if lines else ""


def _quoted(step: Step) -> str:
    return f"`{cut_clause(step.main, _COMMAND)}`"


def _first_words(step: Step) -> str:
    """The beginning of what was run, without what was run before it."""
    parts = re.split(r"&&|\|\||;", step.typed)
    own = next((part for part in parts if step.main in part), parts[0])
    return cut_clause(own.strip(), 32)
