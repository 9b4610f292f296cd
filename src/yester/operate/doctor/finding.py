"""The form of a check: what it is given, what it says, and what it may put right."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from yester.config import Config
from yester.errors import YesterError
from yester.memory import join_names
from yester.operate.install import Place
from yester.tables import load_table

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about one thing. `mend` puts it right, `done` says so; it may return a dict of more
    values for that text."""

    check: str
    state: str  # ok, note, problem; a problem has a fix
    text: str
    fix: str = ""
    mend: Callable[[], object] | None = field(default=None, compare=False)
    done: str = ""
    values: Mapping[str, object] = field(default_factory=dict, compare=False)


class Examination(Struct, frozen=True):
    home: Path
    config: Config
    environ: Mapping[str, str]
    now: int = 0
    fix: bool = False  # put right what can be put right safely
    thorough: bool = True  # run hooks, ask agents, read the whole store
    places: Sequence[Place] = ()  # in agents, instead of wherever they may be


class Check(NamedTuple):
    name: str
    look: Callable[[Examination], Iterable[Finding]]
    needs_home: bool = False
    slow: bool = False  # only where the examination is thorough


def make_finding(
    row_name: str, mend: Callable[[], object] | None = None, /, **values: object
) -> Finding:
    """A row of `tables/doctor.toml`, which is called CHECK.FINDING, with its braces filled."""
    check, _, row = row_name.partition(".")
    texts = dict(load_table("doctor")[check][row])
    done, fix = texts.pop("done", ""), texts.pop("fix", "").format_map(values)
    ((state, text),) = texts.items()
    return Finding(check, state, text.format_map(values), fix, mend, done, values)


def explain_error(check: str, error: Exception) -> Finding:
    """Out of an error's sentence, whose fix stands behind a semicolon."""
    text, _, fix = str(error).partition("; ")
    fix = fix or "make sure that you may read and write what it names"
    return Finding(check, "problem", text, f"{fix[0].upper()}{fix[1:]}")


def list_paths(paths: Sequence[Path]) -> str:
    return join_names([*map(str, paths)], 3)


def walk_checks(checks: Sequence[Check], case: Examination) -> Iterator[Finding]:
    for check in checks:
        if (check.slow and not case.thorough) or (check.needs_home and not case.home.exists()):
            continue
        findings = _report_errors(check, check.look, case)
        yield from _put_right(check, findings, case) if case.fix else findings


def _put_right(check: Check, findings: Iterator[Finding], case: Examination) -> Iterator[Finding]:
    """Whatever can be mended is mended at once: a folder that is open again shows what is below it.
    Then it is looked again, since not every mending helps."""
    seen: list[Finding] = []
    done: list[tuple[Finding, Finding]] = []
    for finding in findings:
        if finding.mend and all(finding.mend is not other.mend for other in seen):
            done += [(finding, one) for one in _report_errors(check, _mend_finding, finding)]
        seen.append(finding)
    if done:
        seen = list(_report_errors(check, check.look, case))
    yield from (one for finding, one in done if one.state == "problem" or finding not in seen)
    yield from seen


def _mend_finding(finding: Finding) -> list[Finding]:
    more = finding.mend() if finding.mend else None
    values = {**finding.values, **(more if isinstance(more, dict) else {})}
    return [Finding(finding.check, "ok", finding.done.format_map(values))]


def _report_errors(
    check: Check, step: Callable[[T], Iterable[Finding]], given: T
) -> Iterator[Finding]:
    """A check may itself be stopped by what it looks at: a folder that this user may not enter, a
    file that is another's. That is a finding as well."""
    try:
        yield from step(given)
    except YesterError as error:
        yield explain_error(check.name, error)
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename else "a file"
        text = f"could not be looked at: {where}: {error.strerror or error}"
        fix = f"Make sure that you may read and write {where}, and the folders it lies in."
        yield Finding(check.name, "problem", text, fix)
