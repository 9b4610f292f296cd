"""Load for a while: events at a steady rate, as hooks leave them, while others ask.

    python bench/soak.py [SECONDS [EVENTS A SECOND]]

Prints a line every five seconds (events left, taken in and waiting, the worker's memory and the
size of the log, both in MB), and at the end what was lost, how late events were taken in, and how
memory grew in the second half.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yester
from yester.capture.question import ask_health
from yester.capture.spool import open_spool
from yester.store.figures import middle_lag

TURN = 12  # events from one prompt to the next
SESSION = 400  # events
PAUSE = 5.0  # seconds from one line to the next


def make_event(number: int) -> dict[str, object]:
    pier = number % 97
    if number % TURN == 0:
        prompt = f"Why does lantern {number} flicker, and who changed pier{pier}.py?"
        return {"hook_event_name": "UserPromptSubmit", "prompt": prompt}
    if number % TURN == TURN - 1:
        said = f"Lantern {number} flickers: a loose wire at pier {pier}."
        return {"hook_event_name": "Stop", "last_assistant_message": said}
    return {
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": f"toolu_{number:08d}",
        "tool_input": {"command": f"pytest tests/test_pier{pier}.py"},
        "tool_response": {"stdout": f"{number} passed in 1.2s\n" * 40, "stderr": ""},
    }


def leave_event(spool: Path, number: int, cwd: Path) -> None:
    session = f"5eed{number // SESSION:04x}-0000-4000-8000-000000000000"
    event = {"session_id": session, "cwd": str(cwd), **make_event(number)}
    name = f"{time.time_ns()}-{os.getpid()}-{number:08x}"
    head = f"yester/1\t{event['hook_event_name']}\tcwd={cwd}\n"
    (spool / "tmp" / name).write_text(head + json.dumps(event))
    (spool / "tmp" / name).rename(spool / "new" / name)


def ring_bell(home: Path) -> None:
    handle = os.open(home / "run" / "wake", os.O_WRONLY | os.O_NONBLOCK)
    os.write(handle, b"x")
    os.close(handle)


def run_command(home: Path, *words: str) -> None:
    command = [sys.executable, "-m", "yester", "--home", str(home), *words]
    subprocess.run(command, cwd="/", capture_output=True, check=False)


def soak(home: Path, cwd: Path, seconds: float, rate: float) -> list[float]:
    """The worker's memory in MB, every five seconds."""
    spool = open_spool(home, {})
    began, number, shown = time.monotonic(), 0, 0.0
    memory = []
    while (now := time.monotonic() - began) < seconds:
        if number < now * rate:
            leave_event(spool.folders[0], number, cwd)
            ring_bell(home)
            number += 1
        else:
            time.sleep(0.002)
        if now - shown >= PAUSE:
            shown = now
            health = ask_health(home) or {"events": 0, "rss_bytes": 0}
            memory.append(health["rss_bytes"] / 1e6)
            log = (home / "yester.db-wal").stat().st_size / 1e6
            print(
                f"{now:4.0f} s  {number:6} left  {health['events']:6} taken in  "
                f"{len(spool.list_waiting()):4} wait  {memory[-1]:6.1f} MB  log {log:.1f} MB",
                flush=True,
            )
            run_command(home, "recall", "lantern flicker")
    run_command(home, "worker", "drain")
    with yester.open(home) as opened:
        stored = opened.store.totals("event")[0][0]
        print(f"{number} left, {stored} stored, {middle_lag(opened.store, 1_000)} ms")
    return memory


def main(seconds: float = 60.0, rate: float = 60.0) -> None:
    with tempfile.TemporaryDirectory(prefix="yester-soak-") as folder:
        home, cwd = Path(folder) / "home", Path(folder) / "shop"
        cwd.mkdir()
        yester.open(home).close()
        run_command(home, "worker", "start")
        memory = soak(home, cwd, seconds, rate)
        run_command(home, "worker", "stop")
        half = memory[len(memory) // 2 :]
        print(f"memory in the second half: {half[0]:.1f} to {half[-1]:.1f} MB")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
