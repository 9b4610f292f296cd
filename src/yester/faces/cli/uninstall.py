"""`yester uninstall`: out of the agents of this user, as if it had never been there."""

from __future__ import annotations

from pathlib import Path

import click

from yester.agents.descriptors import CLAUDE_CODE
from yester.faces.cli.app import App, pass_app
from yester.faces.cli.install import agent_options, ask_first, show_steps
from yester.faces.cli.worker import end
from yester.install import claude_code, plugin, record
from yester.install.plugin import Change


@click.command("uninstall")
@agent_options
@pass_app
def command(
    app: App, agent: str | None, folders: tuple[Path, ...], dry_run: bool, yes: bool
) -> None:
    """Take yester out of your agents. What it has stored stays."""
    app.records = not dry_run
    known = [Path(one.folder) for one in record.read(app.home) if one.agent == CLAUDE_CODE.name]
    places = claude_code.folders(app.config, folders)
    places = places if folders else list(dict.fromkeys([*places, *known]))
    there = [folder for folder in places if claude_code.is_installed(app.home, folder)]
    steps = [Change("-", claude_code.link_in(folder)) for folder in there]
    last = not set(known) - set(places)
    if last and plugin.copy_of(app.home).exists():
        steps.append(Change("-", plugin.copy_of(app.home)))
    if not steps:
        click.echo("yester is not installed in " + (agent or "any agent"))
    else:
        show_steps(steps)
    if dry_run:
        return
    if steps and not yes:
        ask_first()
    for folder in places:
        claude_code.uninstall(app.home, folder)
    if last and steps:
        _leave_nothing_running(app)
        plugin.remove(app.home)
    if steps:
        click.echo(
            "Sessions that are running look for their hooks in vain and say so; start them anew.\n"
            f"What yester has stored stays in {app.home}; delete that folder if you want it gone."
        )


def _leave_nothing_running(app: App) -> None:
    if pid := end(app):
        click.echo(f"the worker has ended (pid {pid})")
