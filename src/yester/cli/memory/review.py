"""`yester memory review` and `lint`: what deserves a look, what is not as it should be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from yester.cli.app import App, pass_app, print_json, searched
from yester.cli.memory.said import line, with_global
from yester.memories import review as looking
from yester.memories.review import Finding
from yester.model import Filters

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
    found = looking.review(app.reading, _filters(app, given), app.now)
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

    Exit code 3 when something is not as it should be.
    """
    found = looking.lint(app.reading, _filters(app, given))
    _print(app, found, form, as_json_)
    if found:
        click.get_current_context().exit(3)
    if not as_json_:
        click.echo("All memories are as they should be.")


def _filters(app: App, given: dict[str, Any]) -> Filters:
    return with_global(searched(app, given, ""), given)


def _print(app: App, found: Sequence[Finding], form: str, as_json_: bool) -> None:
    if as_json_:
        rows = [
            {"id": f.memo.item.id, "slug": f.memo.slug, "check": f.check, "text": f.text,
             "fix": f.fix}
            for f in found
        ]  # fmt: skip
        print_json({"findings": rows})
        return
    for one in found:
        click.echo(line(app, one.memo))
        click.echo(f"    {one.check}: {one.text}; {one.fix}")
        if form == "full":
            click.echo("".join(f"    {text}\n" for text in one.memo.item.body.splitlines()))
