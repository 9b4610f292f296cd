"""What is worth knowing before anything was asked: what the folder itself is about right now.

A session begins without a question. The branch, the files that are changed or were committed last,
and the names in the manifests ask in its place; their candidates are ranked like any others.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from yester.git import Signals
from yester.model import Filters, Hit
from yester.recall.floor import LEAST_CHANCE, judge_hits
from yester.recall.rank import Weights
from yester.recall.recall import Asked, Fates, answer_question
from yester.store.contract import Store

if TYPE_CHECKING:
    from yester.text.embed import Embedder

MOST_FILES = 20  # of a larger change no single file says what it is about
_RECENT = 10  # files of the last commits, where nothing is changed
_NAMED = 12  # files whose names are part of the question
_SPARE = 3  # times as many hits as wanted: some are known, some do not fit
# What was said for its own sake; what tools printed and what was said on the way is not.
_KINDS = ("observation", "summary", "memory", "note")
_BRANCHES_OF_ALL = frozenset({"main", "master", "develop", "dev", "trunk", "next", "head"})
_WORDS = re.compile(r"[^\W_]+")


def changed_files(signals: Signals) -> tuple[str, ...]:
    """The files the work is about: those changed and not committed."""
    files = tuple(name for name in signals.changed if not name.endswith("/"))
    return files if len(files) <= MOST_FILES else ()


def branch_words(signals: Signals) -> list[str]:
    """What the branch says of the work; nothing where it is that of all work."""
    return [] if signals.branch.lower() in _BRANCHES_OF_ALL else _WORDS.findall(signals.branch)


def folder_question(signals: Signals) -> str:
    """What the folder would ask, in words: the branch, the files' names, what the project is."""
    stems = [PurePath(file).stem for file in _question_files(signals)[:_NAMED]]
    names = [name for _, name in signals.manifests]
    # On lines of their own they are words: a branch may be called anything.
    words = (word for text in (*stems, *names) for word in _WORDS.findall(text))
    return "\n".join(dict.fromkeys((*branch_words(signals), *words)))


def relevant_hits(
    store: Store,
    project: str,
    signals: Signals,
    now: int,
    k: int,
    weights: Weights | None = None,
    embedder: Embedder | None = None,
    fates: Fates | None = None,
) -> list[Hit]:
    """The best k of this project for the work at hand; none where nothing is about it."""
    asked = folder_question(signals)
    files = _question_files(signals)
    if not asked and not files:
        return []
    here = Filters(projects=(project,), kinds=_KINDS)
    found = answer_question(
        store,
        Asked(
            asked, here, _SPARE * k, explain=True, now=now, project=project, files=files, near=True
        ),
        weights,
        embedder,
        fates,
    )
    # About one of the files, or as near as an answer to a prompt would have to be.
    judged = judge_hits(found.hits, asked, found.project, now)
    fitting = {one.hit.id for one in judged if one.chance >= LEAST_CHANCE}
    # The names of files and manifests alone lead anywhere; a branch says what is being done.
    if signals.branch.lower() in _BRANCHES_OF_ALL:
        fitting = set()
    return [hit for hit in found.hits if hit.factors.get("files") or hit.id in fitting][:k]


def _question_files(signals: Signals) -> tuple[str, ...]:
    return changed_files(signals) or signals.recent[:_RECENT]
