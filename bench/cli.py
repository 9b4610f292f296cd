"""What a command costs the machine: CPU time of `yester` as a multiple of a bare interpreter.

    python bench/cli.py [ROUNDS]

User and system time of the process and of what it starts (git), medians over interleaved rounds,
on the sample store with its vectors and a worker that has its model loaded. A multiple of
`python -c pass` of the same interpreter in the same rounds: it means the same on every machine.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from yester.memory import ask_recall
from yester.recall.recall import Asked

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {  # name → words, and the most it may cost
    "--version": (["--version"], 4),
    "--help": (["--help"], 4),
    "recall --json": (["recall", "--json", "why did we drop redis"], 6),
    "status": (["status"], 8),
    "statusline": (["statusline"], 2),
}
_PATIENCE = 120.0  # seconds until the worker has made the vectors


def cpu_ms(words: list[str], folder: Path, env: dict[str, str]) -> float:
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(words, stdout=nothing, stderr=nothing, cwd=folder, env=env)
        _, code, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
    assert process.returncode == 0, words
    return (used.ru_utime + used.ru_stime) * 1000


def start_worker(yester: str, home: Path, place: Path, env: dict[str, str]) -> None:
    """Index the samples, and wait for a worker that answers by meaning."""
    for words in (["index", str(ROOT / "examples" / "sessions")], ["worker", "start"]):
        subprocess.run([yester, *words], check=True, capture_output=True, cwd=place, env=env)
    deadline = time.monotonic() + _PATIENCE
    while ask_recall(home, Asked("redis", now=int(time.time() * 1000)), "") is None:
        if time.monotonic() > deadline:
            sys.exit(f"the worker has not loaded its model in {_PATIENCE:.0f} s")
        time.sleep(0.2)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    beside = Path(sys.executable).parent / "yester"
    yester = str(beside) if beside.exists() else shutil.which("yester") or sys.exit("no yester")
    with tempfile.TemporaryDirectory() as folder:
        user, place = Path(folder) / "user", Path(folder) / "project"
        user.mkdir(mode=0o700)
        place.mkdir()
        subprocess.run(["git", "init", "-q"], cwd=place, check=True)
        env = {"HOME": str(user), "PATH": os.environ["PATH"]}
        start_worker(yester, user / ".yester", place, env)
        try:
            bare: list[float] = []
            used: dict[str, list[float]] = {name: [] for name in COMMANDS}
            for _ in range(rounds):
                bare.append(cpu_ms([sys.executable, "-c", "pass"], place, env))
                for name, (words, _) in COMMANDS.items():
                    used[name].append(cpu_ms([yester, *words], place, env))
        finally:
            subprocess.run([yester, "worker", "stop"], check=False, capture_output=True, env=env)
    base = statistics.median(bare)
    print("| command | CPU ms | python -c pass = 1 | at most |\n|---|---|---|---|")
    print(f"| python -c pass | {base:.0f} | 1 | |")
    for name, (_, most) in COMMANDS.items():
        middle = statistics.median(used[name])
        print(f"| {name} | {middle:.0f} | {middle / base:.1f} | {most} |")


if __name__ == "__main__":
    main()
