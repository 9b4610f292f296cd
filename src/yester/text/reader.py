"""The reader model: which words of a turn say what was done.

    open_reader   the reader of the package, or None: then titles come from rules alone
    find_title    3 to 14 words of one sentence of the request or of the closing message

A title is a stretch of the session's own words. The model scores each word as the first one and as
the last one, and each pair of them; what is added for the shape of the stretch (`shape_scores`)
makes titles whole clauses. About 30 ms a turn: nothing that somebody waits for may ask it.

As with vectors, one text goes through at a time and without padding: the scale of an int8 layer is
taken over the whole call, and neighbours would change the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from yester.libraries import load_numpy
from yester.text.embed import load_wordpiece, model_input, open_session
from yester.text.models import DEFAULT, PACKAGED, READER, missing_file
from yester.text.prose import prose_sentences
from yester.text.wordpiece import WordPiece

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]

REQUEST_CHARACTERS, CLOSING_CHARACTERS = 3_000, 6_000  # of each that are looked at
TITLE_CHARACTERS = 80
# Below it the title is not used. The model's own bound is -10; of turns that led to no commit the
# titles between the two are mostly fragments.
LEAST_SCORE = 0.0
SHORTEST, LONGEST = 3, 14  # words of a title

_CLS, _SEP, _UNKNOWN = 101, 102, 100
_SENTENCE_MARK, _HEADING_MARK = 1064, 1001  # "|" and "#", before each sentence
_REQUEST_TOKENS, _ALL_TOKENS = 96, 384
_WORD_PIECES = 12

# What the shape of a stretch adds to its score.
_OPENS_CLAUSE, _INSIDE_CLAUSE = 0.8, -2.0
_CLOSES_CLAUSE = 1.2
_BAD_FIRST, _BAD_LAST = -1.2, -2.4
_BARRED = -4.0


class Title(NamedTuple):
    """`score`: how far above "no good title" it is. A rank of trust, no probability."""

    text: str
    score: float

    @property
    def usable(self) -> bool:
        return bool(self.text) and self.score >= LEAST_SCORE


NO_TITLE = Title("", -99.0)


class TitleFinder(Protocol):
    def find_title(
        self, request: str, closing: str, mend: Callable[[str], str] | None = None, /
    ) -> Title | Future[Title]:
        """The best title as a caller mends it; where nothing is left, another sentence's. A thread
        gives it later."""


class Reader:
    def __init__(self, weights: Path, pieces: WordPiece) -> None:
        self._np = load_numpy()
        self._pieces = pieces
        self._session = open_session(weights)

    def find_title(
        self, request: str, closing: str, mend: Callable[[str], str] | None = None
    ) -> Title:
        """The best title that fits: it is never cut."""
        turn = encode_turn(self._pieces, request, closing)
        sentences = [words for words in turn.sentences if len(words) >= SHORTEST]
        if not sentences:
            return NO_TITLE
        names = ("start", "end", "left", "right", "length", "null")
        given = model_input(turn.ids, turn.types)
        output = dict(zip(names, self._session.run(list(names), given), strict=True))
        found = [self._best_stretch(sentence, output) for sentence in sentences]
        for score, words in sorted(found, key=lambda best: -best[0]):
            text = tidy_title(" ".join(word.text for word in words))
            if mend is not None and not (text := mend(text)):
                continue
            if not isfinite(score) or len(text.split()) < SHORTEST:
                return NO_TITLE
            return Title(text, score - float(output["null"][0, 0]))
        return NO_TITLE

    def _best_stretch(
        self, words: Sequence[Word], output: Mapping[str, Any]
    ) -> tuple[float, Sequence[Word]]:
        """The best of all stretches of a sentence that may be a title, and its score; minus
        infinity where none may."""
        np = self._np
        first = [word.first_token for word in words]
        last = [word.last_token for word in words]
        opening = np.array([word.as_first for word in words], np.float32)
        closing = np.array([word.as_last for word in words], np.float32)
        scores: Scores = output["left"][0, first] @ output["right"][0, last].T
        scores += (output["start"][0, first] + opening)[:, None]
        scores += (output["end"][0, last] + closing)[None]
        places = np.arange(len(words))
        lengths = places[None] - places[:, None] + 1
        ends = np.cumsum([len(word.text) + 1 for word in words])
        starts = np.concatenate(([0], ends[:-1]))
        fits = ends[None] - starts[:, None] - 1 <= TITLE_CHARACTERS
        allowed = (lengths >= SHORTEST) & (lengths <= LONGEST) & fits
        scores += output["length"][np.where(allowed, lengths, 0)]
        scores = np.where(allowed, scores, -np.inf)
        start, end = divmod(int(scores.argmax()), len(words))
        return float(scores[start, end]), words[start : end + 1]


def open_reader(values: Mapping[str, Any], home: Path) -> Reader | None:
    """None where the settings want no model, or the model or its library cannot be loaded; titles
    are then what they were without it, so this is no error."""
    if values.get("embedder") == "none" or missing_file(READER, home):
        return None
    try:
        pieces = load_wordpiece(PACKAGED / DEFAULT / "vocab.txt")
        return Reader(PACKAGED / READER.name / READER.weights_file.name, pieces)
    except Exception:  # noqa: BLE001 -- a foreign library's fault must not stop the distilling
        return None


# --- a turn as the model's input ------------------------------------------------------------------


class Word(Struct, frozen=True):
    """What stands between white space."""

    text: str
    first_token: int
    last_token: int
    as_first: float  # what it adds to a title that begins with it
    as_last: float


class EncodedTurn(Struct, frozen=True):
    ids: list[int]
    types: list[int]  # 0: the request, 1: the closing message
    sentences: list[list[Word]]


def encode_turn(pieces: WordPiece, request: str, closing: str) -> EncodedTurn:
    """[CLS] request [SEP] closing [SEP]"""
    turn = EncodedTurn([_CLS], [], [])
    for number, message in enumerate((request[:REQUEST_CHARACTERS], closing[:CLOSING_CHARACTERS])):
        _encode_message(pieces, message, turn, is_closing=bool(number))
        turn.ids.append(_SEP)
        turn.types.extend([number] * (len(turn.ids) - len(turn.types)))
    return turn


def _encode_message(pieces: WordPiece, text: str, turn: EncodedTurn, is_closing: bool) -> None:
    """A word goes in whole; where it does not fit, the rest of the message is not read."""
    room = (_ALL_TOKENS if is_closing else _REQUEST_TOKENS) - 1
    for sentence in prose_sentences(text):
        words = sentence.text.split()
        mark = [_HEADING_MARK if sentence.kind == "heading" else _SENTENCE_MARK]
        turn.sentences.append([])
        for word, scores in zip(words, shape_scores(words, is_closing), strict=True):
            numbers = [*islice(pieces.piece_numbers(word), _WORD_PIECES)] or [_UNKNOWN]
            begin = len(turn.ids) + len(mark)
            if begin + len(numbers) > room:
                return
            turn.ids.extend(mark + numbers)
            turn.sentences[-1].append(Word(word, begin, begin + len(numbers) - 1, *scores))
            mark = []


# --- the shape of a title -------------------------------------------------------------------------


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NO_FIRST = _word_set(
    "also and as at because but by for from however if in it its of on or so than that then there"
    " these they this those to when which while with"
)
_NO_LAST = _word_set(
    "a all an and are as at be because been but by can could did do does for from had has have i if"
    " in into is it its no not of on or should so than that the they this to was we were when which"
    " will with would you"
)
_CUT_AT_THE_END = _NO_LAST - {"all", "it", "not", "so"}  # "… does it", "… them all" may end a title
_ASIDE = ("—", "–", "-")
_SEPARATORS = frozenset({*_ASIDE, "->", "→", ":", "|"})
_CLAUSE_ENDS = tuple(",;:.!?)]—–")
_AROUND = re.compile(r"\A\W+|\W+\Z")
# Nothing of an offer or a plan is a title …
_OFFER = re.compile(
    r"(?:(?:now|next|first),? )?(?:let me|i'll|i will|i'm going to|would you|do you want|want me"
    r"|should i|shall i|ready (?:to|for)|if you(?:'d)? (?:like|want|prefer))\b",
    re.I,
)
# … and none begins with "Committed as …" or "All … pass".
_STATUS = re.compile(
    r"(?:committed|pushed|merged)\b|(?:all|everything|the branch)\b.*\b(?:pass(?:es|ed|ing)?|green"
    r"|clean|in place|completed?|done|issues)\b",
    re.I,
)


def shape_scores(words: Sequence[str], is_closing: bool) -> Iterator[tuple[float, float]]:
    """What each word of a sentence adds to a title as its first, and as its last one; `is_closing`:
    of the closing message, not of the request."""
    sentence = " ".join(words)
    offer = is_closing and _OFFER.match(sentence) is not None
    status = is_closing and _STATUS.match(sentence) is not None
    opens = True
    for word, following in pairwise([*words, ""]):
        bare = _AROUND.sub("", word).lower()
        ends = word.endswith(_CLAUSE_ENDS)
        closes = ends or not following or following in _ASIDE or following[0] == "("
        clause = _OPENS_CLAUSE if opens else _INSIDE_CLAUSE
        bad_first, bad_last = not bare or bare in _NO_FIRST, not bare or bare in _NO_LAST
        yield (
            clause + _BAD_FIRST * bad_first + _BARRED * (offer or status),
            _CLOSES_CLAUSE * closes + _BAD_LAST * bad_last,
        )
        status = False
        opens = ends or word in _SEPARATORS


# --- the title as it is shown ---------------------------------------------------------------------

_LOOSE = " \t\n\r\f\v\"'([—–:,;.-"
_LEAD = re.compile(
    r"\A(?:(?:(?:i|we)(?:'ve| have)?|now|so|also|then|done|fixed|fix|summary|result|plan|yes|yep|ok"
    r"|okay)\s*[:,—–-]\s+"
    r"|(?:i|we)(?:'ve| have)?\s+(?:(?:also|now)\s+)?(?=\w+ed\b)"
    r"|let's\s+|p\d\s+#\d+\s+[—–-]\s+)",
    re.I,
)
_CODE = re.compile(r"\A\S*[A-Z_./()]")


def tidy_title(stretch: str) -> str:
    """Without loose marks, "I've …", "Done: …" and half a bracket, and with a capital; "" where
    nothing is left. Words are only taken off, none is changed."""
    title = _close_brackets(_LEAD.sub("", stretch.strip(_LOOSE)))
    words = title.strip(_LOOSE).split()
    while len(words) > SHORTEST and words[-1].lower() in _CUT_AT_THE_END:
        words.pop()
    title = " ".join(words).strip(_LOOSE)
    if title[:1].islower() and not _CODE.match(words[0]):
        title = title[0].upper() + title[1:]
    return title


def _close_brackets(title: str) -> str:
    """A bracket or quote that stands alone goes; what follows a late round one goes with it."""
    opened, closed = title.count("("), title.count(")")
    if opened > closed:
        at = title.rfind("(")
        title = title.replace("(", "", 1) if at < len(title) // 3 else title[:at]
    elif closed > opened:
        title = title.replace(")", "", 1)
    if title.count('"') % 2:
        title = title.replace('"', "")
    if title.count("[") != title.count("]"):
        title = title.replace("[", "").replace("]", "")
    return title
