"""The commands that bring memory in and take it out: import, export, and move to another engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.capture.rules import load_rules
from yester.clock import format_day
from yester.errors import NotFound, NotYours, SourceError, StoreError, UsageError
from yester.faces.cli.app import App, Output, command, long_run, print_warning
from yester.faces.cli.notes import format_diff, read_present, replace_present
from yester.faces.cli.screen import count_noun, join_counts, join_kinds, table_lines
from yester.files import replace_file
from yester.ingest.transcripts import Report
from yester.operate import pages
from yester.operate.export import ExportReader, count_records, export_lines, write_export
from yester.operate.importers import base as importers
from yester.operate.importers.base import Found, Places, Preview
from yester.operate.move import ALIKE, move_store
from yester.store import is_server_url, store_location
from yester.store.contract import Store

_MOST_PROBLEMS = 20  # are printed


@command("import")
def import_command(app: App) -> Output:
    """Import what other programs and people have written down.

    Without a command: looks where other memories keep theirs, shows what there is, and asks for
    each whether to import it; with --json it asks nothing. Importing the same again changes
    nothing; what has changed since is brought up to date. Nothing is ever written where it comes
    from.
    """
    found = importers.find_memories(Path.home(), _IMPORTERS.values())
    offers = [(one, _preview(app, one)) for one in found]
    rows = [_describe_found(*offer) for offer in offers]
    labels = ", ".join(one.label for one in _IMPORTERS.values())
    names = dict.fromkeys(f"yester import {one.importer.name}" for one in found)
    nothing = (
        f"No memory of another program is in its usual place ({labels}); "
        "name it: yester import PROGRAM PATH"
    )
    lines, hint = [*table_lines(rows)], f"to import: {', '.join(names)}" if found else ""
    if not sys.stdin.isatty() or click.get_current_context().params["as_json"]:
        return Output({"found": rows}, lines, nothing, found, hint=hint)
    click.echo("\n".join(lines), nl=bool(lines))
    for one, preview in offers:
        new = preview.records - preview.known
        if new and click.confirm(f"Import {new:,} from {one.where}?", default=False):
            click.echo(_summarise_import(_run_import(app, one)))
    return Output(None, (), nothing, found)


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
    folders, rules = importers.list_worked_folders(Path.home()), load_rules(app.config)
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
            left = [f"  left out: {number:,} {why}" for why, number in preview.skipped.items()]
            rows = table_lines([_describe_found(found, preview)])
            lines = [*rows, f"  {join_kinds(preview.kinds)}", *left]
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
    if dry_run:
        kinds = count_records(file)
        return Output({"records": kinds}, [join_kinds(kinds)], hint="nothing was written")
    reader = ExportReader(app.store, file, mine)
    with long_run("importing", file.stat().st_size) as advance:
        for done in reader.read_slices():
            advance(done)
    report = reader.report
    new, wrong = join_kinds(report.added), report.problems[:_MOST_PROBLEMS]
    lines = [f"new: {new}" if new else "nothing new"]
    return Output(report, lines, warnings=wrong, code=3 * bool(wrong))


# --- everything taken out again -------------------------------------------------------------------


@command("export jsonl")
def jsonl_command(app: App, file: Path) -> Output:
    """Everything, as JSON lines; `yester import yester FILE` brings it back.

    FILE may be - for the standard output. Left out is what is made anew from the rest: the index
    and the vectors. Settings and backups are files of yester's home.
    """
    lines = export_lines(app.reading, app.now)
    if str(file) == "-":
        sys.__stdout__.buffer.writelines(lines)  # type: ignore[union-attr]
        return Output(())
    write_export(file, lines)
    size = file.stat().st_size
    return Output({"file": str(file), "bytes": size}, [f"{file}: {size / 1e6:,.1f} MB"])


@command("export markdown")
def markdown_command(app: App, folder: Path, projects: tuple[str, ...]) -> Output:
    """What was noted, decided and summed up: a folder a project, a Markdown file a month.

    The files begin with properties as Obsidian reads them; open DIR as a vault, or put it into one.
    Run it again to bring them up to date.
    """
    chosen = [app.memory.find_project(name) for name in projects] or app.reading.projects()
    files = [str(path) for path in pages.write_markdown(app.reading, folder, chosen)]
    said = [f"{count_noun(len(files), 'file')} in {folder}"] if files else []
    return Output({"files": files}, said, "Nothing to export.", files)


@command("export session")
def session_command(app: App, session: str, file: Path) -> Output:
    """One session as an HTML page of its own: to read, to keep, to send.

    The page loads nothing and runs nothing. FILE may be - for the standard output.
    """
    found = app.memory.find_session(session)
    page = pages.render_session(app.reading, found, app.names.get(found.project, ""))
    if str(file) == "-":
        return Output({"html": page}, [page])
    replace_file(file, page)
    return Output({"file": str(file)}, [str(file)])


@command("export section")
def section_command(app: App, file: Path, project: str | None, apply: bool) -> Output:
    """Propose a project's decisions and rules as a section of FILE: AGENTS.md or CLAUDE.md.

    Shows the change as a diff and writes nothing; you write it with --apply, in your own terminal.
    Run again, the section is brought up to date; the rest of the file is never touched.
    """
    whose = app.choose_project(project, file.absolute().parent)
    section, path = pages.render_section(app.reading, whose), file.absolute()
    present, before = read_present(path)
    after = pages.place_section(before, section, file)
    if after == before:
        if not section:
            raise NotFound(f"{whose.name} has no decision and no rule of its own yet")
        return Output({"applied": False, "diff": ""}, [f"{file} says so already"])
    diff = format_diff(file, before, after)
    if apply:
        theirs = f"`yester export section {file} --apply` is theirs"
        app.memory.require_user(f"{file} is the user's: {theirs}")
        replace_present(path, after, present, file)
    hint = "" if apply else "nothing was written; say --apply to write it"
    return Output({"applied": apply, "diff": diff}, [diff], hint=hint)


# --- to another engine ----------------------------------------------------------------------------


@command("move")
def move_command(app: App, to: str, verify: bool, use: bool) -> Output:
    """Copy the whole store to a server, from there into a folder, or between servers.

    The other store must be empty. Ids, history, vectors and what was shown go along; the index is
    built anew. This store stays as it is, and stays the one in use unless you say --use: then the
    file `database` in yester's folder names the server; it is taken away by a move back into that
    folder. Nobody writes to either store meanwhile; hooks wait in the spool.
    """
    memory = app.memory
    memory.require_user("where a memory is kept is the user's to say", "yester move is theirs")
    place, server = store_location(to), is_server_url(to)
    if use and not server and Path(to).expanduser().resolve() != app.home.resolve():
        raise UsageError(
            f"--use names the server that is in use from now on, and {to} is a folder;"
            f" leave it out, and say yester --home {to}"
        )

    def tell_rows(table: str, rows: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{table}: {rows:,} rows\033[K")

    moved = move_store(memory, to, verify, use, tell_rows)
    lines = [f"{moved.items:,} items copied to {place}"]
    value: dict[str, object] = {"to": place, "items": moved.items}
    error = None
    if found := moved.compared:
        lines.append(
            f"{found.same} of {found.questions} questions are answered with the same list;"
            f" scores differ by at most {found.difference:.1e}"
        )
        value |= {"questions": found.questions, "same": found.same, "difference": found.difference}
        if not found.equal:
            error = StoreError(
                f"{place} does not answer as {memory.store.location} does, e.g. {found.example!r}"
                if found.example
                else f"{place}: scores differ by more than {ALIKE:.0e}",
                "keep the one you have, and report this",
            )
    if use and error is None:
        named = app.home / "database" if server else app.home
        lines.append(f"from now on it is the one in use ({named})")
    return Output(value, lines, error=error)
