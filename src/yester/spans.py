"""Places in a text that stay right while the text around them is changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]  # from, to
Edit = tuple[int, int, str]  # from, to, what takes its place


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
