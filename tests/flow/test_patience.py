"""Whatever is wrong with a home, a command says so in a few seconds; and nothing waits in clear."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.capturing import Told, leave, until
from yester.capture.spool import ENDED_WORKER, event_time, open_spool
from yester.operate.doctor import examine_quickly

KEY = "sk-ant-api03-" + "Zq8" * 20


@pytest.mark.requirement("OPS-05")
def test_a_home_that_nobody_may_write_can_be_read(disk, transcript, run):
    transcript().talk(3)
    home = str(disk / "memory")
    assert run("--home", home, "index", env={"YESTER_EMBEDDER": "none"}).code == 0
    run("--home", home, "worker", "stop")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for words in (["recall", "checkout"], ["sessions"], ["status"], ["stats"], ["show", "1"],
                  ["timeline"], ["projects"], ["privacy"]):  # fmt: skip
        done = run("--home", home, *words)
        assert (done.code, done.err) == (0, ""), words
    refused = run("--home", home, "remember", "the pier is closed")
    assert refused.code == 3
    assert "Read-only file system" in refused.err


@pytest.mark.requirement("OPS-05")
def test_a_full_disk_is_called_that_by_who_only_reads(disk, transcript, run):
    transcript().talk(3)
    home = str(disk / "memory")
    run("--home", home, "index", env={"YESTER_EMBEDDER": "none"})
    run("--home", home, "worker", "stop")
    with open(disk / "filling", "wb", buffering=0) as file, pytest.raises(OSError, match="space"):
        while True:
            file.write(bytes(4096))
    for words in (["recall", "checkout"], ["worker", "drain"]):
        done = run("--home", home, *words)
        assert "the disk is full" in done.err or done.code == 0, words


@pytest.mark.requirement("OPS-02", "OPS-04")
def test_a_worker_that_was_stopped_is_said_to_be_silent_not_to_be_gone(run, home, transcript):
    transcript().talk(1)
    run("index", env={"YESTER_EMBEDDER": "none"})
    pid = int(run("worker", "start").out.split("pid ")[1].strip(") \n"))
    os.kill(pid, signal.SIGSTOP)
    try:
        assert f"does not answer (pid {pid})" in run("status").out
        began = time.monotonic()
        drained = run("worker", "drain")
        assert drained.code == 3
        assert f"the worker does not answer (pid {pid}); end it with" in drained.err
        assert time.monotonic() - began < 30
    finally:
        os.kill(pid, signal.SIGCONT)
        run("worker", "stop")


@pytest.mark.requirement("OPS-04", "OPS-05")
@pytest.mark.parametrize("name", ["wake", "worker.sock"])
def test_a_folder_in_the_place_of_a_file_of_ours_is_named_with_what_to_do(run, home, name):
    (home / "run" / name).mkdir(parents=True)
    done = run("worker", "drain")
    assert done.code == 3
    assert done.err.count("\n") == 1
    assert f"{name}: Is a directory" in done.err
    assert "move that folder away" in done.err
    assert run("status").code == 0


@pytest.mark.requirement("OPS-04", "OPS-05")
def test_a_process_that_may_open_no_file_more_says_so(home, tmp_path):
    """Whichever file it is that cannot be opened."""
    for limit in range(3, 24, 2):
        command = [
            "sh", "-c", 'ulimit -n "$0" && exec "$@"', str(limit), sys.executable, "-m", "yester",
            "--home", str(home), "worker", "drain",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        if done.stderr.startswith(
            "yester:"
        ):  # else Python itself could not begin, or all went well
            assert "ulimit -n" in done.stderr, limit
            assert done.stderr.count("\n") == 1
            break
    else:
        pytest.fail("no limit was met by yester")


@pytest.mark.requirement("CAP-09")
def test_events_that_nobody_takes_in_are_taken_in_by_the_next_command(run, home, transcript):
    transcript().talk(1)
    run("index", env={"YESTER_EMBEDDER": "none"})
    run("worker", "stop")
    leave(home, Told().prompt(f"use ANTHROPIC_API_KEY={KEY} please"))
    (event,) = (home / "spool" / "new").iterdir()
    assert run("sessions", env={"YESTER_EMBEDDER": "none"}).code == 0
    assert event.exists()  # it may have come just now
    os.utime(event, (1, 1))
    assert run("sessions", env={"YESTER_EMBEDDER": "none"}).code == 0
    until(lambda: not event.exists())
    run("worker", "stop")
    assert [path for path in home.rglob("*") if path.is_file() and holds_key(path)] == []


@pytest.mark.requirement("CAP-09", "OPS-04")
@pytest.mark.parametrize(("minutes", "state"), [(0, "ok"), (11, "problem")])
def test_events_that_nobody_has_taken_in_for_minutes_are_no_check_mark(home, minutes, state):
    leave(home, Told().prompt("Why is the import slow?"))
    (event,) = (home / "spool" / "new").iterdir()
    now = event_time(event.name) + minutes * 60_000
    (found,) = [one for one in examine_quickly(home, now) if one.check == "spool"]
    assert found.state == state
    assert bool(found.fix) is (state == "problem")


@pytest.mark.requirement("CAP-09")
def test_what_is_set_aside_has_no_secrets_and_goes_after_a_month(home, tmp_path):
    (home / "spool").mkdir(parents=True)
    spool = open_spool(home, {})
    spool.make_folders()
    for name, why in (("1-1-aa", "is not a JSON object"), ("2-1-bb", ENDED_WORKER)):
        path = home / "spool" / "new" / name
        path.write_text(f"yester/1\tStop\tcwd=/x\n{{no json ANTHROPIC_API_KEY={KEY}")
        spool.set_aside(path, why)
    first, second = spool.list_bad()
    assert not holds_key(first)
    assert holds_key(second)  # it is tried again by another version, as it is
    spool.remove_abandoned(time.time() + 29 * 86_400)
    assert spool.list_bad() == [first, second]
    spool.remove_abandoned(time.time() + 31 * 86_400)
    assert spool.list_bad() == []


def holds_key(path) -> bool:
    return KEY.encode() in path.read_bytes()
