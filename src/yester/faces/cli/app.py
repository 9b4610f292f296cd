"""The command line itself: its commands, what they share, and how they end.

A command is found in its module when it is called: starting up must cost nothing.
Exit codes: 0 found or done, 1 nothing found, 2 the call was wrong, 3 something failed.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from yester import __version__
from yester.errors import UsageError, YesterError
from yester.faces.cli.screen import screen_streams
from yester.memory import Memory
from yester.tables import load_table

if TYPE_CHECKING:
    from yester.config import Config
    from yester.model import Filters, Project
    from yester.project import Projects
    from yester.store.contract import Store

# command → its module in this package, where it is called NAME_command; in the order of the help
# page. Generated from all this: help.txt, which answers `yester --help` without any of it.
SECTIONS: Mapping[str, Mapping[str, str]] = load_table("commands")["sections"]
COMMANDS = {name: module for rows in SECTIONS.values() for name, module in rows.items()}
MEMORY_COMMANDS: Mapping[str, str] = load_table("commands")["modules_of_memory"]
IMPORT_COMMANDS: Mapping[str, str] = load_table("commands")["modules_of_import"]


class App:
    def __init__(self, home: Path | None) -> None:
        self.named_home = home  # by the caller; None: not at all
        self.records = True  # not in a dry run: nothing is written then
        self.now = int(time.time() * 1000)

    @cached_property
    def home(self) -> Path:
        from yester.capture.homes import home_folder

        home = home_folder(self.named_home, os.environ, Path.cwd(), self.agent != "")
        self._record_home(home)
        return home

    def _record_home(self, home: Path) -> None:
        """From now on hooks may use this home, as the user does; an agent's word is not enough."""
        from yester.capture.homes import record_home

        if self.records and not self.agent:
            record_home(home, os.environ, sys.executable)

    @cached_property
    def memory(self) -> Memory:
        """An agent may remember, but not speak for its user, whatever its variables say."""
        from yester.agents.ancestors import find_agent_here

        agent = find_agent_here()
        who, origin = (agent, "agent") if agent else (_user_name(), "user")
        memory = Memory(self.home, os.environ, cwd=str(Path.cwd()), who=who, origin=origin)
        for warning in memory.config.warnings:
            print_warning(warning)
        if any((self.home / "spool" / "new").glob("*")):
            from yester.worker.process import start_if_late

            start_if_late(self.home, os.environ)
        click.get_current_context().call_on_close(memory.close)
        return memory

    @property
    def speaks_for_user(self) -> bool:
        """Is what is said here the user's own word? No agent stands above, and there is a terminal
        at which a person can be."""
        from yester.agents.ancestors import has_terminal

        return self.memory.origin == "user" and has_terminal()

    @property
    def config(self) -> Config:
        return self.memory.config

    @cached_property
    def store(self) -> Store:
        """To write to, made where there is none. From now on a session can start the worker, and
        hooks know what to keep out; a command that only reads changes nothing of that."""
        from yester.capture.rules import load_rules, write_hook_rules
        from yester.worker.process import write_launch

        store = self.memory.store
        self._record_home(self.home)  # it may have been made only now
        write_launch(self.home)
        write_hook_rules(self.home, load_rules(self.config))
        return store

    @property
    def reading(self) -> Store:
        return self.memory.reading

    @cached_property
    def agent(self) -> str:
        """The agent whose shell this is; "" for a person."""
        from yester.agents.descriptors import detect_agent

        return detect_agent(os.environ)

    @cached_property
    def read_by_agent(self) -> bool:
        """Does an agent read what is printed, as it reads everything else?"""
        return not sys.stdout.isatty() and self.agent != ""

    def quote_line(self, text: str, most: int = 200) -> str:
        """What was recorded, on a line of its own: for an agent cut, and in quotes."""
        from yester.context.lines import one_line, quote_text

        return quote_text(one_line(text, most)) if self.read_by_agent and text else text

    @cached_property
    def names(self) -> dict[str, str]:
        """project key → readable name"""
        return self.memory.project_names()

    @cached_property
    def projects(self) -> Projects:
        """Folders as projects; of those that the user excludes nothing is kept."""
        from yester.capture.rules import load_rules
        from yester.project import Projects

        refuses = load_rules(self.config).excludes
        return Projects(self.config.projects, refuses, self.config.private)

    def find_project(
        self, name: str | None, folder: Path | None = None, instead: str = "--global, or "
    ) -> Project:
        """The project of this name, else of the folder (by default the current one)."""
        if name is not None:
            return self.memory.find_project(name)
        from yester.project import EXCLUDED

        place = folder or Path.cwd()
        found = self.projects.by_folder(str(place))
        if found.key == EXCLUDED.key:
            raise UsageError(
                f"{place} is excluded (setting `exclude`), so nothing is kept of it; "
                f"say {instead}--project NAME"
            )
        return found

    def claude_folders(self) -> list[Path]:
        return [Path(text).expanduser() for text in self.config.texts("claude_code_dirs")]

    def find_memory_md(self, folder: Path) -> Path | None:
        """The MEMORY.md that Claude Code keeps for this folder."""
        from yester.memories.memory_md import memory_paths

        places = memory_paths(self.claude_folders(), folder)
        return next((place for place in places if place.is_file()), None)


pass_app = click.make_pass_decorator(App)


def _user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        return "user"


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


def choose_filters(memory: Memory, given: Mapping[str, Any], query: str | None = None) -> Filters:
    """The filters that the options name; a project that nobody knows is an error. A question that
    names none means all or, where the user has set `cross_project` to false, the current one."""
    from yester.operations.request import read_filters

    everywhere, names = given.get("everywhere", False), given.get("projects", ())
    if everywhere and names:
        raise UsageError("--project and --all-projects exclude each other; leave out one of them")
    for name in names if memory.exists() else ():
        memory.find_project(name)
    chosen = memory.hide_private(read_filters(given, memory.now, "--"))
    return chosen if everywhere or query is None else memory.narrow_filters(chosen, query)


class Output(NamedTuple):
    """What a command answers: a value for programs (a tuple: several, each on a line of its own),
    lines for people, made when they are read, with `warnings` before and a `hint` behind them.

    Where there is `nothing` to show, that is said to people, and the exit code is 1; an `error` is
    raised when the rest has been printed.
    """

    value: object
    lines: Iterable[str] = ()
    nothing: str = ""
    code: int = 0
    warnings: Iterable[str] = ()
    hint: str = ""
    error: YesterError | None = None


def command(
    path: str, *, fenced: bool = False, plain: bool = False, group: click.Group | None = None
) -> Callable[[Callable[..., Output | None]], click.Command]:
    """A command that answers for people or, with --json, for programs; one that is `plain` prints
    for itself. What is `fenced` stands in the fence where an agent reads it: it is memory."""

    def decorate(answer: Callable[..., Output | None]) -> click.Command:
        @wraps(answer)
        def run(app: App, /, as_json: bool = False, **given: Any) -> None:
            output = answer(app, **given)
            if output is not None:
                _print_output(app, output, as_json, fenced)

        function = pass_app(run)
        if not plain:
            as_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
            function = as_json(function)
        made = click.command(path.split()[-1])(add_parameters(function, path))
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def _print_output(app: App, output: Output, as_json: bool, fenced: bool) -> None:
    if as_json:
        for value in output.value if isinstance(output.value, tuple) else (output.value,):
            click.echo(render_json(value))
    else:
        for warning in output.warnings:
            print_warning(warning)
        _print_lines(app, output.lines, fenced)
    if output.error is not None:
        raise output.error
    for text in filter(None, () if as_json else (output.hint, output.nothing)):
        click.echo(text, err=True)
    if output.nothing or output.code:
        click.get_current_context().exit(output.code or 1)


# --- printing -------------------------------------------------------------------------------------


def render_json(value: object) -> str:
    import msgspec

    from yester.fence import escape_hidden

    return escape_hidden(msgspec.json.encode(value).decode())


def _print_lines(app: App, lines: Iterable[str], fenced: bool) -> None:
    """One at a time: some take a while, and what was found before a failure is not lost."""
    if not (fenced and app.read_by_agent):
        for line in lines:
            click.echo(line)
        return
    from yester.fence import fence_text

    if body := "\n".join(lines).strip("\n"):
        click.echo(fence_text("memory", body, "printed by yester"))


def print_warning(text: str) -> None:
    click.echo(f"yester: {text}", err=True)


# --- long runs ------------------------------------------------------------------------------------


@contextmanager
def long_run(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """With a bar and the time left on a terminal. SIGTERM ends it like Ctrl-C does: the batch at
    hand is still written."""
    import gc
    import signal

    gc.set_threshold(100_000)  # nothing here makes cycles, and looking for them costs a tenth
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not sys.stderr.isatty() or not total:
        yield lambda _: None
        return
    # The stream behind the screen: a bar moves the cursor.
    with click.progressbar(length=total, label=label, file=sys.__stderr__) as bar:
        yield bar.update


# --- the commands ---------------------------------------------------------------------------------


class LazyGroup(click.Group):
    """Commands are imported when they are run."""

    modules: Mapping[str, str] = COMMANDS

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.modules:
            return None
        module = importlib.import_module(f"yester.faces.cli.{self.modules[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command


class _MemoryGroup(LazyGroup):
    modules = MEMORY_COMMANDS


@click.group("memory", cls=_MemoryGroup)
def memory_command() -> None:
    """Look at what was remembered, correct it, and let it go.

    A memory is named by its number, 12 or #12, or by its name, which `yester memory show` tells
    (use-utc-in-orders). Every change can be undone and says in the history who, when and why.
    """


class _ImportGroup(LazyGroup):
    modules = IMPORT_COMMANDS


@click.group("import", cls=_ImportGroup, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON what there is; ask nothing.")
@click.pass_context
def import_command(context: click.Context, as_json: bool) -> None:
    """Import what other programs and people have written down.

    Without a command: looks where other memories keep theirs, shows what there is, and asks for
    each whether to import it. Importing the same again changes nothing; what has changed since is
    brought up to date. Nothing is ever written where it comes from.
    """
    if context.invoked_subcommand is None:
        from yester.faces.cli.imports import offer_imports

        offer_imports(context.obj, as_json)


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
        return code
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code, said = 130, "stopped"
    except YesterError as error:
        code, said = error.exit_code, str(error)
    except BrokenPipeError:
        # The reader has had enough: no failure, and no complaint when stdout is closed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            raise
        fix = "make sure that you may read and write it, and that there is room"
        code, said = 3, f"{error.filename}: {error.strerror}; {fix}"
    print(f"yester: {said}", file=sys.stderr)  # noqa: T201
    return code


def _run() -> int:
    """Not `cli.main()`: it makes a failure of a closed pipe before we could see it."""
    if instruction := os.environ.get("_YESTER_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "yester", "_YESTER_COMPLETE", instruction)
    with cli.make_context("yester", sys.argv[1:]) as context:
        cli.invoke(context)
    return 0
