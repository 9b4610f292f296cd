"""A context being written: lines between a head and a foot, as many as the budget allows.

Lines are added in the order of their worth as long as there is room; one that does not fit is
passed over for the next. They are shown in the order of their places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from yester.fence import MOST_UNITS, count_units, fence_text
from yester.text.document import estimate_tokens


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


@dataclass(frozen=True, slots=True)
class _Line:
    place: tuple[int, int, int]
    text: str


class Page:
    """One block of a kind (`yester.fence`), within a budget of tokens and the clients' limit."""

    def __init__(
        self, kind: str, note: str, head: str, foot: str, budget: int, room: int = MOST_UNITS
    ) -> None:
        self._kind, self._note, self._head, self.foot = kind, note, head, foot
        empty = self._text(())
        self._bytes = 4 * budget - len(empty.encode("utf-8", "replace"))
        self._units = room - count_units(empty)
        self._lines: list[_Line] = []
        self._headings: dict[int, str] = {}
        self.shown: list[Shown] = []
        self.left: list[Left] = []

    @property
    def has_room(self) -> bool:
        return self._bytes > 0 and self._units > 0

    def add_line(
        self,
        line: str,
        item: int,
        reason: str,
        place: tuple[int, int, int],
        score: float = 0.0,
        heading: str = "",
    ) -> bool:
        """Put a line into its place, if it fits; the first one of a section brings its heading."""
        known = not heading or place[0] in self._headings
        added = f"{line}\n" if known else f"{heading}\n{line}\n"
        size = len(added.encode("utf-8", "replace"))
        if size > self._bytes or count_units(added) > self._units:
            self.left.append(Left(item, score, "no room"))
            return False
        self._bytes -= size
        self._units -= count_units(added)
        if not known:
            self._headings[place[0]] = heading
        self._lines.append(_Line(place, line))
        self.shown.append(Shown(item, score, estimate_tokens(line), reason))
        return True

    def finish_page(self) -> Context:
        left = tuple(self.left)
        if not self._lines:
            return Context(left=left)
        lines: list[str] = []
        section = -1
        for one in sorted(self._lines, key=lambda one: one.place):
            if one.place[0] != section and (heading := self._headings.get(one.place[0])):
                lines.append(heading)
            section = one.place[0]
            lines.append(one.text)
        return Context(self._text(lines), tuple(self.shown), left)

    def _text(self, lines: Iterable[str]) -> str:
        body = "\n".join(filter(None, (self._head, *lines, self.foot)))
        return fence_text(self._kind, body, self._note)


def join_contexts(*parts: Context) -> Context:
    """Several blocks as one context, in this order."""
    return Context(
        "\n".join(part.text for part in parts if part.text),
        tuple(one for part in parts for one in part.shown),
        tuple(one for part in parts for one in part.left),
    )
