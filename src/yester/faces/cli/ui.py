"""`yester ui`: open the viewer."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, pass_app
from yester.faces.cli.memory.said import by
from yester.faces.cli.serve import start


@click.command("ui")
@click.option("--print", "only_print", is_flag=True, help="Print the link; open nothing.")
@pass_app
def command(app: App, only_print: bool) -> None:
    """Open the viewer in a browser, starting the server where it is not running.

    The link holds a code that is good for one use within a minute; the browser exchanges it for a
    token of its own, which ends with the server. Where there is no terminal it is printed alone.
    Changes made in the viewer are yours; opened from an agent's shell, they count as the agent's,
    which can neither make nor change rules.
    """
    port = start(app)
    from yester.faces.http.login import new_code

    link = f"http://127.0.0.1:{port}/#code={new_code(app.home, by(app).origin)}"
    click.echo(link)
    if app.terminal and not only_print:
        import webbrowser

        webbrowser.open(link)
