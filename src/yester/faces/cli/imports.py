"""The commands that bring the past in: import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.capture.rules import load_rules
from yester.clock import format_day
from yester.errors import NotFound, NotYours, SourceError
from yester.faces.cli.app import (
    App,
    Output,
    command,
    long_run,
    print_note,
    print_warning,
    render_json,
)
from yester.faces.cli.screen import count_noun, join_counts, table_lines
from yester.ingest.transcripts import Report
from yester.operate.importers import base as importers
from yester.operate.importers.base import Found, Places, Preview
from yester.store.contract import Store

_MOST_PROBLEMS = 20  # are printed


def offer_imports(app: App, as_json: bool) -> None:
    found = importers.find_memories(Path.home(), _IMPORTERS.values())
    previews = [_preview(app, one) for one in found]
    rows = [_describe_found(one, preview) for one, preview in zip(found, previews, strict=True)]
    if as_json:
        click.echo(render_json({"found": rows}))
        return
    if not found:
        labels = ", ".join(one.label for one in _IMPORTERS.values())
        raise NotFound(
            f"no memory of another program is in its usual place ({labels}); "
            "name it: yester import PROGRAM PATH"
        )
    click.echo("\n".join(table_lines(rows)))
    if not sys.stdin.isatty():
        names = dict.fromkeys(f"yester import {one.importer.name}" for one in found)
        print_note(f"to import: {', '.join(names)}")
        return
    for one, preview in zip(found, previews, strict=True):
        new = preview.records - preview.known
        if new and click.confirm(f"Import {new:,} from {one.where}?", default=False):
            click.echo(_summarise_import(_run_import(app, one)))


def _describe_found(found: Found, preview: Preview) -> dict[str, Any]:
    return {
        "what": found.importer.label, "where": str(found.where), "records": preview.records,
        "oldest": format_day(preview.oldest), "newest": format_day(preview.newest),
        "already_in": preview.known, "unreadable": preview.skipped["unreadable"],
    }  # fmt: skip


def _preview(app: App, found: Found, project: str | None = None) -> Preview:
    places = _make_places(app, app.reading, found, project)
    return importers.preview_files(found.importer, found.files, places)


def _make_places(app: App, store: Store, found: Found, project: str | None) -> Places:
    chosen = app.memory.find_project(project) if project else None
    folders = importers.list_worked_folders(Path.home())
    rules = load_rules(app.config)
    return Places(found.importer.name, store, app.projects, rules, chosen, folders)


def _run_import(app: App, found: Found, project: str | None = None) -> Report:
    places = _make_places(app, app.store, found, project)
    ingest = importers.open_import(app.store, found.importer, places)
    with long_run("importing", sum(file.stat().st_size for file in found.files)) as advance:
        for done in importers.import_files(ingest, found.importer, found.files):
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


def _import_command(name: str) -> click.Command:
    """`yester import NAME`, for a row of the table."""
    importer = _IMPORTERS[name]

    def import_sources(
        app: App, sources: tuple[Path, ...], into: str | None, dry_run: bool
    ) -> Output:
        files = tuple(importers.name_files(importer, sources))
        if not sources:
            known = importers.find_memories(Path.home(), [importer])
            files = tuple(file for one in known for file in one.files)
        if not files:
            looked = ", ".join(map(str, sources or importer.places))
            raise NotFound(f"{looked}: nothing of {importer.label} there; name a file or folder")
        found = Found(importer, files[0], files)
        if dry_run:
            preview = _preview(app, found, into)
            kinds = ", ".join(f"{number:,} {kind}" for kind, number in preview.kinds.items())
            left = [f"  left out: {number:,} {why}" for why, number in preview.skipped.items()]
            lines = [*table_lines([_describe_found(found, preview)]), f"  {kinds}", *left]
            return Output(preview, lines, warnings=preview.problems, hint="nothing was written")
        report = _run_import(app, found, into)
        value = msgspec.to_builtins(report) | msgspec.to_builtins(report.put)
        failed = report.failed == len(files)
        error = SourceError("nothing could be read; see above") if failed else None
        return Output(value, [_summarise_import(report)], error=error)

    import_sources.__doc__ = f"""Import from {importer.label}.

    PATHS are its files, or folders of them; without any it is looked for in
    {", ".join(importer.places)}. Records keep their times, and belong to the project of their
    session, folder or name. They are found like everything else; none becomes a rule by itself.
    """
    return command(f"import {name}")(import_sources)


_IMPORTERS = importers.load_importers()
claude_mem_command = _import_command("claude-mem")
rageltd_command = _import_command("rageltd")
recall_command = _import_command("recall")
recall_archive_command = _import_command("recall-archive")
basic_memory_command = _import_command("basic-memory")
mcp_memory_command = _import_command("mcp-memory")


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
