"""`yester install`: into the agents of this user."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from yester.agents.descriptors import CLAUDE_CODE
from yester.capture.homes import home_folder
from yester.errors import InstallError, UsageError
from yester.faces.cli.app import App, count, pass_app
from yester.faces.cli.doctor import show
from yester.faces.cli.worker import make_room
from yester.operate import install
from yester.operate.install import Change

F = TypeVar("F", bound=Callable[..., Any])


def agent_options(command: F) -> F:
    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask first."),
        click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing."),
        click.option("--config-dir", "folders", multiple=True, metavar="FOLDER",
                     type=click.Path(path_type=Path, file_okay=False),
                     help="The agent's folder, where it is none of the settings "
                     "(repeatable; default: claude_code_dirs)."),
        click.option("--agent", type=click.Choice([CLAUDE_CODE.name]),
                     help="Which agent; default: those that are here."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("install")
@agent_options
@pass_app
def command(
    app: App, agent: str | None, folders: tuple[Path, ...], dry_run: bool, yes: bool
) -> None:
    """Let your agents use yester: hooks, and whatever else the plugin brings.

    Shows what it is going to do, asks (at a terminal only: elsewhere it goes ahead), does it, and
    then tries it as the agent would: exit code 3 when something is in the way. Running it again
    brings an installation up to date. No settings file of the agent is changed.
    """
    app.records = not dry_run
    _same_home_as_hooks(app)
    places = _places(app, agent, folders)
    files = install.read_files(install.packaged_folder(), sys.executable)
    copied = install.plan_copy(app.home, files)
    steps = [step for folder in places for step in install.plan_link(app.home, folder)]
    show_steps([*_shortened(copied, app.home), *steps])
    if dry_run:
        return
    if (copied or steps) and not yes:
        ask_first()
    _ = app.store  # made now, and said here if it cannot be
    make_room(app)
    install.place_copy(app.home, files)
    for folder in places:
        install.install_link(app.home, folder)
    _try(app, places)


def _same_home_as_hooks(app: App) -> None:
    """Hooks are told nothing but what stands in their environment."""
    usual = home_folder(None, os.environ, Path.cwd())
    if usual.resolve() != app.home.resolve():
        raise UsageError(
            f"hooks would use {usual}, not {app.home}; set YESTER_HOME to it in the shell your "
            "agent is started from (and here), or leave out --home"
        )


def _places(app: App, agent: str | None, given: Sequence[Path]) -> list[Path]:
    """Where to install. Named by the user, it may be a folder that is to be made."""
    known = install.agent_folders(app.config, given)
    there = [folder for folder in known if folder.is_dir()]
    if given:
        return known
    if there or not agent:
        if not there:
            shown = ", ".join(map(str, known))
            raise InstallError(
                f"no agent was found (Claude Code: {shown}); start it once, or name it: "
                f"yester install --agent {CLAUDE_CODE.name}"
            )
        return there
    return known[:1]


def _shortened(copied: Sequence[Change], home: Path) -> list[Change]:
    """A folder that comes as a whole is one line."""
    if install.copy_folder(home).exists():
        return list(copied)
    return [Change("+", install.copy_folder(home))] if copied else []


def show_steps(steps: Sequence[Change]) -> None:
    for step in steps:
        click.echo(str(step))
    if not steps:
        click.echo("everything is in place")


def ask_first() -> None:
    """Only where somebody can answer."""
    if sys.stdin.isatty() and not click.confirm("Go ahead?", default=True):
        raise click.Abort


def _try(app: App, places: Sequence[Path]) -> None:
    from yester.operate.doctor import examine_way

    findings = list(examine_way(app.home, app.config, places))
    show(findings)
    wrong = [finding for finding in findings if finding.state == "problem"]
    if wrong:
        raise InstallError(
            f"yester is in place, but {count(len(wrong), 'thing')} above "
            f"{'is' if len(wrong) == 1 else 'are'} in the way; then run: yester install"
        )
    click.echo(
        "yester is installed: sessions that begin from now on are remembered.\n"
        "The sessions you already had: yester index"
    )
