"""`yester memory undo`: take back the last change."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, pass_app, print_json
from yester.faces.cli.memory.said import by, done, row, why_option
from yester.memories import lifecycle


@click.command("undo")
@click.argument("memory", required=False)
@why_option
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, memory: str | None, why: str, as_json_: bool) -> None:
    """Undo the last change of MEMORY, or the last change of any; undoing twice redoes it.

    What was just remembered is retired again; what it replaced is back.
    """
    id_ = lifecycle.find_memory(app.store, memory).item.id if memory else 0
    memos = lifecycle.undo_change(app.store, by(app, why), id_)
    if as_json_:
        print_json({"done": "undone", "hits": [row(app, memo) for memo in memos]})
        return
    for memo in memos:
        done(app, memo, "undone", False)
