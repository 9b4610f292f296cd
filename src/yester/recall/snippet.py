"""The part of a text that answers: the window with the most, and the most telling, asked terms."""

from __future__ import annotations

from collections.abc import Callable, Collection

from yester.text.terms import words

_SCANNED = 20_000


def snippet(
    text: str, asked: Collection[str], most: int = 240, mark: Callable[[str], str] | None = None
) -> str:
    """At most about `most` characters on one line; `mark` wraps each asked word."""
    scanned = text[:_SCANNED]
    wanted = set(asked)
    found = [(start, end) for start, end, terms in words(scanned) if not wanted.isdisjoint(terms)]
    begin, stop = _window(scanned, found, most)
    parts, at = [], begin
    for start, end in found:
        if begin <= start and end <= stop:
            parts.append(scanned[at:start])
            parts.append(mark(scanned[start:end]) if mark else scanned[start:end])
            at = end
    parts.append(scanned[at:stop])
    line = " ".join("".join(parts).split())
    return ("… " if begin > 0 else "") + line + (" …" if stop < len(text.rstrip()) else "")


def _window(text: str, found: list[tuple[int, int]], most: int) -> tuple[int, int]:
    best, begin = 0, 0
    last = 0
    for first, (start, _) in enumerate(found):
        last = max(last, first)
        while last < len(found) and found[last][1] <= start + most:
            last += 1
        distinct = len({text[s:e].lower() for s, e in found[first:last]})
        if distinct > best:
            best, begin = distinct, start
    # Close to the beginning the beginning is shown, else a little of what stands before.
    begin = 0 if begin < most // 3 else _word_start(text, begin - most // 6)
    stop = min(len(text), begin + most)
    while 0 < stop < len(text) and not text[stop - 1].isspace() and stop > begin + most * 3 // 4:
        stop -= 1
    return begin, stop


def _word_start(text: str, at: int) -> int:
    while 0 < at < len(text) and not text[at - 1].isspace():
        at -= 1
        if text[at].isspace():
            break
    return at
