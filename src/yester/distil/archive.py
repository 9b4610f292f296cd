"""The archive of sessions as text: a block for each, under a heading that says whose it is.

    ## Session 1f3a9c2e (17:40)

    - Decision: Use Postgres for the ledger
    - Bug: The total of the cart was wrong: counts were compared as text
    - Failed: rtk bun run test fails: unrecognized subcommand 'bun'
    - Lesson: The importer writes counts as text

Blocks are added and never edited. What stands in one came from the store, so it is not indexed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b

import msgspec

from yester.distil.prompts import Prompt, archive_prompt, clean
from yester.distil.titles import near, words
from yester.distil.trouble import WARNING
from yester.distil.validate import FACT_SHARE, borne_out, line, parsed, words_of
from yester.errors import Malformed
from yester.model import Item

LABELS: Mapping[str, str] = {
    "decisions": "Decision", "bugs": "Bug", "failed": "Failed", "lessons": "Lesson",
}  # fmt: skip
_LESSONS = frozenset({"gotcha", "problem-solution", "how-it-works", "trade-off"})
_CHARS, _FACT_CHARS, _MOST = 300, 200, 12  # of a line, of the fact in it; lines of a kind
_SAME = 0.7
_HEADING = re.compile(r"Session ([0-9a-f]{8}) \(\d\d:\d\d\)")
_HEX = re.compile(r"[0-9a-f]{8}")


class Lines(msgspec.Struct, frozen=True):
    """What is worth keeping of a session, by its kind."""

    decisions: tuple[str, ...] = ()
    bugs: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in LABELS)


def short(session: str) -> str:
    """Eight hexadecimal digits for a session: its first ones, where it has such."""
    if _HEX.match(session):
        return session[:8]
    return blake2b(session.encode("utf-8", "replace"), digest_size=4).hexdigest()


def is_own(heading: str) -> bool:
    """Is this a heading of a block of ours?"""
    return _HEADING.fullmatch(heading.strip()) is not None


def found(items: Iterable[Item]) -> Lines:
    """What was distilled from a session, as lines."""
    kept: dict[str, list[str]] = {name: [] for name in LABELS}
    for item in items:
        if item.kind == "observation" and (kind := _kind(item)):
            kept[kind].append(_told(item))
    return Lines(**{name: tuple(dict.fromkeys(texts))[:_MOST] for name, texts in kept.items()})


def _kind(item: Item) -> str:
    if WARNING in item.tags:
        return "failed"
    if item.type == "decision":
        return "decisions"
    if item.type == "bugfix":
        return "bugs"
    lesson = item.type == "discovery" or _LESSONS.intersection(item.concepts)
    return "lessons" if lesson else ""


def _told(item: Item) -> str:
    title = line(item.title, _CHARS - _FACT_CHARS).rstrip(".")
    own = words(title)
    fact = next((text for text in item.facts if near(own, words(text)) < _SAME), "")
    return f"{title}: {line(fact, _FACT_CHARS)}" if fact else title


def asked(messages: Sequence[tuple[str, str]]) -> Prompt:
    """The question for a language model, of (who, what was said)."""
    return archive_prompt("\n\n".join(f"{who}: {text}" for who, text in messages))


def written(answer: str, given: str) -> Lines:
    """A model's lines as far as what was said bears them out; Malformed where nothing does."""
    lines = parsed(answer, Lines)
    known = words_of((clean(given),))
    kept = {
        name: tuple(
            dict.fromkeys(
                text
                for one in getattr(lines, name)[: 2 * _MOST]
                if borne_out(text := line(one, _CHARS), known, FACT_SHARE)
            )
        )[:_MOST]
        for name in LABELS
    }
    if lines and not any(kept.values()):
        raise Malformed("nothing of it stands in the text")
    return Lines(**kept)


def added(before: str, session: str, when: datetime, lines: Lines) -> str:
    """The block to be added to a file for a session that ended then: what does not stand there
    under its name already; "" where all does."""
    known = _under(before, short(session))
    told = [
        bullet
        for name, label in LABELS.items()
        for text in getattr(lines, name)
        if (bullet := f"- {label}: {text}") not in known
    ]
    if not told:
        return ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    return f"{gap}## Session {short(session)} ({when:%H:%M})\n\n" + "\n".join(told) + "\n"


def without(text: str, session: str) -> str:
    """A file without the blocks of a session, for those who want it forgotten; every other line
    stays as it is."""
    kept, own = [], False
    for one in text.splitlines(keepends=True):
        if one.startswith(("# ", "## ")):
            heading = _HEADING.fullmatch(one[3:].strip())
            own = heading is not None and heading[1] == short(session)
        if not own:
            kept.append(one)
    return "".join(kept)


def _under(text: str, name: str) -> set[str]:
    """The lines under a session's headings."""
    found, own = set(), False
    for one in text.splitlines():
        if one.startswith("## "):
            heading = _HEADING.fullmatch(one[3:].strip())
            own = heading is not None and heading[1] == name
        elif own:
            found.add(one.rstrip())
    return found
