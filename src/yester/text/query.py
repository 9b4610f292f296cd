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
from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct

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
    r"|NEAR\((?P<near>[^(),]+)(?:,\s*(?P<distance>\d{1,3})\s*)?\)"
    r"|(?P<open>\()|(?P<close>\))"
    rf"|(?P<field>{'|'.join(sorted(FIELDS))}):(?:\"(?P<quoted>[^\"]*)\"|(?P<value>[^\s()\"]+))"
    r"|(?P<prefix>\w[\w.-]*)\*(?!\w)"
    r"|(?P<word>[^\s()\"]+)"
)

_OPERANDS = ("word", "phrase", "near", "prefix")


class Query(Struct, frozen=True):
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


class _Piece(Struct, frozen=True):
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
    must = _Parser(pieces).parse_sequence() if operators else None
    unwanted = _excluded_terms(must)
    asked = [p for p in pieces if p.kind in ("word", "phrase", "near")]
    telling = [p for p in asked if p.kind != "word" or p.text.strip(".,;:!?").lower() not in STOP]
    prefixes = tuple(p.text.lower() for p in pieces if p.kind == "prefix")
    found: dict[str, None] = {}
    for piece in telling or asked or (pieces if not prefixes else ()):
        found.update(dict.fromkeys(text_terms(piece.text)))
    ranked = tuple(term for term in found if term not in unwanted)
    return Query(ranked, prefixes, must, tuple(filters), bool((telling and ranked) or prefixes))


def _split_pieces(text: str) -> tuple[list[_Piece], list[tuple[str, str]]]:
    pieces: list[_Piece] = []
    filters: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(text):
        kind, said = match.lastgroup or "word", match[0]
        distance = 0
        if match["field"]:
            kind, value = "word", match["quoted"] or match["value"] or ""
            if _is_filter(match["field"], value):
                filters.append((match["field"], value))
                continue
        elif match["near"]:
            kind, said, distance = "near", match["near"], int(match["distance"] or NEAR_WORDS)
        elif kind == "phrase":
            said = match["phrase"]
        elif kind == "prefix":
            said = match["prefix"].strip("_.-")
            kind = "prefix" if len(said) >= _SHORTEST_PREFIX else "word"
        elif said in ("AND", "OR", "NOT"):
            kind = "operator"
        if kind != "phrase" or any(True for _ in text_terms(said)):
            pieces.append(_Piece(kind, said, distance))
    return pieces, filters


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


class _Parser:
    """Recursive descent over pieces; never fails: stray brackets are passed over, an operator
    with nothing behind it, too.

    Without an operator between them, words are a group that ranks and does not restrict; a phrase,
    a prefix and NEAR always restrict.
    """

    def __init__(self, pieces: Sequence[_Piece]) -> None:
        self._pieces = pieces
        self._at = 0

    def parse_sequence(self, in_brackets: bool = False) -> Expression | None:
        """What stands side by side: everything, or what stands in brackets, where a word alone
        restricts, too."""
        parts = []
        while self._at < len(self._pieces):
            begin = self._at
            kind = self._pieces[begin].kind
            if kind == "close":
                self._at += 1
                if in_brackets:
                    break
                continue  # without its opening one
            part = self._parse_either()
            alone = self._at == begin + 1 and kind in ("word", "operator")
            if in_brackets or not alone:
                parts.append(part)
        return _join_parts(Every, parts)

    def _parse_either(self) -> Expression | None:
        parts = [self._parse_both()]
        while self._pass_operator("OR"):
            parts.append(self._parse_both())
        return _join_parts(Some, parts)

    def _parse_both(self) -> Expression | None:
        parts = [self._parse_operand()]
        while self._pass_operator("AND") or self._is_operator(self._at, "NOT"):
            parts.append(self._parse_operand())
        return _join_parts(Every, parts)

    def _parse_operand(self) -> Expression | None:
        if self._pass_operator("NOT"):
            part = self._parse_operand()
            return None if part is None else Without(part)
        piece = self._pieces[self._at]
        self._at += 1
        return self.parse_sequence(True) if piece.kind == "open" else _leaf_expression(piece)

    def _pass_operator(self, text: str) -> bool:
        there = self._is_operator(self._at, text)
        self._at += there
        return there

    def _is_operator(self, at: int, text: str) -> bool:
        """Does it stand there, and before something it can act on?"""
        if at + 1 >= len(self._pieces) or self._pieces[at] != _Piece("operator", text):
            return False
        behind = self._pieces[at + 1].kind
        return behind in (*_OPERANDS, "open") or self._is_operator(at + 1, "NOT")


def _leaf_expression(piece: _Piece) -> Expression | None:
    found = tuple(text_terms(piece.text))
    if piece.kind == "prefix":
        return Prefix(piece.text.lower())
    if piece.kind == "phrase":
        return Phrase(found)
    if piece.kind == "near" and len(found) > 1:
        return Phrase(found, piece.distance)
    return Word(found) if found and piece.kind != "operator" else None


def _join_parts(
    kind: type[Every] | type[Some], parts: Sequence[Expression | None]
) -> Expression | None:
    found = tuple(part for part in parts if part is not None)
    return kind(found) if len(found) > 1 else found[0] if found else None


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
def _load_names() -> Mapping[Names, Mapping[Names, None]]:
    """Other names by the terms of a name, those of a single term first."""
    found: dict[Names, dict[Names, None]] = {}
    for group in load_table("synonyms")["groups"]:
        expanded = [terms for name in group if (terms := tuple(text_terms(name)))]
        for names in expanded:
            others = dict.fromkeys(other for other in expanded if other != names)
            found.setdefault(names, {}).update(others)
    return {names: found[names] for names in sorted(found, key=lambda names: len(names) > 1)}


def other_names(asked: Sequence[str]) -> dict[str, tuple[Names, ...]]:
    """term → other names, for the terms of a question; "rate limit" is one thing, "rate" is not.
    What is found by another name counts for less."""
    found: dict[str, dict[Names, None]] = {term: {} for term in asked}
    there = set(asked)
    for names, others in _load_names().items():
        if there.issuperset(names):
            for term in names:
                found[term].update(others)
    return {term: tuple(others) for term, others in found.items() if others}


def is_short_form(one: str, other: str) -> bool:
    """Is one the other with letters left out, as "db" is "database"?"""
    short, long = sorted((one, other), key=len)
    rest = iter(long)
    return short[:1] == long[:1] and all(letter in rest for letter in short)
