"""What a user types as decided: the table of ways to say it.

Matched at the beginning of the user's own sentences, after words that only lead in; what is quoted
or pasted is not the user's. A question, a guess and a condition decide nothing. The tests walk the
table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from yester.memories.own_words import MASK, own_sentences
from yester.memories.phrases import VETOES, get_part

_LONGEST = 320  # characters of a decision
_FEWEST_WORDS = 2
_WHY = r"(?:because|since|so that|so we|so it|as (?:it|we|they|that)|to avoid|in order to|due to)"
_NOT_THAT = r"(?:instead of|rather than|over|and not|but not|, not|not|and never|in place of)"
_SETTLED = rf"(?=.{{2,160}}?\s?(?:{_WHY}|{_NOT_THAT})\s)"
_AT_HAND = r"(?!\s(?:it|this|that|these|those|them|option|number|both|the (?:first|second|last))\b)"
_WE = r"(?:we|i|the team|my team)"
_HAVE = r"(?:'ve| have|'re| are)?(?: (?:now|finally|just|all|both|also|already|therefore))?"
_TAKE = (
    r"(?:go with|use|stick (?:with|to)|keep(?! (?:going|at|on|in mind|working|trying))|settle on"
    r"|choose|pick|adopt|drop|switch (?:back )?to|move to|standardi[sz]e on|stay (?:with|on))"
)
_TOOK = (
    r"(?:chose|picked|selected|adopted|went with|settled on|switched (?:back )?to|moved to|kept"
    r"|dropped|rejected|ruled out|standardi[sz]ed on|opted for)"
)
_LABELS = (
    r"(?:(?:final |design |architecture |architectural |team |product )?decision|decided|adr"
    r"|entscheidung|décision|decisión|decisão|decisione|решение|決定|决定)"
)
_LEAD = get_part("LEAD")


@dataclass(frozen=True, eq=False)
class Way:
    name: str
    source: str
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(rf"{_LEAD}(?:{self.source})", re.I | re.S)


LABEL = re.compile(rf"{_LEAD}{_LABELS}(?:[ -]?\d{{1,4}})?\s?(?:[:：]|\s[—–-]\s)\s{{0,4}}", re.I)
WAYS = (
    Way(
        "label",
        rf"{_LABELS}(?:[ -]?\d{{1,4}})?\s?(?:[:：]|\s[—–-]\s)\s{{0,4}}"
        r"(?!(?:pending|tbd|tba|open|none|n/a|unknown|to be|not (?:yet|made)|still|see|whether"
        r"|should|shall|do we|which|what|how|who)\b)\S",
        ("Decision: we use Postgres and not MySQL for the orders, because of its row locks",
         "decision: tabs for indentation", "Final decision - one table per tenant",
         "Entscheidung: wir bleiben bei einem Server"),
        ("Decision: pending", "decision: whether we move to Kafka is open",
         "decisions live in docs/adr", "the decision: who makes it",
         "Decision: should we use Kafka or RabbitMQ?"),
    ),
    Way(
        "we decided",
        rf"{_WE}{_HAVE} (?:decided|agreed|opted|resolved|made the decision)"
        r" (?:to|on|for|against|that|not to|in favou?r of)"
        r"(?!\s(?:what|which|how|whether|do)\b)\s\S",
        ("We decided to keep the monolith because two teams are too few for services",
         "I've decided against Redis", "we have finally agreed on trunk based development",
         "ok, the team decided that every service owns its tables"),
        ("we haven't decided to keep it", "if we decided to split it, what would break?",
         "what have we decided on", "we have to decide on a name", "we decided on what to test",
         "did we decide to drop Redis?"),
    ),
    Way(
        "we chose",
        rf"{_WE}{_HAVE} {_TOOK}{_AT_HAND}\s{_SETTLED}",
        ("We chose SQLite over Postgres", "we went with Kafka since it keeps the events",
         "we dropped GraphQL because nobody asked for it"),
        ("we chose the first one", "we picked this because it was there",
         "we switched to pnpm and the build is broken", "we moved to the new office"),
    ),
    Way(
        "going with",
        rf"{_WE}(?:(?:'re|'m| are| am) (?:going|sticking|staying)|(?:'ll| will) (?:go|stick|stay))"
        rf" (?:with|on){_AT_HAND}\s\S",
        ("we're going with Kafka for the events", "We'll stick with Kafka",
         "I'm sticking with one repository"),
        ("we're going with that", "we are going to look at it", "are we going with Kafka?"),
    ),
    Way(
        "let's",
        rf"let(?:'s| us) (?:not )?{_TAKE}{_AT_HAND}\s{_SETTLED}",
        ("Let's go with Kafka instead of RabbitMQ, since we want to replay events",
         "let's keep the monolith because we are two people"),
        ("let's go with option 2 because it is shorter", "let's use the debugger on the worker",
         "let's keep going because there is time", "let's look at the logs instead of guessing",
         "shall we go with Kafka instead of RabbitMQ"),
    ),
    Way(
        "we use",
        rf"we(?:'ll| will|'re| are)?(?: now)? (?:us(?:e|ing)|deploy|run on|stay (?:with|on))"
        rf"{_AT_HAND}\s(?=[^,;:]{{2,60}}?,?\s?(?:instead of|rather than|and not|, not|not)\s"
        r"(?!only\b|just\b|yet\b|sure\b|the old\b))",
        ("we use Postgres, not MySQL", "we will use uv instead of pip",
         "we're using REST rather than GraphQL"),
        ("we use Postgres", "we use it instead of the parser", "do we use pnpm and not npm?",
         "we use the cache, but it is not warm", "we use this hook and not the other"),
    ),
    Way(
        "other languages",
        r"wir haben (?:uns|beschlossen|entschieden)\b.{2,200}?\b(?:entschieden|zu \w+|dass)\b"
        r"|(?:nous avons|on a) (?:décidé|choisi) d\S"
        r"|(?:hemos )?decidi(?:mos|do) \S|(?:nós )?decidimos \S",
        ("Wir haben uns für Postgres entschieden", "On a décidé de garder le monolithe",
         "hemos decidido usar Kafka"),
        ("haben wir uns für Postgres entschieden?", "wir haben uns das angesehen"),
    ),
)  # fmt: skip
_VETOES = tuple(v for v in VETOES if v.name in ("question", "guess", "conditional"))
# What is wrong now, told with how it came to be: a report, no decision.
_REPORTS = re.compile(
    r"\b(?:fails?|failing|failed|broken|breaks|crash\w*|error|doesn't work|does not work|why)\b",
    re.I,
)
_REASON = re.compile(rf"\b{_WHY}\b", re.I)


@dataclass(frozen=True, slots=True)
class Decision:
    """`text` is the user's sentence, on one line; `label` what of it only says that it is one."""

    text: str
    label: str
    way: str


def decisions_in(prompt: str) -> Iterator[Decision]:
    """What a typed prompt says to be decided, in order."""
    for sentence in own_sentences(prompt):
        if sentence.asked or not (way := _way(sentence.text)):
            continue
        text = " ".join(prompt[sentence.start : sentence.end].split())
        label = LABEL.match(text.replace("’", "'"))
        rest = text[label.end() :] if label else text
        if len(rest.split()) >= _FEWEST_WORDS and len(text) <= _LONGEST:
            yield Decision(text, text[: len(text) - len(rest)], way)


def _way(sentence: str) -> str:
    text = sentence.replace("’", "'")
    # Hedges in a reason are about what would have been, not about what is decided.
    head = _REASON.split(text, maxsplit=1)[0]
    labelled = LABEL.match(text)
    said = head[labelled.end() :] if labelled else head
    if any(veto.pattern.search(said) for veto in _VETOES):
        return ""
    if text.count(MASK) * 2 > len(text) or (not labelled and _REPORTS.search(head)):
        return ""
    return next((way.name for way in WAYS if way.pattern.match(text)), "")
