"""The part of a text that answers: the window with the most, and the most telling, asked terms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from yester.text.terms import words

_SCANNED = 20_000
_MATCHES = 6  # of one term


def snippet(
    text: str, asked: Collection[str], most: int = 240, mark: Callable[[str], str] | None = None
) -> str:
    """At most about `most` characters on one line; `mark` wraps each asked word."""
    scanned = text[:_SCANNED]
    wanted = set(asked)
    found = [(start, end) for start, end, terms in words(scanned) if not wanted.isdisjoint(terms)]
    return _shown(text, scanned, found, most, mark)


def glimpses(asked: Collection[str]) -> Callable[[str, int], str]:
    """The same for many texts and one question, fast: where the letters of an asked term stand.

    Tokenizing the texts would be a quarter of what a list of twenty hits costs."""
    wanted = [_stem(term) for term in asked]

    def glimpse(text: str, most: int) -> str:
        scanned = text[:_SCANNED]
        low = scanned.lower()
        found = sorted(
            span for term in wanted for span in _places(low, term) if len(low) == len(scanned)
        )
        return _shown(text, scanned, found, most, None)

    return glimpse


def _places(text: str, term: str) -> Iterator[tuple[int, int]]:
    at = text.find(term)
    for _ in range(_MATCHES):
        if at < 0:
            return
        yield at, at + len(term)
        at = text.find(term, at + len(term))


def _stem(term: str) -> str:
    """retri → retr: as it stands in retry, retried, retries."""
    return term[:-1] if len(term) > 3 and term.endswith("i") else term


def _shown(
    text: str,
    scanned: str,
    found: list[tuple[int, int]],
    most: int,
    mark: Callable[[str], str] | None,
) -> str:
    begin, stop = _window(scanned, found, most)
    parts, at = [], begin
    for start, end in found:
        if mark is not None and begin <= start and end <= stop:
            parts += [scanned[at:start], mark(scanned[start:end])]
            at = end
    parts.append(scanned[at:stop])
    line = " ".join("".join(parts).split())
    return ("… " if begin > 0 else "") + line + (" …" if stop < len(text.rstrip()) else "")


def _window(text: str, found: list[tuple[int, int]], most: int) -> tuple[int, int]:
    best, begin = 0, 0
    last = 0
    said = [text[start:end].lower() for start, end in found]
    every = len(set(said))
    for first, (start, _) in enumerate(found):
        if best == every:  # none can have more
            break
        last = max(last, first)
        while last < len(found) and found[last][1] <= start + most:
            last += 1
        distinct = len(set(said[first:last]))
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
