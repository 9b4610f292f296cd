"""JSON lines as agents really write them: growing, cut off, glued together, or not JSON at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import Enum
from errno import EFBIG
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import msgspec

from yester.files import open_file

T = TypeVar("T")

# A longer line is no message; reading it whole would break the promise of constant memory.
LONGEST_LINE = 64 * 1024 * 1024
ENDLESS = 4 * LONGEST_LINE  # bytes without a line end, after which the file is no transcript
PIECE = 4 * 1024 * 1024  # of a line, between two pauses


class Pause(Enum):
    PAUSE = "PAUSE"


PAUSE: Final = Pause.PAUSE  # nothing yet: whoever has other things to do can do them here


class Bad:
    """A line that holds no record."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason = reason


def records(
    path: Path, offset: int, line: int, decode: Callable[[bytes], T], convert: Callable[[Any], T]
) -> Iterator[tuple[int, int, int, T | Bad | Pause]]:
    """(start, end, line number, record, Bad or PAUSE) from `offset` on.

    `decode` takes a line's bytes; where it fails, glued records are taken apart with the standard
    library and handed to `convert`. An unfinished last line is left for the next run. A file
    without line ends raises OSError.
    """
    with open_file(path) as file:
        file.seek(offset)
        for raw, length in _lines(file, path):
            if not length:
                yield offset, offset, line, PAUSE
                continue
            start, offset, line = offset, offset + length, line + 1
            complete = raw.endswith(b"\n")
            if length >= LONGEST_LINE + complete:
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


def _lines(file: BinaryIO, path: Path) -> Iterator[tuple[bytes, int]]:
    """Each line with its length; of one that is too long only the end. Length 0: a pause."""
    parts: list[bytes] = []
    length = 0
    while part := file.readline(PIECE):
        length += len(part)
        if length > LONGEST_LINE:
            parts.clear()
        parts.append(part)
        if part.endswith(b"\n") or len(part) < PIECE:
            yield b"".join(parts), length
            parts, length = [], 0
        elif length >= ENDLESS:
            raise OSError(EFBIG, f"no line end in {ENDLESS >> 20} MB", str(path))
        else:
            yield b"", 0
    if length:
        yield b"".join(parts), length


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
