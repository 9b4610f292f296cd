"""`yester index`: read the transcripts the agents have written."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from yester.agents.base import Options, find_transcripts, load_reader
from yester.agents.descriptors import AGENTS, CLAUDE_CODE, Agent
from yester.capture.rules import Rules, rules
from yester.errors import SourceError
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.faces.cli.imports import notes_json, notes_said
from yester.faces.cli.stopping import stoppable
from yester.ingest.projects import apply_names, describe_joins, join_all
from yester.ingest.transcripts import Ingest, Report, rebuild_if_stale
from yester.memories.places import MEMORY, list_memory_files
from yester.operate.notes import NotesReport, client_note_file, import_notes, retire_vanished
from yester.project import Projects


@click.command("index")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--since", metavar="WHEN", help="Only transcripts written to since then (1d, 1w, …).")
@click.option("--agent", "only", multiple=True, type=click.Choice(list(AGENTS)),
              help="Only this agent's transcripts (repeatable).")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@pass_app
def command(
    app: App, paths: tuple[Path, ...], since: str | None, only: tuple[str, ...], as_json: bool
) -> None:
    """Index transcripts: those the agents keep, or the files and folders named by PATHS.

    Only what is new is read, so run it as often as you like. Stopping it loses nothing: the next
    run goes on where it ended. The notes in Claude Code's MEMORY.md files are indexed beside them.
    """
    agents = [AGENTS[name] for name in only] or list(AGENTS.values())
    found = list(_named(paths, agents) if paths else _kept(app, agents))
    oldest = app.parse_time(since, "--since")
    if oldest is not None:
        found = [(agent, path) for agent, path in found if _changed(path) >= oldest]
    kept_out = rules(app.config)
    projects = Projects(app.config.projects, refuses=kept_out.excludes)
    if rebuilt := rebuild_if_stale(app.store):
        click.echo(
            f"words are taken apart in a new way; {count(rebuilt, 'item')} indexed anew", err=True
        )
    apply_names(app.store, projects)
    if joins := join_all(app.store, projects, app.now):
        click.echo(
            f"work trees that are gone were joined with their repositories: "
            f"{describe_joins(app.store, joins)} (undo: yester doctor --undo-join NAME)", err=True
        )  # fmt: skip
    options = Options(app.config.flag("thinking"), app.config.flag("subagents"))
    gc.set_threshold(100_000)  # nothing here makes cycles, and looking for them costs a tenth
    ingest = Ingest(app.store, projects, options, kept_out)
    began = time.monotonic()
    with _progress(found) as advance, stoppable():
        try:
            for agent, path in found:
                ingest.read_transcript(agent, path, advance)
        finally:
            ingest.flush()
    report, notes = ingest.report, _notes(app, paths, only, projects, kept_out, oldest)
    if as_json:
        print_json({**_as_json(report), "notes": notes_json(notes)})
    else:
        _say(report, len(found), time.monotonic() - began, notes)
    if found and report.failed == len(found):
        raise SourceError(f"none of the {len(found)} transcripts could be read; see above")
    if not (found or notes.files or notes.unchanged):
        click.get_current_context().exit(1)


def _notes(
    app: App,
    paths: tuple[Path, ...],
    only: tuple[str, ...],
    projects: Projects,
    kept_out: Rules,
    oldest: int | None,
) -> NotesReport:
    """The curated notes: of all of Claude Code's projects, or of those below the folders named."""
    if only and CLAUDE_CODE.name not in only:
        return NotesReport()
    configs = [Path(text).expanduser() for text in app.config.texts("claude_code_dirs")]
    found = list(_notes_below(paths) if paths else list_memory_files(configs))
    fresh = (file for file in found if oldest is None or _changed(file) >= oldest)
    report = import_notes(
        app.store, (client_note_file(file, app.store) for file in fresh), projects, kept_out
    )
    if not paths:
        report.gone += retire_vanished(app.store, configs)
    return report


def _notes_below(paths: tuple[Path, ...]) -> Iterator[Path]:
    """A MEMORY.md counts where transcripts lie beside its folder: then it is the client's."""
    for path in paths:
        for file in sorted(path.resolve().rglob(f"memory/{MEMORY}")) if path.is_dir() else ():
            if any(file.parent.parent.glob("*.jsonl")):
                yield file


def _kept(app: App, agents: list[Agent]) -> Iterator[tuple[Agent, Path]]:
    for agent in agents:
        for path in find_transcripts(agent, app.config):
            yield agent, path


def _named(paths: tuple[Path, ...], agents: list[Agent]) -> Iterator[tuple[Agent, Path]]:
    for path in paths:
        if not path.exists():
            raise SourceError(
                f"{path}: no such file or folder; name a transcript or a folder of them"
            )
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            agent = next((one for one in agents if load_reader(one.name).is_transcript(file)), None)
            if agent is not None:
                yield agent, file.resolve()
            elif not path.is_dir():
                raise SourceError(
                    f"{file}: not a transcript of {', '.join(a.label for a in agents)}"
                )


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime * 1000
    except OSError:
        return 0.0


@contextmanager
def _progress(found: list[tuple[Agent, Path]]) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty() or not found:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("indexing"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    total = sum(path.stat().st_size for _, path in found if path.exists())
    with Progress(*columns, console=Console(file=sys.__stderr__), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "files": report.files,
        "unchanged": report.unchanged,
        "failed": report.failed,
        "bytes": report.bytes,
        "messages": report.messages,
        "added": report.put.added,
        "changed": report.put.changed,
        "skipped": dict(report.skipped.most_common()),
        "problems": report.problems,
    }


def _say(report: Report, found: int, seconds: float, notes: NotesReport) -> None:
    problems = report.problems + notes.problems
    for problem in problems[:20]:
        click.echo(f"yester: {problem}", err=True)
    if len(problems) > 20:
        click.echo(f"yester: … and {len(problems) - 20} more", err=True)
    if said := notes_said(notes):
        click.echo(said)
    if not found:
        if not (notes.files or notes.unchanged):
            click.echo("No transcripts found. Name a folder: yester index PATH")
        return
    if not report.files and not report.failed:
        click.echo(f"nothing new in {count(report.unchanged, 'transcript')}")
        return
    parts = [
        f"{count(report.put.added, 'new item')} and {report.put.changed:,} changed from "
        f"{count(report.files, 'transcript')} ({report.bytes / 1e6:,.1f} MB) in {seconds:.1f} s",
        f"{count(sum(report.skipped.values()), 'record')} left out",
    ]
    if unreadable := report.skipped["unreadable"]:
        parts.append(f"{unreadable:,} of them unreadable")
    if report.unchanged:
        parts.append(f"{count(report.unchanged, 'transcript')} unchanged")
    if report.failed:
        parts.append(f"{count(report.failed, 'transcript')} could not be read")
    click.echo("; ".join(parts))
