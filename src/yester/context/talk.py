"""What says next to nothing: prompts that name nothing to search for, and texts that tell an agent
nothing however well they fit.

A prompt is not searched for when every word of it is in the table; one word more, and it is: a
search too many costs milliseconds, and its answer has a floor of its own. An agent's "Running it.",
the three words a command printed, a summary reading "ok", a text of which redaction has left the
brackets are found, but not given unasked. What was kept on purpose (a memory) is never such.

tables/talk.toml has for every rule what it takes and what it must leave.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from yester.model import Hit
from yester.tables import load_pattern, load_table
from yester.text.sentences import split_sentences
from yester.text.terms import STOP, text_terms

SHORTEST = 15  # characters of a prompt that is searched for
_LONGEST = 200  # characters; nobody says yes at greater length
_LETTER = re.compile(r"[^\W_]")
# A path is no command, though it begins with the same sign.
_ROOTS = "bin|boot|etc|home|lib|mnt|opt|proc|root|sbin|srv|sys|tmp|users|usr|var"
_COMMAND = re.compile(
    rf"/(?!(?:{_ROOTS})(?![\w:.-]))[a-z][\w:.-]*(?=\s|$)"  # /compact, /plugin:skill words
    r"|![\w./~$(\[{\"'-]"  # a line for the shell
    r"|\#(?!\#*\d)(?!.*\n)",  # a line for the client's own memory; more lines are a document
    re.IGNORECASE,
)
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_TALK = ("message", "prompt")
_LONG = 3_000  # characters, from which on something is said; and no prompt waits for the patterns
_TOOL_TERMS = 6  # distinct ones, below which what a tool was asked and said is no news
_ANNOUNCED = 10  # words in which something is announced and nothing told
_PLACEHOLDER = re.compile(r"\[redacted:[^\]\s]{1,60}\]|\[private\]")


def trivial(prompt: str) -> str:
    """Why a prompt needs no search: short, acknowledgement, slash command, directive; else ""."""
    text = prompt.strip()
    if _COMMAND.match(text):
        return "slash command"
    if text and (meaning := phrase_meaning(text)):
        return meaning
    # A character of Chinese, Japanese or Korean says as much as several letters.
    size = sum(2 if _UNSPACED.match(char) else 1 for char in text[:SHORTEST])
    return "short" if size < SHORTEST else ""


def phrase_meaning(text: str) -> str:
    """acknowledgement or directive, where a text is nothing but phrases of the table; nothing but
    signs is the former. Short is no matter here: a word can be an answer."""
    text = _normal_form(text.strip())
    if len(text) > _LONGEST:
        return ""
    meanings = set()
    at = _next_word(text, 0)
    while at < len(text):
        found = _compile_phrases().match(text, at)
        if found is None:
            return ""
        meanings.add(load_meanings().get(found[0], ""))
        at = _next_word(text, found.end())
    if not meanings:
        return "acknowledgement"  # a thumbs up, an arrow
    return "directive" if "directive" in meanings else max(meanings)


def _normal_form(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().replace("’", "'")


@cache
def load_meanings() -> dict[str, str]:
    """phrase → what it amounts to: "acknowledgement", "directive" or nothing by itself."""
    meanings: dict[str, str] = {}
    for row in load_table("talk")["phrases"]:
        meaning = "" if row["name"] in ("object", "filler") else row["name"]
        phrases = (" ".join(one.split()) for one in row["phrases"].split(","))
        meanings |= dict.fromkeys(map(_normal_form, phrases), meaning)
    return meanings


@cache
def _compile_phrases() -> re.Pattern[str]:
    return re.compile(rf"{_any_of(load_meanings())}|\d{{1,2}}(?!\w)|[a-d](?!\w)")


def _any_of(phrases: Iterable[str]) -> str:
    """The longest first; words of scripts without spaces end anywhere."""
    return "|".join(
        re.escape(phrase) + ("" if _UNSPACED.search(phrase) else r"(?!\w|'\w)")
        for phrase in sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    )


def _next_word(text: str, at: int) -> int:
    word = _LETTER.search(text, at)
    return word.start() if word else len(text)


def asks_back(prompt: str, begins: bool) -> bool:
    """Does a prompt itself ask for what was before ("why did we …", "as last time")? "Tell me
    again" does where a session begins; later it means what this session has just said."""
    names = ("asks back", "asks again") if begins else ("asks back",)
    return any(load_pattern("talk", name).search(prompt[:_LONG]) for name in names)


# --- what was found ------------------------------------------------------------------------------


def says_little(hit: Hit) -> str:
    """Which rule of the table a hit falls under; "" for what may be shown."""
    if hit.kind == "memory":
        return ""
    text = hit.text if hit.text.strip() else hit.title
    if hit.title and hit.kind not in _TALK:  # of talk it is but the beginning
        text = f"{hit.title}\n{hit.text}"
    if len(text) > _LONG:
        return ""
    if _is_mostly_redacted(text):
        return "mostly redacted"
    if hit.kind in _TALK and hit.role == "tool":
        return "a tool's few words" if _has_few_terms(text) else ""
    if hit.kind in (*_TALK, "summary") and phrase_meaning(text):
        return "acknowledges"
    agent = hit.kind in _TALK and hit.role in ("assistant", "thinking")
    return "announces" if agent and _announces(text) else ""


def _is_mostly_redacted(text: str) -> bool:
    rest, gone = _PLACEHOLDER.subn(" ", text)
    return gone > 0 and len(_telling_terms(rest)) <= 2 * gone


def _has_few_terms(text: str) -> bool:
    wrong = load_pattern("talk", "went wrong").search(text)
    return wrong is None and len(_telling_terms(text)) < _TOOL_TERMS


def _announces(text: str) -> bool:
    return (
        load_pattern("talk", "announces").match(text.lstrip()) is not None
        and len(text.split()) <= _ANNOUNCED
        and len(split_sentences(text)) == 1
        and load_pattern("talk", "gives a reason").search(text) is None
    )


def _telling_terms(text: str) -> set[str]:
    """The distinct terms that are more than grammar."""
    return {term for term in text_terms(text) if term not in STOP and len(term) > 1}
