"""`yester memory review` and `lint`: what deserves a look, what is not as it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import click

from yester.faces.cli.app import App, pass_app, print_json, searched
from yester.faces.cli.memory.said import line, with_global
from yester.memories import review as looking
from yester.memories.memory_md import PageFinding as Noted
from yester.memories.places import memory_paths
from yester.memories.review import Finding
from yester.model import Filters
from yester.operate.notes import lint_notes
from yester.project import Projects

F = TypeVar("F", bound=Callable[..., Any])


def _options(command: F) -> F:
    for option in (
        click.option("--json", "as_json_", is_flag=True, help="Print as JSON."),
        click.option("--format", "form", type=click.Choice(["index", "full"]), default="index",
                     show_default=True, help="A line per finding; with the memory's text."),
        click.option("--all-projects", "everywhere", is_flag=True, help="All projects."),
        click.option("--project", "-p", "projects", multiple=True, metavar="NAME",
                     help="Only this project (repeatable)."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("review")
@_options
@pass_app
def review(app: App, /, form: str, as_json_: bool, **given: Any) -> None:
    """Show what deserves a look: unsure, expired or settled ones, ones alike, and what goes soon.

    Exit code 1 when there is nothing.
    """
    found = looking.review_memories(app.reading, _filters(app, given), app.now)
    _print(app, found, form, as_json_)
    if not found:
        if not as_json_:
            click.echo("Nothing to look at.", err=True)
        click.get_current_context().exit(1)


@click.command("lint")
@_options
@pass_app
def lint(app: App, /, form: str, as_json_: bool, **given: Any) -> None:
    """Check memories in use against the form of their category, and for contradictions.

    The project's MEMORY.md is looked over too: lines beyond the 200 that are loaded, what it says
    twice, and what a newer memory says otherwise.

    Exit code 3 when something is not as it should be.
    """
    found = looking.lint_memories(app.reading, _filters(app, given))
    pages = list(_pages(app, given))
    _print(app, found, form, as_json_, pages)
    if found or pages:
        click.get_current_context().exit(3)
    if not as_json_:
        click.echo("All memories are as they should be.")


def _pages(app: App, given: dict[str, Any]) -> Iterator[tuple[Path, Noted]]:
    """Findings in the MEMORY.md files of the projects that are meant."""
    configs = [Path(text).expanduser() for text in app.config.texts("claude_code_dirs")]
    for folder, project in _folders(app, given):
        there = (place for place in memory_paths(configs, folder) if place.is_file())
        for path in islice(there, 1):
            yield from ((path, one) for one in lint_notes(app.reading, path, project))


def _folders(app: App, given: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """(folder, key) of the projects named; of all; else of the current folder."""
    if not given["projects"] and not given["everywhere"]:
        yield Path.cwd(), Projects(app.config.projects).by_folder(str(Path.cwd())).key
        return
    for project in app.reading.projects():
        named = given["everywhere"] or {project.name, project.key} & set(given["projects"])
        if named and project.root:
            yield Path(project.root), project.key


def _filters(app: App, given: dict[str, Any]) -> Filters:
    return with_global(searched(app, given, ""), given)


def _print(
    app: App,
    found: Sequence[Finding],
    form: str,
    as_json_: bool,
    pages: Sequence[tuple[Path, Noted]] = (),
) -> None:
    if as_json_:
        rows: list[dict[str, Any]] = [
            {"id": f.memo.item.id, "slug": f.memo.slug, "check": f.check, "text": f.text,
             "fix": f.fix}
            for f in found
        ]  # fmt: skip
        rows += [
            {"file": str(path), "line": one.line, "check": one.what, "text": one.text}
            for path, one in pages
        ]
        print_json({"findings": rows})
        return
    for one in found:
        click.echo(line(app, one.memo))
        click.echo(f"    {one.check}: {one.text}; {one.fix}")
        if form == "full":
            click.echo("".join(f"    {text}\n" for text in one.memo.item.body.splitlines()))
    for path, noted in pages:
        click.echo(f"{path}:{noted.line}: {noted.what}: {noted.text}")
