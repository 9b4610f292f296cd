"""`yester memory history`: who changed what, when and why."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from yester.clock import format_minute
from yester.faces.cli.app import App, fenced_for_agents, pass_app, print_json
from yester.faces.cli.memory.said import form_options
from yester.memories.lifecycle import find_memory
from yester.model import Change
from yester.text.sentences import find_snippet


@click.command("history")
@click.argument("memory", required=False)
@click.option("--limit", "-n", type=click.IntRange(1), default=20, show_default=True,
              help="At most so many changes.")  # fmt: skip
@form_options("index")
@pass_app
@fenced_for_agents
def command(app: App, memory: str | None, limit: int, form: str, as_json_: bool) -> None:
    """Show the changes of MEMORY, or of all memories, the newest first."""
    item = find_memory(app.reading, memory).item.id if memory else 0
    changes = app.reading.changes(item, limit=limit)
    if as_json_:
        print_json({"changes": [_row(change) for change in changes]})
    for change in changes if not as_json_ else ():
        why = f"  ({change.why})" if change.why else ""
        when = format_minute(change.epoch)
        click.echo(f"{when}  #{change.item}  {change.what}  by {change.who}{why}")
        for name, value in change.after.items() if change.before is not None else ():
            before = change.before.get(name) if change.before else None
            if name == "said":
                before, value = format_minute(before or 0), format_minute(value)
            click.echo(f"    {name}: {_shown(before, form)} → {_shown(value, form)}")
    if not changes:
        if not as_json_:
            click.echo("No changes.", err=True)
        click.get_current_context().exit(1)


def _row(change: Change) -> dict[str, Any]:
    return {
        "id": change.id, "act": change.act, "memory": change.item, "epoch": change.epoch / 1000,
        "who": change.who, "what": change.what, "why": change.why, "before": change.before,
        "after": change.after,
    }  # fmt: skip


def _shown(value: object, form: str) -> str:
    text = msgspec.json.encode(value).decode()
    return text if form == "full" else find_snippet(text, (), 80)
