"""Standing rules taken back: "forget the rule about bun", "we use pnpm again".

    withdrawals_in   what a typed prompt takes back
    ended_by         the one rule of many that it ends; None where that is not clear

To end a rule wrongly loses what the user asked for, to keep one too long annoys: so it must be said
for good and in the user's own words, and name one rule alone. The tests walk the table WAYS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from yester.memories.own_words import MASK, sentences
from yester.memories.phrases import FROM_NOW, LEAD, SOME, TO_LEAVE, VERB
from yester.memories.standing import Rule, negated, rules_in
from yester.memories.standing_vetoes import VETOES
from yester.memories.subject import choice, telling, thing

_LONGEST = 300  # characters of a sentence that takes something back
_WHAT = r"(?P<what>[^,;:()]{2,120})"
_MORE = r"(?:any ?more|any longer)"
_END = r"(?=\s?(?:[.!,;]|\Z|because\b|since\b|now\b))"
_RULE = r"(?:rules?|instructions?|preferences?|conventions?|guidelines?)"
_OLD = r"(?:standing |old |earlier |previous |former )?"
_OF = r"(?:about|on|for|to|that|of|regarding|concerning|against|not to|where|which says)"


@dataclass(frozen=True, eq=False)
class Way:
    """`ends` says which rules can end by it: any, those that ask for it (do), those that forbid it
    (do not), or those that chose otherwise (again)."""

    name: str
    ends: str
    source: str
    examples: tuple[tuple[str, str], ...]  # (what is said, a rule that it ends)
    near_misses: tuple[tuple[str, str], ...]  # and one that it does not

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"{LEAD}(?:{FROM_NOW}\s?,?\s)?(?:{self.source})", re.I)


WAYS = (
    Way(
        "the rule", "any",
        r"(?:you can |you may |let's |we can )?(?:forget|drop|ignore|disregard|cancel|scrap|lift"
        r"|withdraw|revoke|retire|never mind|scratch|abandon)\s(?:about\s)?"
        rf"(?:the|my|that|our|this)\s{_OLD}{_RULE}\s(?:{_OF}\s)?{_WHAT}",
        (("forget the rule about bun, we use pnpm again", "Always use bun, never pnpm"),
         ("Please drop my rule to squash before merging.", "we always squash before merging"),
         ("ignore the old instruction about emojis", "no emojis please"),
         ("never mind the rule not to commit to main", "Never commit to main.")),
        (("drop the firewall rule for bun", "Always use bun, never pnpm"),
         ("should we forget the rule about bun?", "Always use bun, never pnpm"),
         ("ignore the rule about bun for this PR", "Always use bun, never pnpm"),
         ("forget the rule about yarn", "Always use bun, never pnpm"),
         ("remove the eslint rule about tabs", "use tabs, not spaces"),
         ('he said "forget the rule about bun"', "Always use bun, never pnpm"),
         ("if we forget the rule about bun it breaks", "Always use bun, never pnpm")),
    ),
    Way(
        "no longer", "do",
        rf"(?:we|you|i)(?:'re|'ll| are| will)?\s(?:no longer|don't|do not)\s(?:(?:have|need|want)"
        rf"\s(?:you\s)?to\s)?(?P<what2>(?:always\s|use\s|using\s)?[^,;:()]{{2,100}}?)\s{_MORE}{_END}"
        rf"|(?:we|you|i)(?:'re|'ll| are| will)?\sno longer\s(?:(?:have|need|want)\s(?:you\s)?to\s)?"
        rf"{_WHAT}|no longer\s(?P<what3>{VERB}\s[^,;:()]{{2,100}})"
        rf"|no need to\s(?P<what4>{VERB}[^,;:()]{{2,100}}?)\s{_MORE}{_END}"
        rf"|you can stop\s(?P<what5>{TO_LEAVE}\s[^,;:()]{{2,100}})",
        (("we no longer use bun", "Always use bun, never pnpm"),
         ("you no longer have to run the linter before committing",
          "always run the linter before committing"),
         ("no need to squash before merging any more", "we always squash before merging")),
        (("we no longer use bun", "Never use bun"),
         ("the page no longer uses bun", "Always use bun, never pnpm"),
         ("we no longer use yarn", "Always use bun, never pnpm"),
         ("do we no longer use bun?", "Always use bun, never pnpm"),
         ("we don't use bun any more for now", "Always use bun, never pnpm")),
    ),
    Way(
        "allowed again", "do not",
        r"(?:you|we) (?:can|may|are allowed to)(?: now)?\s"
        rf"(?P<what>{VERB}\s[^,;:()]{{2,100}}?)\s(?:again|from now on){_END}"
        rf"|it(?:'s| is) (?:fine|ok|okay|allowed|all right)(?: now)? to\s"
        rf"(?P<what2>{VERB}\s[^,;:()]{{2,100}}?)\s(?:again|from now on){_END}",
        (("you may commit to main again", "Never commit to main."),
         ("it's ok to push to main again", "please don't push to main")),
        (("you may commit to main again", "always commit to main"),
         ("can you commit to main again?", "Never commit to main."),
         ("you may commit it again", "Never commit to main.")),
    ),
    Way(
        "again", "again",
        r"we(?:'re| are|'ll| will)?(?: now| going)?\s(?:use|using|back to using|back (?:to|on|with)"
        r"|go back to|switch back to|switched back to|went back to|moved back to)"
        rf"\s(?P<what>{SOME})(?:\sagain)?{_END}",
        (("we use pnpm again", "Always use bun, never pnpm"),
         ("we're back to npm", "use pnpm, not npm"),
         ("we switched back to spaces", "use tabs, not spaces")),
        (("we use pnpm again", "use tabs, not spaces"),
         ("we use bun again", "Always use bun, never pnpm"),
         ("we use pnpm again for the docs site", "Always use bun, never pnpm"),
         ("we use pnpm", "Always use bun, never pnpm"),
         ("do we use pnpm again?", "Always use bun, never pnpm")),
    ),
    Way(
        "Deutsch", "any",
        r"(?:vergiss|streiche?|ignoriere?)(?: bitte)? (?:die|meine|unsere) (?:alte )?regel"
        rf"(?: (?:mit|über|zu|zum|zur|dass|für|wegen)(?: de[rmns]| das| die)?)?\s{_WHAT}",
        (("vergiss die Regel mit bun", "Always use bun, never pnpm"),),
        (("die Regel mit bun vergisst er", "Always use bun, never pnpm"),),
    ),
)  # fmt: skip
_AGAIN = re.compile(r"\b(?:again|back)\b", re.I)
_PART = re.compile(r"[,;]\s+(?:and |but |so )?|\s[–—-]\s|\.\s")
# Said of less than the rule speaks of.
_ONLY = re.compile(
    r"\b(?:only|once|just (?:this|here)|here|unless|except|for the|in the|temporarily)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    text: str  # the user's sentence, on one line
    what: str  # that it is about
    ends: str


def withdrawals_in(prompt: str) -> list[Withdrawal]:
    """What a typed prompt takes back, in order."""
    found: list[Withdrawal] = []
    for sentence in sentences(prompt):
        text = sentence.text.replace("’", "'")
        if sentence.asked or len(text) > _LONGEST or MASK in text or _ONLY.search(text):
            continue
        if any(veto.pattern.search(text) for veto in VETOES if veto.name != "told of"):
            continue
        said = " ".join(prompt[sentence.start : sentence.end].split())
        for part in _PART.split(text):
            found += (Withdrawal(said, what, ends) for what, ends in _taken_back(part))
    return found


def _taken_back(part: str) -> Iterable[tuple[str, str]]:
    for way in WAYS:
        match = way.pattern.match(part)
        if match and (way.ends != "again" or _AGAIN.search(part)):
            what = next((text for text in match.groupdict().values() if text), "")
            yield what.strip(" .!"), way.ends
            return


def ended_by(withdrawal: Withdrawal, rules: Iterable[str]) -> str | None:
    """The only one of these rules that it can mean."""
    meant = [text for text in rules if _means(withdrawal, text)]
    return meant[0] if len(set(meant)) == 1 else None


def _means(withdrawal: Withdrawal, text: str) -> bool:
    parsed = rules_in(text)
    rule = parsed[0] if len(parsed) == 1 else None
    if withdrawal.ends == "again":
        return rule is not None and _chose_otherwise(thing(withdrawal.what), rule)
    if withdrawal.ends != "any" and not _asks(withdrawal, text, rule):
        return False
    about, said = telling(withdrawal.what), telling(text)
    if not about or not about <= said:
        return False
    # One word of a longer rule names it where the rule itself is named, or a thing it chose.
    chose = rule is not None and bool(rule.prefers or rule.over)
    return withdrawal.ends == "any" or chose or len(about) > 1 or about == said


def _asks(withdrawal: Withdrawal, text: str, rule: Rule | None) -> bool:
    """Does the rule ask for what is left, or forbid what is allowed now?"""
    if rule is not None and (rule.prefers or rule.over):
        wanted = rule.prefers if withdrawal.ends == "do" else rule.over
        return bool(wanted) and bool(telling(withdrawal.what) & telling(wanted))
    return negated(text) == (withdrawal.ends == "do not")


def _chose_otherwise(name: str, rule: Rule) -> bool:
    if not name or thing(rule.prefers) == name:
        return False
    return thing(rule.over) == name or bool(rule.prefers and choice(rule.prefers, name))
