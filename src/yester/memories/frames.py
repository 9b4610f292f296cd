"""What a standing rule asks for, as a question and its answer: two rules that answer the same
question differently cannot both stand.

    use VALUE for SUBJECT           "Always use BigDecimal for money"
    do SUBJECT in VALUE             "commit messages in English", "put tests next to the code"

Words of several languages for one thing are one word here (`same` of tables/utterances.toml).
What is only done besides (run, add, ask …) answers no question: such rules add up, and so do bans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from yester.memories.chains import cut_reason, name_terms
from yester.tables import load_pattern, load_rows, load_table

_TOP = 4  # words of a value; a longer one is a sentence, and is not compared
_WORD = re.compile(r"[\w.+#/-]+")


@dataclass(frozen=True, slots=True)
class Frame:
    subject: frozenset[str]
    link: str  # what leads to the value
    value: tuple[str, ...]


def answer_differently(one: str, other: str) -> bool:
    """Do two rules answer the same question, and differently?"""
    mine, theirs = read_frame(one), read_frame(other)
    if mine is None or theirs is None or mine.value == theirs.value or mine.link != theirs.link:
        return False
    values = {*mine.value}, {*theirs.value}
    if values[0] <= values[1] or values[1] <= values[0]:
        return False
    chosen = [frozenset(at for at, all_ in enumerate(_choices()) if all_ & own) for own in values]
    if chosen[0] or chosen[1]:  # a language is no other form of the same than a language
        return bool(chosen[0] & chosen[1]) and mine.subject == theirs.subject
    if mine.subject or theirs.subject:
        return mine.subject == theirs.subject
    # "single quotes", "double quotes": the same thing of another kind
    return mine.value[-1] == theirs.value[-1] or mine.value[0] == theirs.value[0]


@lru_cache(500)
def read_frame(rule: str) -> Frame | None:
    words = " ".join(load_pattern("utterances", "permanence").sub(" ", f" {rule} ").split())
    head = cut_reason(words.strip(" .!,:。")).partition(",")[0]  # what follows says why, or more
    text = " ".join(_same().get(word, word) for word in _split(head))
    if load_pattern("utterances", "negated").search(text):
        return None
    for row in load_rows("utterances", "frames"):
        if found := row.pattern.match(text):
            groups = found.groupdict(default="")
            value = tuple(_WORD.findall(groups["value"]))
            subject = f"{groups.get('subject', '')} {groups.get('verb', '')}"
            if not 0 < len(value) <= _TOP:
                return None
            link = _links().get(groups.get("link", ""), groups.get("link", "") and row.name)
            return Frame(name_terms(subject), link or row.name, value)
    return None


def _split(text: str) -> list[str]:
    """Words, names of several words that are one thing among them."""
    lowered = text.lower().replace("-", " ")
    for name in _phrases():
        lowered = lowered.replace(name, f" {_same()[name]} ")
    return lowered.split()


@cache
def _same() -> dict[str, str]:
    """What a thing is called → its first name."""
    rows = load_table("utterances")["same"].items()
    return {name: first for first, names in rows for name in names}


@cache
def _phrases() -> list[str]:
    names = (name for name in _same() if " " in name or not name.isascii())
    return sorted(names, key=lambda name: -len(name))


@cache
def _links() -> dict[str, str]:
    rows = load_table("utterances")["links"]
    return {word: kind for kind, words in rows.items() for word in words.split()}


@cache
def _choices() -> list[frozenset[str]]:
    return [frozenset(one.split()) for one in load_table("utterances")["choices"].values()]
