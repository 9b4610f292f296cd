"""Load for a while: events at a steady rate, as hooks leave them, while others ask and write.

    python -m bench.soak [SECONDS [EVENTS A SECOND]]

Beside the events a question is asked every five seconds, a new transcript is indexed, and the
viewer's server gives what its pages begin with. Prints a line every five seconds (events left,
taken in and waiting, the worker's and the server's memory and the size of the log, in MB), and at
the end what was lost, how late events were taken in, and how memory grew in the second half. Fails
where something was lost, the slowest of a hundred waited two seconds, the log grew beyond its
bound, or memory beyond a hundredth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import mean

import yester
from yester.capture.question import ask_health
from yester.capture.spool import open_spool
from yester.store.figures import middle_lag

TURN = 12  # events from one prompt to the next
SESSION = 400  # events
PAUSE = 5.0  # seconds from one line to the next
SAMPLE = Path(__file__).parent.parent / "examples" / "sessions" / "larder"
PAGES = ("facets", "sessions?limit=20", "timeline?anchor=latest", "injections?limit=20", "stats")
LATEST = 2_000  # ms from hook to store, for all but one of a hundred
LARGEST_LOG = 32.0  # MB: twice what is kept of it
FLAT = 1.01  # the last quarter's memory over that of the third


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


def run_command(home: Path, *words: str) -> str:
    command = [sys.executable, "-m", "yester", "--home", str(home), *words]
    return subprocess.run(command, cwd="/", capture_output=True, check=False, text=True).stdout


def write_transcript(folder: Path, number: int) -> Path:
    """One of the samples as another session."""
    source = sorted(SAMPLE.glob("*.jsonl"))[number % 3]
    name = f"50a4{number:04x}-0000-4000-8000-000000000000"
    path = folder / f"{name}.jsonl"
    path.write_text(source.read_text("utf-8").replace(source.stem, name), "utf-8")
    return path


def ask_pages(home: Path, port: str) -> None:
    token = (home / "token").read_text().strip()
    for page in PAGES:
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/{page}", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            answer.read()


def resident(home: Path, seat: str) -> float:
    """MB of the process that has it."""
    pid = (home / "run" / seat).read_text().strip()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(home: Path, cwd: Path, seconds: float, rate: float) -> tuple[list[float], float, bool]:
    """The worker's memory in MB every five seconds, the largest log, and whether all went well."""
    port = run_command(home, "serve", "--background").strip().rpartition(":")[2]
    spool = open_spool(home, {})
    began, number, shown = time.monotonic(), 0, 0.0
    memory, largest, lines = [], 0.0, 0
    while (now := time.monotonic() - began) < seconds:
        if number < now * rate:
            leave_event(spool.folders[0], number, cwd)
            ring_bell(home)
            number += 1
        else:
            time.sleep(0.002)
        if now - shown >= PAUSE:
            shown, lines = now, lines + 1
            health = ask_health(home) or {"events": 0}
            memory.append(resident(home, "worker.lock"))
            log = (home / "yester.db-wal").stat().st_size / 1e6
            largest = max(log, largest)
            print(
                f"{now:4.0f} s  {number:6} left  {health['events']:6} taken in  "
                f"{len(spool.list_waiting()):4} wait  {memory[-1]:6.1f} MB  "
                f"server {resident(home, 'serve.lock'):5.1f} MB  log {log:.1f} MB",
                flush=True,
            )
            run_command(home, "recall", "lantern flicker")
            run_command(home, "index", str(write_transcript(cwd, lines)))
            ask_pages(home, port)
    run_command(home, "worker", "drain")
    with yester.open(home) as opened:
        stored = opened.store.totals("event")[0][0]
        lag = middle_lag(opened.store, 10_000)
        print(f"{number} left, {stored} stored; taken in after {lag.p50} ms (p99: {lag.p99})")
    run_command(home, "serve", "--stop")
    return memory, largest, number == stored and (lag.p99 or 0) <= LATEST


def main(seconds: float = 60.0, rate: float = 60.0) -> int:
    with tempfile.TemporaryDirectory(prefix="yester-soak-") as folder:
        home, cwd = Path(folder) / "home", Path(folder) / "shop"
        cwd.mkdir()
        yester.open(home).close()
        run_command(home, "worker", "start")
        memory, largest, good = soak(home, cwd, seconds, rate)
        run_command(home, "worker", "stop")
        quarter = len(memory) // 4
        third, last = mean(memory[2 * quarter : 3 * quarter]), mean(memory[3 * quarter :])
        print(f"memory: {third:.1f} MB in the third quarter, {last:.1f} in the last")
        print(f"log: at most {largest:.1f} MB")
        return 0 if good and last <= FLAT * third and largest <= LARGEST_LOG else 1


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
