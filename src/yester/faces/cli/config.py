"""`yester config`: settings shown and changed; the file's comments and order stay."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click

from yester import config
from yester.capture import rules
from yester.errors import ConfigError, UsageError, YesterError
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.memories import edit_text
from yester.operations.settings import Setting, list_settings


@command("config")
def config_command(app: App) -> Output:
    """Show every setting with its value, where that comes from, and what it does."""
    known = list_settings(app.memory)

    def setting_lines() -> Iterator[str]:
        yield f"file  {known.file}"
        for one in known.settings:
            value = _format_value(one.value)
            is_ = f"{one.name} = {value}  ({one.origin})" if value else f"{one.name}  (not set)"
            yield f"\n{is_}\n    {one.help}"

    values = {one.name: {"value": one.value, "from": one.origin} for one in known.settings}
    return Output({"file": known.file, "settings": values}, setting_lines())


@command("config get")
def config_get_command(app: App, names: tuple[str, ...]) -> Output:
    """Print the value of settings, one a line."""
    found = [_find_setting(app, name) for name in names]
    value = {one.name: {"value": one.value, "from": one.origin} for one in found}
    return Output({"settings": value}, [_format_value(one.value) for one in found])


@command("config set")
def config_set_command(app: App, words: tuple[str, ...]) -> Output:
    """Change settings: NAME VALUE, or any number of NAME=VALUE. All of them, or none.

    A list is written with commas. A name of a project or a rule for old memories is called
    projects.FOLDER and retention.TYPE. Comments and the order of config.toml stay as they are.
    """
    apart = len(words) == 2 and "=" not in words[0]
    pairs = [words] if apart else [one.split("=", 1) for one in words]
    if wrong := [pair[0] for pair in pairs if len(pair) != 2]:
        raise UsageError(f"{' '.join(wrong)}: has no value; write NAME VALUE, or NAME=VALUE")
    wanted: dict[str, str | None] = {name: text for name, text in pairs}  # noqa: C416 -- typed
    return _change_settings(app, wanted)


@command("config unset")
def config_unset_command(app: App, names: tuple[str, ...]) -> Output:
    """Give settings their defaults again."""
    return _change_settings(app, dict.fromkeys(names))


def _change_settings(app: App, wanted: dict[str, str | None]) -> Output:
    """All reasons why it cannot be, or it is done."""
    path = config.config_file(app.home)
    text, wrong = config.read_config_text(path), []
    for name, value in wanted.items():
        try:
            _check_permission(app, name)
            text = config.change_text(text, name, value)
        except YesterError as error:
            wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    _write_settings(app, text)
    found = [_find_setting(app, name) for name in wanted if not _in_table(name)]
    lines = [f"{one.name} = {_format_value(one.value)}  ({one.origin})" for one in found]
    lines += [f"{name} = {wanted[name] or '(gone)'}" for name in wanted if _in_table(name)]
    values = {one.name: {"value": one.value, "from": one.origin} for one in found}
    return Output({"file": str(path), "settings": values}, lines)


def _write_settings(app: App, text: str) -> None:
    config.write_config_text(config.config_file(app.home), text)
    app.memory.reload_config()
    rules.write_hook_rules(app.home, rules.load_rules(app.config))


def _in_table(name: str) -> bool:
    return name.partition(".")[0] in config.TABLES


def _check_permission(app: App, name: str) -> None:
    """What sends data, names a path or widens what is shown is the user's to say."""
    setting = config.find_setting(name) if not _in_table(name) else None
    if setting is None or not setting.web:
        app.memory.require_user(f"{name} is set by you alone: say it in a terminal of your own")


def _find_setting(app: App, name: str) -> Setting:
    known = config.find_setting(name).name
    found = list_settings(app.memory).settings
    return next(one for one in found if one.name == known)


@command("config edit", plain=True)
def config_edit_command(app: App) -> None:
    """Open config.toml in $EDITOR. What yester would not take is not written."""
    app.memory.require_user("config.toml is edited by you alone: do so in a terminal of your own")
    path = config.config_file(app.home)
    before = config.read_config_text(path)
    text = before or config.render_template()
    draft = app.home / "run" / f"config-{os.getpid()}.toml"
    while True:
        after = edit_text(draft, text)
        if after in (text, before) and after != "":
            click.echo("unchanged")
            break
        try:
            _write_settings(app, after)
            click.echo(f"written to {path}")
            break
        except ConfigError as error:
            click.echo(f"yester: {error}", err=True)
            again = sys.stdin.isatty() and click.confirm("Edit it again?", default=True)
            if not again:
                raise ConfigError(f"nothing was changed; your text is kept in {draft}") from None
            text = after
    draft.unlink(missing_ok=True)


def _format_value(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
