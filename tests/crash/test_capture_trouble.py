"""Capture when something is wrong: no room, no spool, no order in time, a newer yester, a crowd."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import yester
from tests.crash.killing import (
    BEGAN,
    Told,
    hook,
    name_of,
    picture,
    put,
    read_only,
    spooled,
    story,
    use,
    waiting,
)
from yester.model import replace
from yester.store import maintenance_of

pytestmark = [pytest.mark.crash, pytest.mark.requirement("CAP-03")]


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """$XDG_RUNTIME_DIR, the second place for events."""
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o700)
    return folder


def tell(home: Path, told: Told, tmp_path: Path, project: Path, limits=None, **environ) -> None:
    """The hook tells it, and whatever happens the agent notices nothing."""
    process = hook(home, told, tmp_path / "payload", project, limits, **environ)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 0


def count(home: Path, sql: str) -> int:
    db = read_only(home / "yester.db")
    try:
        return db.execute(sql).fetchone()[0]
    finally:
        db.close()


def uses(home: Path) -> list[str]:
    """The refs of the tool uses in the store."""
    db = read_only(home / "yester.db")
    try:
        return [row[0] for row in db.execute("SELECT ref FROM item ORDER BY ref")]
    finally:
        db.close()


def until(true: Callable[[], object], seconds: float = 30) -> None:
    """Wait for something another process does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.002)


@contextmanager
def mounted(*words: str, at: Path) -> Iterator[None]:
    if os.getuid() != 0 or sys.platform != "linux":
        pytest.skip("only root can mount a small disk")
    done = subprocess.run(["mount", *words, str(at)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def fill(path: Path) -> None:
    """Take all the room there is."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while os.write(handle, b"x" * size):
                    pass
            except OSError:
                continue
    finally:
        os.close(handle)


# --- no room ------------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-05", "CAP-02")
def test_on_a_full_disk_the_event_goes_to_the_second_place_and_from_there_to_the_store(
    home, tmp_path, project, runtime, drain, zygote
):
    home.mkdir(mode=0o700)
    second = {"XDG_RUNTIME_DIR": str(runtime)}
    with mounted("-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", at=home):
        tell(home, use(0), tmp_path, project, **second)
        assert drain(**second) == 1
        tell(home, use(1), tmp_path, project, **second)
        assert len(waiting(home)) == 1
        fill(home / "filler")
        tell(home, use(2), tmp_path, project, **second)
        assert len(waiting(home)) == 1
        assert len(list(runtime.glob("yester/*/spool/new/*"))) == 1
        assert list((home / "spool" / "tmp").glob("*")) == []
        (home / "filler").unlink()

        status = zygote.run(home, "status", "--json", **second)
        assert status["spool"]["waiting"] == 2
        assert drain(**second) == 2
        assert uses(home) == [f"toolu_hook{n:06d}" for n in range(3)]
        assert list(runtime.glob("yester/*/spool/*/*")) == waiting(home) == []


@pytest.mark.requirement("OPS-05")
def test_a_worker_on_a_full_disk_leaves_the_events_and_takes_them_when_there_is_room(
    run, home, tmp_path, project, runtime, drain
):
    home.mkdir(mode=0o700)
    second = {"XDG_RUNTIME_DIR": str(runtime)}
    numbers = range(1, 30)
    with mounted("-t", "tmpfs", "-o", "size=6m,mode=0700", "tmpfs", at=home):
        logs = tmp_path / "logs"
        logs.mkdir(mode=0o700)
        (home / "logs").symlink_to(logs)  # it shall be able to say what it does
        tell(home, use(0), tmp_path, project)
        worker = subprocess.Popen(
            [sys.executable, "-m", "yester", "--home", str(home), "worker", "run"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **second},
        )  # fmt: skip
        until(lambda: not waiting(home))
        fill(home / "filler")
        for number in numbers:
            output = f"a line of output {number}\n" * 300
            tell(home, use(number, output), tmp_path, project, **second)
        until(lambda: "writing failed" in (logs / "worker.log").read_text())
        left = list(runtime.glob("yester/*/spool/new/*"))
        assert uses(home) + left
        assert len(uses(home)) + len(left) == 30
        assert left

        (home / "filler").unlink()
        drain(**second)
        assert list(runtime.glob("yester/*/spool/*/*")) == []
        assert uses(home) == [f"toolu_hook{n:06d}" for n in range(30)]
        worker.terminate()
        assert worker.communicate(timeout=30) == (b"", b"")
        with yester.open(home) as memory:
            assert maintenance_of(memory.store).check() == []

        tell(home, use(30), tmp_path, project, **second)
        fill(home / "filler")
        drained = run("worker", "drain", env=second)  # there is not even room to open the store
        assert drained.code == 3
        assert drained.err.startswith(f"yester: {home}/yester.db: ")
        assert drained.err.count("\n") == 1
        (home / "filler").unlink()
        assert drain(**second) == 1


@pytest.mark.requirement("OPS-05", "CAP-02")
def test_with_no_room_anywhere_the_hook_is_silent_and_leaves_word_of_the_gap(
    home, tmp_path, project, runtime, drain
):
    drain()
    gap = home / "run" / "gap"
    assert gap.stat().st_mtime == 0

    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    before = time.time()
    large = use(1, "a line of output\n" * 1000)
    tell(home, large, tmp_path, project, no_files, XDG_RUNTIME_DIR=str(runtime))
    assert before - 1 <= gap.stat().st_mtime <= time.time() + 1
    assert waiting(home) == list(runtime.glob("yester/*/spool/new/*")) == []

    os.utime(gap, (0, 0))
    tell(home, large, tmp_path, project, no_files)  # and there is no second place at all
    assert gap.stat().st_mtime >= before - 1
    assert waiting(home) == []
    tell(home, large, tmp_path, project)
    assert drain() == 1


# --- no spool -----------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-05")
def test_a_read_only_spool_is_read_once_and_new_events_go_to_the_second_place(
    home, tmp_path, project, runtime, drain
):
    second = {"XDG_RUNTIME_DIR": str(runtime)}
    drain()
    for number in range(30):
        tell(home, use(number), tmp_path, project, **second)
    spool = home / "spool"
    with mounted("--bind", str(spool), at=spool):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(spool)], check=True)
        tell(home, use(30), tmp_path, project, **second)
        assert len(waiting(home)) == 30
        assert drain(**second) == 31
        assert len(waiting(home)) == 30  # they are stored, but cannot be removed
        assert drain(**second) == 0
    assert len(waiting(home)) == 30
    assert drain(**second) == 0
    assert waiting(home) == []
    assert uses(home) == [f"toolu_hook{n:06d}" for n in range(31)]


@pytest.mark.requirement("OPS-05")
def test_without_a_spool_folder_there_is_still_the_second_place(
    home, tmp_path, project, runtime, drain
):
    second = {"XDG_RUNTIME_DIR": str(runtime)}
    drain()
    for folder in ("tmp", "new", "bad"):
        (home / "spool" / folder).rmdir()
    (home / "spool").rmdir()
    (home / "spool").write_text("somebody has put a file here")
    tell(home, use(1), tmp_path, project, **second)
    assert drain(**second) == 1
    assert uses(home) == ["toolu_hook000001"]


# --- no order in time ---------------------------------------------------------------------------


def test_a_clock_that_is_set_back_costs_no_event_and_mixes_up_no_turns(home, drain):
    """The clock jumps back between any two events, and the worker meets them in any portion."""
    rng = random.Random(37)
    events = list(story("backwards", 6))
    clock, told = BEGAN, []
    for one in events:
        clock += rng.choice((137_000_000, 137_000_000, 137_000_000, -900_000_000, -86_400 * 10**9))
        told.append(replace(one, at=clock))
    told[-1] = replace(told[-1], at=-5)  # before 1970
    told[-2] = replace(told[-2], at=7)
    while told:
        portion, told = told[: (size := rng.randrange(1, 9))], told[size:]
        for one in portion:
            put(home, name_of(one), spooled(one))
        assert drain() == len(portion)
    assert waiting(home) == []
    seen = picture(home)
    assert len(seen["events"]) == len(events)

    turns = {}
    for row in seen["events"]:
        turns.setdefault(row[9], []).append(row)
    prompts = {one.payload["prompt_id"] for one in events if "prompt_id" in one.payload}
    assert turns.keys() - {None} == prompts
    for key in prompts:
        mine = [one for one in events if one.payload.get("prompt_id") == key]
        mine = [one for one in mine if one.event not in ("PreToolUse", "SessionEnd")]
        assert len([row for row in turns[key] if row[1] != "SessionEnd"]) == len(mine)
    rows = {row[1]: row for row in seen["turns"]}
    bodies = {row[0].split(" ", 2)[2]: row[1] for row in seen["items"]}
    assert rows.keys() == prompts
    for key, (_, _, _, _, state, _, prompt, closing) in rows.items():
        token = key.removeprefix("prompt-")
        assert bodies[prompt].endswith(f"ask{token}")
        stopped = any(one.event == "Stop" and one.payload["prompt_id"] == key for one in events)
        assert state == "done" if stopped else state in ("open", "interrupted")
        assert not stopped or bodies[closing].endswith(f"end{token}")


# --- a newer yester -----------------------------------------------------------------------------


def test_an_event_of_a_newer_yester_waits_for_one_and_keeps_nobody_up(home, drain, zygote):
    told = [replace(use(number), at=BEGAN + number) for number in range(60)]
    newer = told[::10]
    for one in told:
        put(home, name_of(one), spooled(one, "yester/2" if one in newer else "yester/1"))
    assert drain() == 54
    assert [path.name for path in waiting(home)] == [name_of(one) for one in newer]
    status = zygote.run(home, "status", "--json")
    assert (status["spool"]["waiting"], status["spool"]["bad"], status["events"]) == (6, 0, 54)
    assert drain() == 0
    for path in waiting(home):  # as the newer one would understand it
        path.write_bytes(b"yester/1" + path.read_bytes().removeprefix(b"yester/2"))
    assert drain() == 6
    assert uses(home) == [f"toolu_hook{n:06d}" for n in range(60)]


# --- a crowd ------------------------------------------------------------------------------------

ADD = """
import sys, yester
with yester.open(sys.argv[1]) as memory:
    for batch in range(10):
        memory.add([{"ref": f"{sys.argv[2]}-{batch}-{n}", "text": f"note {n} of {sys.argv[2]}",
                     "project": "shop"} for n in range(10)])
"""


@pytest.mark.requirement("OPS-02", "STO-01")
def test_eight_processes_write_at_once_and_nothing_is_lost_or_doubled(
    home, tmp_path, project, transcript, drain, zygote
):
    """Two drains, two runs of index, two programs that add, and hooks, two at a time."""
    talk = transcript()
    talk.talk(150)
    kept = {}
    for one in story("crowd", 30, tools=4):
        kept[put(home, name_of(one), spooled(one))] = spooled(one)
    yesters = [sys.executable, "-m", "yester", "--home", str(home)]
    adding = [sys.executable, "-c", ADD, str(home)]
    commands = [
        [*yesters, "worker", "drain"], [*adding, "one"], [*yesters, "index", str(talk.path)],
        [*yesters, "worker", "drain"], [*adding, "two"], [*yesters, "index", str(talk.path)],
    ]  # fmt: skip
    processes = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
        for words in commands
    ]
    hooks = []
    for number in range(0, 40, 2):
        pair = [
            hook(home, use(n), tmp_path / f"payload{n % 2}", project) for n in (number, number + 1)
        ]
        for process in pair:
            assert process.communicate() == (b"", b"")
            hooks.append(process.returncode)
    assert set(hooks) == {0}
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, b""), out
    drain()

    db = read_only(home / "yester.db")
    try:
        assert db.execute("SELECT count(*), count(DISTINCT ref) FROM item").fetchone() == (
            200 + 450 + 40 + len(set(items_of(kept))),
            200 + 450 + 40 + len(set(items_of(kept))),
        )
    finally:
        db.close()
    assert zygote.run(home, "status", "--json")["events"] == len(kept) + 40
    assert waiting(home) == []
    with yester.open(home) as memory:
        assert maintenance_of(memory.store).check() == []


def items_of(kept: dict[str, bytes]) -> Iterator[str]:
    """What a story's events leave in a store: prompts, uses of tools, closing words."""
    import json

    for data in kept.values():
        head, _, payload = data.partition(b"\n")
        event, told = head.split(b"\t")[1].decode(), json.loads(payload)
        if event == "UserPromptSubmit":
            yield told["prompt"]
        elif event == "Stop":
            yield told["last_assistant_message"]
        elif event.startswith("PostToolUse") and told["tool_name"] != "TodoWrite":
            yield told["tool_use_id"]
