"""The weights of the score learned, on all development sets together.

    python bench/learn.py extract WORK [FOLDER] [--case LABEL …] [--limit N] [--embedder NAME|none]
    python bench/learn.py search WORK [--start default|words] [--folds N] [--seed N]
    python bench/learn.py measure WORK NAME=VALUE …

extract asks recall every question of the sets in FOLDER (default: $MEMDATA; see bench/quality.py)
once and keeps what it knew of each candidate in the folder WORK, a file for each case. A case that
is there is not asked again, so a run that was stopped goes on where it was; delete the files after
a change of anything but weights. --limit: so many questions of each set, drawn with a fixed seed.

search changes one weight at a time to the best value of its row in GRID, again and again until
nothing helps. Best is the mean over the cases of recall at ten minus the case's target, with what
is missing to a target counted double. A value that gains next to nothing is not taken, nor one that
lets a case fall by more than noise. A case whose labels were made of files has no say in what files
weigh. It starts at the weights in use, or at words alone (where a case may fall).
Then the same with the questions in --folds parts, each time without one part: what the weights
found do for that part is the figure to believe.

measure says what weights of your own would do.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from yester.operate.bench import Mean, bootstrap_mean
from yester.recall.rank import Weights

sys.path.append(str(Path(__file__).parent))
from quality import NotThere
from signals import CASES, Case, Signals, extract, file_of, numbers, with_values

Values = dict[str, float]
PerCase = list[NDArray[np.float64]]  # of each case, a figure for each question

# What is tried for each weight; the words' weight is 1, the others are compared with it. Not here:
# concepts and unembedded, of which no set says anything.
GRID: Mapping[str, tuple[float, ...]] = {
    "vector": (0.0, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0),
    "telling_terms": (4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 0),
    "files": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
    "recency": (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5),
    "half_life": (5, 10, 15, 20, 25, 30, 35, 40, 50, 60, 90),
    "spread": (1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0),
    "neighbour": (0.0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0),
    "parts": (0.0, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15),
    "named": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5),
    "project": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3),
    "importance": (0.0, 0.01, 0.02, 0.05, 0.1, 0.2),
}
WORDS_ALONE: Values = {
    "vector": 0.0, "telling_terms": 0, "files": 0.0, "recency": 0.0, "half_life": 60, "spread": 1.0,
    "neighbour": 0.0, "parts": 0.0, "named": 0.0, "project": 0.0, "importance": 0.0,
}  # fmt: skip
LEAST = 0.0005  # a gain in the mean below it is no reason for another value
NOISE = 1.0  # standard errors of the paired difference by which a case may fall


def in_use() -> Values:
    now = numbers(Weights())
    return {name: now[name] for name in GRID}


# --- the search ------------------------------------------------------------------------------


class Trials:
    """What each weights tried would find; nothing is tried twice."""

    def __init__(self, cases: Sequence[Signals], grid: Mapping[str, tuple[float, ...]]) -> None:
        self.cases, self.grid = cases, grid
        self._used = in_use()
        self._known: dict[tuple[float, ...], NDArray[np.float64]] = {}

    def found(self, values: Values) -> PerCase:
        return [self._one(at, values) for at in range(len(self.cases))]

    def judged(self, values: Values) -> PerCase:
        """The same, but where a case must not judge a weight, with the one in use."""
        return [
            self._one(at, values | {name: self._used[name] for name in one.case.blind})
            for at, one in enumerate(self.cases)
        ]

    def _one(self, at: int, values: Values) -> NDArray[np.float64]:
        idle = self.cases[at].idle
        key = (at, *(values[name] for name in self.grid if name not in idle))
        if key not in self._known:
            self._known[key] = self.cases[at].found(with_values(Weights(), values))
        return self._known[key]

    def worth(self, values: Values, asked: PerCase) -> float:
        """The mean margin over the targets, on the questions asked."""
        margins = [
            found[which].mean() - one.case.target
            for one, found, which in zip(self.cases, self.judged(values), asked, strict=True)
        ]
        return float(np.mean([margin + min(margin, 0.0) for margin in margins]))

    def falls(self, values: Values, reference: Values, asked: PerCase) -> bool:
        pairs = zip(self.judged(values), self.judged(reference), asked, strict=True)
        for one, other, which in pairs:
            less = (other - one)[which]
            if less.mean() > NOISE * less.std() / np.sqrt(len(less)):
                return True
        return False


def ascended(trials: Trials, start: Values, asked: PerCase, guarded: bool = True) -> Values:
    """From a start, one weight at a time, until no change of a single one helps.

    `guarded`: no case may fall below the start. Where that is words alone, it must be allowed to:
    vectors cost one case a little before the other weights make up for it.
    """
    here, worth = start, trials.worth(start, asked)
    moved = True
    while moved:
        moved = False
        for name, row in trials.grid.items():
            tried = [here | {name: value} for value in row if value != here[name]]
            for values in sorted(tried, key=lambda one: -trials.worth(one, asked)):
                gained = trials.worth(values, asked) - worth
                if gained < LEAST:
                    break
                if not (guarded and trials.falls(values, start, asked)):
                    here, worth, moved = values, worth + gained, True
                    break
    return here


def fold_of(qid: str, folds: int, seed: int) -> int:
    """By the name alone: a question asked in several ways is in one fold with all of them."""
    return int.from_bytes(hashlib.sha256(f"{seed} {qid}".encode()).digest()[:8]) % folds


def held_out(
    trials: Trials, start: Values, guarded: bool, folds: int, seed: int
) -> tuple[list[Values], PerCase]:
    """The weights found without each fold, and what they find in it."""
    numbers = [np.array([fold_of(qid, folds, seed) for qid in case.qids]) for case in trials.cases]
    learned, found = [], [np.zeros(len(case.qids)) for case in trials.cases]
    for fold in range(folds):
        values = ascended(trials, start, [number != fold for number in numbers], guarded)
        learned.append(values)
        for all_, some, number in zip(found, trials.judged(values), numbers, strict=True):
            all_[number == fold] = some[number == fold]
    return learned, found


# --- what is printed -------------------------------------------------------------------------


def said(mean: Mean) -> str:
    return f"{mean.mean:+.4f} ({mean.low:+.4f} to {mean.high:+.4f})"


def over_all(cases: Sequence[Signals], one: PerCase, other: PerCase) -> Mean:
    """The mean over cases of a difference; a question drawn is drawn in every case it is in."""
    of: dict[str, float] = {}
    for case, a, b in zip(cases, one, other, strict=True):
        for qid, gain in zip(case.qids, (a - b) / len(a) / len(cases), strict=True):
            of[qid] = of.get(qid, 0.0) + float(gain)
    return bootstrap_mean([gain * len(of) for gain in of.values()])


def table(cases: Sequence[Signals], now: PerCase, columns: Mapping[str, PerCase]) -> list[str]:
    """A row for each case: the weights in use, then others with their difference to these."""
    heads = [cell for name in columns for cell in (name, "difference (95 %)")]
    lines = [f"| {' | '.join(['case', 'questions', 'target', 'in use', *heads])} |"]
    lines.append("|" + "---|" * (4 + len(heads)))
    for at, one in enumerate(cases):
        cells = [one.case.label, f"{len(one.qids):,}", f"{one.case.target:.2f}"]
        cells.append(f"{now[at].mean():.4f}")
        for found in columns.values():
            gain = bootstrap_mean((found[at] - now[at]).tolist())
            cells += [f"{found[at].mean():.4f}", said(gain)]
        lines.append(f"| {' | '.join(cells)} |")
    cells = ["mean", "", "", f"{np.mean([figures.mean() for figures in now]):.4f}"]
    for found in columns.values():
        mean = np.mean([figures.mean() for figures in found])
        cells += [f"{mean:.4f}", said(over_all(cases, found, now))]
    return [*lines, f"| {' | '.join(cells)} |"]


def weights_table(trials: Trials, found: Values, learned: Sequence[Values]) -> list[str]:
    """Each weight in use and found, in the folds, and which values would do as well."""
    everything = [np.full(len(case.qids), True) for case in trials.cases]
    best, used = trials.worth(found, everything), in_use()
    lines = ["| weight | in use | found | in the folds | as good |", "|" + "---|" * 5]
    for name, row in trials.grid.items():
        as_good = [
            f"{value:g}"
            for value in row
            if trials.worth(found | {name: value}, everything) > best - LEAST
        ]
        folds = " ".join(f"{values[name]:g}" for values in learned)
        cells = [name, f"{used[name]:g}", f"{found[name]:g}", folds, " ".join(as_good)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def agreement(cases: Sequence[Signals]) -> str:
    """Whether what is computed here is what recall answered when it was asked."""
    pairs = [(case, case.found(case.asked_with)) for case in cases]
    other = sum(int((abs(case.product - found) > 1e-9).sum()) for case, found in pairs)
    return f"{other} of {sum(len(case.qids) for case in cases):,} questions differ from recall"


# --- the commands ----------------------------------------------------------------------------


def run_extract(given: argparse.Namespace) -> int:
    folder = given.folder or os.environ.get("MEMDATA")
    if not folder:
        sys.exit("learn.py: name a FOLDER, or set MEMDATA")
    done = 0
    for case in CASES:
        if given.cases and case.label not in given.cases:
            continue
        try:
            path = extract(Path(folder), given.work, case, given.limit, given.embedder)
        except NotThere as error:
            print(f"{case.label} is left out: {error}", file=sys.stderr)
            continue
        print(f"{case.label}: {path}", flush=True)
        done += 1
    return 0 if done else 1


def kept(work: Path) -> list[Signals]:
    there: list[Case] = [case for case in CASES if file_of(work, case).exists()]
    if not there:
        sys.exit(f"learn.py: {work} holds no case; run: python bench/learn.py extract {work}")
    return [Signals(file_of(work, case), case) for case in there]


def run_search(given: argparse.Namespace) -> int:
    trials = Trials(kept(given.work), GRID)
    print(f"{agreement(trials.cases)}\n", flush=True)
    guarded = given.start == "default"
    start = in_use() if guarded else WORDS_ALONE
    everything = [np.full(len(case.qids), True) for case in trials.cases]
    found = ascended(trials, start, everything, guarded)
    learned, apart = held_out(trials, start, guarded, given.folds, given.seed)
    now = trials.found(in_use())
    columns = {"found": trials.found(found), "held out": apart}
    print("\n".join(table(trials.cases, now, columns)))
    print()
    print("\n".join(weights_table(trials, found, learned)))
    gain = over_all(trials.cases, apart, now)
    beyond = gain.low > 0
    print(f"\nheld out {said(gain)}: {'' if beyond else 'not '}better than what is in use")
    return 0


def run_measure(given: argparse.Namespace) -> int:
    trials = Trials(kept(given.work), GRID)
    values = in_use() | dict(given.values)
    columns = {"these": trials.found(values)}
    print("\n".join(table(trials.cases, trials.found(in_use()), columns)))
    return 0


def a_value(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if name not in GRID:
        raise argparse.ArgumentTypeError(f"no weight is called {name}; there is {', '.join(GRID)}")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=NUMBER") from None


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("extract")
    one.add_argument("work", type=Path)
    one.add_argument("folder", type=Path, nargs="?", help="default: $MEMDATA")
    labels = [case.label for case in CASES]
    one.add_argument("--case", dest="cases", action="append", choices=labels, metavar="LABEL")
    one.add_argument("--limit", type=int, default=0, metavar="N", help="questions of each set")
    one.add_argument("--embedder", default="", metavar="NAME", help="a model, or none")
    one.set_defaults(run=run_extract)
    one = commands.add_parser("search")
    one.add_argument("work", type=Path)
    one.add_argument("--start", choices=["default", "words"], default="default")
    one.add_argument("--folds", type=int, default=5, metavar="N")
    one.add_argument("--seed", type=int, default=1, metavar="N", help="of the folds")
    one.set_defaults(run=run_search)
    one = commands.add_parser("measure")
    one.add_argument("work", type=Path)
    one.add_argument("values", type=a_value, nargs="*", metavar="NAME=VALUE")
    one.set_defaults(run=run_measure)
    given = parser.parse_args(words)
    return int(given.run(given))


if __name__ == "__main__":
    sys.exit(main())
