"""What can be asked of an operation: a Struct for each, whose fields have a type, a default, limits
and one sentence of help. Every face validates and describes its parameters by these.

Names are those of the seeds where they have one. What does not fit is refused with its name, its
value and what would be right; so is a name that is not known: a misspelt filter must not look like
an answer to the question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from inspect import get_annotations
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct, field

from yester.clock import WRITTEN, parse_bound
from yester.errors import NotYours, UsageError
from yester.memory import Memory, quote_value
from yester.model import Filters
from yester.operations import fields
from yester.redact import redact_value
from yester.tables import load_table

_INTEGER = re.compile(r"-?[0-9]{1,20}")


class Request(Struct, kw_only=True, forbid_unknown_fields=True):
    """`refused` are names that exist and are not taken, each with the reason."""

    refused: ClassVar[Mapping[str, str]] = {}


class NoRequest(Request):
    """No parameters."""


class DatedRequest(Request, kw_only=True):
    start: fields.Since = field(default="", name="dateStart")
    end: fields.Until = field(default="", name="dateEnd")
    range: fields.Range = field(default="", name="dateRange")
    range_start: fields.Since = field(default="", name="dateRange[start]")
    range_end: fields.Until = field(default="", name="dateRange[end]")


class FilteredRequest(DatedRequest, kw_only=True):
    project: fields.ProjectName = ""
    concepts: fields.Names = []
    files: fields.Names = []
    session: fields.Name = ""
    agent: fields.AgentName = ""
    tool: fields.Name = ""


class FormattedRequest(FilteredRequest, kw_only=True):
    format: fields.Shape = "index"


class ItemRequest(Request, kw_only=True):
    id: fields.Id


class ProjectRequest(Request, kw_only=True):
    project: fields.ProjectName = ""


# --- filters --------------------------------------------------------------------------------------

Time = float | int | datetime | str | None


def read_filters(given: Mapping[str, Any], now: int, option: str = "") -> Filters:
    """Those of the given values that are filters, by their names; a time may be a text, seconds or
    a datetime, and is called by its name behind `option` where it is none."""
    found = {name: given[name] for name in Filters.__struct_fields__ if given.get(name)}
    for name, value in found.items():
        if name in ("since", "until"):
            found[name] = _read_time(value, now, option + name, name == "until")
        elif not isinstance(value, str):
            found[name] = tuple(value)
    return Filters(**found)


def _read_time(value: Time, now: int, option: str, end: bool) -> int:
    if isinstance(value, str):
        return parse_bound(value, now, option=option, end=end)
    assert value is not None
    return int((value.timestamp() if isinstance(value, datetime) else value) * 1000)


def make_filters(memory: Memory, request: Request, **more: Any) -> Filters:
    """What a request narrows by: those of its fields that are filters, and `more`."""
    named = {name: getattr(request, name, None) for name in Filters.__struct_fields__}
    found = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in named.items()
        if value is not None
    }
    if project := getattr(request, "project", ""):
        found["projects"] = (memory.find_project(project).key,)
    if isinstance(request, DatedRequest):
        found["since"], found["until"] = read_dates(request, memory.now)
    return memory.hide_private(Filters(**{**found, **more}))


def read_dates(request: DatedRequest, now: int) -> tuple[int | None, int | None]:
    """From when to when, in whichever of the three forms it was said."""
    in_json = _read_range(request.range)
    start, since = _read_bound(now, "dateStart", request.start, request.range_start, in_json[0])
    end, until = _read_bound(now, "dateEnd", request.end, request.range_end, in_json[1])
    if since is not None and until is not None and since >= until:
        raise UsageError(
            f"dateStart {start!r} is not before dateEnd {end!r}", "exchange them",
            parameter="dateStart", value=start,
        )  # fmt: skip
    return since, until


def _read_bound(
    now: int, name: str, own: str, in_brackets: str, in_json: str
) -> tuple[str, int | None]:
    """An end of a range by the first of its parameters that is given, as text and as time."""
    brackets = f"dateRange[{name.removeprefix('date').lower()}]"
    for parameter, text in ((name, own), (brackets, in_brackets), ("dateRange", in_json)):
        if text.strip():
            try:
                return text, parse_bound(text, now, option=parameter, end=name == "dateEnd")
            except (UsageError, OverflowError, OSError):
                raise UsageError(
                    f"{parameter} {quote_value(text)!r} is not a time",
                    f"write {WRITTEN}, or seconds or milliseconds since 1970",
                    parameter=parameter, value=text,
                ) from None  # fmt: skip
    return "", None


class _Range(Struct, forbid_unknown_fields=True):
    start: str | int | None = None
    end: str | int | None = None


def _read_range(text: str) -> tuple[str, str]:
    if not text.strip():
        return "", ""
    try:
        found = msgspec.json.decode(text, type=_Range)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"dateRange is {text!r}, which is not the JSON it must be ({error})",
            '{"start": "2026-03-01", "end": "2026-03-08"}, or dateStart and dateEnd',
            parameter="dateRange", value=text,
        ) from None  # fmt: skip
    return str(found.start or ""), str(found.end or "")


# --- answers --------------------------------------------------------------------------------------

A = TypeVar("A", bound=Struct)


class Page(Struct, kw_only=True):
    """Some of what there is, and whether there is more."""

    count: int
    more: bool


def make_answer(kind: type[A], record: object, /, **more: Any) -> A:
    """An answer with what a record has under the same names, its texts without secrets, and with
    `more`, which is taken as it is."""
    same = (name for name in kind.__struct_fields__ if name not in more and hasattr(record, name))
    return kind(**{name: redact_value(getattr(record, name)) for name in same}, **more)


# --- parameters of a request ----------------------------------------------------------------------

R = TypeVar("R", bound=Request)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One field of a request: how it is called outside, its schema, and whether it is a list."""

    name: str
    attribute: str
    type: Any
    schema: Mapping[str, Any]
    required: bool
    default: Any

    @property
    def is_list(self) -> bool:
        return self.schema.get("type") == "array"

    @property
    def help(self) -> str:
        return str(self.schema.get("description", ""))


@cache
def list_parameters(kind: type[Request]) -> Mapping[str, Parameter]:
    """By name. What is a request's own comes first, what many share behind it."""
    known = {one.name: one for one in msgspec.structs.fields(kind)}
    requests = [part for part in kind.__mro__ if issubclass(part, Request)]
    ordered = [name for part in requests for name in get_annotations(part) if name in known]
    found = {}
    for name in dict.fromkeys(ordered):
        one = known[name]
        default = one.default_factory() if callable(one.default_factory) else one.default
        schema = msgspec.json.schema(one.type)
        if meaning := find_meaning([part.__name__ for part in requests], name):
            schema["description"] = meaning
        found[one.encode_name] = Parameter(
            one.encode_name, name, one.type, schema, one.required, default
        )
    return found


def find_meaning(classes: Iterable[str], name: str) -> str:
    """What a field means to the first of these classes that says it (`tables/meanings.toml`)."""
    rows = load_table("meanings")
    return next((rows[one][name] for one in classes if name in rows.get(one, ())), "")


def make_request(
    kind: type[R],
    texts: Mapping[str, Any],
    values: Mapping[str, Any],
    names: Collection[str] | None = None,
) -> R:
    """From what was written as text, where "12" is a number and "a, b" may be a list, and from
    values that have a type. `names` are those that a face takes, where it does not take all."""
    every = list_parameters(kind)
    known = {name: one for name, one in every.items() if names is None or name in names}
    for name, value in {**texts, **values}.items():
        if name not in known:
            raise _unknown_parameter(kind, known, name, value)
    read = {name: _convert_value(known[name], text, lax=True) for name, text in texts.items()}
    read |= {name: _convert_value(known[name], value) for name, value in values.items()}
    for name, one in known.items():
        if one.required and name not in read:
            raise UsageError(
                f"{name} is missing; it must be {describe_schema(one.schema)}",
                one.help or f"add {name}", parameter=name,
            )  # fmt: skip
    return kind(**{known[name].attribute: value for name, value in read.items()})


def split_list(text: str) -> list[str]:
    """The parts of a list that is written with commas."""
    return [part for part in map(str.strip, text.split(",")) if part]


def _convert_value(one: Parameter, value: Any, lax: bool = False) -> Any:
    try:
        if lax and one.schema.get("type") == "integer" and not _INTEGER.fullmatch(str(value)):
            raise msgspec.ValidationError
        if lax and one.is_list and isinstance(value, str):
            value = split_list(value)
        return msgspec.convert(value, one.type, strict=not lax)
    except msgspec.ValidationError:
        text = value if isinstance(value, str) else _write_value(value)
        must = describe_schema(one.schema)
        wrong = UsageError(
            f"{one.name} is {quote_value(text)!r}, but must be {must}",
            parameter=one.name, value=text,
        )  # fmt: skip
        wrong.fix = f"{one.name}: {must}"  # for who shows it apart: the sentence has said it
        raise wrong from None


def _write_value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    return msgspec.json.encode(value).decode()


def _unknown_parameter(
    kind: type[Request], known: Collection[str], name: str, value: Any
) -> UsageError:
    if reason := kind.refused.get(name):
        return NotYours(reason, "edit config.toml", parameter=name)
    meant = get_close_matches(name, known, 1)
    there = f"there is {', '.join(known)}" if known else "there is none here"
    quoted = quote_value(name)
    return UsageError(
        f"no parameter is called {quoted!r}", f"did you mean {meant[0]}?" if meant else there,
        parameter=quoted, value=value if isinstance(value, str) else None,
    )  # fmt: skip


_WORDS = {"object": "an object", "boolean": "true or false"}
_FORMATS = {
    "yester-since": "a time", "yester-until": "a time", "yester-folder": "an absolute path",
}  # fmt: skip


def describe_schema(schema: Mapping[str, Any]) -> str:
    """What a value must be, in words."""
    if "anyOf" in schema:
        written = [one for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(map(describe_schema, written)))
    if "enum" in schema:
        return "one of " + ", ".join(str(one) or '""' for one in schema["enum"])
    kind = schema.get("type", "")
    if kind in ("integer", "number"):
        return _describe_number(kind, schema.get("minimum"), schema.get("maximum"))
    if kind == "array":
        least, most = schema.get("minItems"), schema.get("maxItems")
        few = "" if most is None else f"{least} to {most} " if least else f"at most {most} "
        each = describe_schema(schema.get("items", {}))
        values = "texts" if each == "a text" else f"values, each {each}"
        return f"a list of {few}{values}"
    if known := _WORDS.get(kind) or _FORMATS.get(schema.get("format", "")):
        return known
    if examples := schema.get("examples"):
        return f"a text such as {' or '.join(examples)}"
    longest = schema.get("maxLength")
    not_empty = "not empty, " if schema.get("minLength") else ""
    return "a text" + (f", {not_empty}of at most {longest:,} characters" if longest else "")


def _describe_number(kind: str, least: float | None, most: float | None) -> str:
    words = "a whole number" if kind == "integer" else "a number"
    if least is None or most is None:
        return words
    if kind == "number":
        return f"{words} from {least:g} to {most:g}"
    return f"{words} from {least:,}" + (f" to {most:,}" if most < 10**9 else " on")
