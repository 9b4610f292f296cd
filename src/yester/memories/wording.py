"""A content in words: its first sentence, the whole, and field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yester.memories.categories import UNSTATED, Category, Field
from yester.text.terms import text_terms


def lead(category: Category, content: Mapping[str, Any]) -> str:
    """The sentence it is about."""
    return str(content.get(category.text, ""))


def sections(category: Category, content: Mapping[str, Any]) -> dict[str, str]:
    """Each field as a text of its own, except the one the whole begins with."""
    return {
        field.name: text
        for field in category.fields
        if field.name != category.text
        and (text := "\n".join(_lines(field, content.get(field.name))))
    }


def readable(category: Category, content: Mapping[str, Any]) -> str:
    """The whole as somebody would write it down."""
    marks = [
        str(content[field.name])
        for field in category.fields
        if field.kind == "choice" and content.get(field.name, field.default) != field.default
    ]
    if content.get("active") is False:
        marks.append("no longer")
    said = [lead(category, content) + (f" ({', '.join(marks)})" if marks else "")]
    for field in category.fields:
        if field.name != category.text:
            said += _labelled(field, content.get(field.name))
    return "\n".join(filter(None, said))


def _labelled(field: Field, value: Any) -> list[str]:
    if field.kind == "record":
        inner = value or {}
        return [line for one in field.fields for line in _labelled(one, inner.get(one.name))]
    lines = _lines(field, value)
    if len(lines) == 1 and "\n" not in lines[0]:
        return [f"{field.label}: {lines[0]}"]
    return [f"{field.label}:", *(f"- {line}" for line in lines)] if lines else []


def _lines(field: Field, value: Any) -> list[str]:
    """What a field says, without what nobody has stated; what is one of a few words says nothing
    that could be searched for."""
    match field.kind:
        case "text":
            return [value] if value and value != UNSTATED else []
        case "texts":
            return [one for one in value or () if one != UNSTATED]
        case "records":
            told = ([one.get(part.name) for part in field.fields] for one in value or ())
            return [
                ": ".join(part for part in parts if part and part != UNSTATED) for parts in told
            ]
        case "record":
            return [
                line for one in field.fields for line in _lines(one, (value or {}).get(one.name))
            ]
    return []


def unstated(category: Category, content: Mapping[str, Any]) -> list[str]:
    """The fields that hold nothing because nobody has said anything."""
    return [
        field.name
        for field in category.fields
        if field.required
        and field.kind in ("text", "texts")
        and content.get(field.name) in (UNSTATED, [UNSTATED])
    ]


def sayings(category: Category, content: Mapping[str, Any]) -> list[str]:
    """Every text in it."""
    return [text for field in category.fields for text in _lines(field, content.get(field.name))]


def same_saying(one: str, other: str) -> bool:
    """The same words in the same order, however they are spelled and ended."""
    return tuple(text_terms(one)) == tuple(text_terms(other))
