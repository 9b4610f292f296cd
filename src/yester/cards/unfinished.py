"""What a turn leaves open by the words of its closing message: told as text; no status rests on it.

in a list    below a heading, a line or behind a label that says so; boxes that are not ticked
said so      a sentence that names what is not done, wherever it stands
at the end   of a turn that changed something: what does not work or was not tried, what
             somebody has to do, and the question that the message ends with
offered      to commit, to push, to open a pull request, without an answer
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from yester.cards.drafts import Gate
from yester.cards.tools import file_names
from yester.cards.turns import View
from yester.tables import load_pattern, load_rows
from yester.text.prose import strip_marks
from yester.text.statements import (
    Statement,
    count_words,
    cut_clause,
    drop_interjection,
    find_cues,
    split_statements,
)

_NOT_YET = {"commit": "not committed", "push": "not pushed", "pr": "no pull request yet"}
_MOST = 3  # lines
_OFFER = 300  # characters at the end of a message
_END = 3  # statements at the end of a message
_FEW_WORDS = 5
_BEGINNING = 24  # characters by which the line is known that a sentence begins
_SHORT = 10  # words
_LEAD = 180  # characters of a sentence that another one leans on
_QUESTION = re.compile(r"[?？]\W*\Z")
_UNTICKED = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}\.)[ \t]+(?:\[ \]|🚧|⏳)[ \t]*(\S.*)$", re.M)
_QUOTED = re.compile(r"\"[^\"]{0,200}\"|“[^”]{0,200}”")
_FORMER = re.compile(r"(?:when|previously|root cause|the (?:problem|issue|cause) was)\b", re.I)
# That a check was not run, with the reason, leaves nothing to do.
_NOT_RUN = re.compile(r"\bnot run\b.*\bbecause\b|n't run\b.*\bsince\b|\bnot installed\b", re.I)
_IT = re.compile(r"\b(?:it|that|this|them|those|es|das|dies|lo|esto|cela|ça)\b", re.I)
_SAYS_NOTHING = re.compile(r"(?:no|none|nothing|nichts|keine?)\b", re.I)
_COMMITTED = re.compile(r"(?:committed|amended)\b.*\b(?:not |un)pushed\b", re.I)


def find_unfinished(turn: View, title: str, gate: Gate) -> list[str]:
    """What the agent said at its end is not done. "I have not fixed it" names nothing: it stands
    with the sentence before it, or goes where that one says itself that something is left."""
    closing = turn.closing
    if closing is None:
        return []
    changed = bool(turn.edited)
    said = split_statements(closing.body)
    left = _find_listed(said, closing.body, changed)
    loose = _find_loose(said) if changed else frozenset()
    for at, one in enumerate(said):
        if one.kind == "heading" or at in left or not (at in loose or _says_undone(one.text)):
            continue
        if _COMMITTED.match(drop_interjection(one.text)):  # of what, the title says
            left[at] = f"{_NOT_YET['push']}: {title}"
        elif not (_is_nameless(one.text) or _leans_back(one)):
            left[at] = one.text
        elif at - 1 not in left:
            before = said[at - 1].text if at and said[at - 1].kind != "heading" else ""
            left[at] = f"{cut_clause(before, _LEAD)} {one.text}".lstrip()
    left = {at: left[at] for at in sorted(left) if not gate.echoes(said[at].text, closing)}
    later = [at for at, text in left.items() if _pattern("for later").match(said[at].heading)]
    if len(later) > 1:  # what was put off takes one line
        left[later[0]] = "; ".join(cut_clause(left[at], _LEAD) for at in later)
        left = {at: text for at, text in left.items() if at not in later[1:]}
    boxes = "; ".join(map(strip_marks, _UNTICKED.findall(closing.body)))
    return [*filter(None, [boxes]), *left.values()][:_MOST]


def find_offer(turn: View, title: str, committed: bool) -> Iterator[str]:
    """What the agent has offered at the end and nobody has answered yet."""
    closing = turn.closing.body[-_OFFER:] if turn.closing is not None else ""
    found = _pattern("waits").search(closing)
    if title and found and not (found["commit"] and committed):
        files = f" ({file_names(turn.edited, 2)})" if found["commit"] and turn.edited else ""
        yield f"{_NOT_YET[found.lastgroup or '']}: {title}{files}"


def _find_listed(said: Sequence[Statement], text: str, changed: bool) -> dict[int, str]:
    """What stands behind a label ("Still open: …"), below a heading, or in a list below a line that
    says it is left. Points that are no sentences take one line."""
    label = ""
    left: dict[int, str] = {}
    brief: dict[int, str] = {}
    for at, one in enumerate(said):
        before, _, rest = one.text.partition(":")
        if rest and one.kind != "heading" and _is_label(before, changed):
            left[at] = rest.strip()
            continue
        if one.kind != "bullet":
            label = one.text if one.text[-1:] in ":：" else ""
        headed = _is_label(one.heading, changed) or _is_label(label, changed)
        if not headed or _pattern("undone").search(one.text) or not _begins_line(one.text, text):
            continue
        if count_words(one.text) > _FEW_WORDS:
            left[at] = one.text
        elif one.kind == "bullet" and not _SAYS_NOTHING.match(one.text):
            brief[at] = one.text
    return left | {min(brief): "; ".join(brief.values())} if brief else left


def _is_label(text: str, changed: bool) -> bool:
    names = ("left below", "left below work") if changed else ("left below",)
    return any(_pattern(name).match(text) for name in names)


def _begins_line(sentence: str, text: str) -> bool:
    """What comes after it in the same point of a list is about the same."""
    beginning = sentence[:_BEGINNING]
    return any(strip_marks(line).startswith(beginning) for line in text.split("\n"))


def _says_undone(text: str) -> bool:
    undone, offers = _pattern("undone").search(text), _pattern("offer").search(text)
    if undone and offers and undone.end() < offers.start() and offers[0][0].isalpha():
        offers = None  # what is left, then the offer to do it
    return undone is not None and not offers


def _find_loose(said: Sequence[Statement]) -> frozenset[int]:
    """The places of the last sentences that tell of a loose end, and of a question at the end that
    is no offer to do more. The first sentence of several tells what was done."""
    places = [at for at, one in enumerate(said) if one.kind != "heading"]
    found = {at for at in places[1:][-_END:] or places if _has_loose_end(said[at])}
    asked = [at for at in places if said[at].kind != "bullet"][-1:]
    questions = (at for at in asked if _QUESTION.search(said[at].text))
    return frozenset(
        found | {at for at in questions if not _pattern("offers more").search(said[at].text)}
    )


def _has_loose_end(one: Statement) -> bool:
    """Not in what was done, how it was before, what is quoted, offered or explained away."""
    text = _QUOTED.sub("", one.text)
    parts = (text, text.partition(": ")[2])
    if one.kind == "bullet" and any("result" in find_cues(part) for part in parts):
        return False
    never = (_NOT_RUN, _QUESTION, _pattern("explained away"), _pattern("offers more"))
    if _FORMER.match(text) or any(pattern.search(text) for pattern in never):
        return False
    return any(row.pattern.search(text) for row in load_rows("statements", "unfinished"))


def _is_nameless(text: str) -> bool:
    for name in ("undone", "filler"):
        text = _pattern(name).sub("", text)
    return not any(map(str.isalnum, text))


def _leans_back(one: Statement) -> bool:
    """Is "it" all that a short sentence says of what is left?"""
    return count_words(one.text) <= _SHORT and not one.specific and bool(_IT.search(one.text))


def _pattern(name: str) -> re.Pattern[str]:
    return load_pattern("statements", name)
