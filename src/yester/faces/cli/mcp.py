"""`yester mcp`: the MCP server. Called plainly, `yester.__main__` answers without coming here."""

from __future__ import annotations

import click

from yester.faces.cli.app import App, pass_app


@click.command("mcp")
@pass_app
def command(app: App) -> None:
    """Be an MCP server on standard input and output, for an agent to start.

    Tools: search, timeline, get_observations, save_memory. It needs no worker, but asks one that
    runs. It ends when the client does.
    """
    from yester.__main__ import serve_mcp

    click.get_current_context().exit(serve_mcp(app.given))
