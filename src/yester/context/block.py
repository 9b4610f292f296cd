"""A context being written: lines between a head and a foot, as many as the budget allows.

Lines are added as long as there is room; one that does not fit is passed over for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING

from yester.clock import Calendar
from yester.fence import MOST_UNITS, count_units, fence_text
from yester.git import Signals
from yester.model import Item, Project
from yester.text.document import estimate_tokens

if TYPE_CHECKING:
    from yester.recall.rank import Weights
    from yester.recall.recall import Fates
    from yester.text.embed import Embedder


@dataclass(frozen=True, slots=True)
class Shown:
    """One line of a context, for the ledger. `score` is 0 where nothing was ranked."""

    item: int
    score: float
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """What could have been shown and was not."""

    item: int
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class Context:
    """The fenced text and what it shows; both empty when there is nothing to say."""

    text: str = ""
    shown: tuple[Shown, ...] = ()
    left: tuple[Left, ...] = ()
    decision: str = ""  # about the tool that is to be used: ask, block; "": it goes on
    why: str = ""  # … for who reads that


@dataclass(frozen=True, slots=True)
class Here:
    """Where and when something happens, and what is known besides the store."""

    project: Project
    session: str
    now: int
    zone: tzinfo | None = None
    signals: Signals | None = None
    rules: Sequence[Item] = ()  # standing ones that apply here, the most important first
    weights: Weights | None = None
    embedder: Embedder | None = None
    fates: Fates | None = None
    everywhere: bool = True  # look in other projects too
    private: tuple[str, ...] = ()  # … but not in these
    before: str = ""  # what the agent said last in this session
    worked: tuple[str, ...] = ()  # files of this session so far, edited ones first, newest first
    client: str = ""  # that is told

    @property
    def calendar(self) -> Calendar:
        return Calendar(self.now, self.zone)


class Page:
    """One block of a kind (`yester.fence`), within a budget of tokens and the clients' limit."""

    def __init__(
        self, kind: str, note: str, head: str, foot: str, budget: int, room: int = MOST_UNITS
    ) -> None:
        self._kind, self._note, self._head, self._foot = kind, note, head, foot
        empty = self._fence_lines(())
        self._bytes = 4 * budget - len(empty.encode("utf-8", "replace"))
        self._units = room - count_units(empty)
        self._lines: list[str] = []
        self._heading = ""
        self.shown: list[Shown] = []
        self.left: list[Left] = []

    @property
    def has_room(self) -> bool:
        return self._bytes > 0 and self._units > 0

    def add_line(
        self, line: str, item: int, reason: str, score: float = 0.0, heading: str = ""
    ) -> bool:
        """Add a line, if it fits; the first one of a section brings its heading."""
        lines = [heading, line] if heading and heading != self._heading else [line]
        added = "".join(f"{one}\n" for one in lines)
        size = len(added.encode("utf-8", "replace"))
        if size > self._bytes or count_units(added) > self._units:
            self.left.append(Left(item, score, "no room"))
            return False
        self._bytes -= size
        self._units -= count_units(added)
        self._lines += lines
        self._heading = heading
        self.shown.append(Shown(item, score, estimate_tokens(line), reason))
        return True

    def says(self, text: str) -> bool:
        return any(text in line for line in self._lines)

    def finish_page(self) -> Context:
        text = self._fence_lines(self._lines) if self._lines else ""
        return Context(text, tuple(self.shown), tuple(self.left))

    def _fence_lines(self, lines: Iterable[str]) -> str:
        body = "\n".join(filter(None, (self._head, *lines, self._foot)))
        return fence_text(self._kind, body, self._note)


def join_contexts(*parts: Context) -> Context:
    """Several blocks as one context, in this order."""
    return Context(
        "\n".join(part.text for part in parts if part.text),
        tuple(one for part in parts for one in part.shown),
        tuple(one for part in parts for one in part.left),
        next((part.decision for part in parts if part.decision), ""),
        next((part.why for part in parts if part.decision), ""),
    )
