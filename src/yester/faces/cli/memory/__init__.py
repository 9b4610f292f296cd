"""`yester memory COMMAND`: look at memories and change them. One file per command or few alike."""

from __future__ import annotations

import importlib

import click

# command → its module in this package and its name there, in the order of the help page
COMMANDS = {
    "list": ("listing", "command"),
    "show": ("show", "command"),
    "edit": ("edit", "command"),
    "supersede": ("supersede", "command"),
    "retire": ("status", "retire"),
    "archive": ("status", "archive"),
    "restore": ("status", "restore"),
    "undo": ("undo", "command"),
    "history": ("history", "command"),
    "candidate": ("candidate", "command"),
    "review": ("review", "review"),
    "lint": ("review", "lint"),
    "gc": ("gc", "command"),
    "sync": ("sync", "command"),
}


class _Commands(click.Group):
    """Imported when they are run, as the commands beside them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(f"yester.faces.cli.memory.{module}"), name)
        assert isinstance(command, click.Command)
        return command


@click.group("memory", cls=_Commands)
def command() -> None:
    """Look at what was remembered, correct it, and let it go.

    A memory is named by its number, 12 or #12, or by its name, which `yester memory show` tells
    (use-utc-in-orders). Every change can be undone and says in the history who, when and why.
    """
