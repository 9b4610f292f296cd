"""What in a prompt is the user's own, sentence by sentence, with its place.

A prompt carries much that the user did not write: code, logs, quoted text, a pasted review, a plan
an agent wrote, notices of the client. Nothing in there is an instruction of the user's. It is
masked here, character for character, so that every sentence keeps its offsets. How it begins, and
where the user turns to something else, is told by tables/utterances.toml.

Kept linear: each pass walks the text once, and every repetition in a pattern is bounded.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from yester.tables import load_pattern
from yester.text.sentences import sentence_spans

MASK = "\x1a"  # stands for one character of somebody else's
# People type at the top of what they paste, or below it.
_HEAD, _TAIL = 4_000, 2_000
_PROSE = 0.7  # share of letters and spaces below which a line is output of a program
_SHORT_LINE = 12

# How a line of a list begins.
_MARKER = re.compile(r"\s{0,80}(?:(?:[-*•–]|\d{1,2}[.)]|[A-Za-z][.)]|\[[ x]\])\s{1,4}){0,2}")
_pattern = partial(load_pattern, "utterances")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` is prompt[start:end] with MASK for what is not the user's own."""

    start: int
    end: int
    text: str
    asked: bool  # ends in a question mark
    paragraph: int  # the number of blank or foreign lines before it


def own_sentences(prompt: str) -> Iterator[Sentence]:
    """The user's own sentences, in order; long ones clause by clause."""
    if _is_by_program(prompt):
        return
    masked = _mask_foreign(prompt)
    for start, end, paragraph in _find_passages(masked):
        for first, last in _cut_sentences(masked, start, end):
            if last <= _HEAD or first >= len(prompt) - _TAIL:
                text = masked[first:last]
                yield Sentence(first, last, text, text.rstrip("\"')]*_").endswith("?"), paragraph)


def has_foreign_lines(prompt: str) -> bool:
    """Does a prompt carry lines that the user did not write?"""
    lines = _mask_foreign(prompt).split("\n")
    return _is_by_program(prompt) or any(
        line.strip() and (not _is_own_line(line) or _announces_paste(line)) for line in lines
    )


def _is_by_program(prompt: str) -> bool:
    return _pattern("by a program").match(prompt) is not None


def _mask_foreign(prompt: str) -> str:
    text = _pattern("block").sub(lambda m: _mask_lines(m[0]), prompt)
    parts: list[str] = []
    at = 0
    for start, end in sorted(_find_tagged(text)):  # what holds others comes before them
        if end > at:
            start = max(start, at)
            parts += (text[at:start], _mask_lines(text[start:end]))
            at = end
    return _pattern("quoted").sub(_mask_quoted, "".join((*parts, text[at:])))


def _mask_quoted(quoted: re.Match[str]) -> str:
    """`pnpm` is a name the user uses; `pnpm test` and "pnpm" are somebody else's words."""
    text = quoted[0]
    return text if text[0] == "`" and len(text.split()) == 1 else MASK * len(text)


def _mask_lines(text: str) -> str:
    """Line by line, so that what stands before and after does not become one line."""
    return "\n".join(MASK * len(line) for line in text.split("\n"))


def _find_tagged(text: str) -> Iterator[tuple[int, int]]:
    """What stands between a tag and its end, tags included."""
    opened: defaultdict[str, list[int]] = defaultdict(list)
    for tag in _pattern("tag").finditer(text):
        if not tag[1]:
            opened[tag[2]].append(tag.start())
        elif opened[tag[2]]:
            yield opened[tag[2]].pop(), tag.end()


def _find_passages(masked: str) -> Iterator[tuple[int, int, int]]:
    """Runs of lines that belong together and are prose, each with its paragraph's number."""
    start = end = at = paragraph = 0
    for line in masked.split("\n"):
        own = _is_own_line(line)
        if start < end and not (own and _continues_line(masked[end - 1], line)):
            yield start, end, paragraph
            start = end = at
        if own:
            start, end = (at if start == end else start), at + len(line)
        else:
            paragraph += 1
        if _announces_paste(line):
            break
        at += len(line) + 1
    if start < end:
        yield start, end, paragraph


def _announces_paste(line: str) -> bool:
    announced = _pattern("pasted").match(line)
    return announced is not None and not _pattern("of rules").search(line)


def _is_own_line(line: str) -> bool:
    bare = line.replace(MASK, "").strip()
    foreign = _pattern("foreign line")
    if not bare or foreign.match(line) or _pattern("indented").match(line):
        return False
    letters = sum(c.isalpha() or c.isspace() for c in bare)
    return len(bare) < _SHORT_LINE or letters >= _PROSE * len(bare)


def _continues_line(last: str, line: str) -> bool:
    """A sentence wrapped by hand: nothing ended the line, and the next begins in lower case."""
    return last not in ".!?:;" and (line[:1] == "(" or "a" <= line[:1] <= "z")


def _cut_sentences(masked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentence by sentence, and clause by clause where the user turns to something else."""
    passage = masked[start:end].replace("\n", " ")
    marker = _MARKER.match(passage)
    begin = marker.end() if marker else 0
    for first, last in sentence_spans(passage[begin:]):
        at = start + begin + first
        turns = _pattern("turn")
        for turn in turns.finditer(passage, begin + first + 1, begin + last):
            yield from _trim_span(masked, at, start + turn.start())
            at = start + turn.end()
        yield from _trim_span(masked, at, start + begin + last)


def _trim_span(masked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    if marker := _MARKER.match(masked, start, end):
        start = marker.end()
    if text := masked[start:end].strip(" \t\r\n"):
        start = masked.index(text, start)
        yield start, start + len(text)
