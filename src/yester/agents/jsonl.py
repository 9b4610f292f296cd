"""JSON lines as agents really write them: growing, cut off, glued together, or not JSON at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from yester.files import open_file

T = TypeVar("T")

# A longer line is no message; reading it whole would break the promise of constant memory.
LONGEST_LINE = 64 * 1024 * 1024


class Bad:
    """A line that holds no record."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def records(
    path: Path, offset: int, line: int, decode: Callable[[bytes], T], convert: Callable[[Any], T]
) -> Iterator[tuple[int, int, int, T | Bad]]:
    """(start, end, line number, record or Bad) from `offset` on.

    `decode` takes a line's bytes; where it fails, glued records are taken apart with the standard
    library and handed to `convert`. An unfinished last line is left for the next run.
    """
    with open_file(path) as file:
        file.seek(offset)
        while raw := file.readline(LONGEST_LINE):
            start, offset, line = offset, offset + len(raw), line + 1
            complete = raw.endswith(b"\n")
            if not complete and len(raw) >= LONGEST_LINE:
                offset += _rest_of_line(file)
                yield start, offset, line, Bad(f"longer than {LONGEST_LINE >> 20} MB")
                continue
            if raw.isspace():
                continue
            try:
                yield start, offset, line, decode(raw)
                continue
            except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
                pass
            found = taken_apart(raw.decode("utf-8", "replace"))
            if found:
                for value in found:
                    yield start, offset, line, convert(value)
            elif complete:
                yield start, offset, line, Bad("not JSON")
            else:
                return  # still being written


def _rest_of_line(file: Any) -> int:
    passed = 0
    while raw := file.readline(LONGEST_LINE):
        passed += len(raw)
        if raw.endswith(b"\n"):
            break
    return passed


_decoder = json.JSONDecoder(strict=False)


def taken_apart(text: str) -> list[Any]:
    """The objects of a line that is not exactly one: glued records, stray bytes around them."""
    found: list[Any] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, at = _decoder.raw_decode(text, at)
            found.append(_encodable(value))
        except (ValueError, RecursionError):
            break
        at = text.find("{", at)
    return found


def _encodable(value: Any) -> Any:
    """Lone surrogates cannot be stored: they become replacement characters."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if not value.isascii() else value
    if isinstance(value, list):
        return [_encodable(part) for part in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(part) for key, part in value.items()}
    return value
