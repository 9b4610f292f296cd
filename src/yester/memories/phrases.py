"""How people say a standing rule, what only sounds like one, and how they take one back: the rows
of tables/standing.toml, put together into patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from yester.memories.subject import THINGS
from yester.tables import load_table

_TABLE = load_table("standing")
_NAME = re.compile(r"\{([A-Z_]+)\}")


@cache
def get_part(name: str) -> str:
    """The piece of a regular expression that has this name in the table."""
    if name == "THING":
        things = sorted(THINGS, key=lambda thing: (-len(thing), thing))
        return rf"`?{_any_of(map(re.escape, things))}`?(?![\w-])"
    if name in _TABLE["words"]:
        return _any_of(get_words(name))
    return join_pieces(_TABLE["parts"][name])


def get_words(name: str) -> list[str]:
    """A row of words: those of a text with spaces, or with commas the phrases."""
    texts = _TABLE["words"][name]
    return [word.strip() for text in texts for word in text.split("," if "," in text else None)]


def join_pieces(pieces: Sequence[str]) -> str:
    """Pieces of a pattern as one, with the parts that they name."""
    return _NAME.sub(lambda found: get_part(found[1]), "".join(pieces))


def _any_of(alternatives: Iterable[str]) -> str:
    return f"(?:{'|'.join(alternatives)})"


@dataclass(frozen=True, eq=False)
class Cue:
    """What a standing rule sounds like."""

    name: str
    kind: str  # instruction, correction, preference
    scope: str  # project, or global: about the user's manner and not about one project
    confidence: float
    ways: Sequence[Sequence[str]]
    examples: Sequence[str]
    near_misses: Sequence[str]
    anywhere: bool = False  # also after other words; the rule then begins where the match does

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        lead = r"(?:.{0,300}?(?:^|[\s,(]))??" if self.anywhere else get_part("LEAD")
        return re.compile(rf"{lead}(?P<core>{'|'.join(map(join_pieces, self.ways))})", re.I | re.S)


@dataclass(frozen=True, eq=False)
class Veto:
    """Why a sentence that matches a cue is no standing rule after all."""

    name: str
    way: Sequence[str]
    examples: Sequence[str]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(join_pieces(self.way), re.I)


@dataclass(frozen=True, eq=False)
class WithdrawalCue:
    """`ends` says which rules can end by it: any, those that ask for it (do), those that forbid it
    (do not), or those that chose otherwise (again)."""

    name: str
    ends: str
    way: Sequence[str]
    examples: Sequence[Sequence[str]]  # (what is said, a rule that it ends)
    near_misses: Sequence[Sequence[str]]  # and one that it does not

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        lead, from_now = get_part("LEAD"), get_part("FROM_NOW")
        return re.compile(rf"{lead}(?:{from_now}\s?,?\s)?(?:{join_pieces(self.way)})", re.I)


CUES = tuple(Cue(**row) for row in _TABLE["cues"])
VETOES = tuple(Veto(**row) for row in _TABLE["vetoes"])
WITHDRAWALS = tuple(WithdrawalCue(**row) for row in _TABLE["withdrawals"])
