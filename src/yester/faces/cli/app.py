"""What every command shares: the home folder, its settings, the open store, the clock, printing."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cached_property, wraps
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec

from yester.capture.homes import home_folder, record_home
from yester.clock import parse_time
from yester.config import Config
from yester.errors import UsageError
from yester.memory import Memory
from yester.model import KINDS, Filters

if TYPE_CHECKING:
    from yester.store.contract import Store

_PATIENCE = 0.15  # seconds for git; what is late is left out
F = TypeVar("F", bound=Callable[..., Any])


class App:
    def __init__(self, home: Path | None) -> None:
        self._home = home
        self.records = True  # not in a dry run: nothing is written then
        self.now = int(time.time() * 1000)

    @property
    def given(self) -> str | None:
        """The home as the caller named it; None: not at all."""
        return None if self._home is None else str(self._home)

    @cached_property
    def home(self) -> Path:
        home = home_folder(self._home, os.environ, Path.cwd(), self.inside_agent)
        self._record(home)
        return home

    def _record(self, home: Path) -> None:
        """From now on hooks may use this home, as the user does; an agent's word is not enough."""
        if self.records and not self.inside_agent:
            record_home(home, os.environ, sys.executable)

    @cached_property
    def memory(self) -> Memory:
        memory = Memory(self.home, os.environ, cwd=str(Path.cwd()), who="cli")
        for warning in memory.config.warnings:
            click.echo(f"yester: {warning}", err=True)
        click.get_current_context().call_on_close(memory.close)
        return memory

    @property
    def config(self) -> Config:
        return self.memory.config

    @cached_property
    def store(self) -> Store:
        from yester.capture.rules import rules, write_for_hooks
        from yester.worker.process import write_launch

        store = self.memory.store
        self._record(self.home)  # it may have been made only now
        write_launch(self.home)  # from now on a session can start the worker
        write_for_hooks(self.home, rules(self.config))
        return store

    @property
    def reading(self) -> Store:
        """The store to read from. Reading makes nothing: where there is none, an empty one."""
        return self.store if self.memory.exists() else self.memory.reading

    @property
    def terminal(self) -> bool:
        return sys.stdout.isatty()

    @cached_property
    def read_by_agent(self) -> bool:
        """Is this an agent's shell? It reads what is printed as it reads everything else."""
        return not self.terminal and self.inside_agent

    @cached_property
    def inside_agent(self) -> bool:
        from yester.agents.descriptors import detect_agent

        return detect_agent(os.environ) != ""

    @cached_property
    def names(self) -> Mapping[str, str]:
        """project key → readable name"""
        return self.memory.project_names()

    def parse_time(self, text: str | None, option: str) -> int | None:
        return None if text is None else parse_time(text, self.now, option=option)


pass_app = click.make_pass_decorator(App)


def fenced_for_agents(command: F) -> F:
    """What a command prints of the memory stands in the fence where an agent reads it; JSON is for
    programs and stays as it is. Goes under `pass_app`."""

    @wraps(command)
    def reading(app: App, /, *args: Any, **given: Any) -> Any:
        if given.get("as_json_") or not app.read_by_agent:
            return command(app, *args, **given)
        from yester.fence import fence_text

        printed = StringIO()
        try:
            with redirect_stdout(printed):
                return command(app, *args, **given)
        finally:
            if body := printed.getvalue().strip("\n"):
                click.echo(fence_text("memory", body, "printed by yester"))

    return cast(F, reading)


def count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def print_json(value: object) -> None:
    from yester.fence import escape_hidden

    click.echo(escape_hidden(msgspec.json.encode(value).decode()))


def _with(command: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):  # click shows the last one applied first
        command = option(command)
    return command


def filter_options(command: F) -> F:
    """The filters every reading command takes."""
    options = (
        click.option("--project", "-p", "projects", multiple=True, metavar="NAME",
                     help="Only this project (repeatable)."),
        click.option("--all-projects", "everywhere", is_flag=True, help="All projects."),
        click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS),
                     help="Only this kind (repeatable)."),
        click.option("--type", "types", multiple=True, metavar="TYPE",
                     help="Only this type, e.g. plan or compact (repeatable)."),
        click.option("--concept", "concepts", multiple=True, metavar="NAME",
                     help="Only items with this concept (repeatable)."),
        click.option("--file", "files", multiple=True, metavar="PATH",
                     help="Only items about this file; the end of a path will do (repeatable)."),
        click.option("--session", metavar="ID",
                     help="Only this session; 6 characters of its id will do."),
        click.option("--agent", metavar="NAME", help="Only this agent, e.g. claude-code."),
        click.option("--tool", metavar="NAME", help="Only calls of this tool, e.g. Bash."),
        click.option("--since", metavar="WHEN",
                     help="Not older than 1h, 3d, 1w, 2m, today, yesterday, a date, an ISO time."),
        click.option("--until", metavar="WHEN", help="Older than this."),
    )  # fmt: skip
    return _with(command, options)


def session_options(command: F) -> F:
    """The filters of commands that list sessions."""
    options = (
        click.option("--project", "-p", "projects", multiple=True, metavar="NAME",
                     help="Only this project (repeatable)."),
        click.option("--agent", metavar="NAME", help="Only this agent, e.g. claude-code."),
        click.option("--since", metavar="WHEN",
                     help="Still going on then: 1h, 3d, 1w, today, a date …"),
        click.option("--until", metavar="WHEN", help="Begun before then."),
    )  # fmt: skip
    return _with(command, options)


def searched(app: App, given: Mapping[str, Any], query: str) -> Filters:
    """The filters of a question. One that names no project means all of them or, where the user has
    set `cross_project` to false, that of the current folder."""
    if given["everywhere"] and given["projects"]:
        raise UsageError("--project and --all-projects exclude each other; leave out one of them")
    chosen = filters(app, given)
    return chosen if given["everywhere"] else app.memory.narrow_filters(chosen, query)


def filters(app: App, given: Mapping[str, Any]) -> Filters:
    for name in given.get("projects", ()):
        if app.memory.exists():
            app.memory.find_project(name)
    return Filters(
        projects=given.get("projects", ()),
        kinds=given.get("kinds", ()),
        types=given.get("types", ()),
        concepts=given.get("concepts", ()),
        files=given.get("files", ()),
        session=given.get("session") or "",
        agent=given.get("agent") or "",
        tool=given.get("tool") or "",
        since=app.parse_time(given.get("since"), "--since"),
        until=app.parse_time(given.get("until"), "--until"),
    )
