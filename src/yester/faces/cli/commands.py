"""The commands of `yester`, each found in its module when it is called, and how they end.

Exit codes: 0 found or done, 1 nothing found, 2 the call was wrong, 3 something failed.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from yester import __version__
from yester.errors import YesterError
from yester.faces.cli.app import App
from yester.faces.cli.screen import screen_streams

# command → its module in this package, where it is called NAME_command; in the order of the help
# page. Generated from all this: help.txt, which answers `yester --help` without any of it.
COMMANDS = {
    "install": "install", "index": "index", "distil": "index", "recall": "recall",
    "search": "recall", "show": "recall", "timeline": "recall", "context": "context",
    "feedback": "context", "sessions": "recall", "recent": "recall", "remember": "remember",
    "memory": "", "promote": "notes", "import": "notes", "mcp": "serve", "status": "worker",
    "stats": "stats", "worker": "worker", "serve": "serve", "ui": "serve", "off": "settings",
    "doctor": "install", "reindex": "index", "backup": "install", "restore": "install",
    "config": "settings", "model": "settings", "bench": "stats", "uninstall": "install",
}  # fmt: skip
MEMORY_COMMANDS = {
    "list": "memories", "show": "memories", "edit": "remember", "supersede": "remember",
    "retire": "memories", "archive": "memories", "restore": "memories", "undo": "memories",
    "history": "memories", "candidate": "memories", "review": "memories", "lint": "memories",
    "gc": "memories", "sync": "notes",
}  # fmt: skip
_SAME = {"search": "recall"}  # another name of a command


class LazyGroup(click.Group):
    """Commands are imported when they are run: starting up must cost nothing."""

    modules: Mapping[str, str] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.modules:
            return None
        if cmd_name == "memory":
            return memory_command
        module = importlib.import_module(f"yester.faces.cli.{self.modules[cmd_name]}")
        command = getattr(module, f"{_SAME.get(cmd_name, cmd_name)}_command")
        assert isinstance(command, click.Command)
        return command


class _MemoryGroup(LazyGroup):
    modules = MEMORY_COMMANDS


@click.group("memory", cls=_MemoryGroup)
def memory_command() -> None:
    """Look at what was remembered, correct it, and let it go.

    A memory is named by its number, 12 or #12, or by its name, which `yester memory show` tells
    (use-utc-in-orders). Every change can be undone and says in the history who, when and why.
    """


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="yester's folder (default: $YESTER_HOME, else ~/.yester).",
)
@click.version_option(__version__, "-V", "--version", prog_name="yester")
@click.pass_context
def cli(ctx: click.Context, home: Path | None) -> None:
    """Long-term memory for coding agents.

    Start with `yester install`, which lets your agents use it, and `yester index`, which reads the
    transcripts they have already written. Then ask: `yester recall "why did we drop redis"`.
    """
    ctx.obj = App(home)


def main() -> None:
    with screen_streams():
        code = _run_to_code()
    sys.exit(code)


def _run_to_code() -> int:
    """The exit code; what went wrong has been said."""
    try:
        code = _run()
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        print("yester: stopped", file=sys.stderr)  # noqa: T201
        code = 130
    except YesterError as error:
        print(f"yester: {error}", file=sys.stderr)  # noqa: T201
        code = error.exit_code
    except BrokenPipeError:
        # The reader has had enough: no failure, and no complaint when stdout is closed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    return code


def _run() -> int:
    """Not `cli.main()`: it makes a failure of a closed pipe before we could see it."""
    if instruction := os.environ.get("_YESTER_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "yester", "_YESTER_COMPLETE", instruction)
    with cli.make_context("yester", sys.argv[1:]) as context:
        cli.invoke(context)
    return 0
