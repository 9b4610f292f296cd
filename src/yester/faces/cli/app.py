"""What every command shares: the home folder, its settings, the opened memory, and printing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from yester.errors import UsageError, YesterError
from yester.memory import Memory

if TYPE_CHECKING:
    from yester.config import Config
    from yester.memories.memory import Author
    from yester.model import Project
    from yester.store.contract import Store

F = TypeVar("F", bound=Callable[..., Any])


class App:
    def __init__(self, home: Path | None) -> None:
        self._home = home
        self.records = True  # not in a dry run: nothing is written then
        self.now = int(time.time() * 1000)

    @property
    def named_home(self) -> str | None:
        """The home as the caller named it; None: not at all."""
        return None if self._home is None else str(self._home)

    @cached_property
    def home(self) -> Path:
        from yester.capture.homes import home_folder

        home = home_folder(self._home, os.environ, Path.cwd(), self.agent != "")
        self._record(home)
        return home

    def _record(self, home: Path) -> None:
        """From now on hooks may use this home, as the user does; an agent's word is not enough."""
        from yester.capture.homes import record_home

        if self.records and not self.agent:
            record_home(home, os.environ, sys.executable)

    @cached_property
    def memory(self) -> Memory:
        memory = Memory(self.home, os.environ, cwd=str(Path.cwd()), who="cli")
        for warning in memory.config.warnings:
            print_warning(warning)
        click.get_current_context().call_on_close(memory.close)
        return memory

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
        self._record(self.home)  # it may have been made only now
        write_launch(self.home)
        write_hook_rules(self.home, load_rules(self.config))
        return store

    @property
    def reading(self) -> Store:
        return self.memory.reading

    @property
    def terminal(self) -> bool:
        return sys.stdout.isatty()

    @cached_property
    def agent(self) -> str:
        """The agent whose shell this is; "" for a person."""
        from yester.agents.descriptors import detect_agent

        return detect_agent(os.environ)

    @cached_property
    def read_by_agent(self) -> bool:
        """Does an agent read what is printed, as it reads everything else?"""
        return not self.terminal and self.agent != ""

    @cached_property
    def names(self) -> dict[str, str]:
        """project key → readable name"""
        return self.memory.project_names()

    def by(self, why: str = "") -> Author:
        """Who gives this command: the user, or the agent whose shell this is."""
        from yester.memories.memory import Author

        if self.agent:  # it may remember, but not speak for its user
            return Author(self.agent, self.now, "agent", why)
        import getpass

        try:
            who = getpass.getuser()
        except (KeyError, OSError):  # a user id without a name
            who = "user"
        return Author(who, self.now, "user", why)

    def find_project(
        self, name: str | None, folder: Path | None = None, instead: str = "--global, or "
    ) -> Project:
        """The project of this name, else of the folder (by default the current one)."""
        if name is not None:
            return self.memory.find_project(name)
        from yester.capture.rules import load_rules
        from yester.project import EXCLUDED, Projects

        place = folder or Path.cwd()
        found = Projects(self.config.projects, refuses=load_rules(self.config).excludes).by_folder(
            str(place)
        )
        if found.key == EXCLUDED.key:
            raise UsageError(
                f"{place} is excluded (setting `exclude`), so nothing is kept of it; "
                f"say {instead}--project NAME"
            )
        return found

    def claude_folders(self) -> list[Path]:
        return [Path(text).expanduser() for text in self.config.texts("claude_code_dirs")]


pass_app = click.make_pass_decorator(App)


class Several(tuple[object, ...]):
    """Values that are printed one by one, each on a line of its own."""

    __slots__ = ()


class Output(NamedTuple):
    """What a command answers: a value for programs, lines for people, made when they are read.

    Where there is `nothing` to show, that is said to people, and the exit code is 1; an `error` is
    raised when the rest has been printed.
    """

    value: object
    lines: Iterable[str] = ()
    nothing: str = ""
    code: int = 0
    error: YesterError | None = None


def command(
    name: str,
    *options: Callable[[Any], Any],
    fenced: bool = False,
    group: click.Group | None = None,
) -> Callable[[Callable[..., Output]], click.Command]:
    """A command with these arguments and options that answers for people or, with --json, for
    programs. What is `fenced` stands in the fence where an agent reads it: it is memory."""

    def decorate(answer: Callable[..., Output]) -> click.Command:
        @wraps(answer)
        def run(app: App, /, as_json: bool, **given: Any) -> None:
            output = answer(app, **given)
            if as_json:
                values = output.value if isinstance(output.value, Several) else (output.value,)
                for value in values:
                    click.echo(render_json(value))
            else:
                _print_lines(app, output.lines, fenced)
            if output.error is not None:
                raise output.error
            if output.nothing and not as_json:
                click.echo(output.nothing, err=True)
            if output.nothing or output.code:
                click.get_current_context().exit(output.code or 1)

        as_json = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
        made = click.command(name)(add_options(*options, as_json)(pass_app(run)))
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def add_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Decorates a command with arguments and options, in the order of its help page."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


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


def make_bold(text: str) -> str:
    return click.style(text, bold=True)


# --- long runs ------------------------------------------------------------------------------------


@contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """SIGTERM ends a run like Ctrl-C does: the batch at hand is still written."""
    import signal

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


@contextmanager
def progress_bar(label: str, total: int, in_bytes: bool = False) -> Iterator[Callable[[int], None]]:
    """A bar with the time left on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty() or not total:
        yield lambda _: None
        return
    from rich import progress
    from rich.console import Console

    counting = (
        (progress.DownloadColumn(), progress.TransferSpeedColumn())
        if in_bytes
        else (progress.MofNCompleteColumn(),)
    )
    columns = (
        progress.TextColumn(label), progress.BarColumn(), *counting, progress.TimeRemainingColumn()
    )  # fmt: skip
    # The stream behind the screen: a bar moves the cursor.
    console = Console(file=sys.__stderr__)
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)
