"""The form of a check: what it is given, what it says, and what it may put right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from yester.config import Config
from yester.tables import load_table


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about one thing."""

    check: str
    state: str  # ok, note, problem; a problem has a fix
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Examination:
    home: Path
    config: Config
    environ: Mapping[str, str]
    now: int = 0
    fix: bool = False  # put right what can be put right safely
    thorough: bool = True  # run hooks, ask agents, read the whole store
    folders: Sequence[Path] = ()  # of the agent, instead of wherever it may be


Step = Callable[[Examination], Iterator[Finding]]


class Check(NamedTuple):
    """`mend` says what it did, and nothing where nothing was wrong; `look` comes after it."""

    name: str
    look: Step
    mend: Step | None = None
    needs_home: bool = False
    slow: bool = False  # only where the examination is thorough


def make_finding(row_name: str, /, **values: object) -> Finding:
    """A row of `tables/doctor.toml`, which is called CHECK.FINDING, with its braces filled."""
    check, _, row = row_name.partition(".")
    texts = {key: text.format_map(values) for key, text in load_table("doctor")[check][row].items()}
    fix = texts.pop("fix", "")
    ((state, text),) = texts.items()
    return Finding(check, state, text, fix)


def explain_error(check: str, error: Exception, otherwise: str) -> Finding:
    """Out of an error's sentence, whose fix stands behind a semicolon, or is `otherwise`."""
    text, _, fix = str(error).partition("; ")
    return Finding(check, "problem", text, f"{fix[:1].upper()}{fix[1:]}" or otherwise)


def list_paths(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
    return ", ".join(map(str, paths[:3])) + more
