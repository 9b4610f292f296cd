"""A content made of what people write: a plain text, and FIELD=VALUE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from yester.errors import UsageError
from yester.memories.categories import Category
from yester.memories.content import Content

_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_BECAUSE = re.compile(r"[,;]?\s+because\s+", re.I)


def drafted(category: Category, text: str, given: Mapping[str, Any]) -> Content:
    """What a plain text says in the fields of a category, over it what was given field by field,
    under it what the category takes where nothing was said."""
    content = Content()
    for field in category.fields:
        if field.default is not None:
            content[field.name] = field.default
    text = text.strip()
    if category.lines and "\n" in text:
        text, _, rest = text.partition("\n")
        lines = [_BULLET.sub("", line).strip() for line in rest.splitlines()]
        content[category.lines] = list(filter(None, lines)) or content.get(category.lines)
    if category.because and category.because not in given:
        said, *why = _BECAUSE.split(text, maxsplit=1)
        if said and why and "\n" not in said:
            text = said
            field_ = category.field(category.because)
            content[category.because] = why if field_ and field_.kind == "texts" else why[0]
    if text:
        content[category.text] = text
    return {**content, **given}


def from_settings(category: Category, pairs: Sequence[str]) -> Content:
    """`FIELD=VALUE` as people write it on a command line; a list grows by repetition."""
    content = Content()
    for pair in pairs:
        name, sign, value = pair.partition("=")
        field = category.field(name.strip())
        if not sign or field is None or field.kind in ("record", "records"):
            simple = [one.name for one in category.fields if one.kind not in ("record", "records")]
            raise UsageError(
                f"--set {pair!r} sets nothing; write FIELD=VALUE with a field of a {category.name}:"
                f" {', '.join(simple)}"
            )
        if field.kind == "texts":
            content.setdefault(field.name, []).append(value)
        elif field.kind == "flag":
            content[field.name] = {"true": True, "false": False}.get(value.lower(), value)
        else:
            content[field.name] = value
    return content
