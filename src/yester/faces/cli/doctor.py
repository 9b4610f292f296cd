"""`yester doctor`: is everything as it should be?"""

from __future__ import annotations

from collections.abc import Iterable

import click

from yester.faces.cli.app import App, count, pass_app, print_json
from yester.operate.doctor import examine
from yester.operate.doctor.finding import Finding

_MARKS = {"ok": ("✓", "green"), "note": ("·", "blue"), "problem": ("✗", "red")}


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Put right what can be put right safely.")
@click.option("--undo-join", "joined", metavar="NAME",
              help="Make a work tree that was joined with its repository a project of its own."
              )  # fmt: skip
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, fix: bool, joined: str | None, as_json_: bool) -> None:
    """Check the installation and the store; exit code 3 when something is wrong.

    Where yester is installed in an agent, its hooks are run with made-up events, of which nothing
    is kept, and the agent itself is asked whether it loads them.
    """
    if joined is not None:
        _undo_join(app, joined, as_json_)
        return
    findings: list[Finding] = []
    for finding in examine(app.home, app.now, fix):
        findings.append(finding)
        if not as_json_:
            show([finding])  # at once: some take seconds, and nothing found is lost
    if as_json_:
        rows = [
            {"check": f.check, "state": f.state, "text": f.text, "fix": f.fix} for f in findings
        ]
        print_json({"findings": rows})
    if any(finding.state == "problem" for finding in findings):
        click.get_current_context().exit(3)


def _undo_join(app: App, joined: str, as_json_: bool) -> None:
    from yester.operations.projects import undo_join

    project, moved = undo_join(app.home, app.store, joined, app.now)
    if as_json_:
        print_json({"project": project.name, "key": project.key, "items": moved})
    else:
        click.echo(
            f"{project.name} is a project of its own again, with {count(moved, 'item')}; "
            "[projects] in config.toml keeps it so"
        )


def show(findings: Iterable[Finding]) -> None:
    for finding in findings:
        mark, colour = _MARKS[finding.state]
        click.echo(f"{click.style(mark, fg=colour)} {finding.check}: {finding.text}")
        if finding.fix:
            click.echo(f"    {finding.fix}")
