"""Recall measured on the user's own history, without anybody who judges answers.

The question is the first prompt of a past session, asked as of the moment that session began. An
earlier session of the project is a right answer when it changed the same files. These labels are
weak: two sessions may share a file and no topic. They tell one ranking from another, and recall
from no recall, not how good an answer was.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from yester.model import Hit, Item

METRICS = ("hit@5", "recall@10", "mrr@10")
LEAST_QUESTIONS = 10
DEPTH = 100  # hits asked for: several may be of one session
_LEAST_EARLIER = 11  # with ten or fewer, all of them are among the first ten
_SHARED = 1 / 3  # of the files of the session that changed fewer
# A file changed by more sessions than this tells nothing: a change log, a lock file.
_COMMON_SHARE, _COMMON_LEAST = 0.2, 4

Name = tuple[str, str]  # the agent, and its own id of the session


# --- figures ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over questions with its 95 % interval."""

    mean: float
    low: float
    high: float


def rank_figures(ranked: Sequence[Hashable], relevant: Collection[Hashable]) -> dict[str, float]:
    """What one ranking is worth, by its first ten; nothing stands in it twice."""
    good = [one in relevant for one in ranked[:10]]
    among_five, among_ten = sum(good[:5]), sum(good)
    return {
        "hit@5": float(among_five > 0),
        "hit@10": float(among_ten > 0),
        "all@5": float(among_five == len(relevant)),
        "all@10": float(among_ten == len(relevant)),
        "recall@10": among_ten / len(relevant),
        "mrr@10": 1 / (good.index(True) + 1) if among_ten else 0.0,
    }


def chance_figures(total: int, right: int) -> dict[str, float]:
    """The same figures as they would be on average if `total` were put in any order."""
    five, ten = min(5, total), min(10, total)
    first_at = [comb(total - place, right - 1) / comb(total, right) for place in range(1, ten + 1)]
    return {
        "hit@5": 1 - comb(total - right, five) / comb(total, five),
        "recall@10": ten / total,
        "mrr@10": sum(share / place for place, share in enumerate(first_at, 1)),
    }


def bootstrap_mean(values: Sequence[float], rounds: int = 1000, seed: int = 1) -> Mean:
    """Bootstrap over questions; the seed is fixed, so the same values give the same interval."""
    rng, size = random.Random(seed), len(values)  # noqa: S311
    means = sorted(sum(rng.choices(values, k=size)) / size for _ in range(rounds))
    low, high = means[int(0.025 * rounds)], means[int(0.975 * rounds)]
    return Mean(sum(values) / size, low, high)


# --- the history as questions ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Past:
    """A session, as far as it matters here."""

    name: Name
    project: str
    begun: int
    prompt: str  # the first that says something, or ""
    edits: Mapping[str, int]  # file → when it was first changed


@dataclass(frozen=True, slots=True)
class Question:
    prompt: str
    session: Name
    project: str
    begun: int
    earlier: tuple[Name, ...]  # newest first
    relevant: frozenset[Name]


def read_history(items: Iterable[Item], trivial: Callable[[str], str]) -> list[Past]:
    """The sessions these items are of, by time; `trivial` says why a prompt asks for nothing."""
    begun: dict[tuple[str, Name], int] = {}
    prompts: dict[tuple[str, Name], tuple[int, str]] = {}
    edits: defaultdict[tuple[str, Name], dict[str, int]] = defaultdict(dict)
    for item in items:
        if not item.session or item.epoch <= 0 or item.status != "active":
            continue
        key = item.project, (item.agent, item.session)
        begun[key] = min(item.epoch, begun.get(key, item.epoch))
        for file in item.files_modified:
            edits[key][file] = min(item.epoch, edits[key].get(file, item.epoch))
        if item.kind != "prompt" or item.actor or trivial(item.body):
            continue
        if key not in prompts or item.epoch < prompts[key][0]:
            prompts[key] = item.epoch, item.body
    found = [
        Past(name, project, epoch, prompts.get((project, name), (0, ""))[1], edits[project, name])
        for (project, name), epoch in begun.items()
    ]
    return sorted(found, key=lambda past: (past.begun, past.project, past.name))


def make_questions(past: Sequence[Past], limit: int) -> list[Question]:
    """At most `limit`, from the newest sessions backwards. `past` is sorted by time."""
    projects: defaultdict[str, list[Past]] = defaultdict(list)
    asked_first: dict[tuple[str, str], int] = {}
    for one in past:
        projects[one.project].append(one)
        asked_first.setdefault((one.project, _fold_prompt(one.prompt)), one.begun)
    telling = {project: _telling_files(sessions) for project, sessions in projects.items()}
    found: list[Question] = []
    for one in reversed(past):
        if len(found) == limit:
            break
        files = one.edits.keys() & telling[one.project]
        if not one.prompt or not files:
            continue
        # Word for word the same prompt: a fork of the session, or a routine that is run again.
        # Any search would find it.
        if asked_first[one.project, _fold_prompt(one.prompt)] < one.begun:
            continue
        earlier = [other for other in projects[one.project] if other.begun < one.begun]
        if len(earlier) < _LEAST_EARLIER:
            continue
        relevant = frozenset(
            other.name
            for other in earlier
            if _is_related(files, _changed_files(other, one.begun) & telling[one.project])
        )
        if relevant:
            names = tuple(other.name for other in reversed(earlier))
            found.append(Question(one.prompt, one.name, one.project, one.begun, names, relevant))
    return found


def _telling_files(sessions: Sequence[Past]) -> set[str]:
    """The files of a project whose change says something about a session."""
    changed = Counter(file for session in sessions for file in session.edits)
    most = max(_COMMON_LEAST, _COMMON_SHARE * len(sessions))
    return {file for file, number in changed.items() if number <= most}


def _changed_files(session: Past, until: int) -> set[str]:
    return {file for file, epoch in session.edits.items() if epoch < until}


def _is_related(one: Collection[str], other: set[str]) -> bool:
    shared = len(other.intersection(one))
    return shared > 0 and shared >= _SHARED * min(len(one), len(other))


def _fold_prompt(prompt: str) -> str:
    return " ".join(prompt.casefold().split())


# --- the measurement -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Report:
    questions: int
    projects: int
    earlier: float  # sessions to choose from, on average
    relevant: float  # right ones among them, on average
    rankings: Mapping[str, Mapping[str, Mean]]  # recall, newest, random → metric → mean
    gain: Mapping[str, Mean]  # of recall over the newest first, question by question


def measure_recall(
    asked: Sequence[Question], recall: Callable[[Question], Sequence[Hit]]
) -> Report:
    rows: dict[str, list[dict[str, float]]] = {"recall": [], "newest": [], "random": []}
    for question in asked:
        hits = recall(question)
        ranked = dict.fromkeys((hit.agent, hit.session) for hit in hits if hit.session)
        ranked.pop(question.session, None)
        rows["recall"].append(rank_figures(list(ranked), question.relevant))
        rows["newest"].append(rank_figures(question.earlier, question.relevant))
        rows["random"].append(chance_figures(len(question.earlier), len(question.relevant)))
    size = len(asked)
    return Report(
        questions=size,
        projects=len({question.project for question in asked}),
        earlier=sum(len(question.earlier) for question in asked) / size,
        relevant=sum(len(question.relevant) for question in asked) / size,
        rankings={
            name: {metric: bootstrap_mean([row[metric] for row in found]) for metric in METRICS}
            for name, found in rows.items()
        },
        gain={
            metric: bootstrap_mean([
                ours[metric] - theirs[metric]
                for ours, theirs in zip(rows["recall"], rows["newest"], strict=True)
            ])
            for metric in METRICS
        },
    )  # fmt: skip
