"""What doctor found: one line about one thing."""

from __future__ import annotations

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
