"""The commands that look after yester itself: install, uninstall, doctor, backup, restore."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from yester.agents.descriptors import CLAUDE_CODE
from yester.capture.homes import home_folder
from yester.errors import InstallError, NotFound, UsageError
from yester.faces.cli.app import App, Output, add_options, command, pass_app
from yester.faces.cli.options import DRY_RUN, flag_option
from yester.faces.cli.screen import count_noun
from yester.faces.cli.worker import end_worker, replace_older_worker
from yester.operate import backups, install
from yester.operate.doctor import examine, examine_way
from yester.operate.doctor.finding import Finding
from yester.operate.install import Change
from yester.worker.process import take_seat

_MARKS = {"ok": ("✓", "green"), "note": ("·", "blue"), "problem": ("✗", "red")}
_AGENT_OPTIONS = add_options(
    click.option("--agent", type=click.Choice([CLAUDE_CODE.name]),
                 help="Which agent; default: those that are here."),
    click.option("--config-dir", "folders", multiple=True, metavar="FOLDER",
                 type=click.Path(path_type=Path, file_okay=False),
                 help="The agent's folder, where it is none of the settings "
                 "(repeatable; default: claude_code_dirs)."),
    DRY_RUN, click.option("--yes", "-y", is_flag=True, help="Do not ask first."),
)  # fmt: skip


@click.command("install")
@_AGENT_OPTIONS
@pass_app
def install_command(
    app: App, agent: str | None, folders: tuple[Path, ...], dry_run: bool, yes: bool
) -> None:
    """Let your agents use yester: hooks, and whatever else the plugin brings.

    Shows what it is going to do, asks (at a terminal only: elsewhere it goes ahead), does it, and
    then tries it as the agent would: exit code 3 when something is in the way. Running it again
    brings an installation up to date. No settings file of the agent is changed.
    """
    app.records = not dry_run
    _check_home(app)
    places = _choose_folders(app, agent, folders)
    files = install.read_files(install.packaged_folder(), sys.executable)
    copied = install.plan_copy(app.home, files)
    steps = [step for folder in places for step in install.plan_link(app.home, folder)]
    _print_steps([*_shorten_changes(copied, app.home), *steps])
    if dry_run:
        return
    if (copied or steps) and not yes:
        _ask_first()
    _ = app.store  # made now, and said here if it cannot be
    replace_older_worker(app)
    install.place_copy(app.home, files)
    for folder in places:
        install.install_link(app.home, folder)
    _try_installation(app, places)


def _check_home(app: App) -> None:
    """Hooks are told nothing but what stands in their environment."""
    usual = home_folder(None, os.environ, Path.cwd())
    if usual.resolve() != app.home.resolve():
        raise UsageError(
            f"hooks would use {usual}, not {app.home}; set YESTER_HOME to it in the shell your "
            "agent is started from (and here), or leave out --home"
        )


def _choose_folders(app: App, agent: str | None, given: Sequence[Path]) -> list[Path]:
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


def _shorten_changes(copied: Sequence[Change], home: Path) -> list[Change]:
    """A folder that comes as a whole is one line."""
    if install.copy_folder(home).exists():
        return list(copied)
    return [Change("+", install.copy_folder(home))] if copied else []


def _print_steps(steps: Sequence[Change]) -> None:
    for step in steps:
        click.echo(str(step))
    if not steps:
        click.echo("everything is in place")


def _ask_first() -> None:
    """Only where somebody can answer."""
    if sys.stdin.isatty() and not click.confirm("Go ahead?", default=True):
        raise click.Abort


def _try_installation(app: App, places: Sequence[Path]) -> None:
    findings = list(examine_way(app.home, app.config, places))
    for finding in findings:
        _print_finding(finding)
    wrong = [finding for finding in findings if finding.state == "problem"]
    if wrong:
        raise InstallError(
            f"yester is in place, but {count_noun(len(wrong), 'thing')} above "
            f"{'is' if len(wrong) == 1 else 'are'} in the way; then run: yester install"
        )
    click.echo(
        "yester is installed: sessions that begin from now on are remembered.\n"
        "The sessions you already had: yester index"
    )


@click.command("uninstall")
@_AGENT_OPTIONS
@pass_app
def uninstall_command(
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
        _print_steps(steps)
    if dry_run:
        return
    if steps and not yes:
        _ask_first()
    for folder in places:
        install.uninstall_link(app.home, folder)
    if last and steps:
        if pid := end_worker(app):
            click.echo(f"the worker has ended (pid {pid})")
        install.remove_copy(app.home)
    if steps:
        click.echo(
            "Sessions that are running look for their hooks in vain and say so; start them anew.\n"
            f"What yester has stored stays in {app.home}; delete that folder if you want it gone."
        )


@command(
    "doctor", flag_option("--fix", "Put right what can be put right safely."),
    click.option("--undo-join", "joined", metavar="NAME",
                 help="Make a work tree that was joined with its repository a project of its own."),
)  # fmt: skip
def doctor_command(app: App, fix: bool, joined: str | None) -> Output:
    """Check the installation and the store; exit code 3 when something is wrong.

    Where yester is installed in an agent, its hooks are run with made-up events, of which nothing
    is kept, and the agent itself is asked whether it loads them.
    """
    if joined is not None:
        return _undo_join(app, joined)
    findings: list[Finding] = []
    print_now = not click.get_current_context().params["as_json"]
    for finding in examine(app.home, app.now, fix):
        findings.append(finding)
        if print_now:  # some take seconds, and nothing found is lost
            _print_finding(finding)
    rows = [{"check": f.check, "state": f.state, "text": f.text, "fix": f.fix} for f in findings]
    wrong = any(finding.state == "problem" for finding in findings)
    return Output({"findings": rows}, code=3 * wrong)


def _undo_join(app: App, joined: str) -> Output:
    from yester.operations.projects import undo_join

    project, moved = undo_join(app.home, app.store, joined, app.now)
    return Output(
        {"project": project.name, "key": project.key, "items": moved},
        [f"{project.name} is a project of its own again, with {count_noun(moved, 'item')}; "
         "[projects] in config.toml keeps it so"],
    )  # fmt: skip


def _print_finding(finding: Finding) -> None:
    mark, colour = _MARKS[finding.state]
    click.echo(f"{click.style(mark, fg=colour)} {finding.check}: {finding.text}")
    if finding.fix:
        click.echo(f"    {finding.fix}")


@click.command("backup")
@flag_option("--list", "Show the backups there are.", "listing")
@pass_app
def backup_command(app: App, listing: bool) -> None:
    """Copy the store to `backups/`; the oldest beyond the setting `backups_kept` are let go."""
    if not listing:
        click.echo(
            backups.make_backup(app.store, app.home, app.config.number("backups_kept"), app.now)
        )
        return
    found = backups.list_backups(app.home)
    for path in found:
        click.echo(f"{path.name}  {path.stat().st_size / 1e6:,.1f} MB")
    if not found:
        raise NotFound("no backups; make one: yester backup")


@click.command("restore")
@click.argument("backup")
@pass_app
def restore_command(app: App, backup: str) -> None:
    """Put BACKUP (a file, a name from `yester backup --list`, or "latest") in the store's place.

    The backup is checked first, and the present store is moved aside, not deleted.
    """
    with backups.checked_copy(app.home, backup, app.now) as (path, copy):
        if end_worker(app):  # what it has in hand belongs to the former store
            click.echo("the worker has ended; the next session starts it again", err=True)
        free = take_seat(app.home, 1.0)
        try:
            aside = backups.put_in_place(app.home, copy, app.now)
        finally:
            if free is not None:
                free.leave()
    click.echo(f"restored {path}")
    if aside:
        click.echo(f"the former store is now {aside}")
