"""What reads an agent's transcripts, and how far it is.

A reader yields items of one file. It streams, keeps its progress in a `Reading` so that the caller
can commit at any item and resume there, and never stops for a bad record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from yester.agents.descriptors import Agent
from yester.config import Config
from yester.model import Item, Session
from yester.project import Projects

_PROBLEMS_KEPT = 20


@dataclass(frozen=True, slots=True)
class Options:
    thinking: bool = True
    subagents: bool = True


@dataclass(slots=True)
class Reading:
    """How far one pass over one transcript is, and what it met besides items.

    `offset`, `line` and `state` name a place from which reading on yields everything not yet
    yielded (and perhaps some of it again, which identity makes harmless).
    """

    path: Path
    projects: Projects
    options: Options
    offset: int = 0
    line: int = 0
    state: Any = None  # the reader's own; a mapping when it comes back from the store
    unanswered: set[str] = field(default_factory=set)  # refs of calls whose result is not there yet
    messages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    excluded: bool = False  # something was left out because of its folder
    problems: list[str] = field(default_factory=list)
    _made: dict[str, Session] = field(default_factory=dict)
    _spans: dict[str, list[int]] = field(default_factory=dict)

    def note_session(self, session: str, epoch: int, make: Callable[[], Session]) -> None:
        """A record of this session at this time; `make` is called for the first one."""
        if session not in self._spans:
            self._made[session] = make()
            self._spans[session] = [epoch, epoch]
        else:
            span = self._spans[session]
            if epoch > span[1]:
                span[1] = epoch
            elif epoch < span[0]:
                span[0] = epoch

    def set_title(self, session: str, title: str) -> None:
        if session in self._made:
            self._made[session] = replace(self._made[session], title=title)

    def sessions(self) -> list[Session]:
        """The sessions met so far, each from its first to its last record."""
        return [
            replace(made, started=self._spans[key][0], ended=self._spans[key][1])
            for key, made in self._made.items()
        ]

    def skip(self, reason: str) -> None:
        self.skipped[reason] += 1

    def report_bad(self, line: int, reason: str) -> None:
        """A record that cannot be read: counted; the first ones are named with file:line."""
        self.skipped["unreadable"] += 1
        if len(self.problems) < _PROBLEMS_KEPT:
            self.problems.append(f"{self.path}:{line}: {reason}")


class Reader(ABC):
    """What an agent's module knows of its transcripts; kept there as `READER`."""

    @abstractmethod
    def is_transcript(self, path: Path) -> bool:
        """Is this file one of the agent's?"""

    @abstractmethod
    def read_items(self, reading: Reading) -> Iterator[Item | None]:
        """What the transcript holds; None: nothing yet, let others have a turn."""

    def select_transcripts(self, found: list[Path]) -> Iterable[Path]:
        """Those to be read of what lies in one of the agent's folders."""
        return found

    def stamp_transcript(self, path: Path) -> tuple[int, int]:
        """(size, mtime in ns) of what changes whenever there is something new to read."""
        found = path.stat()
        return found.st_size, found.st_mtime_ns


def load_reader(agent: str) -> Reader:
    """The reader of an agent, by its name."""
    reader: Reader = import_module(f"yester.agents.{agent.replace('-', '_')}").READER
    return reader


def find_transcripts(agent: Agent, config: Config) -> Iterator[Path]:
    """The transcripts where this agent keeps them."""
    for folder in config.texts(agent.folders):
        above = Path(folder).expanduser()
        found = [path for pattern in agent.transcripts for path in sorted(above.glob(pattern))]
        yield from load_reader(agent.name).select_transcripts(found)


T = TypeVar("T")


def load_state(kind: type[T], stored: Any) -> T:
    """What a reader remembered; what another version has stored begins empty."""
    if isinstance(stored, kind):
        return stored
    try:
        return msgspec.convert(dict(stored or {}), kind)
    except (msgspec.ValidationError, TypeError, ValueError):
        return kind()
