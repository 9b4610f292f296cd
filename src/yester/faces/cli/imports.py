"""The commands that bring the past in: import."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.capture.rules import load_rules
from yester.clock import format_day
from yester.errors import NotFound, NotYours, SourceError
from yester.faces.cli.app import App, Output, command, long_run, print_warning, render_json
from yester.faces.cli.screen import count_noun, join_counts, table_lines
from yester.ingest.transcripts import Report, rebuild_if_stale
from yester.memories import memory_md
from yester.memories.files import locate_folder
from yester.memories.memory import Author
from yester.memories.memory_md import MEMORY
from yester.memories.sync import ImportReport, import_folder
from yester.operate import notes
from yester.operate.export import ExportReader, count_records
from yester.operate.importers import base as importers
from yester.operate.importers.base import Found, Importer, Places, Preview
from yester.store.contract import Store

_MOST_PROBLEMS = 20  # are printed


@click.group("import", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON what there is; ask nothing.")
@click.pass_context
def import_command(context: click.Context, as_json: bool) -> None:
    """Import what other programs and people have written down.

    Without a command: looks where other memories keep theirs, shows what there is, and asks for
    each whether to import it. Importing the same again changes nothing; what has changed since is
    brought up to date. Nothing is ever written where it comes from.
    """
    if context.invoked_subcommand is None:
        _offer_imports(context.find_object(App) or App(None), as_json)


def _offer_imports(app: App, as_json: bool) -> None:
    found = importers.find_memories(Path.home(), importers.load_importers().values())
    previews = [_preview(app, one) for one in found]
    rows = [_describe_found(one, preview) for one, preview in zip(found, previews, strict=True)]
    if as_json:
        click.echo(render_json(rows))
        return
    if not found:
        labels = ", ".join(one.label for one in importers.load_importers().values())
        raise NotFound(
            f"no memory of another program is in its usual place ({labels}); "
            "name it: yester import PROGRAM PATH"
        )
    click.echo("\n".join(table_lines(rows)))
    if not sys.stdin.isatty():
        names = dict.fromkeys(one.importer.name for one in found)
        click.echo(f"to import: {', '.join(f'yester import {name}' for name in names)}", err=True)
        return
    for one, preview in zip(found, previews, strict=True):
        new = preview.records - preview.known
        if new and click.confirm(f"Import {new:,} from {one.where}?", default=False):
            click.echo(_summarise_import(_run_import(app, one.importer, one.files, None)))


def _describe_found(found: Found, preview: Preview) -> dict[str, Any]:
    return {
        "what": found.importer.label, "where": str(found.where), "records": preview.records,
        "oldest": format_day(preview.oldest), "newest": format_day(preview.newest),
        "already_in": preview.known, "unreadable": preview.skipped["unreadable"],
    }  # fmt: skip


def _preview(app: App, found: Found) -> Preview:
    places = _make_places(app, app.reading, found.importer, None)
    return importers.preview_files(found.importer, found.files, places)


def _make_places(app: App, store: Store, importer: Importer, project: str | None) -> Places:
    chosen = app.memory.find_project(project) if project else None
    folders = importers.list_worked_folders(Path.home())
    return Places(importer.name, store, app.projects, load_rules(app.config), chosen, folders)


def _run_import(app: App, importer: Importer, files: Iterable[Path], project: str | None) -> Report:
    places = _make_places(app, app.store, importer, project)
    ingest = importers.open_import(app.store, importer, places)
    files = list(files)
    with long_run("importing", sum(file.stat().st_size for file in files)) as advance:
        for done in importers.import_files(ingest, importer, files):
            advance(done)
    for problem in ingest.report.problems[:_MOST_PROBLEMS]:
        print_warning(problem)
    return ingest.report


def _summarise_import(report: Report) -> str:
    put, unreadable = report.put, report.skipped["unreadable"]
    left = sum(report.skipped.values()) - unreadable
    said = join_counts(
        (put.added, f"{put.added:,} new"),
        (put.changed, f"{put.changed:,} changed"),
        (put.unchanged, f"{put.unchanged:,} known already"),
        (left, f"{left:,} left out"),
        (unreadable, f"{unreadable:,} unreadable"),
    )
    return said or f"nothing new in {count_noun(report.files + report.unchanged, 'file')}"


def _import_command(importer: Importer) -> None:
    """`yester import NAME`, for a row of the table."""

    def import_sources(
        app: App, sources: tuple[Path, ...], into: str | None, dry_run: bool
    ) -> Output:
        files = list(importers.name_files(importer, sources))
        if not sources:
            found = importers.find_memories(Path.home(), [importer])
            files = [file for one in found for file in one.files]
        if not files:
            looked = ", ".join(map(str, sources or importer.places))
            raise NotFound(f"{looked}: nothing of {importer.label} there; name a file or folder")
        if dry_run:
            preview = _preview(app, Found(importer, files[0], tuple(files)))
            row = _describe_found(Found(importer, files[0], ()), preview)
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in preview.kinds.items())
            left = [f"left out: {number:,} {why}" for why, number in preview.skipped.items()]
            lines = [*table_lines([row]), f"  {kinds}", *(f"  {line}" for line in left)]
            value = msgspec.to_builtins(preview)
            return Output(value, lines, warnings=preview.problems, hint="nothing was written")
        report = _run_import(app, importer, files, into)
        value = msgspec.to_builtins(report) | msgspec.to_builtins(report.put)
        failed = report.failed == len(files)
        error = SourceError("nothing could be read; see above") if failed else None
        return Output(value, [_summarise_import(report)], error=error)

    places = ", ".join(importer.places)
    import_sources.__doc__ = f"""Import the memory of {importer.label}.

    PATHS are its files, or folders of them; without any it is looked for in {places}. Records keep
    their times, and belong to the project of their session, folder or name. They are found like
    everything else; none becomes a rule by itself.
    """
    command(f"import {importer.name}", group=import_command)(import_sources)


for _importer in importers.load_importers().values():
    _import_command(_importer)


@command("import yester", group=import_command)
def yester_command(app: App, file: Path, mine: bool, dry_run: bool) -> Output:
    """Import what `yester export jsonl` wrote, here or on another machine.

    What is known already stays as it is; two exports of one store are one. Records get new ids. An
    export that is not --mine is found like everything else, but nothing of it is your word.

    Exit code 3 when FILE was cut off, or some of it could not be read.
    """
    if not file.is_file():
        raise SourceError(f"{file}: no such file; name one that `yester export jsonl` wrote")
    if mine and app.agent:
        raise NotYours(f"only you can say that {file} is yours: do so in your own terminal")
    if dry_run:
        kinds = count_records(file)
        said = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
        return Output({"records": kinds}, [said], hint="nothing was written")
    reader = ExportReader(app.store, file, mine)
    with long_run("importing", file.stat().st_size) as advance:
        for done in reader.read_slices():
            advance(done)
    report = reader.report
    new = ", ".join(f"{number:,} {kind}" for kind, number in report.added.items() if number)
    wrong = report.problems[:_MOST_PROBLEMS]
    return Output(
        report, [f"new: {new}" if new else "nothing new"], warnings=wrong, code=3 * bool(wrong)
    )


@command("import notes", group=import_command)
def notes_command(app: App, paths: tuple[Path, ...]) -> Output:
    """Import the notes in Markdown files: MEMORY.md, CLAUDE.md and the like.

    PATHS are files, or projects' folders whose CLAUDE.md files and MEMORY.md are meant; without
    any it is the current folder. Each list item and each paragraph is a note. Run it again after
    an edit: an edited note is updated, and one that was taken out is not found any more.
    """
    files = [file for path in paths or (Path(),) for file in _find_note_files(app, path)]
    if not files:
        where = ", ".join(map(str, paths)) or "this folder"
        raise NotFound(f"no CLAUDE.md and no {MEMORY} for {where}; name a file")
    rebuild_if_stale(app.store)
    report = notes.import_notes(app.store, files, app.projects, load_rules(app.config), again=True)
    from yester.faces.cli.notes import summarise_notes  # with much that nothing else here needs

    said = summarise_notes(report) or f"nothing new in {count_noun(report.files, 'file')}"
    return _show_report(report, said, "file")


def _show_report(report: ImportReport, said: str, what: str) -> Output:
    failed = report.problems and not report.files
    error = SourceError(f"no {what} could be read; see above") if failed else None
    return Output(report, [said], warnings=report.problems, error=error)


def _find_note_files(app: App, path: Path) -> list[tuple[Path, str]]:
    """Files, and the folder that they are about where that is known."""
    whole = path.absolute()
    if whole.is_dir():
        own = [(file, "") for file in memory_md.list_instruction_files(whole)]
        kept = app.find_memory_md(whole)
        return own + ([(kept, str(whole))] if kept else [])
    if not whole.exists():
        raise SourceError(f"{path}: no such file or folder")
    if whole.suffix != ".md":
        raise SourceError(f"{path}: is not a Markdown file (.md)")
    return [(whole, "")]


@command("import claude-memory", group=import_command)
def claude_memory_command(app: App, folder: Path | None, project: str | None) -> Output:
    """Import the memories of a `.claude/memory` folder; nothing is written there.

    DIR is the folder or the project that has it; without DIR, the current one. Run it again after
    a change: what has changed is updated, and what you have retired stays retired. To keep both
    sides in step use `yester memory sync`.

    Exit code 1 when there is no memory in it, 3 when none could be read.
    """
    place = folder or Path()
    if not place.is_dir():
        raise SourceError(f"{place}: no such folder; name a project or its .claude/memory")
    root, owner = locate_folder(place)
    if not root.is_dir():
        raise NotFound(f"{place}: has no .claude/memory; name the folder")
    whose = app.find_project(project, owner if owner != root else None, instead="")
    by = Author("import", app.now, "import", f"from {root}")
    report = import_folder(app.store, root, whose, by)
    said = join_counts(
        (report.added, f"{report.added:,} new"),
        (report.changed, f"{report.changed:,} changed"),
        (report.stayed, f"{report.stayed:,} left as they are (retired or let go here)"),
    )
    said = said or f"nothing new in {count_noun(report.files, 'memory file')}"
    return _show_report(report, said, "memory")._replace(code=int(not report.files))
