"""Which prompts are worth a search: all but those that name nothing to search for.

Decided by tables alone. A prompt is left out when every word of it is in them; one word more, and
it is searched for: a search too many costs milliseconds, and its answer has a floor of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from yester.tables import load_table

_WORD = re.compile(r"[^\W_]")
SHORTEST = 15  # characters
_LONGEST = 200  # characters; nobody says yes at greater length

# A path is no command, though it begins with the same sign.
_ROOTS = "bin|boot|etc|home|lib|mnt|opt|proc|root|sbin|srv|sys|tmp|users|usr|var"
_COMMAND = re.compile(
    rf"/(?!(?:{_ROOTS})(?![\w:.-]))[a-z][\w:.-]*(?=\s|$)"  # /compact, /plugin:skill words
    r"|![\w./~$(\[{\"'-]"  # a line for the shell
    r"|\#(?!\#*\d)(?!.*\n)",  # a line for the client's own memory; more lines are a document
    re.IGNORECASE,
)
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().replace("’", "'")


@cache
def load_meanings() -> dict[str, str]:
    """phrase → what it amounts to: "acknowledgement", "directive" or nothing by itself."""
    meanings: dict[str, str] = {}
    for row in load_table("talk")["phrases"]:
        meaning = "" if row["name"] in ("object", "filler") else row["name"]
        meanings |= {_normal(" ".join(one.split())): meaning for one in row["phrases"].split(",")}
    return meanings


def _any_of(phrases: Iterable[str]) -> str:
    """The longest first; words of scripts without spaces end anywhere."""
    return "|".join(
        re.escape(phrase) + ("" if _UNSPACED.search(phrase) else r"(?!\w|'\w)")
        for phrase in sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    )


@cache
def _compile_phrases() -> re.Pattern[str]:
    return re.compile(rf"{_any_of(load_meanings())}|\d{{1,2}}(?!\w)|[a-d](?!\w)")


def trivial(prompt: str) -> str:
    """Why a prompt needs no search: short, acknowledgement, slash command, directive; else ""."""
    text = prompt.strip()
    if _COMMAND.match(text):
        return "slash command"
    if len(text) <= _LONGEST and (reason := _said(_normal(text))):
        return reason
    # A character of Chinese, Japanese or Korean says as much as several letters.
    size = sum(2 if _UNSPACED.match(char) else 1 for char in text[:SHORTEST])
    return "short" if size < SHORTEST else ""


def amounts_to(text: str) -> str:
    """acknowledgement or directive, where a text is nothing else; nothing but signs is the former.
    Short is no matter here: a word can be an answer."""
    text = text.strip()
    if not _WORD.search(text):
        return "acknowledgement"
    return _said(_normal(text)) if len(text) <= _LONGEST else ""


def _said(text: str) -> str:
    """What the words amount to, if all of them are in the tables."""
    meanings = set()
    at = _after(text, 0)
    if at == len(text):
        return "acknowledgement" if text else ""  # nothing but signs: a thumbs up, an arrow
    while at < len(text):
        found = _compile_phrases().match(text, at)
        if found is None:
            return ""
        meanings.add(load_meanings().get(found[0], ""))
        at = _after(text, found.end())
    return "directive" if "directive" in meanings else max(meanings)


def _after(text: str, at: int) -> int:
    """Where the next word begins."""
    word = _WORD.search(text, at)
    return word.start() if word else len(text)
