"""`yester memory gc`: what has had its time."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, pass_app, print_json
from yester.faces.cli.memory.said import line
from yester.memories.lifecycle import collect_due, find_due, parse_retention

_WOULD = {"retire": "would retire", "archive": "would archive", "drop": "would let go"}
_DONE = {"retire": "retired", "archive": "archived", "drop": "let go"}


@click.command("gc")
@click.option("--apply", "really", is_flag=True, help="Do it; without this it is only shown.")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, really: bool, as_json_: bool) -> None:
    """Let go of what was retired more than 30 days ago, and apply your rules of [retention].

    Without --apply nothing is changed. Nothing goes that was not retired: by you, by a memory file
    you have synced, or by a rule in config.toml. Exit code 1 when nothing is due.
    """
    chosen = parse_retention(app.config.retention)
    found = (
        collect_due(app.store, chosen, app.now)
        if really
        else list(find_due(app.reading, chosen, app.now))
    )
    told = _DONE if really else _WOULD
    if as_json_:
        rows = [
            {"id": one.memo.item.id, "slug": one.memo.slug, "type": one.memo.item.type,
             "title": one.memo.item.title, "what": one.what, "why": one.why}
            for one in found
        ]  # fmt: skip
        print_json({"applied": really, "due": rows})
    for one in found if not as_json_ else ():
        click.echo(f"{told[one.what]} {line(app, one.memo)}\n    {one.why}")
    if not found:
        if not as_json_:
            click.echo("Nothing is due.", err=True)
        click.get_current_context().exit(1)
    if not really and not as_json_:
        click.echo("Nothing has been changed. To do it: yester memory gc --apply", err=True)
