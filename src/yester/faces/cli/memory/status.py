"""`yester memory retire|archive|restore`: another status."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, pass_app
from yester.faces.cli.memory.said import by, done, why_option
from yester.memories import lifecycle


@click.command("retire")
@click.argument("memories", nargs=-1, required=True, metavar="MEMORY...")
@click.option("--force", is_flag=True, help="Also what is otherwise never deleted: a decision, a "
              "preference, a session's summary.")  # fmt: skip
@why_option
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def retire(app: App, memories: tuple[str, ...], force: bool, why: str, as_json_: bool) -> None:
    """Take memories out of use. After 30 days `yester memory gc` lets them go."""
    for name in memories:
        memo = lifecycle.find_memory(app.store, name)
        new = lifecycle.change_status(app.store, memo.item.id, "retire", by(app, why), force=force)
        done(app, new, "retired", as_json_)


@click.command("archive")
@click.argument("memories", nargs=-1, required=True, metavar="MEMORY...")
@why_option
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def archive(app: App, memories: tuple[str, ...], why: str, as_json_: bool) -> None:
    """Put memories away: never found or shown any more, and never let go."""
    for name in memories:
        memo = lifecycle.find_memory(app.store, name)
        new = lifecycle.change_status(app.store, memo.item.id, "archive", by(app, why))
        done(app, new, "archived", as_json_)


@click.command("restore")
@click.argument("memories", nargs=-1, required=True, metavar="MEMORY...")
@why_option
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def restore(app: App, memories: tuple[str, ...], why: str, as_json_: bool) -> None:
    """Bring retired or archived memories back into use."""
    for name in memories:
        memo = lifecycle.find_memory(app.store, name)
        new = lifecycle.change_status(app.store, memo.item.id, "restore", by(app, why))
        done(app, new, "restored", as_json_)
