"""The query language: plain words rank, operators restrict, any text is a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.model import Every, Phrase, Prefix, Some, Without, Word
from yester.text.query import FIELDS, parse_query
from yester.text.terms import text_terms

pytestmark = pytest.mark.requirement("REC-02")


def word(text):
    return Word(tuple(text_terms(text)))


TABLE = [
    ("redis cache deploy", None),
    ('"rate limit"', Phrase(("rate", "limit"))),
    ('fix "rate limit" bug', Phrase(("rate", "limit"))),
    ('"redis"', Phrase(("redi",))),
    ("redis AND deploy", Every((word("redis"), word("deploy")))),
    ("redis OR memcached", Some((word("redis"), word("memcached")))),
    ("redis NOT staging", Every((word("redis"), Without(word("staging"))))),
    ("redis AND NOT staging", Every((word("redis"), Without(word("staging"))))),
    ("NOT staging", Without(word("staging"))),
    (
        "(redis OR memcached) AND ttl",
        Every((Some((word("redis"), word("memcached"))), word("ttl"))),
    ),
    ("redis AND ttl OR cdn", Some((Every((word("redis"), word("ttl"))), word("cdn")))),
    ("migrat* tests", Prefix("migrat")),
    ("NEAR(cache deploy, 5)", Phrase(("cach", "deploy"), 5)),
    ("NEAR(cache deploy)", Phrase(("cach", "deploy"), 10)),
    ("and or not", None),
    ("cats AND", None),
    ("OR cats", None),
    ("this (and that", None),
    (") (", None),
    ('an unclosed " quote', None),
]


@each(("text", "must"), TABLE)
def test_a_question_demands_this_of_every_answer(text, must):
    assert parse_query(text).must == must


def test_plain_words_rank_by_terms_and_never_as_one_phrase():
    query = parse_query("why did the migrations fail")
    assert query.terms == ("migrat", "fail")
    assert query.must is None


def test_in_a_long_text_nothing_is_an_operator():
    long = 'The deploy said "rate limit" AND then NOT much else happened for a while (really)'
    assert parse_query(long).must is None
    assert parse_query("first line\nNOT staging").must is None
    assert parse_query("kind:prompt\nwas in the log").filters == ()


def test_what_is_excluded_does_not_rank():
    assert parse_query("redis NOT staging").terms == ("redi",)
    assert parse_query("redis NOT (staging OR test)").terms == ("redi",)


def test_filters_can_be_written_into_the_question():
    query = parse_query('cache project:shop since:1w file:"my file.py" kind:prompt')
    assert query.filters == (
        ("project", "shop"),
        ("since", "1w"),
        ("file", "my file.py"),
        ("kind", "prompt"),
    )
    assert query.terms == ("cach",)
    assert parse_query("http://example.org std::vector").filters == ()


@each("name", sorted(FIELDS))
def test_every_filter_is_understood(name):
    value = {"kind": "prompt", "since": "3d", "until": "today"}.get(name, "x")
    assert parse_query(f"{name}:{value}").filters == ((name, value),)


@each("text", ["kind:of", "since:when", "until:2026-13-01"])
def test_what_cannot_be_a_filter_is_a_word(text):
    query = parse_query(text)
    assert query.filters == ()
    assert query.terms


@each("text", ["", "   ", "what was that", "??", "( )", '""'])
def test_a_question_without_a_telling_word_names_nothing(text):
    assert not parse_query(text).named


@given(st.text())
def test_any_text_is_a_query(text):
    query = parse_query(text)
    assert len(set(query.terms)) == len(query.terms)


_pieces = st.lists(
    st.sampled_from(
        ["redis", "cache", '"a b"', "AND", "OR", "NOT", "(", ")", "x*", "NEAR(a b)", "NEAR(", '"',
         "kind:prompt", "*", "-", "::", "since:", "since:x", "kind:y"]
    ),
    max_size=12,
).map(" ".join)  # fmt: skip


@given(_pieces)
def test_any_mixture_of_operators_is_a_query_the_store_can_run(tmp_path_factory, text):
    import yester

    with yester.open(tmp_path_factory.getbasetemp() / "query-store") as memory:
        memory.add([{"ref": "1", "text": "redis cache a b x"}, {"ref": "2", "text": "cache"}])
        assert all(0 <= hit.score <= 1 for hit in memory.recall(text))


@each(("stem", "prefixes"), [("ab*", ("ab",)), ("a*", ())])
def test_a_beginning_has_at_least_two_letters(stem, prefixes):
    assert parse_query(stem).prefixes == prefixes


@each(("words", "restricts"), [(12, True), (13, False)])
def test_whoever_writes_more_than_twelve_words_is_not_using_operators(words, restricts):
    question = " ".join(["redis", "AND", *(f"word{n}" for n in range(words - 2))])
    assert (parse_query(question).must is not None) is restricts
