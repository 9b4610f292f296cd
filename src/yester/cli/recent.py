"""`yester recent`: what happened last."""

from __future__ import annotations

from typing import Any

import click

from yester.cli.app import App, filters, pass_app, print_json, session_options
from yester.cli.rows import ICONS, as_json, print_full, title
from yester.cli.sessions import line
from yester.model import Filters
from yester.recall.recall import hit
from yester.redact import redact

# What tells a session's story: not every message of it.
_KINDS = ("prompt", "note", "summary", "observation", "memory")


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
def command(app: App, /, limit: int, rows: int, form: str, as_json_: bool, **given: Any) -> None:
    """Show the last sessions with their prompts, plans, todo lists and summaries."""
    sessions = app.reading.sessions(filters(app, given), limit)
    if not sessions:
        if as_json_:
            print_json({"sessions": []})
        else:
            click.echo("No sessions. Run: yester index", err=True)
        click.get_current_context().exit(1)
    answer = []
    for number, session in enumerate(sessions):
        chosen = Filters(projects=(session.project,), kinds=_KINDS, session=session.key)
        hits = [hit(item, app.names) for item in reversed(app.reading.newest(chosen, rows))]
        if as_json_:
            answer.append({
                "session": session.key, "title": redact(session.title),
                "started": session.started / 1000,
                "project": app.names.get(session.project, session.project),
                "hits": [as_json(one, (), form == "full") for one in hits],
            })  # fmt: skip
            continue
        click.echo(("\n" if number else "") + click.style(line(app, session), bold=True))
        if form == "full":
            print_full(app, hits)
        for one in hits if form == "index" else ():
            click.echo(f"  {ICONS.get(one.kind, '·')} #{one.id}  {title(one, ())}")
    if as_json_:
        print_json({"sessions": answer})
