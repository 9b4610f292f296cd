"""What a turn is called, what kind of work it is, and what was asked for.

A title says the result: the commit's subject, else a plan's own heading, else what the reader model
finds, else what the agent says at its end. The request names a turn where nothing else does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from yester.cards.statements import (
    TITLE,
    as_title,
    count_words,
    drop_label,
    is_boilerplate,
    is_fragment,
    is_generic_heading,
    split_statements,
)
from yester.memories.utterances import find_kind
from yester.model import Item
from yester.tables import load_pattern, load_rows

_FIXED = re.compile(r"(?:i (?:have )?|i've |we )?fixed\b(?! (?:in|by|with|width|size)\b)", re.I)
_CONVENTIONAL = re.compile(r"([a-z]+)(?:\([^)]*\))?!?: ")
_COMMAND = re.compile(r"\A/[\w:.-]+\s+")
_QUOTED = re.compile(r"\"\"\"|'''")
_NUMBERED = re.compile(r"(?:\W*\d+[.):]|step |phase |option |part )", re.I)
_WORD = re.compile(r"[^\W\d_]{2,}")
_CLAUSES = re.compile(r"[,;] | [-–—] ")
_FEW_WORDS = 4
_SHORTEST_HEADING = 20


# --- what was asked for --------------------------------------------------------------------------


def find_request(prompt: Item | None) -> str:
    """What a prompt asks for, in a sentence of its own words; "" where none says it."""
    if prompt is None:
        return ""
    if title := plan_title(prompt.body):
        return title
    text = _COMMAND.sub("", prompt.body.strip(), count=1)
    text = _QUOTED.split(text, maxsplit=1)[0] or text
    best = ""
    for statement in split_statements(text[:6_000]):
        said = statement.text
        if load_pattern("statements", "pasted").match(said) or count_words(said) < 2:
            continue
        if is_telling(said) and not find_kind(said, "decision"):
            return said
        best = best or said
    return best


def plan_title(text: str) -> str:
    """The name of a plan that is handed in as a prompt."""
    rest = load_pattern("statements", "plan").sub("", text, count=1)
    if rest == text:
        return ""
    for statement in split_statements(rest[:4_000]):
        if statement.kind == "heading":
            title = drop_label(statement.text).strip()
            if not is_generic_heading(title):
                return title
        elif not is_boilerplate(statement.text):
            return statement.text
    return ""


def is_telling(request: str) -> bool:
    """Can somebody who reads only this know what was wanted?"""
    bare = _drop_politeness(request)
    pointing = load_pattern("statements", "pointing").findall(bare)
    return count_words(bare) - len(pointing) >= _FEW_WORDS


def request_title(request: str) -> str:
    """A request as a title, where it tells what was wanted; a polite question asks for something,
    another one stays a question."""
    if not is_telling(request):
        return ""
    if len(request) > TITLE and not is_imperative(request):  # what is wrong, then what to do
        clauses = _CLAUSES.split(request)[1:]
        request = next((one for one in clauses if is_imperative(one) and is_telling(one)), request)
    bare = _drop_politeness(request) or request
    if bare != request or is_imperative(request):
        bare = load_pattern("statements", "please").sub("", bare)
    return as_title(bare)


def _drop_politeness(text: str) -> str:
    return load_pattern("statements", "polite").sub("", text)


def is_imperative(text: str) -> bool:
    """Does a request say what to do, so that it can name what was done?"""
    bare = _drop_politeness(text).lower()
    return bool(find_type(bare) or load_pattern("statements", "verb").match(bare))


# --- what kind of work it is ---------------------------------------------------------------------


def find_type(title: str) -> str:
    """By how it begins; "" where that says nothing."""
    begin = title.lstrip("[`\"' ").lower()
    rows = load_rows("statements", "types")
    return next((row.name for row in rows if row.pattern.match(begin)), "")


def commit_type(subject: str) -> str:
    """The type a commit says itself to be (`fix(web): …`); "" where it does not."""
    prefix = _CONVENTIONAL.match(subject)
    return find_type(prefix[1]) or "change" if prefix else ""


def says_fixed(title: str) -> bool:
    """Does it say of something that it was fixed?"""
    return _FIXED.match(title) is not None


def names_fault(text: str) -> bool:
    return load_pattern("statements", "fault").search(text) is not None


def is_housekeeping(subject: str) -> bool:
    return load_pattern("statements", "housekeeping").match(subject) is not None


def heading_title(item: Item) -> str:
    """The first heading of a message, where it says what the message is about."""
    for statement in split_statements(item.body):
        if statement.kind == "heading":
            title = drop_label(statement.text)
            short = len(title) < _SHORTEST_HEADING
            vague = short or is_generic_heading(title) or _NUMBERED.match(title)
            return "" if vague else as_title(title)
    return ""


def title_filter(closing: str) -> Callable[[str], bool]:
    """Which titles of the reader are not taken: what cannot stand alone, and what only the request
    says, since a title says the result."""
    said = _letters_of(closing)
    return lambda title: is_fragment(title) or _letters_of(title) not in said


def _letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


# --- alike ---------------------------------------------------------------------------------------


def title_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def word_overlap(one: Iterable[str], other: Iterable[str]) -> float:
    """Share of common words of two titles."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first | second else 0.0
