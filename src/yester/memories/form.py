"""A memory as a text to edit: TOML, as `config.toml` is. What is written reads back as it was."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from yester.errors import UsageError
from yester.memories.categories import Field, category
from yester.memories.memo import Plain

KEYS = ("title", "type", "tags", "files", "confidence", "scope", "path")


def written(values: Mapping[str, Any], head: str) -> str:
    """The editable part of a memory's plain form; fields it does not have stand as comments."""
    row = category(values["type"])
    lines = [f"# {line}" for line in head.splitlines()] + [""]
    lines += [f"{name} = {_value(values[name])}" for name in KEYS]
    lines += ["", "[content]"]
    content = values["content"]
    for field in row.fields:
        if field.kind not in ("record", "records"):
            lines += _field(field, content.get(field.name))
    for field in row.fields:
        if field.kind in ("record", "records"):
            lines += _table(field, content.get(field.name))
    known = {field.name for field in row.fields}
    lines += [f"{json.dumps(k)} = {_value(v)}" for k, v in content.items() if k not in known]
    return "\n".join(lines) + "\n"


def _field(field: Field, value: Any) -> list[str]:
    hint = f"  # {', '.join(field.choices)}" if field.choices else ""
    if value is None:
        return [f"# {field.name} = {'[]' if field.kind == 'texts' else _value('')}{hint}"]
    return [f"{field.name} = {_value(value)}{hint}"]


def _table(field: Field, value: Any) -> list[str]:
    many = field.kind == "records"
    head = f"[[content.{field.name}]]" if many else f"[content.{field.name}]"
    if not value:
        return ["", f"# {head}", *(f"# {line}" for f in field.fields for line in _plain(f))]
    lines = []
    for record in value if many else [value]:
        lines += ["", head]
        for inner in field.fields:
            lines += _field(inner, record.get(inner.name))
    return lines


def _plain(field: Field) -> list[str]:
    return [f"{field.name} = {'[]' if field.kind == 'texts' else _value('')}"]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        if sum(len(str(one)) for one in value) < 60:
            return "[" + ", ".join(map(_value, value)) + "]"
        return "[\n" + "".join(f"  {_value(one)},\n" for one in value) + "]"
    if isinstance(value, str):
        if "\n" in value or len(value) > 80:
            text = value.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
            return '"""\n' + _escaped(text) + '"""'
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _escaped(text: str) -> str:
    # A quotation mark at the very end would be taken for one of the closing three.
    return text[:-1] + '\\"' if text.endswith('"') else text


def read(text: str, name: str = "the text") -> Plain:
    """What was written or edited; UsageError says where it cannot be read."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{name} cannot be read: {error}; correct it and save again") from None
    for key in values:
        if key not in (*KEYS, "content"):
            raise UsageError(f"{name}: {key!r} is no part of a memory; they are {', '.join(KEYS)}")
    if not isinstance(values.get("content", {}), dict):
        raise UsageError(f"{name}: content must be a table, [content]")
    return values
