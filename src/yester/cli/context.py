"""`yester context`: what an agent would be given here and now, and why."""

from __future__ import annotations

from pathlib import Path

import click

from yester.cli.app import App, pass_app, print_json
from yester.deliver.context import EVENTS
from yester.deliver.library import Memory


@click.command("context")
@click.argument("prompt", nargs=-1)
@click.option("--event", type=click.Choice(list(EVENTS)), default=None,
              help="What happens; UserPromptSubmit where there is a PROMPT, else SessionStart."
              )  # fmt: skip
@click.option("--file", "file", metavar="PATH", help="The file about to be read (PreToolUse).")
@click.option("--cwd", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
              help="Where; the current folder by default.")  # fmt: skip
@click.option("--budget", type=click.IntRange(1), default=2_000, show_default=True,
              help="Tokens at a session's start.")  # fmt: skip
@click.option(
    "--why", is_flag=True, help="Also what each line is there for, and what was left out."
)
@click.option("--json", "as_json", is_flag=True, help="Print text, lines and what was left out.")
@pass_app
def command(
    app: App, /, prompt: tuple[str, ...], event: str | None, file: str | None, cwd: Path | None,
    budget: int, why: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show what an agent would be given at a session's start or for PROMPT; it is not recorded as
    given."""
    text = " ".join(prompt)
    chosen = event or ("PreToolUse" if file else "UserPromptSubmit" if text else "SessionStart")
    memory = Memory(app.reading, app.config)
    given = memory.given(chosen, str(cwd or Path.cwd()), text, file or "", budget)
    if as_json:
        print_json(given)
    else:
        if given.text:
            click.echo(given.text)
        if why:
            for one in given.shown:
                score = f"{one.score:.2f}  " if one.score else ""
                click.echo(f"shown #{one.item}  {score}{one.reason}  ~{one.tokens}t", err=True)
            for left in given.left:
                score = f"{left.score:.2f}  " if left.score else ""
                click.echo(f"left out #{left.item}  {score}{left.why}", err=True)
    if not given.text:
        if not as_json:
            click.echo("Nothing would be given.", err=True)
        click.get_current_context().exit(1)
