"""Uncased WordPiece, as BERT's models read text: text → the numbers of its pieces.

    clean        control and format characters go, all white space is a blank
    apart        every ideograph and every punctuation mark is a word of its own
    plain        accents off (NFD), then lower case
    pieces       the longest known piece first, then the longest known ##continuation

The numbers are those of the reference implementation (`tokenizers`), but for some 500 characters
of rare scripts that are younger than its tables (Unicode 8): Python's own decide there. And "[SEP]"
in a text is five plain characters: what somebody wrote must not become a control token.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

from yester.text.terms import BoundedCache

_LONGEST_WORD = 100  # the reference reads longer words as unknown
_CACHE = 10_000
_LONGEST_CACHED = 64

# Taken out, not blanks: "\x0b", "\x0c" and "\x85" join what stands around them, as in the
# reference, though Python would split there.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+|[^a-z0-9]")
_DROPPED = frozenset({"Cc", "Cf", "Co", "Cs"})
_IDEOGRAPHS = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df"
    "\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f"
)
_IDEOGRAPH = re.compile(f"([{_IDEOGRAPHS}])")


def strip_controls(text: str) -> str:
    """Without control characters; where a cleaned text has white space, so has the reference."""
    return _CONTROL.sub("", text)


class WordPiece:
    """`vocabulary`: piece → number. Chunks between blanks are cut once and remembered."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._number = dict(vocabulary)
        self.unknown = self._number["[UNK]"]
        self._first, self._last = self._number["[CLS]"], self._number["[SEP]"]
        self._longest_piece = max(map(len, self._number))
        self._words = BoundedCache(self._cut_word, _CACHE, _LONGEST_CACHED)
        self._chunks = BoundedCache(self._cut_chunk, _CACHE, _LONGEST_CACHED)

    @classmethod
    def read_vocabulary(cls, path: Path) -> WordPiece:
        """From a vocab.txt: one piece a line, its number is the line's."""
        lines = path.read_text("utf-8").split("\n")
        return cls({piece: number for number, piece in enumerate(lines) if piece})

    def encode_text(self, text: str, most: int) -> list[int]:
        """[CLS] pieces [SEP], at most `most` numbers; what does not fit is cut off at the end."""
        return [self._first, *islice(self.piece_numbers(text), max(0, most - 2)), self._last]

    def piece_numbers(self, text: str) -> Iterator[int]:
        return chain.from_iterable(map(self._chunks.__getitem__, strip_controls(text).split()))

    def count_pieces(self, chunk: str) -> int:
        """How many pieces a stretch without white space has."""
        return len(self._chunks[chunk])

    def _cut_chunk(self, chunk: str) -> tuple[int, ...]:
        words = _ASCII_WORD.findall(chunk.lower()) if chunk.isascii() else _split_words(chunk)
        return tuple(chain.from_iterable(map(self._words.__getitem__, words)))

    def _cut_word(self, word: str) -> tuple[int, ...]:
        if (whole := self._number.get(word)) is not None and len(word) <= _LONGEST_WORD:
            return (whole,)
        if len(word) > _LONGEST_WORD:
            return (self.unknown,)
        numbers: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                number = self._number.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return (self.unknown,)
            numbers.append(number)
            start, prefix = end, "##"
        return tuple(numbers)


def _split_words(chunk: str) -> Iterable[str]:
    """A chunk with other than ASCII characters, in the reference's order of steps."""
    kept = "".join(c for c in chunk if c != "\ufffd" and unicodedata.category(c) not in _DROPPED)
    spaced = _IDEOGRAPH.sub(r" \1 ", kept)
    bare = "".join(
        c for c in unicodedata.normalize("NFD", spaced) if unicodedata.category(c) != "Mn"
    )
    # Character by character: str.lower() alone would end a word in the final sigma.
    plain = bare.replace("Σ", "σ").lower()
    return chain.from_iterable(map(split_stretches, plain.split()))


def is_punctuation(c: str) -> bool:
    """As BERT has it: every ASCII symbol counts, $ and ^ included."""
    if c.isascii():
        return c.isprintable() and not c.isalnum() and c != " "
    return unicodedata.category(c).startswith("P")


def split_stretches(chunk: str) -> list[str]:
    """The stretches a chunk may be cut into without changing its pieces; joined, they are it."""
    stretches: list[str] = []
    start = 0
    for at, c in enumerate(chunk):
        if is_punctuation(c) or _IDEOGRAPH.match(c):
            stretches += [chunk[start:at], c] if at > start else [c]
            start = at + 1
    return [*stretches, chunk[start:]] if start < len(chunk) else stretches
