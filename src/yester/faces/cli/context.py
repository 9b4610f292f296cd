"""`yester context`: what an agent would be given here and now, and why."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import click

from yester.agents.descriptors import detect_session
from yester.capture import rules
from yester.clock import format_minute
from yester.deliver.lines import ESTIMATE_NOTE
from yester.deliver.page import Context, Shown
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.faces.cli.feedback import history
from yester.model import UseCounts
from yester.operations.context import EVENTS, ContextRequest, build_context
from yester.project import Projects
from yester.recall.feedback import usefulness
from yester.text.document import estimate_tokens, reading_cost


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
    given. Where yester is switched off that is nothing, and it says why."""
    text = " ".join(prompt)
    folder = str((cwd or Path.cwd()).resolve())
    if off := _off(app, folder):
        if as_json:
            print_json({"text": "", "shown": [], "left": [], "note": ESTIMATE_NOTE, "off": off})
        else:
            click.echo(f"An agent is given nothing here: {off}", err=True)
        click.get_current_context().exit(1)
    chosen = event or ("PreToolUse" if file else "UserPromptSubmit" if text else "SessionStart")
    request = ContextRequest(chosen, str(cwd or Path.cwd()), text, file or "", budget)
    given = build_context(app.memory, request)
    lines = _lines(app, given)
    if as_json:
        print_json({"text": given.text, "shown": lines, "left": given.left, "note": ESTIMATE_NOTE})
    else:
        if given.text:
            click.echo(given.text)
        if why:
            _print_why(lines, given)
    if not given.text:
        if not as_json:
            click.echo("Nothing would be given.", err=True)
        click.get_current_context().exit(1)


def _off(app: App, folder: str) -> str:
    """Why the user's own switches keep everything from an agent in this folder; "" if none does."""
    if os.environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false"):
        return "YESTER_OFF is set in this shell. Run: unset YESTER_OFF"
    known = rules.rules(app.config)
    session = detect_session(os.environ)[0]  # an agent's shell may say which it is
    if replace(known, home="", names=()).excludes(
        folder, Projects(app.config.projects).by_folder(folder)
    ):
        return f"the setting `exclude` names {folder}, or a folder above it"
    for pause in known.pauses:
        if replace(known, pauses=(pause,)).off(folder, session, app.now):
            what, undo = {
                "all": ("everywhere", "--all"),
                "session": ("in this session", f"--session {session}"),
            }.get(pause.kind, (f"in {pause.what}", shlex.quote(pause.what)))
            since = format_minute(pause.since)
            return f"yester is off {what} since {since}. Run: yester off {undo} --undo"
    return ""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a context, what is behind it, and what came of the item when it was shown."""

    item: int
    score: float
    tokens: int
    reason: str
    read_tokens: int  # of the whole item
    discovery_tokens: int  # of the work it was made from; 0: nothing was counted
    use: float
    known: str


def _lines(app: App, given: Context) -> list[_Line]:
    ids = [one.item for one in given.shown]
    items = {item.id: item for item in app.reading.get(ids)}
    used = app.reading.texts(ids).used

    def line(one: Shown) -> _Line:
        item, known = items.get(one.item), used.get(one.item, UseCounts(0, 0, {}))
        # A rule is always shown, as it must be; that nothing came of it says nothing.
        judged = known._replace(shown=0) if one.reason == "rule" else known
        return _Line(
            one.item, one.score, one.tokens, one.reason, reading_cost(item) if item else 0,
            item.discovery_tokens if item else 0, round(usefulness(judged), 4), history(known),
        )  # fmt: skip

    return [line(one) for one in given.shown]


def _print_why(lines: list[_Line], given: Context) -> None:
    for one in lines:
        score = f"{one.score:.2f}  " if one.score else ""
        work = f", made from ~{one.discovery_tokens:,}t" if one.discovery_tokens else ""
        click.echo(
            f"shown #{one.item}  {score}{one.reason}  ~{one.tokens:,}t of ~{one.read_tokens:,}t"
            f"{work}  use {one.use:+.2f} ({one.known})",
            err=True,
        )
    for left in given.left:
        score = f"{left.score:.2f}  " if left.score else ""
        click.echo(f"left out #{left.item}  {score}{left.why}", err=True)
    if lines:
        spent = sum(one.discovery_tokens for one in lines)
        click.echo(
            f"This injection: {count(len(lines), 'line')}, ~{estimate_tokens(given.text):,}t with "
            "all that is around them; the items are "
            f"~{sum(one.read_tokens for one in lines):,}t to read"
            + (f" and were made from ~{spent:,}t of work" if spent else "") + f". {ESTIMATE_NOTE}",
            err=True,
        )  # fmt: skip
