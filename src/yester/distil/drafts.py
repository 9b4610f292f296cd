"""An observation before it is stored, and the gate its facts pass.

A fact is somebody's statement: it occurs in the item it points to, word for word. What does not, or
what only repeats (the session itself, or what yester had shown to it), is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from yester.distil.cues import boilerplate, may_find
from yester.distil.sentences import Statement, statements
from yester.distil.titles import near, words
from yester.ingest.prepare import Shown, can_be_echo, is_repeated
from yester.model import Item

TITLE = 80  # characters
_FACTS, _FACT_CHARS = 9, 1_600
_LEAST = 1.0
_EXPLAINS = 1.2
# What a statement that tells this is worth among others.
_WORTH: Mapping[str, float] = {
    "cause": 2.0, "gotcha": 1.4, "failed": 1.4, "decision": 1.1, "result": 1.0, "pattern": 0.5,
    "why": 0.5, "how": 0.5,
}  # fmt: skip
_ALIKE = 0.6  # share of words from which one statement says what another does
_FINDINGS = frozenset({"cause", "gotcha", "failed"})


@dataclass(frozen=True, slots=True)
class Fact:
    text: str
    source: int  # the item it was taken from


@dataclass(frozen=True, slots=True)
class Draft:
    """`slot` names it within its turn, the same whenever the turn is distilled again; where it
    begins with "/", within the project: the newest of several sessions stays."""

    slot: str
    type: str
    title: str
    epoch: int
    worth: float  # among those of its turn
    subtitle: str = ""
    body: str = ""
    facts: tuple[Fact, ...] = ()
    concepts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Taken:
    """A statement, where it stands, and what it is worth."""

    statement: Statement
    item: Item
    worth: float

    @property
    def fact(self) -> Fact:
        return Fact(self.statement.text, self.item.id)


class Gate:
    """What may be kept of a session; remembers what was."""

    def __init__(self, shown: Sequence[Shown] = (), known: Iterable[str] = ()) -> None:
        self._shown = shown
        self._known = {_same(text) for text in known}
        self._told: set[str] = set()  # in the turn that is looked at
        self._parsed: dict[int, list[Statement]] = {}
        self._texts: dict[int, str] = {}
        self._taken: dict[int, list[Taken]] = {}

    def statements(self, item: Item) -> list[Statement]:
        if item.id not in self._parsed:
            self._parsed[item.id] = statements(item.body)
        return self._parsed[item.id]

    def occurs(self, text: str, item: Item) -> bool:
        if item.id not in self._texts:
            self._texts[item.id] = " ".join(item.body.split())
        return " ".join(text.split()) in self._texts[item.id]

    def echoes(self, text: str, item: Item) -> bool:
        """Does an agent only say again in this item what the session was shown before?"""
        return can_be_echo(item) and is_repeated(text, self._shown, item.epoch)

    def lets(self, text: str, item: Item) -> bool:
        return self.new(text, item) and not self.echoes(text, item)

    def new(self, text: str, item: Item) -> bool:
        """Does it stand there, and is it not told yet?"""
        said = _same(text)
        return self.occurs(text, item) and said not in self._known and said not in self._told

    def tell(self, facts: Iterable[Fact]) -> None:
        """These are told: they are not taken again in the same turn."""
        self._told.update(_same(fact.text) for fact in facts)

    def keep(self, facts: Iterable[str]) -> None:
        """These are what is stored of a turn: said once more in this session, they are not taken
        again. What was only told, and is not stored, may be."""
        self._told.clear()
        self._known.update(map(_same, facts))

    def take(self, item: Item, least: float = _LEAST) -> list[Taken]:
        """The statements of a message that tell something new, in order."""
        return [
            taken
            for taken in self.report(item, least)
            if not self.echoes(taken.statement.text, item)
        ]

    def report(self, item: Item, least: float = _LEAST) -> list[Taken]:
        """Those, too, that say of this work what the agent was shown of another."""
        if item.id not in self._taken:
            self._taken[item.id] = [
                Taken(statement, item, value)
                for statement in self.statements(item)
                if statement.kind != "heading" and not boilerplate(statement.text)
                and (value := worth(statement)) >= _LEAST
            ]  # fmt: skip
        return [
            taken
            for taken in self._taken[item.id]
            if taken.worth >= least and self.new(taken.statement.text, item)
        ]

    def explaining(self, item: Item) -> list[Taken]:
        """What a message says right after something failed: what it names is worth more there."""
        found = []
        for statement in self.statements(item):
            if statement.kind == "heading" or not statement.specific or boilerplate(statement.text):
                continue
            if self.lets(statement.text, item):
                found.append(Taken(statement, item, worth(statement) + _EXPLAINS))
        return found

    def findings(self, item: Item, least: float = _LEAST) -> list[Taken]:
        """Those that tell a cause, a trap or a failure. Most messages have none, and are not even
        taken apart."""
        if not may_find(item.body):
            return []
        return [taken for taken in self.take(item, least) if taken.statement.tells & _FINDINGS]


def _same(text: str) -> str:
    return " ".join(text.lower().split())


def worth(statement: Statement) -> float:
    """How much a statement tells to somebody who was not there."""
    told = sum(_WORTH.get(name, 0.0) for name in statement.tells)
    named = 0.4 * min(statement.specific, 3)
    point = 0.5 if statement.kind == "bullet" and statement.specific else 0.0
    vague = 0.8 if "next" in statement.tells else 0.0
    if statement.text.endswith(":"):  # what it says comes after it
        vague += 1.0
    if not statement.specific and len(statement.text) < 60:
        vague += 0.8
    return told + named + point - vague


def chosen(found: Sequence[Taken], most: int = _FACTS, room: int = _FACT_CHARS) -> list[Taken]:
    """The most telling of them, as many as there is room for, in the order they were said."""
    order = sorted(range(len(found)), key=lambda at: (-found[at].worth, at))
    kept: list[int] = []
    known: list[set[str]] = []
    for at in order:
        text = found[at].statement.text
        if len(kept) == most:
            break
        told = words(text)
        if len(text) > room or any(near(told, other) > _ALIKE for other in known):
            continue
        room -= len(text)
        known.append(told)
        kept.append(at)
    return [found[at] for at in sorted(kept)]
