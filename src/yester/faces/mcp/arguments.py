"""What a model wrote as arguments, read once: what is meant is taken, what is wrong is said.

Models write "5" for 5, "12, 13" for [12, 13], null for nothing; that is understood. Everything else
that does not fit is a UsageError that names the parameter, the value and what would be right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from yester.clock import parse_bound
from yester.errors import UsageError

_IDENTITY = re.compile(r"#?(?P<id>\d{1,15})(?:@(?P<start>\d{1,9}))?")
_SEPARATORS = re.compile(r"[\s,]+")


def check_arguments(tool: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are there, each as its schema says."""
    schema = tool["inputSchema"]
    parameters = schema["properties"]
    taken = {name: value for name, value in given.items() if value is not None}
    for name in taken:
        if name not in parameters:
            from difflib import get_close_matches

            meant = get_close_matches(name, parameters, 1)
            hint = f"did you mean {meant[0]}? " if meant else ""
            there = ", ".join(parameters) or "none"
            raise UsageError(f"no parameter is called {name!r:.80}; {hint}there is {there}")
    for name in schema.get("required", ()):
        if name not in taken:
            raise UsageError(f"{name} is missing; it is required")
    return {name: _check_value(name, value, parameters[name]) for name, value in taken.items()}


def _check_value(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    if schema["type"] == "integer":
        return _check_number(name, value, schema)
    if schema["type"] == "array":
        return value  # ids; see `identities`
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise UsageError(f"{name} is {value!r:.80}, but must be a text")
    value = value.encode("utf-8", "replace").decode()  # half a surrogate pair is no text
    allowed = schema.get("enum", (value,))
    if value not in allowed:
        raise UsageError(f"{name} is {value!r:.80}, but must be one of {', '.join(allowed)}")
    return value


def _check_number(name: str, value: Any, schema: Mapping[str, Any]) -> int:
    number = value
    written = isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip())
    if written or (isinstance(value, float) and value.is_integer()):
        number = int(value)
    least, most = schema.get("minimum", 0), schema.get("maximum")
    fits = type(number) is int and number >= least and (most is None or number <= most)
    if not fits:
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} is {value!r:.80}, but must be a whole number, {bounds}")
    assert isinstance(number, int)
    return number


def parse_ids(given: Any, most: int) -> list[tuple[int, int]]:
    """Ids, each with the character from which it is wanted: 12, "12", "#12", "12@3800"."""
    parts = given if isinstance(given, list) else [given]
    found: dict[tuple[int, int], None] = {}
    for part in parts:
        words = _SEPARATORS.split(part.strip(" []")) if isinstance(part, str) else [part]
        for word in words:
            written = str(word) if type(word) is int or isinstance(word, str) else ""
            match = _IDENTITY.fullmatch(written)
            if match is None:
                raise UsageError(
                    f"ids has {word!r:.80}, but must be numbers as search shows them, such as "
                    "[12, 13]"
                )
            found[int(match["id"]), int(match["start"] or 0)] = None
    if not found or len(found) > most:
        raise UsageError(f"ids has {len(found)} entries, but must have from 1 to {most}")
    return list(found)


def parse_types(given: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in given.get("obs_type", "").split(","))))


def parse_period(given: Mapping[str, Any], now: int) -> tuple[int | None, int | None]:
    """dateStart and dateEnd in milliseconds. A day that is the end is over at its midnight."""
    since = _parse_bound(given, "dateStart", now)
    until = _parse_bound(given, "dateEnd", now)
    if since is not None and until is not None and since >= until:
        raise UsageError(
            f"dateStart {given['dateStart']!r} is not before dateEnd {given['dateEnd']!r}; "
            "exchange them"
        )
    return since, until


def _parse_bound(given: Mapping[str, Any], name: str, now: int) -> int | None:
    text = given.get(name, "").strip()
    return parse_bound(text, now, option=name, end=name == "dateEnd") if text else None
