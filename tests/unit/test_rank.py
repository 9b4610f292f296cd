"""Scores: bounded, growing with what matches, and independent of their neighbours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.ingest.prepare import prepare_item
from yester.model import KINDS, Candidate, Item, Statistics
from yester.recall.candidates import adjacent_share
from yester.recall.rank import (
    FIELD_WEIGHTS,
    Question,
    Ranked,
    Wanted,
    Weights,
    adjust_score,
    collapse_duplicates,
    same_words,
)

pytestmark = pytest.mark.requirement("REC-15")

_word = st.sampled_from(["cache", "redis", "token", "parser", "index", "worker", "socket", "queue"])
_text = st.lists(_word, max_size=30).map(" ".join)


def candidate(number, item):
    entry = prepare_item(item)
    vector = entry.document.vector
    return Candidate(number, item.kind, item.role, item.type, 1, 0, 0, entry.hash, vector)


def question(words, items=100):
    from yester.text.terms import query_terms

    terms = query_terms(words)
    frequencies = {term: 5 + n for n, term in enumerate(sorted(terms))}
    lengths = {(kind, field): 12.0 for kind in KINDS for field in range(8)}
    wanted = [Wanted(term) for term in terms]
    return Question(wanted, Statistics(items, frequencies, lengths), Weights())


@given(_text, _text, st.sampled_from(KINDS), st.sampled_from(["user", "thinking"]))
def test_a_score_lies_between_nought_and_one(words, body, kind, role):
    one = candidate(1, Item("r", kind, body=body, role=role))
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in question(words or "cache").match_words(one))


@given(_text)
def test_more_of_what_was_asked_never_lowers_the_score(body):
    asked = question("cache redis")
    weaker = asked.match_words(candidate(1, Item("r", "message", body=body + " filler filler")))
    stronger = asked.match_words(candidate(2, Item("r", "message", body=body + " cache redis")))
    assert stronger.keyword >= weaker.keyword


def test_a_match_in_the_title_of_an_observation_beats_one_in_its_text():
    asked = question("cache")
    title = asked.match_words(
        candidate(1, Item("a", "observation", title="cache", body="parser worker"))
    )
    body = asked.match_words(
        candidate(2, Item("b", "observation", title="parser", body="cache worker"))
    )
    assert title.keyword > body.keyword


def test_what_was_said_beats_what_was_thought():
    asked = question("cache")
    said = asked.match_words(candidate(1, Item("a", "message", role="assistant", body="cache")))
    thought = asked.match_words(candidate(2, Item("b", "message", role="thinking", body="cache")))
    assert said.keyword > thought.keyword > 0


def test_a_term_nobody_has_makes_every_answer_less_than_full():
    statistics = Statistics(100, {"cach": 5}, {("message", 2): 1.0})
    full = Question([Wanted("cach")], statistics, Weights())
    partly = Question([Wanted("cach"), Wanted("zyzzyva")], statistics, Weights())
    one = candidate(1, Item("a", "message", body="cache"))
    assert partly.match_words(one).keyword < full.match_words(one).keyword


def test_every_kind_has_field_weights():
    assert set(FIELD_WEIGHTS) == set(KINDS)


def ranked(*bodies):
    asked = question("cache redis")
    several = [candidate(n, Item(str(n), "message", body=b)) for n, b in enumerate(bodies)]
    found = [Ranked(one, asked.match_words(one).keyword, {}) for one in several]
    return sorted(found, key=lambda r: -r.score)


def test_equal_and_nearly_equal_texts_are_collapsed_into_the_best():
    text = "cache redis token parser index worker socket queue timeout retry handler stream"
    kept = collapse_duplicates(ranked(text, text, text + " again", "cache alone"), 10)
    assert sorted(len(one.alike) for one in kept) == [0, 2]


def test_short_texts_are_collapsed_only_when_equal():
    assert len(collapse_duplicates(ranked("cache ok", "cache ok", "cache no"), 10)) == 2


@given(st.lists(_text, max_size=12), st.integers(0, 12))
def test_collapsing_keeps_at_most_what_was_asked_and_no_empty_match(bodies, most):
    kept = collapse_duplicates(ranked(*bodies), most)
    assert len(kept) <= most
    assert all(best.score > 0 for best in kept)


@pytest.mark.requirement("REC-19")
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_more_outdated_the_lower_and_never_below_what_is_taken(score, one, other):
    ranked = Ranked(candidate(1, Item("1", "message", body="cache")), score, {})
    low, high = sorted((one, other))
    lowest, lower = (adjust_score(ranked, "stale", -value).score for value in (high, low))
    assert score * (1 - high) - 1e-9 <= lowest <= lower <= score
    assert adjust_score(ranked, "stale", 0.0) is ranked


@each(("common", "same"), [(18, True), (17, False)])
def test_texts_that_share_nine_tenths_of_their_terms_say_the_same(common, same):
    assert same_words(set(range(20)), set(range(common))) is same


@each(("terms", "same"), [(8, True), (7, False)])
def test_of_a_few_terms_nothing_can_be_told(terms, same):
    assert same_words(set(range(terms)), set(range(terms))) is same


@each(("between", "share"), [("", 1.0), ("x", 0.5), ("x y z", 0.5), ("x y z w", 0.0)])
def test_words_asked_side_by_side_count_half_within_four_places(between, share):
    words = between.replace("x", "one").replace("y", "two").replace("z", "three")
    item = Item("r", "message", body=f"brown {words.replace('w', 'four')} bear")
    assert adjacent_share(item, ["brown", "bear"], {"brown": 1.0, "bear": 1.0}) == share
