"""Prompts that name nothing are not searched for; every other one is."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.context.talk import SHORTEST, load_meanings, trivial

pytestmark = pytest.mark.requirement("DEL-02")

REASONS = {"", "short", "acknowledgement", "slash command", "directive"}


def phrases(meaning):
    return [phrase for phrase, told in load_meanings().items() if told == meaning]


def test_every_way_to_say_yes_is_left_out():
    for phrase in phrases("acknowledgement"):
        for form in (phrase, phrase.capitalize(), f"  {phrase}!!! ", f"{phrase}, {phrase}. 👍"):
            assert trivial(form) in ("acknowledgement", "directive"), form


def test_every_directive_is_left_out_alone_and_with_an_object():
    for phrase in phrases("directive"):
        assert trivial(phrase) == "directive", phrase
        assert trivial(f"{phrase.title()}.") == "directive", phrase
        for thing in phrases(""):
            said = f"Ok, please {phrase} {thing} now and {phrase} again"
            assert trivial(said) == "directive", said


@each(
    ("prompt", "reason"),
    [
        ("", "short"),
        ("   \n ", "short"),
        ("why?", "short"),
        ("fix login", "short"),
        ("a" * (SHORTEST - 1), "short"),
        ("ok", "acknowledgement"),
        ("Yes, that makes sense. Thank you very much!", "acknowledgement"),
        ("LGTM 🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀", "acknowledgement"),
        ("👍👍👍👍👍👍👍👍👍👍👍👍👍👍👍👍", "acknowledgement"),
        ("yes, option 2 please", "acknowledgement"),
        ("continue continue continue", "acknowledgement"),
        ("go on, that’s fine", "acknowledgement"),
        ("ja, mach weiter, vielen dank", "acknowledgement"),
        ("d’accord, merci beaucoup", "acknowledgement"),
        ("好的，没问题，请继续吧，谢谢你", "acknowledgement"),
        ("はい、よろしくお願いします。続けてください。", "acknowledgement"),
        ("commit and push", "directive"),
        ("Now commit and push everything, please.", "directive"),
        ("run the tests again", "directive"),
        ("please fix all the failing tests", "directive"),
        ("Great! Can you fix it and try again?", "directive"),
        ("okay, let's open a pull request", "directive"),
        ("提交代码，推送", "directive"),
        ("커밋하고 푸시해줘", "directive"),
        ("/compact", "slash command"),
        ("/plugin:skill with a long list of arguments and words", "slash command"),
        ("!git log --oneline | head", "slash command"),
        ("# always use tabs in this repository", "slash command"),
    ],
)
def test_what_is_left_out_and_why(prompt, reason):
    assert trivial(prompt) == reason


@each(
    "prompt",
    [
        "commit the migration of the billing tables",
        "push notifications are broken on android",
        "continue with the refactoring of the parser",
        "run the tests of the checkout module",
        "fix the redirect after login",
        "try again with postgres",
        "yes, but use redis instead",
        "ok so what did we decide about caching?",
        "thanks to the cache it is fast",
        "why did the tests fail",
        "no, the port is 5433",
        "go with sqlite for now",
        "test the parser please",
        "explain the retry policy",
        "show me the deploy steps for staging",
        "goroutine leak in the pool",
        "/etc/hosts has a wrong entry",
        "/home/sam/code/shop/db.py fails on import",
        "/api/orders returns 500 since yesterday",
        "#4312 fails after the upgrade",
        "# Task\n\nMove the orders table to UTC.",
        "支付接口为什么总是超时",
        "なぜキャッシュを捨てたのですか",
        "결제 테이블을 왜 나눴지?",
        "wie war das mit der Rechnung",
    ],
)
def test_near_misses_are_searched_for(prompt):
    assert trivial(prompt) == ""


@given(st.text(max_size=300))
def test_any_prompt_has_an_answer(prompt):
    assert trivial(prompt) in REASONS
    assert trivial(prompt) == trivial(f"\n {prompt}\t ")


@given(st.text(alphabet="bcdfghjklmnpqrstvwxz ", min_size=SHORTEST).map(str.strip))
def test_words_nobody_put_into_a_table_are_searched_for(prompt):
    unknown = f"{prompt} zxqv"
    assert trivial(unknown) in ("", "short")


def test_a_long_prompt_costs_nothing():
    begun = time.process_time()
    for prompt in ("go on " * 100_000, "a " * 33 + "x", "/" * 100_000, "#" * 100_000 + "\n#"):
        trivial(prompt)
    assert time.process_time() - begun < 2
