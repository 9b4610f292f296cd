"""`yester backup`: a copy of the store."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, pass_app
from yester.operate import backups


@click.command("backup")
@click.option("--list", "listing", is_flag=True, help="Show the backups there are.")
@pass_app
def command(app: App, listing: bool) -> None:
    """Copy the store to `backups/`; the oldest beyond the setting `backups_kept` are let go."""
    if not listing:
        click.echo(
            backups.make_backup(app.store, app.home, app.config.number("backups_kept"), app.now)
        )
        return
    found = backups.list_backups(app.home)
    for path in found:
        click.echo(f"{path.name}  {path.stat().st_size / 1e6:,.1f} MB")
    if not found:
        click.echo("No backups. Make one: yester backup", err=True)
        click.get_current_context().exit(1)
