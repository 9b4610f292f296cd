"""Quality measured: how often the right memory is among the first ten.

    python bench/quality.py FOLDER SET [SET …] [--scope project|all] [--questions N]

Sets, by what is in FOLDER (each is public and not part of this repository):

    codemem[:short]   codemem/dev/{memories,queries}.jsonl: commits, and later ones that point back
                      at them; replayed in time order, so that only older ones can be found
    locomo            locomo/locomo10.json: turns of long conversations (categories 1 to 4)
    beam              beam/chats/100K/N/{chat.json,probing_questions/probing_questions.json}

Everything goes through `yester.open()`, `add` and `recall`. Intervals: bootstrap over questions.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yester


@dataclass
class Question:
    text: str
    project: str
    relevant: set[str]
    epoch: float = 2**33


@dataclass
class Group:
    """A store of its own with its questions; `replay` adds items only up to a question's time."""

    items: list[dict[str, Any]]
    questions: list[Question] = field(default_factory=list)
    replay: bool = False


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        yield from map(json.loads, file)


def codemem(folder: Path, text: str) -> Iterator[Group]:
    items = [
        {
            "ref": m["id"], "kind": "observation", "project": m["project"], "epoch": m["epoch"],
            "title": m.get("title") or "", "text": m.get("body") or "",
            "files": m.get("files") or [], "type": m.get("type"),
        }
        for m in lines(folder / "codemem" / "dev" / "memories.jsonl")
    ]  # fmt: skip
    questions = [
        Question(q[text], q["project"], set(q["relevant_ids"]), q["epoch"])
        for q in lines(folder / "codemem" / "dev" / "queries.jsonl")
    ]
    items.sort(key=lambda item: item["epoch"])
    questions.sort(key=lambda question: question.epoch)
    yield Group(items, questions, replay=True)


def locomo(folder: Path, _: str) -> Iterator[Group]:
    for talk in json.loads((folder / "locomo" / "locomo10.json").read_text("utf-8")):
        project, items = talk["sample_id"], []
        said = talk["conversation"]
        numbers = sorted(int(m[1]) for key in said if (m := re.fullmatch(r"session_(\d+)", key)))
        for number in numbers:
            begun = _moment(said.get(f"session_{number}_date_time", ""))
            for at, turn in enumerate(said[f"session_{number}"]):
                shown = turn.get("blip_caption")
                picture = f" [shares image: {shown}]" if shown else ""
                items.append({
                    "ref": turn["dia_id"], "kind": "message", "project": project,
                    "session": str(number), "epoch": begun + 30 * at,
                    "text": f"{turn['speaker']}: {turn['text']}{picture}",
                })  # fmt: skip
        known = {item["ref"] for item in items}
        group = Group(items)
        for asked in talk["qa"]:
            found = re.findall(r"D:?(\d+):(\d+)", " ".join(map(str, asked.get("evidence") or [])))
            relevant = {f"D{int(a)}:{int(b)}" for a, b in found} & known
            if relevant and asked.get("category") in (1, 2, 3, 4):
                group.questions.append(Question(asked["question"], project, relevant))
        yield group


def _moment(text: str) -> float:
    try:
        return (
            datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()
        )
    except ValueError:
        return 0.0


def beam(folder: Path, _: str) -> Iterator[Group]:
    for chat in sorted((folder / "beam" / "chats" / "100K").iterdir(), key=lambda p: int(p.name)):
        items: dict[str, dict[str, Any]] = {}
        for batch in json.loads((chat / "chat.json").read_text("utf-8")):
            for message in (message for turn in batch["turns"] for message in turn):
                text = re.sub(r"\s*->->\s*[\d,N/A\s]+$", "", message["content"])
                items.setdefault(str(message["id"]), {
                    "ref": str(message["id"]), "kind": "message", "project": chat.name,
                    "epoch": int(message["id"]), "text": f"{message['role']}: {text}",
                })  # fmt: skip
        group = Group(list(items.values()))
        asked = json.loads(
            (chat / "probing_questions" / "probing_questions.json").read_text("utf-8")
        )
        for kind, questions in asked.items():
            if kind in ("abstention", "summarization", "event_ordering"):
                continue  # they have no single source message
            for one in questions:
                relevant = set(_numbers(one.get("source_chat_ids"))) & items.keys()
                if relevant:
                    group.questions.append(Question(one["question"], chat.name, relevant))
        yield group


def _numbers(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _numbers(part)
    elif not isinstance(value, bool) and str(value).isdigit():
        yield str(int(value))


SETS = {"codemem": codemem, "locomo": locomo, "beam": beam}


def answered(group: Group, scope: str, step: int) -> Iterator[tuple[float, float]]:
    """(R@10, reciprocal rank within ten) of each question."""
    with tempfile.TemporaryDirectory() as home, yester.open(home) as memory:
        added = 0 if group.replay else len(group.items)
        memory.add(group.items[:added])
        for question in group.questions[::step]:
            upto = added
            while upto < len(group.items) and group.items[upto]["epoch"] < question.epoch:
                upto += 1
            if upto > added:
                memory.add(group.items[added:upto])
                added = upto
            hits = memory.recall(
                question.text, project=question.project, scope=scope, now=question.epoch
            )
            good = [hit.ref in question.relevant for hit in hits]
            first = good.index(True) + 1 if any(good) else 0
            yield sum(good) / len(question.relevant), 1 / first if first else 0.0


def interval(values: list[float], rounds: int = 1000) -> tuple[float, float]:
    rng, size = random.Random(1), len(values)
    means = sorted(sum(rng.choices(values, k=size)) / size for _ in range(rounds))
    return means[int(0.025 * rounds)], means[int(0.975 * rounds)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="+", metavar="SET")
    parser.add_argument("--scope", choices=["project", "all"], default="project")
    parser.add_argument("--questions", type=int, default=0, help="about so many of each set")
    given = parser.parse_args()
    print("| set | scope | questions | R@10 | 95 % interval | MRR@10 |\n|---|---|---|---|---|---|")
    for name in given.sets:
        kind, _, text = name.partition(":")
        groups = list(SETS[kind](given.folder, text or "text"))
        total = sum(len(group.questions) for group in groups)
        step = max(1, total // given.questions) if given.questions else 1
        rows = [row for group in groups for row in answered(group, given.scope, step)]
        found, ranks = [r for r, _ in rows], [m for _, m in rows]
        low, high = interval(found)
        print(
            f"| {name} | {given.scope} | {len(rows):,} | {sum(found) / len(rows):.3f} |"
            f" {low:.3f} to {high:.3f} | {sum(ranks) / len(rows):.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
