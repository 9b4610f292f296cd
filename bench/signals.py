"""What recall knew of every candidate of every question, kept so that other weights can be tried.

    extract   asks the product each question once and writes a file for each case
    Case      a data set, how it is asked, and the recall at ten it should reach
    Signals   such a file as matrices: found() says what any weights would find

A question is a row and a candidate a column, the newer first: so a stable order breaks ties as
recall does. What is missing here is what the weights tried do not reach: the arms themselves, the
weights within the words' score, and words side by side, which change the order of the first eight
alone.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import yester
from yester.clock import DAY
from yester.faces.python import OpenMemory
from yester.model import Candidate, Filters, Item, replace
from yester.recall.candidates import Search
from yester.recall.rank import HALF_LIFE, Weights, same_words, terms_of
from yester.recall.recall import Asked, narrow_filters, recall_hits
from yester.text.query import parse_query

sys.path.append(str(Path(__file__).parent))
from quality import Group, Question, loaded

Matrix = NDArray[np.float32]

# Of each candidate. `before` and `behind` are the words of its neighbours, `half_life` that of its
# type where the table has one.
COLUMNS = (
    "fit", "before", "behind", "cosine", "parts", "files", "named", "importance", "concepts",
    "project", "age", "half_life", "talk", "relevant",
)  # fmt: skip
TALK = ("message", "prompt")
# Candidates looked at for texts that say the same: with any weights, the first ten are among them.
_LOOKED_AT = 100
_ENOUGH = 60  # candidates that hold ten different ones


@dataclass(frozen=True, slots=True)
class Case:
    label: str
    name: str  # of the set in bench/quality.py
    target: float
    files: bool = False
    scope: str = "project"
    # Weights it must not judge: its labels were made of what they weigh.
    blind: frozenset[str] = frozenset()


CASES = (
    Case("codemem", "codemem", 0.72),
    Case("codemem, files", "codemem", 0.78, files=True),
    Case("codemem:short", "codemem:short", 0.62),
    Case("codemem:short, files", "codemem:short", 0.70, files=True),
    Case("codemem, mixed", "codemem", 0.69, scope="all"),
    Case("locomo", "locomo", 0.74),
    Case("beam", "beam", 0.69),
    Case("sessionmem", "sessionmem", 0.58, blind=frozenset({"files", "named"})),
)


def file_of(work: Path, case: Case) -> Path:
    return work / (case.label.replace(", ", "-").replace(":", "-") + ".npz")


# --- asking ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """One question: its candidates as rows of COLUMNS, and what the product answered."""

    qid: str
    rows: Matrix
    same: list[tuple[int, int]]  # rows that are near-duplicates of each other
    telling: tuple[float, ...]  # how telling its terms are, the most telling first
    usable: frozenset[str]
    right: int
    recall: float


def extract(
    folder: Path,
    work: Path,
    case: Case,
    limit: int = 0,
    embedder: str = "",
    weights: Weights | None = None,
) -> Path:
    """The file of a case; one that is there for the same limit and embedder is left alone."""
    path, weights = file_of(work, case), weights or Weights()
    how = {"limit": limit, "embedder": embedder}
    if path.exists() and (told := _told(path)) and told["how"] == how:
        return path
    groups = loaded(folder, case.name, limit)
    work.mkdir(parents=True, exist_ok=True)
    known: list[Known] = []
    band: tuple[float, float] = (0.0, 1.0)
    for group in groups:
        with tempfile.TemporaryDirectory(prefix="yester-learn-") as home:
            if embedder:
                (Path(home) / "config.toml").write_text(f'embedder = "{embedder}"\n')
            with yester.open(home) as memory:
                known += _asked(memory, group, case, weights)
                band = memory.embedder.band if memory.embedder else band
    _write(path, known, {"how": how, "band": band, "weights": numbers(weights)})
    return path


def _asked(memory: OpenMemory, group: Group, case: Case, weights: Weights) -> Iterator[Known]:
    items, added = group.items(), 0
    _, cursor = memory.store.feed()
    refs: dict[int, str] = {}
    for question in group.questions:
        upto = added if group.replay else len(items)
        while upto < len(items) and items[upto]["epoch"] < question.epoch:
            upto += 1
        if upto > added:
            memory.add(items[added:upto], embed="now")
            added = upto
            lines, cursor = memory.store.feed(cursor, len(items) + 1)
            refs |= {line.row.id: line.row.ref for line in lines if isinstance(line.row, Item)}
        yield _one(memory, question, case, weights, refs)


def _one(
    memory: OpenMemory, question: Question, case: Case, weights: Weights, refs: Mapping[int, str]
) -> Known:
    now = int(question.epoch * 1000)
    asked = Asked(
        question.text,
        Filters(projects=(question.project,) if case.scope == "project" else ()),
        now=now,
        project=question.project,
        files=question.files if case.files else (),
    )
    hits = recall_hits(memory.store, asked, weights, memory.embedder)
    found = len({hit.ref for hit in hits} & question.relevant) / len(question.relevant)
    query = parse_query(asked.query)
    if query.only_quoted and not hits:
        query = replace(query, must=None)  # as recall does
    if not query.named and query.must is None:
        empty = np.zeros((0, len(COLUMNS)), np.float32)
        return Known(question.qid, empty, [], (), frozenset(), len(question.relevant), found)
    filters = narrow_filters(asked.filters, query, now)
    search = Search(memory.store, asked, query, filters, weights, memory.embedder)
    telling = tuple(sorted(search.telling.values(), reverse=True))
    answers = [one.candidate for one in search.found]
    order = sorted(answers, key=lambda one: (-one.epoch, -one.id))
    right = {one.id for one in order if refs[one.id] in question.relevant}
    looked_at = right | {one.id for one in answers[:_LOOKED_AT]}
    return Known(
        question.qid, _rows(search, order, now, right), _same(order, looked_at), telling,
        frozenset(search.shares), len(question.relevant), found,
    )  # fmt: skip


def _same(order: list[Candidate], looked_at: set[int]) -> list[tuple[int, int]]:
    terms = {at: terms_of(one.vector) for at, one in enumerate(order) if one.id in looked_at}
    return [
        (one, other)
        for one, other in combinations(terms, 2)
        if order[one].hash == order[other].hash or same_words(terms[one], terms[other])
    ]


def _rows(search: Search, order: list[Candidate], now: int, right: set[int]) -> Matrix:
    beside: dict[int, list[float]] = {}
    for id_, pair in search.beside.items():
        for other in filter(None, pair):
            if other not in search.words:
                continue
            beside.setdefault(id_, []).append(search.words[other].fit)
            if other not in search.beside:
                beside.setdefault(other, []).append(search.words[id_].fit)
    rows = []
    for one in order:
        signals, near = search.signals[one.id], search.near.get(one.id)
        before, behind = (*beside.get(one.id, ()), 0.0, 0.0)[:2]
        kind = one.type if one.type and one.type in HALF_LIFE else one.kind
        rows.append((
            search.words[one.id].fit, before, behind,
            near.cosine if near else np.nan, near.parts if near else 1,
            signals.files, signals.named, signals.importance, signals.concepts, signals.project,
            max(now - one.epoch, 0) / DAY, HALF_LIFE.get(kind, np.nan), one.kind in TALK,
            one.id in right,
        ))  # fmt: skip
    return np.array(rows, np.float32).reshape(-1, len(COLUMNS))


# --- the file --------------------------------------------------------------------------------


def _write(path: Path, known: list[Known], told: Mapping[str, Any]) -> None:
    telling = np.zeros((len(known), max(1, *(len(one.telling) for one in known))))
    for at, one in enumerate(known):
        telling[at, : len(one.telling)] = one.telling
    half_written = path.with_suffix(".part.npz")
    np.savez_compressed(
        half_written,
        told=np.array(json.dumps(told)),
        qids=np.array([one.qid for one in known]),
        sizes=np.array([len(one.rows) for one in known]),
        rows=np.concatenate([one.rows for one in known]),
        same=np.array(
            [(at, *pair) for at, one in enumerate(known) for pair in one.same], np.int32
        ).reshape(-1, 3),
        telling=telling,
        right=np.array([one.right for one in known]),
        recall=np.array([one.recall for one in known]),
        embedded=np.array(["vector" in one.usable for one in known]),
    )
    half_written.replace(path)


def _told(path: Path) -> dict[str, Any] | None:
    try:
        with np.load(path) as kept:
            return json.loads(str(kept["told"]))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None


class Signals:
    """A case's questions and candidates as matrices."""

    def __init__(self, path: Path, case: Case) -> None:
        with np.load(path) as kept:
            told = json.loads(str(kept["told"]))
            self.qids = [str(qid) for qid in kept["qids"]]
            sizes, rows, telling = kept["sizes"], kept["rows"], kept["telling"]
            self._right, self.product = kept["right"], kept["recall"]
            self._embedded = kept["embedded"][:, None]
            self._same = _pairs(kept["same"])
        self.case = case
        self.asked_with = with_values(Weights(), told["weights"])
        self._band = told["band"]
        self._there = np.arange(max(int(sizes.max()), 1)) < sizes[:, None]
        self._of: dict[str, Matrix] = {}
        for at, name in enumerate(COLUMNS):
            self._of[name] = np.zeros(self._there.shape, np.float32)
            self._of[name][self._there] = rows[:, at]
        plain = ("files", "named", "importance", "concepts", "project")
        made_of = {name: (name,) for name in plain} | {"neighbour": ("before", "behind")}
        # Weights that change nothing here: what they weigh is the same for all candidates.
        self.idle = {
            name
            for name, columns in made_of.items()
            if all(len(np.unique(self._of[one][self._there])) < 2 for one in columns)
        } | ({"parts"} if not self._of["talk"].any() else set())
        self._reachable = np.cumsum(telling, axis=1)
        self._question, self._column = np.nonzero(self._of["relevant"] > 0)

    def found(self, weights: Weights) -> NDArray[np.float64]:
        """Recall at ten of each question, with these weights."""
        score = np.where(self._there, self.scores(weights), -1.0)
        own = score[self._question, self._column][:, None]
        rivals = score[self._question]
        earlier = np.arange(score.shape[1]) < self._column[:, None]
        place = ((rivals > own) | ((rivals == own) & earlier)).sum(axis=1)
        hits = np.bincount(self._question, (place < 10) & (own[:, 0] > 0), len(self._right))
        for question, columns in self._crowded(score):
            kept = _different(columns, self._same[question])
            hits[question] = self._of["relevant"][question][kept].sum()
        return hits / self._right

    def _crowded(self, score: NDArray[np.float64]) -> Iterator[tuple[int, list[int]]]:
        """The questions with near-duplicates, and their best candidates in order."""
        questions = np.array(sorted(self._same), np.intp)
        best = np.argpartition(-score[questions], min(_ENOUGH, score.shape[1]) - 1, axis=1)
        best = np.sort(best[:, :_ENOUGH], axis=1)
        values = score[questions[:, None], best]
        order = np.take_along_axis(best, np.argsort(-values, axis=1, kind="stable"), axis=1)
        positive = (values > 0).sum(axis=1)
        for question, columns, number in zip(questions, order, positive, strict=True):
            yield int(question), columns[:number].tolist()

    def scores(self, weights: Weights) -> NDArray[np.float64]:
        """The sum recall orders by. It shares the weights out, which changes no order."""
        of, terms = self._of, weights.telling_terms or self._reachable.shape[1]
        whole = self._reachable[:, -1:]
        most = self._reachable[:, min(terms, self._reachable.shape[1]) - 1][:, None]
        fuller = whole / np.where(most > 0, most, 1.0)
        own, before, behind = (
            np.minimum(1.0, of[name] * fuller) for name in ("fit", "before", "behind")
        )
        keyword = np.minimum(1.0, own + weights.neighbour * (before + behind))
        score = weights.keyword * keyword
        low, high = self._band
        many = weights.parts * np.log(of["parts"], where=self._there, out=np.zeros_like(score))
        close = np.clip((of["cosine"] - many * of["talk"] - low) / (high - low), 0.0, 1.0)
        close = np.where(np.isnan(of["cosine"]), weights.unembedded * keyword, close)
        score += weights.vector * np.where(self._embedded, close, 0.0)
        for name in ("files", "named", "importance", "concepts", "project"):
            if weight := getattr(weights, name):
                score += weight * of[name]
        if weights.recency:
            score += weights.recency * self._recency(weights)
        return score

    def _recency(self, weights: Weights) -> NDArray[np.float64]:
        age, own = self._of["age"], self._of["half_life"]
        half_life = np.where(own > 0, own, weights.half_life[""])
        fast, slow = half_life / weights.spread, half_life * weights.spread
        return (np.exp2(-age / fast) + np.exp2(-age / slow)) / 2


def _pairs(triples: NDArray[np.int32]) -> dict[int, set[tuple[int, int]]]:
    """(question, column, column) → the pairs of each question, both ways round."""
    pairs: dict[int, set[tuple[int, int]]] = {}
    for question, one, other in triples.tolist():
        pairs.setdefault(question, set()).update(((one, other), (other, one)))
    return pairs


def _different(columns: list[int], same: set[tuple[int, int]]) -> list[int]:
    """The ten that recall would answer with: of near-duplicates the best alone."""
    kept: list[int] = []
    for column in columns:
        if len(kept) == 10:
            break
        if not any((other, column) in same for other in kept):
            kept.append(column)
    return kept


# --- weights by name -------------------------------------------------------------------------


def numbers(weights: Weights) -> dict[str, float]:
    """The weights that are a number; `half_life` is that of types without their own."""
    every = {one.name: getattr(weights, one.name) for one in fields(weights)}
    plain = {name: value for name, value in every.items() if type(value) in (int, float)}
    return {**plain, "half_life": weights.half_life[""]}


def with_values(weights: Weights, values: Mapping[str, float]) -> Weights:
    """The same with some of these numbers changed."""
    changes: dict[str, Any] = dict(values)
    if "telling_terms" in changes:
        changes["telling_terms"] = int(changes["telling_terms"])
    if "half_life" in changes:
        changes["half_life"] = {**weights.half_life, "": changes["half_life"]}
    return replace(weights, **changes)
