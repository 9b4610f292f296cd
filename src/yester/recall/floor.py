"""Is a hit worth showing to somebody who did not ask for it?

Ranking puts the best first; it does not say whether the best is any good. So the floor looks at raw
facts and not at the score: how much of the question's weight the words of the hit match, how near
it is in meaning, how long the question is and how much there was to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log10, sqrt

# With vectors: a logistic model of four facts, fitted on questions whose answers were known, on the
# same questions asked of stores that are about other things, and with the answers taken away
# (docs/quality.md has what it keeps and what it lets through). It is the cosine, and how far the
# hit is ahead of the others.
LOGISTIC = {"fit": -0.33, "cosine": 10.03, "ahead": -2.44, "lead": 19.46}
CONSTANT, LEAST = -8.68, 1.16

# By words alone. The longer a question, the less of it any text holds: measured, fits fall with the
# square root of its terms, so that is what they are multiplied by. The more there is, the more
# shares words by chance: the floor rises with every tenfold. What another project has must fit
# better.
FLOOR, FLOOR_ITEMS, FLOOR_RISE = 1.0, 30_000, 0.15
LOWEST_FLOOR = 0.5
ELSEWHERE = 1.3
_FEWEST_TERMS, _MOST_TERMS = 4, 80  # below, chance rules; above, recall asks with the rarest 80


def worth_showing(factors: Mapping[str, float], terms: int, items: int, own: bool) -> bool:
    """`factors` of an explained hit, for a question of so many terms in a store of so many items;
    `own`: the hit is of the project the question was asked in."""
    length = sqrt(min(max(terms, _FEWEST_TERMS), _MOST_TERMS))
    if "cosine" in factors:
        facts = {**factors, "fit": factors.get("fit", 0.0) * length}
        evidence = CONSTANT + sum(k * facts.get(name, 0.0) for name, k in LOGISTIC.items())
        return evidence > (LEAST if own else LEAST * ELSEWHERE)
    floor = max(LOWEST_FLOOR, FLOOR + FLOOR_RISE * log10(max(items, 1) / FLOOR_ITEMS))
    evidence = factors.get("fit", 0.0) * length
    return evidence >= (floor if own else floor * ELSEWHERE)
