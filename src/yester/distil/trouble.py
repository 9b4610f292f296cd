"""Errors as observations: what ended them, what did not help, and what works instead.

The error's own line is the fact, so that whoever meets it again finds this by its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC

from yester.agents.values import digest
from yester.clock import format_day
from yester.distil.commands import CHECKS, typed
from yester.distil.drafts import TITLE, Draft, Fact, Gate, Taken, chosen
from yester.distil.outcomes import Ended, Instead, Outcomes, Stuck, files
from yester.distil.phrases import cut, shortened
from yester.distil.telling import MOST_FILES, sections
from yester.distil.titles import file_names
from yester.distil.turns import Step, View

_LINE = 160  # characters of an error in a list
_COMMAND = 100
_MOST_RUNS = 4
_PLACE = re.compile(
    r"\A(?:[\w./@+\\-]+[:(]\d+(?:[:,]\d+\)?)?:?\s*(?:-\s*)?)+(?:error (?:TS\d+)?:?\s*)?"
)
_SAID_SO = re.compile(
    r"\A(?:(?:error|fatal|ERROR|Error|zsh|bash|sh|\(eval\)):(?:\d+:| line \d+:)?\s*)+"
)
_DURATION = re.compile(r"\s*[\[(]\d[\d.]*m?s[\])]\s*\Z")
WARNING = "warning"


def outcome_text(turn: View, came_out: Outcomes) -> str:
    """How the checks of a turn came out, a line each: the exit status of every run, tests that
    failed before they passed, errors and the changes after which they were gone."""
    lines = list(_runs(turn))
    for one in came_out.passed[-2:]:
        lines.append(
            f"{_shown(one.passing)}: {one.before.failed} failed, then {one.after.passed} passed"
        )
    alike: set[str] = set()
    for ended in came_out.ended:
        start = " ".join(ended.error.fingerprint.split()[:6])
        if start not in alike and len(alike) < 4:
            alike.add(start)
            lines.append(f"{cut(ended.error.text, _LINE)}: gone after {_changes(ended)}")
    return "\n".join(lines)


def _runs(turn: View) -> Iterator[str]:
    runs: dict[str, list[str]] = {}
    for step in turn.steps:
        if step.ran is None or step.ran.refused or step.kind not in CHECKS:
            continue
        hidden = step.failing and not step.ran.status  # by a pipe
        told = "0 in a pipe, though tests failed" if hidden else str(step.ran.status)
        runs.setdefault(cut(step.main, _COMMAND), []).append(told)
    for command, every in list(runs.items())[-_MOST_RUNS:]:
        kept = every if len(every) <= _MOST_RUNS else [*every[:2], "…", *every[-2:]]
        yield f"`{command}` ended with status {', '.join(kept)}"


def trouble(turn: View, came_out: Outcomes, gate: Gate) -> list[Draft]:
    hard = [one for one in came_out.ended if one.attempts > 1 and one.failing.kind != "lint"]
    hard = _one_per_run(hard)
    made = [_ended(turn, one, gate) for one in hard[:2]]
    made += [_stuck(turn, one, gate) for one in came_out.stuck[:1]]
    made += [_instead(one) for one in came_out.instead[:2]]
    return made


def checked(turn: View, came_out: Outcomes) -> list[Draft]:
    """How a check came out that had failed, where nothing else tells of it."""
    text = outcome_text(turn, came_out)
    facts = tuple(_line(one.error.text, one.failing) for one in came_out.ended[:3])
    for passed in came_out.passed[-1:]:
        return [_checked(turn, f"{_shown(passed.passing)} passes again", facts, text, "bugfix")]
    for ended in came_out.ended[-1:]:
        return [_checked(turn, error_title(ended.error.text), facts, text, "bugfix")]
    failed = [step for step in turn.steps if step.failing and step.kind in CHECKS]
    for step in failed[-1:]:
        facts = tuple(_line(error.text, step) for error in step.errors[:3])
        why = f": {error_title(step.errors[0].text)}" if step.errors else ""
        return [_checked(turn, f"{_shown(step)} fails{why}", facts, text, "discovery")]
    return []


def _checked(turn: View, title: str, facts: tuple[Fact, ...], text: str, type_: str) -> Draft:
    return Draft(
        "checked", type_, shortened(title, TITLE), turn.ended, 1.0, facts=facts,
        concepts=("problem-solution" if type_ == "bugfix" else "gotcha",),
        files_read=turn.looked_at[:MOST_FILES], sections=sections("", text),
    )  # fmt: skip


def _one_per_run(ended: Sequence[Ended]) -> list[Ended]:
    """A run that fails often tells the same in several ways; the most telling one counts."""
    best: dict[int, Ended] = {}
    for one in ended:
        known = best.get(one.failing.item.id)
        if known is None or one.error.rank < known.error.rank:
            best[one.failing.item.id] = one
    return list(best.values())


def error_title(text: str) -> str:
    """An error without the place it was met at."""
    bare = _DURATION.sub("", _SAID_SO.sub("", _PLACE.sub("", text)))
    line = " ".join((bare if len(bare) >= 12 else text).split())
    return line if len(line) <= TITLE else line[: line.rfind(" ", 20, TITLE)].rstrip(" ,:;(") + "…"


def _ended(turn: View, one: Ended, gate: Gate) -> Draft:
    said = _between(turn, one.failing, one.passing, gate)
    facts = (_line(one.error.text, one.failing), *(taken.fact for taken in said))
    return Draft(
        f"error:{digest(one.error.fingerprint)}", "bugfix", error_title(one.error.text),
        one.passing.item.epoch, 2.1 if one.attempts > 2 else 1.6,
        subtitle=f"{_shown(one.failing)} failed {one.attempts} times",
        body=f"It ended after {_changes(one)}.",
        facts=facts, concepts=("problem-solution", "gotcha"),
        files_modified=files(one.edits) or files(one.tries),
        tags=(WARNING,) if one.tries else (),
        sections={"tried": _tried(one.tries)} if one.tries else {},
    )  # fmt: skip


def _stuck(turn: View, one: Stuck, gate: Gate) -> Draft:
    said = _between(turn, one.tries[0] if one.tries else one.failing, one.failing, gate)
    return Draft(
        f"stuck:{digest(one.error.fingerprint)}", "discovery",
        shortened(f"Still failing: {error_title(one.error.text)}", TITLE),
        one.failing.item.epoch, 1.7,
        subtitle=f"{_shown(one.failing)} failed {one.attempts} times",
        body="It was still there when the session ended or went on to something else.",
        facts=(_line(one.error.text, one.failing), *(taken.fact for taken in said)),
        concepts=("gotcha",), files_modified=files(one.tries), tags=(WARNING,),
        sections={"tried": _tried(one.tries)},
    )  # fmt: skip


def _instead(one: Instead) -> Draft:
    assert one.failed.ran is not None
    assert one.worked.ran is not None
    failed, worked = typed(one.failed.ran.command), typed(one.worked.ran.command)
    status = one.failed.ran.status
    return Draft(
        f"/command:{digest(one.error.fingerprint, one.failed.main)}", "discovery",
        shortened(f"{_short(one.failed)} fails: {error_title(one.error.text)}", TITLE),
        one.worked.item.epoch, 1.4, subtitle=f"works instead: {cut(worked, _COMMAND)}",
        body=f"`{cut(failed, 200)}` ended with status {status}. `{cut(worked, 200)}` did it.",
        facts=(_line(one.error.text, one.failed),), concepts=("gotcha",), tags=(WARNING,),
        sections={"last met": format_day(one.failed.item.epoch, UTC)},
    )  # fmt: skip


def _short(step: Step) -> str:
    """The first words of what was run, up to its first long argument."""
    assert step.ran is not None
    line, main = typed(step.ran.command), step.main
    parts = re.split(r"&&|\|\||;", line)
    kept: list[str] = []
    for word in next((part for part in parts if main in part), parts[0]).split():
        if kept and len(" ".join(kept)) + len(word) > 32:
            break
        kept.append(word)
    return " ".join(kept)


def _line(text: str, step: Step) -> Fact:
    return Fact(text, step.item.id)


def _between(turn: View, first: Step, last: Step, gate: Gate) -> list[Taken]:
    """What the agent said of it while it lasted."""
    found: list[Taken] = []
    for item in turn.said:
        if first.item.epoch <= item.epoch <= last.item.epoch:
            found += gate.findings(item, 1.6)
    return chosen(found, most=3, room=600)


def _changes(one: Ended) -> str:
    changed = f"changes to {file_names(files(one.edits))}" if one.edits else ""
    commands = [f"`{cut(typed(step.ran.command), _COMMAND)}`" for step in one.commands if step.ran]
    return " and ".join(filter(None, (changed, ", ".join(commands[:2]))))


def _tried(tries: Sequence[Step]) -> str:
    """What did not help: the files that were changed, the commands that were run."""
    lines = []
    for step in tries:
        if step.ran is not None:
            lines.append(f"`{cut(typed(step.ran.command), _COMMAND)}`")
        elif step.edited:
            lines.append(f"a change to {file_names(step.edited)}")
    return "Did not help: " + ", ".join(dict.fromkeys(lines)) if lines else ""


def _shown(step: Step) -> str:
    return f"`{cut(step.main, _COMMAND)}`"
