"""What capture costs: hooks against a bare interpreter, many at once, lag, deadlines, memory.

    python bench/capture.py [FOLDER of Claude Code transcripts]

Everything runs for real: hook.py as the client calls it, the worker as a hook starts it. CPU
figures are ratios to `python3 -I -S -c pass` of the same run. With a folder, the share of tool
events that make no observation of their own is counted on its sessions.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from yester.agents.base import Options, Reading
from yester.agents.claude_code import READER
from yester.capture.question import ask_worker
from yester.config import SETTINGS
from yester.ingest.prepare import group_events, no_observation
from yester.model import Event
from yester.project import Projects
from yester.worker.process import start_worker

HOOK = Path(__file__).parent.parent / "plugin" / "hooks" / "hook.py"
PYTHON = os.path.realpath(sys.executable)
SESSION = "0b0e5c1e-0000-4000-8000-000000000001"


class Place:
    """A user's home with a worker of its own."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        self.home = self.user / ".yester"
        self.project = folder / "project"
        for path in (self.user, self.project):
            path.mkdir(parents=True)
        self.env = {"HOME": str(self.user), "PATH": os.environ["PATH"], "CLAUDECODE": "1"}

    def yester(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "yester", "--home", str(self.home), *words],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **self.env},
        )
        return done.stdout

    def payload(self, event: str, number: int, size: int = 2_000) -> bytes:
        told = {
            "session_id": SESSION, "cwd": str(self.project), "hook_event_name": event,
            "transcript_path": str(self.user / "none.jsonl"), "prompt_id": f"prompt-{number // 20}",
        }  # fmt: skip
        if event == "UserPromptSubmit":
            told["prompt"] = f"Why does the import of orders number {number} take so long?"
        elif event == "PostToolUse":
            told |= {
                "tool_name": "Bash", "tool_use_id": f"toolu_bench{number:08d}",
                "tool_input": {"command": f"pytest -q tests/test_orders.py -k case_{number}"},
                "tool_response": {"stdout": f"case {number} " + "line of output\n" * (size // 15)},
            }  # fmt: skip
        return json.dumps(told).encode()

    def start(self, event: str, number: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [PYTHON, "-I", "-S", str(HOOK), event],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.project,
            env=self.env,
        )
        assert process.stdin
        process.stdin.write(self.payload(event, number))
        process.stdin.close()
        return process

    def hook(self, event: str, number: int) -> tuple[float, bytes]:
        began = time.perf_counter()
        process = self.start(event, number)
        assert process.stdout
        out = process.stdout.read()
        assert process.wait() == 0
        return (time.perf_counter() - began) * 1000, out

    def status(self) -> dict:
        return json.loads(self.yester("status", "--json"))


def cpu(words: list[str], stdin: bytes, env: dict[str, str], cwd: Path, times: int) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        subprocess.run(words, input=stdin, env=env, cwd=cwd, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(getattr(after, f) - getattr(before, f) for f in ("ru_utime", "ru_stime")) / times


def hook_cost(place: Place) -> None:
    ratios = []
    for _ in range(7):
        payload = place.payload("PostToolUse", 1)
        bare = cpu([PYTHON, "-I", "-S", "-c", "pass"], payload, place.env, place.project, 40)
        hook = cpu(
            [PYTHON, "-I", "-S", str(HOOK), "PostToolUse"], payload, place.env, place.project, 40
        )
        ratios.append(hook / bare)
    show(
        "capture hook, CPU against a bare interpreter",
        f"{statistics.median(ratios):.2f} ×",
        f"(bare {bare * 1000:.1f} ms; seven rounds {min(ratios):.2f} to {max(ratios):.2f})",
    )


def burst(place: Place) -> None:
    place.yester("worker", "start")
    known = place.status()["events"]
    began = time.perf_counter()
    processes = [place.start("PostToolUse", 1_000 + n) for n in range(100)]
    for process in processes:
        assert process.wait() == 0
    ended = time.perf_counter() - began
    while place.status()["events"] < known + 100:
        pass
    show(
        "100 hooks at once: all ended; all stored",
        f"{ended:.2f} s; {time.perf_counter() - began:.2f} s",
    )


def lag(place: Place) -> None:
    place.yester("worker", "start")
    for number in range(300):
        place.hook("PostToolUse", 2_000 + number)
        time.sleep(0.01)
    found = place.status()["lag_ms"]
    show("event to recallable, p50 / p99", f"{found['p50']} / {found['p99']} ms")
    place.yester("worker", "stop")


def answers(place: Place) -> None:
    times = [place.hook("UserPromptSubmit", n)[0] for n in range(40)]
    show("prompt hook, warm worker, p50 / p99", f"{_p(times, 50):.0f} / {_p(times, 99):.0f} ms")
    times = [place.hook("SessionStart", n)[0] for n in range(20)]
    show("SessionStart hook, warm worker, p50", f"{_p(times, 50):.0f} ms")
    place.yester("worker", "stop")
    launch = place.home / "run" / "launch"
    times = []
    for number in range(5):
        os.utime(launch, (0, 0))  # as if nobody had tried for long
        times.append(place.hook("UserPromptSubmit", number)[0])
        while not place.status()["worker"]["running"]:
            pass
        place.yester("worker", "stop")
    show("prompt hook that starts the worker, worst of 5", f"{max(times):.0f} ms")
    os.utime(launch)
    times = [place.hook("UserPromptSubmit", n)[0] for n in range(20)]
    show("prompt hook, no worker, p50 / worst", f"{_p(times, 50):.0f} / {max(times):.0f} ms")
    times = []
    for number in range(5):
        times.append(place.hook("SessionStart", number)[0])
        place.yester("worker", "stop")
    show("SessionStart hook that starts the worker, p50", f"{_p(times, 50):.0f} ms")
    times = []
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(str(place.home / "run" / "worker.sock"))
        hung.listen(64)
        times = [place.hook("UserPromptSubmit", n)[0] for n in range(20)]
    (place.home / "run" / "worker.sock").unlink()
    show("prompt hook, hung worker, p50 / worst", f"{_p(times, 50):.0f} / {max(times):.0f} ms")


def memory(place: Place) -> None:
    """10,000 events of a long day, left in the spool as hooks leave them."""
    start_worker(place.home, {})
    before = json.loads(ask_worker(place.home / "run", "GET /health", 5) or b"{}")
    new, tmp = (place.home / "spool" / name for name in ("new", "tmp"))
    began = time.perf_counter()
    for number in range(10_000):
        name = f"{time.time_ns()}-{os.getpid()}-{number:08x}"
        head = f"yester/1\tPostToolUse\tcwd={place.project}\tCLAUDECODE=1\n".encode()
        (tmp / name).write_bytes(head + place.payload("PostToolUse", 10_000 + number))
        (tmp / name).rename(new / name)
        if number % 50 == 0:
            with open(place.home / "run" / "wake", "wb", buffering=0) as pipe:
                pipe.write(b".")
    place.yester("worker", "drain")
    took = time.perf_counter() - began
    after = json.loads(ask_worker(place.home / "run", "GET /health", 5) or b"{}")
    show(
        "worker's memory, fresh / after 10,000 events",
        f"{before['rss_bytes'] / 1e6:.0f} / {after['rss_bytes'] / 1e6:.0f} MB",
        f"({after['events']:,} events in {took:.1f} s)",
    )
    place.yester("worker", "stop")


def noise_reduction(folder: Path) -> None:
    """Tool events of real sessions, read from their transcripts, through CAP-04 to CAP-06."""
    defaults = {setting.name: setting.default for setting in SETTINGS}
    skipped, window = frozenset(defaults["skip_tools"]), defaults["batch_window_ms"]
    events = listed = short = kept = batches = 0
    for path in sorted(folder.rglob("*.jsonl")):
        if not READER.is_transcript(path):
            continue
        reading = Reading(path, Projects({}), Options())
        turns: dict[tuple[str, int], list[Event]] = {}
        for item in filter(None, READER.read_items(reading)):
            if item.role != "tool" or not item.tool or item.origin == "user":
                continue
            events += 1
            failed = "error" in item.tags
            reason = no_observation(item.tool, len(item.body), failed, skipped)
            listed += reason == "skipped tool"
            short += reason == "short"
            event = Event(
                item.ref,
                "PostToolUse",
                item.epoch,
                actor=item.actor,
                tool=item.tool,
                skipped=reason,
                window=window,
            )
            turns.setdefault((item.session, item.prompt_number), []).append(event)
        left_out = Counter({k: n for k, n in reading.skipped.items() if k.endswith(" call")})
        events += left_out.total()
        listed += left_out.total()
        for turn in turns.values():
            found = group_events(turn)
            batches += len(found)
            kept += sum(map(len, found))
    show("tool events in real sessions", f"{events:,}")
    show("  on the skip list; too short", f"{listed:,}; {short:,}")
    show("  left, in so many batches", f"{kept:,} in {batches:,}")
    show(
        "  fewer by (seed: about 40 %)",
        f"{100 * (1 - batches / max(events, 1)):.0f} %",
        f"(batching alone {100 * (1 - batches / max(kept, 1)):.0f} % of what is left)",
    )


def _p(values: list[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def show(what: str, value: str, more: str = "") -> None:
    print(f"{what:55} {value:>22}  {more}".rstrip(), flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="yester-bench-") as folder:
        place = Place(Path(folder))
        place.yester("worker", "start")
        place.yester("worker", "stop")
        hook_cost(place)
        place.yester("worker", "drain")
        burst(place)
        lag(Place(Path(folder) / "lag"))
        answers(place)
        memory(place)
    if len(sys.argv) > 1:
        noise_reduction(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
