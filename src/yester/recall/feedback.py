"""Whether a memory has been of use: what happened after it was shown.

    fetched   its whole was asked for                        acted    a file it is about was edited
    opened    somebody looked at it in the viewer            useful, useless   the user said so

What was shown again and again and never used sinks a little; what an agent got because it had asked
is no reason either way, until it wants the whole. It is one factor, bounded both ways,
shown by `--explain`, and a user's word can be taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import tanh

from yester.model import UseCounts

# What each kind of feedback counts.
WORTH: Mapping[str, float] = {
    "fetched": 1.0, "opened": 1.0, "acted": 1.5, "useful": 4.0, "useless": -4.0,
}  # fmt: skip
GIVEN_BY_HAND = ("useful", "useless")
_IGNORED = -0.2  # shown in a session in which nothing came of it
_HALF_WAY = 4.0


def usefulness(used: UseCounts) -> float:
    """From -1 (only in the way) over 0 (nothing known) to 1."""
    worth = sum(WORTH.get(what, 0.0) * number for what, number in used.feedback.items())
    ignored = _IGNORED * max(used.shown - used.used_in, 0)
    return tanh((worth + ignored) / _HALF_WAY)
