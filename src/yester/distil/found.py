"""What was found: nothing was changed, and the answer says something that was not known; or a long
turn learned something before its end."""

from __future__ import annotations

from collections.abc import Sequence

from yester.agents.values import digest
from yester.distil.drafts import Draft, Gate, Taken, chosen
from yester.distil.phrases import as_title, cut
from yester.distil.telling import MOST_FILES, SUBTITLE, first_title, narrative, read_title, subtitle
from yester.distil.titles import (
    asked,
    concepts_of,
    fixed,
    heading_title,
    request_title,
    telling_request,
)
from yester.distil.turns import View
from yester.model import Item

_SHORTEST = 20  # characters of a title
_STEPS = 32  # uses of tools in which a turn may find one thing on the way


def found(turn: View, gate: Gate) -> list[Draft]:
    """What an answer says that was not known; small talk and reports of progress say nothing."""
    closing = turn.closing
    if closing is None:
        return []
    taken = gate.take(closing)
    facts = chosen(taken)
    value = sum(one.worth for one in facts)
    causes = any("cause" in one.statement.tells for one in facts)
    looked = sum(1 for step in turn.steps if not step.why_not)
    if not facts or (value < (3.0 if causes and looked else 5.0)) or (not looked and value < 7.0):
        return []
    title = _found_title(turn, taken, gate)
    if len(title) < _SHORTEST:
        return []
    type_ = "bugfix" if fixed(title) else "discovery"  # by a command, say: no file was edited
    return [
        Draft(
            "found",
            type_,
            title,
            turn.ended,
            1.8 if causes else 1.5,
            subtitle=subtitle(title, asked(turn.prompt), turn),
            body=narrative(turn, facts, title, gate),
            facts=tuple(one.fact for one in facts),
            files_read=turn.looked_at[:MOST_FILES],
            concepts=concepts_of(type_, [t.statement.tells for t in facts], False, False),
        )
    ]


def _found_title(turn: View, taken: Sequence[Taken], gate: Gate) -> str:
    """The answer in a sentence; else the question, which an answer of many parts has in common."""
    assert turn.closing is not None
    if (read := read_title(turn, gate)) and len(read[0]) >= _SHORTEST:
        return read[0]
    causes = [t for t in taken if "cause" in t.statement.tells and t.statement.specific]
    lead = [t for t in taken if t.statement.lead and t.statement.specific]
    if title := first_title([*[t for t in causes if t.statement.lead], *lead]):
        return title[0]
    if heading := heading_title(turn.closing):
        return heading
    request = asked(turn.prompt)
    if telling_request(request):
        return request_title(request)
    title = first_title([*causes, *sorted(taken, key=lambda t: -t.worth)])
    return title[0] if title else ""


def on_the_way(turn: View, drafts: Sequence[Draft], gate: Gate) -> list[Draft]:
    """What a long turn found before its end, where nothing else says it."""
    most = len(turn.steps) // _STEPS
    if not most:
        return []
    used = {fact.text for draft in drafts for fact in draft.facts}
    left: list[list[Taken]] = []
    for item in turn.said:
        if item is turn.closing:
            continue
        taken = [t for t in gate.findings(item, 1.8) if t.statement.text not in used]
        if any("cause" in t.statement.tells and t.statement.specific for t in taken):
            left.append(taken)
    left.sort(key=lambda taken: -sum(t.worth for t in taken))
    made = []
    for taken in left[:most]:
        cause = max(
            (t for t in taken if "cause" in t.statement.tells), key=lambda t: t.statement.specific
        )
        title = as_title(cause.statement.text)
        if len(title) < 24:
            continue
        facts = chosen(taken, most=4)
        made.append(
            Draft(
                f"way:{digest(cause.item.ref)}",
                "discovery",
                title,
                cause.item.epoch,
                1.2,
                subtitle=cut(asked(turn.prompt), SUBTITLE),
                facts=tuple(t.fact for t in facts),
                concepts=concepts_of("discovery", [t.statement.tells for t in facts], False, False),
                files_read=_before(turn, cause.item),
            )
        )
    return made


def _before(turn: View, item: Item) -> tuple[str, ...]:
    """The files that were looked at last before something was said."""
    files: list[str] = []
    for step in turn.steps:
        if step.item.epoch > item.epoch:
            break
        files += step.item.files_read + step.item.files_modified
    return tuple(dict.fromkeys(reversed(files)))[:5]
