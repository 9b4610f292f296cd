"""THE tokenizer: the same terms for what is stored, what is asked and what is compared.

    plain words         stemmed: "migrations" → migrat
    identifiers         whole, and their parts: rateLimit → ratelimit, rate, limit
    versions, decimals  whole: 2.1.325 → 2.1.325
    other scripts       accents folded; Chinese, Japanese, Korean runs as pairs of characters

Each distinct word is expanded once and remembered. A change of what any text expands to must raise
VERSION: a store built with another version says so and is rebuilt by `yester reindex`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain
from math import log
from typing import TypeVar
from zlib import crc32

from yester.libraries import load_library

V = TypeVar("V")
VERSION = 1

# A text is cut at every ASCII character but letters, digits, underscores and dots: translating and
# splitting costs half of a regular expression. What other scripts glue together, and dots, are
# taken apart when a chunk is expanded, once for each distinct one.
_SPACED = bytes(c if c > 127 or chr(c).isalnum() or chr(c) in "_." else 32 for c in range(256))
_WORD = re.compile(r"\w+(?:\.\d+)*")  # a chunk's words: 2.1.325 in one piece, a.b.c in three
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_PAIRED = re.compile(
    "[\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
# Longer runs are encoded data; a reader never types them, and they would fill the index.
_LONGEST_WORD = 64
# Hex of a commit or a hash stays whole, since its digit and letter runs mean nothing.
_DIGEST = re.compile(r"[0-9a-f]{7,64}")
_RANDOM_PARTS = 8
_CACHE = 20_000

STOP = frozenset(
    """
    a about also am an and are as at be been being but by can could did do does doing for from get
    give go had has have having he her him his how i if in into is it its just let like make may
    me might must my need no not of on or our out over please shall she should so some tell than
    that the their them then there these they this those to too up us use very want was we were
    what when where which who whom whose why will with would yes you your
    """.split()  # noqa: SIM905 -- a table of words reads better as words
)


class BoundedCache(dict[str, V]):
    """What `compute` gives for a text, once; forgets everything when full and never keeps what
    belongs to a text longer than `longest`, so memory stays bounded."""

    def __init__(self, compute: Callable[[str], V], most: int, longest: int = 1 << 20) -> None:
        super().__init__()
        self._compute, self.most, self._longest = compute, most, longest

    def __missing__(self, text: str) -> V:
        value = self._compute(text)
        if len(text) <= self._longest:
            if len(self) >= self.most:
                self.clear()
            self[text] = value
        return value


class _Expansions(BoundedCache[tuple[str, ...]]):
    """word → its terms"""

    def __init__(self) -> None:
        super().__init__(self._expand_word, _CACHE)

    @cached_property
    def _stem(self) -> Callable[[str], str]:
        """Loaded for the first word: most commands that only count or list need none."""
        stem: Callable[[str], str] = load_library("Stemmer").Stemmer("english").stemWord
        return stem

    def _expand_word(self, word: str) -> tuple[str, ...]:
        if word.isascii():
            if word.isalpha() and word[1:].islower():
                return (self._stem(word.lower()),) if len(word) <= _LONGEST_WORD else ()
            if "." in word:
                return tuple(chain.from_iterable(map(self._expand_dotted, _WORD.findall(word))))
            return self._expand_identifier(word)
        folded = _fold_accents(word)
        parts = _WORD.findall(folded)
        if parts != [folded]:
            return tuple(chain.from_iterable(map(self._expand_dotted, parts)))
        if _PAIRED.search(folded):
            return tuple(self._expand_pairs(folded))
        if folded.isascii():
            return self[folded]
        return (self._stem(folded.lower()),) if len(folded) <= _LONGEST_WORD else ()

    def _expand_identifier(self, word: str) -> tuple[str, ...]:
        """Digits, capitals, snake and camel case: the whole and its parts."""
        low = word.strip("_").lower()
        if len(low) < 2:
            return (low,) if low.isdigit() else ()
        if low.isalpha() and (word.isupper() or word.islower()):
            return (self._stem(low),) if len(low) <= _LONGEST_WORD else ()
        parts = _PART.findall(word)
        if len(parts) < 2 or (_DIGEST.fullmatch(low) and not low.isalpha()):
            return (low,) if len(low) <= _LONGEST_WORD else ()
        terms = tuple(self._stem(p.lower()) for p in parts if len(p) > 1 or p.isdigit())
        if len(low) > _LONGEST_WORD:
            return terms if "_" in low else ()
        if len(parts) >= _RANDOM_PARTS and low.count("_") < 2 and not low.isalpha():
            return (low,)  # toolu_01Xb… and its like: the parts of a random name mean nothing
        return (low, *terms)

    def _expand_dotted(self, word: str) -> tuple[str, ...]:
        """A version or decimal whole; in `item.3` the word and the number apart."""
        if "." not in word:
            return self[word]
        first, _, rest = word.partition(".")
        number = first.lstrip("vV")
        if number.isdigit():
            return (f"{number}.{rest}"[:_LONGEST_WORD],)
        return (*self[first], *rest.split("."))

    def _expand_pairs(self, word: str) -> Iterable[str]:
        at = 0
        for run in _PAIRED.finditer(word):
            if run.start() > at:
                yield from self[word[at : run.start()]]
            text = run[0]
            if len(text) == 1:
                yield text
            else:
                yield from (text[i : i + 2] for i in range(len(text) - 1))
            at = run.end()
        if at < len(word):
            yield from self[word[at:]]


def _fold_accents(word: str) -> str:
    """Accents off, compatibility forms to plain ones; hangul stays composed, as syllables."""
    split = unicodedata.normalize("NFKD", word)
    return unicodedata.normalize("NFC", "".join(c for c in split if not unicodedata.combining(c)))


_expansions = _Expansions()
_hashes = BoundedCache(lambda term: crc32(term.encode("utf-8", "surrogatepass")), _CACHE)
# Bound once: the inner loop of indexing runs over every word of every message.
_terms_of = _expansions.__getitem__
term_hash = _hashes.__getitem__


def remember_words(most: int) -> None:
    """So many from now on: a process that reads whole histories, and ends, has room for more than
    one that stays."""
    _expansions.most = _hashes.most = most


def _split_chunks(text: str) -> list[str]:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:  # lone surrogates
        encoded = text.encode("utf-8", "replace")
    return encoded.translate(_SPACED).decode().split()


def text_terms(text: str) -> Iterator[str]:
    """Every term of a text, in order, with repetitions."""
    return chain.from_iterable(map(_terms_of, _split_chunks(text)))


def query_terms(text: str) -> list[str]:
    """The distinct terms to look for, in order: stop words dropped unless nothing would remain."""
    found = _split_chunks(text)
    telling = [word for word in found if word.strip(".").lower() not in STOP]
    return list(dict.fromkeys(chain.from_iterable(map(_terms_of, telling or found))))


def inverse_frequency(holding: int, items: int) -> float:
    """How telling a term is that `holding` of `items` have; chooses candidates and scores them."""
    return log(1.0 + max(items - holding, 0) / (holding + 0.5) + 0.5 / (holding + 0.5))
