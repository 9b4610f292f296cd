"""Errors in outputs: which line tells, and when two are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.cards.tools import error_fingerprint, find_errors
from yester.tables import load_rows

pytestmark = pytest.mark.requirement("DIS-09")


def test_every_placeholder_stands_for_its_example():
    for row in load_rows("tools", "placeholders"):
        assert list(map(error_fingerprint, row.examples)) == row.values["becomes"]


def test_every_row_finds_its_own_example():
    for rank, row in enumerate(load_rows("tools", "errors")):
        for example in row.examples:
            (found,) = find_errors(f"first line\n{example}\nlast line here")
            assert found.rank == rank, row.name
            assert found.text in example


@each(
    ("one", "other"),
    [
        ("/home/a/x/cart.py:12:3: undefined: total", "C:\\b\\y\\cart.py:99:1: undefined: total"),
        ("panic at 0x7ffd12: 3 of 9", "panic at 0x11: 12 of 99"),
        ("run 1b4e28ba-2fa1-41d2-883f-0016d3cca427 failed after 1.5s",
         "run 6ba7b810-9dad-41d1-80b4-00c04fd430c8 failed after 12ms"),
        ("2026-02-04T07:13:56Z no row", "2027-12-31T23:59:59Z no row"),
    ],
)  # fmt: skip
def test_another_place_time_or_number_is_the_same_error(one, other):
    assert error_fingerprint(one) == error_fingerprint(other)


def test_another_name_is_another_error():
    assert error_fingerprint("undefined: total") != error_fingerprint("undefined: sum")


def test_the_most_telling_line_comes_first_and_each_once():
    output = "\n".join(
        (
            "error: script \"test\" exited with code 1",
            "(fail) cart > adds up [1.20ms]",
            "(fail) cart > adds up [9.90ms]",
            "E       AssertionError: assert 3 == 4",
        )
    )  # fmt: skip
    assert [error.text for error in find_errors(output)] == [
        "AssertionError: assert 3 == 4", "cart > adds up [1.20ms]",
    ]  # fmt: skip


def test_colours_and_overwritten_lines_are_no_part_of_an_error():
    assert find_errors("10%\r20%\r\x1b[31mfatal: not a repository\x1b[0m")[0].text == (
        "fatal: not a repository"
    )


def test_an_output_that_only_says_it_failed_tells_no_error():
    assert (
        find_errors('[lint] ERROR task failed\nerror: script "lint" exited with code 1\nok') == []
    )


@given(st.text(max_size=200))
def test_any_output_can_be_looked_at(text):
    for error in find_errors(text):
        assert len(error.text) <= 300
        assert error.fingerprint == error_fingerprint(error.text)


@given(
    st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["at {}", "{} of 7", "x {}ms"])
)
def test_a_number_never_makes_a_difference(one, other, text):
    assert error_fingerprint(text.format(one)) == error_fingerprint(text.format(other))
