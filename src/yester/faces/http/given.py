"""A query string, a path and a body, read once, into the parameters of an endpoint (`parameters`).

What does not fit is refused with its name, its value and what would be right. A parameter that is
not known is refused as well: a misspelt filter must not look like an answer to the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from inspect import get_annotations
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import FieldInfo, fields

from yester.faces.http.parameters import Given
from yester.faces.http.problem import Refusal
from yester.memory import quote_value

G = TypeVar("G", bound=Given)
_MOST = 100  # parameters
_INTEGER = re.compile(r"-?[0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of a shape: how it is called outside, its schema, and whether it is a list."""

    name: str
    attribute: str
    type: Any
    schema: Mapping[str, Any]
    required: bool
    default: Any

    @property
    def listed(self) -> bool:
        return self.schema.get("type") == "array"

    @property
    def help(self) -> str:
        return str(self.schema.get("description", ""))


@cache
def taken(kind: type[Given]) -> Mapping[str, Parameter]:
    """What is an endpoint's own comes first, what many share behind it."""
    known = {one.name: one for one in fields(kind)}
    shapes = [part for part in kind.__mro__ if issubclass(part, Given)]
    ordered = [name for shape in shapes for name in get_annotations(shape) if name in known]
    return {one.encode_name: _parameter(one) for one in (known[name] for name in ordered)}


def _parameter(one: FieldInfo) -> Parameter:
    default = one.default_factory() if callable(one.default_factory) else one.default
    schema = msgspec.json.schema(one.type)
    return Parameter(one.encode_name, one.name, one.type, schema, one.required, default)


def from_query(kind: type[G], query: bytes, path: Mapping[str, str]) -> G:
    return _made(kind, {**_pairs(kind, query), **path}, lax=True)


def from_body(kind: type[G], body: bytes, path: Mapping[str, str]) -> G:
    if not body.strip():
        raise Refusal(400, "the body is missing", fix="send a JSON object")
    try:
        table = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refusal(400, f"the body is not JSON ({error})", fix="send a JSON object") from None
    except RecursionError:
        raise Refusal(400, "the body is nested too deeply", fix="send a flat object") from None
    if not isinstance(table, dict):
        raise Refusal(400, "the body is JSON, but no object", fix='send {"name": value, …}')
    for name in path:
        if name in table:
            raise Refusal(
                400, f"{name} stands in the path and in the body", parameter=name,
                fix="leave it out of the body",
            )  # fmt: skip
    table = _whole(table)
    made = {name: _value(kind, name, text, lax=True) for name, text in path.items()}
    return _made(kind, table, lax=False, made=made)


def _whole(value: Any) -> Any:
    """To JSON 12.0 is a whole number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_whole(part) for part in value]
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    return value


def _pairs(kind: type[Given], query: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict",
            max_num_fields=_MOST,
        )  # fmt: skip
    except UnicodeDecodeError:
        raise Refusal(
            400, "the query is not UTF-8", fix="percent-encode the bytes of UTF-8"
        ) from None
    except ValueError:
        raise Refusal(400, f"more than {_MOST} parameters", fix="leave some out") from None
    known = taken(kind)
    found: dict[str, Any] = {}
    for name, text in pairs:
        one = known.get(name)
        if one is not None and one.listed:
            found.setdefault(name, []).extend(part.strip() for part in text.split(",") if part)
            found[name] = [part for part in found[name] if part]
        elif name in found:
            raise Refusal(
                400, f"{name} is there twice", parameter=quote_value(name), value=text,
                fix="give it once",
            )  # fmt: skip
        else:
            found[name] = text
    return found


def _made(
    kind: type[G], table: Mapping[str, Any], lax: bool, made: Mapping[str, Any] | None = None
) -> G:
    known = taken(kind)
    values = dict(made or {})
    for name, value in table.items():
        values[name] = _value(kind, name, value, lax)
    for name, one in known.items():
        if one.required and name not in values:
            raise Refusal(
                400, f"{name} is missing; it must be {expected(one.schema)}", parameter=name,
                fix=one.help or f"add {name}",
            )  # fmt: skip
    return kind(**{known[name].attribute: value for name, value in values.items()})


def _value(kind: type[Given], name: str, value: Any, lax: bool) -> Any:
    one = taken(kind).get(name)
    if one is None:
        raise _unknown(kind, name, value)
    try:
        if lax and one.schema.get("type") == "integer" and not _INTEGER.fullmatch(str(value)):
            raise msgspec.ValidationError
        return msgspec.convert(value, one.type, strict=not lax)
    except msgspec.ValidationError:
        said = value if isinstance(value, str) else _text(value)
        must = expected(one.schema)
        raise Refusal(
            400, f"{name} is {quote_value(said)!r}, but must be {must}", parameter=name, value=said,
            fix=f"{name}: {must}",
        ) from None  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    return msgspec.json.encode(value).decode()


def _unknown(kind: type[Given], name: str, value: Any) -> Refusal:
    if reason := kind.refused.get(name):
        return Refusal(403, reason, parameter=name, fix="edit config.toml")
    known = taken(kind)
    meant = get_close_matches(name, known, 1)
    there = f"there is {', '.join(known)}" if known else "there is none here"
    said = quote_value(name)
    return Refusal(
        400, f"no parameter is called {said!r}", parameter=said,
        value=value if isinstance(value, str) else None,
        fix=f"did you mean {meant[0]}?" if meant else there,
    )  # fmt: skip


def expected(schema: Mapping[str, Any]) -> str:
    """What a value must be, in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(expected(one) for one in schema["anyOf"]))
    if "enum" in schema:
        return "one of " + ", ".join(str(one) or '""' for one in schema["enum"])
    match schema.get("type"):
        case "integer":
            least, most = schema.get("minimum"), schema.get("maximum")
            if least is None or most is None:
                return "a whole number"
            bounds = f" from {least:,}" + (f" to {most:,}" if most < 10**9 else " on")
            return "a whole number" + bounds
        case "number":
            least, most = schema.get("minimum"), schema.get("maximum")
            bounded = least is not None and most is not None
            return f"a number from {least:g} to {most:g}" if bounded else "a number"
        case "object":
            return "an object"
        case "boolean":
            return "true or false"
        case "array":
            most = schema.get("maxItems")
            few = f"at most {most} " if most else ""
            each = expected(schema.get("items", {}))
            return (
                f"a list of {few}texts"
                if each == "a text"
                else f"a list of {few}values, each {each}"
            )
    if schema.get("format") in ("yester-since", "yester-until"):
        return "a time"
    if schema.get("format") == "yester-folder":
        return "an absolute path"
    if examples := schema.get("examples"):
        return f"a text such as {' or '.join(examples)}"
    longest = schema.get("maxLength")
    least_long = "not empty, " if schema.get("minLength") else ""
    return "a text" + (f", {least_long}of at most {longest:,} characters" if longest else "")
