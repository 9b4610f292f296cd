"""Pieces of text as they are shown: without marks, at most so long, ending where a clause does."""

from __future__ import annotations

import re

from yester.tables import load_pattern

_LINK = re.compile(r"!?\[(?P<text>[^\]\n]+)\]\([^)\s]+\)")
_MARKS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|`|~~")
_TAGS = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]{0,200})?>")
_FIXED = re.compile(r"\A(?:(?:all|now|also|it'?s) )?fixed\s*[:,;.!—–-]+\s*", re.I)
_A_WORD = re.compile(r"[\w'-]+(?:\s[\w'-]+)?[.!](?:\s|\Z)")


def plain(text: str) -> str:
    """A statement as a title would have it: without marks, links by their names."""
    text = (
        _TAGS.sub("", _LINK.sub(lambda m: m["text"], text)) if "<" in text or "](" in text else text
    )
    return " ".join(_MARKS.sub("", text).replace("’", "'").split())


def without_label(text: str) -> str:
    """`Root cause: the cache` is about the cache; `Verdict: possible. …` needs its label."""
    rest = load_pattern("statements", "label").sub("", text, count=1)
    return text if _A_WORD.match(rest) else rest


def without_interjection(text: str) -> str:
    rest = load_pattern("statements", "interjection").sub("", text, count=1)
    return rest or text


def without_fixed(text: str) -> str:
    """`Fixed: the cache` says what was fixed in what comes after it."""
    return _FIXED.sub("", text, count=1)


def cut(text: str, most: int) -> str:
    """The beginning of a text, at most so long, up to the end of a clause; nothing is changed."""
    if len(text) <= most:
        return text
    clause = load_pattern("statements", "clause")
    ends = [
        found.start() for found in clause.finditer(text[: most + 1]) if found.start() > most // 3
    ]
    at = ends[-1] if ends else text.rfind(" ", 0, most)
    shorter = text[: at if at > 0 else most].rstrip(" ,;:—–-(")
    return (
        shorter if shorter.count("`") % 2 == 0 else shorter[: shorter.rfind("`")].rstrip(" ,;:—–-(")
    )


_ASIDE = re.compile(r"\s*\([^()]{3,120}\)|\s*\[[^\[\]]{3,80}\]")


def as_title(text: str, most: int = 80) -> str:
    """A statement as a title: without marks, asides and interjections; a long one ends with its
    first clauses, or where it is cut with a sign that it goes on."""
    bare = without_label(without_interjection(plain(text))).strip(" .:;,—–-")
    if len(bare) > most:
        bare = " ".join(_ASIDE.sub("", bare).split())
    return _begun(shortened(bare, most))


def shortened(text: str, most: int) -> str:
    """At most so long: whole clauses where they fill at least half of it, else words and …"""
    if len(text) <= most:
        return text
    half_a_pair = load_pattern("statements", "half a pair")  # "both the key" wants the other one
    dangling = load_pattern("statements", "dangling")
    ends = [
        m.start()
        for m in load_pattern("statements", "joint").finditer(text[: most + 1])
        if m.start() >= most * 0.45
        and not (m[0] in (" and ", " or ") and half_a_pair.search(text, 0, m.start()))
    ]
    if ends:
        return dangling.sub("", text[: ends[-1]].rstrip(" ,;:—–-("))
    short = text[: text.rfind(" ", 0, most)] if " " in text[:most] else text[: most - 1]
    half = half_a_pair.search(short)
    if half and half.start() >= most * 0.45:
        short = short[: half.start()].rstrip()
    return dangling.sub("", short).rstrip(" ,;:—–-(") + "…"


def _begun(text: str) -> str:
    """With a capital, unless it begins with a name."""
    first = text.split(" ", 1)[0]
    word = first.rstrip(".,:;")
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text
