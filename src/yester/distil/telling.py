"""What observations have in common: a title of statements, what was asked for, a narrative."""

from __future__ import annotations

from collections.abc import Sequence

from yester.distil.cues import boilerplate
from yester.distil.drafts import Gate, Taken
from yester.distil.phrases import (
    as_title,
    cut,
    plain,
    without_fixed,
    without_interjection,
)
from yester.distil.titles import file_names, near, telling_request, words
from yester.distil.turns import View
from yester.tables import load_pattern

MOST_FILES = 20
SUBTITLE = 140  # characters
NEAR = 0.6  # titles of one turn that share so much are about the same
_BODY, _SENTENCES = 480, 3


def first_title(found: Sequence[Taken]) -> tuple[str, str] | None:
    """The first statement that can stand alone: not one that leans on something said before or is
    about the speaker."""
    leans = load_pattern("statements", "leans")
    for one in found:
        title = as_title(one.statement.text)
        if len(title) >= 24 and not leans.match(without_fixed(title)):
            return title, one.statement.text
    return None


def read_title(turn: View, gate: Gate) -> tuple[str, str] | None:
    """What the reader model calls the turn, and the statement that holds it. None where it found
    nothing, or where the agent only says again what the session was shown before."""
    if not turn.read_title or turn.closing is None:
        return None
    low = turn.read_title.lower()
    holds = (one.text for one in gate.statements(turn.closing) if low in plain(one.text).lower())
    source = next(holds, "")
    if gate.echoes(source or turn.read_title, turn.closing):
        return None
    return turn.read_title, source


def subtitle(title: str, request: str, turn: View) -> str:
    """What was asked for, where the title does not say it."""
    if not request or not telling_request(request) or near(words(title), words(request)) > NEAR:
        return f"in {file_names(turn.edited)}" if turn.edited else ""
    return cut(request, SUBTITLE)


def narrative(turn: View, facts: Sequence[Taken], title: str, gate: Gate) -> str:
    """What the agent said first at the end, as far as title and facts do not say it."""
    closing = turn.closing
    if closing is None:
        return ""
    used = {one.statement.text for one in facts}
    kept: list[str] = []
    room = _BODY
    for statement in gate.statements(closing):
        if not statement.lead or len(kept) == _SENTENCES:
            break
        text = statement.text
        bare = without_interjection(plain(text))
        if text in used or text.endswith(":") or "next" in statement.tells or boilerplate(text):
            continue
        if bare.startswith(title.rstrip(".…")) or len(bare) > room or not gate.lets(text, closing):
            continue
        room -= len(bare)
        kept.append(bare)
    return " ".join(kept)


def without_title(found: Sequence[Taken], title: str, source: str) -> list[Taken]:
    """Without the statement the title says in full already."""
    return [
        one
        for one in found
        if one.statement.text != source or len(plain(one.statement.text)) > len(title) + 24
    ]


def sections(changed: str, *outcomes: str) -> dict[str, str]:
    """What was changed by name, and how it came out."""
    text = "\n".join(filter(None, outcomes))
    return {name: text for name, text in (("changed", changed), ("outcome", text)) if text}
