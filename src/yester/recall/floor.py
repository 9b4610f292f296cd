"""Is a hit worth showing to somebody who did not ask for it?

Ranking puts the best first; it does not say whether the best is any good. So the floor looks at raw
facts and not at the score: how much of the question's weight the words of the hit match, how near
it is in meaning, how long the question is and how much there was to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log10, sqrt

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
    floor = max(LOWEST_FLOOR, FLOOR + FLOOR_RISE * log10(max(items, 1) / FLOOR_ITEMS))
    evidence = factors.get("fit", 0.0) * sqrt(min(max(terms, _FEWEST_TERMS), _MOST_TERMS))
    return evidence >= (floor if own else floor * ELSEWHERE)
