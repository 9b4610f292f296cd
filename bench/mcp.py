"""How long an agent waits for the MCP server: process start to the first answers.

python bench/mcp.py [ROUNDS]     medians over the samples, also against `python -c pass`
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
STEPS = (
    ("initialize", "initialize", INITIALIZE),
    ("tools/list", "tools/list", {}),
    ("first search", "tools/call", {"name": "search", "arguments": {"query": "why drop redis"}}),
    ("second search", "tools/call", {"name": "search", "arguments": {"query": "payment webhook"}}),
    ("timeline", "tools/call", {"name": "timeline", "arguments": {"anchor": "138"}}),
    ("get_observations", "tools/call", {"name": "get_observations", "arguments": {"ids": ["138"]}}),
)


def started(command: list[str], home: Path) -> dict[str, float]:
    """Milliseconds: for the first answer from the start of the process, then for each one."""
    began = last = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home, env=environment(home)
    )
    found = {}
    for number, (name, method, params) in enumerate(STEPS):
        line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        now = time.perf_counter()
        assert "result" in answer, answer
        assert not answer["result"].get("isError"), answer
        found[name] = (now - last) * 1000
        last = now
    process.stdin.close()
    process.wait()
    found["all six, from the start"] = (last - began) * 1000
    return found


def bare(home: Path) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True, env=environment(home))
    return (time.perf_counter() - began) * 1000


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    beside = Path(sys.executable).parent / "yester"
    script = str(beside) if beside.exists() else shutil.which("yester") or sys.exit("no yester")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        subprocess.run(
            [script, "index", str(ROOT / "examples" / "sessions")],
            check=True, capture_output=True, cwd=home, env=environment(home),
        )  # fmt: skip
        measured: dict[str, list[float]] = {"python -c pass": []}
        for _ in range(rounds):
            measured["python -c pass"].append(bare(home))
            for name, taken in started([script, "mcp"], home).items():
                measured.setdefault(name, []).append(taken)
    base = statistics.median(measured["python -c pass"])
    print("| answer | median ms | best | worst | python -c pass = 1 |\n|---|---|---|---|---|")
    for name, taken in measured.items():
        middle = statistics.median(taken)
        ends = f"{min(taken):.0f} | {max(taken):.0f}"
        print(f"| {name} | {middle:.0f} | {ends} | {middle / base:.1f} |")


if __name__ == "__main__":
    main()
