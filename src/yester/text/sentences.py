"""Sentences: where they end, the first of a text, a text that is too long for its place, and the
part of a text that answers: the window with the most, and the most telling, asked terms."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence

from yester.fence import neutralize_text, strip_fenced
from yester.redact import redact

_END = re.compile(r"(?<=[.!?])[\"')\]*`]*\s+(?=[A-Z0-9\"'`*\[(“‘])|(?<=[。！？])")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|incl|resp|Mr|Dr)|\b[A-Z])\.$", re.I
)
_ABBREVIATED = 12  # characters that tell
_CLOSING = frozenset("\"')]*`")
_BREAK = "\n\0\n"


def split_sentences(text: str) -> list[str]:
    """The sentences of a text as they stand, white space around them aside. A line ends one; code
    in backticks, an abbreviation and the number of a point do not."""
    return [text[start:end] for start, end in sentence_spans(text)]


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where its sentences stand."""
    begin = 0
    for line in text.split("\n"):
        stop = begin + len(line)
        yield from _line_spans(text, begin, stop)
        begin = stop + 1


def _line_spans(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    for end in _END.finditer(text, begin, stop):
        at = end.start()
        if _ABBREVIATION.search(text, max(begin, at - _ABBREVIATED), at):
            continue
        if text.count("`", begin, at) % 2:
            continue  # in the middle of code
        if at - begin < 6 and text[begin:at].strip(" .").isdigit():
            continue  # the number of a point
        yield from _strip_span(text, begin, end.end() if text[at : at + 1] in _CLOSING else at)
        begin = end.end()
    yield from _strip_span(text, begin, stop)


def _strip_span(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    part = text[begin:stop]
    start = begin + len(part) - len(part.lstrip())
    if start < stop:
        yield start, begin + len(part.rstrip())


def first_sentence(text: str, most: int, least: int = 0) -> str:
    """The beginning of a text, to the end of its first sentence of at least so many characters."""
    first = ""
    for sentence in split_sentences(text):
        first = f"{first} {sentence}".lstrip()
        if len(first) >= least:
            break
    return shorten_text(first, most)


def shorten_text(text: str, most: int) -> str:
    """A text on one line of at most so many characters, cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    cut = line[: max(most - 1, 0)]
    space = cut.rfind(" ")
    return (cut[:space] if space > most // 2 else cut).rstrip(" ,;:") + "…"


def count_noun(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def clean_text(text: str) -> str:
    """Without secrets, without what we injected ourselves, without anything that could harm."""
    return neutralize_text(strip_fenced(redact(text)))


def clean_texts(texts: Sequence[str]) -> list[str]:
    """Several short texts, clean, looked through for secrets in one go."""
    found = redact(_BREAK.join(texts)).split(_BREAK)
    if len(found) != len(texts):  # something reached over a break
        found = [redact(text) for text in texts]
    return [neutralize_text(strip_fenced(text)) for text in found]


def one_line(text: str, most: int) -> str:
    """The beginning of a text that may come from anybody, clean and on one line."""
    return shorten_text(clean_text(text), most)


# --- the part of a text that answers a question ---------------------------------------------------

_SCANNED = 20_000
_MATCHES = 6  # of one term


def find_snippet(
    text: str, asked: Collection[str], most: int = 240, mark: Callable[[str], str] | None = None
) -> str:
    """At most about `most` characters on one line; `mark` wraps each asked word. An asked term is
    found by its letters: tokenizing would be a quarter of what a list of twenty hits costs."""
    scanned = text[:_SCANNED]
    low = scanned.lower()
    there = [stem for stem in map(_stem_of, asked) if stem in low]  # few of many are
    found = sorted({span for stem in there for span in _word_spans(low, stem)})
    if len(low) != len(scanned):
        found = []  # places in one are no places in the other
    begin, stop = _best_window(scanned, found, most)
    parts, at = [], begin
    for start, end in found:
        if mark is not None and at <= start and end <= stop:
            parts += [scanned[at:start], mark(scanned[start:end])]
            at = end
    parts.append(scanned[at:stop])
    line = " ".join("".join(parts).split())
    return ("… " if begin > 0 else "") + line + (" …" if stop < len(text.rstrip()) else "")


def _stem_of(term: str) -> str:
    """What the words of a term begin with; of retri it is retr, as in retry, retried, retries."""
    return term[:-1] if len(term) > 3 and term[-1] == "i" else term


def _word_spans(text: str, stem: str) -> Iterator[tuple[int, int]]:
    """The first words that begin so. Scripts without spaces have terms inside of words."""
    at = -1
    for _ in range(_MATCHES):
        at = text.find(stem, at + 1)
        if at < 0:
            return
        end = at + len(stem)
        if not stem.isascii():
            yield at, end
        elif stem and not text[at - 1 : at].isalnum():
            while end < len(text) and text[end].isalnum():
                end += 1
            yield at, end


def _best_window(text: str, found: list[tuple[int, int]], most: int) -> tuple[int, int]:
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
    return at
