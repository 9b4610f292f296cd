"""What a language model answered, believed only as far as the text it was given bears it out.

The shape must be right (Malformed). What is in it must come from the text: a sentence stays if
most of its telling words stand there and all of its numbers do; others are dropped. Secrets are
taken out again, and nothing comes through that could pass for a fence, or that repeats what yester
has shown to the agent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

import msgspec

from yester.distil.prompts import CONCEPTS, HEADINGS, SECTIONS
from yester.errors import Malformed
from yester.fence import neutral, strip_fenced
from yester.ingest.echo import Shown, repeats
from yester.redact import redact
from yester.text.sentences import shorten, split_sentences
from yester.text.terms import query_terms, terms

T = TypeVar("T")

TITLE, SUBTITLE, FACT, SECTION, LINE = 120, 240, 400, 1_200, 400  # characters
NARRATIVE, FACTS, OBSERVATIONS, LINES = 2_000, 12, 8, 8
# The share of a text's telling words that must stand in what it was made from. A fact is nearly a
# quotation; a sentence of a story has words of its own.
FACT_SHARE, _STORY = 0.7, 0.5

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.S | re.I)
_BLOCK = re.compile(r"\A```(?:json)?\s*\n(?P<inner>.*?)\n?```\s*\Z", re.S | re.I)
_PLACE = re.compile(r"\$[\w.\[\]]{0,80}")


class Observed(msgspec.Struct, frozen=True):
    type: Literal["bugfix", "feature", "refactor", "change", "discovery", "decision"]
    title: str
    narrative: str
    subtitle: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class Summed(msgspec.Struct, frozen=True):
    request: str = ""
    investigated: str = ""
    learned: str = ""
    completed: str = ""
    next_steps: str = ""
    notes: str = ""


class TurnNotes(msgspec.Struct, frozen=True):
    observations: tuple[Observed, ...]
    summary: Summed


class Entry(msgspec.Struct, frozen=True):
    """A sentence of a digest and the items it comes from."""

    text: str
    items: tuple[int, ...]


class Headings(msgspec.Struct, frozen=True):
    decisions: tuple[Entry, ...] = ()
    tried: tuple[Entry, ...] = ()
    files: tuple[Entry, ...] = ()
    warnings: tuple[Entry, ...] = ()
    open: tuple[Entry, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in HEADINGS)


def parsed(text: str, shape: type[T]) -> T:
    """The JSON of an answer; around it may stand what local models like to add."""
    inner = _THOUGHT.sub("", text).strip()
    if block := _BLOCK.match(inner):
        inner = block["inner"]
    try:
        return msgspec.json.decode(inner, type=shape)
    except msgspec.ValidationError as error:
        # The place alone: the message quotes the answer, and the reason goes back to the model.
        place = _PLACE.search(str(error))
        raise Malformed(f"it is not of the schema, at {place[0] if place else '$'}") from None
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise Malformed("it is not JSON") from None


def turn_notes(
    answer: str, given: str, files: Collection[str], shown: Sequence[Shown] = ()
) -> TurnNotes:
    """Notes of a turn as far as `given` bears them out; `shown` is what the agent was
    shown. Malformed where nothing of what came does."""
    notes = parsed(answer, TurnNotes)
    known = words_of((given, *files))
    kept = [
        checked
        for one in notes.observations[:OBSERVATIONS]
        if (checked := _observation(one, known, files, shown)) is not None
    ]
    sections = {
        name: _story(getattr(notes.summary, name), known, SECTION, shown) for name in SECTIONS
    }
    if not kept and not any(sections.values()):
        raise Malformed("nothing of it stands in the text")
    return TurnNotes(tuple(kept), Summed(**sections))


def _observation(
    one: Observed,
    known: frozenset[str],
    files: Collection[str],
    shown: Sequence[Shown],
) -> Observed | None:
    title = line(one.title, TITLE)
    if not borne_out(title, known, _STORY) or repeats(title, shown):
        return None
    facts = (line(fact, FACT) for fact in one.facts[: 2 * FACTS])
    told = [f for f in facts if borne_out(f, known, FACT_SHARE) and not repeats(f, shown)]
    narrative = _story(one.narrative, known, NARRATIVE, shown)
    if not narrative and not told:
        return None
    subtitle = line(one.subtitle, SUBTITLE)
    named = dict.fromkeys(concept.strip().lower() for concept in one.concepts)
    return Observed(
        one.type,
        title,
        narrative,
        subtitle if borne_out(subtitle, known, _STORY) else "",
        tuple(dict.fromkeys(told))[:FACTS],
        tuple(concept for concept in CONCEPTS if concept in named),
        tuple(path for path in files if path in one.files),
    )


def _story(text: str, known: frozenset[str], most: int, shown: Sequence[Shown]) -> str:
    """The sentences that are borne out."""
    sentences = (line(part, most) for part in split_sentences(safe(text)))
    kept = [s for s in sentences if borne_out(s, known, _STORY) and not repeats(s, shown)]
    return line(" ".join(kept), most)


def digest(answer: str, given: Mapping[int, str]) -> Headings:
    """A digest as far as the items bear it out that it names; `given` is item → its text."""
    found = parsed(answer, Headings)
    known = {item: words_of((text,)) for item, text in given.items()}
    kept = {name: _entries(getattr(found, name), known) for name in HEADINGS}
    if found and not any(kept.values()):
        raise Malformed("nothing of it stands in the notes it names")
    return Headings(**kept)


def _entries(entries: Iterable[Entry], known: Mapping[int, frozenset[str]]) -> tuple[Entry, ...]:
    kept: dict[str, Entry] = {}
    for entry in entries:
        text = line(entry.text, LINE)
        items = tuple(item for item in dict.fromkeys(entry.items) if item in known)
        words = frozenset[str]().union(*(known[item] for item in items))
        if items and borne_out(text, words, _STORY):
            kept.setdefault(text, Entry(text, items))
    return tuple(kept.values())[:LINES]


# --- what is believed ----------------------------------------------------------------------------


def words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(term for text in texts for term in terms(text))


def borne_out(text: str, known: frozenset[str], share: float) -> bool:
    """Do so many of the telling words stand there, and every number?"""
    told = query_terms(text)
    if not told:
        return False
    strange = [term for term in told if term not in known]
    if any(any(sign.isdigit() for sign in term) for term in strange):
        return False
    return len(told) - len(strange) >= share * len(told)


def safe(text: str) -> str:
    """Without secrets, without our blocks, without anything that hides or could pass for a tag."""
    return neutral(strip_fenced(redact(text)))


def line(text: str, most: int) -> str:
    """A text on one line, cut at a word where it is too long."""
    return shorten(safe(text), most)
