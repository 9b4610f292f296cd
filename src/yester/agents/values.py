"""Values out of foreign records, which may be of any type: what is wanted of them, or nothing."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from yester.clock import parse_iso
from yester.files import read_bytes
from yester.model import ToolCall

# A longer line is no message; reading it whole would break the promise of constant memory.
LONGEST_LINE = 64 * 1024 * 1024

Record = Mapping[str, Any]  # of somebody else's: an object of JSON, a row, a tool's input
Field = tuple[str, int, int]  # of a tool's input: its name, from where to where it stands in a text

_SHELL_MARKDOWN = re.compile(
    r"\A(?:[^\n`]{1,300}\n\n)?(?:`(?P<line>[^\n]+)`|```(?:bash|sh|shell)\n(?P<block>.*?)\n```)"
    r"(?:\n\n```\w*\n(?P<output>.*?)\n?```\s*)?\Z",
    re.S,
)
_decoder = json.JSONDecoder(strict=False)


# --- fields --------------------------------------------------------------------------------------


def value_at(record: Any, *keys: str) -> Any:
    """The first value under these names that is one: versions and clients have different ones."""
    found = map(record.get, keys) if isinstance(record, Mapping) else ()
    return next(filter(None, found), None)


def text_at(record: Any, *keys: str) -> str:
    """The first text under these names."""
    found = map(record.get, keys) if isinstance(record, Mapping) else ()
    return next((value for value in found if value and isinstance(value, str)), "")


def dict_at(record: Any, *path: str) -> dict[str, Any]:
    """The object at the end of a path of names."""
    for key in path:
        record = record.get(key) if isinstance(record, Mapping) else None
    return record if isinstance(record, dict) else {}


def list_at(record: Any, key: str) -> list[Any]:
    value = record.get(key) if isinstance(record, Mapping) else None
    return value if isinstance(value, list) else []


def dicts_at(record: Any, key: str) -> list[dict[str, Any]]:
    """The objects of a list; whatever else is in it is left out."""
    return [value for value in list_at(record, key) if isinstance(value, dict)]


def input_fields(given: Any) -> dict[str, Any]:
    """A tool call's input by name, which some clients write as JSON text."""
    fields = decode_json(given) if isinstance(given, str) else given
    if isinstance(fields, dict):
        return fields
    return {} if given in (None, "") else {"input": given}


# --- texts ---------------------------------------------------------------------------------------


def to_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return ""


def list_blocks(content: Any) -> list[dict[str, Any]]:
    """The blocks of a message or result that is a text, one block, or a list of either."""
    parts = content if isinstance(content, list) else [content]
    blocks = ({"type": "text", "text": part} if isinstance(part, str) else part for part in parts)
    return [block for block in blocks if isinstance(block, dict)]


def nested_text(content: Any, deep: int = 5) -> str:
    """The text of a message or result that is a text, a list of blocks, or one block."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and deep:
        return "\n".join(filter(None, (nested_text(part, deep - 1) for part in content)))
    if isinstance(content, Mapping) and deep:
        for key in ("text", "value", "output", "content", "contents"):
            if content.get(key):
                return nested_text(content[key], deep - 1)
    return ""


def join_fields(fields: Iterable[tuple[str, str]], named: bool) -> tuple[str, list[Field]]:
    """The text of a tool call's input, a line or more for each field, and where in it each is."""
    lines: list[str] = []
    places: list[Field] = []
    at = 0
    for name, value in fields:
        head = f"{name}: " if named else ""
        lines.append(head + value)
        places.append((name, at + len(head), at + len(head) + len(value)))
        at = places[-1][2] + 1
    return "\n".join(lines), places


def find_shell_call(text: str) -> ToolCall:
    """A use of a shell that is written down as Markdown: a description, the command as code, the
    output in a block."""
    found = _SHELL_MARKDOWN.match(text)
    if found is None:
        return ToolCall()
    command = found.span("line" if found["line"] else "block")
    none = found["output"] is None
    return ToolCall((("command", *command),), (len(text),) * 2 if none else found.span("output"))


def todo_text(todos: Any) -> str:
    """A todo list, one line each; clients have different names for a todo's text."""
    if isinstance(todos, str):
        return todos.strip()
    marks = {"completed": "x", "in_progress": ">"}
    lines = []
    for todo in todos if isinstance(todos, list) else ():
        if text := text_at(todo, "content", "step", "description", "subject"):
            lines.append(f"[{marks.get(str(todo.get('status')), ' ')}] {text}")
    return "\n".join(lines)


def join_output(given: str, output: str) -> str:
    """Input, a blank line, output."""
    return "\n\n".join(filter(None, (trim_text(given), trim_text(output))))


def trim_text(text: str) -> str:
    """Without empty lines around it and white space behind it."""
    return text.strip("\n").rstrip()


def first_line(text: str, most: int = 80) -> str:
    """The first line that says something, as a title."""
    line = next((part.strip() for part in text.splitlines() if part.strip(" #*-`>\t")), "")
    line = line.lstrip("# ").strip()
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def relative_path(path: str, root: str) -> str:
    """A path as seen from the project's root, so that work trees and machines agree on it."""
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("/", "\\"):
        return path[len(root) + 1 :].replace("\\", "/")
    return path


def digest(*parts: str) -> str:
    """A short key that is the same for the same texts, and stays so between versions."""
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


# --- times ---------------------------------------------------------------------------------------


def parse_time(value: Any) -> int:
    """Milliseconds from a number of them or an ISO time; 0 where there is no telling."""
    if isinstance(value, str):
        return parse_iso(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(value) if 0 < value < 1 << 43 else 0  # beyond that lies the year 2248


def parse_local_time(text: str, form: str = "") -> int:
    """Milliseconds from a time of this machine's zone, as `form` says (strptime's), else in ISO's
    form; 0 where it is none."""
    try:
        found = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        return max(0, int(found.timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return 0


# --- JSON ----------------------------------------------------------------------------------------


def decode_json(text: Any) -> Any:
    """The value of JSON inside JSON; None where it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return None


def decode_object(raw: Any) -> dict[str, Any] | None:
    """A JSON object, also one that is cut off from others; None for anything else."""
    if not isinstance(raw, bytes | str):
        return None
    value = decode_json(raw)
    if value is None:
        text = raw if isinstance(raw, str) else raw.decode("utf-8", "replace")
        try:
            value = next(iter(split_objects(text)), None)
        except RecursionError:
            return None
    return value if isinstance(value, dict) else None


def load_object(path: Path, most: int = LONGEST_LINE) -> dict[str, Any] | None:
    """The object of a JSON file of at most so many bytes, if there is one."""
    try:
        return decode_object(read_bytes(path, most))
    except (OSError, ValueError):
        return None


def split_objects(text: str) -> list[Any]:
    """The objects of a line that is not exactly one: glued records, stray bytes around them."""
    found: list[Any] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, at = _decoder.raw_decode(text, at)
            # Lone surrogates cannot be stored: they become question marks.
            encodable = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            found.append(json.loads(encodable))
        except (ValueError, RecursionError):
            break
        at = text.find("{", at)
    return found


def scan_slug(slug: str, dash_name: Callable[[str], str], above: Path) -> Iterator[str]:
    """Folders below `above` that a slug stands for: the names on the way, with dashes for what
    stands in none, joined by dashes."""
    try:
        with os.scandir(above) as entries:
            below = sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in below:
        dashed = dash_name(name)
        if dashed == slug:
            yield str(above / name)
        elif dashed and slug.startswith(f"{dashed}-"):
            yield from scan_slug(slug[len(dashed) + 1 :], dash_name, above / name)
