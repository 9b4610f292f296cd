"""kill -9 at random points: nothing committed is lost, nothing is stored twice, no lock stays."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from itertools import count

import apsw
import pytest

import yester
from tests.crash.killing import kills
from tests.readings import every_item
from yester.store import maintenance_of

pytestmark = [pytest.mark.crash, pytest.mark.requirement("STO-05", "STO-01")]


def index(home, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "yester", "--home", str(home), "index", str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finished(process):
    _, err = process.communicate()
    assert process.returncode == 0, err


def contents(home):
    with yester.open(home) as memory:
        assert maintenance_of(memory.store).check() == []
        return {(i.source, i.kind, i.ref): i.body for i in every_item(memory.store)}


def stored(home):
    """Has a batch been committed? Asked of the file, not of the process."""
    try:
        db = apsw.Connection(str(home / "yester.db"), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return False
    try:
        return bool(db.execute("SELECT count(*) FROM item").fetchone()[0])
    except apsw.Error:
        return False
    finally:
        db.close()


def test_killed_again_and_again_it_ends_with_exactly_what_one_run_gives(
    transcript, memory_folder, zygote
):
    rng = random.Random(7)
    transcripts = [transcript(f"{n:08d}-0000-4000-8000-000000000000") for n in range(6)]
    for t in transcripts:
        t.talk(200)
    folder = str(transcripts[0].path.parent)
    began = time.monotonic()
    zygote.run(memory_folder / "whole", "index", "--json", folder)
    longest = (time.monotonic() - began) / 2
    expected = contents(memory_folder / "whole")

    homes = (memory_folder / f"killed{number}" for number in count())
    home = next(homes)
    while zygote.killed < kills(20):
        zygote.start(home, "index", folder)
        zygote.wait(rng.uniform(0, longest))
        if not zygote.kill():  # it has got to the end: begin again, and die earlier
            assert contents(home) == expected
            longest *= 0.7
            home = next(homes)
        elif zygote.killed % 4 == 0:
            assert contents(home).items() <= expected.items()
    zygote.run(home, "index", "--json", folder)
    assert contents(home) == expected


def test_stopped_by_hand_it_writes_the_batch_at_hand_and_goes_on_later(transcript, tmp_path):
    import signal

    t = transcript()
    t.talk(1500)
    home = tmp_path / "stopped"
    process = index(home, t.path)
    while process.poll() is None and not stored(home):
        os.sched_yield()  # wait for the first batch, whenever it comes
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    if process.returncode != 0:
        assert process.returncode == 130
        assert err.startswith(b"yester: stopped; what was read is kept")
    before = len(contents(home))
    assert before > 0
    done = subprocess.run(
        [sys.executable, "-m", "yester", "--home", str(home), "index", "--json", str(t.path)],
        capture_output=True, check=True,
    )  # fmt: skip
    assert before + json.loads(done.stdout)["added"] == 4500


def test_eight_processes_at_once_store_everything_once(transcript, tmp_path):
    transcripts = [transcript(f"{n:08d}-0000-4000-8000-000000000000") for n in range(4)]
    for t in transcripts:
        t.talk(60)
    home = tmp_path / "shared"
    processes = [index(home, transcripts[0].path.parent) for _ in range(8)]
    for process in processes:
        finished(process)
    assert len(contents(home)) == 4 * 60 * 3
