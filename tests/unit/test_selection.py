"""Which hits an agent is given."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.memories.categories import CATEGORIES, TIE, category_priority, order_hits
from yester.model import Hit

pytestmark = pytest.mark.requirement("MEM-05")


def hit(id_, score, type_="note", kind="memory"):
    return Hit(id_, str(id_), kind, type_, "p", "", "", "", 0.0, score)


def ids(hits):
    return [one.id for one in hits]


def test_within_one_percent_the_category_decides():
    hits = [hit(1, 0.500, "session_summary"), hit(2, 0.496, "decision"), hit(3, 0.498, "runbook")]
    assert ids(order_hits(hits)) == [2, 3, 1]


def test_beyond_one_percent_the_score_decides():
    hits = [hit(1, 0.500, "session_summary"), hit(2, 0.494, "decision")]
    assert ids(order_hits(hits)) == [1, 2]


def test_a_type_of_something_that_is_no_memory_counts_for_nothing():
    hits = [hit(1, 0.5, "decision", "observation"), hit(2, 0.5, "session_summary")]
    assert ids(order_hits(hits)) == [2, 1]


@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([*CATEGORIES, "other"])), max_size=8),
    st.randoms(),
)
def test_no_hit_is_lost_and_nobody_passes_a_clearly_better_one(drawn, random):
    hits = [hit(n, score, type_) for n, (score, type_) in enumerate(drawn)]
    found = order_hits(hits)
    assert sorted(ids(found)) == list(range(len(hits)))
    for first, second in pairwise(found):
        assert second.score <= first.score + TIE * second.score + 1e-12
        if second.score > first.score:
            assert category_priority("memory", first.type) <= category_priority(
                "memory", second.type
            )
    shuffled = hits[:]
    random.shuffle(shuffled)
    assert order_hits(shuffled) == found
