"""What doctor found: one line about one thing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    state: str  # ok, note, problem; a problem has a fix
    text: str
    fix: str = ""


def problem(check: str, sentence: str, otherwise: str) -> Finding:
    """Out of an error's sentence, whose fix stands behind a semicolon, or is `otherwise`."""
    text, _, fix = sentence.partition("; ")
    return Finding(check, "problem", text, f"{fix[:1].upper()}{fix[1:]}" or otherwise)


def standing(check: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of a check, which may itself be stopped by what it looks at: a folder that this
    user may not enter, a file that is another's. That is a finding as well."""
    try:
        yield from found
    except OSError as error:
        where = os.fsdecode(error.filename) if error.filename else "a file"
        yield Finding(
            check, "problem", f"could not be looked at: {where}: {error.strerror or error}",
            f"Make sure that you may read and write {where}, and the folders it lies in.",
        )  # fmt: skip
