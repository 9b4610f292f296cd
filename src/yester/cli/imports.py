"""`yester import`: what other programs and people have written down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yester.capture.rules import rules
from yester.cli.app import App, count, pass_app, print_json
from yester.errors import SourceError
from yester.importers.notes import NoteFile, NotesReport, memory_file, project_file, take
from yester.ingest import rebuild_if_stale
from yester.memories.places import MEMORY, instruction_files, memory_places
from yester.project import Projects


@click.group("import")
def command() -> None:
    """Import what other programs and people have written down.

    Importing the same again changes nothing; what has changed since is brought up to date.
    """


@command.command("notes")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@pass_app
def notes(app: App, paths: tuple[Path, ...], as_json: bool) -> None:
    """Import the notes in Markdown files: MEMORY.md, CLAUDE.md and the like.

    PATHS are files, or projects' folders whose CLAUDE.md files and MEMORY.md are meant; without
    any it is the current folder. Each list item and each paragraph is a note. Run it again after
    an edit: an edited note is updated, and one that was taken out is not found any more.
    """
    files = [file for path in paths or (Path(),) for file in _files(app, path)]
    if not files:
        where = ", ".join(map(str, paths)) or "this folder"
        click.echo(f"No CLAUDE.md and no {MEMORY} for {where}. Name a file.", err=True)
        click.get_current_context().exit(1)
    rebuild_if_stale(app.store)
    kept_out = rules(app.config)
    projects = Projects(app.config.projects, refuses=kept_out.excludes)
    report = take(app.store, files, projects, kept_out, again=True)
    if as_json:
        print_json(notes_json(report))
    else:
        for problem in report.problems:
            click.echo(f"yester: {problem}", err=True)
        click.echo(notes_said(report) or f"nothing new in {count(report.files, 'file')}")
    if report.problems and not report.files:
        raise SourceError("no file could be read; see above")


def _files(app: App, path: Path) -> list[NoteFile]:
    whole = path.absolute()
    if whole.is_dir():
        configs = [Path(text).expanduser() for text in app.config.texts("claude_code_dirs")]
        kept = [place for place in memory_places(configs, whole) if place.is_file()]
        own = [project_file(file) for file in instruction_files(whole)]
        return own + [NoteFile(place, lambda: str(whole)) for place in kept[:1]]
    if not whole.exists():
        raise SourceError(f"{path}: no such file or folder")
    if whole.suffix != ".md":
        raise SourceError(f"{path}: is not a Markdown file (.md)")
    kept_by_client = whole.name == MEMORY and whole.parent.parent.parent.name == "projects"
    return [memory_file(whole, app.store) if kept_by_client else project_file(whole)]


def notes_json(report: NotesReport) -> dict[str, Any]:
    return {
        "files": report.files,
        "unchanged": report.unchanged,
        "added": report.added,
        "changed": report.changed,
        "gone": report.gone,
        "problems": report.problems,
    }


def notes_said(report: NotesReport) -> str:
    """What a run did, in a line; "" where nothing."""
    parts = [
        (report.added, count(report.added, "new note")),
        (report.changed, f"{report.changed:,} changed"),
        (report.gone, f"{report.gone:,} gone"),
    ]
    told = ", ".join(text for number, text in parts if number)
    return f"{told} in {count(report.files, 'file')}" if told and report.files else told
