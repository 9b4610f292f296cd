"""Sentences: where they end, the first of a text, and a text that is too long for its place."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?])[\"')\]*`]*\s+(?=[A-Z0-9\"'`*\[(“‘])|(?<=[。！？])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|incl|resp|Mr|Dr)|\b[A-Z])\.$", re.I
)
_ABBREVIATED = 12  # characters that tell
_CLOSING = frozenset("\"')]*`")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text as they stand, white space around them aside. A line ends one; code
    in backticks, an abbreviation and the number of a point do not."""
    return [sentence for line in text.split("\n") for sentence in _split_line(line)]


def _split_line(text: str) -> list[str]:
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        at = end.start()
        if _ABBREVIATION.search(text, max(begin, at - _ABBREVIATED), at):
            continue
        if text.count("`", begin, at) % 2:
            continue  # in the middle of code
        if at - begin < 6 and text[begin:at].strip(" .").isdigit():
            continue  # the number of a point
        closing = text[at : end.end()].rstrip()
        part = text[begin:at].strip() + (closing if text[at : at + 1] in _CLOSING else "")
        if part:
            parts.append(part)
        begin = end.end()
    rest = text[begin:].strip()
    return [*parts, rest] if rest else parts


def first_sentence(text: str, most: int, least: int = 0) -> str:
    """The beginning of a text, to the end of its first sentence of at least so many characters."""
    first = ""
    for sentence in split_sentences(text):
        first = f"{first} {sentence}".lstrip()
        if len(first) >= least:
            break
    return shorten(first, most)


def shorten(text: str, most: int) -> str:
    """A text on one line of at most so many characters, cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[: max(most - 1, 0)]
    space = cut.rfind(" ")
    return (cut[:space] if space > most // 2 else cut).rstrip(" ,;:") + "…"
