"""Hooks end to end at size: hook.py as the client starts it, a real worker, real prompts.

    python bench/hook.py HOME MESSAGES.jsonl [--prompts N] [--starts N] [--cold N] [--project NAME]

HOME is a yester folder of a certain size, such as `bench/recall.py --keep` leaves. It is copied
first (by reference where the file system can) and the copy is thrown away: a worker writes what it
is told. MESSAGES.jsonl is that of `bench/recall.py`: its prompts are what the user types, each in a
session of its own, since what was given before is not given again; the first tenth of them warms.

    prompt         UserPromptSubmit with a warm worker that has done what it was told before:
                   process start to its end; "without a pause": while it still does
    bare           the same process for an event that is only stored (PostToolUse)
    start, warm    SessionStart with a warm worker; the target is what it takes beyond `bare`
    start, cold    SessionStart that has to start the worker

The project's folder is an empty git repository, so that git is asked as in life; the project is
called NAME (default: the one with most items) and its memories are those found there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

import apsw

from yester.memory import ask_recall
from yester.model import Filters, Probe
from yester.project import Projects
from yester.recall.recall import Asked
from yester.store import open_store
from yester.store.contract import Store
from yester.store.figures import content_counts

HOOK = Path(__file__).parent.parent / "plugin" / "hooks" / "hook.py"
PYTHON = os.path.realpath(sys.executable)
TARGETS = {  # milliseconds
    "prompt p50": 40, "prompt p99": 150, "start, warm, beyond bare": 60, "start, cold": 1_500,
}  # fmt: skip


class Desk:
    """A user's home, a project, and the worker of a copied store."""

    def __init__(self, folder: Path, source: Path, project: str) -> None:
        self.home = folder / "user" / ".yester"
        self.home.parent.mkdir(mode=0o700)
        subprocess.run(["cp", "--reflink=auto", "-r", str(source), str(self.home)], check=True)
        self.home.chmod(0o700)
        shutil.rmtree(self.home / "run", ignore_errors=True)
        shutil.rmtree(self.home / "spool", ignore_errors=True)
        self.place = folder / "project"
        self.place.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=self.place, check=True)
        self.env = {"HOME": str(self.home.parent), "PATH": os.environ["PATH"], "CLAUDECODE": "1"}
        store = open_store(self.home, now=int(time.time() * 1000))
        self.items = store.probe(Probe(Filters())).statistics.items
        counts = content_counts(store)
        self.vectors, self.unembedded = counts.vectors, counts.unembedded
        self.project = project or self._largest(store)
        (self.home / "config.toml").write_text(f'[projects]\n"{self.place}" = "{self.project}"\n')
        found = Projects({str(self.place): self.project}).by_folder(str(self.place))
        assert found.key in {one.key for one in store.projects()}, "its memories are found here"
        store.close()

    @staticmethod
    def _largest(store: Store) -> str:
        sizes = {
            one.name: store.probe(Probe(Filters(projects=(one.key,)))).statistics.items
            for one in store.projects()
        }
        return max(sizes, key=lambda name: sizes[name])

    def yester(self, *words: str) -> None:
        command = [sys.executable, "-m", "yester", "--home", str(self.home), *words]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **self.env})

    def warm(self) -> None:
        """A worker that has its model loaded: the first prompt asks for it."""
        self.yester("worker", "start")
        asked = Asked("why was the import of the orders so slow?", now=int(time.time() * 1000))
        deadline = time.monotonic() + 60
        while ask_recall(self.home, asked, "") is None:  # it says so as long as it has not
            if time.monotonic() > deadline:
                sys.exit("the worker has not loaded its model within a minute")
            self.hook("UserPromptSubmit", prompt=asked.query)
            time.sleep(0.2)

    def rest(self) -> None:
        """Until the worker is done with what it was told: nobody types while it still embeds."""
        db = apsw.Connection(str(self.home / "yester.db"), apsw.SQLITE_OPEN_READONLY)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            waiting = db.execute("SELECT count(*) FROM unembedded").fetchone()[0] > self.unembedded
            if not waiting and not any((self.home / "spool" / "new").iterdir()):
                break
            time.sleep(0.005)
        time.sleep(0.05)  # git is asked about the folder once more
        db.close()

    def hook(self, event: str, **more: object) -> tuple[float, bytes]:
        """Milliseconds from the start of the process to its end, and what it printed."""
        told = {
            "session_id": str(uuid.uuid4()), "cwd": str(self.place), "hook_event_name": event,
            "transcript_path": str(self.home.parent / "none.jsonl"), **more,
        }  # fmt: skip
        data = json.dumps(told).encode()
        began = time.perf_counter()
        done = subprocess.run(
            [PYTHON, "-I", "-S", str(HOOK), event],
            input=data, capture_output=True, cwd=self.place, env=self.env, check=True,
        )  # fmt: skip
        return (time.perf_counter() - began) * 1000, done.stdout


def prompts(path: Path, number: int) -> list[str]:
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    typed = [
        one["text"] for one in found
        if one["role"] == "user" and one["kind"] == "text" and 4 <= len(one["text"].split()) <= 200
    ]  # fmt: skip
    return random.Random(4).sample(typed, min(number, len(typed)))


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def figures(desk: Desk, typed: Sequence[str], starts: int, cold: int) -> dict[str, float]:
    """Name → milliseconds; `answered` is a share."""
    desk.warm()
    warming = len(typed) // 10
    measured = []
    for prompt in typed:
        desk.release_unused()
        measured.append(desk.hook("UserPromptSubmit", prompt=prompt))
    times = [one for one, _ in measured[warming:]]
    pressed = [
        desk.hook("UserPromptSubmit", prompt=prompt)[0] for prompt in typed[: len(typed) // 3]
    ]
    colds = []
    for _ in range(cold):
        desk.yester("worker", "stop")
        colds.append(desk.hook("SessionStart", source="startup"))
    desk.warm()
    used = {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "true"},
            "tool_response": {"stdout": ""}}  # fmt: skip
    # In turns, so that a busy moment falls on both.
    pairs = [
        (desk.hook("PostToolUse", **used)[0], desk.hook("SessionStart", source="startup")[0])
        for _ in range(starts)
    ]
    bare = statistics.median(one for one, _ in pairs)
    found = {
        "answered": sum(bool(out) for _, out in measured) / max(len(measured), 1),
        "prompt p50": percentile(times, 0.5), "prompt p99": percentile(times, 0.99),
        "prompts without a pause, p50": percentile(pressed, 0.5),
        "prompts without a pause, p99": percentile(pressed, 0.99),
        "bare": bare, "start, warm": statistics.median(one for _, one in pairs),
        "start, warm, beyond bare": statistics.median(warm - bare for _, warm in pairs),
    }  # fmt: skip
    if colds:
        found["start, cold"] = statistics.median(one for one, _ in colds)
        found["start, cold, answered"] = sum(bool(out) for _, out in colds) / len(colds)
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("messages", type=Path)
    parser.add_argument("--prompts", type=int, default=200)
    parser.add_argument("--starts", type=int, default=30)
    parser.add_argument("--cold", type=int, default=5)
    parser.add_argument("--project", default="")
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="yester-hook-") as folder:
        desk = Desk(Path(folder), given.home, given.project)
        try:
            found = figures(desk, prompts(given.messages, given.prompts), given.starts, given.cold)
        finally:
            desk.yester("worker", "stop")
        print(f"{desk.items:,} items, {desk.vectors:,} with vectors, project {desk.project}\n")
        print("| | measured | target |\n|---|---|---|")
        for name, value in found.items():
            shown = f"{value:.2f}" if "answered" in name else f"{value:.0f} ms"
            print(f"| {name} | {shown} | {f'{TARGETS[name]} ms' if name in TARGETS else '–'} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
