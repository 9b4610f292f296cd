"""A turn into observations: what was decided, done or found, and what trouble there was."""

from __future__ import annotations

from collections.abc import Sequence

from yester.distil.decided import decided
from yester.distil.drafts import Draft, Gate
from yester.distil.found import found, on_the_way
from yester.distil.outcomes import Outcomes
from yester.distil.telling import NEAR
from yester.distil.titles import near, words
from yester.distil.trouble import checked, trouble
from yester.distil.turns import View
from yester.distil.work import Committed, work

_STEPS_PER_DRAFT = 16  # beyond the first two, one observation for so many uses of tools
_MOST_DRAFTS = 6


def observe(
    turn: View, commits: Sequence[Committed], came_out: Outcomes, gate: Gate
) -> list[Draft]:
    """The observations of a turn, the most telling first; none where it has nothing to tell, and at
    least one where files were changed, something was committed or a check failed. Give the facts of
    those that are stored to `gate.keep` before the next turn."""
    drafts = decided(turn, gate)
    for draft in drafts:
        gate.tell(draft.facts)  # what is said as a decision is not said again as a fact of the work
    if commits or turn.edited:
        drafts += work(turn, commits, came_out, gate)
    else:
        drafts += found(turn, gate)
    drafts += trouble(turn, came_out, gate)
    drafts += on_the_way(turn, drafts, gate)
    if not drafts:
        drafts = checked(turn, came_out)
    kept = _different(sorted(drafts, key=lambda draft: -draft.worth))
    most = min(2 + len(turn.steps) // _STEPS_PER_DRAFT, _MOST_DRAFTS)
    return kept[:most]


def _different(drafts: Sequence[Draft]) -> list[Draft]:
    kept: list[Draft] = []
    for draft in drafts:
        own = words(draft.title)
        if draft.title and all(
            near(own, words(other.title)) < NEAR or _elsewhere(draft, other) for other in kept
        ):
            kept.append(draft)
    return kept


def _elsewhere(one: Draft, other: Draft) -> bool:
    """Are two pieces of work about different files?"""
    changed, also = set(one.files_modified), set(other.files_modified)
    return bool(changed and also) and changed != also
