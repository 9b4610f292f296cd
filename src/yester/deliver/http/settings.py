"""Settings: shown with secrets masked; those that send nothing and name no path can be changed.

config.toml is the user's file: one line of it is changed, and only where reading the new text gives
exactly the old settings with that change.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from yester.capture.rules import replace_file
from yester.config import EVERY, Config, Setting, Value, load
from yester.deliver.http import shapes
from yester.deliver.http.access import Access
from yester.deliver.http.parameters import Given, Nothing
from yester.deliver.http.problem import Refusal
from yester.errors import ConfigError
from yester.redact import redact

MASK = "(set, not shown)"
_HEADER = re.compile(r"\s*\[")
_one_at_a_time = threading.Lock()
Plain = bool | int | float | str | list[str]


def listed(access: Access, given: Nothing) -> shapes.Settings:  # noqa: ARG001
    config = access.config
    return shapes.Settings(
        file=str(access.home.path / "config.toml"),
        settings=[shown(setting, config) for setting in EVERY],
    )


def shown(setting: Setting, config: Config) -> shapes.Setting:
    return shapes.Setting(
        name=setting.name,
        value=_masked(setting, config[setting.name]),
        default=_plain(setting.default),
        origin=config.origins[setting.name],
        help=setting.help,
        writable=setting.web,
        secret=setting.secret,
    )


def _masked(setting: Setting, value: Value) -> Plain:
    if setting.secret:
        return MASK if value else ""
    return _plain(value)


def _plain(value: Value) -> Plain:
    """An address may hold a password."""
    if isinstance(value, tuple):
        return [redact(part) for part in value]
    return redact(value) if isinstance(value, str) else value


def change(access: Access, given: Given) -> shapes.Settings:
    """All that is given, or nothing."""
    values = {
        name: value for name, value in msgspec.structs.asdict(given).items() if value is not UNSET
    }
    path = (access.home.path / "config.toml").resolve()  # a link stays one
    with _one_at_a_time:
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            text = ""
        for name, value in values.items():
            new = edited(text, name, value)
            if new is None:
                raise Refusal(
                    409,
                    f"{path} is written in a way that cannot be changed line by line",
                    parameter=name,
                    fix="edit it with an editor",
                )
            text = new
        if values:
            _check(text)
            replace_file(path, text)
    access.home.reload()
    return listed(access, Nothing())


def _check(text: str) -> None:
    """Would yester take it?"""
    with tempfile.TemporaryDirectory(prefix="yester-") as folder:
        path = Path(folder) / "config.toml"
        path.write_text(text, "utf-8")
        try:
            load(path.parent, {})
        except ConfigError as error:
            said = str(error).replace(f"{path}: ", "config.toml: ")
            raise Refusal(409, said, fix="correct config.toml with an editor") from None


def edited(text: str, name: str, value: Plain) -> str | None:
    """The text of config.toml with this setting; None where that cannot be done safely."""
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
