"""The spool's reading side: in order, nothing half written, nothing of another's format."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capturing import EVENTS, made
from tests.table import each
from yester.capture.spool import (
    ENDED_WORKER,
    NewerFormat,
    Spool,
    event_age,
    event_time,
    read_event,
    trusted_runtime,
)

pytestmark = pytest.mark.requirement("CAP-03")

NAME = "1770000000123456789-42-0a0b0c0d"


@pytest.fixture
def spool(home):
    made(home)
    found = Spool(home)
    found.make_folders()
    return found


def put(spool, name, data=b"yester/1\tStop\tcwd=/x\n{}", folder="new", place=0):
    path = spool.folders[place] / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_file_is_an_event_with_its_id_and_time(spool):
    data = b"yester/1\tPostToolUse\tcwd=/a b\tCLAUDECODE=1\tX=a=b\n\n{}\n\x00\xff"
    told = read_event(put(spool, NAME, data))
    assert (told.id, told.event, told.cwd) == (NAME, "PostToolUse", "/a b")
    assert told.hints == {"CLAUDECODE": "1", "X": "a=b"}
    assert told.payload == b"\n{}\n\x00\xff"
    assert (told.epoch, "off" in told.hints) == (1_770_000_000_123, False)
    assert read_event(put(spool, NAME, b"yester/1\tSessionStart\toff=1\n")).hints["off"] == "1"


@given(
    event=st.sampled_from(EVENTS),
    cwd=st.text(st.characters(exclude_characters="\t\n", exclude_categories=("Cs",))),
    payload=st.binary(max_size=500),
)
def test_what_a_hook_writes_is_what_is_read(tmp_path_factory, event, cwd, payload):
    path = tmp_path_factory.mktemp("spool") / NAME
    path.write_bytes(f"yester/1\t{event}\tcwd={cwd}\n".encode() + payload)
    told = read_event(path)
    assert (told.event, told.cwd, told.payload) == (event, cwd, payload)


@pytest.mark.parametrize("head", ["yester/2\tStop", "yester/10\tStop\tmore=1", "yester/2\tNew"])
def test_a_newer_format_is_said_to_be_one(spool, head):
    with pytest.raises(NewerFormat, match=re.escape(head.split("\t")[0])):
        read_event(put(spool, NAME, f"{head}\n{{}}".encode()))


@pytest.mark.requirement("OPS-05")
@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"{}", b"yester/1", b"yester/1\n{}", b"yester/\tStop\n", b"yester/x\tStop\n",
     b"yester/-1\tStop\n", "yester/²\tStop\n".encode(), b"yester/" + b"9" * 5_000 + b"\tStop\n",
     b"other/1\tStop\n", b"\xff\xfe\x00"],
)  # fmt: skip
def test_anything_else_is_no_event(spool, data):
    path = put(spool, NAME, data)
    with pytest.raises(ValueError):  # noqa: PT011 -- its message goes nowhere
        read_event(path)


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("spool") / NAME
    path.write_bytes(data)
    with suppress(ValueError, NewerFormat):
        assert read_event(path).id == NAME


def test_a_file_that_another_has_taken_is_gone(spool):
    with pytest.raises(FileNotFoundError):
        read_event(spool.folders[0] / "new" / NAME)


def test_what_waits_comes_by_time_from_both_places(home, tmp_path):
    spool = Spool(made(home), tmp_path / "runtime")
    spool.make_folders()
    names = [f"177000000000000000{n}-{9 - n}-ff" for n in range(6)]
    for number in (3, 0, 5):
        put(spool, names[number])
    for number in (4, 1, 2):
        put(spool, names[number], place=1)
    put(spool, "1-1-00", folder="tmp")
    assert [path.name for path in spool.list_waiting()] == names
    assert spool.find_event(names[1]) == spool.folders[1] / "new" / names[1]
    assert spool.folders[1].is_relative_to(tmp_path / "runtime" / "yester")
    assert spool.find_event(names[3]) == home / "spool" / "new" / names[3]
    spool.list_waiting()[0].unlink()
    assert [path.name for path in spool.list_waiting()] == names[1:]


def test_where_nothing_is_nothing_waits(tmp_path):
    spool = Spool(tmp_path / "none", tmp_path / "nowhere")
    assert (spool.list_waiting(), spool.list_bad(), spool.find_event("x")) == ([], [], None)
    spool.remove_abandoned(1e10)


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize("name", ["../tmp/x", "/etc/passwd", "../../config.toml", "none"])
def test_nothing_outside_is_found(spool, home, name):
    put(spool, "x", folder="tmp")
    (home / "config.toml").write_text("")
    assert spool.find_event(name) is None


def test_what_is_set_aside_waits_no_longer_and_is_kept(spool):
    path = put(spool, NAME, b"nonsense")
    spool.set_aside(path)
    assert spool.list_waiting() == []
    assert [(one.name, one.read_bytes()) for one in spool.list_bad()] == [(NAME, b"nonsense")]


def test_the_folders_are_closed_to_others(home):
    home.mkdir(mode=0o700)
    old = os.umask(0)
    try:
        Spool(home).make_folders()
    finally:
        os.umask(old)
    folders = [home / "spool", *(home / "spool").iterdir()]
    assert {path.name for path in folders} == {"spool", "tmp", "new", "bad"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_only_what_was_left_half_written_long_ago_is_swept_away(spool):
    old, young, done = put(spool, "1", folder="tmp"), put(spool, "2", folder="tmp"), put(spool, "3")
    for path in (old, done):
        os.utime(path, (1_000, 1_000))
    os.utime(young, (5_000, 5_000))
    spool.remove_abandoned(5_001.0)
    assert (old.exists(), young.exists(), done.exists()) == (False, True, True)


def test_sweeping_survives_a_hook_that_finishes_meanwhile(spool):
    gone = spool.folders[0] / "tmp" / "1"
    gone.symlink_to(spool.folders[0] / "nowhere")  # listed, and not there when looked at
    left = put(spool, "2", folder="tmp")
    os.utime(left, (1_000, 1_000))
    spool.remove_abandoned(9_999.0)
    assert not left.exists()


@each(
    ("name", "epoch"),
    [(NAME, 1_770_000_000_123), ("0-1-2", 0), ("x", 0), ("", 0), ("²-1", 0), ("-5-1", 0)],
)
def test_the_time_is_in_the_name(name, epoch):
    assert event_time(name) == epoch


def test_nothing_is_younger_than_nothing(tmp_path):
    assert event_age(tmp_path / NAME, 1_770_000_010.123) == pytest.approx(10.0)
    assert event_age(tmp_path / NAME, 1_000.0) == 0.0


@pytest.mark.requirement("OPS-03")
def test_a_runtime_folder_counts_only_where_it_is_closed(tmp_path):
    closed, opened = tmp_path / "closed", tmp_path / "open"
    closed.mkdir(mode=0o700)
    opened.mkdir()
    opened.chmod(0o755)
    assert trusted_runtime({"XDG_RUNTIME_DIR": str(closed)}) == closed
    for named in (str(opened), "", str(tmp_path / "missing")):
        assert trusted_runtime({"XDG_RUNTIME_DIR": named}) != opened
    if not os.geteuid():  # root can give it to another user
        os.chown(closed, 65534, 65534)
        assert trusted_runtime({"XDG_RUNTIME_DIR": str(closed)}) != closed


@pytest.mark.parametrize("name", ["/a/b.jsonl", "/a/line\nend\t\udcff.jsonl"])
def test_what_has_ended_the_worker_can_be_put_back_and_nothing_else(spool, name):
    cause = Path(name)
    spool.set_aside(put(spool, "1-event"), ENDED_WORKER)
    spool.set_aside(put(spool, "2-with-a-transcript"), f"came with one that {ENDED_WORKER}", cause)
    spool.set_aside(put(spool, "3-nonsense"), "is not an event")
    assert spool.put_back(Path("/a/other.jsonl")) == []
    assert [path.name for path in spool.put_back(cause)] == ["2-with-a-transcript"]
    assert [path.name for path in spool.put_back()] == ["1-event"]
    assert [path.name for path in spool.list_waiting()] == ["1-event", "2-with-a-transcript"]
    assert [path.name for path in spool.list_bad()] == ["3-nonsense"]
