"""`yester restore`: bring a backup back."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, pass_app
from yester.faces.cli.worker import end
from yester.operate import backups
from yester.worker.process import take_seat


@click.command("restore")
@click.argument("backup")
@pass_app
def command(app: App, backup: str) -> None:
    """Put BACKUP (a file, a name from `yester backup --list`, or "latest") in the store's place.

    The backup is checked first, and the present store is moved aside, not deleted.
    """
    with backups.checked_copy(app.home, backup, app.now) as (path, copy):
        if end(app):  # what it has in hand belongs to the former store
            click.echo("the worker has ended; the next session starts it again", err=True)
        free = take_seat(app.home, 1.0)
        try:
            aside = backups.put_in_place(app.home, copy, app.now)
        finally:
            if free is not None:
                free.leave()
    click.echo(f"restored {path}")
    if aside:
        click.echo(f"the former store is now {aside}")
