"""What grows with the store: commands, prompts and the viewer's first page, measured at sizes.

    python -m bench.growth MESSAGES.jsonl HOME SIZE [SIZE …] [--vectors N]

One store in HOME is grown from size to size (`bench.recall` says from what); a second call goes on
with it. Every figure is CPU time, commands with the start of the program, the median of three;
`prompt` and `recall` are asked in process, by words and, where `--vectors` gives so many of the
newest items one, with the model; `page` is what the server spends on what the viewer asks for
first.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import yester
from bench.recall import give_vectors, grown, messages, percentile
from bench.soak import PAGES, ask_pages
from yester.faces.python import OpenMemory
from yester.operations.context import ContextRequest, build_context
from yester.store.figures import content_counts

QUESTIONS, ROUNDS, BATCH = 60, 3, 5_000
COMMANDS = {
    "status": ("status", "--json"), "stats": ("stats", "--json"), "start": ("context",),
    "doctor": ("doctor", "--json"), "backup": ("backup",),
}  # fmt: skip
SLOW = ("doctor", "backup")  # once is enough


def cpu_of_command(home: Path, *words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "yester", "--home", str(home), *words]
    environ = {**os.environ, "YESTER_EMBEDDER": "none", "PYTHONPATH": os.pathsep.join(sys.path)}
    with tempfile.TemporaryDirectory() as cwd:
        subprocess.run(command, env=environ, cwd=cwd, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_of_calls(call: Callable[[str], object], texts: list[str]) -> str:
    """Milliseconds, p50 / p95, of a second round."""
    for text in texts:
        call(text)
    taken = []
    for text in texts:
        began = time.process_time()
        call(text)
        taken.append((time.process_time() - began) * 1000)
    return f"{percentile(taken, 0.5):.1f} / {percentile(taken, 0.95):.1f}"


def cpu_of_page(home: Path) -> float:
    """Seconds of the server's for one round of what the viewer's first page asks."""
    command = [sys.executable, "-m", "yester", "--home", str(home), "serve"]
    started = subprocess.run([*command, "--background"], capture_output=True, text=True, check=True)
    port = started.stdout.strip().rpartition(":")[2]
    stat = Path(f"/proc/{(home / 'run' / 'serve.lock').read_text().strip()}/stat")

    def spent() -> float:
        words = stat.read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    try:
        ask_pages(home, port)
        began = spent()
        for _ in range(5):
            ask_pages(home, port)
        return (spent() - began) / 5
    finally:
        subprocess.run([*command, "--stop"], capture_output=True, check=True)


def add_items(memory: OpenMemory, made: Iterator[dict]) -> float:
    """CPU seconds without those of making them."""
    spent = 0.0
    while some := list(islice(made, BATCH)):
        began = time.process_time()
        memory.add(some, embed="later")
        spent += time.process_time() - began
    return spent


def ask_prompt(memory: OpenMemory, text: str) -> object:
    return build_context(memory, ContextRequest(event="UserPromptSubmit", prompt=text))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("messages", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--vectors", type=int, default=0)
    given = parser.parse_args()
    source = messages(given.messages)
    prompts = [m["text"] for m in source if m["role"] == "user" and len(m["text"].split()) >= 4]
    chosen = random.Random(4).sample(prompts, min(QUESTIONS, len(prompts)))
    questions = [" ".join(text.split()[:12]) for text in chosen]
    names = ("index 10,000", "recall p50 / p95", "prompt p50 / p95", *COMMANDS, "page")
    if given.vectors:
        names += ("recall with vectors", "prompt with vectors")
    print(f"| items | vectors | {' | '.join(names)} |\n|{'---|' * (len(names) + 2)}", flush=True)
    for size in given.sizes:
        with yester.open(given.home) as memory:
            counts = content_counts(memory.store)
            held = sum(counts.items.values())
            indexing = add_items(memory, islice(grown(source, size), held, None))
            indexing *= 10_000 / max(size - held, 1)
            if given.vectors:
                give_vectors(memory, min(given.vectors, size // 2))
            vectors = content_counts(memory.store).vectors
            model, memory.embedder = memory.embedder if given.vectors else None, None
            row = [f"{indexing:.1f} s"]
            row.append(cpu_of_calls(memory.recall, questions))
            row.append(cpu_of_calls(lambda text, m=memory: ask_prompt(m, text), chosen))
            by_model = []
            if model is not None:
                memory.embedder = model
                by_model.append(cpu_of_calls(memory.recall, questions))
                by_model.append(cpu_of_calls(lambda text, m=memory: ask_prompt(m, text), chosen))
        for name, words in COMMANDS.items():
            rounds = 1 if name in SLOW else ROUNDS
            spent = statistics.median(cpu_of_command(given.home, *words) for _ in range(rounds))
            row.append(f"{spent:.2f} s")
        with suppress(FileNotFoundError):
            shutil.rmtree(given.home / "backups")
        row.append(f"{cpu_of_page(given.home) * 1000:.0f} ms for {len(PAGES)}")
        print(f"| {size:,} | {vectors:,} | {' | '.join(row + by_model)} |", flush=True)


if __name__ == "__main__":
    main()
