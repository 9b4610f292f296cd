"""Titles measured: hide the commit of a turn, and see how near its title comes to the subject.

    python bench/titles.py FOLDER [--keep HOME] [--reference FOLDER] [--show N]

FOLDER holds `sessions/` (transcripts of any agent). Real data is not part of this repository.

A turn counts when it changed files, ended with a message, was not the carrying out of a plan, and
led to one commit. Its title is made as if there were no commit, and compared with the subject by
word F1: stems in lower case, without function words and without the area before the colon. An
interval is that of 2,000 bootstrap samples of the turns.

--reference names a folder with another implementation of the reader: `reader.py`, in which
Reader(model, vocabulary).title(request, closing) has a text. --show N prints the titles of N turns.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from yester.cards.drafts import Gate, Looked
from yester.cards.observations import observe_turn
from yester.cards.outcomes import Outcomes, find_outcomes
from yester.cards.status import Changes, Status
from yester.cards.titles import is_housekeeping, plan_title, title_mender
from yester.cards.turns import LOOK_BACK, DistilRules, History, View
from yester.config import load_config
from yester.model import Filters, Paging
from yester.store import open_store
from yester.store.contract import Store
from yester.text.models import DEFAULT, PACKAGED, READER
from yester.text.prose import prose_sentences
from yester.text.reader import Reader, open_reader
from yester.text.terms import STOP, text_terms

_SAMPLES = 2_000
_SEED = 1
# Projects whose turns the reader was trained on (other turns of them), by the name of their folder.
_TRAINED = frozenset({"cli", "agents-md-evaluator", "context-evaluator"})
_AREA = re.compile(r"\A[\w./-]+(?:\([^)]*\))?!?: ")

Namer = Callable[["Case"], str]


@dataclass(frozen=True)
class Case:
    """A turn whose commit is hidden."""

    turn: View
    came_out: Outcomes
    subject: str
    project: str

    @property
    def request(self) -> str:
        return self.turn.prompt.body if self.turn.prompt else ""

    @property
    def closing(self) -> str:
        return self.turn.closing.body if self.turn.closing else ""

    @property
    def quoted(self) -> bool:
        """Does the turn's own text hold the subject?"""
        subject = " ".join(_AREA.sub("", self.subject).lower().split())
        return subject in " ".join(f"{self.request} {self.closing}".lower().split())


def find_cases(store: Store, rules: DistilRules) -> Iterator[Case]:
    for session in store.sessions(Filters(), Paging(1 << 30)):
        history = History(store, session.id, 0)
        for _ in history.read_items(rules):
            pass
        turns = history.turns()
        found = zip(
            turns, Changes(turns).follow().commits_by_turn(LOOK_BACK),
            find_outcomes(turns, LOOK_BACK), strict=True,
        )  # fmt: skip
        for turn, commits, came_out in found:
            subjects = {one.commit.subject for one in commits}
            telling = [subject for subject in subjects if not is_housekeeping(subject)]
            if turn.prompt is None or turn.closing is None or not turn.edited or len(telling) != 1:
                continue
            if not plan_title(turn.prompt.body):
                yield Case(turn, came_out, telling[0], session.project)


# --- titles --------------------------------------------------------------------------------------


def first_sentence(case: Case) -> str:
    return next((one.text for one in prose_sentences(case.closing)), "")


def title_by_rules(case: Case, read_title: str = "") -> str:
    looked = Looked(case.turn, Status("changed"), [], case.came_out, read_title)
    return next(one.title for one in observe_turn(looked, Gate()) if one.is_work)


def title_with(reader: Reader) -> Namer:
    """As the product names a turn that has no commit."""

    def find_title(case: Case) -> str:
        title = reader.find_title(
            case.request, case.closing, title_mender(case.request, case.closing)
        )
        return title_by_rules(case, title.text if title.usable else "")

    return find_title


def title_of_reference(folder: Path) -> Namer:
    sys.path.insert(0, str(folder))
    from reader import Reader as Reference

    weights = PACKAGED / READER.name / READER.weights_file.name
    reference = Reference(weights, PACKAGED / DEFAULT / "vocab.txt")
    return lambda case: reference.title(case.request, case.closing).text


# --- figures -------------------------------------------------------------------------------------


def word_f1(title: str, subject: str) -> float:
    own, wanted = (Counter(list_stems(text)) for text in (title, subject))
    common = (own & wanted).total()
    return 2 * common / (own.total() + wanted.total()) if common else 0.0


def list_stems(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+", _AREA.sub("", text).lower())
    return [term for word in words if word not in STOP for term in text_terms(word)]


def interval(values: Sequence[float]) -> str:
    """The mean, and between what it lies in 95 of 100 samples."""
    draw = random.Random(_SEED)
    means = sorted(mean(draw.choices(values, k=len(values))) for _ in range(_SAMPLES))
    low, high = means[_SAMPLES // 40], means[-_SAMPLES // 40]
    return f"{mean(values):.3f} [{low:.3f}, {high:.3f}]"


def print_table(cases: Sequence[Case], titles: dict[str, list[str]]) -> None:
    groups = {
        "all": [True] * len(cases),
        "subject not quoted": [not case.quoted for case in cases],
        "projects new to the reader": [
            case.project.rpartition("/")[2] not in _TRAINED for case in cases
        ],
    }
    scores = {
        name: [word_f1(title, case.subject) for title, case in zip(found, cases, strict=True)]
        for name, found in titles.items()
    }
    print("| | " + " | ".join(f"{name}: {sum(kept)} turns" for name, kept in groups.items()) + " |")
    print("|---|" + "---|" * len(groups))
    for name, values in scores.items():
        cells = [interval(choose(values, kept)) for kept in groups.values()]
        print(f"| {name} | {' | '.join(cells)} |")
    for name in scores:
        if name == "with the reader":
            continue
        less = [a - b for a, b in zip(scores["with the reader"], scores[name], strict=True)]
        cells = [interval(choose(less, kept)) for kept in groups.values()]
        print(f"| with the reader − {name} | {' | '.join(cells)} |")


def choose(values: Sequence[float], kept: Sequence[bool]) -> list[float]:
    return [value for value, keep in zip(values, kept, strict=True) if keep]


def print_titles(cases: Sequence[Case], titles: dict[str, list[str]], number: int) -> None:
    for at in random.Random(_SEED).sample(range(len(cases)), min(number, len(cases))):
        print(f"\n--- {cases[at].project}: {cases[at].subject}")
        for name, found in titles.items():
            print(f"{name:>28}: {found[at][:120]!r}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--show", type=int, default=0)
    given = parser.parse_args()
    home = Path(given.keep or tempfile.mkdtemp(prefix="yester-titles-")) / "home"
    if not (home / "yester.db").exists():
        words = ["--home", str(home), "index", str(given.folder / "sessions")]
        subprocess.run([sys.executable, "-m", "yester", *words], check=True, capture_output=True)
    store = open_store(home, now=int(time.time() * 1000))
    cases = list(find_cases(store, DistilRules.of(load_config(home, {}))))
    store.close()
    reader = open_reader({}, home)
    if reader is None:
        print("there is no reader: is onnxruntime installed?")
        return 1
    namers: dict[str, Namer] = {
        "the request": lambda case: case.request,
        "first sentence of the closing": first_sentence,
        "rules alone": title_by_rules,
        "with the reader": title_with(reader),
    }
    if given.reference:
        namers["the reference"] = title_of_reference(given.reference)
    titles = {name: [namer(case) for case in cases] for name, namer in namers.items()}
    print_table(cases, titles)
    began = time.process_time()
    for case in cases:
        reader.find_title(case.request, case.closing)
    cost = (time.process_time() - began) * 1000 / max(len(cases), 1)
    print(f"\n{cost:.1f} ms of CPU a turn for the reader")
    print_titles(cases, titles, given.show)
    return 0


if __name__ == "__main__":
    sys.exit(main())
