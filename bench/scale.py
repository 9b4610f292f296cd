"""The same memory at different sizes, on both engines: building, room, questions, many at once.

    python bench/scale.py 100000 [350000 …] [--seconds 10]

Times of questions are processor time of this process and of the server's, since other work on the
machine must not count; percentiles are of the clock. Items are made up: words of a Zipf
distribution, a third of them in one project of twenty, messages of some 30 words.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing import Process, Queue
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import postgres
from yester.ingest.prepare import prepare_item
from yester.model import Filters, Item
from yester.recall.recall import Asked, answer_question
from yester.store import open_store
from yester.store.contract import Store
from yester.store.postgres.connection import parse_url

_BATCH, _ASKED = 1_000, 100
_WORDS = 60_000
_TICK = os.sysconf("SC_CLK_TCK")


def make_items(number: int, seed: int = 1, start: int = 0) -> Iterator[Item]:
    chance = random.Random(seed)
    weights = [1 / (rank + 5) for rank in range(_WORDS)]
    names = [_name_word(rank) for rank in range(_WORDS)]
    for at in range(start, start + number):
        words = chance.choices(names, weights, k=chance.randrange(10, 50))
        project = 0 if chance.random() < 1 / 3 else chance.randrange(1, 20)
        yield Item(
            f"m{at}", ("message", "prompt", "message", "message")[at % 4],
            project=f"name:p{project}", session=f"s{at // 40}", agent="claude-code",
            epoch=1_700_000_000_000 + at * 60_000, body=" ".join(words), prompt_number=at % 40 // 4,
        )  # fmt: skip


def _name_word(rank: int) -> str:
    letters, rest = "", rank + 26
    while rest:
        rest, letter = divmod(rest, 26)
        letters += "abcdefghijklmnopqrstuvwxyz"[letter] + "aeiou"[letter % 5]
    return letters


def server_seconds(url: str) -> float:
    """Processor time of the server's processes, of those that have ended as well."""
    if not url:
        return 0.0
    folder = url.partition("host=")[2].partition("&")[0]
    main = int((Path(folder) / "data" / "postmaster.pid").read_text().split()[0])
    total = sum(_process_times(main)[:4])
    for child in Path(f"/proc/{main}/task/{main}/children").read_text().split():
        total += sum(_process_times(int(child))[:2])
    return total / _TICK


def _process_times(process: int) -> list[int]:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return [0, 0, 0, 0]
    return [int(field) for field in fields[11:15]]


def build(store: Store, number: int) -> None:
    entries = map(prepare_item, make_items(number))
    while batch := list(islice(entries, _BATCH)):
        with store.transaction("items"):
            store.put(batch)


def draw_questions(number: int) -> list[str]:
    found = islice(make_items(number), 0, number, max(1, number // _ASKED))
    return [" ".join(sorted(item.body.split()[:8], key=len)[-4:]) for item in found]


def ask(store: Store, questions: list[str], filters: Filters, url: str) -> str:
    times, before, server = [], time.process_time(), server_seconds(url)
    for words in questions:
        began = time.perf_counter()
        answer_question(store, Asked(words, filters, 10, now=1_800_000_000_000))
        times.append((time.perf_counter() - began) * 1000)
    own = (time.process_time() - before) * 1000 / len(questions)
    theirs = (server_seconds(url) - server) * 1000 / len(questions)
    p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    return f"{own:.1f} + {theirs:.1f} ms CPU, p50 {p50:.1f} p95 {p95:.1f} ms"


def crowd(open_: Callable[[], Store], seconds: float, questions: list[str]) -> str:
    """8 writers of 20 items a transaction beside 16 readers."""
    counts: Queue[tuple[str, float]] = Queue()
    prepared = [
        [prepare_item(one) for one in make_items(500, number + 7, number * 10**7)]
        for number in range(1, 9)
    ]

    def write(number: int) -> None:
        store, done, began = open_(), 0, time.monotonic()
        entries = prepared[number]
        while time.monotonic() - began < seconds and done < len(entries):
            with store.transaction("items", 60.0):
                store.put(entries[done : done + 20])
            done += 20
        counts.put(("written", done / (time.monotonic() - began)))

    def read(number: int) -> None:
        store, done, began = open_(), 0, time.monotonic()
        while time.monotonic() - began < seconds:
            words = questions[(number + done) % len(questions)]
            answer_question(store, Asked(words, k=10, now=1_800_000_000_000))
            done += 1
        counts.put(("answered", done / seconds))

    tasks = [Process(target=write, args=(n,)) for n in range(8)]
    tasks += [Process(target=read, args=(n,)) for n in range(16)]
    for task in tasks:
        task.start()
    found = [counts.get() for _ in tasks]
    for task in tasks:
        task.join()
    written, answered = (
        sum(rate for name, rate in found if name == what) for what in ("written", "answered")
    )
    return f"{written:.0f} items and {answered:.0f} answers a second"


def measure(engine: str, number: int, folder: Path, seconds: float) -> None:
    url = postgres.address(folder) if engine == "PostgreSQL" else ""
    target: Path | str = url or folder

    def open_() -> Store:
        return open_store(target, now=1)

    server = postgres.server() if url else ""
    store, before, began = open_(), store_size(open_), time.process_time()
    at_server = server_seconds(server)
    build(store, number)
    if url:  # as a server does by itself within a minute
        with psycopg.connect(parse_url(url).url, autocommit=True) as connection:
            connection.execute("ANALYZE")
    own, theirs = time.process_time() - began, server_seconds(server) - at_server
    room = (store.size - before) / number
    print(f"{engine} {number:,}")
    print(f"  build       {own:.0f} + {theirs:.0f} s CPU, {room:,.0f} bytes an item")
    questions = draw_questions(number)
    ask(store, questions[:10], Filters(), server)
    print(f"  all         {ask(store, questions, Filters(), server)}")
    project = Filters(projects=("p0",))
    print(f"  a project   {ask(store, questions, project, server)}")
    if url:
        small = open_store(postgres.address(folder / "small"), now=1)
        build(small, 2_000)
        print(f"  small tenant beside it  {ask(small, questions, Filters(), server)}")
        small.close()
    print(f"  memory      {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    store.close()
    print(f"  8 writers, 16 readers   {crowd(open_, seconds, questions)}", flush=True)


def store_size(open_: Callable[[], Store]) -> int:
    store = open_()
    size = store.size
    store.close()
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    for number in given.sizes:
        for engine in ("SQLite", "PostgreSQL"):
            with TemporaryDirectory() as folder:
                task = Process(target=measure, args=(engine, number, Path(folder), given.seconds))
                task.start()
                task.join()


if __name__ == "__main__":
    main()
