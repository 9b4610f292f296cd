"""The query language: plain words rank, operators are for those who ask. Any text is a query.

    redis cache deploy            items with any of the words, the best first
    "rate limit"                  the words side by side
    redis AND deploy, NOT staging both; without the word
    (redis OR memcached) AND ttl  groups
    migrat*                       words that begin so
    NEAR(cache deploy, 5)         within so many words of each other (10 without a number)
    project:shop since:1w         the filters: project, kind, type, concept, file, session, agent,
                                  tool, since, until

Operators are written in capitals and belong to short questions on one line. In anything longer
(a pasted prompt, an error message, code) everything is a plain word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from yester.clock import parse_time
from yester.errors import UsageError
from yester.model import KINDS, Every, Expression, Phrase, Prefix, Some, Without, Word
from yester.tables import load_table
from yester.text.terms import STOP, text_terms

FIELDS = frozenset(
    {"project", "kind", "type", "concept", "file", "session", "agent", "tool", "since", "until"}
)
NEAR_WORDS = 10
_SHORTEST_PREFIX = 2
_LONGEST_QUESTION = 12  # words; who writes more is not using operators

_TOKEN = re.compile(
    r'"(?P<phrase>[^"]*)"'
    r"|NEAR\(\s*(?P<near>[^(),]+)(?:,\s*(?P<distance>\d{1,3})\s*)?\)"
    r"|(?P<open>\()|(?P<close>\))"
    rf"|(?P<field>{'|'.join(sorted(FIELDS))}):(?:\"(?P<quoted>[^\"]*)\"|(?P<value>[^\s()\"]+))"
    r"|(?P<prefix>\w[\w.-]*)\*(?!\w)"
    r"|(?P<word>[^\s()\"]+)"
    r"|(?P<stray>\")"
)


@dataclass(frozen=True, slots=True)
class Query:
    terms: tuple[str, ...]  # what ranks, each once
    prefixes: tuple[str, ...] = ()  # what ranks by its beginning
    must: Expression | None = None  # what every answer fulfils
    filters: tuple[tuple[str, str], ...] = ()
    named: bool = True  # False: nothing but stop words, the question names nothing

    @property
    def only_quoted(self) -> bool:
        """Nothing but quoted words restricts the answers."""
        parts = self.must.parts if isinstance(self.must, Every) else (self.must,)
        return all(isinstance(part, Phrase) and not part.distance for part in parts)


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: str  # word, phrase, near, prefix, operator, open, close
    text: str
    distance: int = 0


def parse_query(text: str) -> Query:
    stripped = text.strip()
    if "\n" in stripped or len(stripped.split()) > _LONGEST_QUESTION:
        pieces = [_Piece("word", word) for word in stripped.split()]
        filters: list[tuple[str, str]] = []
    else:
        pieces, filters = _split_pieces(stripped)
    operators = any(p.kind in ("operator", "phrase", "near", "prefix") for p in pieces)
    must = _Parser(pieces).parse_expression() if operators else None
    asked = [p for p in pieces if p.kind in ("word", "phrase", "near")]
    unwanted = _excluded_terms(must)
    telling = [p for p in asked if p.kind != "word" or p.text.strip(".,;:!?").lower() not in STOP]
    found: dict[str, None] = {}
    for piece in telling or asked:
        found.update(dict.fromkeys(text_terms(piece.text)))
    ranked = tuple(term for term in found if term not in unwanted)
    prefixes = tuple(p.text.lower() for p in pieces if p.kind == "prefix")
    return Query(ranked, prefixes, must, tuple(filters), bool((telling and ranked) or prefixes))


def _split_pieces(text: str) -> tuple[list[_Piece], list[tuple[str, str]]]:
    pieces: list[_Piece] = []
    filters: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(text):
        value = match["quoted"] or match["value"] or ""
        if match["field"] and _is_filter(match["field"], value):
            filters.append((match["field"], value))
        elif match["field"]:
            pieces.append(_Piece("word", match[0]))
        elif match["phrase"] is not None:
            if any(True for _ in text_terms(match["phrase"])):
                pieces.append(_Piece("phrase", match["phrase"]))
        elif match["near"]:
            pieces.append(_Piece("near", match["near"], int(match["distance"] or NEAR_WORDS)))
        elif match["open"] or match["close"]:
            pieces.append(_Piece("open" if match["open"] else "close", match[0]))
        elif match["prefix"]:
            stem = match["prefix"].strip("_.-")
            long_enough = len(stem) >= _SHORTEST_PREFIX
            pieces.append(_Piece("prefix" if long_enough else "word", stem))
        elif match["word"]:
            operator = match["word"] in ("AND", "OR", "NOT")
            pieces.append(_Piece("operator" if operator else "word", match["word"]))
    return _only_real_operators(pieces), filters


def _is_filter(name: str, value: str) -> bool:
    """Can this be a filter? `kind:of` and `since:when` are words like any other."""
    if name == "kind":
        return value in KINDS
    if name in ("since", "until"):
        try:
            parse_time(value, 0)
        except UsageError:
            return False
    return bool(value)


def _only_real_operators(pieces: Sequence[_Piece]) -> list[_Piece]:
    """AND and OR need something on both sides, NOT something behind it; others are plain words."""
    real = list(pieces)
    operands = ("word", "phrase", "near", "prefix")
    for at, piece in enumerate(real):
        if piece.kind != "operator":
            continue
        before = real[at - 1].kind if at else ""
        after = real[at + 1] if at + 1 < len(real) else _Piece("", "")
        follows = after.kind in (*operands, "open") or (
            after.kind == "operator" and after.text == "NOT" and piece.text != "NOT"
        )
        if not follows or (piece.text != "NOT" and before not in (*operands, "close")):
            real[at] = _Piece("word", piece.text)
    return real


class _Parser:
    """Recursive descent over pieces; never fails: stray brackets are passed over.

    Without an operator between them, words are a group that ranks and does not restrict; a phrase,
    a prefix and NEAR always restrict.
    """

    def __init__(self, pieces: Sequence[_Piece]) -> None:
        self._pieces = pieces
        self._at = 0

    def parse_expression(self) -> Expression | None:
        parts = []
        while self._at < len(self._pieces):
            before = self._at
            part = self._parse_either()
            if part is not None:
                parts.append(part)
            if self._at == before:
                self._at += 1  # a closing bracket without its opening one
        return _join_every(parts)

    def _next_is(self, kind: str, text: str = "") -> bool:
        if self._at >= len(self._pieces):
            return False
        piece = self._pieces[self._at]
        return piece.kind == kind and (not text or piece.text == text)

    def _parse_either(self) -> Expression | None:
        first, bound = self._parse_both()
        parts = [first]
        while self._next_is("operator", "OR"):
            self._at += 1
            parts.append(self._parse_both()[0])
            bound = True
        found = [part for part in parts if part is not None]
        if len(parts) > 1:
            return Some(tuple(found)) if len(found) > 1 else _join_every(found)
        return first if bound or not isinstance(first, Word) else None

    def _parse_both(self) -> tuple[Expression | None, bool]:
        """Operands joined by AND or NOT; the flag says whether an operator bound a plain word."""
        first, bound = self._parse_operand()
        parts = [first]
        while True:
            if self._next_is("operator", "AND"):
                self._at += 1
            elif not self._next_is("operator", "NOT"):
                break
            parts.append(self._parse_operand()[0])
            bound = True
        found = [part for part in parts if part is not None]
        return _join_every(found), bound

    def _parse_operand(self) -> tuple[Expression | None, bool]:
        if self._at >= len(self._pieces):
            return None, False
        if self._next_is("operator", "NOT"):
            self._at += 1
            part = self._parse_operand()[0]
            return (None if part is None else Without(part)), True
        piece = self._pieces[self._at]
        if piece.kind == "close":
            return None, False
        self._at += 1
        if piece.kind == "open":
            parts = []
            while self._at < len(self._pieces) and not self._next_is("close"):
                at = self._at
                part = self._parse_either()
                if part is None and at < self._at:
                    part = _word_expression(self._pieces[at])
                if part is not None:
                    parts.append(part)
            self._at += 1
            return _join_every(parts), True
        return _leaf_expression(piece)


def _leaf_expression(piece: _Piece) -> tuple[Expression | None, bool]:
    found = tuple(text_terms(piece.text))
    if piece.kind == "prefix":
        return Prefix(piece.text.lower()), True
    if piece.kind == "phrase":
        return Phrase(found), True
    if piece.kind == "near":
        return (Phrase(found, piece.distance) if len(found) > 1 else _word_expression(piece)), True
    return _word_expression(piece), False


def _word_expression(piece: _Piece) -> Word | None:
    found = tuple(text_terms(piece.text))
    return Word(found) if found else None


def _join_every(parts: Sequence[Expression]) -> Expression | None:
    if len(parts) > 1:
        return Every(tuple(parts))
    return parts[0] if parts else None


def _excluded_terms(expression: Expression | None, wanted: bool = True) -> set[str]:
    """Terms that stand behind NOT: they must not rank what they exclude."""
    match expression:
        case Without(part):
            return _excluded_terms(part, not wanted)
        case Every(parts) | Some(parts):
            return set().union(*(_excluded_terms(part, wanted) for part in parts))
        case Word(found) | Phrase(found):
            return set() if wanted else set(found)
    return set()


# --- what developers call by several names: `tables/synonyms.toml` --------------------------------

Names = tuple[str, ...]


@cache
def _load_names() -> tuple[dict[str, tuple[Names, ...]], dict[Names, tuple[Names, ...]]]:
    """Other names by a single term, and by the terms of a name of several words."""
    single: dict[str, dict[Names, None]] = {}
    several: dict[Names, dict[Names, None]] = {}
    for group in load_table("synonyms")["groups"]:
        expanded = [tuple(text_terms(name)) for name in group]
        for names in expanded:
            others = dict.fromkeys(other for other in expanded if other and other != names)
            if len(names) == 1:
                single.setdefault(names[0], {}).update(others)
            elif names:
                several.setdefault(names, {}).update(others)
    return (
        {term: tuple(others) for term, others in single.items()},
        {names: tuple(others) for names, others in several.items()},
    )


def other_names(asked: Sequence[str]) -> dict[str, tuple[Names, ...]]:
    """term → other names, for the terms of a question; "rate limit" is one thing, "rate" is not.
    What is found by another name counts for less."""
    single, several = _load_names()
    found = {term: list(single.get(term, ())) for term in asked}
    there = set(asked)
    for names, others in several.items():
        if there.issuperset(names):
            for term in names:
                found[term] += others
    return {term: tuple(dict.fromkeys(others)) for term, others in found.items() if others}
