"""`yester recent`: what happened last."""

from __future__ import annotations

from typing import Any

import click

from yester.clock import format_minute
from yester.deliver.lines import item_icon
from yester.faces.cli.app import (
    App,
    fenced_for_agents,
    filters,
    pass_app,
    print_json,
    session_options,
)
from yester.faces.cli.rows import as_json, print_full, title
from yester.faces.cli.sessions import line
from yester.recall.timeline import recent_sessions
from yester.text.document import reading_cost


@click.command("recent")
@session_options
@click.option("--limit", "-n", type=click.IntRange(1, 100), default=3, show_default=True,
              help="How many sessions.")  # fmt: skip
@click.option("--rows", type=click.IntRange(1, 1000), default=12, show_default=True,
              help="How many rows of each.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["index", "full"]), default="index",
              show_default=True, help="A line per item, or everything.")  # fmt: skip
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
@fenced_for_agents
def command(app: App, /, limit: int, rows: int, form: str, as_json_: bool, **given: Any) -> None:
    """Show the last sessions: summary, prompts and closing message, and what they left behind.

    A summary speaks for the prompts before it.
    """
    sessions = recent_sessions(app.reading, filters(app, given), limit, rows)
    if not sessions:
        if as_json_:
            print_json({"sessions": []})
        else:
            click.echo("No sessions. Run: yester index", err=True)
        click.get_current_context().exit(1)
    answer = []
    for number, (session, hits) in enumerate(sessions):
        if as_json_:
            answer.append({
                "session": session.key, "title": session.title,
                "started": session.started / 1000, "project": session.project,
                "hits": [as_json(one, (), form == "full") for one in hits],
            })  # fmt: skip
            continue
        click.echo(("\n" if number else "") + click.style(line(app, session), bold=True))
        if form == "full":
            print_full(app, hits)
        for one in hits if form == "index" else ():
            click.echo(
                f"  {item_icon(one.kind, one.type)} #{one.id}"
                f"  {format_minute(int(one.epoch * 1000))}"
                f"  {title(app, one, ())}  ~{reading_cost(one)}t"
            )
    if as_json_:
        print_json({"sessions": answer})
