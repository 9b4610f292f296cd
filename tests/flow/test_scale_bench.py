"""`bench/scale.py` asks both engines the same of the same, and tells what each of them costs."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest

from bench.scale import ENGINES, ask, build, give_vectors, measure_questions, print_costs, target_of
from yester.store import open_store
from yester.store.figures import content_counts

pytestmark = pytest.mark.requirement("TEAM-04")

_MESSAGES = [
    {"text": f"Why does the {thing} of order {number} come too late?", "project": project,
     "session": f"s{number // 4}", "epoch": 1_700_000_000 + number, "role": role, "kind": "text"}
    for number in range(24)
    for thing, project, role in (("invoice", "shop", "user"), ("parcel", "depot", "assistant"))
]  # fmt: skip


def test_both_engines_hold_the_same_and_answer_it_the_same(tmp_path, capsys):
    with ExitStack() as opened:
        stores = {
            engine: opened.enter_context(
                closing(open_store(target_of(engine, tmp_path / engine), now=1))
            )
            for engine in ENGINES
        }
        build(stores, _MESSAGES, 120)  # more than there are: they are gone through again
        for store in stores.values():
            give_vectors(store, 30)
        counts = [content_counts(store) for store in stores.values()]
        assert [(sum(one.items.values()), one.vectors) for one in counts] == [(120, 30)] * 2
        answers = [ask(store, _MESSAGES[0]) for store in stores.values()]
        first, second = ([(hit.id, hit.score) for hit in answer.hits] for answer in answers)
        assert first == second
        assert len(first) == 10
        costs = measure_questions(stores, ask, _MESSAGES[:2])
        assert costs["SQLite"][0].server == 0 < costs["PostgreSQL"][0].server
        print_costs("words", costs)
    assert "ratio p95" in capsys.readouterr().out
