"""Pairs of a prompt and an earlier turn that somebody has read: what would the floor tell?

    python bench/pairs.py HOME [--labels FILE] [--words] [--fit]

HOME is the home of a store with the sessions of the labels, indexed, distilled and with vectors.
FILE has a row for each pair: draw, agent, session and number of the prompt, session and number of
the turn, label (4 what was needed, 3 saves a look-up or a mistake, 2 related, 1 noise, 0 false or
misleading); default: `pair-labels.tsv` beside this file, ids alone, since the texts are not ours.
Each prompt of the store is asked as a hook asks, of what was there before it.

told       prompts that get a line (at most two) from this chance on, of all that are looked up
foreign    … that get one of another project
lines      of those told, how many were read; related: 2 or better, helpful: 3 or better (95 % by
           2,000 samples of the sessions)
--fit      the constants of `recall/floor.py` found anew, and what they reach where a project (or an
           eighth of the sessions) is left out
--words    without vectors
"""

from __future__ import annotations

import argparse
import csv
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from yester.context.talk import asks_back, trivial
from yester.model import Filters, Hit, Item, Paging, replace
from yester.recall import floor
from yester.recall.floor import judge_hits
from yester.recall.rank import Weights
from yester.recall.recall import Asked, answer_question
from yester.store import open_store
from yester.store.contract import Store
from yester.text.embed import open_embedder

LABELS = Path(__file__).parent / "pair-labels.tsv"
_CHANCES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, floor.LEAST_CHANCE, 0.5, 0.6)
_LINES, _HITS = 2, 12
_SAMPLES = 2_000
_MANY = 10_000
Turn = tuple[str, int]


@dataclass(frozen=True)
class Line:
    """A turn that was found for a prompt."""

    facts: tuple[float, float, float]  # lead, names, age, as the floor weighs them
    chance: float
    label: int | None


@dataclass(frozen=True)
class Asking:
    session: str
    project: str
    own: Sequence[Line]  # the best chance first
    foreign: float  # the best chance of what another project has


def read_labels(path: Path) -> Mapping[tuple[Turn, Turn], int]:
    with path.open(encoding="utf-8") as file:
        return {
            (
                (row["session"], int(row["prompt"])),
                (row["card_session"], int(row["card_prompt"])),
            ): int(row["label"])
            for row in csv.DictReader(file, delimiter="\t")
        }


def read_before(store: Store, prompt: Item) -> tuple[str, list[str]]:
    """What the agent had said last, and the files of the session by then."""
    talk = Filters(session=prompt.session, kinds=("message",), until=prompt.epoch)
    items = store.select(talk, Paging(60))
    said = next((item.body for item in items if item.role == "assistant"), "")
    edited = [name for item in items for name in item.files_modified]
    return said, [*edited, *(name for item in items for name in item.files_read)]


def ask_prompts(
    home: Path, labels: Mapping[tuple[Turn, Turn], int], words: bool
) -> Iterator[Asking]:
    store = open_store(home, now=0)
    embedder = None if words else open_embedder({}, home)
    weights = replace(Weights(), words=80, nearest=60)
    for prompt in store.select(Filters(kinds=("prompt",)), Paging(_MANY)):
        if trivial(prompt.body) or prompt.actor:
            continue
        said, files = read_before(store, prompt)
        asked = Asked(
            prompt.body[:20_000], Filters(until=prompt.epoch), _HITS, explain=True, raw=True,
            now=prompt.epoch, project=prompt.project, own=4,
        ).in_conversation(said, prompt.session, files)  # fmt: skip
        answer = answer_question(store, asked, weights, embedder)
        now = 0 if asks_back(prompt.body, begins=not said) else prompt.epoch
        judged = judge_hits(answer.hits, prompt.body, answer.project, now)
        own, foreign = [], 0.0
        for one in judged:
            if one.hit.project != answer.project:
                foreign = max(foreign, one.chance)
            elif one.hit.kind == "summary" and one.hit.type == "turn":
                turn = one.hit.session, one.hit.prompt_number
                label = labels.get(((prompt.session, prompt.prompt_number), turn))
                own.append(Line(_facts_of(one, answer.hits, prompt.epoch), one.chance, label))
        yield Asking(prompt.session, prompt.project, own, foreign)
    store.close()


def _facts_of(one: Any, hits: Sequence[Hit], now: int) -> tuple[float, float, float]:
    scores = sorted((hit.score for hit in hits), reverse=True)
    lead = one.hit.score - (scores[9] if len(scores) > 9 else 0.0)
    days = min(max(now / 1000 - one.hit.epoch, 0) / 86_400, 10.0)
    return lead, float(np.log1p(len(one.names))), float(np.log1p(days))


# --- figures --------------------------------------------------------------------------------------


def share_interval(values: Sequence[tuple[str, bool]]) -> str:
    """The share, and 95 % by samples of the sessions."""
    if not values:
        return "–"
    by_session: defaultdict[str, list[bool]] = defaultdict(list)
    for session, value in values:
        by_session[session].append(value)
    keys, dice, means = sorted(by_session), random.Random(1), []
    for _ in range(_SAMPLES):
        means.append(mean(v for key in dice.choices(keys, k=len(keys)) for v in by_session[key]))
    means.sort()
    low, high = means[int(_SAMPLES * 0.025)], means[int(_SAMPLES * 0.975)]
    return f"{mean(value for _, value in values):.2f} [{low:.2f}, {high:.2f}]"


def print_curve(found: Sequence[Asking]) -> None:
    print("| chance | told | foreign | lines read | related or better | helpful |")
    print("|---|---|---|---|---|---|")
    for least in _CHANCES:
        told = [[line for line in one.own if line.chance >= least][:_LINES] for one in found]
        share = mean(bool(lines) for lines in told)
        foreign = mean(one.foreign >= least for one in found)
        read = [
            (one.session, line.label)
            for one, lines in zip(found, told, strict=True)
            for line in lines
            if line.label is not None
        ]
        shares = (share_interval([(key, label >= n) for key, label in read]) for n in (2, 3))
        print(f"| {least:.2f} | {share:.1%} | {foreign:.1%} | {len(read)} | {' | '.join(shares)} |")


def fit_logistic(x: Any, y: Any, penalty: float = 0.01) -> Any:
    """Constant and weights by Newton's method, the facts scaled to one spread."""
    middle, spread = x.mean(0), x.std(0) + 1e-9
    z = np.c_[np.ones(len(x)), (x - middle) / spread]
    w = np.zeros(z.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-z @ w))
        slope = z.T @ (p - y) / len(y) + penalty * np.r_[0, w[1:]]
        bend = (z * (p * (1 - p))[:, None]).T @ z / len(y) + penalty * np.eye(len(w))
        w -= np.linalg.solve(bend, slope)
    weights = w[1:] / spread
    return np.r_[w[0] - (weights * middle).sum(), weights]


def rank_share(scores: Any, y: Any) -> float:
    """How often one that is related stands above one that is not."""
    better = (scores[y == 1][:, None] > scores[y == 0][None]).mean()
    return float(better)


def print_fit(found: Sequence[Asking]) -> None:
    rows = [
        (one.session, one.project, line)
        for one in found
        for line in one.own
        if line.label is not None
    ]
    x = np.array([line.facts for _, _, line in rows])
    y = np.array([line.label >= 2 for _, _, line in rows], float)
    helpful = np.array([line.label >= 3 for _, _, line in rows], float)
    print(f"{len(y)} pairs found again, {int(y.sum())} related, {int(helpful.sum())} helpful")
    print("constant, lead, names, age:", np.round(fit_logistic(x, y), 2))
    sessions = sorted({session for session, _, _ in rows})
    random.Random(1).shuffle(sessions)
    eighths = {session: number % 8 for number, session in enumerate(sessions)}
    folds = {
        "sessions": [eighths[session] for session, _, _ in rows],
        "projects": [project for _, project, _ in rows],
    }
    for name, keys in folds.items():
        held = np.zeros(len(y))
        for key in set(keys):
            out = np.array([one == key for one in keys])
            w = fit_logistic(x[~out], y[~out])
            held[out] = w[0] + x[out] @ w[1:]
        print(
            f"by {name}: related above others {rank_share(held, y):.3f},"
            f" helpful above others {rank_share(held, helpful):.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("home", type=Path)
    parser.add_argument("--labels", type=Path, default=LABELS)
    parser.add_argument("--words", action="store_true", help="without vectors")
    parser.add_argument("--fit", action="store_true", help="the constants anew")
    given = parser.parse_args()
    found = list(ask_prompts(given.home, read_labels(given.labels), given.words))
    print_curve(found)
    if given.fit:
        print_fit(found)


if __name__ == "__main__":
    main()
