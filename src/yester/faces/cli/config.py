"""`yester config`: the settings in force."""

from __future__ import annotations

import click

from yester.config import SETTINGS, Setting, Value
from yester.faces.cli.app import App, pass_app, print_json


@click.command("config")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, as_json_: bool) -> None:
    """Show every setting with its value, where that comes from, and what it does."""
    config = app.config
    if as_json_:
        values = {
            s.name: {"value": _shown(s, config[s.name]), "from": config.origins[s.name]}
            for s in SETTINGS
        }
        print_json({"file": str(app.home / "config.toml"), "settings": values})
        return
    click.echo(f"file  {app.home / 'config.toml'}")
    for setting in SETTINGS:
        value = _shown(setting, config[setting.name])
        shown = ", ".join(value) if isinstance(value, tuple) else str(value).lower()
        click.echo(
            f"\n{setting.name} = {shown}  ({config.origins[setting.name]})\n    {setting.help}"
        )


def _shown(setting: Setting, value: Value) -> Value:
    return "(set, not shown)" if setting.secret and value else value
