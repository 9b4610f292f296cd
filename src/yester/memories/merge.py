"""Two into one: what is known and what is new, or what two writers have made of the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yester.errors import UsageError
from yester.memories.categories import UNSTATED, Category, Field
from yester.memories.content import Content


def joined(category: Category, old: Mapping[str, Any], new: Mapping[str, Any]) -> Content:
    """The old content with what is new: lists grow, other fields take the new value where it says
    something. Nothing of a list is lost; joining twice changes nothing."""
    return _joined(category.fields, old, new)


def _joined(fields: Sequence[Field], old: Mapping[str, Any], new: Mapping[str, Any]) -> Content:
    result = Content(old)
    for field in fields:
        value, have = new.get(field.name), old.get(field.name)
        if value is None or value in (field.default, UNSTATED):
            continue
        if field.kind in ("texts", "records") and have:
            kept = [one for one in have if one != UNSTATED]
            kept += [one for one in value if one not in kept and one != UNSTATED]
            result[field.name] = kept or have
        elif field.kind == "record" and have:
            result[field.name] = _joined(field.fields, have, value)
        else:
            result[field.name] = value
    return result


def merged(base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> Content:
    """What both have made of the same: of lists what each has added and taken away, of the rest
    what one of them has changed. Where both have, and differ, UsageError names it."""
    return _merged("", base, mine, theirs)


def _merged(
    where: str, base: Mapping[str, Any], mine: Mapping[str, Any], theirs: Mapping[str, Any]
) -> Content:
    result = Content()
    for name in dict.fromkeys((*theirs, *mine)):
        was, own, other = base.get(name), mine.get(name), theirs.get(name)
        if own in (was, other):
            value = other
        elif other == was:
            value = own
        elif isinstance(own, list) and isinstance(other, list):
            before = was if isinstance(was, list) else []
            kept = [one for one in other if one in own or one not in before]
            value = kept + [one for one in own if one not in other and one not in before]
        elif isinstance(own, dict) and isinstance(other, dict):
            value = _merged(f"{where}{name}.", was if isinstance(was, dict) else {}, own, other)
        else:
            raise UsageError(
                f"{where}{name} has been changed to {other!r} meanwhile, and you have written "
                f"{own!r}; decide and edit it again"
            )
        if value is not None:
            result[name] = value
    return result
