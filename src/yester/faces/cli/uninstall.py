"""`yester uninstall`: out of the agents of this user, as if it had never been there."""

from __future__ import annotations

from pathlib import Path

import click

from yester.faces.cli.app import App, pass_app
from yester.faces.cli.install import agent_options, ask_first, show_steps
from yester.faces.cli.worker import end
from yester.operate import install
from yester.operate.install import Change


@click.command("uninstall")
@agent_options
@pass_app
def command(
    app: App, agent: str | None, folders: tuple[Path, ...], dry_run: bool, yes: bool
) -> None:
    """Take yester out of your agents. What it has stored stays."""
    app.records = not dry_run
    known = install.recorded_folders(app.home)
    places = install.agent_folders(app.config, folders)
    places = places if folders else list(dict.fromkeys([*places, *known]))
    there = [folder for folder in places if install.is_installed(app.home, folder)]
    steps = [Change("-", install.plugin_link(folder)) for folder in there]
    last = not set(known) - set(places)
    if last and install.copy_folder(app.home).exists():
        steps.append(Change("-", install.copy_folder(app.home)))
    if not steps:
        click.echo("yester is not installed in " + (agent or "any agent"))
    else:
        show_steps(steps)
    if dry_run:
        return
    if steps and not yes:
        ask_first()
    for folder in places:
        install.uninstall_link(app.home, folder)
    if last and steps:
        _leave_nothing_running(app)
        install.remove_copy(app.home)
    if steps:
        click.echo(
            "Sessions that are running look for their hooks in vain and say so; start them anew.\n"
            f"What yester has stored stays in {app.home}; delete that folder if you want it gone."
        )


def _leave_nothing_running(app: App) -> None:
    if pid := end(app):
        click.echo(f"the worker has ended (pid {pid})")
