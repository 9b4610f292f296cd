"""How often a question asks the store: on a server each time is a trip over the network."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

import yester
from tests.distilling import Story, distilled
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.project import named_project
from yester.recall.conversation import read_conversation
from yester.recall.recall import Asked, answer_question

NOW = 1_700_000_000_000
SHOP = named_project("shop")


class Counting:
    """A store that counts what is asked of it."""

    def __init__(self, store):
        self.store, self.calls = store, Counter()

    def __getattr__(self, name):
        found = getattr(self.store, name)
        if not callable(found):
            return found

        def called(*args, **more):
            self.calls[name] += 1
            return found(*args, **more)

        return called


@pytest.mark.requirement("REC-01")
@pytest.mark.parametrize(
    "asked",
    [
        {"query": "why does the tax rounding fail"},
        {"query": "roundng"},  # nobody has it: terms that begin alike
        {"query": "tax", "k": 1, "offset": 2},
        {"query": '"tax rounding" -refund', "window": 1_000},
        {"query": "src/tax.py", "files": ("src/tax.py",), "project": "name:shop"},
        {"query": "\n".join(f"tax word{n} rounding" for n in range(90)), "project": "name:shop"},
    ],
)
def test_one_recall_asks_the_store_at_most_four_times(tmp_path, asked):
    with yester.open(tmp_path / "memory") as memory:
        memory.add(
            [
                {
                    "ref": str(n), "text": f"The tax rounding of order {n} fails in step {n % 7}",
                    "project": "shop", "session": f"s{n % 3}", "files": ["src/tax.py"],
                    "epoch": NOW / 1000 - n,
                }
                for n in range(60)
            ]
        )  # fmt: skip
        store = Counting(memory.store)
        found = answer_question(store, Asked(now=NOW, **asked), fates=lambda _: {})
        assert found.hits
        assert sum(store.calls.values()) <= 4, store.calls


def count_redactions(run):
    """What is returned, and how often a text was looked through for secrets meanwhile."""
    number = 0

    def note_call(frame, event, _):
        nonlocal number
        own = frame.f_code.co_filename.endswith("yester/redact.py")
        number += event == "call" and own and frame.f_code.co_name == "redact"

    sys.setprofile(note_call)
    try:
        return run(), number
    finally:
        sys.setprofile(None)


@pytest.mark.requirement("DEL-02", "REC-08")
@pytest.mark.parametrize("carded", [True, False])
def test_a_prompt_asks_the_store_at_most_eight_times_and_redacts_what_it_tells(memory, carded):
    for number in range(14):
        story = Story(f"s{number}", SHOP.key, clock=NOW - number * 3_600_000)
        story.prompt(f"Round the tax in billing/step_{number}.py to whole cents")
        story.edits(f"billing/step_{number}.py")
        story.says(f"The step of billing/step_{number}.py rounds the tax half up now.")
        story.commits(f"Round the tax of step {number} half up", hash_=f"abc{number:04}")
        story.store(memory.store)
        if carded:
            distilled(memory.store)
    store = Counting(memory.store)
    prompt = "why do billing/step_3.py and billing/step_7.py round half up?"

    def ask():
        said, files = read_conversation(store, "now")
        here = Here(SHOP, "now", NOW + 3_600_000, before=said, worked=files)
        return at_prompt(store, prompt, here)

    given, redacted = count_redactions(ask)
    assert len(given.shown) == 2
    assert sum(store.calls.values()) <= 8, store.calls
    assert redacted <= 10
