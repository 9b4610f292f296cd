"""The command line itself: its commands, what they share, and how they end.

A command is found in its module when it is called: starting up must cost nothing.
Exit codes: 0 found or done, 1 nothing found, 2 the call was wrong, 3 something failed.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from errno import EISDIR, EMFILE
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from yester import __version__
from yester.errors import TOO_MANY_FILES, UsageError, YesterError
from yester.faces.cli import screen
from yester.memory import Memory
from yester.tables import load_table

if TYPE_CHECKING:
    from yester.config import Config
    from yester.model import Filters, Project
    from yester.project import Projects
    from yester.store.contract import Store

Commands = dict[str, Sequence[str]]  # name → its module in this package, and its line of help

# Generated from all this: help.txt, which answers `yester --help` without any of it.
SECTIONS: Mapping[str, Commands] = load_table("commands")["sections"]
MORE: Mapping[str, Commands] = load_table("commands")["more"]
GROUPS: Mapping[str, Commands] = load_table("commands")["groups"]
ABOUT: Mapping[str, str] = load_table("commands")["about"]  # groups that do nothing themselves
STOPPED: Mapping[str, str] = load_table("commands")["stopped"]  # what Ctrl-C leaves of a command
EXCLUSIVE: Mapping[str, Sequence[str]] = load_table("commands")["exclusive"]
DOES: Mapping[str, str] = load_table("commands")["does"]  # the help of what has no docstring
COMMANDS: Commands = {
    name: row for part in SECTIONS for name, row in (SECTIONS[part] | MORE[part]).items()
}


# What other programs start, or goes on when the call has ended.
_BY_HOME = ("install", "mcp", "ui", "worker")


class App:
    def __init__(self, home: Path | None, pages: bool = False, database: str = "") -> None:
        self.named_home = home  # by the caller; None: not at all
        self.database = database  # in place of what the home names
        self.pages = pages  # shows what is long in a pager
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
        from yester.agents.descriptors import find_agent_here

        agent = find_agent_here()
        who, origin = (agent, "agent") if agent else (_user_name(), "user")
        memory = Memory(self.home, os.environ, cwd=str(Path.cwd()), who=who, origin=origin,
                        database=self.database)  # fmt: skip
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
        from yester.agents.descriptors import has_terminal

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

    @cached_property
    def width(self) -> int:
        """The columns there are; 0: no terminal, and no end to a line."""
        return screen.terminal_width(sys.stdout)

    @cached_property
    def viewer(self) -> str:
        """Where the viewer is, for links; "" where it is not, or the terminal knows none."""
        known = {"TERM_PROGRAM", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION"}
        if not self.width or not known & os.environ.keys() or not screen.has_colours(sys.stdout):
            return ""
        from yester.faces.cli.services import server_port

        port = server_port(self.home)
        return f"http://127.0.0.1:{port}/#/item/" if port else ""

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
        from yester.folders import open_projects

        return open_projects(self.config, load_rules(self.config).excludes)

    def choose_project(
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

        return next(filter(Path.is_file, memory_paths(self.claude_folders(), folder)), None)


pass_app = click.make_pass_decorator(App)


def _user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        return "user"


F = TypeVar("F", bound=Callable[..., Any])


class _Time(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Looked at where all else is looked at, so that all that is wrong is said at once."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from yester.clock import parse_bound

        try:
            value and parse_bound(value, int(time.time() * 1000), option="")
        except UsageError as error:
            self.fail(str(error).lstrip(), param, ctx)
        return value


_KINDS: Mapping[str, Any] = {
    "path": click.Path(path_type=Path),
    "file": click.Path(path_type=Path, dir_okay=False),
    "folder": click.Path(path_type=Path, file_okay=False),
    "number": float,
    "time": _Time(),
}
_VALUED = {"metavar", "kind", "choices", "least"}  # an option that has none of these is a flag


def add_parameters(function: F, path: str) -> F:
    """The arguments and options of a command, which is named as it is typed: memory list."""
    rows: Mapping[str, Any] = load_table("commands")
    for word in path.split():
        rows = rows.get(word, {})
    below = GROUPS.get(path, {})  # what these take stands below the group as well
    found = [one for name, row in rows.items() if name not in below for one in find_rows(name, row)]
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
    many, metavar = row.get("many", False), row.get("metavar")
    if "choices" in row:
        kind = click.Choice(row["choices"])
    if "least" in row:
        kind = click.IntRange(row["least"], row.get("most"))
        kind.name = "whole number"
        metavar = metavar or "NUMBER"
    named = {key: row[key] for key in ("help", "hidden", "required", "default") if key in row}
    named["shell_complete"] = _complete_by(row)
    if "flags" not in row:
        named = {"nargs": -1 if many else 1, "required": not many} | named
        return click.argument(name, type=kind, metavar=metavar, **named)
    if _VALUED & row.keys():
        shown = bool(row.get("default"))
        named |= {"type": kind, "metavar": metavar, "multiple": many, "show_default": shown}
    else:
        named["is_flag"] = True
    return click.option(*row["flags"].split(), name, **named)


def _complete_by(row: Mapping[str, Any]) -> Callable[..., Any] | None:
    """What the Tab key offers for it; looked up when somebody presses it."""
    if "completes" not in row:
        return None

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> Any:
        from yester.faces.cli.help import list_values

        return list_values(row["completes"], context, incomplete)

    return complete


def choose_filters(memory: Memory, given: Mapping[str, Any], query: str | None = None) -> Filters:
    """The filters that the options name; a project that nobody knows is an error. A question that
    names none means all or, where the user has set `cross_project` to false, the current one."""
    from yester.operations.request import read_filters

    everywhere, names = given.get("everywhere", False), given.get("projects", ())
    if everywhere and names:
        raise UsageError("--project and --all-projects exclude each other; leave out one of them")
    wrong = []
    for name in names if memory.exists() else ():
        try:
            memory.find_project(name)
        except YesterError as error:
            wrong.append(error)
    if len(wrong) > 1:
        raise UsageError("\n".join(map(str, wrong)))
    if wrong:
        raise wrong[0]
    chosen = memory.hide_private(read_filters(given, memory.now, "--"))
    return chosen if everywhere or query is None else memory.narrow_filters(chosen, query)


class Output(NamedTuple):
    """What a command answers: a value for programs (a tuple: several, each on a line of its own),
    lines for people, made when they are read, with `warnings` before and a `hint` behind them.

    Without what should be `found`, `nothing` is said to people, and the exit code is 1; an `error`
    is raised when the rest has been printed.
    """

    value: object
    lines: Iterable[str] = ()
    nothing: str = ""
    found: object = ()
    code: int = 0
    warnings: Iterable[str] = ()
    hint: str = ""
    error: YesterError | None = None


# They run until they are ended, or answer at once.
_LASTING = ("worker run", "serve", "mcp", "statusline", "completion", "help")


def command(
    path: str, *, fenced: bool = False, plain: bool = False
) -> Callable[[Callable[..., Output | None]], click.Command]:
    """A command that answers for people or, with --json, for programs; one that is `plain` prints
    for itself. What is `fenced` stands in the fence where an agent reads it: it is memory. One that
    has others below it answers where none of them is named."""

    def decorate(answer: Callable[..., Output | None]) -> click.Command:
        @wraps(answer)
        def run(app: App, /, as_json: bool = False, **given: Any) -> None:
            if click.get_current_context().invoked_subcommand is not None:
                return
            said = [name.replace("_", "-") for name in EXCLUSIVE.get(path, ()) if given[name]]
            if len(said) > 1:
                flags = " and ".join(f"--{name}" for name in said)
                raise UsageError(f"{flags} exclude each other; leave out one of them")
            if path not in _LASTING:
                screen.PATIENCE.begin(f"yester {path}")
            try:
                output = answer(app, **given)
                if output is not None:
                    _print_output(app, output, as_json, fenced)
            except (KeyboardInterrupt, click.Abort) as stop:
                kept = str(stop) or STOPPED.get(path, "")
                raise click.Abort(f"stopped; {kept}" if kept else "stopped") from None

        function = pass_app(run)
        if not plain:
            as_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
            function = as_json(function)
        function = add_parameters(function, path)
        if path in GROUPS:
            return click.group(path, cls=LazyGroup, invoke_without_command=True)(function)
        return click.command(path.split()[-1], cls=Command, help=DOES.get(path))(function)

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
    nothing = "" if output.found else output.nothing
    for text in filter(None, () if as_json else (output.hint, nothing)):
        print_note(text)
    if nothing or output.code:
        click.get_current_context().exit(output.code or 1)


# --- printing -------------------------------------------------------------------------------------


_TIMES = (
    "epoch", "updated", "since", "until", "started", "ended", "oldest", "newest", "last", "seen",
    "date",
)  # fmt: skip
_SECONDS = 1e11  # what is more counts milliseconds


def render_json(value: object) -> str:
    import msgspec

    from yester.fence import escape_hidden

    plain = msgspec.to_builtins(value)
    return escape_hidden(msgspec.json.encode(_tell_times(plain)).decode())


def _tell_times(value: Any) -> Any:
    """Every time in seconds since 1970 and, beside it, as ISO 8601 (UTC), whoever made the row."""
    if isinstance(value, list | tuple):
        return [_tell_times(one) for one in value]
    if not isinstance(value, dict):
        return value
    from yester.clock import format_iso

    told: dict[Any, Any] = {}
    for name, one in value.items():
        told[name] = _tell_times(one)
        if name in _TIMES and isinstance(one, int | float) and one >= 1e8:  # less is a count
            told[name] = one / 1000 if one > _SECONDS else one
            told[f"{name}_iso"] = format_iso(round(told[name] * 1000))
    return told


def _print_lines(app: App, lines: Iterable[str], fenced: bool) -> None:
    """One at a time: some take a while, and what was found before a failure is not lost."""
    if fenced and app.read_by_agent:
        from yester.fence import fence_text

        if body := "\n".join(lines).strip("\n"):
            click.echo(fence_text("memory", body, "printed by yester"))
        return
    fitting = (screen.fit_line(line, app.width) for line in lines) if app.width else lines
    if app.width and app.pages and sys.stdin.isatty():
        screen.page_lines(fitting)
        return
    for line in fitting:
        click.echo(line)


def print_note(text: str) -> None:
    """Beside the answer: what is being done, or what to do next."""
    click.echo(screen.fit_line(text, screen.terminal_width(sys.stderr)), err=True)


def print_warning(text: str) -> None:
    print_note(f"yester: {text}")


def tell_progress(what: str, done: int, of: int) -> None:
    """Of something long, to whoever looks at a terminal."""
    if sys.stderr.isatty() and (of > 1 or not done):
        print_note(f"{what} {done}/{of}" if of > 1 else f"{what} …")


# --- what is typed, or stands in a file -----------------------------------------------------------


def read_source(source: str) -> str:
    """The text of a file, or of the standard input (-)."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise UsageError(f"{source} cannot be read ({error.strerror})") from None
    return data.decode("utf-8", "replace")


def read_id(text: str, fix: str = "`yester recall` shows them, e.g. #12") -> int:
    number = text.removeprefix("#")
    if not (number.isascii() and number.isdecimal()):
        raise UsageError(f"{text!r} is no id; {fix}")
    return int(number)


def read_secret(prompt: str, file: Path | None = None) -> str:
    """Never an argument: whoever lists processes would read it. Never a variable: a repository may
    set those."""
    if file is not None:
        return read_source(str(file))
    if sys.stdin.isatty():
        return str(click.prompt(prompt, hide_input=True))
    return sys.stdin.readline().rstrip("\r\n")


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
    screen.PATIENCE.end()
    # The stream behind the screen: a bar moves the cursor.
    with click.progressbar(length=total, label=label, file=sys.__stderr__) as bar:
        yield bar.update


# --- the commands ---------------------------------------------------------------------------------


class _Named(click.Command):
    """Says which other names it has."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        words = ctx.command_path.split()[1:] or [""]
        last = {words[-1], {"search": "recall", "recall": "search"}.get(words[-1], "")}
        paths = [[one] for one in COMMANDS if one in last]
        paths += [[group, one] for group, rows in GROUPS.items() for one in rows if one in last]
        others = [path for path in paths if path != words and find_command(path) is self]
        if others:
            formatter.write_paragraph()
            with formatter.indentation():
                names = ", ".join(f"`yester {' '.join(path)}`" for path in others)
                formatter.write_text(f"The same: {names}.")


class Command(_Named):
    """Says all that is wrong with a call at once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as first:
            faults = "\n".join(self._list_faults(ctx, given, first))
            room = max(screen.terminal_width(sys.stderr) - len("Error: "), 0)
            raise click.UsageError(screen.fit_line(faults, room), ctx) from None

    def _list_faults(
        self, ctx: click.Context, args: list[str], first: click.BadParameter
    ) -> Iterable[str]:
        found = [_join_lines(first)]
        values, rest, _ = self.make_parser(ctx).parse_args(args)
        for one in self.get_params(ctx):
            try:
                _, rest = one.handle_parse_result(ctx, values, rest)
            except click.BadParameter as error:
                found.append(_join_lines(error))
        return dict.fromkeys(found)


def _join_lines(error: click.BadParameter) -> str:
    """click writes what may be chosen below each other."""
    return " ".join(error.format_message().split())


class LazyGroup(_Named, click.Group):
    """Commands are imported when they are run; what they do in a line stands in the table."""

    def rows(self) -> Commands:
        return GROUPS[self.name or ""]

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.rows())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.rows():
            return None
        if cmd_name in ABOUT:
            return LazyGroup(cmd_name, help=ABOUT[cmd_name])
        module = vars(importlib.import_module(f"yester.faces.cli.{self.rows()[cmd_name][0]}"))
        name = f"{cmd_name.replace('-', '_')}_command"
        command: click.Command = module.get(f"{self.name}_{name}") or module[name]
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """By the table: what is offered need not be imported."""
        from click.shell_completion import CompletionItem

        rows = self.rows().items()
        found = [CompletionItem(name, help=row[1]) for name, row in rows]
        offered = [one for one in found if one.value.startswith(incomplete)]
        return [*offered, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name in self.rows() or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        alike = get_close_matches(name, self.rows(), 2, 0.6)
        meant = f"Did you mean {' or '.join(alike)}?" if alike else "Those there are: yester help"
        raise click.UsageError(f"There is no command {name!r}. {meant}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        write_commands(formatter, "Commands", self.rows())


def write_commands(
    formatter: click.HelpFormatter, heading: str, rows: Commands, width: int = 0
) -> None:
    with formatter.section(heading):
        formatter.write_dl([(f"{name:<{width}}", row[1]) for name, row in rows.items()])


def find_command(path: Sequence[str]) -> click.Command | None:
    found: click.Command | None = cli
    for word in path:
        if not isinstance(found, LazyGroup):
            return None
        found = found.get_command(click.Context(found), word)
    return found


def read_address(given: str) -> str:
    """Of a database: an address, or a file in which one stands, as it may hold a password."""
    from yester.files import read_bytes

    if not given or "://" in given:
        return given
    try:
        return read_bytes(Path(given)).decode().strip()
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"--database {given!r}: write postgresql://USER@HOST/DATABASE or a file that holds it;"
            " a folder is --home"
        ) from None


class _FrontPage(LazyGroup):
    def rows(self) -> Commands:
        return COMMANDS

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for heading, rows in SECTIONS.items():
            write_commands(formatter, heading, rows, width=9)
        formatter.write_paragraph()
        formatter.write_text(
            "More of a section: yester help ask. One command: yester help recall. "
            "Topics: yester help topics."
        )


@click.group(
    cls=_FrontPage, invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@partial(add_parameters, path="yester")
@click.version_option(__version__, "-V", "--version", prog_name="yester")
@click.pass_context
def cli(ctx: click.Context, home: Path | None, database: str, no_pager: bool) -> None:
    """Long-term memory for coding agents.

    Start with `yester install`, which lets your agents use it, and `yester index`, which reads the
    sessions they have already written down. Then ask: yester recall "why did we drop redis"
    """
    if database and ctx.invoked_subcommand in _BY_HOME:
        raise UsageError(
            f"yester {ctx.invoked_subcommand} goes by the file `database` in yester's folder, not"
            " by --database; `yester move --to URL --use` writes it"
        )
    ctx.obj = App(home, pages=not no_pager, database=read_address(database))
    if ctx.invoked_subcommand is None:
        from yester.faces.cli.stats import show_welcome

        _print_output(ctx.obj, show_welcome(ctx.obj), as_json=False, fenced=True)


def main() -> None:
    with screen.screen_streams():
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
    except (click.Abort, KeyboardInterrupt) as stop:
        code, said = 130, str(stop) or "stopped"
    except YesterError as error:
        code, said = error.exit_code, str(error)
    except BrokenPipeError:
        # The reader has had enough: no failure, and no complaint when stdout is closed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None and error.errno != EMFILE:
            raise
        fix = "make sure that you may read and write it, and that there is room"
        if error.errno == EISDIR:
            fix = "a file of ours belongs there: move that folder away"
        said = f"{error.filename}: {error.strerror}; {fix}"
        code, said = 3, TOO_MANY_FILES if error.errno == EMFILE else said
    print(screen.fit_line(f"yester: {said}", screen.terminal_width(sys.stderr)), file=sys.stderr)  # noqa: T201
    return code


def _run() -> int:
    """Not `cli.main()`: it makes a failure of a closed pipe before we could see it."""
    if instruction := os.environ.get("_YESTER_COMPLETE"):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "yester", "_YESTER_COMPLETE", instruction)
    with cli.make_context("yester", sys.argv[1:]) as context:
        cli.invoke(context)
    return 0
