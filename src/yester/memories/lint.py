"""What is worth a look in a MEMORY.md: too long, said twice, taken back by something newer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from yester.memories.contradiction import against, claims
from yester.memories.curated import MOST_LINES, Entry, page

NEARLY = 180  # lines
MOST_BYTES = 25_000  # newer clients stop here if it comes before line 200


@dataclass(frozen=True, slots=True)
class Finding:
    line: int  # from 1
    what: str  # long, nearly long, twice, unclosed, contradicted
    text: str


@dataclass(frozen=True, slots=True)
class Newer:
    """Something recorded after the note: `name` is what to call it, "#12" say, `epoch` when."""

    name: str
    text: str
    epoch: int = 0


def findings(
    text: str,
    newer: Iterable[Newer] = (),
    most: int = MOST_LINES,
    written: Callable[[Entry], int] | None = None,
) -> list[Finding]:
    """By line. `newer` is what the caller knows to be newer than the page, of the same project;
    where it says when each note was `written`, only what came after that note counts."""
    found = page(text)
    result = [*_length(text, found.lines, most), *_twice(found.entries)]
    if found.unclosed:
        result.append(
            Finding(found.unclosed, "unclosed", "a code block or comment that has no end")
        )
    told = [(one, claims(one.text)) for one in newer]
    for entry in found.entries if told else ():
        note = claims(entry.text)
        since = written(entry) if written else -1
        for one, said_since in told:
            if one.epoch > since and (reason := against(note, said_since)):
                said = f"{one.name} is newer and says otherwise: {reason}"
                result.append(Finding(entry.line, "contradicted", said))
    return sorted(result, key=lambda finding: (finding.line, finding.what, finding.text))


def _length(text: str, number: int, most: int) -> Iterable[Finding]:
    if number > most:
        yield Finding(
            most + 1, "long", f"{number} lines; from here on nothing is loaded into a session"
        )
    elif number >= min(NEARLY, most):
        yield Finding(number, "nearly long", f"{number} of the {most} lines that are loaded")
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > MOST_BYTES:
        line = data[:MOST_BYTES].count(b"\n") + 1
        yield Finding(
            line, "long", f"{len(data):,} bytes; clients that load {MOST_BYTES:,} stop here"
        )


def _twice(entries: Iterable[Entry]) -> Iterable[Finding]:
    first: dict[str, int] = {}
    for entry in entries:
        said = " ".join(entry.text.split()).rstrip(".").casefold()
        if said in first:
            yield Finding(entry.line, "twice", f"says the same as line {first[said]}")
        else:
            first[said] = entry.line
