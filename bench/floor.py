"""The floor measured: what passes that should, and what passes that should not.

    python bench/floor.py [FOLDER] [--set locomo] [--limit N]

For sets of several separate conversations (locomo, beam). Of the first five hits of a question:
kept      right ones that pass, of all right ones among them
foreign   questions asked of another conversation's store of which anything passes
no answer questions asked of their own store, the right ones taken out, of which anything passes
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

import yester
from yester.deliver.library import Memory
from yester.model import Hit
from yester.recall.floor import worth_showing
from yester.text.terms import query_terms

sys.path.insert(0, str(Path(__file__).parent))
from quality import Group, Question, loaded

TOP = 5


def passing(memory: Memory, hits: list[Hit], question: Question) -> list[Hit]:
    items = sum(memory.store.counts().items.values())
    terms = len(query_terms(question.text))
    return [hit for hit in hits if worth_showing(hit.factors, terms, items, own=True)]


def asked(memory: Memory, question: Question) -> list[Hit]:
    return memory.recall(question.text, k=TOP + len(question.relevant), explain=True)


def measured(groups: list[Group], limit: int) -> dict[str, float]:
    chance = random.Random(7)
    right = kept = foreign = foreign_asked = unanswered = own_asked = 0
    for number, group in enumerate(groups):
        others = [q for other in groups[:number] + groups[number + 1 :] for q in other.questions]
        strange = chance.sample(others, min(limit, len(others)))
        own = chance.sample(list(group.questions), min(limit, len(group.questions)))
        with tempfile.TemporaryDirectory() as home, yester.open(home) as memory:
            memory.add(group.items())
            for question in own:
                hits = asked(memory, question)
                good = [hit for hit in hits[:TOP] if hit.ref in question.relevant]
                right += len(good)
                kept += len(passing(memory, good, question))
                rest = [hit for hit in hits if hit.ref not in question.relevant][:TOP]
                unanswered += bool(passing(memory, rest, question))
                own_asked += 1
            for question in strange:
                foreign += bool(passing(memory, asked(memory, question)[:TOP], question))
                foreign_asked += 1
    return {
        "kept": kept / max(right, 1),
        "foreign": foreign / max(foreign_asked, 1),
        "no answer": unanswered / max(own_asked, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=os.environ.get("MEMDATA", "."), type=Path)
    parser.add_argument("--set", dest="name", default="locomo")
    parser.add_argument("--limit", type=int, default=100, help="questions per conversation")
    given = parser.parse_args()
    found = measured(loaded(given.folder, given.name), given.limit)
    print(given.name, ", ".join(f"{name} {value:.3f}" for name, value in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
