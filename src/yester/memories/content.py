"""The content of a memory, checked against its category. What is wrong is told by field, value and
fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yester.errors import UsageError
from yester.fence import strip_fenced, visible
from yester.memories.categories import CATEGORIES, Category, Field
from yester.redact import redact

Content = dict[str, Any]
_MOST_TEXTS = 100
_SHOWN = 60  # characters of a wrong value in a message


def clean(text: str) -> str:
    """Without what hides or steers, what we injected ourselves, and secrets: in this order, since a
    character nobody sees may stand in the middle of a tag or of a key."""
    return redact(strip_fenced(visible(storable(text)))).strip()


def storable(text: str) -> str:
    """Without lone surrogates, which have no form in a file."""
    return text.encode("utf-8", "replace").decode()


def checked(category: Category, content: Mapping[str, Any]) -> Content:
    """The content clean and complete, in the order of the table; UsageError names what is wrong."""
    found = Content()
    wrong = list(_problems(category.name, category.fields, content, found))
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise UsageError(wrong[0] + more)
    return found


def problems(category: Category, content: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with it, a sentence each: field, value, fix."""
    return list(_problems(category.name, category.fields, content, {}))


def _problems(
    where: str, fields: Sequence[Field], content: object, found: Content
) -> Iterator[str]:
    names = ", ".join(field.name for field in fields)
    if not isinstance(content, Mapping):
        yield f"{where} is {_shown(content)}, but must hold the fields {names}"
        return
    for name in content:
        if not any(field.name == name for field in fields):
            yield f"{where} has no field {_shown(name)}; its fields are {names}"
    for field in fields:
        place = f"{where}.{field.name}"
        value = content.get(field.name)
        if value is None:
            if field.required:
                yield f"{place} is missing; give it {_wanted(field)}"
            continue
        yield from _value(place, field, value, found)


def _value(place: str, field: Field, value: object, found: Content) -> Iterator[str]:
    match field.kind:
        case "text":
            yield from _text(place, field, value, found)
        case "texts":
            yield from _texts(place, field, value, found)
        case "record":
            inner = Content()
            yield from _problems(place, field.fields, value, inner)
            if inner:
                found[field.name] = inner
        case "records":
            yield from _records(place, field, value, found)
        case _:
            fits = isinstance(value, bool) if field.kind == "flag" else value in field.choices
            if not fits:
                yield _wrong(place, field, value)
            found[field.name] = value


def _text(place: str, field: Field, value: object, found: Content) -> Iterator[str]:
    if not isinstance(value, str):
        yield _wrong(place, field, value)
        return
    text = clean(value)
    if not text and field.required:
        yield f"{place} is empty; give it {_wanted(field)}"
    elif len(text) > field.most:
        yield f"{place} has {len(text):,} characters; at most {field.most:,} are kept"
    if text:
        found[field.name] = text


def _records(place: str, field: Field, value: object, found: Content) -> Iterator[str]:
    if not isinstance(value, list | tuple):
        yield _wrong(place, field, value)
        return
    if len(value) > _MOST_TEXTS:
        yield f"{place} has {len(value)} records; at most {_MOST_TEXTS} are kept"
        return
    records = []
    for number, one in enumerate(value, 1):
        inner = Content()
        yield from _problems(f"{place}[{number}]", field.fields, one, inner)
        records.append(inner)
    if records:
        found[field.name] = records


def _wrong(place: str, field: Field, value: object) -> str:
    return f"{place} is {_shown(value)}, but must be {_wanted(field)}"


def _texts(place: str, field: Field, value: object, found: Content) -> Iterator[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        yield _wrong(place, field, value)
        return
    texts = list(filter(None, map(clean, value)))
    if len(texts) < field.least:
        yield f"{place} is empty; give it {_wanted(field)}"
    elif len(texts) > _MOST_TEXTS:
        yield f"{place} has {len(texts)} texts; at most {_MOST_TEXTS} are kept"
    elif any(len(text) > field.most for text in texts):
        yield f"{place} has a text of over {field.most:,} characters; make it shorter"
    if texts or field.required:
        found[field.name] = texts


def _wanted(field: Field) -> str:
    match field.kind:
        case "choice":
            return f"one of {', '.join(field.choices)}"
        case "flag":
            return "true or false"
        case "texts":
            return f"a list of texts (at least {field.least})" if field.least else "a list of texts"
        case "record":
            return f"a record of {', '.join(one.name for one in field.fields)}"
        case "records":
            return f"a list of records of {', '.join(one.name for one in field.fields)}"
    return "a text"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def known(name: str) -> Category:
    """The category of this name; UsageError where there is none."""
    folded = name.strip().lower().replace("-", "_")
    if folded not in CATEGORIES:
        raise UsageError(
            f"type {name!r} is no category; the categories are {', '.join(CATEGORIES)}"
        )
    return CATEGORIES[folded]
