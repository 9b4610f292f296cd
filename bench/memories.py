"""What a write of a memory costs among many: looking for what is alike, and the whole of it.

    python bench/memories.py [--memories 10000] [--questions 100]

A store of its own is filled with made-up decisions of one project, whose words are as frequent as
in real texts (the n-th one n times rarer). Printed are CPU and wall milliseconds, median and 95th
percentile.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from yester.memories.categories import CATEGORIES
from yester.memories.lifecycle import write_memory
from yester.memories.memory import Author, normalise_form
from yester.memories.remember import Draft, find_candidate, remember
from yester.memories.rules import applicable_rules
from yester.model import Item, Memo, Project
from yester.store import open_store
from yester.store.contract import Store

SHOP = Project("name:shop", "shop")
SAM = Author("sam", 1_770_000_000_000)
SYLLABLES = ("ba", "de", "fi", "go", "lu", "mar", "nel", "pos", "qui", "rov", "san", "ter", "val")
BATCH = 500


def words(number: int, chance: random.Random) -> Callable[[int], str]:
    """A speaker of a made-up language."""
    made: dict[str, None] = {}
    while len(made) < number:
        made["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))] = None
    known, weights = list(made), [1 / rank for rank in range(1, number + 1)]
    return lambda length: " ".join(chance.choices(known, weights, k=length))


def fill(store: Store, number: int, say: Callable[[int], str]) -> None:
    row = CATEGORIES["decision"]
    for start in range(0, number, BATCH):
        with store.transaction("memories"):
            store.put_project(SHOP)
            for place in range(start, min(start + BATCH, number)):
                given = {"context": say(25), "rationale": [say(12), say(8)]}
                values = normalise_form({
                    "project": SHOP.key, "type": row.name, "title": say(7),
                    "tags": say(4).split(), "content": row.draft_content(say(14), given),
                    "status": "active", "reason": "", "supersedes": 0, "origin": "user",
                })  # fmt: skip
                slug = f"memory-{place}"
                begun = Memo(Item(f"memo:{SHOP.key}#{slug}", "memory", epoch=SAM.now), slug)
                write_memory(store, begun, values, SAM, "create")


def timed(name: str, number: int, call: Callable[[], object]) -> None:
    cpu, wall = [], []
    for _ in range(number):
        began, spent = time.perf_counter(), time.process_time()
        call()
        cpu.append(1000 * (time.process_time() - spent))
        wall.append(1000 * (time.perf_counter() - began))
    for times in (cpu, wall):
        times.sort()
    half, most = number // 2, int(number * 0.95)
    told = f"CPU {cpu[half]:6.1f} {cpu[most]:6.1f}   wall {wall[half]:6.1f} {wall[most]:6.1f}"
    print(f"{name:32} {told}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--memories", type=int, default=10_000)
    arguments.add_argument("--questions", type=int, default=100)
    asked = arguments.parse_args()
    say = words(6_000, random.Random(7))
    decision = CATEGORIES["decision"]
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder), now=1)
        fill(store, asked.memories, say)
        print(f"{asked.memories:,} memories of one category; milliseconds, median and 95 %")
        for length in (5, 12, 40):
            timed(
                f"candidate, a text of {length} words",
                asked.questions,
                lambda length=length: find_candidate(store, decision, say(length), SHOP.key),
            )
        timed("remember", asked.questions, lambda: remember(store, Draft(say(12)), SHOP, SAM))
        timed("standing rules", asked.questions, lambda: applicable_rules(store, SHOP))
        store.close()


if __name__ == "__main__":
    main()
