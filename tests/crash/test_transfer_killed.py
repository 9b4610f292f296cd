"""kill -9 while memories come in and go out: asked again, all is there, and nothing twice."""

from __future__ import annotations

import random
import time
from itertools import count

import pytest

from tests.crash.killing import kills
from tests.crash.test_index_killed import contents
from tests.flow.test_export import contents as everything
from tests.foreign import MS, build_database, claude_mem_rows, claude_mem_schema
from yester.store import open_store

pytestmark = [pytest.mark.crash, pytest.mark.requirement("IMP-01", "IMP-06")]


def kill_often(zygote, homes, compare, *words, least=6):
    """Start it again and again in one home, kill it at random; it gets to the end there."""
    rng, longest, killed, home = random.Random(22), 1.0, 0, next(homes)
    while killed < kills(least):
        began = time.monotonic()
        zygote.start(home, *words)
        zygote.wait(rng.uniform(0, longest))
        if zygote.kill():
            killed += 1
        else:  # it has got to the end: begin again, and die earlier
            longest = (time.monotonic() - began) * 0.7
            compare(home)
            home = next(homes)
    zygote.start(home, *words)
    assert zygote.finish() == 0
    compare(home)


def test_an_import_that_was_killed_is_finished_by_the_next_one(memory_folder, tmp_path, zygote):
    rows = claude_mem_rows(1500)
    path = build_database(tmp_path / "claude-mem.db", claude_mem_schema(49), rows)
    words = ("import", "claude-mem", str(path))
    zygote.run(memory_folder / "whole", *words, "--json")
    expected = contents(memory_folder / "whole")
    homes = (memory_folder / f"killed{number}" for number in count())

    def compare(home):
        assert contents(home) == expected

    kill_often(zygote, homes, compare, *words)


def test_an_export_that_was_killed_leaves_no_half_file_and_comes_back_whole(
    memory_folder, tmp_path, zygote
):
    source = build_database(
        tmp_path / "claude-mem.db", claude_mem_schema(49), claude_mem_rows(1500)
    )
    home, file = memory_folder / "whole", tmp_path / "all.jsonl"
    zygote.run(home, "import", "claude-mem", str(source), "--json")
    store = open_store(home, now=MS)
    expected = everything(store)
    store.close()

    def is_whole(_home):
        assert b'{"end":' in file.read_bytes()[-60:]
        file.unlink()

    def is_same(other):
        store = open_store(other, now=MS)
        assert everything(store) == expected
        store.close()

    kill_often(zygote, (home for _ in count()), is_whole, "export", "jsonl", str(file), least=3)
    zygote.run(home, "export", "jsonl", str(file), "--json")
    homes = (memory_folder / f"back{number}" for number in count())
    kill_often(zygote, homes, is_same, "import", "yester", "--mine", str(file))
