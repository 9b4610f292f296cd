"""kill -9 while machines are brought into step: asked again, all is there, and nothing twice."""

from __future__ import annotations

import random

import pytest

from tests.crash.killing import kills
from tests.foreign import MS, build_database, claude_mem_rows, claude_mem_schema
from tests.roaming import Box
from yester.store import open_store, walk_items

pytestmark = [pytest.mark.crash, pytest.mark.requirement("TEAM-05")]


def test_a_run_that_was_killed_is_finished_by_the_next_one_on_either_side(
    memory_folder, tmp_path, zygote
):
    rows = claude_mem_rows(600)
    path = build_database(tmp_path / "claude-mem.db", claude_mem_schema(49), rows)
    log = memory_folder / "log"
    one, other = (Box(memory_folder / name, log) for name in ("one", "other"))
    zygote.run(one.home, "import", "claude-mem", str(path), "--json")
    one.begin()
    other.join(one)
    one.close()
    other.close()
    expected = refs(one.home)
    rng, killed = random.Random(24), 0
    for home in (one.home, other.home):
        for number in range(kills(8)):  # later and later; on a quick machine it is soon at the end
            zygote.start(home, "roam")
            zygote.wait(rng.uniform(0, 0.02 * (number + 1)))
            if not zygote.kill():
                break  # there is nothing left to interrupt
            killed += 1
        zygote.start(home, "roam")
        assert zygote.finish() == 0
    assert killed
    assert refs(other.home) == expected
    zygote.start(one.home, "roam")
    assert zygote.finish() == 0
    assert refs(one.home) == expected
    assert not list(one.home.glob("run/outbox/*"))


def refs(home) -> list[tuple[str, str, str]]:
    store = open_store(home, now=MS)
    found = sorted((item.source, item.ref, item.body) for item in walk_items(store))
    store.close()
    assert len({row[:2] for row in found}) == len(found)
    return found
