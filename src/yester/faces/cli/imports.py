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
from yester.ingest.transcripts import Report
from yester.operate.importers import base as importers
from yester.operate.importers.base import Found, Importer, Places, Preview
from yester.store.contract import Store

_MOST_PROBLEMS = 20  # are printed


def offer_imports(app: App, as_json: bool) -> None:
    found = importers.find_memories(Path.home(), _IMPORTERS.values())
    previews = [_preview(app, one) for one in found]
    rows = [_describe_found(one, preview) for one, preview in zip(found, previews, strict=True)]
    if as_json:
        click.echo(render_json(rows))
        return
    if not found:
        labels = ", ".join(one.label for one in _IMPORTERS.values())
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


def _import_command(importer: Importer) -> click.Command:
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
    import_sources.__doc__ = f"""Import from {importer.label}.

    PATHS are its files, or folders of them; without any it is looked for in {places}. Records keep
    their times, and belong to the project of their session, folder or name. They are found like
    everything else; none becomes a rule by itself.
    """
    return command(f"import {importer.name}")(import_sources)


_IMPORTERS = importers.load_importers()
claude_mem_command = _import_command(_IMPORTERS["claude-mem"])
rageltd_command = _import_command(_IMPORTERS["rageltd"])
recall_command = _import_command(_IMPORTERS["recall"])
recall_archive_command = _import_command(_IMPORTERS["recall-archive"])
basic_memory_command = _import_command(_IMPORTERS["basic-memory"])
mcp_memory_command = _import_command(_IMPORTERS["mcp-memory"])


@command("import yester")
def yester_command(app: App, file: Path, mine: bool, dry_run: bool) -> Output:
    """Import what `yester export jsonl` wrote, here or on another machine.

    What is known already stays as it is; two exports of one store are one. Records get new ids. An
    export that is not --mine is found like everything else, but nothing of it is your word.

    Exit code 3 when FILE was cut off, or some of it could not be read.
    """
    if not file.is_file():
        raise SourceError(f"{file}: no such file; name one that `yester export jsonl` wrote")
    if mine and not app.speaks_for_user:
        raise NotYours(f"only you can say that {file} is yours: do so in your own terminal")
    from yester.operate.export import ExportReader, count_records  # the others do without

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
