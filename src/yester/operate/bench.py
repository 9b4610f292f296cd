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
from math import comb
from statistics import fmean

from msgspec import Struct

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


class Mean(Struct, frozen=True):
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


class Past(Struct):
    """A session, as far as it matters here."""

    name: Name
    project: str
    begun: int
    prompt: str = ""  # the first that says something
    edits: dict[str, int] = {}  # file → when it was first changed


class Question(Struct, frozen=True):
    """The prompt of a session."""

    session: Past
    earlier: tuple[Name, ...]  # newest first
    relevant: frozenset[Name]


def read_history(items: Iterable[Item], trivial: Callable[[str], str]) -> list[Past]:
    """The sessions these items are of, by time; `trivial` says why a prompt asks for nothing."""
    found: dict[tuple[str, Name], Past] = {}
    prompted: dict[tuple[str, Name], int] = {}
    for item in items:
        if not item.session or item.epoch <= 0 or item.status != "active":
            continue
        name = item.agent, item.session
        key = item.project, name
        past = found.setdefault(key, Past(name, item.project, item.epoch))
        past.begun = min(past.begun, item.epoch)
        for file in item.files_modified:
            past.edits[file] = min(item.epoch, past.edits.get(file, item.epoch))
        is_first = not past.prompt or item.epoch < prompted[key]
        if item.kind == "prompt" and not item.actor and is_first and not trivial(item.body):
            past.prompt, prompted[key] = item.body, item.epoch
    return sorted(found.values(), key=lambda past: (past.begun, past.project, past.name))


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
        relevant = set()
        for other in earlier:
            known = {file for file, epoch in other.edits.items() if epoch < one.begun}
            known &= telling[one.project]
            shared = len(known & files)
            if shared and shared >= _SHARED * min(len(files), len(known)):
                relevant.add(other.name)
        if relevant:
            names = tuple(other.name for other in reversed(earlier))
            found.append(Question(one, names, frozenset(relevant)))
    return found


def _telling_files(sessions: Sequence[Past]) -> set[str]:
    """The files of a project whose change says something about a session."""
    changed = Counter(file for session in sessions for file in session.edits)
    most = max(_COMMON_LEAST, _COMMON_SHARE * len(sessions))
    return {file for file, number in changed.items() if number <= most}


def _fold_prompt(prompt: str) -> str:
    return " ".join(prompt.casefold().split())


# --- the measurement -------------------------------------------------------------------------


class Report(Struct, frozen=True):
    questions: int
    projects: int
    earlier: float  # sessions to choose from, on average
    relevant: float  # right ones among them, on average
    rankings: Mapping[str, Mapping[str, Mean]]  # recall, newest, random → metric → mean
    gain: Mapping[str, Mean]  # of recall over the newest first, question by question


def measure_recall(
    asked: Sequence[Question], recall: Callable[[Question], Sequence[Hit]]
) -> Report:
    rows: defaultdict[str, list[Mapping[str, float]]] = defaultdict(list)
    for question in asked:
        hits = recall(question)
        ranked = dict.fromkeys((hit.agent, hit.session) for hit in hits if hit.session)
        ranked.pop(question.session.name, None)
        ours = rank_figures(list(ranked), question.relevant)
        newest = rank_figures(question.earlier, question.relevant)
        rows["recall"].append(ours)
        rows["newest"].append(newest)
        rows["random"].append(chance_figures(len(question.earlier), len(question.relevant)))
        rows["gain"].append({metric: ours[metric] - newest[metric] for metric in METRICS})
    means = {
        name: {metric: bootstrap_mean([row[metric] for row in found]) for metric in METRICS}
        for name, found in rows.items()
    }
    return Report(
        questions=len(asked),
        projects=len({question.session.project for question in asked}),
        earlier=fmean(len(question.earlier) for question in asked),
        relevant=fmean(len(question.relevant) for question in asked),
        gain=means.pop("gain"),
        rankings=means,
    )
