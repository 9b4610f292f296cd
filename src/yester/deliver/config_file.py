"""config.toml changed for the user: a line at a time, comments and order stay, and only where
reading the new text gives exactly the old settings with that change."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yester.capture.rules import replace_file
from yester.config import load
from yester.errors import ConfigError

Plain = bool | int | float | str | list[str]
_HEADER = re.compile(r"\s*\[")
_PROJECTS = re.compile(r"\s*\[\s*projects\s*\]\s*(#.*)?")
one_at_a_time = threading.Lock()


def path_of(home: Path) -> Path:
    return (home / "config.toml").resolve()  # a link stays one


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""


def write(path: Path, text: str) -> None:
    """The whole of it or nothing; ConfigError where yester would not take it."""
    with tempfile.TemporaryDirectory(prefix="yester-") as folder:
        tried = Path(folder) / "config.toml"
        tried.write_text(text, "utf-8")
        try:
            load(tried.parent, {})
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"{tried}: ", "config.toml: ")) from None
    replace_file(path, text)


def with_setting(text: str, name: str, value: Plain) -> str | None:
    """The text with this setting; None where that cannot be done safely."""
    try:
        wanted: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    wanted[name] = value
    line = f"{name} = {_written(value)}"
    lines = text.splitlines()
    end = next((at for at, one in enumerate(lines) if _HEADER.match(one)), len(lines))
    own = re.compile(rf"\s*{re.escape(name)}\s*=")
    at = next((at for at, one in enumerate(lines[:end]) if own.match(one)), None)
    if at is not None:
        lines[at] = line + _comment(lines[at])
    else:
        lines[end:end] = [line, ""] if end < len(lines) else [line]
    return _checked(lines, wanted)


def with_projects(text: str, names: Mapping[str, str | None]) -> str | None:
    """The text with these lines of [projects], None for those to be taken out; None where that
    cannot be done safely."""
    try:
        wanted: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    table = {**wanted.get("projects", {}), **names}
    wanted["projects"] = {key: name for key, name in table.items() if name is not None}
    lines = text.splitlines()
    head = next((at for at, one in enumerate(lines) if _PROJECTS.fullmatch(one)), None)
    if head is None:
        lines += [*([""] if lines and lines[-1].strip() else []), "[projects]"]
        head = len(lines) - 1
    end = head + 1
    left = dict(names)
    while end < len(lines) and not _HEADER.match(lines[end]):
        key = _key(lines[end])
        if key in left:
            name = left.pop(key)
            if name is None:
                del lines[end]
                continue
            lines[end] = f"{_written(key)} = {_written(name)}" + _comment(lines[end])
        end += 1
    while end > head + 1 and not lines[end - 1].strip():  # before an empty line, not behind it
        end -= 1
    lines[end:end] = [f"{_written(k)} = {_written(v)}" for k, v in left.items() if v is not None]
    return _checked(lines, wanted)


def _key(line: str) -> str:
    """What a line gives a value to; "" where it is no such line."""
    try:
        return next(iter(tomllib.loads(line)), "")
    except tomllib.TOMLDecodeError:
        return ""


def _checked(lines: list[str], wanted: Mapping[str, Any]) -> str | None:
    new = "\n".join(lines) + "\n"
    try:
        return new if tomllib.loads(new) == wanted else None
    except tomllib.TOMLDecodeError:
        return None


def _comment(line: str) -> str:
    """What the user has written behind the value."""
    for found in re.finditer(r"\s*#", line):
        try:
            tomllib.loads(line[: found.start()])
        except tomllib.TOMLDecodeError:
            continue
        return "  " + line[found.start() :].strip()
    return ""


def _written(value: Plain) -> str:
    return json.dumps(value, ensure_ascii=False)
