"""Is anything of what was found worth showing to somebody who did not ask for it?

Ranking puts the best first; it does not say whether the best is any good. How likely something is
to help follows from three facts: how far it stands above the tenth of what was found, how many
names (identifiers, paths, numbers of issues) it shares with the prompt, and how old it is.

docs/quality.md has what it keeps and what it lets through; `python bench/pairs.py` finds the
constants.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import exp, log, log1p
from typing import NamedTuple

from yester.clock import DAY
from yester.model import Hit
from yester.text.terms import query_terms

# A logistic model, fitted on turns that a reader of real prompts called related or better. What is
# of no turn (a memory, a note) does not age; it passes where it stands as far out as what readers
# of other sets called right.
CONSTANT, LEAD, NAMES, AGE = -1.45, 3.1, 1.0, -0.62
# Of a turn, among many, that shares no name with the prompt: words and a meaning are always near
# something, so it must stand farther out.
NAMELESS = -0.5
NO_TURN, LONG = 0.4, -1.0  # … and less for each e-fold over so many characters:
STRANGER = -0.4  # what another project has
LEAST_CHANCE = 0.42
_LONG = 1_800  # of long texts one always fits
_OLD = 10.0  # days, from which on age tells nothing more
_TENTH = 9
_MOST_HOLDING = 3  # of a dozen hits
# Where fewer than ten were found that score so much there is no tenth. Such a store holds little,
# and what is there is likely meant, however old. But it is new and of here whatever is asked: so
# much of its score does not count, and how much of the prompt it matches does. Of a long prompt any
# long text matches much: of one of so many words this share of what the next one matches goes, of a
# shorter one less.
_UNRELATED, _FOR_NOTHING = 0.25, 0.3
_NEXT, _LONG_PROMPT = 0.5, 24
_NAME = re.compile(
    r"#\d{2,}|(?!(?i:e\.g|i\.e)\b)(?<![A-Za-z_])[A-Za-z_][\w-]{0,99}(?:[./_][\w-]{1,99})+|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*"
)
_NUMBERED = re.compile(r"/(?:issues|pull|merge_requests)/(\d{2,9})\b")


class Judged(NamedTuple):
    """A hit, its chance to help from 0 to 1, the names it shares with the prompt, and its rank."""

    hit: Hit
    chance: float
    names: list[str]
    rank: float


def find_names(text: str) -> dict[str, str]:
    """Identifiers, paths and numbers of issues: in lower case → as they are written."""
    numbers = (f"#{number}" for number in _NUMBERED.findall(text))
    return {name.lower(): name for name in (*_NAME.findall(text), *numbers)}


def judge_hits(hits: Sequence[Hit], prompt: str, project: str, now: int) -> list[Judged]:
    """Explained hits for a prompt in this project (its name), the best first; with `now` 0, what
    was before is asked for: nothing is too old, and it need not be named.

    Leave out beforehand what is not to be shown anyway: the question itself, already recorded,
    would be its own best answer.
    """
    asked = find_names(prompt)
    scores = sorted((hit.score for hit in hits), reverse=True)
    few = len(scores) <= _TENTH or scores[_TENTH] < _UNRELATED
    shared = {
        hit.id: asked.keys()
        & find_names("\n".join((hit.title, hit.text, hit.excerpt, *hit.files))).keys()
        for hit in hits
    }
    held = Counter(name for names in shared.values() for name in names)
    matched = [max(hit.factors.get("matched", 0.0), hit.score - _FOR_NOTHING) for hit in hits]
    best, second = sorted([*matched, 0.0, 0.0], reverse=True)[:2]
    next_share = _NEXT * min(1.0, len(set(query_terms(prompt))) / _LONG_PROMPT)
    # Who names an issue is about that one, and what shares no name is not.
    numbered = any(name.startswith("#") for name in asked)
    nameless = NAMELESS * ((not few) + numbered) if now else 0.0
    judged = []
    for hit, match in zip(hits, matched, strict=True):
        # A name that many have (the user's folder, in every path) says nothing of one of them.
        names = sorted(asked[name] for name in shared[hit.id] if held[name] <= _MOST_HOLDING)
        if few:
            lead = match - next_share * (second if match == best else best)
        else:
            lead = hit.score - scores[_TENTH]
        stranger = hit.project != project
        if hit.prompt_number:
            days = 0.0 if few else (now - hit.epoch * 1000) / DAY
            evidence = turn_evidence(lead, len(names), days, stranger) + nameless * (not names)
        else:
            evidence = other_evidence(lead, len(names), len(hit.text), stranger)
        chance = 1 / (1 + exp(-evidence))
        judged.append(Judged(hit, chance, names, hit.score if few else chance))
    return sorted(judged, key=lambda one: -one.rank)


def turn_evidence(lead: float, names: int, days: float, stranger: bool = False) -> float:
    """The logarithm of the odds that a turn helps which stands so far above the tenth, shares so
    many names and is so old; `stranger`: another project has it."""
    evidence = CONSTANT + LEAD * lead + NAMES * log1p(names) + STRANGER * stranger
    return evidence + AGE * log1p(min(max(days, 0.0), _OLD))


def other_evidence(lead: float, names: int, length: int, stranger: bool = False) -> float:
    """The same for what is of no turn, a text of so many characters."""
    evidence = turn_evidence(lead, names, 0.0, stranger) + NO_TURN
    return evidence + LONG * max(0.0, log((1 + length) / _LONG))
