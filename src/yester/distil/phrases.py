"""Pieces of text as they are shown: without marks, at most so long, ending where a clause does."""

from __future__ import annotations

import re

_LINK = re.compile(r"!?\[(?P<text>[^\]\n]+)\]\([^)\s]+\)")
_MARKS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|`|~~")
_TAGS = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]{0,200})?>")
_CLAUSE = re.compile(
    r"(?:; | — | – | - |, (?:and|but|so|which|while|because|since|where|with|then) |: |\. |, | \()"
)
# What was wrong, told after "Fixed": without that word it would read as if it were so still.
_WRONG = (
    r"(?:fail\w*|crash\w*|broke\w*|breaks|error\w*|exception|wrong\w*|missing|bug\w*|hang\w*|hung"
    r"|leak\w*|lost|stuck|did(?:n't| not)|does(?:n't| not)|could(?:n't| not)|was(?:n't| not)|never"
    r"|was|were|had)"
)
_FIXED = re.compile(r"\A(?:(?:all|now|also|it'?s) )?fixed\s*[:,;.!—–-]+\s*", re.I)
# Words that stand before what is said.
_INTERJECTION = re.compile(
    r"\A(?:(?:done|yes|yep|yeah|no|sure|ok(?:ay)?|great|perfect|good(?: (?:catch|question"
    r"|point|idea|news))?|confirmed|exactly"
    r"|right|correct|excellent|nice|absolutely|agreed|understood|got it|found it"
    r"|found (?:the|an) (?:issue|problem|bug)"
    r"|you'?re (?:absolutely |completely )?(?:right|correct)|that'?s (?:right|correct"
    r"|a good (?:point|question))|makes sense"
    rf"|fixed(?=[.!])(?![^;]{{0,160}}\b{_WRONG}\b)"
    r"|i see(?: the (?:issue|problem))?|all done|all good|short answer|in short|tl;?dr"
    r"|actually|hmm|ah|now|so|and|but|also|however|additionally|finally"
    r"|summary|to summarize|in summary|note|update)\b\s*(?:[.!,:;—–-]+\s*|\Z))+",
    re.I,
)
_LABELLED = re.compile(
    r"\A(?:root cause|the (?:fix|bug|problem|issue|cause|solution)|problem|issue|bug|fix"
    r"|cause|summary|finding|result|solution|diagnosis|verdict|conclusion|answer|plan"
    r"|implementation plan|feature|task|goal|feat|proposal|design"
    r"|refactor)\s*(?:\([^)]*\))?\s*[:—–-]\s+",
    re.I,
)
_A_WORD = re.compile(r"[\w'-]+(?:\s[\w'-]+)?[.!](?:\s|\Z)")


def plain(text: str) -> str:
    """A statement as a title would have it: without marks, links by their names."""
    text = (
        _TAGS.sub("", _LINK.sub(lambda m: m["text"], text)) if "<" in text or "](" in text else text
    )
    return " ".join(_MARKS.sub("", text).replace("’", "'").split())


def without_label(text: str) -> str:
    """`Root cause: the cache` is about the cache; `Verdict: possible. …` needs its label."""
    rest = _LABELLED.sub("", text, count=1)
    return text if _A_WORD.match(rest) else rest


def without_interjection(text: str) -> str:
    rest = _INTERJECTION.sub("", text, count=1)
    return rest or text


def without_fixed(text: str) -> str:
    """`Fixed: the cache` says what was fixed in what comes after it."""
    return _FIXED.sub("", text, count=1)


def cut(text: str, most: int) -> str:
    """The beginning of a text, at most so long, up to the end of a clause; nothing is changed."""
    if len(text) <= most:
        return text
    ends = [
        found.start() for found in _CLAUSE.finditer(text[: most + 1]) if found.start() > most // 3
    ]
    at = ends[-1] if ends else text.rfind(" ", 0, most)
    shorter = text[: at if at > 0 else most].rstrip(" ,;:—–-(")
    return (
        shorter if shorter.count("`") % 2 == 0 else shorter[: shorter.rfind("`")].rstrip(" ,;:—–-(")
    )


_JOINT = re.compile(
    _CLAUSE.pattern
    + r"| (?:because|instead of|rather than|so that|which|when|while|since|where|although"
    r"|even though|in order to|but|to (?:avoid|prevent|ensure|match|keep|use)|with"
    r"|without|that|and|by|via) "
)
# "both the key" wants the other one.
_HALF_A_PAIR = re.compile(
    r"\b(?:both|between|either|neither)\b(?:(?!\b(?:and|or|nor)\b)[^,;:]){0,80}\Z", re.I
)
_ASIDE = re.compile(r"\s*\([^()]{3,120}\)|\s*\[[^\[\]]{3,80}\]")
_DANGLING = re.compile(
    r"(?:[\s,;:—–-]*\s\(?(?:a|an|the|and|or|but|to|of|in|on|at|by|for|from|with|without|into"
    r"|as|is|are|was|were|be|been|has|have|had|that|which|when|where|while|if|so|than"
    r"|then"
    r"|because|since|not|no|its|their|his|her|our|your|my|this|these|those|about|via|per"
    r"|now|will|would|can|could|should|may|do|does|did|explains?|uses?|e\.g|i\.e|\S))+\Z",
    re.I,
)


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
    ends = [
        m.start()
        for m in _JOINT.finditer(text[: most + 1])
        if m.start() >= most * 0.45
        and not (m[0] in (" and ", " or ") and _HALF_A_PAIR.search(text, 0, m.start()))
    ]
    if ends:
        return _DANGLING.sub("", text[: ends[-1]].rstrip(" ,;:—–-("))
    short = text[: text.rfind(" ", 0, most)] if " " in text[:most] else text[: most - 1]
    half = _HALF_A_PAIR.search(short)
    if half and half.start() >= most * 0.45:
        short = short[: half.start()].rstrip()
    return _DANGLING.sub("", short).rstrip(" ,;:—–-(") + "…"


def _begun(text: str) -> str:
    """With a capital, unless it begins with a name."""
    first = text.split(" ", 1)[0]
    word = first.rstrip(".,:;")
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text
