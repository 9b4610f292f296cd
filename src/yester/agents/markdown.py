"""Markdown transcripts, block by block: growing at the end, now and then rewritten.

A block is finished when the next one begins, so the last one is told but read again by the next
run. Reading on is safe only while everything before is what it was: a digest of it is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Generic, TypeVar

from yester.agents.base import Reading
from yester.agents.conversation import load_state
from yester.agents.jsonl import LONGEST_LINE
from yester.files import open_file
from yester.model import Item

# An unfinished last line that begins like this may become a mark: it is left for the next run.
_MARK_BEGINS = ("#", ">", "_", "<", "-")
_CHUNK = 1 << 20
_LONGEST_BLOCK = 8 << 20  # characters


@dataclass(frozen=True, slots=True)
class Place:
    before: str = ""  # digest of everything before the place to read on from


S = TypeVar("S", bound=Place)


@dataclass(slots=True)
class Block(Generic[S]):
    """Lines that belong together, with the place and the state before the first of them."""

    kind: str
    offset: int
    line: int
    state: S
    lines: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


class Markdown(ABC, Generic[S]):
    """One pass over one file: from where the last run ended, or from the start if it changed."""

    def __init__(self, reading: Reading, kind: type[S]) -> None:
        self.reading = reading
        self.state = load_state(kind, reading.state)
        self._passed = blake2b(digest_size=16)
        if reading.offset and not self._unchanged():
            reading.offset = reading.line = 0
            self.state = kind()
            self._passed = blake2b(digest_size=16)

    @abstractmethod
    def begins(self, text: str) -> str | None:
        """The kind of block this line begins; None if it goes on with the last one."""

    @abstractmethod
    def told(self, block: Block[S]) -> Iterator[Item]:
        """What a block gives. It may be told twice, from the same state."""

    def items(self) -> Iterator[Item]:
        block: Block[S] | None = None
        for offset, number, text in self._lines():
            kind = self.begins(text)
            if kind is not None or block is None:
                if block:
                    yield from self.told(block)
                state = replace(self.state, before=self._passed.hexdigest())
                block = Block(kind or "", offset, number, state)
                self._mark(block)
            block.size += len(text)
            if block.size > _LONGEST_BLOCK:
                self.reading.skip("line of an endless block")
            else:
                block.lines.append(text)
        if block:  # told, but not passed
            yield from self.told(block)

    def _mark(self, block: Block[S]) -> None:
        reading = self.reading
        reading.offset, reading.line, reading.state = block.offset, block.line, block.state

    def _lines(self) -> Iterator[tuple[int, int, str]]:
        offset, number = self.reading.offset, self.reading.line
        with open_file(self.reading.path) as file:
            file.seek(offset)
            while raw := file.readline(LONGEST_LINE):
                text = raw.decode("utf-8", "replace").rstrip("\r\n")
                if not raw.endswith(b"\n") and text.lstrip().startswith(_MARK_BEGINS):
                    return
                yield offset, number, text
                self._passed.update(raw)
                offset, number = offset + len(raw), number + 1

    def _unchanged(self) -> bool:
        left = self.reading.offset
        with open_file(self.reading.path) as file:
            while left > 0 and (chunk := file.read(min(left, _CHUNK))):
                self._passed.update(chunk)
                left -= len(chunk)
        return left == 0 and self._passed.hexdigest() == self.state.before


def opens_with(path: Path, *marks: str) -> bool:
    """Is this the first thing a Markdown file says?"""
    if path.suffix != ".md":
        return False
    try:
        with open_file(path) as file:
            head = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return False
    return head.lstrip("\ufeff \t\r\n").startswith(marks)
