"""Amendment chains: which earlier decision a decision reverses or replaces.

    amends         why a newer decision takes the place of an older one, or ""
    find_amended   the newest of many that it takes the place of

A wrong link hides a decision that still holds, a missing one shows two that disagree: so only what
is said counts. Either the newer one names what it leaves ("back from Redis", "no longer yarn") and
the older one had chosen just that; or both choose among the same alternatives for the same purpose;
or one forbids in the same words what the other asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from yester.memories.subject import THINGS, shared_choice, telling_terms, term_overlap
from yester.tables import load_pattern, load_rows
from yester.text.sentences import split_sentences

_READ = 1_200  # characters of a decision that are looked at
_SAME_THING = 0.6  # share of common terms from which two phrases name the same thing
_SAME_PURPOSE = 0.5
_SURELY_SAME_PURPOSE = 0.75  # for things of which nobody knows that they are alternatives
_SAME_WORDS = 0.75


class Decisionlike(Protocol):
    """Anything decided: an observation or a memory of type decision is one."""

    @property
    def title(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def epoch(self) -> int: ...


D = TypeVar("D", bound=Decisionlike)
Terms = frozenset[str]


@dataclass(frozen=True, slots=True)
class _Taken:
    phrase: str
    terms: Terms
    purpose: Terms


@dataclass(frozen=True, slots=True)
class _Stance:
    taken: tuple[_Taken, ...]
    left: tuple[tuple[str, Terms, str], ...]  # (the name of the turn, terms, phrase)
    returns: tuple[str, ...]  # what is gone back to


def amends(newer: Decisionlike, older: Decisionlike) -> str:
    """Why `newer` takes the place of `older`, in a few words; "" when it does not."""
    if newer is older or newer.epoch < older.epoch:
        return ""
    now, then = _stance(newer), _stance(older)
    if now == then and newer.title == older.title:
        return ""  # said again
    return (
        _left(now, then) or _returned(now, then) or _rechosen(now, then) or _forbidden(newer, older)
    )


def find_amended(newer: Decisionlike, candidates: Iterable[D]) -> tuple[D, str] | None:
    """The newest of the candidates that `newer` amends, and why."""
    for older in sorted(candidates, key=lambda one: one.epoch, reverse=True):
        if why := amends(newer, older):
            return older, why
    return None


def _left(now: _Stance, then: _Stance) -> str:
    given_up = [terms for _, terms, _ in then.left]
    for turn, terms, phrase in now.left:
        if any(term_overlap(terms, gone) >= _SAME_THING for gone in given_up):
            continue  # the older one had left it too
        if any(term_overlap(terms, taken.terms) >= _SAME_THING for taken in then.taken):
            return f"{turn}: {phrase}"
    return ""


def _returned(now: _Stance, then: _Stance) -> str:
    for phrase in now.returns:
        if any(
            term_overlap(telling_terms(phrase), terms) >= _SAME_THING for _, terms, _ in then.left
        ):
            return f"back to: {phrase}"
    return ""


def _rechosen(now: _Stance, then: _Stance) -> str:
    for new in now.taken:
        for old in then.taken:
            if not new.terms or not old.terms or new.terms & old.terms:
                continue
            near = term_overlap(new.purpose, old.purpose)
            bare = {new.phrase.lower(), old.phrase.lower()} <= THINGS
            known = bare and shared_choice(new.phrase, old.phrase)
            free = not new.purpose and not old.purpose
            if (known and (free or near >= _SAME_PURPOSE)) or (
                near >= _SURELY_SAME_PURPOSE and len(new.purpose) > 1
            ):
                return f"chosen anew: {new.phrase}, not {old.phrase}"
    return ""


def _forbidden(newer: Decisionlike, older: Decisionlike) -> str:
    negated = load_pattern("decisions", "negated")
    if bool(negated.search(newer.title)) == bool(negated.search(older.title)):
        return ""
    now, then = telling_terms(newer.title), telling_terms(older.title)
    return "the opposite" if len(now) > 1 and term_overlap(now, then) >= _SAME_WORDS else ""


def _stance(decision: Decisionlike) -> _Stance:
    taken: list[_Taken] = []
    left: list[tuple[str, Terms, str]] = []
    returns: list[str] = []
    choice = load_pattern("decisions", "choice")
    headline = load_pattern("decisions", "headline")  # "Redis for sessions": without a verb
    for sentence in split_sentences(f"{decision.title}\n{decision.body}"[:_READ]):
        if load_pattern("decisions", "not decided").search(sentence):
            continue  # or decided beside what was there
        gone: set[str] = set()
        for turn in load_rows("decisions", "turns"):
            for match in turn.pattern.finditer(sentence):
                old, new = _group(match, "old"), _group(match, "new")
                if old:
                    gone.add(old)
                    left.append((turn.name, telling_terms(old), old))
                if turn.name == "back to":
                    returns.append(new)
                if new:
                    taken.append(_Taken(new, telling_terms(new), frozenset()))
        for match in list(choice.finditer(sentence)) or headline.finditer(sentence):
            new = _group(match, "new")
            if not any(telling_terms(new) <= telling_terms(phrase) for phrase in gone):
                taken.append(
                    _Taken(new, telling_terms(new), telling_terms(_group(match, "purpose")))
                )
    return _Stance(tuple(taken), tuple((n, t, p) for n, t, p in left if t), tuple(returns))


def _group(match: re.Match[str], name: str) -> str:
    groups = match.groupdict()
    found = groups.get(name) or groups.get(f"{name}2") or ""
    return re.sub(r"\A(?:the|our|a|an|using|use)\s", "", found, flags=re.I)
