"""Old databases open, a newer one is refused, and a step is all or nothing."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import apsw
import pytest

from tests import finding
from yester.errors import StoreNewer
from yester.model import Change, Filters
from yester.operate.backups import list_backups, make_backup
from yester.store import maintenance_of, open_store
from yester.store.figures import content_counts
from yester.store.migrate import Migration, load_migrations

pytestmark = pytest.mark.requirement("STO-01")

OLD = sorted((Path(__file__).parent / "databases").glob("*.db"))
STEPS = load_migrations("sqlite")


def schema(db: apsw.Connection) -> set[str]:
    rows = db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {" ".join(row[0].split()) for row in rows}


def test_there_is_an_old_database_for_every_version():
    assert [int(path.stem.removeprefix("yester-")) for path in OLD] == [s.version for s in STEPS]


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_an_old_database_opens_keeps_its_rows_and_equals_a_fresh_one(old, tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    shutil.copy(old, folder / "yester.db")
    store = open_store(folder, now=1)
    fresh = open_store(tmp_path / "fresh", now=1)
    try:
        memories = {"memory": 1} if int(old.stem.removeprefix("yester-")) >= 4 else {}
        assert content_counts(store).items == {"message": 2, "prompt": 1, **memories}
        assert [(m.slug, m.version, m.content) for m in store.memos(Filters())] == [
            ("round-the-totals-last", 1, {"text": "Round the totals last"}) for _ in memories
        ]
        assert [change.what for change in store.entries(Change)] == ["create" for _ in memories]
        assert [i.body for i in store.find_by_ref("kept")] == ["Use UTC in the orders table"]
        assert len(finding.by_words(store, ["utc"], Filters(), 5)) == 1
        assert maintenance_of(store).check() == []
        one, two = (apsw.Connection(str(f / "yester.db")) for f in (folder, tmp_path / "fresh"))
        assert schema(one) == schema(two)
        one.close()
        two.close()
    finally:
        store.close()
        fresh.close()


def test_a_newer_database_is_refused_and_left_as_it_is(tmp_path):
    open_store(tmp_path, now=1).close()
    db = apsw.Connection(str(tmp_path / "yester.db"))
    db.execute("PRAGMA user_version = 9000")
    db.close()
    before = (tmp_path / "yester.db").read_bytes()
    with pytest.raises(StoreNewer, match="has schema version 9000, this yester knows up to"):
        open_store(tmp_path, now=1)
    assert (tmp_path / "yester.db").read_bytes() == before


def test_every_step_is_recorded_with_its_time(tmp_path):
    open_store(tmp_path, now=1234).close()
    db = apsw.Connection(str(tmp_path / "yester.db"))
    recorded = list(db.execute("SELECT version, name, applied FROM migration"))
    db.close()
    assert recorded == [(step.version, step.name, 1234) for step in STEPS]


def test_a_step_that_fails_leaves_no_trace_and_the_next_try_works(tmp_path):
    open_store(tmp_path, now=1).close()
    last = STEPS[-1].version
    broken = Migration(last + 1, "more", "CREATE TABLE extra(x); CREATE TABLE extra(x);")
    with pytest.raises(Exception, match="extra"):
        open_store(tmp_path, now=1, steps=[*STEPS, broken])
    open_store(tmp_path, now=1).close()
    good = Migration(last + 1, "more", "CREATE TABLE extra(x);")
    open_store(tmp_path, now=1, steps=[*STEPS, good]).close()
    with pytest.raises(StoreNewer):
        open_store(tmp_path, now=1)


def test_a_copy_is_made_before_an_existing_database_is_changed(tmp_path):
    make = partial(make_backup, home=tmp_path, kept=3, now=1_770_000_000_000)
    open_store(tmp_path, now=1, before_migration=make).close()
    assert list_backups(tmp_path) == []
    step = Migration(STEPS[-1].version + 1, "more", "CREATE TABLE extra(x);")
    open_store(tmp_path, now=1, steps=[*STEPS, step], before_migration=make).close()
    (path,) = list_backups(tmp_path)
    assert path.name == "yester-20260202T024000-000001.db.gz"
    open_store(tmp_path, now=1, steps=[*STEPS, step], before_migration=make).close()
    assert len(list_backups(tmp_path)) == 1
