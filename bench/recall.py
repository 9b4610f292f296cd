"""Recall measured at size: latency in process, warm, over stores made of real messages.

    python bench/recall.py MESSAGES.jsonl SIZE [SIZE …] [--keep FOLDER] [--vectors N]

MESSAGES.jsonl has one message per line: `text`, `project`, `session`, `epoch`, `role`, `kind`. A
store larger than the file is filled by going round: words that occur in at most three of the
messages get a number from the second round on, so rare words stay as rare as they are in life and
the vocabulary keeps growing, while frequent words grow with the store. Projects and sessions are
numbered likewise.
Questions: the first 12 words of 200 prompts, drawn with a fixed seed. With `--vectors` so many of
the newest items that are not tool output get a random vector about the model's mean (real ones take
hours to make and cost a search the same); the time then includes the question's own vector.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy

import yester
from yester.faces.python import OpenMemory
from yester.store.figures import content_counts
from yester.text.vectors import model_centre

WORD = re.compile(r"[A-Za-z_]{4,}")
RARE = 3


def messages(path: Path) -> list[dict]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def grown(source: list[dict], size: int) -> Iterator[dict]:
    held: Counter[str] = Counter()
    for message in source:
        held.update(set(WORD.findall(message["text"])))
    rare = {word for word, number in held.items() if number <= RARE}
    for at in range(size):
        turn, place = divmod(at, len(source))
        message = source[place]
        text, mark = message["text"], f"{turn}q"
        if turn:
            text = WORD.sub(lambda m, mark=mark: m[0] + mark if m[0] in rare else m[0], text)
        yield {
            "ref": str(at), "kind": "prompt" if message["role"] == "user" else "message",
            "project": f"{message['project']}-{turn // 3}",
            "session": f"{message['session']}-{turn}",
            "role": message["role"], "text": text, "epoch": message["epoch"] + turn,
        }  # fmt: skip


def give_vectors(memory: OpenMemory, number: int) -> None:
    """Vectors for the newest items that want them; those that have one keep it."""
    embedder = memory.embedder
    store = memory.store
    with store.transaction("items"):
        store.use_model(embedder.sha)
    chance = numpy.random.default_rng(4)
    while (missing := number - content_counts(store).vectors) > 0:
        waiting = store.unembedded(min(missing, 5_000))
        if not waiting:
            return
        with store.transaction("items"):
            for item in waiting:
                vector = model_centre(embedder.sha, embedder.dims) + 0.03 * chance.standard_normal(
                    embedder.dims
                )
                unit = (vector / numpy.linalg.norm(vector)).astype("float32")
                store.put_vectors(item, embedder.sha, [unit])


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("messages", type=Path)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--keep", type=Path)
    parser.add_argument(
        "--vectors", type=int, default=0, help="items with a vector; 0: words alone"
    )
    given = parser.parse_args()
    source = messages(given.messages)
    prompts = [
        m for m in source
        if m["role"] == "user" and m["kind"] == "text" and 4 <= len(m["text"].split()) <= 200
    ]  # fmt: skip
    questions = random.Random(4).sample(prompts, min(200, len(prompts)))
    print("| items | build CPU s | bytes per item | p50 ms | p95 ms | with a project p50 | p95 |")
    print("|---|---|---|---|---|---|---|")
    for size in given.sizes:
        home = given.keep / str(size) if given.keep else Path(tempfile.mkdtemp(prefix="yester-"))
        with yester.open(home) as memory:
            began = time.process_time()
            if not sum(content_counts(memory.store).items.values()):
                memory.add(grown(source, size), embed="later")
            if given.vectors:
                give_vectors(memory, given.vectors)
            else:
                memory.embedder = None
            built = time.process_time() - began
            stored = content_counts(memory.store).bytes / size
            times = {}
            for scope in ("all", "project"):
                for _ in range(2):  # the first round warms
                    taken = []
                    for question in questions:
                        text = " ".join(question["text"].split()[:12])
                        name = f"{question['project']}-0"
                        began = time.perf_counter()
                        memory.recall(text, project=name, scope=scope)
                        taken.append((time.perf_counter() - began) * 1000)
                    times[scope] = taken
            figures = [
                f"{percentile(times[scope], share):.1f}"
                for scope in ("all", "project")
                for share in (0.5, 0.95)
            ]
            print(f"| {size:,} | {built:.0f} | {stored:,.0f} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
