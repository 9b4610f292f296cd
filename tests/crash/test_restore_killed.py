"""kill -9 while a backup is put back: the store is the whole old one or the whole new one."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import apsw
import pytest

import yester
from tests.crash.killing import Zygote, kills

pytestmark = [pytest.mark.crash, pytest.mark.requirement("STO-06", "STO-09")]

FIRST = {"first"}
WRITTEN = {f"written-{number}" for number in range(5)}
READER = """
import apsw, sys
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN")
print(*db.execute("SELECT count(*) FROM item").fetchone(), flush=True)
sys.stdin.readline()
print(*db.execute("SELECT count(*) FROM item").fetchone(), flush=True)
"""
RESTORED = {f"restored-{number}" for number in range(300)}


def add(home: Path, refs: set[str]) -> None:
    with yester.open(home) as memory:
        memory.add([{"ref": ref, "text": f"About {ref}: a basket. " * 40} for ref in sorted(refs)])


def refs(path: Path) -> set[str]:
    db = apsw.Connection(str(path))
    try:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {row[0] for row in db.execute("SELECT ref FROM item")}
    finally:
        db.close()


@pytest.fixture
def bases(memory_folder: Path) -> tuple[Path, Path]:
    """A store with one memory, and one with many to be put in its place."""
    for name, held in (("present", FIRST), ("backup", RESTORED)):
        add(memory_folder / name, held)
    return memory_folder / "present" / "yester.db", memory_folder / "backup" / "yester.db"


@contextmanager
def read_by_another(home: Path, bases: tuple[Path, Path]) -> Iterator[set[str]]:
    """A home whose last memories are in the write-ahead log alone, since somebody reads what was
    there before them."""
    present, backup = bases
    (home / "backups").mkdir(mode=0o700, parents=True)
    shutil.copy(present, home / "yester.db")
    shutil.copy(backup, home / "backups" / "yester-20260202T024000.db")
    with subprocess.Popen(
        [sys.executable, "-c", READER, str(home / "yester.db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as reader:  # fmt: skip
        assert reader.stdout.readline() == "1\n"
        add(home, WRITTEN)
        assert (home / "yester.db-wal").stat().st_size > 0
        yield FIRST | WRITTEN
        assert reader.communicate("\n") == ("1\n", None)  # it has seen the same all the time


def whole(home: Path, old: set[str]) -> bool:
    """Is the restored store there? If not, the old one is, and nothing between the two."""
    found = refs(home / "yester.db")
    assert found in (old, RESTORED), f"{len(found)} of {len(old)} memories: {sorted(found)[:6]}"
    for aside in home.glob("yester-before-restore-*.db"):
        assert refs(aside) == old
    return found == RESTORED


def test_killed_before_anything_it_does_to_a_file_it_loses_nothing(
    bases, memory_folder, tmp_path, own_home
):
    restored = []
    with Zygote(tmp_path) as zygote:
        for number in count(1):
            home = memory_folder / f"home{number}"
            with read_by_another(home, bases) as old:
                zygote.start(home, "restore", "latest", kill_at=number)
                ended = zygote.finish()
                restored.append(whole(home, old))
            assert whole(home, old) == restored[-1]  # also when nobody reads any more
            if ended != -signal.SIGKILL:
                break
    assert ended == 0
    assert number > 12
    assert restored == sorted(restored)  # from some point on it is the new one
    assert restored[-1]
    assert not restored[0]


def test_killed_at_any_moment_it_loses_nothing(bases, memory_folder, tmp_path, own_home):
    rng = random.Random(37)
    with Zygote(tmp_path) as zygote:
        longest, rounds = 0.0, 0
        while zygote.killed < kills(20):
            home = memory_folder / f"home{rounds}"
            with read_by_another(home, bases) as old:
                began = time.monotonic()
                zygote.start(home, "restore", "latest")
                if longest:
                    zygote.wait(rng.uniform(0, longest))
                    zygote.kill()
                else:
                    assert zygote.finish() == 0
                    assert whole(home, old)
                longest = longest or time.monotonic() - began
                whole(home, old)
            whole(home, old)
            shutil.rmtree(home)
            rounds += 1
