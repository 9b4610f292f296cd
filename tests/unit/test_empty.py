"""What says next to nothing is not given to an agent, and what says something is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.context.talk import says_little
from yester.model import Hit
from yester.tables import load_table

pytestmark = pytest.mark.requirement("DEL-02")

ROWS = load_table("talk")["empty"]


def hit(kind: str, role: str, text: str, title: str = "") -> Hit:
    return Hit(1, "r", kind, "", "shop", "s", title, text, 1.0, 0.5, role=role)


@each("row", ROWS)
def test_every_rule_takes_its_examples_and_leaves_the_others(row):
    for example in row["examples"]:
        assert says_little(hit(*example)) == row["name"], example
    for example in row["near_misses"]:
        assert says_little(hit(*example)) == "", example


def test_the_title_of_talk_is_but_its_beginning_and_that_of_other_things_tells():
    text = "Running it."
    assert says_little(hit("message", "assistant", text, title=text)) == "announces"
    assert says_little(hit("summary", "", "ok", title="Orders keep UTC")) == ""
    assert says_little(hit("summary", "", "", title="ok")) == "acknowledges"
    assert says_little(hit("message", "tool", "ls " + "calc.py " * 500)) == ""


@given(st.sampled_from(["message", "prompt", "summary"]), st.text(max_size=200))
def test_any_text_is_judged_and_a_memory_is_never_empty(kind, text):
    for role in ("user", "assistant", "tool", ""):
        assert says_little(hit(kind, role, text)) in {"", *(row["name"] for row in ROWS)}
    assert says_little(hit("memory", "", text)) == ""
