"""The options that several commands take, each written once, and the filters they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from yester.errors import UsageError
from yester.faces.cli.app import F, add_options
from yester.memory import Memory

if TYPE_CHECKING:
    from yester.model import Filters


def flag_option(name: str, help_: str, *parameter: str) -> Callable[[F], F]:
    return click.option(name, *parameter, is_flag=True, help=help_)


def text_option(
    name: str, metavar: str, help_: str, *parameter: str, default: str | None = None
) -> Callable[[F], F]:
    return click.option(name, *parameter, metavar=metavar, default=default, help=help_)


def list_option(name: str, parameter: str, metavar: str, help_: str) -> Callable[[F], F]:
    return click.option(name, parameter, multiple=True, metavar=metavar, help=help_)


def number_option(
    default: int, least: int, most: int | None, help_: str, *names: str
) -> Callable[[F], F]:
    limits = click.IntRange(least, most)
    return click.option(*names, type=limits, default=default, show_default=True, help=help_)


def limit_option(
    default: int, most: int | None = None, help_: str = "At most so many.", least: int = 0
) -> Callable[[F], F]:
    return number_option(default, least, most, help_, "--limit", "-n")


def form_option(default: str, of: str) -> Callable[[F], F]:
    return click.option(
        "--format", "form", type=click.Choice(["index", "full"]), default=default,
        show_default=True, help=f"A line per {of}, or everything.",
    )  # fmt: skip


DRY_RUN = flag_option("--dry-run", "Show what would be done, and do nothing.")
OFFSET = click.option(
    "--offset", type=click.IntRange(0), default=0, help="Leave out the first ones."
)
WHY = text_option("--why", "TEXT", "The reason, for the history.", default="")
PROJECT = text_option("--project", "NAME", "Not that of the current folder.", "-p")
PROJECTS = click.option(
    "--project", "-p", "projects", multiple=True, metavar="NAME",
    help="Only this project (repeatable).",
)  # fmt: skip
EVERYWHERE = flag_option("--all-projects", "All projects.", "everywhere")
FILES = list_option(
    "--file", "files", "PATH", "Only those about this file; the end of a path will do (repeatable)."
)
AGENT = text_option("--agent", "NAME", "Only this agent, e.g. claude-code.")
SINCE = text_option(
    "--since", "WHEN", "Not older than 1h, 3d, 1w, 2m, today, yesterday, a date, an ISO time."
)
UNTIL = text_option("--until", "WHEN", "Not newer; a whole day is included.")
SESSION_FILTERS = add_options(PROJECTS, AGENT, SINCE, UNTIL)


def choose_filters(memory: Memory, given: Mapping[str, Any]) -> Filters:
    """The filters that the options name; a project that nobody knows is an error."""
    from yester.clock import parse_bound
    from yester.model import Filters

    for name in given.get("projects", ()):
        if memory.exists():
            memory.find_project(name)
    named = {name: value for name in Filters.__struct_fields__ if (value := given.get(name))}
    for name in ("since", "until"):
        if text := named.get(name):
            named[name] = parse_bound(text, memory.now, option=f"--{name}", end=name == "until")
    return Filters(**named)


def choose_search_filters(memory: Memory, given: Mapping[str, Any], query: str) -> Filters:
    """The same for a question. One that names no project means all of them or, where the user has
    set `cross_project` to false, that of the current folder."""
    if given["everywhere"] and given["projects"]:
        raise UsageError("--project and --all-projects exclude each other; leave out one of them")
    chosen = choose_filters(memory, given)
    return chosen if given["everywhere"] else memory.narrow_filters(chosen, query)
