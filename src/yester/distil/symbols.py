"""What a change touches, by name: the functions, classes and types whose definition it holds."""

from __future__ import annotations

from collections.abc import Iterable

from yester.distil.turns import Step
from yester.tables import load_rows

_MOST = 10
_READ_CHARS = 8_000


def symbols(text: str) -> list[str]:
    """The names defined in a change, in order."""
    found = [
        (match.start(), match["name"])
        for row in load_rows("tools", "definitions")
        for match in row.pattern.finditer(text[:_READ_CHARS])
    ]
    return list(dict.fromkeys(name for _, name in sorted(found)))


def touched(steps: Iterable[Step]) -> str:
    """The names of what was changed, most of all in one line."""
    names: dict[str, None] = {}
    for step in steps:
        if step.edited:
            names.update(dict.fromkeys(symbols(step.item.body)))
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(list(names)[:_MOST]) + more
