"""The command that keeps one owner's machines in step: roam."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from yester.clock import format_minute
from yester.errors import UsageError
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.screen import count_noun, describe_items
from yester.files import read_bytes
from yester.operations import roam
from yester.operations.request import NoRequest
from yester.sharing.keys import Key
from yester.sharing.roam import Report, load_roaming

_HOW = "Begin with: yester roam --to FOLDER | ssh://HOST/FOLDER | git+ssh://HOST/REPOSITORY"


@command("roam")
def roam_command(
    app: App,
    to: str | None,
    join: str | None,
    code_file: Path | None,
    new_key: bool,
    stop: bool,
    dry_run: bool,
    quietly: bool,
) -> Output:
    """Keep your own machines in step, without a server; says which there are and what waits.

    Each machine writes an encrypted log into a place that all of them reach: a folder (synced by
    whatever you use), a folder behind ssh, a branch of a git repository. The first one begins it
    with --to and prints a recovery code; the others --join with that code. From then on the worker
    keeps them in step, and `yester roam` does so at once. Private projects never leave.
    """
    if sum(map(bool, (to, join, new_key, stop, dry_run and not to))) > 1:
        raise UsageError("say one of --to, --join, --new-key, --stop, --dry-run (or --to with it)")
    memory = app.memory
    if dry_run:
        return _preview(app)
    if quietly:
        if load_roaming(app.home) is not None:
            roam.run_roam(memory, lambda *_: None)
        return Output(())
    if stop:
        said = roam.stop_roam(memory)
        return Output({"remains": said}, ["Stopped; everything here stays.", said])
    if to:
        key, report = roam.begin_roam(memory, to, _tell_progress)
        return _answer(app, report, key)
    if join:
        report = roam.join_roam(memory, join, _read_code(code_file), _tell_progress)
        return _answer(app, report)
    if new_key:
        key, report = roam.renew_key(memory, _tell_progress)
        return _answer(app, report, key)
    if load_roaming(app.home) is None or memory.origin != "user":
        state = roam.show_roam(memory, NoRequest())
        return Output(state, _state_lines(state), hint="" if state.on else _HOW)
    return _answer(app, roam.run_roam(memory, _tell_progress))


def _read_code(file: Path | None) -> str:
    """Never an argument: whoever lists processes would read it."""
    if file is not None:
        try:
            return read_bytes(file).decode("ascii", "replace")
        except OSError as error:
            raise UsageError(f"{file} cannot be read ({error.strerror})") from None
    if sys.stdin.isatty():
        return str(click.prompt("Recovery code", hide_input=True))
    return sys.stdin.readline()


def _tell_progress(what: str, done: int, of: int) -> None:
    if sys.stderr.isatty() and of > 1:
        click.echo(f"{what} {done}/{of}", err=True)


def _preview(app: App) -> Output:
    found = roam.preview_roam(app.memory)
    lines = [
        f"Would go to {found.to or 'the place that you name'}: {count_noun(found.items, 'item')}"
    ]
    lines += [f"  {name}: {describe_items(kinds)}" for name, kinds in found.projects.items()]
    if found.private:
        lines.append(f"Stays here, of private projects: {count_noun(found.private, 'item')}")
    return Output(found, lines, hint="nothing was sent")


def _answer(app: App, report: Report, key: Key | None = None) -> Output:
    state = roam.show_roam(app.memory, NoRequest())
    value = {"report": report, "state": state} | ({"code": key.code} if key else {})
    code = int(bool(report.problems))
    return Output(
        value, [*_key_lines(key), *_report_lines(report), *_state_lines(state)], code=code
    )


def _key_lines(key: Key | None) -> Iterator[str]:
    if key is not None:
        yield "Recovery code; every other machine joins with it, and without it nobody reads the"
        yield f"log. Keep it where this machine is not:\n\n  {key.code}\n"


def _report_lines(report: Report) -> Iterator[str]:
    read = {name: number for name, number in report.outcome.items() if number}
    told = ", ".join(f"{number:,} {name}" for name, number in read.items())
    if report.read:
        yield f"read {count_noun(report.read, 'segment')}: {told or 'nothing new'}"
    if report.written:
        size = f"{report.bytes_written / 1e6:,.2f} MB"
        yield f"written {count_noun(report.written, 'segment')}, {size}"
    if report.beside:
        names = ", ".join(report.beside)
        yield f"written on two machines at the same time, and both kept: {names}"


def _state_lines(state: roam.RoamState) -> Iterator[str]:
    if state.on:
        last = format_minute(state.last) if state.last else "never"
        yield f"{state.to}, last in step: {last}"
    for one in state.machines:
        own = " (this one)" if one.own else f", {count_noun(one.items, 'item')} from there"
        seen = f", wrote {format_minute(one.seen)}" if one.seen else ""
        yield f"  {one.name or '?'} [{one.machine}]{own}{seen}"
    if state.on:
        private = f" (and {state.private:,} private, which stay)" if state.private else ""
        yield f"  waiting: {count_noun(state.waiting - state.private, 'item')}{private}"
    yield from (f"! {one}" for one in state.problems)
