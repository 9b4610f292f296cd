"""Whether a text only says again what the agent was shown.

An echo is a quotation of one shown thing and a frame around it ("As noted, …, as we saw earlier").
Whatever stands in the place of another word, or was put into or taken out of the quotation, makes
a new statement of it: another port, another name, a "not". So does a frame that names something.
Where that is not clear a text is taken for new: an echo is kept, but nobody is shown it again.

A word is matched with a place in the shown text, run by run; a run may have moved, since whoever
repeats a sentence may begin it at its other end. Runs that do not follow each other in what was
shown must not hide a word between them that was left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from yester.ingest.prepare import content_hash
from yester.model import ECHO, Injection, Item
from yester.store.contract import Entry, Store
from yester.text.terms import STOP, words

_FEWEST = 6  # words of a quotation; fewer are said again by chance
_FRAME = 2  # telling words of a frame
_PLACES = 200  # of a word in a shown text, at which a run of words is looked for
_NEGATIONS = frozenset(
    ("no", "not", "never", "nor", "none", "neither", "nothing", "nobody", "cannot", "without")
)
_TRAILING = "as"  # how a frame behind a quotation begins; what begins otherwise adds something
# Words with what holds names and paths together, and signs that turn a statement round.
_CHUNK = re.compile(r"\w+(?:['’./\\:@#-]+\w+)*|[<>=!]=?|-(?=\d)")
_NAMED = re.compile(r"\w[./\\:@#_]+\w|\w[A-Z]|\d")
_STRONG = re.compile(r"[.!?](?:\W*\s|\W*$)|\n|[。！？]")
_WEAK = re.compile(r"[,;:()\[\]{}\"“”«»—–|•、，；：]|\s-\s")
_NONE, _CLAUSE, _SENTENCE = range(3)


class Word(NamedTuple):
    """A word by its stem. `cut` is what ends before it: nothing, a clause or a sentence."""

    stem: str
    cut: int
    names: bool  # a number, a path, an identifier, a proper name
    negates: bool
    telling: bool  # no word that any sentence has


@dataclass(frozen=True, slots=True)
class Shown:
    """What an agent was shown, when, and where in it each word stands."""

    words: Sequence[Word]
    places: Mapping[str, Sequence[int]]
    epoch: int = 0

    @classmethod
    def of(cls, text: str, epoch: int = 0) -> Shown:
        found = _words(text)
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, word in enumerate(found):
            places[word.stem].append(at)
        return cls(found, places, epoch)

    def ends(self, at: int) -> bool:
        """Does a clause end before this word?"""
        return at in (0, len(self.words)) or self.words[at].cut > _NONE

    def longest(self, said: Sequence[Word], start: int, after: int) -> tuple[int, int]:
        """Where the longest run of what is said from `start` on stands, and its length; where
        several are as long, the one behind `after`."""
        best = (0, 0)
        for place in self.places.get(said[start].stem, ())[:_PLACES]:
            length = 1
            while (
                start + length < len(said)
                and place + length < len(self.words)
                and said[start + length].stem == self.words[place + length].stem
            ):
                length += 1
            if length > best[1] or (length == best[1] and self.follows(after, place)):
                best = (place, length)
        return best

    def follows(self, after: int, place: int) -> bool:
        """Does nothing that tells something stand between the two?"""
        return 0 <= after <= place and not any(map(_tells, self.words[after:place]))


def shown_texts(store: Store, session: int) -> list[Shown]:
    """Everything an agent was shown in a session, each since when it was first."""
    first: dict[int, int] = {}
    for line in store.entries(Injection, {"session": session}):
        first[line.item] = min(line.epoch, first.get(line.item, line.epoch))
    return [Shown.of(_text(item), first[item.id]) for item in store.get(list(first))]


def repeats(text: str, shown: Iterable[Shown], epoch: int | None = None) -> bool:
    """Is the text an echo of something that was shown by then? None: whenever it was."""
    there = [one for one in shown if epoch is None or one.epoch <= epoch]
    if not there:
        return False
    said = _words(text)
    return any(_quotes(said, one) for one in there)


def marked(entry: Entry) -> Entry:
    """The same as an echo: kept, and in no index."""
    item = replace(entry.item, status=ECHO)
    return replace(entry, item=item, hash=content_hash(item))


def may_repeat(item: Item) -> bool:
    """Only the agent's own words can be an echo; whoever types it means it."""
    return item.role in ("assistant", "thinking")


def _text(item: Item) -> str:
    parts = (
        item.title, item.subtitle, item.body, *item.facts, *item.sections.values(),
        " ".join(item.concepts), *item.files,
    )  # fmt: skip
    return "\n".join(filter(None, parts))


def _words(text: str) -> list[Word]:
    found: list[Word] = []
    end = 0
    for chunk in _CHUNK.finditer(text):
        between = text[end : chunk.start()]
        cut = _SENTENCE if not found or _STRONG.search(between) else _NONE
        if not cut and _WEAK.search(between):
            cut = _CLAUSE
        end = chunk.end()
        whole = chunk[0]
        low = whole.lower()
        names = (
            _NAMED.search(whole) is not None
            or (whole[0].isupper() and cut != _SENTENCE and whole != "I")
        )  # fmt: skip
        negates = low in _NEGATIONS or low.endswith(("n't", "n’t"))
        for _, _, stems in words(whole) or [(0, 0, (whole,))]:
            for stem in stems or (low,):
                found.append(Word(stem, cut, names, negates, low not in STOP))
                cut = _NONE
    return found


def _tells(word: Word) -> bool:
    return word.telling or word.negates


def _quotes(said: Sequence[Word], shown: Shown) -> bool:
    known = sum(word.stem in shown.places for word in said)
    if 2 * known < len(said):
        return False
    stems = frozenset(word.stem for word in said)
    start = at = quoted = 0
    before = -1  # where in what was shown the last run ended
    while at < len(said):
        place, length = shown.longest(said, at, before)
        if length > 1 or (length and shown.follows(before, place)):
            if not _joined(said, start, at, shown, before, place, stems):
                return False
            quoted += length
            at += length
            start, before = at, place + length
        else:
            at += 1
    if start < at and not _framed(said, start, at, quoted > 0):
        return False
    return quoted >= max(_FEWEST, len(said) // 2)


def _joined(
    said: Sequence[Word], start: int, end: int, shown: Shown, before: int, place: int,
    stems: frozenset[str],
) -> bool:  # fmt: skip
    """May a run that begins at `place` come after one that ended `before`, with these words of the
    speaker's own between them?"""
    own = said[start:end]
    follows = shown.follows(before, place)
    if follows and not any(map(_tells, own)):
        return not (own and place > before)  # "because [the] reports": not one for another
    if own and not _framed(said, start, end, before >= 0):
        return False
    if own and own[-1].telling and not said[end].cut:
        return False  # "I know that the …" leads to a quotation, "Rewrote the …" needs it
    if follows:
        return True
    fits = True
    if before >= 0 and not (own and said[start].cut):
        fits = shown.ends(before) or _moved(shown.words[before], stems)
    if fits and not said[end].cut:
        fits = shown.ends(place) or _moved(shown.words[place - 1], stems)
    return fits


def _moved(word: Word, stems: frozenset[str]) -> bool:
    """Is a word that was left out here said elsewhere?"""
    return word.stem in stems and not word.negates


def _framed(said: Sequence[Word], start: int, end: int, behind: bool) -> bool:
    """Are these words a frame, before a quotation of the same sentence or behind one?"""
    if any(word.names or word.negates for word in said[start:end]):
        return False
    if behind and not said[start].cut:
        return False
    cuts = [at for at in range(start, end) if at == start or said[at].cut]
    for first, last in zip(cuts, [*cuts[1:], end], strict=True):
        if sum(word.telling for word in said[first:last]) > _FRAME:
            return False
        goes_on = end < len(said) and not any(
            word.cut == _SENTENCE for word in said[first + 1 : end + 1]
        )
        leads = goes_on and (said[first].cut == _SENTENCE or not behind)
        if not leads and said[first].stem != _TRAILING:
            return False
    return True
