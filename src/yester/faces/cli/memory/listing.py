"""`yester memory list`: the memories there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from yester.faces.cli.app import App, fenced_for_agents, pass_app, searched
from yester.faces.cli.memory.said import form_options, show, with_global
from yester.memories.categories import get_category
from yester.memories.memory import GLOBAL
from yester.memories.tags import normalise_tags
from yester.model import STATUSES, Paging


@click.command("list")
@click.option(
    "--project",
    "-p",
    "projects",
    multiple=True,
    metavar="NAME",
    help="Only this project (repeatable); `global` for what holds everywhere.",
)
@click.option("--all-projects", "everywhere", is_flag=True, help="All projects.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    help="Only this category, e.g. decision (repeatable).",
)
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME", help="Only those with this tag (repeatable)."
)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="Only those about this file; the end of a path will do (repeatable).",
)
@click.option(
    "--status",
    type=click.Choice([*STATUSES, "all"]),
    default="active",
    show_default=True,
    help="In use, or put away.",
)
@click.option(
    "--limit", "-n", type=click.IntRange(0), default=50, show_default=True, help="At most so many."
)
@click.option("--offset", type=click.IntRange(0), default=0, help="Leave out the first ones.")
@form_options("index")
@pass_app
@fenced_for_agents
def command(
    app: App, /, tags: tuple[str, ...], status: str, limit: int, offset: int, form: str,
    as_json_: bool, **given: Any,
) -> None:  # fmt: skip
    """List memories, the last changed first."""
    given["types"] = tuple(get_category(name).name for name in given["types"])
    chosen = with_global(searched(app, given, ""), given)
    statuses = STATUSES if status == "all" else (status,)
    memos = app.reading.memos(
        chosen, Paging(limit, offset=offset, statuses=statuses), tags=normalise_tags(tags)
    )
    show(app, memos, form, as_json_)
    if not as_json_ and given["projects"] and not {GLOBAL.name, GLOBAL.key} & {*given["projects"]}:
        # Named, a project is listed alone; what else holds in it must not look as if it did not.
        more = replace(chosen, projects=(GLOBAL.key,))
        if number := len(
            app.reading.memos(more, Paging(statuses=statuses), tags=normalise_tags(tags))
        ):
            verb = "holds" if number == 1 else "hold"
            click.echo(f"{number} more {verb} everywhere: yester memory list -p global", err=True)
    if memos:
        return
    if not as_json_:
        click.echo('No memories. Keep one: yester remember "…"', err=True)
    click.get_current_context().exit(1)
