"""The floor: monotone in every fact, bounded, and the same in whatever order hits are given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.clock import DAY
from yester.model import Hit, replace
from yester.recall.floor import (
    LEAST_CHANCE,
    find_names,
    judge_hits,
    other_evidence,
    turn_evidence,
)

pytestmark = pytest.mark.requirement("REC-17")

NOW = 1_000 * DAY
_part = st.floats(0.0, 1.0)
_days = st.floats(0.0, 4_000.0)


def hit(number: int, score: float, turn: int = 0, days: float = 0.0, **more) -> Hit:
    epoch = NOW / 1000 - days * DAY / 1000
    found = Hit(number, f"r{number}", "summary", "", "mill", "", "", "flour", epoch, score)
    return replace(found, prompt_number=turn, **more)


def shown(hits, prompt="why is the flour coarse", project="mill"):
    judged = judge_hits(hits, prompt, project, NOW)
    return {one.hit.id for one in judged if one.chance >= LEAST_CHANCE}


def crowd(score: float, turn: int = 0):
    """Eleven that say nothing special."""
    return [hit(n, score, turn) for n in range(100, 111)]


@given(_part, _part, st.integers(0, 50), st.integers(0, 50), _days, st.booleans())
def test_more_height_and_more_names_never_speak_against_a_hit(a, b, m, n, days, stranger):
    for evidence in (turn_evidence, other_evidence):
        low = evidence(min(a, b), min(m, n), int(days), stranger)
        assert low <= evidence(max(a, b), max(m, n), int(days), stranger)
        assert evidence(a, m, int(days), True) < evidence(a, m, int(days), False)


@given(_part, st.integers(0, 9), _days, _days)
def test_a_turn_loses_with_age_and_what_is_of_no_turn_with_length(lead, names, a, b):
    young, old = sorted((a, b))
    assert turn_evidence(lead, names, old) <= turn_evidence(lead, names, young)
    assert turn_evidence(lead, names, 4_000.0) == turn_evidence(lead, names, 11.0)
    short, long = int(young), int(10 * old)
    assert other_evidence(lead, names, long) <= other_evidence(lead, names, short)
    assert other_evidence(lead, names, 1_000) == other_evidence(lead, names, 0)


def test_what_stands_out_is_shown_and_what_does_not_is_not_however_well_it_fits():
    assert shown([hit(1, 0.8), *crowd(0.5)]) == {1}
    assert shown([hit(1, 0.95, turn=3), *crowd(0.4, turn=2)]) == {1}
    assert shown([hit(n, 0.9 - n / 1_000) for n in range(12)]) == set()
    assert shown([hit(n, 0.9 - n / 1_000, turn=1) for n in range(12)]) == set()


def test_a_turn_that_shares_names_need_not_stand_out_so_far():
    plain = [hit(1, 0.7, turn=3), *crowd(0.5, turn=2)]
    assert shown(plain) == set()
    assert shown([hit(1, 0.9, turn=3), *crowd(0.5, turn=2)]) == set()
    named = [replace(plain[0], text="rounds in mill/stone.py"), *plain[1:]]
    assert shown(named, "the stone in mill/stone.py") == {1}
    (best, *_) = judge_hits(named, "the stone in Mill/Stone.py", "mill", NOW)
    assert (best.hit.id, best.names) == (1, ["Mill/Stone.py"])


def test_an_older_turn_must_stand_out_further():
    assert shown([hit(1, 1.0, turn=3, days=0), *crowd(0.45, turn=2)]) == {1}
    assert shown([hit(1, 1.0, turn=3, days=9), *crowd(0.45, turn=2)]) == set()


def test_what_another_project_has_must_show_more():
    found = [hit(1, 0.75, project="inn"), *crowd(0.5)]
    assert shown(found) == set()
    assert shown(found, project="inn") == {1}


@given(st.lists(st.tuples(_part, st.integers(0, 2)), max_size=15), st.data())
def test_the_order_hits_are_given_in_changes_nothing(rows, data):
    hits = [hit(n, score, turn) for n, (score, turn) in enumerate(rows)]
    assert shown(data.draw(st.permutations(hits))) == shown(hits)


def test_nothing_found_is_nothing_shown():
    assert judge_hits([], "why is the flour coarse", "mill", NOW) == []


def test_in_a_small_store_one_good_answer_is_enough():
    fits, hardly = {"matched": 0.6}, {"matched": 0.1}
    assert shown([hit(1, 0.3, factors=fits), hit(2, 0.3, factors=hardly)]) == {1}
    assert shown([hit(1, 0.3, turn=1, days=300, factors=fits)]) == {1}
    assert shown([hit(1, 0.3, turn=1, factors=hardly)]) == set()


def test_in_a_small_store_a_long_prompt_fits_only_what_it_matches_more_than_the_rest():
    alike = [hit(n, 0.9, turn=n, factors={"matched": 0.6}) for n in (1, 2, 3)]
    plan = " ".join(f"step{n} grinds bag{n}" for n in range(12))
    assert shown(alike) == {1, 2, 3}
    assert shown(alike, plan) == set()
    assert shown([alike[0], replace(alike[1], score=0.4, factors={"matched": 0.2})], plan) == {1}
    assert shown(alike[:1], plan) == {1}


def test_to_who_asks_for_the_past_nothing_is_too_old():
    old = [hit(1, 0.85, turn=3, days=9), *crowd(0.45, turn=2)]
    assert shown(old) == set()
    (best, *_) = judge_hits(old, "why is the flour coarse", "mill", 0)
    assert best.hit.id == 1
    assert best.chance >= LEAST_CHANCE


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see port/tides.py, EnsureSetup and snake_case", ["port/tides.py", "EnsureSetup", "snake_case"]),  # noqa: E501
        ("#41, but neither #1 nor a well-known tide", ["#41"]),
        ("just words, e.g. these. And more", []),
        ("see https://forge.dev/harbour/issues/7668", ["forge.dev/harbour/issues/7668", "#7668"]),
    ],
)  # fmt: skip
def test_names_are_identifiers_paths_and_numbers_of_issues(text, names):
    assert list(find_names(text).values()) == names


def test_a_name_that_many_have_says_nothing_of_one_of_them():
    text = "rounds in /home/miller/mill/stone.py"
    found = [hit(n, 0.7 if n == 1 else 0.5, turn=n, text=text) for n in range(1, 12)]
    prompt = "the stone in /home/miller/mill/stone.py"
    assert shown(found, prompt) == set()
    alone = [found[0], *(replace(one, text="flour") for one in found[1:])]
    assert shown(alone, prompt) == {1}
