"""What a piece of work is called, what kind of work it is, and what was asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from yester.distil.cues import boilerplate, word_count
from yester.distil.phrases import as_title, plain, without_label
from yester.distil.sentences import generic_heading, statements
from yester.distil.typed import decisions_in
from yester.model import Item

TYPES = ("bugfix", "feature", "refactor", "change", "discovery", "decision")
CONCEPTS = (
    "how-it-works",
    "why-it-exists",
    "what-changed",
    "problem-solution",
    "gotcha",
    "pattern",
    "trade-off",
)

# The kind of a piece of work by how its title or its commit begins: type, pattern, example.
BEGINNINGS: tuple[tuple[str, str, str], ...] = (
    (
        "bugfix",
        r"(?:fix(?:e[sd]|ing)?|bugfix|hotfix|resolve[sd]?|correct(?:ed|s)?|repair(?:ed)?"
        r"|prevent(?:ed|s)?|avoid(?:ed|s)?|handle[sd]?|guard(?:ed)?|stop(?:ped|s)?)\b",
        "fix(web): the footer",
    ),
    (
        "feature",
        r"(?:feat(?:ure)?|add(?:ed|s)?|implement(?:ed|s)?|introduce[sd]?|create[sd]?"
        r"|support(?:ed|s)?|enable[sd]?|allow(?:ed|s)?|expose[sd]?|show(?:ed|s|n)?"
        r"|display(?:ed|s)?|wire[sd]?)\b",
        "Add a --local flag",
    ),
    (
        "refactor",
        r"(?:refactor(?:ed|s)?|perf|style|rename[sd]?|extract(?:ed|s)?|move[sd]?|simplif(?:y"
        r"|ied|ies)|clean(?:ed|s)?|restructure[sd]?|dedup\w*|consolidate[sd]?|split"
        r"|inline[sd]?|rework(?:ed|s)?|convert(?:ed|s)?|migrate[sd]?|unif(?:y|ied)"
        r"|reorgani[sz]e[sd]?|optimi[sz]e[sd]?|dry)\b",
        "refactor: one place for options",
    ),
    (
        "change",
        r"(?:docs?|chore|test|tests|ci|build|revert|release|bump(?:ed|s)?|update[sd]?"
        r"|remove[sd]?|delete[sd]?|drop(?:ped|s)?|change[sd]?|replace[sd]?|switch(?:ed|es)?"
        r"|set|use[sd]?|make|made|document(?:ed|s)?|merge[sd]?|upgrade[sd]?)\b",
        "docs: the new flag",
    ),
)
_BEGINNINGS = tuple((name, re.compile(pattern, re.I)) for name, pattern, _ in BEGINNINGS)
_BROKEN = re.compile(
    r"\b(?:fix|bug|broken|fails?|failing|failure|errors?|crash\w*|wrong|regression"
    r"|does(?:n't| not) work|not working|incorrect\w*|leak\w*|hangs?|panic|exception"
    r"|traceback|bugged|buggy|denied|blow\w* up|rejected|stuck|deadlock"
    r"|[45]\d\d (?:error|at|from|on))\b",
    re.I,
)
_FIXED = re.compile(r"(?:i (?:have )?|i've |we )?fixed\b(?! (?:in|by|with|width|size)\b)", re.I)
_CONVENTIONAL = re.compile(r"([a-z]+)(?:\([^)]*\))?!?: ")
_HOUSEKEEPING = re.compile(
    r"\A(?:merge\b|fixup!|squash!|chore\b|wip\b|release\b|bump\b"
    r"|docs?\(?[^)]*\)?: (?:update|capture|add) (?:todo|state|plan|roadmap)|refresh\b"
    r"|update (?:state|changelog|lockfile)|sync\b|checkpoint\b|format\b|lint\b)",
    re.I,
)

_PLAN = re.compile(
    r"\A\s*(?:implement|execute|do|follow|carry out) (?:the|this) (?:following )?plan\b[^\n]*\n+",
    re.I,
)
_COMMAND = re.compile(r"\A/[\w:.-]+\s+")
_QUOTED = re.compile(r"\"\"\"|'''")
_POLITE = re.compile(
    r"\A(?:(?:ok(?:ay)?|so|now|and|hmm+|hey|hi|well|great|good|thanks|yes|yep|sure"
    r"|perfect|cool|alright|right|next|then|also|actually|first|maybe|i think"
    r"|please|pls|can you|could you|can we|could we|would you|will you"
    r"|do you think we (?:can|should)|i(?:'d| would) like (?:you )?to|i want (?:you )?to"
    r"|i need (?:you )?to|i wonder if we (?:can|should|could)"
    r"|we need to|we should|we want to|let'?s|let us|you should|help me(?: to)?"
    r"|go ahead and|try to|make sure (?:to|that)|just|somehow)\b[\s,.:!-]*)+",
    re.I,
)
_PLEASE = re.compile(
    r"[\s,]+(?:please|pls|thanks|thank you|for me|right|as well|too)\W*\Z|\?+\Z", re.I
)
_NUMBERED = re.compile(r"(?:\W*\d+[.):]|step |phase |option |part )", re.I)
_VERB = re.compile(
    r"(?:address|adjust|align|apply|build|bring|check in|close|configure|cover|define"
    r"|describe|design|deploy|drop|ensure|evaluate|extend|find|finish|format|generate|get"
    r"|give|hide|improve|include|increase"
    r"|initiali[sz]e|install|invert|keep|let|limit|link|load|log|lower|mark|open|order"
    r"|pass|persist|port|print|publish|pull|put|reduce|regenerate|render|reorder|reset"
    r"|return|reuse|review|revert|run|save|scope"
    r"|search|send|share|ship|skip|sort|store|strip|sync|track|translate|trigger|turn|validate"
    r"|wrap|write)\b"
)
_PASTED = re.compile(r"\A\s*(?:[{\[<>$#|=/]|\d+[:|]|https?://|at \w|\w+Error\b|Traceback)")
_POINTING = re.compile(
    r"\b(?:this|that|it|them|these|those|here|above|below|same|again|option \w+|number \d+|\d+)\b",
    re.I,
)
_SEPARATORS = re.compile(r"[/\\]")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FEW_WORDS = 4
_LONG = 80  # characters: more than a title
_CLAUSES = re.compile(r"[,;] | [-–—] ")


def asked(prompt: Item | None) -> str:
    """What a prompt asks for, in a sentence of its own words; "" where none says it."""
    if prompt is None:
        return ""
    if title := plan_title(prompt.body):
        return title
    text = _COMMAND.sub("", prompt.body.strip(), count=1)
    text = _QUOTED.split(text, maxsplit=1)[0] or text
    best = ""
    for statement in statements(text[:6_000]):
        bare = plain(statement.text)
        if _PASTED.match(bare) or word_count(bare) < 2:
            continue
        if telling_request(bare) and not any(decisions_in(bare)):
            return bare
        best = best or bare
    return best


def plan_title(text: str) -> str:
    """The name of a plan that is handed in as a prompt."""
    rest = _PLAN.sub("", text, count=1)
    if rest == text:
        return ""
    for statement in statements(rest[:4_000]):
        if statement.kind == "heading":
            title = without_label(plain(statement.text)).strip()
            if not generic_heading(title):
                return title
        elif not boilerplate(statement.text):
            return plain(statement.text)
    return ""


def telling_request(text: str) -> bool:
    """Can somebody who reads only this know what was wanted?"""
    bare = _POLITE.sub("", text)
    return word_count(bare) - len(_POINTING.findall(bare)) >= _FEW_WORDS


def request_title(text: str) -> str:
    """A request as a title; a polite question asks for something, another one stays a question."""
    if len(text) > _LONG and not imperative(text):  # what is wrong, then what to do about it
        clauses = _CLAUSES.split(text)[1:]
        text = next((one for one in clauses if imperative(one) and telling_request(one)), text)
    bare = _POLITE.sub("", text) or text
    return as_title(_PLEASE.sub("", bare) if bare != text or imperative(text) else bare)


def imperative(text: str) -> bool:
    """Does a request say what to do, so that it can name what was done?"""
    bare = _POLITE.sub("", text).lower()
    return bool(type_of(bare)) or _VERB.match(bare) is not None


def type_of(title: str) -> str:
    """By how it begins; "" where that says nothing."""
    begin = title.lstrip("[`\"' ").lower()
    return next((name for name, pattern in _BEGINNINGS if pattern.match(begin)), "")


def fixed(title: str) -> bool:
    """Does it say of something that it was fixed?"""
    return _FIXED.match(title) is not None


def conventional(subject: str) -> str:
    """The type a commit says itself to be (`fix(web): …`); "" where it does not."""
    prefix = _CONVENTIONAL.match(subject)
    return type_of(prefix[1]) or "change" if prefix else ""


def about_a_fault(text: str) -> bool:
    return _BROKEN.search(text) is not None


def housekeeping(subject: str) -> bool:
    return _HOUSEKEEPING.match(subject) is not None


def heading_title(item: Item) -> str:
    """The first heading of a message, where it says what the message is about."""
    for statement in statements(item.body):
        if statement.kind == "heading":
            title = without_label(plain(statement.text))
            known = generic_heading(title) or _NUMBERED.match(title) or len(title) < 20
            return "" if known else as_title(title)
    return ""


def concepts_of(
    type_: str, tells: Iterable[frozenset[str]], edited: bool, failed: bool
) -> tuple[str, ...]:
    """What an observation is about, in the order of CONCEPTS."""
    told = [name for one in tells for name in one]
    found: set[str] = set()
    if edited:
        found.add("what-changed")
    if type_ == "bugfix":
        found.add("problem-solution")
    if type_ == "discovery" and ("how" in told or "cause" in told or not told):
        found.add("how-it-works")
    if told.count("why") + told.count("cause") >= (1 if type_ in ("decision", "feature") else 2):
        found.add("why-it-exists")
    if failed or "gotcha" in told or "failed" in told:
        found.add("gotcha")
    if "pattern" in told:
        found.add("pattern")
    if "decision" in told or type_ == "decision":
        found.add("trade-off")
    return tuple(name for name in CONCEPTS if name in found)


def words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def near(one: Collection[str], other: Collection[str]) -> float:
    """Share of common words of two titles."""
    first, second = set(one), set(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def file_names(files: Sequence[str], most: int = 3) -> str:
    """Some files by name, and how many more."""
    names = list(dict.fromkeys(_SEPARATORS.split(file.rstrip("/\\"))[-1] for file in files))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
