"""How often a question asks the store: on a server each time is a trip over the network."""

from __future__ import annotations

from collections import Counter

import pytest

import yester
from yester.recall.recall import Asked, answer_question

NOW = 1_700_000_000_000


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
