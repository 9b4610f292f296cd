"""The commands that explain: help, and completion, which lets the shell explain."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from pathlib import Path

import click

from yester.errors import UsageError
from yester.faces.cli.app import (
    COMMANDS,
    MORE,
    SECTIONS,
    App,
    cli,
    command,
    find_command,
    write_commands,
)
from yester.faces.cli.completion import SCRIPTS, Files, find_shell, plan_completion, write_script
from yester.tables import load_table

TOPICS = load_table("commands")["topics"]


@command("help", plain=True)
def help_command(app: App, topic: tuple[str, ...]) -> None:  # noqa: ARG001
    """Explain a command, a section of commands, or a topic."""
    root = click.get_current_context().find_root()
    text, name = _explain(root, topic), " ".join(topic)
    if text is None:
        known = [*COMMANDS, *(one.lower() for one in SECTIONS), *TOPICS]
        alike = get_close_matches(name.lower(), known, 2, 0.6)
        meant = f"did you mean {' or '.join(alike)}?" if alike else "`yester help topics` lists all"
        raise UsageError(f"there is no help about {name!r}; {meant}")
    click.echo(text)


def _explain(root: click.Context, topic: tuple[str, ...]) -> str | None:
    if not topic:
        return root.get_help()
    name = " ".join(topic).lower()
    section = name.capitalize()
    formatter = root.make_formatter()
    if section in SECTIONS:
        write_commands(formatter, section, SECTIONS[section] | MORE[section])
        return formatter.getvalue().rstrip()
    if name in TOPICS:
        return f"{TOPICS[name].rstrip()}"
    if name == "topics":
        formatter.write_text("yester help COMMAND, or one of:")
        rows = [(part.lower(), ", ".join(SECTIONS[part] | MORE[part])) for part in SECTIONS]
        rows += [(one, text.split("\n", 1)[0]) for one, text in TOPICS.items()]
        formatter.write_dl(rows)
        return formatter.getvalue().rstrip()
    found = find_command(topic)
    if found is None or found is cli:
        return None
    context = root
    for word in topic:
        below = find_command((*context.command_path.split()[1:], word))
        assert below is not None
        context = click.Context(below, parent=context, info_name=word)
    return context.get_help()


@command("completion", plain=True)
def completion_command(app: App, shell: str | None, install: bool, remove: bool, yes: bool) -> None:
    """Have the Tab key complete commands, options, projects, sessions and ids, in bash, zsh, fish.

    Prints the script for SHELL (default: the shell you use). With --install it is put where that
    shell finds it: you are shown what is written and asked first. --remove takes it out again, and
    leaves the files as they were.
    """
    app.records = False
    chosen = shell or find_shell(os.environ)
    if not chosen:
        raise UsageError("which shell? Say bash, zsh or fish")
    if not (install or remove):
        click.echo(write_script(chosen), nl=False)
        return
    if install and remove:
        raise UsageError("--install and --remove exclude each other; leave out one of them")
    files = plan_completion(chosen, Path.home(), os.environ, remove)
    if not files:
        click.echo("nothing to do: it is " + ("not installed" if remove else "in place"))
        return
    _show_files(files)
    if not yes and sys.stdin.isatty():
        click.confirm("Go ahead?", default=True, abort=True)
    for path, text in files.items():
        if text or path.suffix not in SCRIPTS:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        else:
            path.unlink()
    click.echo(f"Done. Shells that you start from now on {'complete' if install else 'do not'}.")


def _show_files(files: Files) -> None:
    """What becomes of the user's own file as a diff; of ours that it comes or goes."""
    from yester.faces.cli.notes import format_diff

    for path, text in files.items():
        if path.suffix in SCRIPTS:
            click.echo(f"{'+' if text else '-'} {path}")
        else:
            click.echo(format_diff(path, path.read_text("utf-8") if path.exists() else "", text))
