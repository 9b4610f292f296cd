"""kill -9 of hooks and workers at random points: what was acknowledged is stored, once."""

from __future__ import annotations

import random
import time
from itertools import count
from pathlib import Path

import pytest

import yester
from tests.crash.killing import (
    BEGAN,
    Command,
    Told,
    ended,
    found,
    hook,
    kills,
    live,
    name_of,
    picture,
    put,
    read_only,
    same,
    spooled,
    story,
    unnumbered,
    use,
    waiting,
    wake,
)
from yester.model import replace
from yester.store import maintenance_of

pytestmark = [pytest.mark.crash, pytest.mark.requirement("CAP-03")]


def stored(home: Path) -> dict[str, int]:
    """ref → how many items have it"""
    db = read_only(home / "yester.db")
    try:
        return dict(db.execute("SELECT ref, count(*) FROM item GROUP BY ref"))
    finally:
        db.close()


def endless(rng: random.Random):
    """Several sessions at once, told in order, without an end."""
    numbers, clock = count(), count(BEGAN, 83_000_000)
    talks = [story(f"session{next(numbers)}", 8) for _ in range(3)]
    while True:
        at = rng.randrange(len(talks))
        told = next(talks[at], None)
        if told is None:
            talks[at] = story(f"session{next(numbers)}", 8)
        else:
            yield replace(told, at=next(clock))


def replayed(tmp_path, drain, kept: dict[str, bytes]) -> Path:
    """The same events in another home, drained by one that nobody kills."""
    home = tmp_path / "whole"
    for name, data in kept.items():
        put(home, name, data)
    assert drain(home) == len(kept)
    return home


# --- hooks --------------------------------------------------------------------------------------


@pytest.mark.requirement("CAP-02")
def test_a_hook_killed_anywhere_leaves_a_whole_event_or_none(
    home, project, tmp_path, drain, zygote
):
    rng = random.Random(5)
    drain()  # makes the home
    told, acknowledged, killed = {}, set(), 0
    for first in count(step=3):
        if killed >= kills(90):
            break
        hooks = []
        for number in range(first, first + 3):
            large = number % 7 == 3  # some MB, so that kills hit the writing
            output = f"line {number}\n" * (rng.randrange(80_000, 300_000) if large else 1)
            event = use(number, output)
            process = hook(home, event, tmp_path / f"payload{number % 3}", project)
            told[str(process.pid)] = event
            until = time.monotonic() + rng.uniform(0, 0.06 if large else 0.03)
            hooks.append((until, process.pid, process))
        for until, pid, process in sorted(hooks):
            if ended(process, until) == 0:
                acknowledged.add(str(pid))
            else:
                killed += 1

    files = {path.name.split("-")[1]: path for path in waiting(home)}
    assert len(files) == len(waiting(home))
    assert acknowledged <= files.keys()
    for pid, path in files.items():
        head, _, rest = path.read_bytes().partition(b"\n")
        assert head.startswith(b"yester/1\tPostToolUse\tcwd=")
        assert rest == told[pid].data
    half = list((home / "spool" / "tmp").glob("*"))
    assert half, "no kill has hit a hook that was writing"

    assert drain() == len(files)
    status = zygote.run(home, "status", "--json")
    assert status["events"] == len(files)
    assert status["spool"]["waiting"] == status["spool"]["bad"] == 0
    refs = {told[pid].payload["tool_use_id"] for pid in files}
    assert stored(home) == dict.fromkeys(refs, 1)
    one = next(iter(files))
    assert found(home, told[one].payload["tool_input"]["command"].rsplit(" ", 1)[1]) == 1
    assert sorted(half) == sorted((home / "spool" / "tmp").glob("*"))


# --- the worker ---------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-02")
def test_a_worker_killed_again_and_again_gives_the_store_of_one_that_never_was(
    run, home, project, tmp_path, drain, zygote
):
    rng = random.Random(11)
    told, kept = endless(rng), {}
    drain()  # makes the home

    def events():
        for one in (next(told) for _ in range(rng.choice((1, 1, 2, 9)))):
            kept[put(home, name_of(one), spooled(one))] = spooled(one)
        wake(home)

    for number in count():
        if zygote.killed >= kills(40):
            break
        if number % 6 == 0:  # through the real hook, while nobody is there to take it away
            before = set(waiting(home))
            process = hook(home, use(number), tmp_path / "payload", project)
            assert process.communicate() == (b"", b"")
            (new,) = set(waiting(home)) - before
            kept[new.name] = new.read_bytes()
        events()
        zygote.start(home, "worker", "run")
        live(zygote, home, rng, events)
    for _ in range(4):
        events()
        live(Command(home, "worker", "run"), home, rng, events)
    drained = run("worker", "drain")
    assert drained.code == 0, drained.err
    assert waiting(home) == []

    whole = replayed(tmp_path, drain, kept)
    for folder in (home, whole):  # the killed ones have distilled some sessions, and not others
        zygote.run(folder, "distil", "--backfill", "--json")
    same(picture(home), picture(whole))
    status, expected = (zygote.run(folder, "status", "--json") for folder in (home, whole))
    assert status["events"] == len(kept)
    for name in ("events", "skipped", "items", "sessions"):
        assert status[name] == expected[name]

    began = time.monotonic()
    started = run("worker", "start")
    assert started.code == 0, started.err
    assert time.monotonic() - began < 5
    assert run("worker", "stop").code == 0
    with yester.open(home) as memory:
        assert memory.add([{"ref": "after", "text": "the write lock is free"}]) == 1


def test_events_that_are_met_again_change_nothing(memory_folder, drain):
    """Killed between commit and unlink: the files are still there. Here all of them are."""
    rng, home = random.Random(13), memory_folder / "home"
    told = endless(rng)
    kept = {name_of(one): spooled(one) for one in (next(told) for _ in range(400))}
    names = list(kept)
    for begin in range(0, len(names), 80):
        for name in rng.sample(names[:begin], begin // 2) + names[begin : begin + 80]:
            put(home, name, kept[name])
        assert drain(home) == 80
    assert waiting(home) == []
    same(picture(home), picture(replayed(memory_folder, drain, kept)))


@pytest.mark.requirement("OPS-02")
def test_hooks_and_workers_killed_at_the_same_time_lose_nothing(
    home, project, tmp_path, drain, zygote
):
    rng = random.Random(17)
    drain()
    told, seen, killed = {}, set(), 0
    numbers = count()
    while killed < kills(30):
        zygote.start(home, "worker", "run")
        hooks = []
        for _ in range(4):
            number = next(numbers)
            process = hook(home, use(number), tmp_path / f"payload{number % 4}", project)
            told[process.pid] = f"toolu_hook{number:06d}"
            hooks.append((time.monotonic() + rng.uniform(0.005, 0.05), process.pid, process))
        end = time.monotonic() + rng.uniform(0, 0.15)
        for until, pid, process in sorted(hooks):
            if end < until:
                zygote.wait(max(0.0, end - time.monotonic()))
                zygote.kill()
            if ended(process, until) == 0:
                seen.add(told[pid])
            else:
                killed += 1
        zygote.wait(max(0.0, end - time.monotonic()))
        zygote.kill()
        seen |= {told[int(path.name.split("-")[1])] for path in waiting(home)}
    drain()

    refs = stored(home)
    assert set(refs.values()) == {1}
    assert seen <= refs.keys() <= set(told.values())
    assert zygote.run(home, "status", "--json")["events"] == len(refs)
    with yester.open(home) as memory:
        assert maintenance_of(memory.store).check() == []
    assert zygote.killed > 3


def test_a_drain_that_is_killed_is_done_by_the_next_one(memory_folder, drain, zygote):
    rng, home = random.Random(19), memory_folder / "home"
    told, kept = endless(rng), {}
    while zygote.killed < kills(12):
        for one in (next(told) for _ in range(40)):
            kept[put(home, name_of(one), spooled(one))] = spooled(one)
        zygote.start(home, "worker", "drain")
        live(zygote, home, rng)
    drain(home)
    same(picture(home), picture(replayed(memory_folder, drain, kept)))


# --- transcripts --------------------------------------------------------------------------------


@pytest.mark.requirement("STO-05", "DIS-11")
def test_a_worker_killed_while_it_reads_transcripts_ends_with_all_of_them(
    memory_folder, transcript, drain, zygote
):
    rng, home = random.Random(23), memory_folder / "home"
    talks = [transcript(f"{n:08d}-0000-4000-8000-000000000000") for n in range(3)]
    kept = {}
    while zygote.killed < kills(20):
        for one in turn_with_transcript(rng.choice(talks), rng.randrange(5, 60)):
            kept[put(home, name_of(one), spooled(one))] = spooled(one)
        zygote.start(home, "worker", "run")
        live(zygote, home, rng)
    drain(home)

    killed = picture(home)
    results = [line for talk in talks for line in talk.lines if "toolUseResult" in line]
    assert len(killed["items"]) == sum(talk.count for talk in talks) - len(results)
    same(unnumbered(killed), unnumbered(picture(replayed(memory_folder, drain, kept))))


def turn_with_transcript(talk, before: int) -> list[Told]:
    """What is in the transcript already, and a turn that hooks tell of as well."""
    talk.talk(before, topic=f"basket{talk.count}")
    key = f"prompt-{talk.session}-{talk.count}"
    common = {
        "session_id": talk.session, "cwd": talk.cwd, "transcript_path": str(talk.path),
        "prompt_id": key,
    }  # fmt: skip

    def told(event: str, **more) -> Told:
        payload = {**common, "hook_event_name": event, **more}
        return Told(event, payload, talk.clock * 1_000_000_000)

    asked = f"Please pack the parcel {talk.count} with care"
    talk.user(asked, promptId=key)
    events = [told("UserPromptSubmit", prompt=asked)]
    command, output = f"pack --parcel {talk.count} --with care", f"packed {talk.count} parcels"
    use = talk.call("Bash", command=command)
    talk.result(use, output)
    events.append(
        told(
            "PostToolUse", tool_name="Bash", tool_use_id=use, tool_input={"command": command},
            tool_response={"stdout": output, "stderr": ""},
        )
    )  # fmt: skip
    closing = f"Parcel {talk.count} is packed and all of it is in order now."
    talk.assistant(closing)
    return [*events, told("Stop", last_assistant_message=closing)]
