"""What was said, taken apart: the statements of a message.

Statements are taken as they stand; only white space is made one. Code, tables and quotations are
not taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from yester.distil.cues import tells
from yester.distil.phrases import cut, plain
from yester.tables import load_pattern
from yester.text.sentences import split_sentences

LONGEST = 320  # characters of a statement; a longer one is cut where a clause ends
_LONGEST_MESSAGE = 30_000  # what stands after so much is no longer looked at
_FENCE = re.compile(r"^\s*(```+|~~~+)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?P<text>.+?)\s*#*\s*$")
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*+•–]|\d{1,2}[.)])\s+(?:\[[ xX>]\]\s+)?(?P<text>\S.*)$")
_TABLE = re.compile(r"\|.*\||\|?[ \t]{0,8}:?-{3}")
_RULE = re.compile(r"(?:[-*_=─━]\s*+){3,}$")
_BOLD_LINE = re.compile(r"^\s*\*\*(?P<text>[^*\n]{2,80}?)\*\*:?\s*$")
_LABEL = re.compile(r"\A\*\*(?P<text>[^*\n]{2,80}?)\*\*\s*(?::|[—–-]|\Z)\s*")
_SPECIFIC = re.compile(
    r"`[^`]+`|\b\w+[_./]\w+|\b[a-z]+[A-Z]\w+|\b[A-Z]{2,}\b|--\w|\d{2,}|\"[^\"]{2,}\""
)


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` occurs in the message as it stands, white space aside."""

    text: str
    heading: str = ""  # under which it stands
    kind: str = "sentence"  # sentence, bullet, heading
    lead: bool = False  # before the first list or heading

    @property
    def tells(self) -> frozenset[str]:
        return tells(self.text)

    @property
    def specific(self) -> int:
        """How many things it names that one could look for."""
        return len(_SPECIFIC.findall(self.text))


def statements(text: str) -> list[Statement]:
    """The statements of a message in order, boilerplate among them."""
    found: list[Statement] = []
    heading, lead, fence = "", True, ""
    block: list[str] = []  # the lines of a paragraph, or of a point with what goes on below it
    point = False

    def end_block() -> None:
        nonlocal block
        if block:
            text = " ".join(block)
            found.extend(_bullet(text, heading) if point else _sentences(text, heading, lead))
            block = []

    for line in text[:_LONGEST_MESSAGE].split("\n"):
        if mark := _FENCE.match(line):
            end_block()
            if not fence:
                fence = mark[1][:3]
            elif mark[1].startswith(fence):
                fence = ""
            continue
        if fence:
            continue
        stripped = line.strip()
        if not stripped or _TABLE.match(stripped) or _RULE.match(stripped) or stripped[0] == ">":
            end_block()
            point = False
        elif titled := (_HEADING.match(line) or _BOLD_LINE.match(line)):
            end_block()
            point = False
            heading = plain(titled["text"])
            found.append(_statement(titled["text"], "", "heading", False))
            lead = False
        elif bullet := _BULLET.match(line):
            end_block()
            lead, point = False, True
            block.append(" ".join(bullet["text"].split()))
        else:
            block.append(" ".join(stripped.split()))
    end_block()
    return found


def _sentences(text: str, heading: str, lead: bool) -> list[Statement]:
    return [_statement(part, heading, "sentence", lead) for part in split_sentences(text)]


def _bullet(text: str, heading: str) -> list[Statement]:
    """A point of a list; a long one is taken apart like any other text."""
    if len(text) <= LONGEST:
        return [_statement(text, heading, "bullet", False)]
    return [_statement(part, heading, "bullet", False) for part in split_sentences(text)]


def _statement(text: str, heading: str, kind: str, lead: bool) -> Statement:
    return Statement(cut(text, LONGEST), heading, kind, lead)


def generic_heading(text: str) -> bool:
    """A heading that any message could have."""
    if re.match(r"(?:what|how|why|where|when|which)\b", plain(text), re.I) and not _SPECIFIC.search(
        text
    ):
        return True
    generic = load_pattern("statements", "generic word")
    words = [word.strip(":()?!.,") for word in plain(text).split()]
    return sum(not generic.fullmatch(word) for word in words) < 2
