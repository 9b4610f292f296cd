"""The door everything printed goes through: recorded text must not steer a terminal.

What was captured may hold anything: sequences that clear the screen, rename the window or write to
the clipboard, marks that turn the reading direction. No command has to think of that: standard
output and standard error let pass what can be seen and the colours we use ourselves, whoever reads
them. Recorded text can so be bold, but neither hidden nor moved.
"""

from __future__ import annotations

import re
import sys
from codecs import lookup
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, TextIO, cast

# Back to normal, bold, dim, and colours that are never the background's.
_OURS = re.compile(r"(\x1b\[(?:[012]|3[1-6])m)")


def strip_steering(text: str) -> str:
    """The text without what steers a terminal or hides from a reader, but for our own colours."""
    one_line = text.replace("\n", "").replace("\t", "")
    if one_line.isascii() and one_line.isprintable():
        return text  # nearly everything; the patterns below take a while to load
    from yester.fence import strip_hidden

    parts = _OURS.split(text)
    parts[::2] = map(strip_hidden, parts[::2])
    return "".join(parts)


class _Screen:
    """A text stream that writes what is harmless, and is the one behind it in all else."""

    def __init__(self, stream: TextIO) -> None:
        # click takes ASCII for a mistake, too, but would write to the bytes behind us.
        if isinstance(stream, TextIOWrapper) and lookup(stream.encoding).name == "ascii":
            stream.reconfigure(encoding="utf-8", errors="replace")
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(strip_steering(text) if isinstance(text, str) else text)
        return len(text)

    def writelines(self, texts: Iterator[str]) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def screen_streams() -> Iterator[None]:
    """While it lasts both streams are screened. What draws for itself, as a progress bar does,
    writes to `sys.__stderr__`."""
    streams = sys.stdout, sys.stderr
    if sys.stdout is not None:
        sys.stdout = cast(TextIO, _Screen(sys.stdout))
    if sys.stderr is not None:
        sys.stderr = cast(TextIO, _Screen(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def count_noun(number: int, noun: str) -> str:
    """1 item, 1,200 items, 2 memories"""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number:,} {noun}"


def join_counts(*parts: tuple[int, str], between: str = ", ") -> str:
    """What is not zero, in a line."""
    return between.join(text for number, text in parts if number)


def make_bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"


def describe_items(items: Mapping[str, int]) -> str:
    """1,240 (40 prompt, 1,200 message)"""
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(items.items()))
    return f"{sum(items.values()):,}" + (f" ({kinds})" if kinds else "")


def fact_lines(width: int, facts: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Names and values in two columns; what says nothing has no line."""
    return (f"{name:<{width}}  {value}" for name, value in facts if value)


def table_lines(records: Sequence[Any], title: str = "", *columns: str) -> Iterator[str]:
    """What programs get as rows, in columns under their names; nothing where there is none."""
    from msgspec import to_builtins

    if not records:
        return
    rows = [to_builtins(one) for one in records]
    rows = [{name: row[name] for name in columns or row} for row in rows]
    if title:
        yield f"\n{title}"
    cells = [[name.replace("_", " ") for name in rows[0]]]
    cells += [[_format_cell(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True))
        yield f"  {'  '.join(padded)}".rstrip()


def _format_cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
