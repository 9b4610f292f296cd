"""A store that the disk has damaged: what doctor says, what it gets back, what backups are for."""

from __future__ import annotations

import gzip
import random
import shutil
import time
from contextlib import closing
from pathlib import Path

import apsw
import pytest

import yester
from tests.capturing import until
from yester.config import load_config
from yester.errors import StoreDamaged
from yester.operate.backups import list_backups, make_backup, make_daily_backup
from yester.store import open_store
from yester.worker.jobs import Background, Work
from yester.worker.process import Log

ITEMS = 400
DAY = 86_400_000
PAGE = 4096


@pytest.fixture
def filled(home):
    """A home whose store has leaves and branches enough to be damaged."""
    with yester.open(home) as memory:
        memory.add(
            [
                {"ref": str(n), "text": f"lantern {n} " + f"word{n} " * (100 + n % 7 * 200)}
                for n in range(ITEMS)
            ]
        )
    with apsw.Connection(str(home / "yester.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return home


def pages_of(home: Path, table: str, kind: str) -> list[int]:
    with apsw.Connection(str(home / "yester.db")) as db:
        found = db.execute(
            "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ?", (table, kind)
        )
        return [number for (number,) in found]


def overwrite(home: Path, pages: list[int], at: int = 0, length: int = PAGE) -> None:
    noise = random.Random(7)
    with open(home / "yester.db", "r+b") as file:
        for number in pages:
            file.seek((number - 1) * PAGE + at)
            file.write(noise.randbytes(length))


def count_rows(home: Path) -> int:
    with apsw.Connection(str(home / "yester.db")) as db:
        return db.execute("SELECT count(*) FROM item NOT INDEXED").get


@pytest.mark.requirement("STO-06", "STO-09")
@pytest.mark.parametrize(
    "table", ["item_text_data", "item_terms", "item_time", "item_identity", "frequency"]
)
def test_a_damaged_index_is_told_from_damaged_rows_and_built_anew_without_losing_one(
    run, filled, table
):
    overwrite(filled, pages_of(filled, table, "leaf")[:3])
    sick = run("doctor")
    assert sick.code == 3
    assert "✗ index: " in sick.out
    assert "✗ store: " not in sick.out
    assert "built anew over 400 items" in run("doctor", "--fix").out
    assert "400 items, " in run("doctor").out
    assert run("recall", "lantern").code == 0
    assert count_rows(filled) == ITEMS


@pytest.mark.requirement("STO-09")
@pytest.mark.parametrize(("kind", "most"), [("leaf", 60), ("overflow", 6)])
def test_of_damaged_rows_all_others_are_read_into_a_new_file_and_the_old_one_is_kept(
    run, filled, kind, most
):
    pages = pages_of(filled, "item", kind)
    overwrite(filled, [pages[3], pages[len(pages) // 2], pages[-1]])
    before = (filled / "yester.db").read_bytes()
    sick = run("doctor")
    assert sick.code == 3
    assert "✗ store: " in sick.out
    assert "yester doctor --fix" in sick.out
    told = run("doctor", "--fix").out
    left = count_rows(filled)
    assert ITEMS - most <= left
    assert f"{left} items read into a new file; lost or damaged: " in told
    assert (f"item {ITEMS - left}" in told) is (left < ITEMS)
    (aside,) = filled.glob("yester-before-restore-*.db")
    assert str(aside) in told
    assert aside.read_bytes()[PAGE:] == before[PAGE:]
    assert run("doctor").code == 0
    assert run("recall", "lantern").code == 0


@pytest.mark.requirement("STO-09")
def test_a_text_that_is_not_what_was_stored_is_seen_and_read_again_from_its_transcript(
    run, home, transcript
):
    t = transcript()
    t.user("Why is the lantern green? " + "It should be red. " * 800)
    t.talk(2)
    run("index")
    with apsw.Connection(str(home / "yester.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    overwrite(home, pages_of(home, "item", "overflow")[:1], at=2000, length=9)
    assert "1 items are not what was stored" in run("doctor").out
    assert "lost or damaged: text 1" in run("doctor", "--fix").out
    assert run("doctor").code == 0
    assert "1 changed" in run("index").out
    (found,) = run("search", "lantern green", "--json", "--kind", "prompt").json["hits"]
    assert run("show", str(found["id"])).out.count("It should be red.") == 800


@pytest.mark.requirement("STO-09")
@pytest.mark.parametrize("share", [0.5, 0.93])
def test_of_a_file_that_was_cut_off_what_is_left_is_read(run, filled, share):
    with open(filled / "yester.db", "r+b") as file:
        file.truncate(int((filled / "yester.db").stat().st_size * share))
    assert run("doctor").code == 3
    told = run("doctor", "--fix").out
    left = count_rows(filled)
    assert ITEMS * (share - 0.3) < left
    assert f"{left} items read into a new file" in told
    assert ("lost or damaged: " in told) is (left < ITEMS)
    assert run("doctor").code == 0


@pytest.mark.requirement("STO-09")
@pytest.mark.parametrize("content", [b"", None])
def test_an_empty_store_beside_a_backup_is_no_store_that_is_well(run, filled, content):
    run("backup")
    (filled / "yester.db").unlink()
    if content is not None:
        (filled / "yester.db").write_bytes(content)
    else:
        run("index")  # which made one anew
    done = run("doctor")
    assert done.code == 3
    assert "the store is empty, a backup holds 400 items" in done.out
    assert run("restore", "latest").code == 0
    assert "400 items, " in run("doctor").out


@pytest.mark.requirement("STO-09")
def test_the_worker_makes_a_backup_a_day_that_can_be_restored(run, filled, tmp_path, monkeypatch):
    monkeypatch.setattr(Work, "backs_up_after", 0.0)
    background = Background(load_config(filled, {}), Log(filled / "logs"), lambda: None)
    background.use_settings(load_config(filled, {}))
    until(lambda: list_backups(filled))
    background.close()
    (made,) = list_backups(filled)
    assert gzip.decompress(made.read_bytes()).startswith(b"SQLite format 3")
    assert made.stat().st_mode & 0o077 == 0
    with closing(open_store(filled, now=1)) as store:
        soon, later = (int(time.time() * 1000) + after for after in (DAY // 2, DAY + 60_000))
        assert make_daily_backup(store, filled, 5, soon) is None
        second = make_daily_backup(store, filled, 5, later)
        assert list_backups(filled) == [second, made]
    assert run("restore", "latest").code == 0


@pytest.mark.requirement("STO-09")
def test_neither_an_empty_nor_a_damaged_store_pushes_a_backup_out(filled):
    with closing(open_store(filled, now=1)) as store:
        made = make_backup(store, filled, 1, 1)
    overwrite(filled, pages_of(filled, "item", "leaf")[:3])
    with (
        closing(open_store(filled, now=1)) as store,
        pytest.raises(StoreDamaged, match=r"yester\.db is damaged"),
    ):
        make_backup(store, filled, 1, 2)
    assert [*(filled / "backups").iterdir()] == [made]
    (filled / "yester.db").write_bytes(b"")
    with closing(open_store(filled, now=1)) as store:
        assert make_daily_backup(store, filled, 1, int(time.time() * 1000) + 2 * DAY) is None
    assert list_backups(filled) == [made]


@pytest.mark.requirement("STO-09")
def test_backups_take_no_more_than_their_share_of_the_disk_and_the_newest_stays(disk):
    """3 MB, of which a quarter is less than two backups."""
    with yester.open(disk / "memory") as memory:
        memory.add([{"ref": "1", "text": random.Random(3).randbytes(200_000).hex()}])
        sizes = []
        for number in range(3):
            path = make_backup(memory.store, disk / "memory", 5, number)
            sizes.append(path.stat().st_size)
            assert list_backups(disk / "memory")[0] == path
        kept = [path.stat().st_size for path in list_backups(disk / "memory")]
        assert len(kept) < len(sizes)
        assert sum(kept) <= 3 * 2**20 / 4


@pytest.mark.requirement("STO-09")
def test_a_backup_that_was_cut_off_is_refused(run, filled):
    path = Path(run("backup").out.strip())
    path.write_bytes(path.read_bytes()[:-500])
    done = run("restore", "latest")
    assert done.code == 3
    assert "damaged" in done.err
    assert "400 items, " in run("doctor").out
    shutil.rmtree(filled / "backups")
