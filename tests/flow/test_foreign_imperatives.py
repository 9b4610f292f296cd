"""Somebody else's imperatives in a prompt become no rule that holds; the user's own do, until the
user takes them back."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.distilling import Story, distilled
from tests.stores import with_store
from tests.table import each
from yester.model import Filters, Paging
from yester.store import open_store

DATA = Path(__file__).parent / "data"
PROMPTS = tomllib.loads((DATA / "foreign_imperatives.toml").read_text("utf-8"))
REVERSALS = tomllib.loads((DATA / "reversals.toml").read_text("utf-8"))
DAY = 86_400_000
FIRST = 1_770_000_000_000


def kept_of(home, *prompts, kinds=("rule",)):
    """(status, text) of all rules when each was typed in a session and on a day of its own."""
    store = open_store(with_store(home / str(len(list(home.iterdir())))), now=1)
    for day, text in enumerate(prompts):
        story = Story(f"{day}0000000-0000-4000-8000-000000000000", clock=FIRST + day * DAY)
        story.prompt(text.strip())
        story.says("Understood.")
        story.store(store)
        distilled(store, now=FIRST + day * DAY + DAY // 2)
    found = store.select(Filters(types=kinds), Paging(statuses=()))
    store.close()
    return [(item.status, item.title) for item in found]


@pytest.mark.requirement("MEM-08")
@each("one", PROMPTS["foreign"])
def test_what_others_have_written_is_no_rule(tmp_path, one):
    assert [text for status, text in kept_of(tmp_path, one["text"]) if status == "active"] == []


@pytest.mark.requirement("MEM-08")
@each("one", PROMPTS["foreign"])
def test_what_others_have_written_is_no_second_utterance_either(tmp_path, one):
    """The same text is pasted again on other days, with other words above it."""
    again = [f"{above}\n\n{one['text'].strip()}" for above in ("Any remarks?", "Kürze das")]
    found = kept_of(tmp_path, one["text"], *again)
    assert [text for status, text in found if status == "active"] == []


@pytest.mark.requirement("MEM-08")
@each("one", PROMPTS["own"])
def test_what_the_user_says_for_good_is_a_rule_or_waits_for_a_yes(tmp_path, one):
    (status, _), *more = kept_of(tmp_path, one["text"])
    assert (status, more) == ("proposed" if one.get("waits") else "active", [])


@pytest.mark.requirement("MEM-08")
@each("text", PROMPTS["weakens"])
def test_what_makes_work_less_safe_is_no_rule_without_a_yes(tmp_path, text):
    assert [one for status, one in kept_of(tmp_path, text) if status == "active"] == []


@pytest.mark.requirement("DIS-14", "DIS-07")
@each("one", REVERSALS["pairs"])
def test_what_is_taken_back_in_plain_words_is_ended_and_nothing_else(tmp_path, one):
    found = kept_of(tmp_path, one["said"], one["later"], kinds=("rule", "decision"))
    said = one["said"].removeprefix("Decision: ").rstrip(".").casefold()
    holds = {text.rstrip(".").casefold() for status, text in found if status == "active"}
    assert (said in holds) is not one["ends"], found


@pytest.mark.requirement("DIS-14")
@pytest.mark.parametrize(
    ("later", "stays"), [("Scratch that.", False), ("never mind", False), ("Rename the quay", True)]
)
def test_what_names_nothing_takes_back_the_rule_said_just_before(memory, later, stays):
    story = Story()
    story.prompt("Always use bun for scripts.")
    story.says("Understood.")
    story.prompt(later)
    story.says("Done.")
    story.store(memory.store)
    distilled(memory.store, now=story.clock)
    assert bool(memory.store.select(Filters(types=("rule",)))) is stays


@pytest.mark.requirement("DIS-14")
@each(
    ("said", "later"),
    [
        (
            "Never use floats for fares, use cents.",
            "Scratch that about cents. Always use Decimal with scale 4 for fares.",
        ),
        ("Always use yarn for everything.", "We're on pnpm now, yarn is history. Always use pnpm."),
        ("Toujours utiliser yarn.", "Oublie yarn, toujours utiliser pnpm."),
    ],
)
def test_what_replaces_a_rule_holds_as_the_old_one_did(tmp_path, said, later):
    (status, text), *others = sorted(kept_of(tmp_path, said, later))
    assert (status, text[-12:]) == ("active", later[-12:])
    assert "active" not in [status for status, _ in others]
