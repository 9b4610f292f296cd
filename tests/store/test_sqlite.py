"""What only the SQLite store has: one file, its lock, its damage."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import apsw
import pytest

from tests import finding
from yester.errors import StoreBusy, StoreDamaged, StoreError, StoreNewer
from yester.ingest.prepare import prepare_item
from yester.model import Filters, Item, Paging, replace
from yester.store import open_store, store_files
from yester.store.lock import write_lock
from yester.store.rows import rows
from yester.store.sqlite.store import SqliteStore


def item(ref, body):
    return Item(ref, "message", project="name:shop", body=body, epoch=1)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def store(folder):
    opened = SqliteStore.open_folder(folder, now=1, patience=0.2)
    with opened.transaction("items"):
        opened.put([prepare_item(item(str(n), f"word{n} common")) for n in range(30)])
    yield opened
    opened.close()


@pytest.mark.requirement("STO-01")
def test_it_is_one_file_in_wal_mode_closed_to_others(store, folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.glob("yester.db*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    db = apsw.Connection(str(folder / "yester.db"))
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


@pytest.mark.requirement("STO-01")
def test_once_a_newer_yester_has_changed_the_schema_nothing_more_is_written(store, folder):
    other = apsw.Connection(str(folder / "yester.db"))
    other.execute("ALTER TABLE project RENAME TO place; PRAGMA user_version = 9999")
    with (
        pytest.raises(StoreNewer, match="has schema version 9999, this yester knows up to"),
        store.transaction("items"),
    ):
        store.put([prepare_item(item("late", "never stored"))])
    with pytest.raises(StoreNewer, match="update yester"):
        store.projects()
    assert not store.in_place()
    assert other.execute("SELECT count(*) FROM item").fetchone() == (30,)
    other.close()


def test_a_second_writer_waits_and_then_says_who_is_writing(store, folder):
    holder = subprocess.Popen(
        [sys.executable, "-c",
         "import sys; from pathlib import Path; from yester.store.lock import write_lock\n"
         "with write_lock(Path(sys.argv[1]), 1):\n  print('held', flush=True); sys.stdin.read()",
         str(folder / "run" / "write.lock")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout.readline() == b"held\n"
    with (
        pytest.raises(StoreBusy, match=f"process {holder.pid} has been writing"),
        store.transaction("items"),
    ):
        pass
    holder.kill()
    holder.communicate()
    with store.transaction("items"):  # the kernel has let go of a dead process's lock
        store.put([prepare_item(item("x", "after"))])


def test_reading_goes_on_while_another_writes(store, folder):
    with write_lock(folder / "run" / "write.lock", 1):
        assert len(finding.by_words(store, ["common"], Filters(), 50)) == 30


@pytest.mark.requirement("STO-06")
def test_a_damaged_index_is_seen_and_rebuilt_without_losing_a_row(store, folder):
    db = apsw.Connection(str(folder / "yester.db"))
    db.execute("DELETE FROM item_terms WHERE item < 10")
    db.execute("DELETE FROM item_text_data WHERE id > 10")
    db.close()
    problems = store.check()
    assert problems
    assert all(text.startswith("index:") for text in problems)
    with store.transaction("items"):
        assert store.reindex() == 30
    assert store.check() == []
    assert len(finding.by_words(store, ["common"], Filters(), 50)) == 30


@pytest.mark.requirement("OPS-05")
def test_a_file_that_is_no_database_is_named_and_left_alone(folder):
    folder.mkdir()
    path = folder / "yester.db"
    path.write_bytes(b"this is my shopping list\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="is not a yester database; `yester doctor`"):
        SqliteStore.open_folder(folder, now=1)
    assert path.read_bytes() == before


@pytest.mark.requirement("OPS-05")
def test_torn_pages_are_reported_not_raised(folder):
    opened = SqliteStore.open_folder(folder, now=1)
    with opened.transaction("items"):
        opened.put([prepare_item(item(str(n), f"word{n} " * 50)) for n in range(300)])
    opened.close()
    path = folder / "yester.db"
    data = bytearray(path.read_bytes())
    for page in range(6, len(data) // 4096, 5):
        data[page * 4096 : page * 4096 + 900] = os.urandom(900)
    path.write_bytes(bytes(data))
    try:
        opened = SqliteStore.open_folder(folder, now=1)
    except StoreError:
        return
    assert opened.check()
    opened.close()


def test_another_tokenizer_version_asks_for_reindex(store, folder):
    assert store.stale() == ""
    db = apsw.Connection(str(folder / "yester.db"))
    db.execute("UPDATE meta SET value = '0' WHERE key = 'tokenizer'")
    db.close()
    assert "tokenizer version 0" in store.stale()
    with store.transaction("items"):
        store.reindex()
    assert store.stale() == ""


@pytest.mark.requirement("MEM-01")
def test_the_history_of_memories_cannot_be_edited(tmp_path):
    store = SqliteStore.open_folder(tmp_path, now=1)
    store._db.execute("INSERT INTO project(id, key, name) VALUES (1, 'name:p', 'p')")
    with store.transaction("items"):
        store.put([prepare_item(Item("a", "memory", project="name:p"))])
    store._db.execute(
        "INSERT INTO memory_change(act, item, epoch, who, what, before, after)"
        " VALUES (1, 1, 1, 'sam', 'create', 'null', '{}')"
    )
    with pytest.raises(apsw.ConstraintError, match="never edited"):
        store._db.execute("UPDATE memory_change SET who = 'eve'")
    store.close()


def test_what_is_asked_of_a_session_does_not_read_the_items_of_others(store):
    with store.transaction("items"):
        store.put([prepare_item(replace(item("own", "x"), session="s1", agent="a"))])
    asked = []
    store._db.exec_trace = lambda _, sql, values: asked.append((sql, values)) or True
    number = store.session("s1", "a").id
    next(iter(store.sessions(Filters(session_id=number))), None)
    store.sessions(Filters(), Paging(9))
    store.select(Filters(session="s1"), Paging(9))
    store.select(Filters(session="s1", projects=("shop",), kinds=("message",)), Paging(9))
    store.select(Filters(kinds=("message",), since=0, until=9, session_id=number))
    store._db.exec_trace = None
    about = [(sql, values) for sql, values in asked if "FROM item" in sql]
    assert len(about) == 6
    for sql, values in about:
        plan = [row[3] for row in store._db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        assert any("item_session_time (session=?" in step for step in plan), (sql, plan)
        assert not any("SCAN i" in step for step in plan), (sql, plan)


@pytest.mark.requirement("DEL-01")
def test_the_newest_of_what_is_rare_is_found_without_reading_what_is_not(store):
    """A session's beginning asks for it, also where nothing has been distilled yet."""
    filters = Filters(projects=("shop",), kinds=("observation", "memory", "note"))
    condition = rows.filter_condition(filters, [1], [])
    plan = store._db.execute(
        f"EXPLAIN QUERY PLAN {rows.SELECT} WHERE {condition.sql} ORDER BY i.epoch DESC, i.id DESC"
        " LIMIT 30",
        condition.values,
    )
    assert any("item_recorded" in str(step) for step in plan)
    assert (
        "NOT IN"
        not in rows.filter_condition(replace(filters, kinds=("note", "prompt")), [1], []).sql
    )


@pytest.mark.requirement("STO-06")
def test_a_backup_is_a_whole_store(store, tmp_path):
    (tmp_path / "copy").mkdir()
    store.backup(*store_files(tmp_path / "copy"))
    copy = open_store(tmp_path / "copy", now=2_000)
    try:
        assert len(finding.by_words(copy, ["common"])) == 30
        assert copy.check() == []
    finally:
        copy.close()
