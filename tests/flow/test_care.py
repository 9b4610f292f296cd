"""doctor, reindex, backup, restore, config: looking after the store from outside."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import apsw
import pytest

import yester
from yester.errors import StoreReplaced
from yester.operate import backups


def test_doctor_is_content_with_a_fresh_and_with_a_filled_store(run, transcript):
    assert run("doctor").code == 0
    transcript().talk(2)
    run("index")
    done = run("doctor")
    assert done.code == 0
    assert "no damage" in done.out
    states = {f["check"]: f["state"] for f in run("doctor", "--json").json["findings"]}
    assert states["store"] == states["permissions"] == "ok"


@pytest.mark.requirement("STO-06", "OPS-04")
def test_doctor_finds_a_broken_index_and_puts_it_right(run, transcript, home):
    transcript().talk(3)
    run("index")
    db = apsw.Connection(str(home / "yester.db"))
    db.execute("DELETE FROM item_terms")
    db.close()
    sick = run("doctor")
    assert sick.code == 3
    assert "Run: yester reindex" in sick.out
    assert run("recall", "checkout").code == 1
    assert run("doctor", "--fix").code == 0
    assert run("recall", "checkout").code == 0


@pytest.mark.requirement("OPS-04")
def test_doctor_closes_what_is_open_to_others(run, transcript, home):
    transcript().talk(1)
    run("index")
    (home / "yester.db").chmod(0o644)
    assert run("doctor").code == 3
    assert run("doctor", "--fix").code == 0
    assert stat.S_IMODE((home / "yester.db").stat().st_mode) == 0o600


@pytest.mark.requirement("STO-06")
def test_reindex_builds_the_index_anew(run, transcript):
    transcript().talk(3)
    run("index")
    assert run("reindex").out == "9 items indexed anew\n"
    assert run("recall", "checkout").code == 0


@pytest.mark.requirement("STO-06")
@pytest.mark.parametrize("writer", ["index", "program"])
def test_an_index_of_another_tokenizer_is_said_and_rebuilt_by_the_next_writer(
    run, transcript, home, writer
):
    t = transcript()
    t.talk(2)
    run("index")
    db = apsw.Connection(str(home / "yester.db"))
    db.execute("UPDATE meta SET value = '0' WHERE key = 'tokenizer'")
    db.close()
    assert "run: yester reindex" in run("recall", "checkout").err
    if writer == "index":
        assert "6 items indexed anew" in run("index").err
    else:
        with yester.open(home) as memory:
            memory.add([{"ref": "1", "text": "new"}])
    done = run("recall", "checkout")
    assert (done.code, done.err) == (0, "")
    assert run("doctor").code == 0


@pytest.mark.requirement("STO-06")
def test_a_backup_brings_back_what_was_there(run, transcript, home):
    t = transcript()
    t.talk(2)
    run("index")
    assert run("backup").code == 0
    name = run("backup", "--list").out.split()[0]
    t.user("about the narwhal")
    run("index")
    assert run("recall", "narwhal").code == 0
    done = run("restore", name)
    assert done.code == 0
    assert run("recall", "narwhal").code == 1
    assert run("recall", "checkout").code == 0
    assert list(home.glob("yester-before-restore-*.db"))
    run("index")
    assert run("recall", "narwhal").code == 0


@pytest.mark.requirement("STO-06")
def test_a_damaged_backup_is_refused_and_the_store_stays(run, transcript, tmp_path):
    transcript().talk(2)
    run("index")
    (tmp_path / "bad.db").write_bytes(b"no database at all" * 999)
    done = run("restore", str(tmp_path / "bad.db"))
    assert done.code == 3
    assert run("recall", "checkout").code == 0
    assert run("restore", "latest").code == 1
    assert run("restore", "yester-none.db").code == 2


def test_only_so_many_backups_are_kept(run, transcript, home):
    transcript().talk(1)
    run("index")
    (home / "config.toml").write_text("backups_kept = 2\n")
    for _ in range(4):
        assert run("backup").code == 0
    assert len(list((home / "backups").iterdir())) == 2


@pytest.mark.requirement("STO-06", "STO-09")
def test_after_a_clock_that_ran_ahead_the_newest_backup_is_still_the_last_one_made(
    run, transcript, home
):
    t = transcript()
    t.talk(1)
    run("index")
    first = Path(run("backup").out.strip())
    for number in range(1, 6):  # as the former version named them, on a day that has not come
        shutil.copy(first, first.with_name(f"yester-2099010{number}T000000.db"))
    t.user("about the narwhal")
    run("index")
    made = [run("backup").out.strip() for _ in range(2)]
    assert [path for path in made if not Path(path).exists()] == []
    listed = [line.split()[0] for line in run("backup", "--list").out.splitlines()]
    assert listed[:2] == [Path(path).name for path in reversed(made)]
    assert len(listed) == 5
    assert run("restore", "latest").out.startswith(f"restored {made[1]}\n")
    assert run("recall", "narwhal").code == 0
    assert run("restore", listed[-1]).code == 0  # the former names still do
    assert run("recall", "narwhal").code == 1


def test_config_shows_every_setting_and_where_it_comes_from(run, home):
    home.mkdir()
    (home / "config.toml").write_text("thinking = false\n")
    shown = run("config", "--json").json["settings"]
    assert shown["thinking"] == {"value": False, "from": "config.toml"}
    assert shown["subagents"] == {"value": True, "from": "default"}
    assert "thinking = false  (config.toml)" in run("config").out


@pytest.mark.requirement("OPS-04")
def test_a_bad_setting_stops_every_command_with_one_line(run, home):
    home.mkdir()
    (home / "config.toml").write_text("thinking = 7\n")
    done = run("index")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert done.err.startswith("yester: ")


@pytest.mark.requirement("OPS-05")
def test_a_damaged_full_text_is_one_sentence_with_the_fix(run, transcript, home):
    transcript().talk(3)
    run("index")
    db = apsw.Connection(str(home / "yester.db"))
    db.execute("DELETE FROM item_text_data WHERE id > 10")
    db.close()
    done = run("recall", "checkout")
    assert done.code == 3
    assert "the search index is damaged; run `yester reindex`" in done.err
    assert "Traceback" not in done.err
    assert run("reindex").code == 0
    assert run("recall", "checkout").code == 0


@pytest.mark.requirement("OPS-05")
def test_doctor_says_what_to_do_with_a_file_that_is_no_store(run, transcript, home):
    transcript().talk(1)
    run("index")
    (home / "yester.db").write_bytes(b"shopping list " * 999)
    for path in home.glob("yester.db-*"):
        path.unlink()
    done = run("doctor")
    assert done.code == 3
    assert "There is no backup. Move" in done.out


def test_two_restores_in_one_second_keep_both_former_stores(run, transcript, home):
    transcript().talk(1)
    run("index")
    run("backup")
    run("restore", "latest")
    run("restore", "latest")
    assert len(list(home.glob("yester-before-restore-*.db"))) == 2


def test_reading_makes_no_store(run, home):
    for words in (("recall", "x"), ("sessions",), ("recent",), ("status",), ("show", "1")):
        assert run(*words).code in (0, 1)
    assert not home.exists()
    assert run("status", "--json").json["items"] == {}


def test_an_unknown_project_is_named_with_what_there_is(run, transcript):
    transcript().talk(1)
    run("index")
    done = run("recall", "checkout", "--project", "shpo")
    assert done.code == 1
    assert "no project is called 'shpo'; did you mean shop?" in done.err


@pytest.mark.requirement("STO-05", "OPS-02")
def test_who_had_the_former_store_open_does_not_write_into_it(run, home, transcript):
    transcript().talk(2)
    run("index")
    run("backup")
    with yester.open(home) as memory:
        memory.add([{"ref": "before", "text": "the last word before the restore"}])
        assert run("restore", "latest").code == 0
        with pytest.raises(
            StoreReplaced, match="a backup was restored, or something was forgotten; open it anew"
        ):
            memory.add([{"ref": "lost", "text": "this would have been lost"}])
    with yester.open(home) as memory:
        assert memory.recall("last word before the restore") == []
    (aside,) = home.glob("yester-before-restore*.db")
    db = apsw.Connection(str(aside))
    assert db.execute("SELECT count(*) FROM item WHERE ref = 'before'").fetchone() == (1,)
    db.close()


@pytest.mark.requirement("OPS-02")
def test_a_running_worker_ends_before_a_restore(run, home, transcript):
    transcript().talk(1)
    run("index")
    run("backup")
    assert run("worker", "start").code == 0
    done = run("restore", "latest")
    assert done.code == 0
    assert "the worker has ended" in done.err
    assert run("worker", "status").code == 1


@pytest.mark.requirement("OPS-02", "STO-06")
@pytest.mark.parametrize("backup", ["latest", "yester-none.db", "damaged"])
def test_a_backup_that_cannot_be_restored_leaves_the_worker_running(
    run, home, transcript, tmp_path, backup
):
    transcript().talk(1)
    run("index")
    if backup == "damaged":
        backup = str(tmp_path / "bad.db")
        Path(backup).write_bytes(b"no database at all" * 999)
    assert run("worker", "start").code == 0
    try:
        assert run("restore", backup).code in (1, 2, 3)
        assert run("worker", "status").code == 0
    finally:
        run("worker", "stop")


@pytest.mark.requirement("STO-06")
def test_a_store_that_is_no_database_any_more_is_kept_as_it_is_and_replaced(run, home, transcript):
    transcript().talk(2)
    run("index")
    run("backup")
    for name in ("yester.db", "yester.db-wal"):
        (home / name).write_bytes(b"shopping list " * 999)
    done = run("restore", "latest")
    assert (done.code, done.err) == (0, "")
    assert run("recall", "checkout").code == 0
    assert run("doctor").code == 0
    kept = sorted(path.name.rpartition(".")[2] for path in home.glob("yester-before-restore-*"))
    assert kept == ["db", "db-wal"]
    for path in home.glob("yester-before-restore-*"):
        assert path.read_bytes() == b"shopping list " * 999


@pytest.mark.requirement("STO-06")
def test_what_a_former_store_had_in_its_log_comes_back_with_it(run, home, transcript, tmp_path):
    """A file that is restored may have a write-ahead log beside it."""
    transcript().talk(1)
    run("index")
    db = apsw.Connection(str(home / "yester.db"))
    db.execute("BEGIN")
    assert db.execute("SELECT count(*) FROM item").fetchone() == (3,)
    with yester.open(home) as memory:
        memory.add([{"ref": "logged", "text": "a narwhal that is in the log alone"}])
    for end in ("", "-wal"):
        shutil.copy(home / f"yester.db{end}", tmp_path / f"former.db{end}")
    db.close()
    assert (tmp_path / "former.db-wal").stat().st_size > 0
    run("backup")
    assert run("restore", str(tmp_path / "former.db")).code == 0
    assert run("recall", "narwhal").code == 0


@pytest.mark.requirement("STO-06")
def test_of_two_restores_at_once_the_second_ends_and_touches_nothing(run, home, transcript):
    t = transcript()
    t.talk(1)
    run("index")
    first = run("backup").out.strip()
    t.user("about the narwhal")
    run("index")
    second = run("backup").out.strip()
    with backups.checked_copy(home, first, 1) as (_, copy):
        done = run("restore", second)
        assert (done.code, done.out) == (3, "")
        assert done.err.startswith(f"yester: {home}/run/restore.lock: process {os.getpid()} has")
        assert not list(home.glob("yester-before-restore-*"))
        backups.put_in_place(home, copy, 1)
    assert run("recall", "narwhal").code == 1
    assert run("restore", second).code == 0
    assert run("recall", "narwhal").code == 0
    assert not list((home / "run").glob("restore*/"))


@pytest.mark.requirement("STO-06")
def test_what_a_killed_restore_has_left_goes_with_the_next_one(run, home, transcript):
    transcript().talk(1)
    run("index")
    run("backup")
    for name in ("restore", "restore-1"):  # the first is a former version's
        (home / "run" / name).mkdir()
        (home / "run" / name / "yester.db").touch()
    assert run("restore", "latest").code == 0
    assert not list((home / "run").glob("restore*/"))


@pytest.mark.requirement("STO-06")
def test_backups_that_are_made_at_once_are_all_there(
    run, home, transcript, tmp_path, zygote_of_commands
):
    transcript().talk(1)
    run("index")
    db = apsw.Connection(str(home / "yester.db"))
    db.execute("INSERT INTO meta VALUES ('large', randomblob(8000000))")  # it takes a moment
    db.close()
    words, env = ["--home", str(home), "backup"], dict(os.environ)
    printed = [tmp_path / f"printed-{number}" for number in range(4)]
    making = [zygote_of_commands.start(words, tmp_path, env, path, path) for path in printed]
    assert [one.wait(60) for one in making] == [0] * 4
    made = sorted(Path(path.read_text().strip()) for path in printed)
    assert [path.name.rpartition("-")[2] for path in sorted(made, key=lambda p: p.name[-12:])] == [
        "000001.db.gz", "000002.db.gz", "000003.db.gz", "000004.db.gz"
    ]  # fmt: skip
    assert sorted((home / "backups").iterdir()) == made
    for path in (made[0], made[-1]):
        assert run("restore", str(path)).code == 0
