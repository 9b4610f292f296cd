"""The tokenizer: one set of terms for what is stored and what is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.text.terms import STOP, query_terms, term_hash
from yester.text.terms import text_terms as expanded

pytestmark = pytest.mark.requirement("STO-02")


def terms(text):
    return list(expanded(text))


EXPANSIONS = [
    ("migrations", ["migrat"]),
    ("Migration", ["migrat"]),
    ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
    ("rateLimitError", ["ratelimiterror", "rate", "limit", "error"]),
    ("HTTPServer", ["httpserver", "http", "server"]),
    ("ci db ui", ["ci", "db", "ui"]),
    ("yester.store.sqlite", ["yester", "store", "sqlite"]),
    ("src/auth/login.py", ["src", "auth", "login", "py"]),
    ("kebab-case-word", ["kebab", "case", "word"]),
    ("version 2.1.325", ["version", "2.1.325"]),
    ("v2.1", ["2.1"]),
    ("step.3", ["step", "3"]),
    ("Done. Next... 3.5 or 1.2.", ["done", "next", "3.5", "or", "1.2"]),
    ("a.b.c v1.2.final", ["1.2", "final"]),
    ("9f8e7d6c5b4a39281706f5e4d3c2b1a098765432", ["9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"]),
    ("deadbeef1", ["deadbeef1"]),
    ("Zürich café", ["zurich", "cafe"]),
    ("数据库迁移", ["数据", "据库", "库迁", "迁移"]),
    ("修", ["修"]),
    ("用redis缓存", ["用", "redi", "缓存"]),
    ("error 404", ["error", "404"]),
    ("a I x", []),
    ("", []),
    ("__init__", ["init"]),
    ("utf8 sha256", ["utf8", "utf", "8", "sha256", "sha", "256"]),
]


@each(("text", "expected"), EXPANSIONS)
def test_a_text_expands_to_these_terms(text, expected):
    assert terms(text) == expected


def test_encoded_data_fills_no_index():
    assert terms("iVBORw0KGgoAAAANSUhEUg" * 40) == terms("") or all(
        len(t) <= 64 for t in terms("iVBORw0KGgoAAAANSUhEUg" * 40)
    )
    assert terms("a" * 500) == []


def test_stop_words_are_dropped_from_a_question_but_never_all_of_it():
    assert query_terms("why did we drop the redis cache") == ["drop", "redi", "cach"]
    assert query_terms("what is this") != []
    assert set(query_terms("to be or not to be")) <= {"to", "be", "or", "not"}


def test_a_question_asks_for_each_term_once():
    assert query_terms("cache caches caching") == ["cach"]


@given(st.text())
def test_any_text_expands_to_clean_terms(text):
    for term in terms(text):
        assert term
        assert " " not in term
        assert '"' not in term
        assert term == term.lower() or not term.isascii()
        assert 0 <= term_hash(term) < 2**32


@given(st.text())
def test_expanding_is_the_same_every_time(text):
    assert terms(text) == terms(text)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_case_of_a_plain_word_does_not_matter(text):
    for word in text.split():
        if word.isalpha():
            assert terms(word.lower()) == terms(word.upper())


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_plain_text_beside_other_scripts_is_cut_alike(text):
    assert terms(text + " été")[:-1] == terms(text)


def test_stop_words_are_lower_case_words():
    assert all(word.isalpha() and word.islower() for word in STOP)


@each(("length", "terms"), [(64, 1), (65, 0)])
def test_a_run_longer_than_any_word_is_no_term(length, terms):
    assert len(list(expanded("x" * length))) == terms


@each(("name", "several"), [("aa1gg2cc3hh", True), ("aa1gg2cc3hh4", False)])
def test_the_parts_of_a_random_name_are_no_terms(name, several):
    """Seven parts may be an identifier; eight are the id of something."""
    assert (len(list(expanded(name))) > 1) is several
