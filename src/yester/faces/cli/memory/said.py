"""What the commands about memories share: who speaks, where, and memories on the screen."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from yester.agents.descriptors import detect_agent
from yester.clock import format_minute
from yester.deliver.lines import clean_text, item_icon, one_line, quote_lines, quote_text
from yester.errors import NotFound, UsageError
from yester.faces.cli.app import App, filters, print_json
from yester.faces.cli.rows import as_json
from yester.memories.categories import category_of
from yester.memories.content import Content, lead_text
from yester.memories.lifecycle import GRACE, list_predecessors, list_successors
from yester.memories.memory import GLOBAL, Author
from yester.model import Filters, Memo, Project
from yester.project import EXCLUDED, Projects
from yester.recall.recall import make_hit
from yester.text.sentences import find_snippet

F = TypeVar("F", bound=Callable[..., Any])


def by(app: App, why: str = "") -> Author:
    """Who gives this command: the user, or the agent whose shell this is."""
    if agent := detect_agent(os.environ):  # it may remember, but not speak for its user
        return Author(agent, app.now, "agent", why)
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name
        who = "user"
    return Author(who, app.now, "user", why)


def here(
    app: App, name: str | None = None, folder: Path | None = None, instead: str = "--global, or "
) -> Project:
    """The project of this name, else of the folder (by default the current one)."""
    if name is None:
        from yester.capture.rules import rules

        place = folder or Path.cwd()
        found = Projects(app.config.projects, refuses=rules(app.config).excludes).by_folder(
            str(place)
        )
        if found.key == EXCLUDED.key:
            raise UsageError(
                f"{place} is excluded (setting `exclude`), so nothing is kept of it; "
                f"say {instead}--project NAME"
            )
        return found
    for project in app.reading.projects():
        if name in (project.name, project.key):
            return project
    filters(app, {"projects": (name,)})  # says which ones there are
    raise NotFound(f"no project is called {name!r}; nothing is stored yet")


def with_global(chosen: Filters, given: Mapping[str, Any]) -> Filters:
    """Where the current project was meant without being named, what holds everywhere as well."""
    if chosen.projects and not given.get("projects"):
        return replace(chosen, projects=(*chosen.projects, GLOBAL.key))
    return chosen


def why_option(command: F) -> F:
    return click.option("--why", default="", metavar="TEXT", help="The reason, for the history.")(
        command
    )


def form_options(default: str) -> Callable[[F], F]:
    def options(command: F) -> F:
        command = click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")(command)
        return click.option(
            "--format", "form", type=click.Choice(["index", "full"]), default=default,
            show_default=True, help="A line per memory, or everything.",
        )(command)  # fmt: skip

    return options


# --- on the screen -----------------------------------------------------------------------------


def row(app: App, memo: Memo, full: bool = True) -> dict[str, Any]:
    item = memo.item
    return as_json(make_hit(item, app.names), (), full) | {
        "slug": memo.slug, "scope": memo.scope, "path": memo.path, "status": item.status,
        "tags": item.tags, "files": item.files, "confidence": item.confidence,
        "origin": item.origin, "trust": item.trust, "updated": item.updated / 1000,
        "version": memo.version, "since": memo.since / 1000, "reason": memo.reason,
        "supersedes": item.supersedes, "content": memo.content,
    }  # fmt: skip


def show(app: App, memos: Sequence[Memo], form: str, json: bool, query: str = "") -> None:
    if json:
        rows = [row(app, memo, form == "full") for memo in memos]
        print_json({"query": query, "hits": rows, "took_ms": 0})
    elif form == "full":
        for number, memo in enumerate(memos):
            whole = "\n".join(page(app, memo))
            if app.read_by_agent:
                whole = f"#{memo.item.id}\n{quote_lines(clean_text(whole))}"
            click.echo(("\n" + "─" * 72 + "\n" if number else "") + whole)
    else:
        for project, group in _by_project(memos):
            click.echo(click.style(app.names.get(project, project), bold=True))
            for memo in group:
                click.echo(f"  {line(app, memo)}")


def _by_project(memos: Iterable[Memo]) -> Iterable[tuple[str, list[Memo]]]:
    groups: dict[str, list[Memo]] = {}
    for memo in memos:
        groups.setdefault(memo.item.project, []).append(memo)
    return groups.items()


def line(app: App, memo: Memo) -> str:
    item = memo.item
    more = [f"[{', '.join(item.tags)}]" if item.tags else "", memo.path, _state(memo)]
    if item.supersedes:
        more.append(f"replaces #{item.supersedes}")
    title = item.title or find_snippet(item.body, (), 100)
    if app.read_by_agent:
        title, more = quote_text(one_line(title, 200)), [one_line(one, 200) for one in more]
    told = "  ".join(filter(None, more))
    sign = item_icon(item.kind, item.type)
    return f"{sign} #{item.id}  {format_minute(item.epoch)}  {item.type}  {title}  {told}"


def _state(memo: Memo) -> str:
    status = memo.item.status
    if status == "active":
        return ""
    told = f"{status} {format_minute(memo.since)}"
    if status == "retired":
        told += f", may go after {format_minute(memo.since + GRACE)}"
    return f"({told}{': ' + memo.reason if memo.reason else ''})"


def page(app: App, memo: Memo) -> list[str]:
    """Everything there is of a memory."""
    item = memo.item
    facts = [app.names.get(item.project, item.project), item.type, memo.slug]
    where = {"path": f"for {memo.path}", "global": "holds everywhere"}.get(memo.scope, "")
    lines = [click.style(f"#{item.id}  ", bold=True) + " · ".join(filter(None, (*facts, where)))]
    if state := _state(memo):
        lines.append(state.strip("()"))
    lines += ["", click.style(item.title, bold=True), *_content(memo), ""]
    if item.tags:
        lines.append(f"tags        {', '.join(item.tags)}")
    if item.files:
        lines.append(f"files       {', '.join(item.files)}")
    lines.append(
        f"told        by {item.origin} {format_minute(item.epoch)}, trust {item.trust:g}, "
        f"confidence {item.confidence:g}"
    )
    if memo.version > 1:
        lines.append(f"changed     {format_minute(item.updated)}, version {memo.version}")
    lines += [f"replaces    {line(app, one)}" for one in list_predecessors(app.reading, memo)]
    latest = next(reversed(list_successors(app.reading, memo)), memo)
    if latest.item.id != item.id:
        lines.append(f"replaced by {line(app, latest)}")
    return lines


def _content(memo: Memo) -> list[str]:
    """Field by field; what is said by the title alone is not said again."""
    kind = category_of(memo.item.type)
    if not lead_text(kind, memo.content):
        return ["", memo.item.body]
    lines: list[str] = []
    for field in kind.fields:
        value = memo.content.get(field.name)
        if value in (None, [], {}) or (field.name == kind.text and value == memo.item.title):
            continue
        lines += ["", *_field(field.name, value)]
    return lines


def _field(name: str, value: object) -> list[str]:
    label = name.replace("_", " ")
    match value:
        case bool():
            return [f"{label}: {'yes' if value else 'no'}"]
        case list():
            return [f"{label}:", *(f"- {_told(one)}" for one in value)]
        case dict():
            return [text for part, inner in value.items() for text in _field(part, inner)]
    return [f"{label}: {value}"]


def _told(value: object) -> str:
    return ": ".join(map(str, value.values())) if isinstance(value, dict) else str(value)


def done(app: App, memo: Memo, what: str, json: bool, more: Content | None = None) -> None:
    """What a change has made of a memory, in a line."""
    if json:
        print_json({"done": what, **row(app, memo), **(more or {})})
    else:
        click.echo(f"{what} {line(app, memo)}")
