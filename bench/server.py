"""The HTTP server measured: rates, memory, and whether its clients disturb the hooks.

    python bench/server.py STORE [--seconds 5] [--no-model]

STORE is a yester home with a large store (bench/recall.py --keep makes one); it is copied, never
written to. Everything runs for real: `yester serve` and the worker as processes, hooks as the
client calls them, clients in processes of their own with connections that are kept alive. On a
machine that does other things as well, the server's own processor time for a request says more than
the rate; beside it stands that of the same questions asked in process.

Questions: the first 12 words of 200 prompts of the store, drawn with a fixed seed. `--no-model`
searches by words alone; otherwise a store with vectors is asked through the worker.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote_plus

import apsw

import yester

HOOK = Path(__file__).parent.parent / "plugin" / "hooks" / "hook.py"
PYTHON = os.path.realpath(sys.executable)
TICKS = os.sysconf("SC_CLK_TCK")
ROUNDS, EACH = 4, 20  # hooks, with and without what may disturb them


class Place:
    """A user's home with a copy of the store, a server and a worker of its own."""

    def __init__(self, folder: Path, store: Path, model: bool) -> None:
        self.user, self.project = folder / "user", folder / "project"
        self.home = self.user / ".yester"
        self.home.mkdir(parents=True, mode=0o700)
        self.project.mkdir()
        for name in ("yester.db", "yester.db-wal"):
            if (store / name).exists():
                shutil.copy(store / name, self.home / name)
        db = apsw.Connection(str(self.home / "yester.db"))
        db.execute("DELETE FROM unembedded")  # or the worker would make vectors all the while
        db.close()
        self.env = {"HOME": str(self.user), "PATH": os.environ["PATH"], "CLAUDECODE": "1"}
        if not model:
            self.env["YESTER_EMBEDDER"] = "none"
        self.numbers = 0

    def yester(self, *words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "yester", "--home", str(self.home), *words],
            capture_output=True, text=True, check=True, env={**os.environ, **self.env},
        ).stdout  # fmt: skip

    def serve(self) -> None:
        began = time.perf_counter()
        self.port = int(self.yester("serve", "--background").strip().rpartition(":")[2])
        self.started = time.perf_counter() - began
        self.token = (self.home / "token").read_text().strip()
        self.pid = int((self.home / "run" / "serve.lock").read_text())

    def request(self, path: str) -> bytes:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        return f"{head}Authorization: Bearer {self.token}\r\n\r\n".encode()

    def questions(self) -> list[str]:
        db = apsw.Connection(str(self.home / "yester.db"))
        texts = [row[0] for row in db.execute(
            "SELECT body FROM item WHERE kind = 'prompt' AND length(body) > 40 LIMIT 20000"
        )]  # fmt: skip
        db.close()
        chance = random.Random(4)
        return [" ".join(chance.choice(texts).split()[:12]) for _ in range(200)]

    def hook(self) -> float:
        """Milliseconds of a prompt's hook, from its start to its end."""
        self.numbers += 1
        told = {
            "session_id": "0b0e5c1e-0000-4000-8000-000000000001", "cwd": str(self.project),
            "hook_event_name": "UserPromptSubmit", "prompt_id": f"p{self.numbers}",
            "transcript_path": str(self.user / "none.jsonl"),
            "prompt": f"Why does the import of orders number {self.numbers} take so long?",
        }  # fmt: skip
        began = time.perf_counter()
        subprocess.run(
            [PYTHON, "-I", "-S", str(HOOK), "UserPromptSubmit"], input=json.dumps(told).encode(),
            capture_output=True, cwd=self.project, env=self.env, check=True,
        )  # fmt: skip
        return (time.perf_counter() - began) * 1000


def cpu(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS


def resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def exchange(client: socket.socket, request: bytes) -> bytes:
    client.sendall(request)
    found = b""
    while b"\r\n\r\n" not in found:
        found += client.recv(1 << 16)
    head, _, body = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), found[:300]
    length = int(next(line for line in head.split(b"\r\n") if line.startswith(b"content-le"))[16:])
    while len(body) < length:
        body += client.recv(1 << 16)
    return body


def client(port: int, requests: list[bytes], seconds: float, into, stop=None) -> None:
    took = []
    with socket.create_connection(("127.0.0.1", port)) as one:
        end = time.perf_counter() + seconds
        at = random.randrange(len(requests))
        while time.perf_counter() < end and not (stop and stop.is_set()):
            began = time.perf_counter()
            exchange(one, requests[at % len(requests)])
            took.append((time.perf_counter() - began) * 1000)
            at += 1
    into.put(took)


def rate(place: Place, what: str, requests: list[bytes], seconds: float, clients: int) -> None:
    into: multiprocessing.Queue = multiprocessing.Queue()
    before, began = cpu(place.pid), time.perf_counter()
    processes = [
        multiprocessing.Process(target=client, args=(place.port, requests, seconds, into))
        for _ in range(clients)
    ]
    for one in processes:
        one.start()
    took = sorted(ms for _ in processes for ms in into.get())
    for one in processes:
        one.join()
    spent, passed = cpu(place.pid) - before, time.perf_counter() - began
    print(
        f"{what}, {clients} clients: {len(took) / seconds:,.0f}/s; "
        f"p50 {took[len(took) // 2]:.1f} ms, p99 {took[len(took) * 99 // 100]:.1f} ms; "
        f"server {spent * 1000 / len(took):.2f} ms CPU each ({len(took) / spent:,.0f} per "
        f"CPU-second, {spent / passed:.0%} of a core)"
    )


def in_process(place: Place, questions: list[str], model: bool) -> None:
    os.environ["YESTER_EMBEDDER"] = "" if model else "none"
    with yester.open(place.home) as memory:
        for one in questions[:40]:
            memory.recall(one, k=20)
        before = time.process_time()
        for one in questions:
            memory.recall(one, k=20)
        spent = (time.process_time() - before) / len(questions)
    print(f"recall, in process: {spent * 1000:.2f} ms CPU each ({1 / spent:,.0f} per CPU-second)")


def hooks(place: Place, what: str, disturbing: Callable[[], AbstractContextManager[None]]) -> None:
    """With and without by turns: what else the machine does meets both alike."""
    took: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        took[False] += [place.hook() for _ in range(EACH)]
        with disturbing():
            took[True] += [place.hook() for _ in range(EACH)]
    told = []
    for disturbed, ms in took.items():
        ms.sort()
        told.append(
            f"{what if disturbed else 'alone'} p50 {statistics.median(ms):.0f}, "
            f"p90 {ms[len(ms) * 9 // 10]:.0f}, worst {ms[-1]:.0f} ms"
        )
    print(f"prompt hook: {'; '.join(told)}")


@contextmanager
def listeners(place: Place, number: int = 200) -> Iterator[None]:
    found = []
    for _ in range(number):
        one = socket.create_connection(("127.0.0.1", place.port))
        one.sendall(place.request("/stream"))
        assert one.recv(15).startswith(b"HTTP/1.1 200")
        found.append(one)
    yield
    for one in found:
        one.close()


@contextmanager
def dawdlers(place: Place, number: int = 60) -> Iterator[None]:
    """Half of them never end their request, half never read their answer."""
    found = []
    for at in range(number):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", place.port))
        whole = place.request("/api/items?limit=100&format=full")
        one.sendall(whole[:-3] if at % 2 else whole)
        found.append(one)
    with listeners(place):
        yield
    for one in found:
        one.close()


@contextmanager
def askers(place: Place, requests: list[bytes], number: int = 2) -> Iterator[None]:
    into: multiprocessing.Queue = multiprocessing.Queue()
    end = multiprocessing.Event()
    busy = [
        multiprocessing.Process(target=client, args=(place.port, requests, 600.0, into, end))
        for _ in range(number)
    ]
    for process in busy:
        process.start()
    yield
    end.set()
    for process in busy:
        into.get()
        process.join()


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("store", type=Path)
    asked.add_argument("--seconds", type=float, default=5.0)
    asked.add_argument("--no-model", action="store_true")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), given.store, not given.no_model)
        place.yester("worker", "start")
        try:
            place.serve()
            print(f"started in {place.started:.2f} s; {resident(place.pid):.0f} MB")
            health = [place.request("/health")]
            questions = place.questions()
            recalls = [place.request(f"/api/search?query={quote_plus(one)}") for one in questions]
            with socket.create_connection(("127.0.0.1", place.port)) as one:
                for request in recalls[:40]:
                    exchange(one, request)
            print(f"after 40 questions: {resident(place.pid):.0f} MB")
            rate(place, "health", health, given.seconds, 2)
            for clients in (1, 2, 4):
                rate(place, "recall", recalls, given.seconds, clients)
            in_process(place, questions, not given.no_model)
            print(f"after them: {resident(place.pid):.0f} MB")
            with listeners(place):
                before = cpu(place.pid)
                time.sleep(5)
                print(
                    f"200 idle streams: {resident(place.pid):.0f} MB, "
                    f"{(cpu(place.pid) - before) / 5:.1%} of a core"
                )
            for _ in range(5):
                place.hook()
            hooks(place, "with 200 idle streams", lambda: listeners(place))
            hooks(place, "and 60 clients that send or read nothing", lambda: dawdlers(place))
            hooks(place, "with two that ask without a pause", lambda: askers(place, recalls))
        finally:
            place.yester("serve", "--stop")
            place.yester("worker", "stop")


if __name__ == "__main__":
    main()
