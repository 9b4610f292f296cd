"""Standing rules: what a user asks for beyond the task at hand, taken from typed prompts.

    rules_in       the rules that stand in one prompt
    same_subject   are two rules about the same thing
    contradicts    must the older one give way
    in_force       what is left of many rules, oldest first: the newest wins

A rule shown to an agent is obeyed, so a wrong one does harm and a missed one costs a reminder:
what is not plainly a rule is none. The words are the user's own, taken and never rewritten, and a
rule must be found again in its own text alone; what needs its surroundings to be one is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from yester.memories.own_words import MASK, sentences
from yester.memories.phrases import LEAD, OVER, SOME, THING, TO_LEAVE
from yester.memories.standing_rules import CUES, Cue
from yester.memories.standing_vetoes import VETOES
from yester.memories.subject import alike, choice, key, telling, thing

LONGEST = 240  # characters of a rule
_FEWEST_WORDS = 2
_LOOKED_AT = 600  # characters of a sentence
_SAME = 0.5  # share of common terms from which two rules are about the same thing
_REPEATED = 0.75  # and from which they are about nothing else

_LEAD = re.compile(LEAD, re.I)
_SPACE = re.compile(r"\s+")
_NEGATED = re.compile(
    r"\b(?:never|don't|dont|do not|stop|quit|avoid|refrain|no|must not|may not|not allowed|not to"
    r"|should not|shouldn't|mustn't|cannot|can't|not|nie|niemals|keine?|nunca|jamais|no longer"
    rf"|keep {TO_LEAVE})\b",
    re.I,
)
_REASON = re.compile(
    r"\s(?:because|since|so that|in order to|to avoid|as (?:it|that|this|they|we)|due to)\s|[(–]"
    r"|,\s(?=(?:it|this|that|they|as|so|like|you|we|i|i'm|even|especially|to|while|which|and|but"
    r"|not|[a-z]+ing)\b)",
    re.I,
)
_CHOSEN = re.compile(
    r"\b(?:use|using|uses|prefer|with|stick to|stick with)\s(?:the\s)?"
    rf"(?:(?P<x>{SOME}){OVER}(?P<y>{SOME})(?=[\s,;.!]|\Z)|(?P<x2>{THING})(?=\s?(?:[,.;!]|\Z)"
    r"|\s(?:for|in|as|to|on|and|when|here|everywhere|because|since|with)\b)"
    r"|(?P<x3>(?:us|uk|british|american)\s(?:english|spelling)))",
    re.I,
)
_EVERYWHERE = re.compile(
    r"\b(?:in|across|for) (?:all|every|each|any) (?:of )?(?:my |our |the )?"
    r"(?:projects?|repos?|repositor\w+)\b|\bglobally\b",
    re.I,
)
_HERE = re.compile(r"\b(?:this|our) (?:repo(?:sitory)?|project|code ?base|monorepo)\b", re.I)
_PATH = re.compile(
    r"(?<![\w/:.@*~-])`?(?P<path>(?:\.{1,2}/|~/|/)?(?:[\w.*@-]{1,60}/){1,12}[\w.*@-]{0,80}"
    r"|\*\.\w{1,10}|[\w-]{1,60}\.(?:py|tsx?|jsx?|go|rs|mdx?|json|ya?ml|toml|sql|css|html|sh|rb"
    r"|java|kt|cpp|cs|php|lock|proto))(?![\w/])`?"
)
_FOLDERS = frozenset(
    """
    src lib test tests spec specs docs doc cmd pkg packages apps app scripts internal examples bench
    tools config migrations components pages api web server client vendor public assets fixtures
    """.split()  # noqa: SIM905 -- a table of words reads better as words
)
_NO_FILES = frozenset(
    {"node.js", "next.js", "vue.js", "nuxt.js", "express.js", "three.js", "d3.js"}
)
_ABOUT_PLACES = frozenset({"where things live", "written down"})  # a path is what they say


@dataclass(frozen=True, slots=True)
class Rule:
    """`text` is prompt[span] on one line. A rule holds where `scope` says; `path` is a glob."""

    text: str
    kind: str  # instruction, correction, preference
    scope: str  # global, project, path
    path: str
    subject: str  # what it is about: equal keys, or like ones, compete
    polarity: str  # do, do not
    prefers: str  # what is to be used …
    over: str  # … instead of this; or what is not to be used
    confidence: float
    span: tuple[int, int]
    cue: str  # which row of the table found it


def rules_in(prompt: str) -> list[Rule]:
    """The standing rules of a typed prompt, in order, none twice."""
    found: dict[str, Rule] = {}
    for sentence in sentences(prompt):
        if sentence.asked or (judged := _judged(sentence.text)) is None:
            continue
        cue, begin, end = judged
        begin, end = begin + sentence.start, end + sentence.start
        text = _one_line(prompt[begin:end])
        if text not in found and _stands_alone(text, cue):
            found[text] = _rule(text, cue, (begin, end))
    return list(found.values())


def same_subject(one: Rule, other: Rule) -> bool:
    if one.subject == other.subject:
        return True
    if choice(one.prefers, one.over) or choice(other.prefers, other.over):
        return False
    return alike(frozenset(one.subject.split()), frozenset(other.subject.split())) >= _SAME


def contradicts(newer: Rule, older: Rule) -> bool:
    """Can one not follow both? Rules of different reach stand side by side."""
    if (newer.scope, newer.path) != (older.scope, older.path) or not same_subject(newer, older):
        return False
    if newer.prefers and older.prefers:
        same = thing(newer.prefers) == thing(older.prefers)
        return not same and choice(newer.prefers, older.prefers) != ""
    if _named(newer.over, older.prefers) or _named(older.over, newer.prefers):
        return True
    if newer.prefers or older.prefers or newer.polarity == older.polarity:
        return False
    return alike(telling(newer.text), telling(older.text)) >= _REPEATED


def negated(text: str) -> bool:
    """Does a rule forbid what it names? Without its reason, which may say anything."""
    return _NEGATED.search(_REASON.split(text.replace("’", "'"), maxsplit=1)[0]) is not None


def in_force(rules: Iterable[Rule]) -> list[Rule]:
    """Oldest first in, oldest first out: without what a newer one contradicts or says again."""
    standing: list[Rule] = []
    for rule in rules:
        gone = [old for old in standing if contradicts(rule, old) or _says_again(rule, old)]
        standing = [*(old for old in standing if old not in gone), rule]
    return standing


# --- one sentence --------------------------------------------------------------------------------


def _judged(sentence: str) -> tuple[Cue, int, int] | None:
    """The cue and where in the sentence the rule stands, or None."""
    text = sentence[:_LOOKED_AT].replace("’", "'")
    if any(veto.pattern.search(text) for veto in VETOES):
        return None
    for cue in CUES:
        if match := cue.pattern.match(text):
            begin = match.start("core")
            end = _cut(text, begin)
            rule = text[begin:end]
            told = rule.count(MASK) * 2 <= len(rule) and not rule.endswith(":")
            return (cue, begin, end) if told and len(rule.split()) >= _FEWEST_WORDS else None
    return None


def _cut(text: str, begin: int) -> int:
    """The end of a rule that begins there: of the sentence, or of the last word that fits."""
    if len(text) - begin <= LONGEST:
        return len(text)
    end = text.rfind(" ", begin, begin + LONGEST)
    return end if end > begin else begin + LONGEST


def _stands_alone(text: str, cue: Cue) -> bool:
    alone = list(sentences(text))
    if len(alone) != 1 or alone[0].asked or (alone[0].start, alone[0].end) != (0, len(text)):
        return False
    return _judged(alone[0].text) == (cue, 0, len(text))


def _one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


# --- what a rule is about ------------------------------------------------------------------------


def _rule(text: str, cue: Cue, span: tuple[int, int]) -> Rule:
    said = _LEAD.sub("", text.replace("’", "'"), count=1)
    core = _REASON.split(said, maxsplit=1)[0]
    prefers, over = _preference(said, cue)
    negated = not prefers and _NEGATED.search(core) is not None
    path = "" if cue.name in _ABOUT_PLACES else _glob(said)
    return Rule(
        text=text, kind=cue.kind, scope=_scope(said, cue, path), path=path,
        subject=choice(prefers, over) or key(core) or key(said) or said.lower(),
        polarity="do not" if negated else "do", prefers=prefers, over=over,
        confidence=cue.confidence, span=span, cue=cue.name,
    )  # fmt: skip


def _preference(text: str, cue: Cue) -> tuple[str, str]:
    """(what is preferred, what it is preferred to or not wanted); either may be ""."""
    x, y, _ = _things(cue.pattern.match(text))
    if not x and not y:
        x, y, at = _things(_CHOSEN.search(text))
        if not y and _NEGATED.search(text, 0, at):
            x, y = "", x
    first, *rest = re.split(OVER, x, maxsplit=1)
    return _bare(first), _bare(y or "".join(rest))


def _things(match: re.Match[str] | None) -> tuple[str, str, int]:
    """The x and the y of a match, and where it begins."""
    groups = match.groupdict() if match else {}
    x, y = (next((v for k, v in groups.items() if k[0] == name and v), "") for name in "xy")
    return x, y, match.start() if match else 0


def _bare(thing: str) -> str:
    return _REASON.split(thing, maxsplit=1)[0].strip(" `.,;!").lower()[:80]


def _scope(text: str, cue: Cue, path: str) -> str:
    if path:
        return "path"
    if _EVERYWHERE.search(text):
        return "global"
    return "project" if _HERE.search(text) else cue.scope


def _glob(text: str) -> str:
    for match in _PATH.finditer(text):
        path = match["path"].rstrip(".").removeprefix("./")
        first, _, rest = path.partition("/")
        if not rest and "/" in path:  # docs/
            return f"{path}**"
        if "/" not in path:  # *.go, main.go
            if path.lower() in _NO_FILES:
                continue
            return f"**/{path}"
        named = first in _FOLDERS or first.startswith((".", "*")) or match[0].startswith("`")
        if named or "*" in path or "." in rest:
            whole = "*" in path or "." in path.rpartition("/")[2]
            return path if whole else f"{path.rstrip('/')}/**"
    return ""


def _other(one: str, other: str) -> bool:
    return telling(one).isdisjoint(telling(other))


def _named(thing: str, where: str) -> bool:
    return bool(thing and where) and not _other(thing, where)


def _says_again(newer: Rule, older: Rule) -> bool:
    reach = (newer.scope, newer.path, newer.polarity) == (older.scope, older.path, older.polarity)
    return reach and alike(telling(newer.text), telling(older.text)) >= _REPEATED
