"""What commands take, by the rows of `tables/commands.toml`, and the filters that options mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from yester.errors import UsageError
from yester.tables import load_table

if TYPE_CHECKING:
    from yester.memory import Memory
    from yester.model import Filters

F = TypeVar("F", bound=Callable[..., Any])
_KINDS: Mapping[str, Any] = {
    "path": click.Path(path_type=Path),
    "file": click.Path(path_type=Path, dir_okay=False),
    "folder": click.Path(path_type=Path, file_okay=False),
    "number": float,
}
_VALUED = {"metavar", "kind", "choices", "least"}  # an option that has none of these is a flag


def add_parameters(function: F, path: str) -> F:
    """The arguments and options of a command, which is named as it is typed: memory list."""
    rows: Mapping[str, Any] = load_table("commands")
    for word in path.split():
        rows = rows.get(word, {})
    found = [one for name, row in rows.items() for one in find_rows(name, row)]
    for name, row in reversed(found):  # click wants the last one first
        function = _make_parameter(name, row)(function)
    return function


def find_rows(name: str, row: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A row, a shared one that is named in its place, or several."""
    shared = load_table("commands")["shared"]
    if isinstance(row, str):
        row = shared[row]
    if isinstance(row, list):
        yield from ((one, shared[one]) for one in row)
    else:
        yield name, shared.get(row.get("like"), {}) | row


def _make_parameter(name: str, row: Mapping[str, Any]) -> Callable[[F], F]:
    kind: Any = _KINDS.get(row.get("kind", ""))
    if "choices" in row:
        kind = click.Choice(row["choices"])
    if "least" in row:
        kind = click.IntRange(row["least"], row.get("most"))
    many, metavar = row.get("many", False), row.get("metavar")
    if "flags" not in row:
        required, times = row.get("required", not many), -1 if many else 1
        return click.argument(name, type=kind, metavar=metavar, nargs=times, required=required)
    named = {key: row[key] for key in ("help", "hidden", "required", "default") if key in row}
    if _VALUED & row.keys():
        shown = bool(row.get("default"))
        named |= {"type": kind, "metavar": metavar, "multiple": many, "show_default": shown}
    else:
        named["is_flag"] = True
    return click.option(*row["flags"].split(), name, **named)


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
    return memory.hide_private(Filters(**named))


def choose_search_filters(memory: Memory, given: Mapping[str, Any], query: str) -> Filters:
    """The same for a question. One that names no project means all of them or, where the user has
    set `cross_project` to false, that of the current folder."""
    if given["everywhere"] and given["projects"]:
        raise UsageError("--project and --all-projects exclude each other; leave out one of them")
    chosen = choose_filters(memory, given)
    return chosen if given["everywhere"] else memory.narrow_filters(chosen, query)
