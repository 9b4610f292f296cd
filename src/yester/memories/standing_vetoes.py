"""The table of what sounds like a standing rule and is none: a question, a guess, this task only.

Matched anywhere in a sentence; one match is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, eq=False)
class Veto:
    """Why a sentence that matches a cue is no standing rule after all."""

    name: str
    source: str
    examples: tuple[str, ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.I)


TASK = (
    r"(?:pr|pull request|commit|branch|task|change|fix|one|issue|case|step|phase|plan|tests?|file"
    r"|function|method|session|feature|part|time|review|ticket|run|release|example|scenario"
    r"|section|page|doc|document|comment|script|button|screen|view|modal|command|bug|refactor"
    r"|iteration|migration|demo|prompt|point|reply|round|work|instance|moment|stage|message)s?"
)
VETOES = (
    Veto(
        "question",
        r"\A(?:and |also |but |so |ok,? |hmm,? |q: ?)?(?:why|how|what|where|which|who|whose"
        r"|(?:can|could|would|should|shall|will|can't|couldn't|shouldn't|wouldn't|won't"
        r"|may) (?:we|you|i|it|this|that|they|the|there|he)|(?:do|does|did|don't|doesn't|didn't"
        r"|is|are|was|were|isn't|aren't|wasn't|has|have|haven't|hasn't|am) (?:we|you|i|it|this"
        r"|that|they|the|there|these|those|any|all))\b",
        ("can you always run the tests", "do we never commit to main"),
    ),
    Veto(
        "for now",
        r"\b(?:for now|for the moment|at the moment|right now|this time|this once|(?<!from )today"
        r"|tonight|tomorrow|yet|temporar\w{2,5}|in the meantime|until (?:i|we|it|the|then|that"
        r"|this|you)|just yet|for a (?:bit|while|second)|at this (?:point|stage)|first (?:cut"
        r"|version|pass))\b",
        ("never commit for now", "don't push to main yet"),
    ),
    Veto(
        "this task",
        rf"\b(?:in|for|on|to|with|of|from|into|during|about) (?:this|that|these|those"
        rf"|the current) {TASK}\b"
        r"|\b(?:when (?:you're|you are|it's|it is|that's|all is)? ?(?:done|finished|ready)"
        r"|once (?:done|finished|that)|afterwards?\b|and then\b|before (?:you|we) (?:start|begin"
        r"|continue)|in this (?:particular|specific))",
        ("always use tabs in this file", "remember to push when you're done"),
    ),
    Veto(
        "guess",
        r"\b(?:maybe|perhaps|i think|i guess|i wonder|wondering|not sure|unsure|i thought|i feel"
        r"|might|probably|possibly|ideally|i assume|i believe|i suspect|presumably|seems?"
        r"|looks like|in theory|alternatively|consider|what if|would be (?:nice|good|great"
        r"|better)|i'd|i would|thought we)\b",
        ("I think we should never mock it", "maybe always use pnpm"),
    ),
    Veto(
        "conditional",
        r"\A(?:and |but |so |also |ok,? )?(?:if|unless|once|since|because|assuming|in case|say"
        r"|suppose|given)\b",
        ("if it fails always retry", "once merged, never use it"),
    ),
    Veto(
        "told of",
        r"\b(?:it|this|that|he|she|they|which|who|there|hook|test|command|function|page|user"
        r"|users|code|cli|app|output|result) (?:always|never)\b|\b(?:has|have|had|'ve|'s|was|were"
        r"|been) (?:always|never)\b|\bi never\b|\bnever mind\b|\bi always\b(?! prefer)",
        ("in this repo we use a hook that never fires", "we use pnpm, it never fails"),
    ),
)  # fmt: skip
