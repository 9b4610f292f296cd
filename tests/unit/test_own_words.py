"""What in a prompt the user wrote: sentences with their place, and nothing of anybody else's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.memories.utterances import MASK, own_sentences

pytestmark = pytest.mark.requirement("DIS-07")


def told(prompt: str) -> list[str]:
    return [prompt[s.start : s.end] for s in own_sentences(prompt)]


@each(
    ("prompt", "own"),
    [
        ("Fix it. Then push!", ["Fix it.", "Then push!"]),
        ("use v1.2.3 of a.py e.g. here", ["use v1.2.3 of a.py e.g. here"]),
        ("one line\nanother line", ["one line\nanother line"]),
        ("One line\nAnother line", ["One line", "Another line"]),
        ("one line.\nanother line", ["one line.", "another line"]),
        ("- first\n* second\n1. third\n[ ] fourth", ["first", "second", "third"]),
        ("I like tabs, can you change it?", ["I like tabs", "can you change it?"]),
        ("it is slow, and I prefer speed", ["it is slow", "and I prefer speed"]),
        ("we rename it - please keep the old one", ["we rename it", "please keep the old one"]),
        ("", []),
        (" \n\t\n", []),
    ],
)
def test_a_prompt_falls_into_sentences_and_clauses(prompt, own):
    assert told(prompt) == own


@each(
    ("prompt", "own"),
    [
        ("look:\n```\nnever push\n```\ndone", ["look:", "done"]),
        ("look\n~~~\nnever push", ["look"]),
        ('look\n"""\nnever push\n"""\n', ["look"]),
        ("> never push\nnot mine", ["not mine"]),
        ("<doc a='b'>never push</doc>\nthanks", []),  # begins as a program's text does
        ("see <doc>never\n<b>push</b></doc>\nmine", ["see <doc>never", "mine"]),
        ("here is the feedback:\n\nnever push", ["here is the feedback:"]),
        ("rules for comments:\n- keep them short", ["rules for comments:", "keep them short"]),
        ("mine\n## Notes\nnever push", ["mine"]),
        ("    never push\nmine", ["mine"]),
        ("2026-01-02 10:11:12 never push\nmine", ["mine"]),
        ('{"text": "never push"}\nmine', ["mine"]),
        ("TypeError: never push\nmine", ["mine"]),
        ("a[0]={1:2};b(3)*4+5==6\nmine", ["mine"]),
    ],
)  # fmt: skip
def test_what_is_pasted_is_not_the_users_own(prompt, own):
    found = [prompt[s.start : s.end] for s in own_sentences(prompt) if s.text.strip(MASK)]
    assert "".join(found).count("never push") == 0
    assert found == own


@each(
    "beginning",
    [
        "<system-reminder>", "[Request interrupted by user]", "This session is being continued",
        "Implement the following plan:", "Base directory for this skill: /x", "Caveat: the below",
        "# Plan", "You are a careful reviewer.", "Stop hook feedback:", "\n  <task-notification>",
    ],
)  # fmt: skip
def test_a_text_written_by_a_program_has_no_sentences_of_the_users(beginning):
    assert told(f"{beginning}\nalways run the tests") == []


@each(
    "quoted",
    [
        '"never push"',
        "“never push”",
        "«never push»",
        "„never push“",
        "'never push'",
        "`never push`",
    ],
)
def test_quoted_words_are_masked_within_a_sentence(quoted):
    (sentence,) = own_sentences(f"he wrote {quoted} there")
    assert sentence.text == f"he wrote {MASK * len(quoted)} there"


def test_a_name_in_backticks_and_an_apostrophe_are_the_users_own():
    (sentence,) = own_sentences("use `pnpm`, it's what the users' machines don't have")
    assert MASK not in sentence.text


def test_of_a_long_prompt_the_beginning_and_the_end_are_read():
    middle = "\n".join(f"Line {n} of many." for n in range(2_000))
    found = told(f"At the top.\n{middle}\nAt the bottom.")
    assert found[0] == "At the top."
    assert found[-1] == "At the bottom."
    assert len(found) < 600


@given(st.text(st.sampled_from("ab .,!?\n\t\"'`<>/-#:;“”é1\x1a"), max_size=200))
def test_sentences_stand_in_order_within_the_prompt(prompt):
    at = 0
    for sentence in own_sentences(prompt):
        assert at <= sentence.start < sentence.end <= len(prompt)
        assert len(sentence.text) == sentence.end - sentence.start
        for own, shown in zip(prompt[sentence.start : sentence.end], sentence.text, strict=True):
            assert shown in (own, MASK)
        at = sentence.end
