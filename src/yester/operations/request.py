"""What can be asked of an operation: a Struct for each, whose fields have a type, a default, limits
and one sentence of help. Every face validates and describes its parameters by these.

Names are those of the seeds where they have one. What does not fit is refused with its name, its
value and what would be right; so is a name that is not known: a misspelt filter must not look like
an answer to the question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import FieldInfo

from yester.clock import WRITTEN, parse_bound
from yester.errors import NotYours, UsageError
from yester.memory import Memory, quote_value
from yester.model import Filters
from yester.operations import fields
from yester.operations.fields import about

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_TIME = "1h, 3d, 1w, 2m, today, yesterday, 2026-03-01, an ISO time, or seconds or ms since 1970"
_BRACKETS = about("The same in bracket form.")


class Request(Struct, kw_only=True, forbid_unknown_fields=True):
    """`refused` are names that exist and are not taken, each with the reason."""

    refused: ClassVar[Mapping[str, str]] = {}


class NoRequest(Request):
    """No parameters."""


class DatedRequest(Request, kw_only=True):
    start: Annotated[fields.Since, about(f"Not older than this: {_TIME}.")] = field(
        default="", name="dateStart"
    )
    end: Annotated[
        fields.Until, about("Not newer than this, written as dateStart; a whole day counts.")
    ] = field(default="", name="dateEnd")
    range: Annotated[
        str,
        about(
            'Both at once as JSON: {"start": "2026-03-01", "end": "2026-03-08"}.',
            max_length=200,
            extra_json_schema={"format": "yester-range"},
        ),
    ] = field(default="", name="dateRange")
    range_start: Annotated[fields.Since, _BRACKETS] = field(default="", name="dateRange[start]")
    range_end: Annotated[fields.Until, _BRACKETS] = field(default="", name="dateRange[end]")


class FilteredRequest(DatedRequest, kw_only=True):
    project: fields.ProjectName = ""
    concepts: Annotated[fields.Names, about("Only items with one of these concepts.")] = []
    files: Annotated[
        fields.Names, about("Only items about one of these files; the end of a path will do.")
    ] = []
    session: Annotated[fields.Name, about("Only this session: its id, or 6 characters of it.")] = ""
    agent: fields.AgentName = ""
    tool: Annotated[fields.Name, about("Only calls of this tool, e.g. Bash.")] = ""


class FormattedRequest(FilteredRequest, kw_only=True):
    format: fields.Shape = "index"


class ItemRequest(Request, kw_only=True):
    id: Annotated[fields.Id, about("The item's id.")]


# --- filters --------------------------------------------------------------------------------------


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
    start, since = _read_bound(now, False, {
        "dateStart": request.start, "dateRange[start]": request.range_start,
        "dateRange": in_json[0],
    })  # fmt: skip
    end, until = _read_bound(now, True, {
        "dateEnd": request.end, "dateRange[end]": request.range_end, "dateRange": in_json[1],
    })  # fmt: skip
    if since is not None and until is not None and since >= until:
        raise UsageError(
            f"dateStart {start!r} is not before dateEnd {end!r}", "exchange them",
            parameter="dateStart", value=start,
        )  # fmt: skip
    return since, until


def _read_bound(now: int, end: bool, forms: Mapping[str, str]) -> tuple[str, int | None]:
    """An end of a range by the first of its parameters that is given, as text and as time."""
    for parameter, text in forms.items():
        if not text.strip():
            continue
        try:
            return text, parse_bound(text, now, option=parameter, end=end)
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
    return {one.encode_name: _make_parameter(one) for one in (known[name] for name in ordered)}


def _make_parameter(one: FieldInfo) -> Parameter:
    default = one.default_factory() if callable(one.default_factory) else one.default
    schema = msgspec.json.schema(one.type)
    return Parameter(one.encode_name, one.name, one.type, schema, one.required, default)


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
