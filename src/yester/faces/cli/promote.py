"""`yester promote`: a line for MEMORY.md, which the agent reads at the start of every session."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

import click

from yester.config import Config
from yester.errors import NotFound, SourceError, UsageError
from yester.faces.cli.app import App, pass_app
from yester.memories.disk import make_folder, read_file, replace_file
from yester.memories.memory_md import MOST_LINES, NEARLY_FULL, AddedLine, add_line, lead_sentence
from yester.memories.places import MEMORY, memory_paths
from yester.model import Item
from yester.redact import redact

_UNDER = "From earlier sessions"


@click.command("promote")
@click.argument("item_id", metavar="ID")
@click.option("--as", "words", metavar="TEXT", help="The line, in your own words.")
@click.option(
    "--under",
    metavar="HEADING",
    default=_UNDER,
    show_default=True,
    help="The section it goes into; made at the end if it is not there.",
)
@click.option(
    "--to",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"This file instead of the project's {MEMORY}.",
)
@click.option("--create", is_flag=True, help="Make the file if it is not there.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@pass_app
def command(
    app: App,
    item_id: str,
    words: str | None,
    under: str,
    file: Path | None,
    create: bool,
    dry_run: bool,
) -> None:  # fmt: skip
    """Add item ID as one line to the MEMORY.md of the current project.

    The line is a memory's title, of anything else the first sentence. One line is added and nothing
    else is touched. MEMORY.md is loaded up to line 200; where there is no room it is left alone.
    """
    item = _item(app, item_id)
    path = file.absolute() if file else _place(app.config, Path.cwd(), create)
    real = path.resolve()
    present = read_file(real)
    if present is None and not create:
        raise NotFound(f"{path} is not there; to make it: --create")
    before = (present or b"").decode("utf-8", "surrogateescape")
    if "\0" in before:
        raise SourceError(f"{path}: is not a text file")
    line = redact(words if words is not None else _said(item))
    try:
        found = add_line(before, line, under)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if dry_run:
        click.echo(_diff(path, before, found.text), nl=False)
        return
    _write(real, found, present, path)
    shown = found.text.split("\n")[found.line - 1].strip("\ufeff\r")
    click.echo(f"{path}:{found.line}: {shown}")
    if found.lines >= NEARLY_FULL:
        click.echo(f"yester: {found.lines} of the {MOST_LINES} lines that are loaded", err=True)


def _item(app: App, text: str) -> Item:
    number = text.removeprefix("#")
    found = app.reading.get([int(number)]) if number.isdecimal() else app.reading.find_by_ref(text)
    if not found:
        raise NotFound(f"no item {text}; `yester recall` shows ids")
    if found[0].status != "active":
        raise UsageError(f"item {text} is {found[0].status}; only active ones can be promoted")
    return found[0]


def _said(item: Item) -> str:
    """What the item says in a line; the title of a note or a prompt only says where it stood."""
    titled = item.kind in ("memory", "observation") and item.title
    return titled or lead_sentence(item.body) or item.title


def _place(config: Config, cwd: Path, create: bool) -> Path:
    """The project's MEMORY.md, or where it would be.

    $CLAUDE_CONFIG_DIR chooses among the folders the user has told of; a repository can set it, so
    it cannot name another one."""
    configs = [Path(text).expanduser() for text in config.texts("claude_code_dirs")]
    if other := os.environ.get("CLAUDE_CONFIG_DIR"):
        if Path(other) not in configs:
            raise UsageError(
                f"CLAUDE_CONFIG_DIR={other} is not among claude_code_dirs; add it in "
                f"{config.home / 'config.toml'}, or name the file with --to"
            )
        configs = [Path(other)]
    places = memory_paths(configs, cwd)
    there = next((place for place in places if place.is_file()), None)
    if there or (create and places):
        return there or places[0]
    raise NotFound(f"{cwd} has no {MEMORY} in {configs[0]}; to make it: --create; or name it: --to")


def _write(real: Path, found: AddedLine, present: bytes | None, shown: Path) -> None:
    if present is None:
        make_folder(real.parent, "")
    if not replace_file(real, found.text.encode("utf-8", "surrogateescape"), present):
        raise SourceError(f"{shown}: has changed while it was looked at; run it again")


def _diff(path: Path, before: str, after: str) -> str:
    lines = unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), str(path), str(path)
    )
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    return text.encode("utf-8", "replace").decode()
