"""What a rule or a decision is about, as a key: two texts about the same thing share it.

A thing chosen among alternatives (pnpm, npm, yarn) is about the choice, not about the thing:
CHOICES names the choice. Anything else is about its telling words, stemmed and in a fixed order.
"""

from __future__ import annotations

import re

from yester.tables import load_table
from yester.text.terms import query_terms

_TABLE = load_table("standing")
# the choice → what can be chosen; a thing may stand in several, a pair decides which is meant
CHOICES: dict[str, frozenset[str]] = {
    name: frozenset(things.split()) for name, things in _TABLE["choices"].items()
}
THINGS = frozenset().union(*CHOICES.values())

# Words that say how a thing is ruled or decided, not what it is.
_MANNER = frozenset(" ".join(_TABLE["words"]["MANNER"]).split())
# Many of the things are everyday words: "tabs", "tabs for code", but not "make small steps".
_NAMED = re.compile(
    r"\W{0,3}(?:(?P<thing>[a-z][\w.+-]*)(?=\W*\Z|\W+(?:for|in|as|to|on|when|and|with|everywhere)\b)"
    r"|(?P<spelling>us|uk|british|american)(?= (?:english|spelling)))",
    re.I,
)
_SPELLINGS = {"us": "american", "uk": "british"}


def named_thing(text: str) -> str:
    """The name that a phrase is, if it stands in CHOICES; else ""."""
    match = _NAMED.match(text)
    spelling = (match["spelling"] or "").lower() if match else ""
    name = _SPELLINGS.get(spelling, spelling) or (match["thing"].lower() if match else "")
    return name.rstrip(".") if name.rstrip(".") in THINGS else ""


def shared_choice(*named: str) -> str:
    """The one choice that all of these phrases are answers to, or ""."""
    asked = {named_thing(text) for text in named if text}
    if not asked:
        return ""
    return next((name for name, answers in CHOICES.items() if asked <= answers), "")


def telling_terms(text: str) -> frozenset[str]:
    """The terms of a text that say what it is about."""
    return frozenset(term for term in query_terms(text) if term not in _MANNER and len(term) > 1)


def subject_key(text: str) -> str:
    """The telling terms as one string; equal for equal terms in any order."""
    return " ".join(sorted(telling_terms(text)))


def term_overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the terms that both have, of all that either has."""
    return len(one & other) / len(one | other) if one and other else 0.0
