"""Is anything of what was found worth showing to somebody who did not ask for it?

Ranking puts the best first; it does not say whether the best is any good. A turn is likely to help
by how well it fits, and by the names it shares with what was said (`helpful_chance`). Where nothing
was named, or something else than a turn was found, it counts how the best stands against the rest:
with vectors, something answers a question when the first of what was found stands well above the
tenth and the nearest is near, and what stands up there with the first is shown; by words alone,
each hit must match enough of the question.

docs/quality.md has what it keeps and what it lets through; `python bench/floor.py --fit` finds the
constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import exp, inf, log, log1p, log10, sqrt
from typing import NamedTuple

from yester.model import Hit

# A logistic model of a question's facts, fitted on questions whose answers were known, on the same
# ones with the answers taken away, and asked of stores that are about other things. Of long texts
# one always stands out by chance; short turns of talk hardly do, whatever they say. What is about
# the files at hand stands out for that alone.
LOGISTIC = {"rise": 9.54, "peak": 3.75, "talk": -0.37, "length": -0.45, "files": -0.13}
CONSTANT = -4.23
SHARE = 0.2  # of the first one's height above the tenth that others must have
STRANGER = 0.5  # more that what another project has must show
FIRST = 5  # whose length counts
_UNRELATED, _ALONE = 0.2, 0.3  # scores that what has nothing to do with a question may have
_TENTH = 9
_TALK = ("message", "prompt")
_LENGTH = 6.5  # of a text of some 660 characters, as a logarithm

# By words alone. The longer a question, the less of it any text holds: measured, fits fall with the
# square root of its terms, so that is what they are multiplied by. The more there is, the more
# shares words by chance: the floor rises with every tenfold. The longer texts are, the more of any
# question they hold. What another project has must fit better.
FLOOR, FLOOR_ITEMS, FLOOR_RISE = 1.0, 30_000, 0.15
LOWEST_FLOOR = 0.5
ELSEWHERE = 1.3
BESIDE = 0.7  # of the floor will do beside one that passes
# More or less for each e-fold of length; what is not talk has a title that says what it is about,
# so that its length matters little until it is a document (some 1,800 characters).
LONG_TALK, SHORT_TALK, LONG, DOCUMENT = 0.6, 0.2, 0.1, 3.0
_TALK_LENGTH, _DOCUMENT_LENGTH = -0.5, 1.0  # as `Standing.length` counts
_FEWEST_TERMS, _MOST_TERMS = 4, 80  # below, chance rules; above, recall asks with the rarest 80


# A model of turns, fitted on prompts of real sessions whose wanted turns are known by who wrote the
# lines that were changed then (bench/prompts.py).
CHANCE, FIT, NAMES = -5.48, 4.85, 0.49
LEAST_CHANCE = 0.3
LEAST_ASKED_BACK = 0.14  # where the prompt itself asks for what was before
_NAME = re.compile(
    r"#\d{2,}|[A-Za-z_][\w-]*(?:[./_][\w-]+)+|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*"
)


def find_names(text: str) -> dict[str, str]:
    """Identifiers, paths and numbers of issues: in lower case → as they are written."""
    return {name.lower(): name for name in _NAME.findall(text)}


def helpful_chance(score: float, names: int) -> float:
    """From 0 to 1, for a turn with this score that shares so many names with what was said."""
    return 1 / (1 + exp(-(CHANCE + FIT * score + NAMES * log1p(names))))


class Standing(NamedTuple):
    """How the best of what was found for a question stands against the rest of it."""

    rise: float  # of the first one's score above the tenth's
    peak: float  # the cosine of the nearest
    talk: float  # 1: the first is something said
    length: float  # of the first few, a logarithm; what is not talk has none while it is short
    files: float  # 1: the question came with files

    @property
    def evidence(self) -> float:
        """The logarithm of the odds that an answer is there, more or less."""
        return CONSTANT + sum(
            LOGISTIC[k] * fact for k, fact in zip(self._fields, self, strict=True)
        )


def judge_standing(hits: Sequence[Hit], tenth: float) -> Standing:
    """`hits`, the best first, over a tenth of this score."""
    first = hits[0]
    talk = first.kind in _TALK
    sizes = [log(1 + len(hit.title) + len(hit.text)) for hit in hits[:FIRST]]
    length = sum(sizes) / len(sizes) - _LENGTH
    return Standing(
        rise=first.score - tenth,
        peak=max(hit.factors.get("cosine", 0.0) for hit in hits),
        talk=float(talk),
        length=length if talk else max(0.0, length),
        files=float("files" in first.factors),
    )


def passing_hits(
    found: Sequence[tuple[Hit, bool]], terms: int, items: int
) -> Iterator[tuple[Hit, bool]]:
    """Those worth showing of explained hits, the best first, each with whether it is of the project
    the question was asked in; the question has so many terms, the store so many items.

    Leave out beforehand what is not to be shown anyway: the question itself, already recorded,
    would be its own best answer.
    """
    if not any("cosine" in hit.factors for hit, _ in found):
        yield from _by_words(found, terms, items)
        return
    own = sorted((hit for hit, here in found if here), key=lambda hit: -hit.score)
    everybody = sorted((hit for hit, _ in found), key=lambda hit: -hit.score)
    tenth = score_of_tenth(everybody)
    least = least_score(own)
    for hit, here in found:
        # What another project has must stand out by itself: its neighbours there say nothing here.
        alone = not here and hit.score > tenth and judge_standing([hit], tenth).evidence > STRANGER
        if alone or (here and hit.score >= least):
            yield hit, here


def describe_lack(found: Sequence[tuple[Hit, bool]]) -> dict[bool, str]:
    """What those lack that `passing_hits` leaves out: of the own project (True), and of others.
    Scores alone do not tell: what is shown of one project may score less than what another has."""
    if not any("cosine" in hit.factors for hit, _ in found):
        few = "below the floor: matches too little of the prompt"
        return {True: few, False: f"{few} for what another project has"}
    own = sorted((hit for hit, here in found if here), key=lambda hit: -hit.score)
    least = least_score(own)
    return {
        True: "below the floor: nothing of this project stands out"
        if least == inf
        else f"below the floor: less than {least:.2f}, what stands out here",
        False: "below the floor: of another project, and does not stand out by itself",
    }


def least_score(hits: Sequence[Hit]) -> float:
    """From which on hits are shown, the best of which is the first; none where nothing answers."""
    if not hits:
        return inf
    tenth = score_of_tenth(hits)
    best = judge_standing(hits, tenth)
    return tenth + SHARE * best.rise if best.evidence > 0 else inf


def score_of_tenth(hits: Sequence[Hit]) -> float:
    """Of hits, the best first; of the last where there are fewer. Little was found by a store that
    holds little: that its last is far below the first says less than it seems."""
    if len(hits) < 2:
        return _ALONE
    return max(_UNRELATED, hits[min(_TENTH, len(hits) - 1)].score)


def _by_words(
    found: Sequence[tuple[Hit, bool]], terms: int, items: int
) -> Iterator[tuple[Hit, bool]]:
    if not found:
        return
    best_first = sorted((hit for hit, _ in found), key=lambda hit: -hit.score)
    more = length_surcharge(judge_standing(best_first, 0.0))
    answered = any(
        worth_showing(hit.factors, terms, items, own=True, more=more) for hit, here in found if here
    )
    for hit, here in found:
        share = BESIDE if here and answered else 1.0
        if worth_showing(hit.factors, terms, items, here, more, share):
            yield hit, here


def length_surcharge(best: Standing) -> float:
    """How much higher the floor of words is for texts as long as these."""
    if not best.talk:
        return LONG * best.length + DOCUMENT * max(0.0, best.length - _DOCUMENT_LENGTH)
    over = best.length - _TALK_LENGTH
    return over * (LONG_TALK if over > 0 else SHORT_TALK)


def worth_showing(
    factors: Mapping[str, float],
    terms: int,
    items: int,
    own: bool,
    more: float = 0.0,
    share: float = 1.0,
) -> bool:
    """By words alone: `factors` of an explained hit, for a question of so many terms in a store of
    so many items; `own`: the hit is of the project the question was asked in. The floor is `more`
    higher for long texts, and a `share` of it has to be reached."""
    length = sqrt(min(max(terms, _FEWEST_TERMS), _MOST_TERMS))
    floor = FLOOR + FLOOR_RISE * log10(max(items, 1) / FLOOR_ITEMS) + more
    least = max(LOWEST_FLOOR, floor) * (1.0 if own else ELSEWHERE)
    return factors.get("fit", 0.0) * length >= share * least
