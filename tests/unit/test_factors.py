"""Every factor of a score: from nought to one, in one direction, blind to everything else."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.clock import DAY
from yester.recall.rank import (
    HALF_LIFE,
    IMPORTANCE,
    SEED_HALF_LIFE,
    SEED_IMPORTANCE,
    Scale,
    Signals,
    Weights,
    by_type,
    cosine_closeness,
    matched_share,
    recency_factor,
)

pytestmark = pytest.mark.requirement("REC-05")

CATEGORIES = (
    "decision", "bugfix", "discovery", "feature", "refactor", "change", "constraint", "preference",
    "runbook", "tech_debt", "session_summary", "summary", "prompt", "message",
)  # fmt: skip
_age = st.integers(-(10**12), 10**13)
_half_life = st.floats(0.01, 1_000)
_spread = st.sampled_from([1.0, 2.0, 3.5])
_cosine = st.floats(-1, 1)
_band = st.tuples(st.floats(-0.5, 0.5), st.floats(0.6, 1))
_part = st.floats(0, 1)


# --- one by one ----------------------------------------------------------------------------------


@given(_age, _half_life, _spread)
def test_recency_lies_between_nought_and_one(age, half_life, spread):
    assert 0.0 <= recency_factor(age, half_life, spread) <= 1.0


@given(_age, _age, _half_life, _spread)
def test_what_is_older_is_never_more_recent(one, other, half_life, spread):
    newer, older = sorted((one, other))
    assert recency_factor(newer, half_life, spread) >= recency_factor(older, half_life, spread)


@given(_half_life)
def test_after_a_half_life_half_is_left(half_life):
    assert recency_factor(round(half_life * DAY), half_life) == pytest.approx(0.5, abs=1e-6)
    assert recency_factor(0, half_life) == recency_factor(-DAY, half_life) == 1.0


@each("days", [0, 0.5, 1, 2, 3, 7, 30])
def test_recency_without_a_spread_is_the_published_curve(days):
    published = math.exp(-0.693 * days / 2)
    assert recency_factor(int(days * DAY), 2.0) == pytest.approx(published, abs=1e-4)


def test_with_a_spread_yesterday_stands_out_and_years_still_differ():
    plain, spread = (
        (lambda age: recency_factor(age, 35.0)),
        (lambda age: recency_factor(age, 35.0, 3.5)),
    )
    assert spread(0) - spread(7 * DAY) > plain(0) - plain(7 * DAY)
    assert spread(365 * DAY) - spread(1_000 * DAY) > 10 * (plain(365 * DAY) - plain(1_000 * DAY))


@each("half_life", [0, -1])
def test_without_a_half_life_nothing_is_recent(half_life):
    assert recency_factor(0, half_life) == 0.0


@given(st.integers(0, 1_000), st.integers(-3, 1_000))
def test_a_share_lies_between_nought_and_one_and_grows_with_what_matched(matched, wanted):
    assert 0.0 <= matched_share(matched, wanted) <= matched_share(matched + 1, wanted) <= 1.0


def test_a_share_of_nothing_is_nothing_and_of_all_is_one():
    assert matched_share(3, 0) == matched_share(0, 3) == 0.0
    assert matched_share(1, 4) == 0.25
    assert matched_share(3, 3) == matched_share(5, 3) == 1.0


@given(_cosine, _cosine, _band)
def test_closeness_lies_between_nought_and_one_and_grows_with_the_cosine(one, other, band):
    lower, higher = sorted((one, other))
    assert 0.0 <= cosine_closeness(lower, band) <= cosine_closeness(higher, band) <= 1.0


@given(_band)
def test_the_ends_of_the_band_are_nought_and_one(band):
    low, high = band
    assert cosine_closeness(low, band) == 0.0
    assert cosine_closeness(high, band) == pytest.approx(1.0)
    assert cosine_closeness((low + high) / 2, band) == pytest.approx(0.5)


@each(
    ("kind", "type_", "expected"),
    [
        ("message", "decision", 0.8),  # the type before the kind
        ("message", "poem", 0.3),  # a type nobody knows: the kind
        ("message", "", 0.3),
        ("note", "poem", 0.1),  # neither: the row of what is not in the table
        ("note", "", 0.1),
        ("", "decision", 0.8),
    ],
)
def test_a_table_is_asked_for_the_type_then_the_kind_then_anything(kind, type_, expected):
    assert by_type({"decision": 0.8, "message": 0.3, "": 0.1}, kind, type_) == expected


# --- the tables ----------------------------------------------------------------------------------


def test_the_seeds_table_is_the_published_one():
    assert dict(SEED_IMPORTANCE) == {
        "decision": 0.8, "bugfix": 0.7, "discovery": 0.6, "feature": 0.5, "refactor": 0.4,
        "change": 0.3, "": 0.3,
    }  # fmt: skip
    assert dict(SEED_HALF_LIFE) == {"": 2.0}


@each("category", CATEGORIES)
def test_every_category_has_an_importance_of_its_own(category):
    assert 0.0 < IMPORTANCE[category] <= 1.0
    assert by_type(IMPORTANCE, "observation", category) == IMPORTANCE[category]


@each("category", CATEGORIES)
def test_every_category_fades_in_days_of_its_own(category):
    assert by_type(HALF_LIFE, "observation", category) > by_type(SEED_HALF_LIFE, "", category)


@each("lasting", ["decision", "constraint", "preference", "runbook", "tech_debt"])
def test_what_was_laid_down_fades_slower_than_what_was_said(lasting):
    assert HALF_LIFE[lasting] > by_type(HALF_LIFE, "message", "")


def test_every_value_of_every_table_can_be_used():
    assert all(0.0 <= value <= 1.0 for value in IMPORTANCE.values())
    assert all(value > 0 for value in HALF_LIFE.values())
    assert "" in IMPORTANCE
    assert "" in HALF_LIFE


def test_one_half_life_for_everything_replaces_the_table_and_nought_leaves_it():
    fixed = Weights().with_half_life(7)
    assert {by_type(fixed.half_life, "message", category) for category in CATEGORIES} == {7.0}
    assert fixed.spread == 1.0
    assert Weights().with_half_life(0) == Weights()


# --- together ------------------------------------------------------------------------------------

FACTORS = Signals._fields
_usable = st.frozensets(st.sampled_from(FACTORS))
_signals = st.builds(
    Signals, _part, st.none() | _part, _part, _part, _part, _part, _part, _part
)  # fmt: skip


def score(scale, signals):
    return scale.score_signals(signals)


@given(_signals, _usable)
def test_a_score_is_the_sum_of_what_its_factors_added(signals, usable):
    scale = Scale(Weights(), usable)
    added = scale.name_factors(signals)
    assert set(added) == usable
    assert scale.score_signals(signals) == pytest.approx(sum(added.values()))


@given(_signals, _usable)
def test_a_score_lies_between_nought_and_one_whatever_can_be_used(signals, usable):
    assert 0.0 <= score(Scale(Weights(), usable), signals) <= 1.0 + 1e-9


@given(_usable.filter(bool))
def test_full_marks_everywhere_are_one_however_few_factors_there_are(usable):
    assert score(Scale(Weights(), usable), Signals(*[1.0] * len(FACTORS))) == pytest.approx(1.0)
    assert score(Scale(Weights(), usable), Signals()) == 0.0


@given(_signals, st.sampled_from(FACTORS), _part)
def test_more_of_any_factor_never_lowers_a_score(signals, name, more):
    scale = Scale(Weights(), frozenset(FACTORS))
    have = getattr(signals, name)
    raised = max(more, have if have is not None else Weights().unembedded * signals.keyword)
    assert score(scale, signals._replace(**{name: raised})) >= score(scale, signals) - 1e-12


@given(_signals, st.sampled_from(FACTORS), _part)
def test_a_factor_a_question_cannot_use_changes_nothing(signals, name, other):
    scale = Scale(Weights(), frozenset(FACTORS) - {name})
    assert name not in scale.shares
    if name != "keyword":  # which stands in for a missing vector
        assert score(scale, signals._replace(**{name: other})) == score(scale, signals)


@given(st.lists(_signals, min_size=1, max_size=8), st.data())
def test_a_score_depends_neither_on_the_others_nor_on_their_order(many, data):
    scale = Scale(Weights(), frozenset(FACTORS))
    alone = [score(Scale(Weights(), frozenset(FACTORS)), one) for one in many]
    order = data.draw(st.permutations(range(len(many))))
    together = {at: score(scale, many[at]) for at in order}
    assert [together[at] for at in range(len(many))] == alone


@given(_part)
def test_what_has_no_vector_is_as_near_as_its_words_say(keyword):
    scale = Scale(Weights(), frozenset({"keyword", "vector"}))
    assumed = Weights().unembedded * keyword
    without = score(scale, Signals(keyword=keyword, vector=None))
    assert without == pytest.approx(score(scale, Signals(keyword=keyword, vector=assumed)))


def test_a_vector_that_is_far_counts_less_than_one_that_is_missing():
    scale = Scale(Weights(), frozenset({"keyword", "vector"}))
    far, missing = Signals(keyword=0.8, vector=0.0), Signals(keyword=0.8, vector=None)
    assert score(scale, far) < score(scale, missing)


@given(_signals)
def test_the_seeds_score_is_a_plain_sum_and_may_exceed_one(signals):
    weights = Weights.seed_profile()
    usable = frozenset(FACTORS) - {"vector"}
    expected = sum(getattr(weights, name) * getattr(signals, name) for name in usable)
    assert score(Scale(weights, usable), signals) == pytest.approx(expected)
