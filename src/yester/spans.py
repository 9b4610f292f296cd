"""Places in a text that stay right while the text around them is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

Span = tuple[int, int]  # from, to
Edit = tuple[int, int, str]  # from, to, what takes its place
_PASSES = 6  # what is cut out may bring the halves of a tag together; only a made-up text does


def apply_edits(text: str, edits: Iterable[Edit], spans: list[Span] | None = None) -> str:
    """The text with the edits made, which are in order and disjoint; `spans` are moved along."""
    edits = list(edits)
    kept: list[str] = []
    position = 0
    for start, end, new in edits:
        kept += (text[position:start], new)
        position = end
    kept.append(text[position:])
    if spans:
        spans[:] = move_spans(spans, edits)
    return "".join(kept)


def move_spans(spans: Iterable[Span], edits: Sequence[Edit]) -> list[Span]:
    """Where the spans are when the edits have been made.

    A place inside of what was replaced comes to stand behind the replacement: a span whose end goes
    shows what took its place, one whose beginning goes does not.
    """
    return [(_move_place(start, edits), _move_place(end, edits)) for start, end in spans]


def _move_place(place: int, edits: Sequence[Edit]) -> int:
    moved = 0
    for start, end, new in edits:
        if place <= start:
            break
        moved += len(new) - (min(place, end) - start)
    return place + moved


def cut_blocks(
    text: str, tag: re.Pattern[str], mark: str, spans: list[Span] | None, by_lines: bool = False
) -> str:
    """The text with each block replaced by `mark`; the same object if it has no tag.

    The last group that a tag matches says what it is: `close…`, `empty…`, or it opens a block. The
    outermost block counts, an unclosed one reaches to the end of the text, or of its line, and a
    closing tag without an opening one is dropped by itself.
    """
    for _ in range(_PASSES):
        if tag.search(text) is None:
            return text
        text = apply_edits(text, _find_blocks(text, tag, mark, by_lines), spans)
    left = tag.search(text)
    return apply_edits(text, [(left.start(), len(text), mark)], spans) if left else text


def _find_blocks(text: str, tag: re.Pattern[str], mark: str, by_lines: bool) -> Iterator[Edit]:
    depth = begun = 0
    for found in tag.finditer(text):
        kind = (found.lastgroup or "open")[:5]
        begun = begun if depth else found.start()
        if kind == "open":
            depth += 1
        elif kind == "close" and depth > 1:
            depth -= 1
        elif kind == "close" or not depth:
            yield begun, found.end(), mark if depth or kind == "empty" else ""
            depth = 0
    if depth:
        end = text.find("\n", begun) if by_lines else -1
        yield begun, len(text) if end < 0 else end, mark
