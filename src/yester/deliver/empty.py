"""What says next to nothing, however well it fits: it is found, but not given to an agent unasked.

An agent's "Running it.", the three words a command printed, a summary reading "ok", the user's own
question of another day without its answer, a text of which redaction has left the brackets. They
share words with a prompt and tell nothing. What was kept on purpose (a memory) is never such.

tables/talk.toml has for every rule what it takes and what it must leave.
"""

from __future__ import annotations

import re

from yester.deliver.gate import amounts_to
from yester.model import Hit
from yester.tables import load_pattern
from yester.text.terms import STOP, text_terms

QUESTION = "a question"
_TALK = ("message", "prompt")
_LONG = 3_000  # characters, from which on something is said; and no prompt waits for the patterns
_TOOL_TERMS = 6  # distinct ones, below which what a tool was asked and said is no news
_LISTING_TERMS = 16  # … where all it did was to list or print
_ANNOUNCED = 10  # words in which something is announced and nothing told
_QUESTION = 30  # words; who asks at greater length tells something, too
_BESIDE = 3  # words of an order beside a question: "run ls"

_PLACEHOLDER = re.compile(r"\[redacted:[^\]\s]{1,60}\]|\[private\]")
_WORD = re.compile(r"\w[\w'’.-]*")
_SENTENCE = re.compile(r"[^.!?\n…]+(?:[.](?=\w)[^.!?\n…]*)*[.!?…]*")


def says_little(hit: Hit) -> str:
    """Which rule of the table a hit falls under; "" for what may be shown."""
    if hit.kind == "memory":
        return ""
    text = hit.text if hit.text.strip() else hit.title
    if hit.title and hit.kind not in _TALK:  # of talk it is but the beginning
        text = f"{hit.title}\n{hit.text}"
    if len(text) > _LONG:
        return ""
    if _mostly_redacted(text):
        return "mostly redacted"
    if hit.kind in _TALK and hit.role == "tool":
        return "a tool's few words" if _few_of_a_tool(text) else ""
    if hit.kind in (*_TALK, "summary") and amounts_to(text):
        return "acknowledges"
    if hit.kind in _TALK and hit.role in ("assistant", "thinking") and _announces(text):
        return "announces"
    if hit.kind == "prompt" and hit.role == "user" and _only_asks(text):
        return QUESTION
    return ""


def _mostly_redacted(text: str) -> bool:
    rest, gone = _PLACEHOLDER.subn(" ", text)
    return gone > 0 and len(_telling(rest)) <= 2 * gone


def _few_of_a_tool(text: str) -> bool:
    if load_pattern("talk", "went wrong").search(text):
        return False
    listing = load_pattern("talk", "listing").match(text)
    return len(_telling(text)) < (_LISTING_TERMS if listing else _TOOL_TERMS)


def _announces(text: str) -> bool:
    return (
        load_pattern("talk", "announces").match(text.lstrip()) is not None
        and len(_WORD.findall(text)) <= _ANNOUNCED
        and len(_sentences(text)) == 1
        and load_pattern("talk", "gives a reason").search(text) is None
    )


def _only_asks(text: str) -> bool:
    """Are all sentences questions, but for a greeting and a short order?"""
    sentences = _sentences(text)
    asked = [one for one in sentences if _question(one, alone=len(sentences) == 1)]
    others = [one for one in sentences if one not in asked]
    return (
        bool(asked)
        and len(_WORD.findall(text)) <= _QUESTION
        and all(len(_WORD.findall(one)) <= _BESIDE for one in others)
    )


def _question(sentence: str, alone: bool) -> bool:
    """A mark says so; without one the first word does, of a text that is nothing else."""
    if load_pattern("talk", "requests").match(sentence):
        return False
    asks = load_pattern("talk", "asks")
    return sentence.endswith("?") or (alone and asks.match(sentence) is not None)


def _sentences(text: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.findall(text) if _WORD.search(s)]


def _telling(text: str) -> set[str]:
    """The distinct terms that are more than grammar."""
    return {term for term in text_terms(text) if term not in STOP and len(term) > 1}
