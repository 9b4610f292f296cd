"""Settings: shown with secrets masked; those that send nothing and name no path can be changed."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from yester import config as configuration
from yester.config import SETTINGS, Config, Plain, Setting, Value
from yester.errors import ConfigError
from yester.faces.http import shapes
from yester.faces.http.parameters import Given, Nothing
from yester.faces.http.problem import Refusal
from yester.memory import Memory
from yester.redact import redact

MASK = "(set, not shown)"


def listed(memory: Memory, given: Nothing) -> shapes.Settings:  # noqa: ARG001
    config = memory.config
    return shapes.Settings(
        file=str(memory.home / "config.toml"),
        settings=[shown(setting, config) for setting in SETTINGS],
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


def change(memory: Memory, given: Given) -> shapes.Settings:
    """All that is given, or nothing."""
    values = {
        name: value for name, value in msgspec.structs.asdict(given).items() if value is not UNSET
    }
    path = configuration.config_file(memory.home)
    with configuration.one_at_a_time:
        text = configuration.read_config_text(path)
        for name, value in values.items():
            new = configuration.edit_config_text(text, {name: value})
            if new is None:
                raise Refusal(
                    409,
                    f"{path} is written in a way that cannot be changed line by line",
                    parameter=name,
                    fix="edit it with an editor",
                )
            text = new
        if values:
            try:
                configuration.write_config_text(path, text)
            except ConfigError as error:
                raise Refusal(409, str(error), fix="correct config.toml with an editor") from None
    memory.reload_config()
    return listed(memory, Nothing())
