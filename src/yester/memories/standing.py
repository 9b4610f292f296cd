"""Standing rules: what a user asks for beyond the task at hand, taken from typed prompts.

    find_rules           the rules that stand in one prompt
    rules_share_subject  are two rules about the same thing
    contradicts_rule     must the older one give way
    find_withdrawals     what a prompt takes back: "forget the rule about bun", "we use pnpm again"
    find_ended_rule      the one rule of many that it ends; None where that is not clear

A rule shown to an agent is obeyed, so a wrong one does harm and a missed one costs a reminder:
what is not plainly a rule is none. The words are the user's own, taken and never rewritten, and a
rule must be found again in its own text alone; what needs its surroundings to be one is dropped.

To end a rule wrongly loses what the user asked for, to keep one too long annoys: so it must be said
for good and in the user's own words, and name one rule alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from yester.memories.own_words import MASK, own_sentences
from yester.memories.phrases import CUES, VETOES, WITHDRAWALS, Cue, get_part, get_words
from yester.memories.subject import (
    named_thing,
    shared_choice,
    subject_key,
    telling_terms,
    term_overlap,
)

LONGEST_RULE = 240  # characters of a rule
_FEWEST_WORDS = 2
_LOOKED_AT = 600  # characters of a sentence
_SAME = 0.5  # share of common terms from which two rules are about the same thing
_REPEATED = 0.75  # and from which they are about nothing else

_LEAD = re.compile(get_part("LEAD"), re.I)
_SPACE = re.compile(r"\s+")
_NEGATED = re.compile(get_part("NEGATED"), re.I)
_REASON = re.compile(get_part("REASON"), re.I)
_CHOSEN = re.compile(get_part("CHOSEN"), re.I)
_EVERYWHERE = re.compile(get_part("EVERYWHERE"), re.I)
_HERE = re.compile(get_part("IN_THIS_REPO"), re.I)
_PATH = re.compile(get_part("PATH"))
_FOLDERS = frozenset(get_words("FOLDERS"))  # usual ones
_NO_FILES = frozenset(get_words("NO_FILES"))
_ABOUT_PLACES = frozenset({"where things live", "written down"})  # a path is what they say
_LONGEST_WITHDRAWAL = 300  # characters of a sentence that takes something back
_AGAIN = re.compile(r"\b(?:again|back)\b", re.I)
_PART = re.compile(r"[,;]\s+(?:and |but |so )?|\s[–—-]\s|\.\s")
# Said of less than the rule speaks of.
_ONLY = re.compile(get_part("ONLY_HERE"), re.I)


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


def find_rules(prompt: str) -> list[Rule]:
    """The standing rules of a typed prompt, in order, none twice."""
    found: dict[str, Rule] = {}
    for sentence in own_sentences(prompt):
        if sentence.asked or (judged := _find_cue(sentence.text)) is None:
            continue
        cue, begin, end = judged
        begin, end = begin + sentence.start, end + sentence.start
        text = _join_words(prompt[begin:end])
        if text not in found and _stands_alone(text, cue):
            found[text] = _make_rule(text, cue, (begin, end))
    return list(found.values())


def rules_share_subject(one: Rule, other: Rule) -> bool:
    if one.subject == other.subject:
        return True
    if shared_choice(one.prefers, one.over) or shared_choice(other.prefers, other.over):
        return False
    return term_overlap(frozenset(one.subject.split()), frozenset(other.subject.split())) >= _SAME


def contradicts_rule(newer: Rule, older: Rule) -> bool:
    """Can one not follow both? Rules of different reach stand side by side."""
    if (newer.scope, newer.path) != (older.scope, older.path) or not rules_share_subject(
        newer, older
    ):
        return False
    if newer.prefers and older.prefers:
        same = named_thing(newer.prefers) == named_thing(older.prefers)
        return not same and shared_choice(newer.prefers, older.prefers) != ""
    if _shares_terms(newer.over, older.prefers) or _shares_terms(older.over, newer.prefers):
        return True
    if newer.prefers or older.prefers or newer.polarity == older.polarity:
        return False
    return term_overlap(telling_terms(newer.text), telling_terms(older.text)) >= _REPEATED


def is_negated(text: str) -> bool:
    """Does a rule forbid what it names? Without its reason, which may say anything."""
    return _NEGATED.search(_REASON.split(text.replace("’", "'"), maxsplit=1)[0]) is not None


# --- one sentence --------------------------------------------------------------------------------


def _find_cue(sentence: str) -> tuple[Cue, int, int] | None:
    """The cue and where in the sentence the rule stands, or None."""
    text = sentence[:_LOOKED_AT].replace("’", "'")
    if any(veto.pattern.search(text) for veto in VETOES):
        return None
    for cue in CUES:
        if match := cue.pattern.match(text):
            begin = match.start("core")
            end = _rule_end(text, begin)
            rule = text[begin:end]
            told = rule.count(MASK) * 2 <= len(rule) and not rule.endswith(":")
            return (cue, begin, end) if told and len(rule.split()) >= _FEWEST_WORDS else None
    return None


def _rule_end(text: str, begin: int) -> int:
    """The end of a rule that begins there: of the sentence, or of the last word that fits."""
    if len(text) - begin <= LONGEST_RULE:
        return len(text)
    end = text.rfind(" ", begin, begin + LONGEST_RULE)
    return end if end > begin else begin + LONGEST_RULE


def _stands_alone(text: str, cue: Cue) -> bool:
    alone = list(own_sentences(text))
    if len(alone) != 1 or alone[0].asked or (alone[0].start, alone[0].end) != (0, len(text)):
        return False
    return _find_cue(alone[0].text) == (cue, 0, len(text))


def _join_words(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


# --- what a rule is about ------------------------------------------------------------------------


def _make_rule(text: str, cue: Cue, span: tuple[int, int]) -> Rule:
    said = _LEAD.sub("", text.replace("’", "'"), count=1)
    core = _REASON.split(said, maxsplit=1)[0]
    prefers, over = _find_preference(said, cue)
    negated = not prefers and _NEGATED.search(core) is not None
    path = "" if cue.name in _ABOUT_PLACES else _find_glob(said)
    choice = shared_choice(prefers, over)
    return Rule(
        text=text, kind=cue.kind, scope=_scope_of(said, cue, path), path=path,
        subject=choice or subject_key(core) or subject_key(said) or said.lower(),
        polarity="do not" if negated else "do", prefers=prefers, over=over,
        confidence=cue.confidence, span=span, cue=cue.name,
    )  # fmt: skip


def _find_preference(text: str, cue: Cue) -> tuple[str, str]:
    """(what is preferred, what it is preferred to or not wanted); either may be ""."""
    x, y, _ = _matched_things(cue.pattern.match(text))
    if not x and not y:
        x, y, at = _matched_things(_CHOSEN.search(text))
        if not y and _NEGATED.search(text, 0, at):
            x, y = "", x
    first, *rest = re.split(get_part("OVER"), x, maxsplit=1)
    return _bare_thing(first), _bare_thing(y or "".join(rest))


def _matched_things(match: re.Match[str] | None) -> tuple[str, str, int]:
    """The x and the y of a match, and where it begins."""
    groups = match.groupdict() if match else {}
    x, y = (next((v for k, v in groups.items() if k[0] == name and v), "") for name in "xy")
    return x, y, match.start() if match else 0


def _bare_thing(thing: str) -> str:
    return _REASON.split(thing, maxsplit=1)[0].strip(" `.,;!").lower()[:80]


def _scope_of(text: str, cue: Cue, path: str) -> str:
    if path:
        return "path"
    if _EVERYWHERE.search(text):
        return "global"
    return "project" if _HERE.search(text) else cue.scope


def _find_glob(text: str) -> str:
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


def _share_no_terms(one: str, other: str) -> bool:
    return telling_terms(one).isdisjoint(telling_terms(other))


def _shares_terms(thing: str, where: str) -> bool:
    return bool(thing and where) and not _share_no_terms(thing, where)


# --- taken back ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Withdrawal:
    text: str  # the user's sentence, on one line
    what: str  # that it is about
    ends: str


def find_withdrawals(prompt: str) -> list[Withdrawal]:
    """What a typed prompt takes back, in order."""
    found: list[Withdrawal] = []
    for sentence in own_sentences(prompt):
        text = sentence.text.replace("’", "'")
        if sentence.asked or len(text) > _LONGEST_WITHDRAWAL or MASK in text or _ONLY.search(text):
            continue
        if any(veto.pattern.search(text) for veto in VETOES if veto.name != "told of"):
            continue
        said = " ".join(prompt[sentence.start : sentence.end].split())
        for part in _PART.split(text):
            found += (Withdrawal(said, what, ends) for what, ends in _match_withdrawal(part))
    return found


def _match_withdrawal(part: str) -> Iterable[tuple[str, str]]:
    for way in WITHDRAWALS:
        match = way.pattern.match(part)
        if match and (way.ends != "again" or _AGAIN.search(part)):
            what = next((text for text in match.groupdict().values() if text), "")
            yield what.strip(" .!"), way.ends
            return


def find_ended_rule(withdrawal: Withdrawal, rules: Iterable[str]) -> str | None:
    """The only one of these rules that it can mean."""
    meant = [text for text in rules if _can_mean(withdrawal, text)]
    return meant[0] if len(set(meant)) == 1 else None


def _can_mean(withdrawal: Withdrawal, text: str) -> bool:
    parsed = find_rules(text)
    rule = parsed[0] if len(parsed) == 1 else None
    if withdrawal.ends == "again":
        return rule is not None and _chose_otherwise(named_thing(withdrawal.what), rule)
    if withdrawal.ends != "any" and not _asks_for(withdrawal, text, rule):
        return False
    about, said = telling_terms(withdrawal.what), telling_terms(text)
    if not about or not about <= said:
        return False
    # One word of a longer rule names it where the rule itself is named, or a thing it chose.
    chose = rule is not None and bool(rule.prefers or rule.over)
    return withdrawal.ends == "any" or chose or len(about) > 1 or about == said


def _asks_for(withdrawal: Withdrawal, text: str, rule: Rule | None) -> bool:
    """Does the rule ask for what is left, or forbid what is allowed now?"""
    if rule is not None and (rule.prefers or rule.over):
        wanted = rule.prefers if withdrawal.ends == "do" else rule.over
        return bool(wanted) and bool(telling_terms(withdrawal.what) & telling_terms(wanted))
    return is_negated(text) == (withdrawal.ends == "do not")


def _chose_otherwise(name: str, rule: Rule) -> bool:
    if not name or named_thing(rule.prefers) == name:
        return False
    return named_thing(rule.over) == name or bool(
        rule.prefers and shared_choice(rule.prefers, name)
    )
