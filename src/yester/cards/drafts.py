"""A turn with what is known of it, an observation before it is stored, and the gate its facts pass.

A fact is somebody's statement: it occurs in the item it points to. What does not, or what only
repeats (the session itself, or what yester had shown to it), is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from yester.cards.outcomes import Outcomes
from yester.cards.status import Committed, Status
from yester.cards.titles import find_request, is_housekeeping, request_title
from yester.cards.tools import is_prose
from yester.cards.turns import View
from yester.ingest.prepare import Shown, can_be_echo, is_repeated
from yester.model import Item
from yester.text.statements import (
    Statement,
    as_title,
    has_cue,
    is_boilerplate,
    same_form,
    split_statements,
    statement_worth,
    title_words,
    word_overlap,
)

WARNING = "warning"
TAKEN_BACK = ("reverted", "failed")
MOST_FILES = 20
_MERGES = ("Merge branch ", "Merge remote-tracking branch ", "Merge pull request ")
_FACTS, _FACT_CHARS = 9, 1_600
NEAR = 0.6  # statements and titles that share so many words say the same
_FINDINGS = frozenset({"cause", "gotcha", "failed"})


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement, the item it stands in, and what it is worth among others."""

    statement: Statement
    source: int
    worth: float = 0.0

    @property
    def text(self) -> str:
        return self.statement.text

    @property
    def tells(self) -> frozenset[str]:
        return self.statement.tells


@dataclass(frozen=True)
class Looked:
    """A turn, and what is known of it."""

    turn: View
    status: Status
    commits: Sequence[Committed]
    outcomes: Outcomes
    read_title: str = ""  # what the reader model calls it; "": it was not asked, or finds none
    subject: str = ""  # of the commit that holds it, whichever turn has made that
    later: Sequence[View] = ()  # the next turns

    @cached_property
    def request(self) -> str:
        return find_request(self.turn.prompt)

    @cached_property
    def named_commits(self) -> list[Committed]:
        """Without merges, which git itself has named, and what was added to older ones."""
        own = (one for one in self.commits if not one.commit.fixes_up)
        return [one for one in own if not one.commit.subject.startswith(_MERGES)]

    @property
    def request_title(self) -> str:
        return request_title(self.request)

    @property
    def only_notes(self) -> bool:
        """Was it committed here with nothing but prose, such as a log of changes, added to it?"""
        turn = self.turn
        return any(step.commits for step in turn.steps) and all(map(is_prose, turn.edited))

    @property
    def commit_title(self) -> str:
        """What the work was called when it was committed; a chore's name says nothing."""
        return "" if is_housekeeping(self.subject) else as_title(self.subject)


@dataclass(frozen=True, slots=True)
class Draft:
    """An observation before it is stored. `slot` names it within its turn, the same whenever the
    turn is distilled again; where it begins with "/", within the project: the newest of several
    sessions stays."""

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

    @property
    def is_work(self) -> bool:
        return self.slot.split(":")[0] in ("work", "commit")

    @property
    def item(self) -> Item:
        return Item(
            "", "observation", type=self.type, epoch=self.epoch, title=self.title,
            subtitle=self.subtitle, body=self.body, facts=tuple(fact.text for fact in self.facts),
            concepts=self.concepts, tags=self.tags, files_read=self.files_read,
            files_modified=self.files_modified,
            sections={name: text for name, text in self.sections.items() if text},
        )  # fmt: skip


class Gate:
    """What may be kept of a session; remembers what was."""

    def __init__(self, shown: Sequence[Shown] = (), known: Iterable[str] = ()) -> None:
        self._shown = shown
        self._known = {same_form(text) for text in known}
        self._told: set[str] = set()  # in the turn that is looked at

    def echoes(self, text: str, item: Item) -> bool:
        """Does an agent only say again in this item what the session was shown before?"""
        return can_be_echo(item) and is_repeated(text, self._shown, item.epoch)

    def is_new(self, text: str) -> bool:
        return same_form(text) not in self._known | self._told

    def lets(self, text: str, item: Item) -> bool:
        return self.is_new(text) and not self.echoes(text, item)

    def tell(self, facts: Iterable[Fact]) -> None:
        """These are told: they are not taken again in the same turn."""
        self._told.update(same_form(fact.text) for fact in facts)

    def keep(self, facts: Iterable[str]) -> None:
        """These are what is stored of a turn: said once more in this session, they are not taken
        again. What was only told, and is not stored, may be."""
        self._told.clear()
        self._known.update(map(same_form, facts))

    def take(
        self, item: Item, least: float = 1.0, bonus: float = 0.0, echoes: bool = False
    ) -> list[Fact]:
        """The statements of a message that tell something new, in order. With `echoes` those, too,
        that say of this work what the agent was shown of another."""
        return [
            Fact(one, item.id, value)
            for one in split_statements(item.body)
            if one.kind != "heading" and (value := bonus + statement_worth(one)) >= least
            and not (one.aside or one.text.endswith(":") or is_boilerplate(one.text))
            and self.is_new(one.text) and (echoes or not self.echoes(one.text, item))
        ]  # fmt: skip

    def findings(self, item: Item, least: float = 1.0) -> list[Fact]:
        """Those that tell a cause, a trap or a failure. Most messages have none, and are not even
        taken apart."""
        if not may_find(item.body):
            return []
        return [fact for fact in self.take(item, least) if fact.tells & _FINDINGS]


def may_find(text: str) -> bool:
    return has_cue(text, *_FINDINGS)


def choose_facts(
    found: Sequence[Fact], most: int = _FACTS, room: int = _FACT_CHARS
) -> tuple[Fact, ...]:
    """The most telling of them, as many as there is room for, in the order they were said."""
    order = sorted(range(len(found)), key=lambda at: (-found[at].worth, at))
    kept: list[int] = []
    known: list[set[str]] = []
    for at in order:
        text = found[at].text
        said = title_words(text)
        if len(kept) == most:
            break
        if len(text) <= room and all(word_overlap(said, other) <= NEAR for other in known):
            room -= len(text)
            known.append(said)
            kept.append(at)
    return tuple(found[at] for at in sorted(kept))


def list_concepts(type_: str, facts: Iterable[Fact], edited: bool) -> tuple[str, ...]:
    """What an observation is about."""
    told = [name for fact in facts for name in fact.tells]
    reasons = told.count("why") + told.count("cause")
    about = {
        "how-it-works": type_ == "discovery" and ("how" in told or "cause" in told or not told),
        "why-it-exists": reasons >= (1 if type_ in ("decision", "feature") else 2),
        "what-changed": edited,
        "problem-solution": type_ == "bugfix",
        "gotcha": "gotcha" in told or "failed" in told,
        "pattern": "pattern" in told,
        "trade-off": "decision" in told or type_ == "decision",
    }
    return tuple(name for name, holds in about.items() if holds)
