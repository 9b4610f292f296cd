"""Whether a newer text takes back what an older note says. Rules alone, and precision first.

Three things are looked for, each clause by clause:

    for and against     "Use pnpm" – "Never use pnpm", "We dropped pnpm", "Use bun instead of pnpm"
    one or the other    "Use pnpm for installs" – "Use bun for installs"
    two values          "The API port is 8080" – "The API port is 9090"

The thing must be the same, and so must what it is for: "Don't use mocks in integration tests" is an
exception to "Use mocks", not its opposite. What the rules cannot tell is no contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from yester.text.terms import query_terms

_LONGEST = 4_000  # characters looked at
_MOST_TERMS = 4  # of a thing; a longer one is a sentence, and is not compared


def _any_of(words: str) -> str:
    return "(?:" + "|".join(words.replace("_", r"\s+").split()) + ")"


_CLAUSE = re.compile(
    r"[.;!?](?=\s|$)|\n|\s(?:[–—]|--)\s|,\s+(?:but|and|so|then|because|since|as|which)\b",
    re.IGNORECASE,
)
_OPENING = (
    r"^(?:decision\s*:\s*)?"
    rf"(?:{_any_of('please we you i always only must should have to decided agreed finally')}\s+)*"
)
_NOT = _any_of(
    "do_not don't does_not must_not mustn't should_not shouldn't never not cannot can't no_longer"
    " stop stopped avoid"
)
_USE = _any_of("use using uses used prefer choose chose go_with going_with went_with settled_on")
_MOVED = _any_of("switched moved migrated") + r"(?:\s+away)?"
_LEFT = _any_of("dropped abandoned deprecated retired got_rid_of")
_IS = _any_of("is are was were has_been have_been") + r"(?:\s+now)?"
_GONE = _any_of("dropped deprecated retired abandoned forbidden no_longer_used not_used_any_more")
_FOR = _any_of("for in on when as to within during inside with at by")
_TURN = _any_of("instead rather over not because since as so until unless if except")
_THING = r"(?P<thing>[^,:()]{1,60}?)"
_OTHER = r"(?P<other>[^,:()]{1,40}?)"
# What comes behind the thing: what it is for, and then a turn or the end.
_REST = rf"(?:\s+(?P<link>{_FOR})\s+(?P<purpose>[^,:()]{{1,80}}?))?(?=\s+{_TURN}\b|[,:(]|\s*$)"

# (pattern, for or against the thing); a pattern with another thing is for that one besides.
_RULES: tuple[tuple[re.Pattern[str], bool], ...] = tuple(
    (re.compile(pattern + _REST, re.IGNORECASE), good)
    for pattern, good in (
        (rf"{_OPENING}{_USE}\s+(?:only\s+|always\s+)?{_THING}", True),
        (rf"{_OPENING}{_NOT}\s+(?:ever\s+)?(?:to\s+)?(?:{_USE}\s+)?{_THING}", False),
        (rf"{_OPENING}against\s+(?:using\s+)?{_THING}", False),
        (rf"\b{_any_of('instead_of rather_than')}\s+(?:using\s+)?{_THING}", False),
        (rf"\b{_MOVED}\s+from\s+{_THING}\s+to\s+{_OTHER}", False),
        (rf"\breplaced?\s+{_THING}\s+{_any_of('with by')}\s+{_OTHER}", False),
        (rf"{_OPENING}{_LEFT}\s+{_THING}", False),
        (rf"^{_THING}\s+{_IS}\s+{_GONE}", False),
    )
)
_UNIT = _any_of("ms s seconds? minutes? hours? days? [kmg]b % lines? spaces?")
_VALUE = re.compile(
    r"^(?:the\s+|our\s+)?(?P<thing>[^,:=()]{2,60}?)\s*"
    rf"(?:\s{_any_of('is are defaults_to is_set_to was_set_to must_be should_be is_now')}\s|:\s|=)"
    r"\s*(?:now\s+|always\s+)?"
    rf"(?P<value>v?\d[\w.:/-]*|{_any_of('true false on off enabled disabled yes no')})"
    rf"(?P<unit>(?:\s*{_UNIT})?)\s*$",
    re.IGNORECASE,
)
_ALSO = re.compile(rf"\b{_any_of('also too as_well besides either or and')}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Said:
    good: bool
    thing: frozenset[str]
    purpose: frozenset[str]
    job: bool  # the purpose is what it is for, not where or when
    words: str


@dataclass(frozen=True, slots=True)
class Claims:
    """What a text says, as far as the rules can compare it."""

    said: tuple[_Said, ...]
    values: tuple[tuple[frozenset[str], str], ...]


def parse_claims(text: str) -> Claims:
    return Claims(tuple(_parse_statements(text)), tuple(_parse_values(text)))


def claimed_words(said: Claims) -> frozenset[str]:
    """The words of all that a text speaks of: texts without a common one cannot disagree."""
    things = [one.thing | one.purpose for one in said.said] + [thing for thing, _ in said.values]
    return frozenset().union(*things)


def find_contradiction(note: Claims, newer: Claims) -> str:
    """In what a newer text contradicts a note, in a few words; "" where it does not."""
    for old in note.said:
        for new in newer.said:
            if reason := _describe_opposition(old, new):
                return reason
    for thing, value in newer.values:
        for same, before in note.values:
            if thing == same and value != before:
                return f"{before} is now {value}"
    return ""


def _describe_opposition(old: _Said, new: _Said) -> str:
    if old.thing == new.thing and old.good != new.good:
        # Said of less than the note speaks of, it is an exception; said of anything else, nothing.
        opposed = new.purpose <= old.purpose
    else:
        same_job = old.job and new.job and old.purpose == new.purpose and old.good and new.good
        opposed = same_job and not (old.thing & new.thing or _ALSO.search(new.words))
    return f"{old.words} / {new.words}" if opposed else ""


def _parse_statements(text: str) -> Iterator[_Said]:
    for clause in _split_clauses(text):
        for pattern, good in _RULES:
            for found in pattern.finditer(clause):
                thing, purpose = _term_set(found["thing"]), _term_set(found["purpose"] or "")
                job = bool(purpose) and found["link"].lower() == "for"
                words = " ".join(found[0].split())
                if 0 < len(thing) <= _MOST_TERMS:
                    yield _Said(good, thing, purpose, job, words)
                other = found.groupdict().get("other")
                if other and 0 < len(_term_set(other)) <= _MOST_TERMS:
                    yield _Said(True, _term_set(other), purpose, job, words)


def _parse_values(text: str) -> Iterator[tuple[frozenset[str], str]]:
    """What is said to have which value; a thing of one plain word is too vague to compare."""
    for clause in _split_clauses(text):
        if found := _VALUE.match(clause):
            thing = _term_set(found["thing"])
            if 2 <= len(thing) <= _MOST_TERMS + 2:
                value = (found["value"].strip("`") + found["unit"].strip()).lower()
                yield thing, value


def _split_clauses(text: str) -> Iterator[str]:
    for part in _CLAUSE.split(text[:_LONGEST].replace("’", "'").replace("*", "")):
        clause = " ".join(part.replace("`", "").split()).strip(" -")
        if clause:
            yield clause


def _term_set(text: str) -> frozenset[str]:
    return frozenset(query_terms(text)) if text.strip() else frozenset()
