"""kill -9 while an old database is brought up to date: it is the old one, or the new one."""

from __future__ import annotations

import os
import random
import shutil
import time
from functools import partial
from pathlib import Path

import apsw
import pytest

import yester
from tests.crash.killing import Zygote, kills, read_only
from yester.files import open_unpacked
from yester.operate.backups import (
    checked_copy,
    list_backups,
    make_backup,
    put_in_place,
)
from yester.store import maintenance_of, open_store
from yester.store.migrate import Migration, load_migrations

pytestmark = [pytest.mark.crash, pytest.mark.requirement("STO-01", "STO-06")]

OLD = Path(__file__).parent.parent / "migrate" / "databases" / "yester-001.db"
STEPS = load_migrations("sqlite")
# A step with more to do than ours have had so far.
LONG = Migration(
    STEPS[-1].version + 1,
    "long",
    """CREATE TABLE copy AS SELECT * FROM item;
    UPDATE item SET title = title || ' seen';
    CREATE INDEX copy_title ON copy(title, body);
    DROP TABLE copy; CREATE TABLE copied (item INTEGER PRIMARY KEY, title TEXT NOT NULL);
    INSERT INTO copied SELECT id, title FROM item;""",
)
ROWS = 2_500


@pytest.fixture
def old(memory_folder: Path) -> Path:
    """A database of the first version with some thousand items; retired ones need no index."""
    path = memory_folder / "old.db"
    shutil.copy(OLD, path)
    db = apsw.Connection(str(path))
    with db:
        db.executemany(
            "INSERT INTO item(ref, kind, hash, project, epoch, updated, status, body)"
            " VALUES (?, 'observation', x'00', 1, ?, 0, 'retired', ?)",
            [(f"old{n}", n, f"A long note about the basket, number {n}. " * 8)
             for n in range(ROWS)],
        )  # fmt: skip
    db.close()
    return path


def schema(db: apsw.Connection) -> set[str]:
    rows = db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {" ".join(row[0].split()) for row in rows}


def told(path: Path) -> tuple[int, str, list[tuple[str, str]], set[str]]:
    """version, health, items and schema of a database"""
    if path.suffix == ".gz":
        with open_unpacked(path) as file:
            path = path.with_name("unpacked")
            path.write_bytes(file.read())
    db = read_only(path)
    try:
        return (
            db.execute("PRAGMA user_version").fetchone()[0],
            db.execute("PRAGMA integrity_check").fetchone()[0],
            list(db.execute("SELECT ref, body FROM item ORDER BY id")),
            schema(db),
        )
    finally:
        db.close()


def opened(home: Path, steps: tuple[Migration, ...]) -> None:
    """Bring it up to date, as the next command does, and let it look at itself."""
    now = int(time.time() * 1000)
    copy = partial(make_backup, home=home, kept=99, now=now)
    store = open_store(home, now=now, steps=steps, before_migration=copy)
    try:
        assert maintenance_of(store).check() == []
    finally:
        store.close()


def a_home(folder: Path, old: Path) -> Path:
    folder.mkdir(mode=0o700)
    shutil.copy(old, folder / "yester.db")
    return folder


@pytest.mark.parametrize("steps", [STEPS, (*STEPS, LONG)], ids=["ours", "a long one"])
def test_a_database_killed_on_its_way_to_a_new_version_arrives_there(
    old, memory_folder, tmp_path, own_home, steps
):
    rng = random.Random(29)
    _, _, rows, before = told(old)
    open_store(memory_folder / "fresh", now=1, steps=steps).close()
    newest, _, _, after = told(memory_folder / "fresh" / "yester.db")
    assert newest == steps[-1].version

    plain = [(step.version, step.name, step.sql) for step in steps]
    with Zygote(tmp_path) as zygote:
        began = time.monotonic()
        zygote.open(a_home(memory_folder / "whole", old), plain)
        assert zygote.finish() == 0
        longest = time.monotonic() - began
        rounds = 0
        while zygote.killed < kills(12):
            home = a_home(memory_folder / f"killed{rounds}", old)
            rounds += 1
            zygote.open(home, plain)
            zygote.wait(rng.uniform(0, longest))
            if not zygote.kill():
                longest *= 0.8  # it was quicker than the first

            # SQLite puts a half written page right when it is opened, which reading alone is.
            version, health, found, looks = told(home / "yester.db")
            assert health == "ok"
            assert found == rows
            assert version in [1, *(step.version for step in steps)]
            assert (looks == before, looks == after) == (version == 1, version == newest)
            for path in list_backups(home):
                assert told(path) == (1, "ok", rows, before)
            assert list_backups(home) or version == 1
            opened(home, steps)
            assert told(home / "yester.db")[::2] == (newest, rows)
            assert told(home / "yester.db")[3] == after
            shutil.rmtree(home)


def test_the_command_too_can_be_killed_and_its_backup_be_put_back(
    old, memory_folder, tmp_path, own_home
):
    rng = random.Random(31)
    rows = told(old)[2]
    home = a_home(memory_folder / "home", old)
    with Zygote(tmp_path) as zygote:
        for _ in range(kills(10)):
            zygote.start(home, "status")
            zygote.wait(rng.uniform(0, 0.06))
            zygote.kill()
            assert told(home / "yester.db")[1:3] == ("ok", rows)
        zygote.start(home, "status")
        assert zygote.finish() == 0
    assert told(home / "yester.db")[0] == STEPS[-1].version
    assert list_backups(home)
    torn = home / "backups" / "yester-20260202T024000.part"
    torn.write_bytes(b"half a database, from the day before")
    os.utime(torn, (1_770_000_000, 1_770_000_000))
    with yester.open(home) as memory:
        make_backup(memory.store, home, 99, 1_770_000_000_000)
    assert not torn.exists()
    oldest = list_backups(home)[-1].name
    with checked_copy(home, oldest, 1_770_000_000_000) as (_, copy):
        put_in_place(home, copy, 1_770_000_000_000)
    assert told(home / "yester.db")[:3] == (STEPS[-1].version, "ok", rows)
