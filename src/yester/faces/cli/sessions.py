"""`yester sessions`: the sessions there are."""

from __future__ import annotations

from typing import Any

import click

from yester.clock import format_minute
from yester.deliver.lines import one_line, quote_text
from yester.faces.cli.app import (
    App,
    count,
    fenced_for_agents,
    filters,
    pass_app,
    print_json,
    session_options,
)
from yester.model import Paging, Session
from yester.redact import redact


@click.command("sessions")
@session_options
@click.option("--limit", "-n", type=click.IntRange(1, 10_000), default=20, show_default=True)
@click.option("--offset", type=click.IntRange(0), default=0, help="Leave out the first ones.")
@click.option("--format", "form", type=click.Choice(["index", "full"]), default="index",
              show_default=True, help="A line per session, or everything.")  # fmt: skip
@click.option("--json", "as_json_", is_flag=True, help="Print the sessions as JSON.")
@pass_app
@fenced_for_agents
def command(app: App, /, limit: int, offset: int, form: str, as_json_: bool, **given: Any) -> None:
    """List sessions, newest first. JSON always tells everything."""
    found = app.reading.sessions(filters(app, given), Paging(limit, offset))
    if as_json_:
        print_json({"sessions": [_as_json(app, session) for session in found]})
    for number, session in enumerate(found if not as_json_ else ()):
        if form == "index":
            click.echo(line(app, session))
        else:
            click.echo(("\n" if number else "") + _whole(app, session))
    if not found:
        if not as_json_:
            click.echo("No sessions. Run: yester index", err=True)
        click.get_current_context().exit(1)


def line(app: App, session: Session) -> str:
    name = app.names.get(session.project, session.project)
    size = f"{count(session.prompts, 'prompt')}, {count(session.items, 'item')}"
    begun = format_minute(session.started)
    return f"{session.key[:8]}  {begun}  {name}  {size}  {_title(app, session)}"


def _title(app: App, session: Session) -> str:
    title = redact(session.title)
    return quote_text(one_line(title, 200)) if app.read_by_agent and title else title


def _whole(app: App, session: Session) -> str:
    """A heading, and under it what is known; what is not known has no line."""
    facts = {
        "title": _title(app, session), "agent": session.agent,
        "project": app.names.get(session.project, session.project),
        "time": f"{format_minute(session.started)} to {format_minute(session.ended)}",
        "size": f"{count(session.prompts, 'prompt')}, {count(session.items, 'item')}",
        "folder": session.cwd, "branch": session.branch, "transcript": session.transcript,
    }  # fmt: skip
    if app.read_by_agent:
        facts = {name: one_line(value, 300) for name, value in facts.items()}
    told = [f"  {name:<10}  {value}" for name, value in facts.items() if value]
    return "\n".join([click.style(f"session {session.key}", bold=True), *told])


def _as_json(app: App, session: Session) -> dict[str, Any]:
    return {
        "session": session.key, "agent": session.agent,
        "project": app.names.get(session.project, session.project),
        "started": session.started / 1000, "ended": session.ended / 1000, "cwd": session.cwd,
        "branch": session.branch, "title": redact(session.title), "transcript": session.transcript,
        "prompts": session.prompts, "items": session.items,
    }  # fmt: skip
