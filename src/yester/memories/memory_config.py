"""memory-config.json of a tree: what it says, else defaults and a warning that names the value.

It comes with a repository, so it is not the user's word. It names folders inside the tree; it can
make what is shown for a prompt less (`narrowed`), never more; and its `retention_days` are told and
delete nothing: only [retention] in the user's config.toml does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any

from yester.errors import SourceError
from yester.memories.disk import contents

NAME = "memory-config.json"
MOST_INJECTED = 20
_INJECTED = 5


@dataclass(frozen=True, slots=True)
class Category:
    folder: str
    description: str = ""
    retention_days: int = 0  # 0: for good


CATEGORIES: Mapping[str, Category] = {
    "session_summary": Category("sessions", "What a session set out to do and what came of it"),
    "decision": Category("decisions", "What was chosen, instead of what, and why"),
    "runbook": Category("runbooks", "How to find the cause of a trouble and end it, step by step"),
    "constraint": Category("constraints", "What must hold or cannot be done here"),
    "tech_debt": Category("tech-debt", "Work put off, and what it costs meanwhile"),
    "preference": Category("preferences", "How things are wanted to be done"),
}


@dataclass(frozen=True, slots=True)
class MemoryConfig:
    max_inject: int = _INJECTED
    categories: Mapping[str, Category] = field(default_factory=lambda: dict(CATEGORIES))
    warnings: tuple[str, ...] = ()
    limits: bool = False  # does it say itself how much is shown?

    def folder(self, category: str) -> str:
        """Where memories of a category are written; one nobody has told of gets its own name."""
        known = self.categories.get(category)
        return known.folder if known else category.replace("_", "-")


def parsed(data: bytes | None, where: str = NAME) -> MemoryConfig:
    """Never an error: a value that cannot be used is as if it were not there, and is named."""
    if data is None:
        return MemoryConfig()
    warnings: list[str] = []
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return MemoryConfig(warnings=(f"{where}: is not JSON; the defaults are used",))
    if not isinstance(value, dict):
        return MemoryConfig(warnings=(f"{where}: is not an object; the defaults are used",))

    def odd(name: str, value: Any, default: object) -> None:
        shown = ascii(value) if len(ascii(value)) <= 40 else f"{ascii(value)[:37]}…"
        warnings.append(f"{where}: {name} is {shown}; {default!r} is used")

    retrieval = _object(value, "retrieval", odd)
    most, limits = _INJECTED, False
    if (given := retrieval.get("max_inject")) is not None:
        number = _whole(given)
        if number is None:
            odd("retrieval.max_inject", given, most)
        else:
            most, limits = min(max(number, 0), MOST_INJECTED), True
    categories = dict(CATEGORIES)
    for name, given in _object(value, "categories", odd).items():
        default = CATEGORIES.get(name, Category(str(name).replace("_", "-")))
        if isinstance(given, dict):
            categories[name] = _category(f"categories.{name}", given, default, odd)
        else:
            odd(f"categories.{name}", given, "the default")
    return MemoryConfig(most, categories, tuple(warnings), limits)


def narrowed(most: int, top: str) -> int:
    """At most so many as the user has set (`most`), or fewer where the project at `top` says so."""
    if not top or most <= 0:
        return most
    try:
        found = parsed(contents(Path(top, ".claude", "memory", NAME)))
    except SourceError:  # a link, a pipe, too large: as if it were not there
        return most
    return min(most, found.max_inject) if found.limits else most


def _object(value: Mapping[str, Any], name: str, odd: Any) -> Mapping[str, Any]:
    found = value.get(name)
    if found is None or isinstance(found, dict):
        return found or {}
    odd(name, found, "the default")
    return {}


def _category(name: str, given: Mapping[str, Any], default: Category, odd: Any) -> Category:
    folder, description = given.get("folder"), given.get("description")
    days = given.get("retention_days")
    if folder is not None and not _inside(folder):
        odd(f"{name}.folder", folder, default.folder)
        folder = None
    if description is not None and not isinstance(description, str):
        odd(f"{name}.description", description, default.description)
        description = None
    kept = None if days is None else _whole(days)
    if days is not None and (kept is None or kept < 0):
        odd(f"{name}.retention_days", days, default.retention_days)
        kept = None
    return Category(
        folder or default.folder,
        default.description if description is None else description,
        default.retention_days if kept is None else kept,
    )


def _inside(folder: Any) -> bool:
    """Does it name a folder below the tree, and one that is read?"""
    if not isinstance(folder, str) or not folder or "\0" in folder or "\\" in folder:
        return False
    parts = PurePosixPath(folder).parts
    return bool(parts) and not any(part.startswith((".", "/")) for part in parts) and len(parts) < 4


def _whole(value: Any) -> int | None:
    """A whole number, also as people write it ("5", 5.7)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if isfinite(number) else None
