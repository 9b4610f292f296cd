"""Amendment chains: which earlier decision a decision reverses or replaces.

    amends         why a newer decision takes the place of an older one, or ""
    find_amended   the newest of many that it takes the place of

A wrong link hides a decision that still holds, a missing one shows two that disagree: so only what
is said counts. Either the newer one names what it leaves ("back from Redis", "no longer yarn") and
the older one had chosen just that; or both choose among the same alternatives for the same purpose;
or one forbids in the same words what the other asks for. The tests walk the table TURNS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar

from yester.memories.subject import THINGS, shared_choice, telling_terms, term_overlap
from yester.text.sentences import split_sentences

_READ = 1_200  # characters of a decision that are looked at
_SAME_THING = 0.6  # share of common terms from which two phrases name the same thing
_SAME_PURPOSE = 0.5
_SURELY_SAME_PURPOSE = 0.75  # for things of which nobody knows that they are alternatives
_SAME_WORDS = 0.75

_WORD = r"(?:(?:[^\s,;:.()]|[.](?=\S)){1,40})"
# One to four words, up to where something else begins: a purpose, a reason, the next clause.
_NO_MORE = (
    r"(?!(?:for|in|to|as|with|on|because|when|while|by|from|so|since|and|but|if|instead|rather"
    r"|any ?more|anymore|until|of|at|via|over|per|is|are|was|were|than|which|that|not|due|after"
    r"|before|between|across|inside|within|under|among)\b)"
)
_PHRASE = (
    rf"(?<![^\s(])(?:the |our |a |an |using |use )?{_NO_MORE}{_WORD}(?:\s{_NO_MORE}{_WORD}){{0,3}}"
)
_FOR = r"(?:for|as|in|on|between|across|inside|within|under)"
_OLD, _NEW = rf"(?P<old>{_PHRASE})", rf"(?P<new>{_PHRASE})"


@dataclass(frozen=True, eq=False)
class Turn:
    """A way to say that something is left (`old`), taken (`new`), or both."""

    name: str
    source: str
    newer: str  # a decision put this way …
    older: str  # … one that it amends …
    other: str  # … and one that it does not

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.I)


TURNS = (
    Turn(
        "replaced",
        rf"\b(?:replac(?:e[ds]?|ing)|swapp?(?:ed|ing|s)?)\s{_OLD}\s(?:with|by|for)\s{_NEW}",
        "Replace Redis with PostgreSQL for sessions",
        "Use Redis for sessions",
        "Use Kafka for events",
    ),
    Turn(
        "moved",
        r"\b(?:switch|mov|migrat|chang|convert|go|went)\w{0,4}\s(?:\w+\s){0,2}?"
        rf"(?:back\s|away\s)?from\s{_OLD}\sto\s{_NEW}",
        "Migrated from yarn to pnpm",
        "We decided to use yarn",
        "Use the yarn cache for the pipeline",
    ),
    Turn(
        "back to",
        r"\b(?:switch|mov|go|went|chang|revert|roll|fall)\w{0,4}\s(?:\w+\s)?back (?:on)?to\s"
        rf"{_NEW}|\b(?:return|revert)(?:ed|ing)?\sto\s(?P<new2>{_PHRASE})",
        "Switch back to npm",
        "Use pnpm instead of npm",
        "Use ruff instead of flake8",
    ),
    Turn(
        "in favour of",
        rf"\b(?:drop|abandon|remov|ditch|scrap|retir|deprecat|discard)\w{{0,4}}\s{_OLD}\s"
        rf"(?:in favou?r of|and use|and go with)\s{_NEW}",
        "Drop GraphQL in favour of REST",
        "Use GraphQL as the interface",
        "Use gRPC between workers",
    ),
    Turn(
        "instead of",
        rf"{_NEW}\s(?:instead of|rather than|in place of)\s{_OLD}",
        "Use vitest instead of jest",
        "We settled on jest",
        "We settled on playwright",
    ),
    Turn(
        "no longer",
        r"\bno longer\s(?:(?:use|using|need|want|support|rely on|require|keep|have|do|store in"
        rf"|write|allow|run)\s)?{_OLD}|(?P<old2>{_PHRASE})\s(?:is|are)\sno longer\s"
        r"(?:used|needed|supported|required|wanted|allowed)\b",
        "We no longer use feature flags",
        "Use feature flags for risky changes",
        "Use conventional commits",
    ),
    Turn(
        "against",
        rf"\bdecid\w{{1,3}}\s(?:against|not to (?:use|have|keep|adopt|store in|go with))\s{_OLD}",
        "We decided against event sourcing",
        "Adopt event sourcing for orders",
        "Adopt outbox tables for orders",
    ),
    Turn(
        "undone",
        r"\b(?:revert|undo|undid|undone|roll(?:ed|ing)? back|back(?:ed|ing)? out|drop|abandon|ditch"
        r"|scrap|withdr[ae]w|retir|discard|remov)\w{0,4}\s"
        rf"(?:the (?:decision|choice|move|switch)\s(?:to use|to|for)\s)?{_OLD}",
        "Revert the switch to esbuild",
        "Switch to esbuild",
        "Switch to trunk based development",
    ),
    Turn(
        "stopped",
        r"\b(?:do not|don't|won't|will not|never|stop(?:ped)?)\s"
        rf"(?:use|using|have|keep|keeping|rely on|relying on|adopt)\s{_OLD}",
        "Do not use server components",
        "Use server components for pages",
        "Use tabs for indentation",
    ),
    Turn(
        "supersedes",
        r"\b(?:supersed|overrid|overrul)\w{0,4}\s"
        rf"(?:the (?:decision|choice)\s(?:to use|for)\s)?{_OLD}",
        "This supersedes the decision to use cron",
        "Use cron for the nightly jobs",
        "Use systemd for the worker",
    ),
)

# How a decision says what it takes.
CHOICE = re.compile(
    r"\b(?:use|using|used|adopt|adopted|choose|chose|chosen|pick|picked|go with|going with"
    r"|went with|settled? on|decided on|switch(?:ed)? to|migrated? to|moved? to|stick with"
    r"|standardi[sz]ed? on|introduced?|default to|prefer)\s"
    rf"(?P<new>{_PHRASE})(?:\s{_FOR}\s(?P<purpose>{_PHRASE}))?",
    re.I,
)
# "Redis for sessions": a headline without a verb.
_HEADLINE = re.compile(rf"\A(?P<new>{_PHRASE})\s(?:for|as)\s(?P<purpose>{_PHRASE})", re.I)
# Said, but not decided; or decided beside what was there.
_NOT_DECIDED = re.compile(
    r"\b(?:consider(?:ed|ing)?|maybe|might|could|would|propos\w+|perhaps|thought about|discussed"
    r"|kept|keep(?:ing)?|whether|what if|tried|explored?|evaluat\w+|also|additionally|as well"
    r"|alongside|in addition|besides|both)\b|\?\s*\Z",
    re.I,
)
_NEGATED = re.compile(r"\b(?:do not|don't|never|no|not|stop|avoid|without|won't)\b", re.I)


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
    if bool(_NEGATED.search(newer.title)) == bool(_NEGATED.search(older.title)):
        return ""
    now, then = telling_terms(newer.title), telling_terms(older.title)
    return "the opposite" if len(now) > 1 and term_overlap(now, then) >= _SAME_WORDS else ""


def _stance(decision: Decisionlike) -> _Stance:
    taken: list[_Taken] = []
    left: list[tuple[str, Terms, str]] = []
    returns: list[str] = []
    for sentence in split_sentences(f"{decision.title}\n{decision.body}"[:_READ]):
        if _NOT_DECIDED.search(sentence):
            continue
        gone: set[str] = set()
        for turn in TURNS:
            for match in turn.pattern.finditer(sentence):
                old, new = _group(match, "old"), _group(match, "new")
                if old:
                    gone.add(old)
                    left.append((turn.name, telling_terms(old), old))
                if turn.name == "back to":
                    returns.append(new)
                if new:
                    taken.append(_Taken(new, telling_terms(new), frozenset()))
        for match in list(CHOICE.finditer(sentence)) or _HEADLINE.finditer(sentence):
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
