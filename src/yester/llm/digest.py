"""What hits say about a question under five headings: decisions, attempts, files, warnings, open.

Without a language model it is made of sentences of the hits, each with the number of the item it
stands in; with one, of its sentences, each with the numbers of the items that bear it out. Asked
for by a person (`yester recall --digest`), never while a prompt waits for its context.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, partial

from msgspec import Struct

from yester.llm.budget import SECONDS, Asker
from yester.llm.questions import HEADINGS, Entry, Headings, check_digest, digest_prompt
from yester.model import Hit
from yester.tables import load_table
from yester.text.sentences import clean_text, one_line, split_sentences
from yester.text.terms import query_terms, text_terms

LINES = 5  # under one heading
LONGEST = 260  # characters of a line
_SCANNED = 12_000  # characters of a hit
_SHORTEST = 20  # characters of a sentence that says something

_BULLET = re.compile(r"^(?:[-*•>#]+|\d+[.)])\s+")
_PATH = re.compile(r"(?<![\w/.:])(?:[\w.-]{1,60}/){1,12}[\w-]{1,60}(?:\.[A-Za-z]\w{0,7})\b")


class Digest(Struct, frozen=True):
    """`model` made it, or nobody; then `reason` says why not, where one was to be asked."""

    headings: Headings
    model: str = ""
    reason: str = ""


def digest_hits(
    query: str, hits: Sequence[Hit], asker: Asker | None = None, seconds: float = SECONDS
) -> Digest:
    """Never raises; without hits it is empty, and nobody is asked."""
    if asker is None or not hits:
        return Digest(extract_headings(query, hits))
    given = {hit.id: "\n".join((hit.title, hit.text, *hit.files)) for hit in hits}
    said = asker.ask(digest_prompt(query, hits), partial(check_digest, given=given), seconds)
    if said.value is None:
        return Digest(extract_headings(query, hits), reason=said.reason)
    return Digest(said.value, asker.model.name)


def extract_headings(query: str, hits: Sequence[Hit]) -> Headings:
    """Sentences of the hits, those first that speak of the question and of better hits."""
    asked = frozenset(query_terms(query))
    found: dict[str, list[tuple[float, int, Entry]]] = {name: [] for name in HEADINGS}
    seen: set[tuple[str, ...]] = set()
    for rank, hit in enumerate(hits):
        for position, sentence in enumerate(_hit_sentences(hit)):
            heading = _find_heading(sentence, hit)
            words = tuple(text_terms(sentence))
            if not heading or words in seen:
                continue
            seen.add(words)
            worth = len(asked.intersection(words)) / (len(asked) or 1) + 1 / (2 + rank)
            entry = Entry(one_line(sentence, LONGEST), (hit.id,))
            found[heading].append((-worth, rank * _SCANNED + position, entry))
    kept = {
        name: tuple(entry for _, _, entry in sorted(entries, key=lambda e: e[:2])[:LINES])
        for name, entries in found.items()
        if name != "files"
    }
    return Headings(files=_list_files(hits), **kept)


def _hit_sentences(hit: Hit) -> list[str]:
    # What a tool printed is no sentence of anybody.
    text = hit.title if hit.role == "tool" else f"{hit.title}\n{hit.text[:_SCANNED]}"
    parts = (_BULLET.sub("", part) for part in split_sentences(clean_text(text)))
    return [part for part in parts if len(part) >= _SHORTEST and " " in part]


@cache
def load_signs() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Headings and what a sentence says that belongs there."""
    rows = load_table("digest")["signs"]
    return tuple((row["heading"], re.compile(row["pattern"], re.I)) for row in rows)


def _find_heading(sentence: str, hit: Hit) -> str:
    for name, sign in load_signs():
        if sign.search(sentence):
            return name
    first = bool(hit.title) and hit.title.startswith(sentence[:40])
    types: dict[str, str] = load_table("digest")["types"]
    return types.get(hit.type, "") if first else ""


def _list_files(hits: Sequence[Hit]) -> tuple[Entry, ...]:
    """Paths and the items they stand in; those of several items first."""
    where: dict[str, dict[int, None]] = {}
    for hit in hits:
        named = () if hit.files else _PATH.findall(clean_text(hit.text[:_SCANNED]))
        for path in (*hit.files, *named):
            where.setdefault(one_line(path, LONGEST), {})[hit.id] = None
    ordered = sorted(where.items(), key=lambda pair: -len(pair[1]))
    return tuple(Entry(path, tuple(ids)) for path, ids in ordered[: 2 * LINES])
