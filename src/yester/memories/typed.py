"""What a user types as decided, by the ways to say it in tables/decisions.toml.

Matched at the beginning of the user's own sentences, after words that only lead in; what is quoted
or pasted is not the user's. A question, a guess and a condition decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from yester.memories.own_words import MASK, own_sentences
from yester.memories.phrases import VETOES, get_part
from yester.tables import load_pattern, load_rows

_LONGEST = 320  # characters of a decision
_FEWEST_WORDS = 2
_VETOES = ("question", "guess", "conditional")


@dataclass(frozen=True, slots=True)
class Decision:
    """`text` is the user's sentence, on one line; `label` what of it only says that it is one."""

    text: str
    label: str
    way: str


@cache
def _load_ways(section: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The rows of a section as they begin a sentence."""
    lead = get_part("LEAD")
    return tuple(
        (row.name, re.compile(rf"{lead}(?:{row.source})", re.I | re.S))
        for row in load_rows("decisions", section)
    )


def _match_label(text: str) -> re.Match[str] | None:
    ((_, pattern),) = _load_ways("labels")
    return pattern.match(text)


def decisions_in(prompt: str) -> Iterator[Decision]:
    """What a typed prompt says to be decided, in order."""
    for sentence in own_sentences(prompt):
        if sentence.asked or not (way := _way(sentence.text)):
            continue
        text = " ".join(prompt[sentence.start : sentence.end].split())
        label = _match_label(text.replace("’", "'"))
        rest = text[label.end() :] if label else text
        if len(rest.split()) >= _FEWEST_WORDS and len(text) <= _LONGEST:
            yield Decision(text, text[: len(text) - len(rest)], way)


def _way(sentence: str) -> str:
    text = sentence.replace("’", "'")
    # Hedges in a reason are about what would have been, not about what is decided.
    head = load_pattern("decisions", "reason").split(text, maxsplit=1)[0]
    labelled = _match_label(text)
    said = head[labelled.end() :] if labelled else head
    if any(veto.pattern.search(said) for veto in VETOES if veto.name in _VETOES):
        return ""
    if text.count(MASK) * 2 > len(text):
        return ""
    if not labelled and load_pattern("decisions", "report").search(head):
        return ""  # what is wrong now, told with how it came to be
    return next((name for name, pattern in _load_ways("ways") if pattern.match(text)), "")
