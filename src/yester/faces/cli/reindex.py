"""`yester reindex`: build the index anew."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, count, pass_app
from yester.store import maintenance_of


@click.command("reindex")
@pass_app
def command(app: App) -> None:
    """Build the search index anew from the stored items.

    Nothing is lost whatever happens to it: the items stay untouched, and until the new index is
    complete the old one stays in place.
    """
    with app.store.transaction("index"):
        number = maintenance_of(app.store).reindex()
    click.echo(f"{count(number, 'item')} indexed anew")
