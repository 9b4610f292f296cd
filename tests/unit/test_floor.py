"""The floor: monotone in every fact, bounded, and the same in whatever order hits are given."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from yester.model import Hit, replace
from yester.recall.floor import (
    BESIDE,
    LOGISTIC,
    SHARE,
    Standing,
    describe_lack,
    judge_standing,
    least_score,
    length_surcharge,
    passing_hits,
    score_of_tenth,
    worth_showing,
)

pytestmark = pytest.mark.requirement("REC-17")

_part = st.floats(0.0, 1.0)


def hit(
    number: int, score: float, cosine: float | None = 0.8, text: str = "x" * 300, **more
) -> Hit:
    factors = {"fit": 0.2} | ({} if cosine is None else {"cosine": cosine})
    found = Hit(number, f"r{number}", "observation", "", "mill", "", "", text, 0.0, score, factors)
    return replace(found, **more)


def shown(found, terms=8, items=1_000):
    return {one.id for one, _ in passing_hits(found, terms, items)}


def here(*hits):
    return [(one, True) for one in hits]


ANSWERED = here(hit(0, 0.8), hit(1, 0.7), *(hit(n, 0.4) for n in range(2, 12)))

_hits = st.lists(
    st.builds(
        lambda score, cosine, kind, size: (score, cosine, kind, size),
        _part,
        st.none() | _part,
        st.sampled_from(["message", "observation", "prompt", "memory"]),
        st.integers(0, 5_000),
    ),
    max_size=15,
).map(
    lambda rows: sorted(
        (hit(n, s, c, "y" * size, kind=kind) for n, (s, c, kind, size) in enumerate(rows)),
        key=lambda one: -one.score,
    )
)


def test_every_fact_has_its_weight():
    assert tuple(LOGISTIC) == Standing._fields


@given(_part, _part, _part, _part, _part, st.booleans(), st.floats(-7, 7))
def test_more_height_and_more_nearness_never_speak_against_an_answer(a, b, c, d, e, talk, length):
    low = Standing(min(a, b), min(c, d), float(talk), length, 0.0)
    high = Standing(max(a, b), max(c, d), float(talk), length, 0.0)
    assert low.evidence <= high.evidence
    assert replace_length(high, length + e).evidence <= high.evidence


def replace_length(one: Standing, length: float) -> Standing:
    return one._replace(length=length)


def test_what_stands_out_is_shown_and_what_stands_beside_it_too():
    assert shown(ANSWERED) == {0, 1}


def test_what_does_not_stand_out_is_not_shown_however_near_it_is():
    level = here(*(hit(n, 0.8 - n / 1_000, cosine=0.9) for n in range(12)))
    assert shown(level) == set()


def test_what_stands_out_but_is_far_must_stand_out_further():
    far = [(replace(one, factors={"cosine": 0.2}), own) for one, own in ANSWERED]
    near_enough = next(
        rise
        for rise in range(100)
        if shown(here(hit(0, rise / 100, 0.8), *(hit(n, 0.0, 0.1) for n in range(1, 12))))
    )
    far_enough = next(
        rise
        for rise in range(100)
        if shown(here(hit(0, rise / 100, 0.2), *(hit(n, 0.0, 0.1) for n in range(1, 12))))
    )
    assert near_enough < far_enough
    assert shown(far) <= shown(ANSWERED)


def test_of_long_texts_one_must_stand_out_further():
    def rise(size: int, kind: str) -> int:
        def found(height: float):
            rest = (hit(n, 0.0, 0.7, "x" * size, kind=kind) for n in range(1, 12))
            return here(hit(0, height, 0.7, "x" * size, kind=kind), *rest)

        return next(n for n in range(100) if shown(found(n / 100)))

    for kind in ("observation", "message"):
        assert rise(20_000, kind) > rise(1_000, kind)
    assert rise(1_000, "message") > rise(50, "message")
    assert rise(400, "observation") == rise(50, "observation")


@given(_hits)
def test_nothing_is_shown_below_something_that_is_not(found):
    passed = shown(here(*found))
    scores = [one.score for one in found if one.id in passed]
    if scores and any("cosine" in one.factors for one in found):
        assert {one.id for one in found if one.score >= min(scores)} == passed


@given(_hits, st.data())
def test_the_order_hits_are_given_in_changes_nothing(found, data):
    strangers = data.draw(st.sets(st.integers(0, 14)))
    pairs = [(one, one.id not in strangers) for one in found]
    scores = [one.score for one in found]
    if len(set(scores)) == len(scores):
        assert shown(data.draw(st.permutations(pairs))) == shown(pairs)


@given(_hits)
@example([hit(0, 0.25, 1.0, "", kind="message")])
def test_what_another_project_has_must_show_more(found):
    for one in found:
        if shown([(one, False)]):
            assert shown([(one, True)])


def test_what_another_project_has_opens_nothing_for_ones_own():
    weak = [hit(n, 0.40 - n / 1_000, 0.6) for n in range(12)]
    assert shown(here(*weak)) == set()
    stranger = hit(99, 0.9, 0.9)
    assert shown([(stranger, False), *here(*weak)]) == {99}


@given(_hits)
def test_the_least_score_lies_between_the_tenth_and_the_first(found):
    least = least_score(found)
    if found and least < inf:
        tenth = score_of_tenth(found)
        assert tenth <= least <= found[0].score
        assert tenth >= 0.2
        assert least == pytest.approx(tenth + SHARE * judge_standing(found, tenth).rise)


def test_nothing_found_is_nothing_shown():
    assert shown([]) == set()
    assert least_score([]) == inf


def test_in_a_small_store_one_good_answer_is_enough():
    assert shown(here(hit(0, 0.75, 0.85))) == {0}
    assert shown(here(hit(0, 0.40, 0.70))) == set()
    assert shown(here(hit(0, 0.65, 0.8), hit(1, 0.1, 0.6))) == {0}
    assert shown(here(hit(0, 0.30, 0.7), hit(1, 0.0, 0.6))) == set()


def test_what_has_no_vector_is_shown_beside_an_answer_that_has_one():
    printed = hit(20, 0.75, cosine=None, role="tool")
    assert shown([*ANSWERED, (printed, True)]) == {0, 1, 20}


@given(_part, _part, st.integers(0, 200), st.integers(0, 10**7), st.booleans())
def test_by_words_alone_a_better_fit_never_falls_below_the_floor(a, b, terms, items, own):
    if worth_showing({"fit": min(a, b)}, terms, items, own):
        assert worth_showing({"fit": max(a, b)}, terms, items, own)
        assert worth_showing({"fit": min(a, b)}, terms, items // 2, own)
        assert worth_showing({"fit": min(a, b)}, terms, items, own=True)


@given(st.lists(_part, min_size=1, max_size=12), st.integers(1, 40), st.integers(1, 10**6))
def test_without_any_vector_what_fits_well_enough_opens_the_door_a_little(fits, terms, items):
    found = [
        (replace(hit(n, fit, cosine=None), factors={"fit": fit}), True)
        for n, fit in enumerate(fits)
    ]
    passed = shown(found, terms, items)
    alone = {n for n, fit in enumerate(fits) if worth_showing({"fit": fit}, terms, items, True)}
    assert bool(passed) == bool(alone)
    assert alone <= passed
    if passed:
        least = min(fits[n] for n in passed)
        assert passed == {n for n, fit in enumerate(fits) if fit >= least}
        assert worth_showing({"fit": least}, terms, items, own=True, share=BESIDE)


def test_by_words_alone_long_texts_must_fit_better():
    def least(size: int, kind: str) -> int:
        return next(
            n
            for n in range(1, 400)
            if shown(
                here(replace(hit(0, 0.5, None, "x" * size, kind=kind), factors={"fit": n / 100}))
            )
        )

    for kind in ("message", "observation"):
        assert least(20_000, kind) > least(1_000, kind)
    assert least(1_000, "message") > least(100, "message")
    assert least(300, "observation") == least(100, "observation")


@given(st.booleans(), st.floats(-7, 7), st.floats(0, 3))
def test_the_floor_of_words_never_falls_with_length(talk, length, more):
    one = Standing(0.0, 0.0, float(talk), length if talk else max(0.0, length), 0.0)
    assert length_surcharge(one) <= length_surcharge(one._replace(length=one.length + more)) + 1e-12


def test_what_is_left_out_is_told_what_it_lacks_and_not_only_that_it_scores_less():
    def pair(id_, score, here, **factors):
        return Hit(id_, "", "note", "", "", "", "", "text", 1.0, score, factors), here

    near = [
        pair(1, 0.9, True, cosine=0.8),
        *(pair(n, 0.25, True, cosine=0.2) for n in range(2, 14)),
    ]
    told = describe_lack(near)
    least = least_score([hit for hit, _ in near])
    assert told[True] == f"below the floor: less than {least:.2f}, what stands out here"
    assert told[False].endswith("of another project, and does not stand out by itself")
    flat = [pair(n, 0.4, True, cosine=0.2) for n in range(12)]
    assert describe_lack(flat)[True] == "below the floor: nothing of this project stands out"
    assert "matches too little of the prompt" in describe_lack([pair(1, 0.4, True, fit=0.1)])[True]
    assert all(
        one.startswith("below the floor: ") for one in {**describe_lack([]), **told}.values()
    )
