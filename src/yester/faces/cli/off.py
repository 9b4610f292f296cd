"""`yester off`: keep nothing of a folder, a session, or at all, until told otherwise."""

from __future__ import annotations

from pathlib import Path

import click

from yester.capture import rules
from yester.clock import format_minute
from yester.errors import UsageError
from yester.faces.cli.app import App, pass_app, print_json
from yester.project import Projects


@click.command("off")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Everywhere.")
@click.option("--session", metavar="ID", help="This session of an agent.")
@click.option("--undo", is_flag=True, help="Switch it on again; what happened meanwhile stays out.")
@click.option("--list", "listing", is_flag=True, help="Show what is switched off.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_app
def command(
    app: App, path: Path | None, everything: bool, session: str | None, undo: bool,
    listing: bool, as_json: bool,
) -> None:  # fmt: skip
    """Switch yester off: nothing is captured, nothing is shown to the agent.

    For the project of PATH (default: the current folder), for a session, or everywhere. For one
    session of an agent you can also start it with YESTER_OFF=1.
    """
    if listing:
        _list(app, as_json)
        return
    if sum((path is not None, everything, session is not None)) > 1:
        raise UsageError("name one of PATH, --all and --session")
    if everything:
        kind, what = "all", ""
    elif session is not None:
        kind, what = "session", session
    else:
        folder = (path or Path.cwd()).resolve()
        kind, what = (
            "path",
            Projects(app.config.projects).by_folder(str(folder)).root or str(folder),
        )
    shown = {"all": "everywhere", "session": f"in session {what}"}.get(kind, f"in {what}")
    change = rules.resume if undo else rules.pause
    changed = change(app.home, kind, what, app.now)
    rules.write_for_hooks(app.home, rules.rules(app.config))
    state = "on" if undo else "off"
    if as_json:
        print_json({"kind": kind, "what": what, "state": state, "changed": changed})
    else:
        click.echo(f"yester is {state} {shown}" + ("" if changed else ", as it was"))


def _list(app: App, as_json: bool) -> None:
    found = [one for one in rules.pauses(app.home) if not one.until]
    if as_json:
        print_json({"off": [{"kind": o.kind, "what": o.what, "since": o.since} for o in found]})
        return
    for one in found:
        click.echo(f"off since {format_minute(one.since)}: {one.what or 'everything'}")
    if not found:
        click.echo("nothing is switched off")
