"""Whatever is wrong with what it is given, yester says so, goes on, and loses nothing it has."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import apsw
import pytest

import yester
from yester.store import maintenance_of

pytestmark = pytest.mark.requirement("OPS-05")


def line(text: str) -> dict:
    return {
        "type": "user", "uuid": f"u-{abs(hash(text))}", "sessionId": "s", "cwd": "/x/shop",
        "timestamp": "2026-02-02T00:00:00Z", "message": {"role": "user", "content": text},
    }  # fmt: skip


def write(path: Path, *parts: bytes | dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join(p if isinstance(p, bytes) else json.dumps(p).encode() + b"\n" for p in parts)
    )
    return path


GOOD = line("the good line about marmots")
BAD_FILES = {
    "malformed": [b'{"type": "user", "mess\n', GOOD],
    "glued": [json.dumps(line("first")).encode() + json.dumps(GOOD).encode() + b"\n"],
    "nul bytes": [b"\0" * 5000 + b"\n", GOOD, b"\0\0\0"],
    "latin-1": [GOOD, json.dumps(line("caf\xe9"), ensure_ascii=False).encode("latin-1") + b"\n"],
    "five megabytes": [GOOD, line("word " * 1_000_000)],
    "deep nesting": [GOOD, b'{"type":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"],
    "not objects": [b"1\n", b"null\n", b'"text"\n', b"[]\n", GOOD],
    "byte order mark": [b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\n"],
    "windows lines": [json.dumps(GOOD).encode() + b"\r\n"],
    "truncated": [GOOD, json.dumps(line("cut off here")).encode()[:50]],
    "no last newline": [json.dumps(GOOD).encode()],
    "absurd times": [
        GOOD,
        {**line("too early"), "timestamp": "0001-01-01T00:00:00Z"},
        {**line("too late"), "timestamp": "9999-12-31T23:59:59Z"},
        {**line("no time"), "timestamp": "yesterday"},
    ],
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_the_good_line_of_a_bad_file_is_found(run, own_home, name):
    write(own_home / ".claude" / "projects" / "p" / "s.jsonl", *BAD_FILES[name])
    done = run("index")
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    found = run("recall", "marmots", "--json").json["hits"]
    assert "the good line about marmots" in found[0]["snippet"]
    assert run("doctor").code == 0


def test_a_file_in_another_encoding_is_counted_not_raised(run, own_home):
    text = (json.dumps(GOOD) + "\n").encode("utf-16")
    write(own_home / ".claude" / "projects" / "p" / "s.jsonl", text)
    done = run("index", "--json")
    assert done.code == 0
    assert done.json["skipped"]["unreadable"] >= 1


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(run, own_home):
    folder = own_home / ".claude" / "projects" / "p"
    write(folder / "good.jsonl", GOOD)
    (folder / "folder.jsonl").mkdir()
    (folder / "gone.jsonl").symlink_to(folder / "nowhere.jsonl")
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    (folder / "mem.jsonl").symlink_to("/proc/self/mem")
    (folder / "again").symlink_to(folder, target_is_directory=True)
    os.mkfifo(folder / "pipe.jsonl")
    done = run("index")
    assert done.code == 0
    for name in ("folder", "gone", "loop", "pipe"):
        assert f"{name}.jsonl: cannot be read" in done.err
    assert run("recall", "marmots").code == 0


def test_when_nothing_could_be_read_it_is_a_failure(run, own_home):
    folder = own_home / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "gone.jsonl").symlink_to(folder / "nowhere.jsonl")
    done = run("index")
    assert done.code == 3
    assert "gone.jsonl: cannot be read" in done.err


def test_a_store_of_a_newer_version_is_refused_by_every_command(run, transcript, home):
    transcript().talk(1)
    run("index")
    db = apsw.Connection(str(home / "yester.db"))
    db.execute("PRAGMA user_version = 4711")
    db.close()
    for words in (("index",), ("recall", "x"), ("status",), ("reindex",), ("backup",)):
        done = run(*words)
        assert done.code == 3, words
        assert "has schema version 4711" in done.err
        assert done.err.count("\n") == 1
    assert run("doctor").code == 3


def test_a_file_in_the_place_of_the_folder_is_named(run, home):
    home.write_text("I am a file")
    done = run("index", env={"HOME": str(home.parent)})
    assert done.code in (2, 3)
    assert str(home) in done.err
    assert "Traceback" not in done.err


def test_a_full_disk_is_said_and_nothing_stored_is_lost(disk, own_home, transcript):
    from yester.errors import StoreError

    home = disk / "memory"
    with yester.open(home) as memory:
        memory.add([{"ref": "kept", "text": "the marmot was here before"}])
        with pytest.raises(StoreError, match="the disk is full; nothing stored was lost"):
            for n in range(1000):
                memory.add([{"ref": f"{n}", "text": f"filler {n} " * 2000}])
        assert memory.recall("marmot")[0].ref == "kept"
        assert maintenance_of(memory.store).check() == []
    with yester.open(home) as memory:
        assert memory.recall("marmot")[0].ref == "kept"


def test_index_on_a_full_disk_fails_and_goes_on_once_there_is_room(disk, transcript, run):
    t = transcript()
    for n in range(40):
        t.user(f"question {n} " + " ".join(f"w{n}x{i % 200}" for i in range(9000)))
    home = disk / "memory"
    ran = run("--home", str(home), "index")
    assert ran.code == 3
    assert "the disk is full" in ran.err
    assert "Traceback" not in ran.err
    subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
    assert run("--home", str(home), "index").code == 0
    assert len(run("--home", str(home), "recall", "-n", "100", "--json").json["hits"]) == 40


def test_a_read_only_home_is_said_by_every_writing_command(disk, transcript, run):
    transcript().talk(2)
    home = disk / "memory"
    assert run("--home", str(home), "index").code == 0
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for words in (("index",), ("backup",), ("reindex",)):
        done = run("--home", str(home), *words)
        assert done.code == 3, words
        assert str(home) in done.err
        assert "Traceback" not in done.err


def test_a_clock_in_the_past_or_future_does_not_matter(memory):
    for number, epoch in enumerate((-5, 0, 1, 10**11)):
        memory.add([{"ref": str(number), "text": "marmot time", "epoch": epoch}])
    assert len(memory.recall("marmot", now=0)) == 1  # alike: collapsed, not lost
    assert len(memory.recall("", k=10, now=10**9)) == 4
    assert memory.recall("marmot", since="1d", now=3) != []
