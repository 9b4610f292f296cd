"""Somebody else's imperatives in a prompt become no rule that holds; the user's own do."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.distilling import Story, distilled
from tests.stores import with_store
from tests.table import each
from yester.model import Filters, Paging
from yester.store import open_store

PROMPTS = tomllib.loads((Path(__file__).parent / "data" / "foreign_imperatives.toml").read_text())
DAY = 86_400_000
FIRST = 1_770_000_000_000


def rules_of(home, *prompts):
    """(status, text) of all rules when each was typed in a session and on a day of its own."""
    store = open_store(with_store(home / str(len(list(home.iterdir())))), now=1)
    for day, text in enumerate(prompts):
        story = Story(f"{day:08}-0000-4000-8000-000000000000", clock=FIRST + day * DAY)
        story.prompt(text.strip())
        story.says("Understood.")
        story.store(store)
        distilled(store, now=FIRST + day * DAY + DAY // 2)
    found = store.memos(Filters(types=("rule",)), Paging(statuses=()))
    store.close()
    return [(memo.item.status, memo.item.body) for memo in found]


@pytest.mark.requirement("MEM-08")
@each("one", PROMPTS["foreign"])
def test_what_others_have_written_is_no_rule(tmp_path, one):
    assert [text for status, text in rules_of(tmp_path, one["text"]) if status == "active"] == []


@pytest.mark.requirement("MEM-08")
@each("one", PROMPTS["foreign"])
def test_what_others_have_written_is_no_second_utterance_either(tmp_path, one):
    """The same text is pasted again on other days, with other words above it."""
    again = [f"{above}\n\n{one['text'].strip()}" for above in ("Any remarks?", "Kürze das")]
    found = rules_of(tmp_path, one["text"], *again)
    assert [text for status, text in found if status == "active"] == []


@pytest.mark.requirement("MEM-08")
@each("one", PROMPTS["own"])
def test_what_the_user_says_for_good_is_a_rule_or_waits_for_a_yes(tmp_path, one):
    (status, _), *more = rules_of(tmp_path, one["text"])
    assert (status, more) == ("proposed" if one.get("waits") else "active", [])
