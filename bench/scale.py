"""The same memory at different sizes, on both engines: building, room, questions, many at once.

    python bench/scale.py MESSAGES.jsonl SIZE [SIZE …] [--vectors 0.43] [--keep FOLDER]

Stores grow from real messages as `bench/recall.py` says; so large a share of the items gets a
vector about the model's mean. A question is the first 12 words of one of 200 real prompts, asked of
both engines in turn, so that other work on the machine meets both alike: of each the least of three
times counts, in processor time of this process and of its server process, and by the clock. The
question's own vector is not in it. `--keep` leaves the stores in a folder, for the server that
`YESTER_TEST_POSTGRES` names.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import islice
from multiprocessing import Process, Queue
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy
import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.recall import grown, messages, percentile
from tests import postgres
from yester.ingest.prepare import prepare_item
from yester.model import Entry, Filters, Item, Probe, replace
from yester.recall.recall import Asked, answer_question
from yester.store import open_store
from yester.store.contract import Store
from yester.store.figures import content_counts
from yester.store.postgres.connection import parse_url
from yester.store.postgres.index import signed_hash
from yester.text.query import parse_query
from yester.text.terms import inverse_frequency, term_hash
from yester.text.vectors import model_centre

ENGINES = ("SQLite", "PostgreSQL")
_BATCH, _ASKED, _TIMES = 1_000, 200, 3
_TICK = os.sysconf("SC_CLK_TCK")
_NOW = 1_800_000_000_000
_SMALL = 2_000  # items of another tenant


class MadeVectors:
    """What stands for a model: a vector about its mean, which costs nothing."""

    name, sha, dims, band = "local", "made", 384, (0.0, 1.0)

    def __init__(self, seed: int) -> None:
        self._chance = numpy.random.default_rng(seed)
        self._centre = model_centre(self.sha, self.dims)

    def embed_query(self, _text: str) -> Any:
        vector = self._centre + self._chance.standard_normal(self.dims)
        return (vector / numpy.linalg.norm(vector)).astype("float32")


class Cost(NamedTuple):
    """Of one question, in milliseconds."""

    own: float
    server: float
    clock: float


def make_items(source: list[dict[str, Any]], number: int) -> Iterator[Item]:
    for one in grown(source, number):
        yield Item(
            one["ref"], one["kind"], project=f"name:{one['project']}", session=one["session"],
            agent="claude-code", epoch=one["epoch"] * 1000, body=one["text"], role=one["role"],
        )  # fmt: skip


def server_seconds(store: Store) -> float:
    """Processor time of the process that serves this connection."""
    database = getattr(store, "_db", None)
    connection = getattr(database, "connection", None)
    if not isinstance(connection, psycopg.Connection):
        return 0.0
    process = connection.info.backend_pid
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def build(stores: Mapping[str, Store], source: list[dict[str, Any]], number: int) -> None:
    """Each store that is empty; what is common to all is done once."""
    empty = {name: store for name, store in stores.items() if not content_counts(store).items}
    spent: defaultdict[str, float] = defaultdict(float)
    if not empty:
        return
    items = make_items(source, number)
    while True:
        began = time.process_time()
        entries = [prepare_item(item) for item in islice(items, _BATCH)]
        if not entries:
            break
        spent["preparing"] += time.process_time() - began
        for name, store in empty.items():
            began, at_server = time.process_time(), server_seconds(store)
            with store.transaction("items", 600.0):
                store.put(entries)
            spent[name] += time.process_time() - began
            spent[f"{name}'s server"] += server_seconds(store) - at_server
    print("  built in", ", ".join(f"{name} {took:.0f}" for name, took in spent.items()), "s CPU")


def give_vectors(store: Store, wanted: int) -> None:
    """Vectors for the newest items."""
    made = MadeVectors(4)
    with store.transaction("items", 600.0):
        store.use_model(made.sha)
    missing = wanted - content_counts(store).vectors
    while missing > 0 and (waiting := store.unembedded(min(missing, 2_000))):
        with store.transaction("items", 600.0):
            for item in waiting:
                store.put_vectors(item, made.sha, [made.embed_query("")])
        missing -= len(waiting)


def measure_questions(
    stores: Mapping[str, Store], ask: Callable[[Store, Any], object], questions: list[Any]
) -> dict[str, list[Cost]]:
    """Of each question the least, by engine."""
    costs: dict[str, list[Cost]] = {name: [] for name in stores}
    for question in questions:
        for name, store in stores.items():
            tried = []
            for _ in range(_TIMES):
                server, own, clock = server_seconds(store), time.process_time(), time.perf_counter()
                ask(store, question)
                clock, own = time.perf_counter() - clock, time.process_time() - own
                tried.append((own, server_seconds(store) - server, clock))
            least = (1000 * min(column) for column in zip(*tried, strict=True))
            costs[name].append(Cost(*least))
    return costs


def print_costs(label: str, costs: Mapping[str, list[Cost]]) -> None:
    kinds: Mapping[str, Callable[[Cost], float]] = {
        "CPU": lambda one: one.own + one.server, "server's": lambda one: one.server,
        "clock": lambda one: one.clock,
    }  # fmt: skip
    for name, found in costs.items():
        shown = [
            f"{kind} p50 {percentile(values, 0.5):.1f} p95 {percentile(values, 0.95):.1f}"
            for kind, cost in kinds.items()
            if (values := [cost(one) for one in found])
        ]
        print(f"  {label:22} {name:11} {', '.join(shown)} ms", flush=True)
    if len(costs) > 1:
        low, high = (
            {
                kind: percentile([cost(one) for one in costs[name]], 0.95)
                for kind, cost in kinds.items()
            }
            for name in ENGINES
        )
        ratios = (f"{kind} {high[kind] / low[kind]:.2f} x" for kind in ("CPU", "clock"))
        print(f"  {label:22} ratio p95   {', '.join(ratios)}", flush=True)


def ask(
    store: Store, question: dict[str, Any], embedder: Any = None, project: bool = False
) -> object:
    words = " ".join(question["text"].split()[:12])
    filters = Filters(projects=(f"{question['project']}-0",)) if project else Filters()
    asked = Asked(words, filters, 10, now=_NOW)
    return answer_question(store, asked, embedder=embedder)


def choose_candidates(store: Store, question: dict[str, Any], project: bool = False) -> None:
    """Only what is found by the lists of the question's terms; nothing of it is read."""
    words = " ".join(question["text"].split()[:12])
    filters = Filters(projects=(f"{question['project']}-0",)) if project else Filters()
    rows: Any = store
    query = parse_query(words)
    terms = dict.fromkeys(query.terms, 1.0)
    rows._share_frequencies(list(terms), filters)
    held = dict(rows._read(2, "SELECT term, items FROM held"))
    weighted = [
        (term, inverse_frequency(number, 10**6), number)
        for term in terms
        if (number := held.get(signed_hash(term_hash(term)), 0))
    ]
    rows._share_choice(weighted, Probe(filters, terms, words=220, must=query.must), [filters])
    list(rows._read(1, "SELECT id FROM chosen"))
    rows._db.forget_reads()


def crowd(open_: Callable[[], Store], seconds: float, source: list[dict[str, Any]]) -> str:
    """8 writers of 20 items a transaction, by themselves and beside 16 readers."""
    entries = [prepare_item(item) for item in make_items(source, 8_000)]
    found = []
    for readers in (0, 16):
        counts: Queue[tuple[str, float]] = Queue()
        run = f"{readers}-{time.time_ns()}"
        new = [_renamed(entry, f"{run}-{at}") for at, entry in enumerate(entries)]
        tasks = [
            Process(target=_write, args=(open_, new[number::8], seconds, counts))
            for number in range(8)
        ]
        tasks += [
            Process(target=_read, args=(open_, source, number, seconds, counts))
            for number in range(readers)
        ]
        for task in tasks:
            task.start()
        rates = [counts.get() for _ in tasks]
        for task in tasks:
            task.join()
        written, answered = (
            sum(rate for name, rate in rates if name == what) for what in ("written", "answered")
        )
        found.append(f"{written:.0f} items, {answered:.0f} answers a second")
    return f"{found[0]}; beside 16 readers {found[1]}"


def _renamed(entry: Entry, ref: str) -> Entry:
    return replace(entry, item=replace(entry.item, ref=ref), hash=ref.encode())


def _write(open_: Callable[[], Store], entries: list[Any], seconds: float, counts: Any) -> None:
    store, done, began = open_(), 0, time.monotonic()
    while time.monotonic() - began < seconds and done < len(entries):
        with store.transaction("items", 60.0):
            store.put(entries[done : done + 20])
        done += 20
    counts.put(("written", done / (time.monotonic() - began)))


def _read(
    open_: Callable[[], Store],
    source: list[dict[str, Any]],
    number: int,
    seconds: float,
    counts: Any,
) -> None:
    store, done, began = open_(), 0, time.monotonic()
    while time.monotonic() - began < seconds:
        ask(store, source[(number * 7 + done) % len(source)])
        done += 1
    counts.put(("answered", done / seconds))


def resident(process: int | str) -> float:
    """Of its memory in MB, what is shared counted in parts."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def target_of(engine: str, folder: Path) -> str | Path:
    return postgres.address(folder) if engine == "PostgreSQL" else folder


def measure(given: argparse.Namespace, number: int, folder: Path) -> None:
    source = messages(given.messages)
    prompts = [
        one for one in source
        if one["role"] == "user" and one["kind"] == "text" and 4 <= len(one["text"].split()) <= 200
    ]  # fmt: skip
    questions = random.Random(4).sample(prompts, min(_ASKED, len(prompts)))
    engines = {engine: folder / engine for engine in ENGINES if engine in given.engine}
    stores = {name: open_store(target_of(name, place), now=1) for name, place in engines.items()}
    print(f"{number:,} items; load {os.getloadavg()[0]:.1f}", flush=True)
    build(stores, source, number)
    for store in stores.values():
        give_vectors(store, int(number * given.vectors))
    for name, store in stores.items():
        if name == "PostgreSQL":  # as a server does by itself within a minute
            with psycopg.connect(parse_url(postgres.server()).url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
        print(f"  {name} takes {store.size / number:,.0f} bytes an item", flush=True)
    if given.build:
        return
    made = MadeVectors(9)
    ways: list[tuple[str, Callable[[Store, Any], object]]] = [
        ("words", ask), ("words, project", partial(ask, project=True)),
    ]  # fmt: skip
    if given.vectors:
        ways += [("vectors", partial(ask, embedder=made)),
                 ("vectors, project", partial(ask, embedder=made, project=True))]  # fmt: skip
    for label, way in ways:
        measure_questions(stores, way, questions[:10])
        print_costs(label, measure_questions(stores, way, questions))
    if server := stores.get("PostgreSQL"):
        for label, project in (("candidates alone", False), ("candidates, project", True)):
            choose = partial(choose_candidates, project=project)
            print_costs(label, measure_questions({"PostgreSQL": server}, choose, questions))
        with closing(open_store(postgres.address(folder / "small"), now=1)) as small:
            build({"small": small}, source, _SMALL)
            print_costs(
                "small tenant beside it", measure_questions({"PostgreSQL": small}, ask, questions)
            )
        process = server._db.connection.info.backend_pid  # type: ignore[attr-defined]
        print(f"  memory of the server's process {resident(process):.0f} MB")
    print(f"  memory of this process {resident('self'):.0f} MB")
    for store in stores.values():
        store.close()
    for name, place in engines.items():
        open_ = partial(open_store, target_of(name, place), now=1)
        print(f"  {name}: 8 writers {crowd(open_, given.seconds, source)}", flush=True)
    print(f"  load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("messages", type=Path)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--vectors", type=float, default=0.0, help="share of items with a vector")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--engine", nargs="+", choices=ENGINES, default=ENGINES)
    parser.add_argument("--build", action="store_true", help="build and keep, measure nothing")
    given = parser.parse_args()
    for number in given.sizes:
        with TemporaryDirectory() as scratch:
            folder = (given.keep or Path(scratch)) / str(number)
            task = Process(target=measure, args=(given, number, folder))
            task.start()
            task.join()


if __name__ == "__main__":
    main()
