"""`yester import`: what other programs and people have written down."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yester.capture.rules import rules
from yester.errors import NotFound, SourceError
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.ingest.transcripts import rebuild_if_stale
from yester.memories.places import MEMORY, list_instruction_files, memory_paths
from yester.operate.notes import (
    NoteFile,
    NotesReport,
    client_note_file,
    import_notes,
    project_note_file,
)
from yester.project import Projects

if TYPE_CHECKING:
    from yester.memories.sync import ImportReport


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
    report = import_notes(app.store, files, projects, kept_out, again=True)
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
        kept = [place for place in memory_paths(configs, whole) if place.is_file()]
        own = [project_note_file(file) for file in list_instruction_files(whole)]
        return own + [NoteFile(place, lambda: str(whole)) for place in kept[:1]]
    if not whole.exists():
        raise SourceError(f"{path}: no such file or folder")
    if whole.suffix != ".md":
        raise SourceError(f"{path}: is not a Markdown file (.md)")
    kept_by_client = whole.name == MEMORY and whole.parent.parent.parent.name == "projects"
    return [client_note_file(whole, app.store) if kept_by_client else project_note_file(whole)]


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


@command.command("claude-memory")
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--project", "-p", metavar="NAME", help="Into this project, not the folder's own.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@pass_app
def claude_memory(app: App, folder: Path | None, project: str | None, as_json: bool) -> None:
    """Import the memories of a `.claude/memory` folder; nothing is written there.

    DIR is the folder or the project that has it; without DIR, the current one. Run it again after
    a change: what has changed is updated, and what you have retired stays retired. To keep both
    sides in step use `yester memory sync`.

    Exit code 1 when there is no memory in it, 3 when none could be read.
    """
    from yester.faces.cli.memory.said import here
    from yester.memories.folder import locate_folder
    from yester.memories.memory import Author
    from yester.memories.sync import import_folder

    named = folder or Path()
    if not named.is_dir():
        raise SourceError(f"{named}: no such folder; name a project or its .claude/memory")
    root, owner = locate_folder(named)
    if not root.is_dir():
        raise NotFound(f"{named}: has no .claude/memory; name the folder")
    whose = here(app, project, owner if owner != root else None, instead="")
    by = Author("import", app.now, "import", f"from {root}")
    report = import_folder(app.store, root, whose, by)
    if as_json:
        print_json(asdict(report))
    else:
        for problem in report.problems:
            click.echo(f"yester: {problem}", err=True)
        click.echo(_tree_said(report) or f"nothing new in {count(report.files, 'memory file')}")
    if not report.files:
        if report.problems:
            raise SourceError("no memory could be read; see above")
        click.get_current_context().exit(1)


def _tree_said(report: ImportReport) -> str:
    parts = [
        (report.added, f"{report.added:,} new"),
        (report.changed, f"{report.changed:,} changed"),
        (report.stayed, f"{report.stayed:,} left as they are (retired or let go here)"),
    ]
    return ", ".join(text for number, text in parts if number)
