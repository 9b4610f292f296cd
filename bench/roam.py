"""Items brought from one home into another over a folder: CPU seconds and bytes, each side and each
step in a process of its own.

    python bench/roam.py --items 100000
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from yester.ingest.prepare import prepare_item
from yester.model import Item
from yester.sharing.exchange import Side
from yester.sharing.keys import Key, load_key
from yester.sharing.roam import Roam
from yester.sharing.transports import Folder
from yester.store import open_store

NOW = 1_800_000_000_000


def make_items(number: int) -> list[Item]:
    """Messages as long as real ones are: most are short, some are a page."""
    rng = random.Random(number)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(3, 10))) for _ in range(20_000)]
    weights = [1 / (at + 5) for at in range(len(words))]
    return [
        Item(
            f"r{at}", "message", f"git:example.com/sam/p{at % 7}", f"s{at // 60}",
            source="claude-code", agent="claude-code", role="assistant", epoch=NOW + at,
            body=" ".join(rng.choices(words, weights, k=int(rng.lognormvariate(4, 1)) + 3)),
        )
        for at in range(number)
    ]  # fmt: skip


def fill(home: Path, number: int) -> None:
    items, store = make_items(number), open_store(home, now=NOW)
    for at in range(0, number, 1_000):
        with store.transaction("items"):
            store.put([prepare_item(item) for item in items[at : at + 1_000]])
    store.close()


def say_one(home: Path) -> None:
    store = open_store(home, now=NOW)
    with store.transaction("items"):
        store.put([prepare_item(Item("new", "message", "name:p", body="one more is said here"))])
    store.close()


def step(what: str, folder: Path, number: int) -> None:
    """One step, in this process."""
    home = folder / ("one" if what in ("fill", "begin", "again", "say", "tell") else "other")
    if what == "fill":
        fill(home, number)
        return
    if what == "say":
        say_one(home)
        return
    store = open_store(home, now=NOW)
    roam = Roam(Side(home, store, NOW), Folder(folder / "log"))
    if what == "begin":
        roam.begin_log()
    if what == "join":
        roam.join_log(Key.from_code(load_key(folder / "one").code))
    report = roam.exchange()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    outcome = {name: count for name, count in report.outcome.items() if count}
    print(
        f"{what:6} {usage.ru_utime + usage.ru_stime:7.2f} CPU s  {usage.ru_maxrss / 1024:5.0f} MB"
        f"  read {report.read:3} segments, written {report.written:3},"
        f" {report.bytes_written / 1e6:.3f} MB  {outcome}"
    )
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        step(given.step, given.folder, given.items)
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "log").mkdir()
        # What follows `join`: nothing is new; then one item is.
        for what in ("fill", "begin", "join", "again", "still", "say", "tell", "hear"):
            words = [sys.executable, __file__, "--items", str(given.items), "--step", what]
            subprocess.run([*words, "--folder", str(folder)], check=True)
        size = sum(path.stat().st_size for path in (folder / "log").rglob("*") if path.is_file())
        stores = [(folder / home / "yester.db").stat().st_size for home in ("one", "other")]
        print(
            f"log {size / 1e6:.1f} MB; stores {' and '.join(f'{s / 1e6:.0f}' for s in stores)} MB"
        )


if __name__ == "__main__":
    main()
