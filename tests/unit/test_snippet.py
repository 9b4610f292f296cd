"""Snippets show the part of a text that answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.text.sentences import find_snippet
from yester.text.terms import query_terms

pytestmark = pytest.mark.requirement("DEL-09")


def test_the_window_with_the_most_asked_words_is_shown():
    text = "nothing here. " * 60 + "We dropped redis because of the cache." + " more text" * 60
    shown = find_snippet(text, query_terms("why drop redis cache"), 80)
    assert "dropped redis because of the cache" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")


def test_each_asked_word_is_marked_in_all_its_forms():
    shown = find_snippet("The caches of the Cache", query_terms("caching"), mark=lambda w: f"[{w}]")
    assert shown == "The [caches] of the [Cache]"


def test_a_short_text_is_shown_whole_on_one_line():
    assert find_snippet("two\n  lines", ["line"]) == "two lines"


def test_without_a_match_the_beginning_is_shown():
    assert find_snippet("alpha " * 100, ["zebra"], 30).startswith("alpha alpha")


@given(st.text(max_size=2000), st.text(max_size=50), st.integers(20, 300))
def test_any_text_gives_a_short_line(text, query, most):
    shown = find_snippet(text, query_terms(query), most)
    assert "\n" not in shown
    assert len(shown) <= most + 80


def test_a_word_is_found_in_all_its_forms():
    asked = query_terms("retries of the webhook")
    text = "nothing here. " * 40 + "The webhook was retried without a key. " + "and so on. " * 40
    shown = find_snippet(text, asked, 80)
    assert "webhook was retried" in shown
    assert len(shown) <= 90
    assert find_snippet("plain text", (), 80) == "plain text"
    assert find_snippet("nothing that fits", asked, 80) == "nothing that fits"
    marked = find_snippet("status of us, İ", ["us"], mark=lambda w: f"[{w}]")
    assert marked == "status of us, İ"  # whose small letters are more than one
    assert find_snippet("status of us", ["us"], mark=lambda w: f"[{w}]") == "status of [us]"


@given(st.text(max_size=300), st.text(max_size=30), st.integers(20, 120))
def test_a_snippet_of_any_text_is_one_line_of_it(text, query, most):
    shown = find_snippet(text, query_terms(query), most)
    assert "\n" not in shown
    assert len(shown) <= most + 5
    assert shown.strip("… ") in " ".join(text.split())


@each(("before", "found"), [(9_900, True), (10_900, False)])
def test_only_the_beginning_of_a_very_long_text_is_looked_through(before, found):
    assert ("walrus" in find_snippet("x " * before + "walrus", ["walrus"])) is found


def test_a_snippet_looks_at_six_places_of_a_term():
    far, asked = "filler " * 60, ["walrus", "heron"]
    text = "".join(f"walrus {far}" for _ in range(6))
    assert find_snippet("heron walrus" + far + text, asked, 80).startswith("heron walrus")
    assert "heron" not in find_snippet(
        text + "heron walrus", asked, 80
    )  # its walrus is the seventh
