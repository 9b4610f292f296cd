"""An import of claude-mem measured: records a second, memory, again, and out as JSON lines.

    python bench/imports.py [RECORDS]      default: 10,000

Seconds are CPU seconds of a process of its own, its start included; the best of three, since other
work on the machine makes them longer.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

RATE, MEMORY = 3_000, 300  # what must be reached: records a second, MB
_WORDS = (  # noqa: SIM905
    "refund key order ledger port berth tariff invoice retry socket cache index worker queue "
    "schema migration cursor window token header branch commit review release harbour crane "
    "vessel pilot tide depth anchor rope customs permit manifest container gate scanner ticket"
).split()
_TABLES = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, memory_session_id TEXT,
  project TEXT, platform_source TEXT, started_at_epoch INTEGER);
CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, type TEXT,
  title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
  files_modified TEXT, discovery_tokens INTEGER, created_at_epoch INTEGER);
"""


def build_source(path: Path, records: int) -> None:
    """Observations as long as claude-mem's are, of 50 a session."""
    rng = random.Random(22)

    def say(words: int) -> str:
        named = (f"{rng.choice(_WORDS)}_{rng.randrange(400)}" for _ in range(words // 6))
        said = [*(rng.choice(_WORDS) for _ in range(words)), *named]
        rng.shuffle(said)
        return " ".join(said).capitalize() + "."

    with sqlite3.connect(path) as db:
        db.executescript(_TABLES)
        for number in range(records):
            session, epoch = f"m{number // 50}", 1_770_000_000_000 + 60_000 * number
            if number % 50 == 0:
                row = (None, f"c{session}", session, f"p{number % 7}", "claude", epoch)
                db.execute("INSERT INTO sdk_sessions VALUES (?, ?, ?, ?, ?, ?)", row)
            facts, concepts = json.dumps([say(10) for _ in range(4)]), json.dumps(["gotcha"])
            files = json.dumps([f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}.py"])
            values = (session, f"p{number % 7}", "discovery", say(7), say(9), facts, say(70))
            row = (None, *values, concepts, files, files, 900, epoch)
            db.execute(f"INSERT INTO observations VALUES ({', '.join('?' * 13)})", row)
    db.close()


def run_measured(home: Path, *words: str) -> tuple[float, float]:
    """CPU seconds and the most memory in MB of a command."""
    command = [sys.executable, "-m", "yester", "--home", str(home), *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    records = int(sys.argv[1]) if sys.argv[1:] else 10_000
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, lines = folder / "claude-mem.db", folder / "all.jsonl"
        build_source(source, records)
        steps = [
            ("import", "home", ("import", "claude-mem", str(source))),
            ("again, nothing new", "home", ("import", "claude-mem", str(source))),
            ("export as JSON lines", "home", ("export", "jsonl", str(lines))),
            ("import of that", "other", ("import", "yester", str(lines))),
        ]
        print("| step | CPU s | records a second | peak MB |\n|---|---|---|---|")
        missed = []
        for label, where, words in steps:
            runs = [run_measured(folder / f"{where}{number}", *words) for number in range(3)]
            seconds, memory = min(runs)[0], max(memory for _, memory in runs)
            rate = records / seconds
            print(f"| {label} | {seconds:.2f} | {rate:,.0f} | {memory:.0f} |")
            if "import" in label and (rate < RATE or memory > MEMORY):
                missed.append(label)
    print(f"missed: {', '.join(missed)}" if missed else "all within their bounds")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
