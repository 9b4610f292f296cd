"""Items as lines for a model: whose words, of which day, what they are, what the whole would cost.

Everything shown is somebody's words of another day, and stands in quotation marks. No line is
without who said it or what it is, and nothing in it can leave its line, hide from a reader or pass
for a tag.
"""

from __future__ import annotations

from collections.abc import Mapping

from yester.clock import Calendar
from yester.deliver.quote import named, plain, quoted
from yester.fence import neutral, strip_fenced
from yester.model import Hit, Item
from yester.redact import redact
from yester.text.document import reading_cost
from yester.text.sentences import shorten_text

TITLE, NAME = 100, 40  # characters
_STALE = 100
_SHORT = 40  # tokens
SPEAKERS = {
    "user": "user", "assistant": "agent", "thinking": "agent (thinking)", "task": "agent (task)",
}  # fmt: skip
# A sign for each type of observation, else for each kind: what was kept on purpose is a star.
ICONS: Mapping[str, str] = {
    "decision": "◆", "bugfix": "✔", "feature": "✚", "refactor": "↻", "change": "△",
    "discovery": "○", "prompt": "❯", "message": "·", "note": "▤", "summary": "Σ",
    "observation": "●", "memory": "★",
}  # fmt: skip


def sort(kind: str, type_: str = "") -> str:
    """What an item is called beside its sign: decision, bugfix, memory …"""
    return type_ if kind == "observation" and type_ in ICONS else kind


def icon(kind: str, type_: str = "") -> str:
    return ICONS.get(sort(kind, type_), "·")


def clean(text: str) -> str:
    """Without secrets, without what we injected ourselves, without anything that could harm."""
    return neutral(strip_fenced(redact(text)))


def line(text: str, most: int) -> str:
    """The beginning of a text on one line."""
    return shorten_text(clean(text), most)


def name(text: str) -> str:
    """Of a project, a tool, a type, on one line."""
    return named(line(text, NAME))


def titled(title: str, text: str) -> str:
    title = line(title, TITLE)
    if not title or text.lstrip("# ").startswith(title.rstrip("…")):
        return text
    return f"{title}: {text}" if text else title


def speaker(one: Item | Hit) -> str:
    """Whose words: user, agent, a tool's; "" where nobody has said them."""
    if one.role == "tool":
        return name(one.tool) or "tool"
    return SPEAKERS.get(one.role, "")


def said(one: Item | Hit, calendar: Calendar, text: str, more: str = "") -> str:
    """`#12 user, 12 Nov: “…”`"""
    who = ", ".join(filter(None, (speaker(one), what(one)))) or one.kind
    epoch = one.epoch if isinstance(one, Item) else int(one.epoch * 1000)
    return f"#{one.id} {who}, {calendar.day_label(epoch)}{more}: {quoted(text)}"


def found(hit: Hit, calendar: Calendar, text: str, origin: str = "") -> str:
    """The same for what was looked for, with what has happened to its files since."""
    stale = f" ({plain(line(hit.stale, _STALE))})" if hit.stale else ""
    return said(hit, calendar, text, origin) + stale


def row(item: Item, calendar: Calendar) -> str:
    """`#12 ◆ 14:03 “Orders keep UTC” ~85t`: a line of an index, under its day; what is short is
    told as a whole."""
    whole = reading_cost(item) <= _SHORT
    text = (
        titled(item.title, line(item.body, 4 * _SHORT))
        if whole
        else line(item.title or item.body, TITLE)
    )
    head = f"#{item.id} {icon(item.kind, item.type)} {calendar.time_label(item.epoch)}"
    return f"{head} {quoted(text)}" + ("" if whole else f" ~{reading_cost(item)}t")


def what(one: Item | Hit) -> str:
    """plan, todo, decision, summary …; talk needs no name."""
    if one.kind in ("message", "prompt"):
        return ""
    return one.kind if one.kind == "summary" else name(one.type) or one.kind
