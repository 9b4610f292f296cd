"""Errors in the output of tools: which lines tell them, and what makes two of them the same.

A fingerprint is an error's words without what differs from run to run and machine to machine:
paths, numbers, addresses, times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from yester.tables import load_pattern, load_rows

LONGEST = 300  # characters of an error's line
_MOST_LINES = 400  # of an output, from its end and its beginning
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b-\x1f]")

_NOTHING_BUT_A_PLACE = re.compile(r"\S+?:\d+(?::\d+)?:\s*(?::|#|$)")


@dataclass(frozen=True, slots=True)
class Error:
    """`text` is the line as it was printed; `fingerprint` what it has in common with its like."""

    text: str
    fingerprint: str
    rank: int  # of the row that matched: the lower, the more telling


def fingerprint(text: str) -> str:
    for row in load_rows("tools", "placeholders"):
        text = row.pattern.sub(row.values["put"], text)
    return " ".join(text.split()).strip(" .:;,!")


def clean(output: str) -> str:
    """Without what steers a terminal; a line that was overwritten counts as several."""
    return _ESCAPES.sub("", output.replace("\r", "\n"))


def errors(output: str, most: int = 4) -> list[Error]:
    """The most telling errors of an output, each once, in the order of their worth."""
    lines = clean(output).split("\n")
    if len(lines) > _MOST_LINES:
        lines = lines[: _MOST_LINES // 4] + lines[-_MOST_LINES * 3 // 4 :]
    found: dict[str, Error] = {}
    for line in dict.fromkeys(lines):
        if len(line) < 8:
            continue
        one = _told(line)
        if one is not None and one.fingerprint not in found:
            found[one.fingerprint] = one
    return sorted(found.values(), key=lambda error: error.rank)[:most]


def _told(line: str) -> Error | None:
    line = line[: LONGEST * 2]
    for rank, row in enumerate(load_rows("tools", "errors")):
        match = row.pattern.match(line)
        if match:
            text = match["told"].strip()[:LONGEST].rstrip()
            only_failed = load_pattern("tools", "says only that it failed")
            if only_failed.search(text) or _NOTHING_BUT_A_PLACE.match(text):
                return None
            return Error(text, fingerprint(text), rank)
    return None
