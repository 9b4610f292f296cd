"""`yester memory show`: memories whole."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, fenced_for_agents, pass_app
from yester.faces.cli.memory.said import form_options, show
from yester.memories.lifecycle import find_memory


@click.command("show")
@click.argument("memories", nargs=-1, required=True, metavar="MEMORY...")
@form_options("full")
@pass_app
@fenced_for_agents
def command(app: App, memories: tuple[str, ...], form: str, as_json_: bool) -> None:
    """Show memories with all their fields, whatever their status, and what they replace."""
    show(
        app,
        [find_memory(app.reading, name) for name in memories],
        form,
        as_json_,
        " ".join(memories),
    )
