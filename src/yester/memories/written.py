"""A memory as a file has it: a JSON object whose bytes are kept wherever its values are.

Other tools write these files too, each in a way of its own. So a file that was read is the pattern
for what is written in its place: a member whose value is the same stays as it stands there, byte
for byte, with its indentation, escapes and order; keys nobody here knows stay as well. Only what is
different is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from math import isfinite
from typing import Any

from yester.errors import SourceError

# The keys of the form in the order they are written, with what each may hold.
KEYS: Mapping[str, str] = {
    "schema_version": "text",
    "category": "name",
    "id": "name",
    "title": "text",
    "record_status": "status",
    "created_at": "text",
    "updated_at": "text",
    "tags": "texts",
    "related_files": "texts",
    "confidence": "share",
    "changes": "objects",
    "times_updated": "count",
    "retired_at": "text",
    "retired_reason": "text",
    "archived_at": "text",
    "archived_reason": "text",
    "content": "object",
}
REQUIRED = ("category", "id", "title", "content")
STATUSES = ("active", "retired", "archived")
LONGEST_ID = 80
_DEEPEST = 40  # levels of objects and lists in each other

_CATEGORY = re.compile(r"[a-z][a-z0-9_-]{0,39}")
# It becomes the name of a file: no separator, no leading dot, nothing a shell or a person trips on.
_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_ID - 1}}}")
_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r'[^\S\n]*\r?\n([ \t]+)(?=")')
_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}")


@dataclass(frozen=True, slots=True)
class Written:
    """`values` is the object, `raw` the file it came from: b"" where it never was one."""

    values: Mapping[str, Any]
    raw: bytes = b""

    @property
    def category(self) -> str:
        return str(self.values["category"])

    @property
    def id(self) -> str:
        return str(self.values["id"])

    @property
    def key(self) -> str:
        """What it is known by: ids are given within a category."""
        return f"{self.category}/{self.id}"

    @property
    def title(self) -> str:
        return str(self.values["title"])

    @property
    def status(self) -> str:
        return str(self.values.get("record_status") or "active")

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.values.get("tags") or ())

    @property
    def related_files(self) -> tuple[str, ...]:
        return tuple(self.values.get("related_files") or ())

    @property
    def content(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.values["content"]
        return found

    @property
    def updated_at(self) -> str:
        return str(self.values.get("updated_at") or self.values.get("created_at") or "")

    @property
    def hash(self) -> str:
        """Equal for equal values, however they are written and in whatever order."""
        return blake2b(canonical(self.values).encode(), digest_size=16).hexdigest()

    def changed(self, **values: Any) -> Written:
        """With other values; None takes a key away. The file it came from stays the pattern."""
        kept = {**self.values, **values}
        gone = {name for name, value in values.items() if value is None}
        return Written({n: v for n, v in kept.items() if n not in gone}, self.raw)

    def bytes(self, pattern: bytes = b"") -> bytes:
        """The file: in the way of the one it came from, else of `pattern`, else in ours."""
        return rendered(self.values, self.raw or pattern)


def canonical(value: Any) -> str:
    """One text for one value. Compared instead of the values: to Python, 1 and true are equal."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# --- reading -----------------------------------------------------------------------------------


def parsed(data: bytes, where: str = "memory") -> Written:
    """The memory in a file; SourceError with a sentence where it is none."""
    _, _, members = _members(data, where)
    values = {name: value for name, _, _, value in members}
    if len(values) < len(members):
        names = [name for name, _, _, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise SourceError(f"{where}: the key {twice!r} stands there twice")
    if problem := wrong(values):
        raise SourceError(f"{where}: {problem}")
    return Written(values, data)


def wrong(values: Mapping[str, Any]) -> str:
    """What keeps an object from being a memory, or "". The content is the category's business."""
    for name in REQUIRED:
        if values.get(name) is None:
            return f"has no {name}"
    for name, value in values.items():
        if value is not None and name in KEYS and not _fits(name, value):
            return f"{name} is {_short(value)}, which cannot be"
    if not values["title"].strip():
        return "has an empty title"
    return ""


def _fits(name: str, value: Any) -> bool:
    match KEYS[name]:
        case "text":
            return isinstance(value, str)
        case "name":
            pattern = _ID if name == "id" else _CATEGORY
            return isinstance(value, str) and pattern.fullmatch(value) is not None
        case "status":
            return value in STATUSES
        case "texts":
            return isinstance(value, list) and all(isinstance(part, str) for part in value)
        case "objects":
            return isinstance(value, list) and all(isinstance(part, dict) for part in value)
        case "object":
            return isinstance(value, dict)
        case "share":
            return type(value) in (int, float) and 0 <= value <= 1
        case _:
            return type(value) is int and value >= 0


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:37] + "…"


Member = tuple[str, int, int, Any]  # name, where it begins, where its value ends, value


def _members(data: bytes, where: str) -> tuple[str, str, list[Member]]:
    """The text without its byte order mark, the mark, and the object's members with their places.

    Positions are those of the text. The parser of the standard library reads each value; only the
    outermost braces are ours."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(f"{where}: is not UTF-8 (byte {error.start})") from None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix("\ufeff")
    try:
        found = list(_walk(text))
    except json.JSONDecodeError as error:
        raise SourceError(
            f"{where}: is not JSON (line {error.lineno}: {error.msg.lower()})"
        ) from None
    except ValueError as error:  # NaN, a number out of bounds
        raise SourceError(f"{where}: is not JSON ({error})") from None
    except RecursionError:
        raise SourceError(f"{where}: is nested too deeply") from None
    if any(_depth(value) > _DEEPEST for _, _, _, value in found):
        raise SourceError(f"{where}: is nested too deeply")
    return text, mark, found


def _walk(text: str) -> list[Member]:
    decoder = _decoder()
    at = _after(text, 0)
    if text[at : at + 1] != "{":
        raise json.JSONDecodeError("Expecting an object", text, at)
    at = _after(text, at + 1)
    members: list[Member] = []
    closed = text[at : at + 1] == "}"
    while not closed:
        begin = at
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("Expecting a key in double quotes", text, at)
        name, at = decoder.raw_decode(text, at)
        at = _after(text, at)
        if text[at : at + 1] != ":":
            raise json.JSONDecodeError("Expecting ':'", text, at)
        value, at = decoder.raw_decode(text, _after(text, at + 1))
        members.append((name, begin, at, value))
        at = _after(text, at)
        closed = text[at : at + 1] == "}"
        if not closed:
            if text[at : at + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' or '}'", text, at)
            at = _after(text, at + 1)
    if (end := _after(text, at + 1)) != len(text):
        raise json.JSONDecodeError("Expecting nothing more", text, end)
    return members


def _after(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


@cache
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(parse_constant=_refused, parse_float=_number)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no number there")


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _depth(value: Any) -> int:
    deepest, open_ones = 0, [(value, 1)]
    while open_ones:
        one, level = open_ones.pop()
        if isinstance(one, dict | list):
            deepest = max(deepest, level)
            if deepest > _DEEPEST:
                break
            parts = one.values() if isinstance(one, dict) else one
            open_ones += [(part, level + 1) for part in parts]
    return deepest


# --- writing -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Way:
    """How a file is written, as far as it must be known to add to it."""

    indent: str | None = "  "
    colon: str = ": "
    ascii: bool = False
    newline: str = "\n"

    def value(self, value: Any) -> str:
        """A member's value: one level deep, so what is inside stands two levels deep."""
        text = json.dumps(
            value,
            ensure_ascii=self.ascii,
            indent=self.indent,
            separators=("," if self.indent else self.comma, self.colon),
        )
        if self.indent:
            text = text.replace("\n", f"{self.newline}{self.indent}")
        return text

    @property
    def comma(self) -> str:
        return ", " if self.colon == ": " else ","


def rendered(values: Mapping[str, Any], pattern: bytes = b"") -> bytes:
    """An object as bytes. What it has in common with the pattern stands as it stands there."""
    try:
        text, mark, members = _members(pattern, "pattern")
    except SourceError:
        text, mark, members = "", "", []
    if not members or len({name for name, _, _, _ in members}) < len(members):
        return _fresh(values)
    way = _way_of(text, members)
    between = [text[end:begin] for (_, _, end, _), (_, begin, _, _) in pairwise(members)]
    join = between[-1] if between else ("," + (way.newline + way.indent if way.indent else ""))
    parts: list[str] = []
    for at, (name, begin, end, value) in enumerate(members):
        if name not in values:
            continue
        if canonical(value) == canonical(values[name]):
            member = text[begin:end]
        else:
            member = f"{_before_value(text, begin)}{way.value(values[name])}"
        parts += [between[at - 1], member] if parts else [member]
    known = {name for name, _, _, _ in members}
    for name in ordered(values):
        if name not in known:
            member = (
                f"{json.dumps(name, ensure_ascii=way.ascii)}{way.colon}{way.value(values[name])}"
            )
            parts += [join, member] if parts else [member]
    whole = mark + text[: members[0][1]] + "".join(parts) + text[members[-1][2] :]
    try:
        return whole.encode()
    except UnicodeEncodeError:  # half a character, which only an escape can say
        return _fresh(values)


def ordered(values: Mapping[str, Any]) -> list[str]:
    """Keys as the form orders them; others behind, as they come."""
    return [name for name in KEYS if name in values] + [n for n in values if n not in KEYS]


def _fresh(values: Mapping[str, Any]) -> bytes:
    put = {name: values[name] for name in ordered(values)}
    text = json.dumps(put, ensure_ascii=False, indent=2) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return (json.dumps(put, indent=2) + "\n").encode()


def _before_value(text: str, begin: int) -> str:
    """A member's key with the colon and the space behind it, as it stands there."""
    _, at = _decoder().raw_decode(text, begin)
    return text[begin : _after(text, _after(text, at) + 1)]


def _way_of(text: str, members: list[Member]) -> _Way:
    found = _INDENT.match(text, text.index("{") + 1)
    key = _before_value(text, members[0][1])
    return _Way(
        indent=found[1] if found else None,
        colon=": " if key.endswith((" ", "\t")) else ":",
        ascii=text.isascii() and _ESCAPED.search(text) is not None,
        newline="\r\n" if "\r\n" in text else "\n",
    )
