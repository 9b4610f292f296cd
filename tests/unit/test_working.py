"""run/working: at what a worker has ended, and what that says of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.worker.watchdog import Marks, Piece, clear_marks

pytestmark = pytest.mark.requirement("OPS-02", "CAP-03")

VERSION = "1.0"


def event(name: str) -> Piece:
    return Piece("event", name)


def begun(
    path: Path, *pieces: str | Piece, later: float = 600.0, version: str = VERSION
) -> dict[str, int]:
    """A worker begins so many seconds after the last word of the one before; it ends, without a
    word, at these pieces of work. How often workers have ended at each, as it knew."""
    now = path.stat().st_mtime + later if path.exists() else 0.0
    working = Marks(path, version, now)
    work = [piece if isinstance(piece, Piece) else event(piece) for piece in pieces]
    known = {piece.name: working.ended_workers(piece) for piece in work}
    working.begin_work(*work)
    working.close()
    return known


def test_each_worker_that_ends_at_it_counts(tmp_path):
    path = tmp_path / "working"
    assert begun(path, "a", "b") == {"a": 0, "b": 0}
    assert begun(path, "a") == {"a": 1}
    assert begun(path, "a", "b") == {"a": 2, "b": 1}  # the other one still counts


def test_who_is_back_at_once_was_killed_from_outside(tmp_path):
    path = tmp_path / "working"
    for _ in range(9):
        assert begun(path, "a", later=0.9) == {"a": 0}


def test_who_says_that_it_ended_by_itself_may_be_back_at_once(tmp_path):
    path = tmp_path / "working"
    for number in range(3):
        assert begun(path, "a", later=0.0) == {"a": number}
        working = Marks(path, VERSION, path.stat().st_mtime)
        working.begin_work(event("a"))
        working.leave_word(MemoryError())
        working.close()


def test_a_crash_of_the_interpreter_counts_at_once(tmp_path):
    path = tmp_path / "working"
    code = """
import os, signal, sys
from pathlib import Path
from yester.worker.watchdog import Marks, Piece
working = Marks(Path(sys.argv[1]), "1.0", 0.0)
working.catch_faults()
working.begin_work(Piece("event", "a"))
os.kill(os.getpid(), int(sys.argv[2]))
"""
    for number, counted in ((11, 1), (9, 1), (11, 2)):  # SIGSEGV, SIGKILL
        words = [sys.executable, "-c", code, str(path), str(number)]
        assert subprocess.run(words, check=False).returncode == -number
        working = Marks(path, VERSION, path.stat().st_mtime)
        assert working.ended_workers(event("a")) == counted
        working.close()


def test_a_transcript_in_which_the_next_one_came_further_is_not_suspected(tmp_path):
    path = tmp_path / "working"
    for reached in (0, 100, 200):
        assert begun(path, Piece("transcript", "a", reached, 900)) == {"a": 0}
    assert begun(path, Piece("transcript", "a", 200, 900)) == {"a": 1}
    assert begun(path, Piece("transcript", "a", 200, 900)) == {"a": 2}
    assert begun(path, Piece("transcript", "a", 200, 950)) == {"a": 1}  # grown: one more try
    assert begun(path, Piece("transcript", "a", 200, 950)) == {"a": 2}


def test_who_was_told_to_end_or_killed_on_purpose_leaves_no_mark(tmp_path):
    path = tmp_path / "working"
    working = Marks(path, VERSION, 0.0)
    working.begin_work(event("a"))
    working.end_marking()
    working.begin_work(event("b"))
    working.close()
    assert begun(path, "a", "b") == {"a": 0, "b": 0}
    clear_marks(path)
    assert begun(path, "a", "b") == {"a": 0, "b": 0}
    assert begun(path, "a") == {"a": 1}
    clear_marks(path)
    assert begun(path, "a") == {"a": 1}  # what is known of before stays


def test_what_went_well_is_suspected_no_longer(tmp_path):
    path = tmp_path / "working"
    begun(path, "a", "b")
    working = Marks(path, VERSION, path.stat().st_mtime + 600)
    assert working.found == (event("a"), event("b"))
    working.begin_work(event("a"))
    working.settle(event("a"))
    working.begin_work()
    working.close()
    assert begun(path, "a", "b") == {"a": 0, "b": 1}


def test_who_rests_has_ended_at_nothing(tmp_path):
    path = tmp_path / "working"
    working = Marks(path, VERSION, 0.0)
    working.begin_work(event("a"))
    working.begin_work()
    working.close()
    assert begun(path, "a") == {"a": 0}


def test_without_a_place_to_write_nothing_is_suspected_and_nothing_fails(tmp_path):
    (tmp_path / "working").mkdir()
    assert begun(tmp_path / "working", "a") == begun(tmp_path / "working", "a") == {"a": 0}


def test_another_version_begins_without_suspicion(tmp_path):
    path = tmp_path / "working"
    begun(path, "a")
    assert begun(path, "a", version="2.0") == {"a": 0}


@given(data=st.binary(max_size=300), pieces=st.lists(st.text(), min_size=1, unique=True))
def test_whatever_stands_there_and_whatever_a_piece_is_called(tmp_path_factory, data, pieces):
    path = tmp_path_factory.mktemp("run") / "working"
    path.write_bytes(f"yester {VERSION}\n".encode() + data)
    begun(path, *pieces)
    begun(path, *pieces)
    assert all(count >= 1 for count in begun(path, *pieces).values())
