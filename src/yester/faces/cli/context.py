"""The commands about what an agent is given: context, and feedback on what came of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from yester.agents.descriptors import detect_session
from yester.capture import rules
from yester.clock import format_minute
from yester.deliver.lines import ESTIMATE_NOTE
from yester.deliver.page import Context, Shown
from yester.errors import UsageError
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.options import flag_option
from yester.faces.cli.screen import count_noun
from yester.model import UseCounts, replace
from yester.operations.context import EVENTS, ContextRequest, build_context
from yester.operations.ledger import record_feedback
from yester.project import Projects
from yester.recall.feedback import usefulness
from yester.text.document import estimate_tokens, reading_cost

_UNUSED = UseCounts(0, 0, {})


@command(
    "context", click.argument("prompt", nargs=-1),
    click.option("--event", type=click.Choice(list(EVENTS)), default=None, help="What happens; "
                 "UserPromptSubmit where there is a PROMPT, else SessionStart."),
    click.option("--file", "file", metavar="PATH", help="The file about to be read (PreToolUse)."),
    click.option("--cwd", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
                 help="Where; the current folder by default."),
    click.option("--budget", type=click.IntRange(0), default=0,
                 help="Tokens at a session's start; 0: as the setting start_tokens says."),
    flag_option("--why", "Also what each line is there for, and what was left out."),
)  # fmt: skip
def context_command(
    app: App, /, prompt: tuple[str, ...], event: str | None, file: str | None, cwd: Path | None,
    budget: int, why: bool,
) -> Output:  # fmt: skip
    """Show what an agent would be given at a session's start or for PROMPT; it is not recorded as
    given. Where yester is switched off that is nothing, and it says why."""
    text = " ".join(prompt)
    if off := _explain_off(app, str((cwd or Path.cwd()).resolve())):
        nothing = {"text": "", "shown": [], "left": [], "note": ESTIMATE_NOTE, "off": off}
        return Output(nothing, (), f"An agent is given nothing here: {off}")
    chosen = event or ("PreToolUse" if file else "UserPromptSubmit" if text else "SessionStart")
    request = ContextRequest(chosen, str(cwd or Path.cwd()), text, file or "", budget)
    given = build_context(app.memory, request)
    lines = _describe_lines(app, given)
    value = {"text": given.text, "shown": lines, "left": given.left, "note": ESTIMATE_NOTE}

    def text_lines() -> Iterator[str]:
        if given.text:
            yield given.text
        if why:
            for line in _why_lines(lines, given):
                click.echo(line, err=True)

    return Output(value, text_lines(), "" if given.text else "Nothing would be given.")


def _explain_off(app: App, folder: str) -> str:
    """Why the user's own switches keep everything from an agent in this folder; "" if none does."""
    if os.environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false"):
        return "YESTER_OFF is set in this shell. Run: unset YESTER_OFF"
    known = rules.load_rules(app.config)
    session = detect_session(os.environ)[0]  # an agent's shell may say which it is
    if replace(known, home="", names=()).excludes(
        folder, Projects(app.config.projects).by_folder(folder)
    ):
        return f"the setting `exclude` names {folder}, or a folder above it"
    for pause in known.pauses:
        if replace(known, pauses=(pause,)).is_off(folder, session, app.now):
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


def _describe_lines(app: App, given: Context) -> list[_Line]:
    ids = [one.item for one in given.shown]
    items = {item.id: item for item in app.reading.get(ids)}
    used = app.reading.texts(ids).used

    def describe(one: Shown) -> _Line:
        item, known = items.get(one.item), used.get(one.item, _UNUSED)
        # A rule is always shown, as it must be; that nothing came of it says nothing.
        judged = known._replace(shown=0) if one.reason == "rule" else known
        return _Line(
            one.item, one.score, one.tokens, one.reason, reading_cost(item) if item else 0,
            item.discovery_tokens if item else 0, round(usefulness(judged), 4),
            _describe_use(known),
        )  # fmt: skip

    return [describe(one) for one in given.shown]


def _why_lines(lines: list[_Line], given: Context) -> Iterator[str]:
    for one in lines:
        score = f"{one.score:.2f}  " if one.score else ""
        work = f", made from ~{one.discovery_tokens:,}t" if one.discovery_tokens else ""
        yield (
            f"shown #{one.item}  {score}{one.reason}  ~{one.tokens:,}t of ~{one.read_tokens:,}t"
            f"{work}  use {one.use:+.2f} ({one.known})"
        )
    for left in given.left:
        score = f"{left.score:.2f}  " if left.score else ""
        yield f"left out #{left.item}  {score}{left.why}"
    if lines:
        spent = sum(one.discovery_tokens for one in lines)
        work = f" and were made from ~{spent:,}t of work" if spent else ""
        yield (
            f"This injection: {count_noun(len(lines), 'line')}, ~{estimate_tokens(given.text):,}t "
            f"with all that is around them; the items are "
            f"~{sum(one.read_tokens for one in lines):,}t to read{work}. {ESTIMATE_NOTE}"
        )


# --- feedback -------------------------------------------------------------------------------------


@command(
    "feedback", click.argument("ids", nargs=-1, required=True, metavar="ID..."),
    flag_option("--useful", "It helped: it rises."),
    flag_option("--useless", "It was in the way: it sinks."),
    flag_option("--undo", "Take back what you said."),
    flag_option("--reset",
                "Take back all that came of it, noticed or said; it stands as if never used."),
)  # fmt: skip
def feedback_command(
    app: App, /, ids: tuple[str, ...], useful: bool, useless: bool, undo: bool, reset: bool
) -> Output:
    """Say whether items (#12 or 12) were of use; without an option, show what is known.

    What was shown to an agent and then fetched (`yester show`, MCP), opened or acted on rises a
    little by itself; what is shown again and again and never used sinks a little. Lines an agent
    got because it had searched ("listed") do neither.
    """
    if useful + useless + undo + reset > 1:
        raise UsageError(
            "--useful, --useless, --undo and --reset exclude each other; leave out the others"
        )
    given = {"useful": useful, "useless": useless, "undo": undo, "reset": reset}
    numbers = [_parse_id(text) for text in ids]
    record_feedback(app.memory, numbers, next((name for name, on in given.items() if on), ""))
    found = app.reading.texts(numbers).used
    used = [(number, found.get(number, _UNUSED)) for number in numbers]
    value = [
        {"id": number, "shown": one.shown, "used_in": one.used_in, "listed": one.listed,
         "feedback": one.feedback, "use": round(usefulness(one), 4)}
        for number, one in used
    ]  # fmt: skip
    lines = (f"#{id_}  use {usefulness(one):+.2f}  {_describe_use(one)}" for id_, one in used)
    return Output(value, lines)


def _describe_use(one: UseCounts) -> str:
    """shown in 3 sessions, listed 1 time, fetched 2"""
    listed = f"listed {count_noun(one.listed, 'time')}" if one.listed else ""
    came = (f"{what} {times}" for what, times in sorted(one.feedback.items()))
    return ", ".join(filter(None, (f"shown in {count_noun(one.shown, 'session')}", listed, *came)))


def _parse_id(text: str) -> int:
    number = text.removeprefix("#")
    if not number.isdecimal():
        raise UsageError(f"{text!r} is no id; `yester recall` shows them, e.g. #12")
    return int(number)
