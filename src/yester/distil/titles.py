"""What a piece of work is called, what kind of work it is, and what was asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from yester.distil.cues import boilerplate, word_count
from yester.distil.phrases import as_title, plain, without_label
from yester.distil.sentences import generic_heading, statements
from yester.memories.typed import decisions_in
from yester.model import Item
from yester.tables import load_pattern, load_rows

TYPES = ("bugfix", "feature", "refactor", "change", "discovery", "decision")
CONCEPTS = (
    "how-it-works",
    "why-it-exists",
    "what-changed",
    "problem-solution",
    "gotcha",
    "pattern",
    "trade-off",
)

_FIXED = re.compile(r"(?:i (?:have )?|i've |we )?fixed\b(?! (?:in|by|with|width|size)\b)", re.I)
_CONVENTIONAL = re.compile(r"([a-z]+)(?:\([^)]*\))?!?: ")
_COMMAND = re.compile(r"\A/[\w:.-]+\s+")
_QUOTED = re.compile(r"\"\"\"|'''")
_NUMBERED = re.compile(r"(?:\W*\d+[.):]|step |phase |option |part )", re.I)
_SEPARATORS = re.compile(r"[/\\]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FEW_WORDS = 4
_LONG = 80  # characters: more than a title
_CLAUSES = re.compile(r"[,;] | [-–—] ")


def asked(prompt: Item | None) -> str:
    """What a prompt asks for, in a sentence of its own words; "" where none says it."""
    if prompt is None:
        return ""
    if title := plan_title(prompt.body):
        return title
    text = _COMMAND.sub("", prompt.body.strip(), count=1)
    text = _QUOTED.split(text, maxsplit=1)[0] or text
    best = ""
    for statement in statements(text[:6_000]):
        bare = plain(statement.text)
        if load_pattern("statements", "pasted").match(bare) or word_count(bare) < 2:
            continue
        if telling_request(bare) and not any(decisions_in(bare)):
            return bare
        best = best or bare
    return best


def plan_title(text: str) -> str:
    """The name of a plan that is handed in as a prompt."""
    rest = load_pattern("statements", "plan").sub("", text, count=1)
    if rest == text:
        return ""
    for statement in statements(rest[:4_000]):
        if statement.kind == "heading":
            title = without_label(plain(statement.text)).strip()
            if not generic_heading(title):
                return title
        elif not boilerplate(statement.text):
            return plain(statement.text)
    return ""


def telling_request(text: str) -> bool:
    """Can somebody who reads only this know what was wanted?"""
    bare = _without_politeness(text)
    pointing = load_pattern("statements", "pointing").findall(bare)
    return word_count(bare) - len(pointing) >= _FEW_WORDS


def request_title(text: str) -> str:
    """A request as a title; a polite question asks for something, another one stays a question."""
    if len(text) > _LONG and not imperative(text):  # what is wrong, then what to do about it
        clauses = _CLAUSES.split(text)[1:]
        text = next((one for one in clauses if imperative(one) and telling_request(one)), text)
    bare = _without_politeness(text) or text
    if bare != text or imperative(text):
        bare = load_pattern("statements", "please").sub("", bare)
    return as_title(bare)


def _without_politeness(text: str) -> str:
    return load_pattern("statements", "polite").sub("", text)


def imperative(text: str) -> bool:
    """Does a request say what to do, so that it can name what was done?"""
    bare = _without_politeness(text).lower()
    return bool(type_of(bare) or load_pattern("statements", "verb").match(bare))


def type_of(title: str) -> str:
    """By how it begins; "" where that says nothing."""
    begin = title.lstrip("[`\"' ").lower()
    rows = load_rows("statements", "types")
    return next((row.name for row in rows if row.pattern.match(begin)), "")


def fixed(title: str) -> bool:
    """Does it say of something that it was fixed?"""
    return _FIXED.match(title) is not None


def conventional(subject: str) -> str:
    """The type a commit says itself to be (`fix(web): …`); "" where it does not."""
    prefix = _CONVENTIONAL.match(subject)
    return type_of(prefix[1]) or "change" if prefix else ""


def about_a_fault(text: str) -> bool:
    return load_pattern("statements", "fault").search(text) is not None


def housekeeping(subject: str) -> bool:
    return load_pattern("statements", "housekeeping").match(subject) is not None


def heading_title(item: Item) -> str:
    """The first heading of a message, where it says what the message is about."""
    for statement in statements(item.body):
        if statement.kind == "heading":
            title = without_label(plain(statement.text))
            known = generic_heading(title) or _NUMBERED.match(title) or len(title) < 20
            return "" if known else as_title(title)
    return ""


def concepts_of(
    type_: str, tells: Iterable[frozenset[str]], edited: bool, failed: bool
) -> tuple[str, ...]:
    """What an observation is about, in the order of CONCEPTS."""
    told = [name for one in tells for name in one]
    found: set[str] = set()
    if edited:
        found.add("what-changed")
    if type_ == "bugfix":
        found.add("problem-solution")
    if type_ == "discovery" and ("how" in told or "cause" in told or not told):
        found.add("how-it-works")
    if told.count("why") + told.count("cause") >= (1 if type_ in ("decision", "feature") else 2):
        found.add("why-it-exists")
    if failed or "gotcha" in told or "failed" in told:
        found.add("gotcha")
    if "pattern" in told:
        found.add("pattern")
    if "decision" in told or type_ == "decision":
        found.add("trade-off")
    return tuple(name for name in CONCEPTS if name in found)


def words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def near(one: Collection[str], other: Collection[str]) -> float:
    """Share of common words of two titles."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def file_names(files: Sequence[str], most: int = 3) -> str:
    """Some files by name, and how many more."""
    names = list(dict.fromkeys(_SEPARATORS.split(file.rstrip("/\\"))[-1] for file in files))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
