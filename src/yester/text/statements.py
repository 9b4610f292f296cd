"""What was said, taken apart: the statements of a message, what they tell, which tell nothing, and
how one becomes a title.

A statement is the author's words, without marks; code, tables and quotations are not taken. The
rows of tables/statements.toml know English, and of other languages the commonest words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct

from yester.tables import load_pattern, load_rows
from yester.text.prose import prose_sentences, strip_marks
from yester.text.terms import STOP, text_terms

LONGEST = 320  # characters of a statement; a longer one is cut where a clause ends
TITLE = 80  # characters
_LONGEST_MESSAGE = 30_000  # what stands after so much is no longer looked at
_SHORTEST = 18
_SENTENCE, _FEW_WORDS = 8, 4
_QUOTATION = re.compile(r"^[ \t]*>.*$", re.M)
# A line that goes on in the next one, which is no point, heading, table or code.
_WRAPPED = re.compile(r"(?<=[^\s.:!?>|#*`])[ \t]*\n(?=[ \t]*(?:[a-z(]|`[^`]))")
_CODE_MARK = re.compile(r"(?<!`)`(?!`)")
_CODE = "\ue000"  # stands for a code mark while a message is taken apart
_ARROW = "\ue001"  # … and for an arrow: "1.5 → 2.0" says nothing without it
_SPECIFIC = re.compile(
    r"\b\w+[_./]\w+|\w\(\)|\b[a-z]+[A-Z]\w+|\b[A-Z]{2,}\b|--\w|\d{2,}|\"[^\"]{2,}\""
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FIXED = re.compile(r"\A(?:(?:all|now|also|it'?s) )?fixed\s*[:,;.!—–-]+\s*", re.I)
_A_WORD = re.compile(r"\A[\w'-]+(?:\s[\w'-]+)?[.!](?:\s|\Z)")
_ASIDE = re.compile(
    r"(?:\A|\s{1,9})(?:\([^()]{3,120}\)|\[[^\[\]]{3,80}\])|\s[—–]\s[^—–]{3,80}\s[—–](?=\s)"
)
_PLACES = re.compile(r" (?:in|for|from|across|during) ")
_FOLDERS = re.compile(r"(?<!\S)/(?:[^\s/]+/)+(?=[^\s/])")  # from the root
_AND = (" and ", " or ")
_ENDS = " ,;:—–-("
_LOOSE_ENDS = re.compile(
    r"\A(?:[ :;,—–]|\.(?!\w)|-(?!-?\w))+|[ .:;,—–-]+\Z"
)  # `--clean` and `.env` begin with their names


# What a statement that tells this is worth among others.
_WORTH: Mapping[str, float] = {
    "cause": 2.0, "gotcha": 1.4, "failed": 1.4, "decision": 1.1, "result": 1.0, "pattern": 0.5,
    "why": 0.5, "how": 0.5, "next": -0.8, "guess": -3.0,
}  # fmt: skip


class Statement(Struct, frozen=True):
    text: str
    kind: str = "paragraph"  # paragraph, bullet, heading
    heading: str = ""  # under which it stands
    lead: bool = False  # before the first list, or heading that says something
    code: int = 0  # pieces of code in it
    aside: bool = False  # how things were, may be done or are called: not what is

    @property
    def tells(self) -> frozenset[str]:
        return find_cues(self.text)

    @property
    def specific(self) -> int:
        """How many things it names that one could look for."""
        return max(len(_SPECIFIC.findall(self.text)), self.code)


@lru_cache(maxsize=64)
def split_statements(text: str) -> tuple[Statement, ...]:
    """The statements of a message in order, boilerplate among them. A turn is looked at from many
    sides."""
    text = _WRAPPED.sub(" ", _QUOTATION.sub("", text[:_LONGEST_MESSAGE])).replace("’", "'")
    found: list[Statement] = []
    heading, lead, offered = "", True, False
    text = text.replace("→", _ARROW)
    for kind, marked in prose_sentences(_CODE_MARK.sub(_CODE, text)):
        sentence = marked.replace(_CODE, "").replace(_ARROW, "→")
        bare = kind == "heading" and not _telling_words(sentence)
        lead = lead and (kind == "paragraph" or bare)
        above = "" if kind == "heading" else heading
        heading = sentence if kind == "heading" else heading
        code = marked.count(_CODE) // 2
        if kind != "bullet":  # a list below an offer is offered
            offers = load_pattern("statements", "offers").search(sentence)
            offered = sentence[-1:] in ":?" and offers is not None
        aside = offered or load_pattern("statements", "aside").match(above) is not None
        aside = aside or load_pattern("statements", "former state").match(sentence) is not None
        found.append(Statement(cut_clause(sentence, LONGEST), kind, above, lead, code, aside))
    return tuple(found)


# --- what a statement tells ----------------------------------------------------------------------


def has_cue(text: str, *names: str) -> bool:
    """Could a message tell one of these? Looks at all of it at once."""
    rows = load_rows("statements", "cues")
    return any(row.pattern.search(text) for row in rows if row.name in names)


@lru_cache(maxsize=4_096)
def find_cues(text: str) -> frozenset[str]:
    rows = load_rows("statements", "cues")
    return frozenset(row.name for row in rows if row.pattern.search(text))


def is_reason(text: str) -> bool:
    """Does a statement name a cause, and is it a sentence and not a point of a list?"""
    return "cause" in find_cues(text) and count_words(text) >= _SENTENCE and text[-1:] in ".!。"


def count_words(text: str) -> int:
    """Words; of scripts without spaces three characters count as one."""
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + len(_UNSPACED.findall(text)) // 3


@lru_cache(maxsize=4_096)
def is_boilerplate(text: str) -> bool:
    """Nothing that could be worth keeping: too short, a question, or talk about the talk."""
    bare = drop_fixed(drop_interjection(text)).strip(" *#:—–-")
    if bare[-1:] in "?？" or count_words(bare) < 3:
        return True
    if len(bare) < _SHORTEST and not _UNSPACED.search(bare):
        return True
    return any(row.pattern.search(bare) for row in load_rows("statements", "boilerplate"))


def is_fragment(title: str) -> bool:
    """A title that cannot stand alone: it leans on what was said before it, breaks off, or names a
    thing and nothing about it."""
    halves = "begins in the middle", "breaks off", "only a condition", "only counts", "only names"
    if any(load_pattern("statements", name).search(title) for name in halves):
        return True
    names = count_words(title) < _FEW_WORDS and not _SPECIFIC.search(title)
    return names and not any(row.pattern.match(title) for row in load_rows("statements", "types"))


def is_generic_heading(text: str) -> bool:
    """A heading that any message could have."""
    if re.match(r"(?:what|how|why|where|when|which)\b", text, re.I) and not _SPECIFIC.search(text):
        return True
    return len(_telling_words(text)) < 2


def is_chore(subject: str) -> bool:
    """Is a commit about tests, pages or tools, which go along with what a turn is about?"""
    return load_pattern("statements", "chore").match(subject) is not None


def telling_terms(text: str) -> frozenset[str]:
    """What two texts have in common that speak of the same."""
    return frozenset(text_terms(" ".join(_telling_words(text)))) - STOP


def _telling_words(text: str) -> list[str]:
    generic = load_pattern("statements", "generic word")
    words = (word.strip(":()?!.,") for word in text.split())
    return [word for word in words if not generic.fullmatch(word)]


@lru_cache(maxsize=4_096)
def statement_worth(statement: Statement) -> float:
    """How much a statement tells to somebody who was not there."""
    told = sum(_WORTH.get(name, 0.0) for name in statement.tells)
    named = 0.4 * min(statement.specific, 3)
    point = 0.5 if statement.kind == "bullet" and statement.specific else 0.0
    before = 1.0 if statement.text.endswith(":") else 0.0  # what it says comes after it
    vague = 0.8 if not statement.specific and len(statement.text) < 60 else 0.0
    return told + named + point - before - vague


def title_words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def word_overlap(one: Iterable[str], other: Iterable[str]) -> float:
    """Share of common words of two titles."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def same_form(text: str) -> str:
    """What two texts have in common that say the same in the same words."""
    return " ".join(text.lower().split())


# --- as it is shown ------------------------------------------------------------------------------


def bare_text(text: str) -> str:
    """Without marks, but with its arrows."""
    return strip_marks(text.replace("→", _ARROW)).replace(_ARROW, "→")


def drop_label(text: str) -> str:
    """`Root cause: the cache` is about the cache; `Verdict: possible. …` needs its label."""
    rest = load_pattern("statements", "label").sub("", text, count=1)
    return text if _A_WORD.match(rest) else rest


def drop_interjection(text: str) -> str:
    rest = load_pattern("statements", "interjection").sub("", text, count=1)
    return rest or text


def drop_fixed(text: str) -> str:
    """`Fixed: the cache` says what was fixed in what comes after it."""
    return _FIXED.sub("", text, count=1)


def cut_clause(text: str, most: int) -> str:
    """The beginning of a text, at most so long, up to the end of a clause; nothing is changed."""
    if len(text) <= most:
        return text
    clause = load_pattern("statements", "clause")
    ends = [m.start() for m in clause.finditer(text[: most + 1]) if m.start() > most // 3]
    at = ends[-1] if ends else text.rfind(" ", 0, most)
    shorter = text[: at if at > 0 else most].rstrip(_ENDS)
    return shorter if shorter.count("`") % 2 == 0 else shorter[: shorter.rfind("`")].rstrip(_ENDS)


def as_title(text: str) -> str:
    """A statement as a title: without marks, asides and interjections; a long one ends with its
    first clauses, or where it is cut with a sign that it goes on."""
    bare = _LOOSE_ENDS.sub("", drop_label(drop_interjection(bare_text(text))))
    if len(bare) > TITLE:
        bare = drop_asides(bare)
    return _capitalize(shorten_title(bare))


def drop_asides(text: str) -> str:
    """What stands in brackets or between dashes is not what a sentence says."""
    return " ".join(_ASIDE.sub("", text).split())


def shorten_title(text: str, most: int = TITLE) -> str:
    """At most so long: whole clauses where they fill at least half of it, else words and …"""
    text = text if len(text) <= most else _FOLDERS.sub("", text)
    if len(text) <= most:
        return text
    half_a_pair = load_pattern("statements", "half a pair")  # "both the key" wants the other one
    dangling = load_pattern("statements", "dangling")
    ends = [
        m
        for m in load_pattern("statements", "joint").finditer(text[: most + 2])
        if most * 0.35 <= m.start() <= most
        and not (m[0] in _AND and half_a_pair.search(text, 0, m.start()))
        and not (m[0].strip().isalpha() and _is_unfinished(text[: m.start()]))
    ]
    if not ends or ends[-1][0] in _AND:  # rather both of two than where they are
        ends += [m for m in _PLACES.finditer(text[: most + 2]) if most * 0.6 <= m.start() <= most]
    whole = text[: max((m.start() for m in ends), default=0)].rstrip(_ENDS)
    if whole and not is_fragment(whole):
        return whole
    short = text[: text.rfind(" ", 0, most)] if " " in text[:most] else text[: most - 1]
    half = half_a_pair.search(short)
    if half and half.start() >= most * 0.45:
        short = short[: half.start()].rstrip()
    return dangling.sub("", short).rstrip(_ENDS) + "…"


def _is_unfinished(text: str) -> bool:
    names = "dangling", "wants more"
    return any(load_pattern("statements", name).search(text) for name in names)


def _capitalize(text: str) -> str:
    """With a capital, unless it begins with a name."""
    word = text.split(" ", 1)[0].rstrip(".,:;")
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text
