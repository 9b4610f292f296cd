"""What a message says in sentences: without code, tables, addresses and marks.

    heading    a line with # before it, or one that is bold as a whole
    bullet     a point of a list
    paragraph  any other line

Nothing is rewritten: every word that is left is the author's. The reader model was trained on texts
that were taken apart like this, and the tokens it gets depend on it: a change here changes titles.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["heading", "bullet", "paragraph"]


class Sentence(NamedTuple):
    kind: Kind
    text: str


_Steps = Sequence[tuple[re.Pattern[str], str]]

# Whole stretches that are no prose: fenced code, what a client puts into a prompt, comments. One
# that is not closed goes on to the end.
_BLOCKS: _Steps = (
    (re.compile(r"^[ \t]*(?P<fence>```|~~~).*?(?:^[ \t]*(?P=fence)[ \t]*$|\Z)", re.S | re.M), "\n"),
    (
        re.compile(
            r"<(?P<tag>system-reminder|task-notification|command-[a-z]+|local-command[a-z-]*"
            r"|bash-[a-z]+|ide_[a-z_]+)>.*?(?:</(?P=tag)>|\Z)",
            re.S,
        ),
        " ",
    ),
    (re.compile(r"<!--.*?(?:-->|\Z)", re.S), " "),
)
_NO_PROSE = re.compile(r"\A\s*(?:[-=*_~]{3,}+|\|.*)\s*\Z")  # a rule or a row of a table
_HEADING = re.compile(r"\A[ \t]*#{1,6}[ \t]+")
_BULLET = re.compile(r"\A[ \t]*(?:[-*+•▸●○–]|\d{1,2}[.)]|\[[ xX]\])[ \t]+")
_ALL_BOLD = re.compile(r"\A\s*\*\*[^*]{3,90}\*\*:?\s*\Z")
_INDENTED = ("    ", "\t")
# What a line loses, in this order; a link leaves its text.
_MARKS: _Steps = (
    (_HEADING, ""),
    (_BULLET, ""),
    (re.compile(r"\A\[[ xX]\]\s+"), ""),  # the box of a to-do
    (re.compile(r"\A\s*>\s?"), ""),
    (re.compile(r"!?\[([^\]\[\n]*(?:\[[^\]\[\n]*)?)\]\([^)(\n]*(?:\([^)(\n]*)?\)"), r"\1"),
    (re.compile(r"<?https?://\S+>?"), " "),
    # `<id>/store.db` and `List<T>` are no tags.
    (re.compile(r"</[a-zA-Z][^>\n]{0,80}>|(?<![/\w])<[a-zA-Z][^>\n]{0,80}>(?!/|\.\w)"), " "),
    (re.compile(r"\*\*|(?<!\w)__|__(?!\w)|`|~~|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)"), ""),
    # Pictures and arrows.
    (re.compile("[\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]"), " "),
    (re.compile(r"\s+"), " "),
)
_BETWEEN = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+(?:(?=[\"'(\[\ue000]?[A-Z0-9`/~@]|[\u4e00-\u9fff])"
    r"|(?<!e\.g\. )(?<!i\.e\. )(?=\ue000))|(?<=[。！？])"
)


def prose_sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a message in order, none of them empty."""
    for kind, line in _prose_lines(_apply_steps(_BLOCKS, text.replace("\r", ""))):
        for part in _BETWEEN.split(line):
            if sentence := part.strip():
                yield Sentence(kind, sentence)


def _prose_lines(text: str) -> Iterator[tuple[Kind, str]]:
    goes_on = False  # an indented line is code, unless it goes on from the one above
    for raw in text.split("\n"):
        if not raw.strip() or _NO_PROSE.match(raw):
            goes_on = False
            continue
        kind = _line_kind(raw)
        if kind == "paragraph" and raw.startswith(_INDENTED) and not goes_on:
            continue
        if kind == "paragraph" and _ALL_BOLD.match(raw):
            kind = "heading"
        if line := strip_marks(raw):
            yield kind, line
            goes_on = kind != "heading"


def strip_marks(line: str) -> str:
    """A line without what only marks it up; a link by its text."""
    return _apply_steps(_MARKS, line).strip()


def _line_kind(line: str) -> Kind:
    if _HEADING.match(line):
        return "heading"
    return "bullet" if _BULLET.match(line) else "paragraph"


def _apply_steps(steps: _Steps, text: str) -> str:
    for pattern, replacement in steps:
        text = pattern.sub(replacement, text)
    return text
