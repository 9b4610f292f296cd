"""Eight processes write one memory at the same time: nothing is lost, and the history is whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from yester.memories.memory import Author
from yester.memories.remember import Draft, remember
from yester.model import Change, Filters, Project
from yester.store import maintenance_of, open_store

WRITERS, ROUNDS = 8, 3
SHOP = Project("name:shop", "shop")

# Forked by one process of its own, which has no threads.
CHILDREN = """
import os, sys
from pathlib import Path
from yester.memories import lifecycle
from yester.memories.memory import Author, plain_form
from yester.memories.remember import Draft, remember
from yester.model import Project
from yester.store import open_store

folder, id_, writers, rounds = Path(sys.argv[1]), *map(int, sys.argv[2:])
begin, go = os.pipe()

def writes(number):
    store = open_store(folder, now=1, patience=60)
    os.read(begin, 1)  # all at once
    for turn in range(rounds):
        by = Author(f"writer {number}", 10 + turn, why=f"round {turn}")
        name = f"w{number}-{turn}"
        if turn % 2:
            draft = Draft("Disk full", "runbook", content={"steps": [name]}, tags=[name])
            remember(store, draft, Project("name:shop", "shop"), by, update=id_)
        else:
            have = plain_form(lifecycle.get_memory(store, id_))
            content = {"steps": [*have["content"]["steps"], name]}
            changes = {"tags": [*have["tags"], name], "content": content}
            lifecycle.edit_memory(store, id_, changes, by, base=have)
    store.close()

children = []
for number in range(writers):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            writes(number)
            code = 0
        finally:
            os._exit(code)
    children.append(child)
os.write(go, b"x" * writers)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


@pytest.mark.requirement("MEM-01", "MEM-02")
def test_eight_writers_of_one_memory_lose_nothing_and_the_history_is_complete(tmp_path):
    store = open_store(tmp_path, now=1)
    draft = Draft("Disk full\n- look at logs", "runbook", tags=["disk"])
    memo = remember(store, draft, SHOP, Author("sam", 5)).memo
    done = subprocess.run(
        [sys.executable, "-c", CHILDREN, str(tmp_path), str(memo.item.id), str(WRITERS),
         str(ROUNDS)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = {f"w{number}-{turn}" for number in range(WRITERS) for turn in range(ROUNDS)}
    (after,) = store.memos(Filters())
    assert set(after.item.tags) == {"disk", *names}
    assert set(after.content["steps"]) == {"look at logs", *names}
    assert after.version == 1 + WRITERS * ROUNDS
    changes = store.entries(Change, {"item": memo.item.id})[::-1]
    assert len(changes) == after.version
    tags: list[str] = []
    for change in changes:  # each begins where the one before it ended
        assert (change.before or {"tags": []})["tags"] == tags
        tags = change.after["tags"]
    assert tags == list(after.item.tags)
    told = {(change.who, change.why) for change in changes[1:]}
    assert told == {(f"writer {n}", f"round {t}") for n in range(WRITERS) for t in range(ROUNDS)}
    assert maintenance_of(store).check() == []
    store.close()
