"""The constants of `recall/floor.py`, found anew from what `bench/floor.py` has asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yester.recall.floor import LOGISTIC, SHARE, Standing, judge_standing, score_of_tenth

if TYPE_CHECKING:
    from floor import Case

# How much the kinds of questions count. Foreign ones are told apart with ease: counted in full they
# would cost more of the right ones than they are worth.
COUNTS = {"own": 2.0, "no answer": 1.0, "foreign": 0.15}
_RIDGE, _STEPS = 1e-3, 40
_TOP = 5
Judged = Callable[["Case"], float]  # the evidence that a question is answered


def facts(case: Case) -> Standing:
    return judge_standing(case.hits, score_of_tenth(case.hits))


def fitted(found: Mapping[str, Sequence[Case]], keep: float) -> list[str]:
    """What to print: the constants, and what such constants reach for projects they were not
    fitted on."""
    found = {name: [case for case in some if case.hits] for name, some in found.items()}
    weights, constant = _fit(found, lambda _: True)
    whole = {
        name: [_evidence(case, weights) + constant for case in some] for name, some in found.items()
    }
    least = _least(found, whole, keep)
    rounded = {name: round(float(value), 2) for name, value in zip(LOGISTIC, weights, strict=True)}
    said = [f"LOGISTIC = {rounded}", f"CONSTANT = {constant - least:.2f}", "", HEAD]
    folds: dict[str, list[float]] = {name: [0.0] * len(some) for name, some in found.items()}
    for project in sorted({case.project for some in found.values() for case in some}):
        inside, shift = _fit(found, lambda case, project=project: case.project != project)
        for name, some in found.items():
            for at, case in enumerate(some):
                if case.project == project:
                    folds[name][at] = _evidence(case, inside) + shift
    said += _table(found, folds, _least(found, folds, keep))
    said += [
        "",
        "The frontier, each set by itself: kept at so many passing without an answer",
        HEAD2,
    ]
    for name, some in found.items():
        cells = []
        for most in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
            level = np.quantile(_of(some, folds[name], "no answer"), 1 - most)
            strange = _of(some, folds[name], "foreign")
            foreign = float(np.mean(strange > level)) if len(strange) else 0.0
            cells.append(f"{_kept(some, folds[name], level):.2f} ({100 * foreign:.1f} %)")
        said.append(f"| {name} | {' | '.join(cells)} |")
    return said


HEAD = "| set | kept | foreign | no answer |\n|---|---|---|---|"
HEAD2 = "| set | 5 % | 10 % | 15 % | 20 % | 25 % | 30 % | 40 % |\n|" + "---|" * 8


def _table(
    found: Mapping[str, Sequence[Case]], judged: Mapping[str, Sequence[float]], least: float
) -> list[str]:
    rows = []
    for name, some in found.items():
        passed = []
        for kind in ("foreign", "no answer"):
            values = _of(some, judged[name], kind)
            passed.append(f"{100 * float(np.mean(values > least)):.1f} %" if len(values) else "–")
        rows.append(f"| {name} | {_kept(some, judged[name], least):.3f} | {' | '.join(passed)} |")
    return rows


def _fit(found: Mapping[str, Sequence[Case]], taken: Callable[[Case], bool]) -> tuple[Any, float]:
    """Newton's method on the logistic loss. Each set counts alike, with files and without together,
    and each kind of question as COUNTS says."""
    rows, answers, counts = [], [], []
    asked = Counter(name.partition(",")[0] for name in found)
    for name, some in found.items():
        for kind, count in COUNTS.items():
            chosen = [
                c for c in some if c.kind == kind and taken(c) and (kind != "own" or c.right())
            ]
            # As often as it has right ones: what is kept is counted by them.
            numbers = [case.right() if kind == "own" else 1 for case in chosen]
            rows += [facts(case) for case in chosen]
            answers += [float(kind == "own")] * len(chosen)
            once = count / asked[name.partition(",")[0]]
            counts += [once * number / sum(numbers) for number in numbers]
    x, y, w = np.array(rows), np.array(answers), np.array(counts) / sum(counts)
    middle, spread = x.mean(0), x.std(0) + 1e-9
    z = np.c_[(x - middle) / spread, np.ones(len(x))]
    slope = np.zeros(z.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(z @ slope, -30, 30)))
        down = z.T @ (w * (p - y)) + _RIDGE * np.r_[slope[:-1], 0]
        bend = (z * (w * p * (1 - p))[:, None]).T @ z + _RIDGE * np.eye(len(slope))
        slope -= np.linalg.solve(bend, down)
    weights = slope[:-1] / spread
    return weights, float(slope[-1] - weights @ middle)


def _evidence(case: Case, weights: Any) -> float:
    return float(np.array(facts(case)) @ weights)


def _of(some: Sequence[Case], judged: Sequence[float], kind: str) -> Any:
    return np.array([value for case, value in zip(some, judged, strict=True) if case.kind == kind])


def _kept(some: Sequence[Case], judged: Sequence[float], least: float) -> float:
    right = kept = 0
    for case, value in zip(some, judged, strict=True):
        if case.kind != "own":
            continue
        tenth = score_of_tenth(case.hits)
        level = tenth + SHARE * (case.hits[0].score - tenth)
        good = [hit.score for hit in case.hits[:_TOP] if hit.ref in case.question.relevant]
        right += len(good)
        kept += sum(score >= level for score in good) if value > least else 0
    return kept / max(right, 1)


def _least(
    found: Mapping[str, Sequence[Case]], judged: Mapping[str, Sequence[float]], keep: float
) -> float:
    """The highest evidence that keeps so much in every set."""
    levels = np.linspace(-6, 6, 601)
    kept = (
        level
        for level in levels[::-1]
        if all(_kept(some, judged[name], level) >= keep for name, some in found.items())
    )
    return float(next(kept, levels[0]))
