"""kill -9 while something is forgotten or redacted: asked again, the job is finished."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import yester
from tests.crash.killing import Zygote
from yester.model import Entry, Item
from yester.text.document import content_hash, expand_item

pytestmark = [pytest.mark.crash, pytest.mark.requirement("STO-07", "STO-09")]

SECRET, TOKEN = "falconmerger", "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
KEPT = "plover"
SESSION = "aaaaaaaa-0000-4000-8000-000000000001"


@pytest.fixture
def base(memory_folder: Path) -> Path:
    """A home with something to forget, a secret, and a backup with both."""
    home = memory_folder / "base"
    with yester.open(home) as memory:
        memory.add(
            {"ref": f"{word}{number}", "text": f"The {word} is here, {number}. " * 40,
             "session": session, "project": "shop"}
            for number in range(20)
            for word, session in ((SECRET, SESSION), (KEPT, "b"))
        )  # fmt: skip
        item = Item("token", "message", project="name:shop", session="b", body=f"T={TOKEN} done")
        with memory.store.transaction("items"):
            memory.store.put([Entry(item, content_hash(item), expand_item(item))])
    (home / "backups").mkdir(mode=0o700)
    shutil.copy(home / "yester.db", home / "backups" / "yester-20260202T024000-000001.db")
    return home


def holds(home: Path, text: str) -> bool:
    files = (path for path in home.rglob("*") if path.is_file())
    return any(text.lower().encode() in path.read_bytes().lower() for path in files)


def check_stores(home: Path) -> None:
    """Both whole, with all that nobody wanted gone."""
    for path in (home / "yester.db", *home.glob("backups/yester-*.db")):
        db = apsw.Connection(str(path))
        try:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            kept = "SELECT count(*) FROM item WHERE ref LIKE 'plover%'"
            assert db.execute(kept).fetchone() == (20,)
        finally:
            db.close()


def points() -> Iterator[int]:
    """The first, and then fewer and fewer of many."""
    at = 1
    while True:
        yield at
        at += 1 + at // 6


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (("forget", "--session", SESSION, "--yes"), SECRET),
        (("redact", "--again", "--yes"), TOKEN),
    ],
)
def test_killed_before_anything_it_does_to_a_file_it_finishes_when_asked_again(
    words, gone, base, memory_folder, tmp_path, own_home
):
    with Zygote(tmp_path) as zygote:
        for number in points():
            home = memory_folder / f"home{number}"
            shutil.copytree(base, home)
            zygote.start(home, *words, kill_at=number)
            ended = zygote.finish()
            check_stores(home)
            if ended != -signal.SIGKILL:
                break
            if holds(home, gone) or (home / "forgetting").exists():
                zygote.start(home, *words)
                assert zygote.finish() == 0
            assert not holds(home, gone), number
            assert not (home / "forgetting").exists()
            check_stores(home)
            shutil.rmtree(home)
    assert ended == 0
    assert number > 20
    assert not holds(home, gone)
