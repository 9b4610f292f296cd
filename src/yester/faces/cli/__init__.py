"""The command line: `yester COMMAND`. One file per command; this one finds them.

Exit codes: 0 found or done, 1 nothing found, 2 the call was wrong, 3 something failed.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import click

from yester import __version__
from yester.errors import YesterError
from yester.faces.cli.app import App
from yester.faces.cli.screen import screened

# command → its module in this package, in the order of the help page
COMMANDS = {
    "install": "install",
    "index": "index",
    "distil": "distil",
    "recall": "recall",
    "search": "recall",
    "show": "show",
    "timeline": "timeline",
    "context": "context",
    "feedback": "feedback",
    "sessions": "sessions",
    "recent": "recent",
    "remember": "remember",
    "memory": "memory",
    "promote": "promote",
    "import": "imports",
    "mcp": "mcp",
    "status": "status",
    "stats": "stats",
    "worker": "worker",
    "serve": "serve",
    "ui": "ui",
    "off": "off",
    "doctor": "doctor",
    "reindex": "reindex",
    "backup": "backup",
    "restore": "restore",
    "config": "config",
    "model": "model",
    "bench": "bench",
    "uninstall": "uninstall",
}


class _Commands(click.Group):
    """Commands are imported when they are run: starting up must cost nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"yester.faces.cli.{COMMANDS[cmd_name]}")
        command = module.command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
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
    with screened():
        code = _ended()
    sys.exit(code)


def _ended() -> int:
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
