"""The command that takes everything out again: export."""

from __future__ import annotations

import sys
from difflib import unified_diff
from pathlib import Path

from yester.errors import NotFound, NotYours, SourceError
from yester.faces.cli.app import App, Output, command, make_group
from yester.faces.cli.screen import count_noun
from yester.files import read_shared, replace_file, swap_shared
from yester.operate import pages
from yester.operate.export import export_lines, write_export


@make_group("export")
def export_command() -> None:
    """Take what is remembered with you: as JSON lines, Markdown, or a page.

    Exporting changes nothing in the store. A file appears under its name complete or not at all.
    """


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
    nothing = "" if files else "Nothing to export."
    said = [f"{count_noun(len(files), 'file')} in {folder}"] if files else []
    return Output({"files": files}, said, nothing)


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
    whose = app.find_project(project, file.absolute().parent)
    section, path = pages.render_section(app.reading, whose), file.absolute()
    present = read_shared(path)
    before = (present or b"").decode("utf-8", "surrogateescape")
    after = pages.place_section(before, section, file)
    if after == before:
        if not section:
            raise NotFound(f"{whose.name} has no decision and no rule of its own yet")
        return Output({"applied": False, "diff": ""}, [f"{file} says so already"])
    name, texts = str(file), (before.splitlines(), after.splitlines())
    diff = "\n".join(unified_diff(*texts, name, name, lineterm="")).encode("utf-8", "replace")
    if apply:
        if app.memory.origin != "user":
            raise NotYours(
                f"{file} is the user's: `yester export section {file} --apply` is theirs"
            )
        if not swap_shared(path, after.encode("utf-8", "surrogateescape"), present):
            raise SourceError(f"{file}: has changed while it was looked at; run it again")
    hint = "" if apply else "nothing was written; say --apply to write it"
    return Output({"applied": apply, "diff": diff.decode()}, [diff.decode()], hint=hint)
