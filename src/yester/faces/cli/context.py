"""The commands about what an agent is given: context, fix, feedback on what came of it, resume and
handoff of a session, and off."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

import click
import msgspec

from yester.agents.descriptors import detect_session, find_agent
from yester.capture import ask, rules
from yester.clock import format_minute
from yester.context.block import Context
from yester.context.lines import ESTIMATE_NOTE
from yester.errors import UsageError
from yester.faces.cli.app import App, Output, command, read_id
from yester.faces.cli.rows import ROOMY
from yester.faces.cli.screen import Whole, count_noun, table_lines
from yester.files import replace_file
from yester.model import UseCounts, replace
from yester.operations import context
from yester.operations.actions import FixRequest, find_fixes
from yester.operations.items import Use, describe_use, record_feedback
from yester.recall.feedback import usefulness
from yester.text.document import estimate_tokens, reading_cost
from yester.text.sentences import shorten_text

_LONGEST_ERROR, _ERROR = 20_000, 120  # characters
_UNUSED = UseCounts(0, 0, {})
_NARROW = ("item", "score", "tokens", "reason", "known")  # the rest stands in the JSON


@command("context")
def context_command(
    app: App, /, prompt: tuple[str, ...], event: str | None, file: str, cwd: Path | None,
    budget: int, why: bool,
) -> Output:  # fmt: skip
    """Show what an agent would be given at a session's start or for PROMPT; it is not recorded as
    given. Where yester is switched off that is nothing, and it says why."""
    text, folder = " ".join(prompt), cwd or Path.cwd()
    if not PureWindowsPath(folder).is_absolute():  # a session of another machine is told by its own
        folder = folder.absolute()
    value: dict[str, Any] = {"text": "", "shown": [], "left": [], "note": ESTIMATE_NOTE}
    if off := _explain_off(app, str(folder.resolve())):
        return Output(value | {"off": off}, (), f"An agent is given nothing here: {off}")
    chosen = event or ("PreToolUse" if file else "UserPromptSubmit" if text else "SessionStart")
    asked = context.ContextRequest(chosen, str(folder), text, file, budget)
    given = context.build_context(app.memory, asked)
    rows = _describe_lines(app, given)
    value |= {"text": given.text, "shown": rows, "left": given.left}

    hint = "\n".join(_why_lines(app, rows, given)) if why else ""
    shown = filter(None, [given.text])
    return Output(value, shown, "Nothing would be given.", given.text, hint=hint)


def _explain_off(app: App, folder: str) -> str:
    """Why the user's own switches keep everything from an agent in this folder; "" if none does."""
    if rules.is_off_here(os.environ):
        return "YESTER_OFF is set in this shell. Run: unset YESTER_OFF"
    known = rules.load_rules(app.config)
    session = detect_session(os.environ)[0]  # an agent's shell may say which it is
    if any(ask.covers(glob, folder) for glob in known.excluded):
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


def _describe_lines(app: App, given: Context) -> list[dict[str, Any]]:
    """The lines of a context, what is behind each, and what came of the item when it was shown."""
    ids = [one.item for one in given.shown]
    items = {item.id: item for item in app.reading.get(ids)}
    used = app.reading.texts(ids).used
    rows = []
    for one in given.shown:
        item, known = items.get(one.item), used.get(one.item, _UNUSED)
        # A rule is always shown, as it must be; that nothing came of it says nothing.
        judged = known._replace(shown=0) if one.reason == "rule" else known
        row = {
            "read_tokens": reading_cost(item) if item else 0,
            "discovery_tokens": item.discovery_tokens if item else 0,
            "use": round(usefulness(judged), 4), "known": _describe_use(known),
        }  # fmt: skip
        rows.append(msgspec.to_builtins(one) | row)
    return rows


def _why_lines(app: App, rows: list[dict[str, Any]], given: Context) -> Iterator[str]:
    yield from table_lines(rows, "shown", *(_NARROW if 0 < app.width < ROOMY else ()))
    yield from table_lines(given.left, "left out")
    if rows:
        spent, read = (sum(one[f"{sort}_tokens"] for one in rows) for sort in ("discovery", "read"))
        work = f" and took ~{spent:,}t to find out" if spent else ""
        yield (
            f"This block: {count_noun(len(rows), 'line')}, ~{estimate_tokens(given.text):,}t with "
            f"what is around them; the items are ~{read:,}t to read{work}. {ESTIMATE_NOTE}"
        )


@command("fix")
def fix_command(app: App, /, text: tuple[str, ...], project: str | None) -> Output:
    """Show what ended an error before, given as it was printed, or on the standard input.

    It is looked for in the project of the current folder first, then everywhere: a run that showed
    the same error, the run that passed after it, and what was changed in between.
    """
    printed = " ".join(text) or ("" if sys.stdin.isatty() else sys.stdin.read()[:_LONGEST_ERROR])
    if not printed.strip():
        raise UsageError('name the error: yester fix "…", or pipe what was printed into it')
    known = {one.key for one in app.reading.projects()}
    place = app.choose_project(project, instead="")
    name = place.key if project or place.key in known else ""
    found = find_fixes(app.memory, FixRequest(text=printed, project=name))
    lines = (f"{shorten_text(one.error, _ERROR)}\n    {one.line}" for one in found.fixes)
    nothing = "No run that showed this error is recorded with an end."
    return Output(found, lines, nothing, found.fixes)


# --- feedback -------------------------------------------------------------------------------------


@command("feedback")
def feedback_command(app: App, /, ids: tuple[str, ...], **given: bool) -> Output:
    """Say whether items (#12 or 12) were of use; without an option, show what is known.

    What was shown to an agent and then fetched (`yester show`, MCP), opened or acted on rises a
    little by itself; what is shown again and again and never used sinks a little. Lines an agent
    got because it had searched ("listed") do neither.
    """
    numbers = [*map(read_id, ids)]
    record_feedback(app.memory, numbers, "".join(name for name, on in given.items() if on))
    found = describe_use(app.reading, numbers)
    rated = ((one, f"use {one.use:+.2f}" if one.use else "not judged") for one in found)
    lines = (f"#{one.id}  {rate}  {_describe_use(one)}" for one, rate in rated)
    return Output({"items": found}, lines)


def _describe_use(one: Use | UseCounts) -> str:
    """shown in 3 sessions, listed 1 time, fetched 2"""
    listed = f"listed {count_noun(one.listed, 'time')}" if one.listed else ""
    came = (f"{what} {times}" for what, times in sorted(one.feedback.items()))
    return ", ".join(filter(None, (f"shown in {count_noun(one.shown, 'session')}", listed, *came)))


# --- switched off ---------------------------------------------------------------------------------


@command("off")
def off_command(
    app: App, path: Path | None, everything: bool, session: str | None, undo: bool, listing: bool
) -> Output:
    """Switch yester off: nothing is captured, nothing is shown to the agent.

    For the project of PATH (default: the current folder), for a session, or everywhere. For one
    session of an agent you can also start it with YESTER_OFF=1.
    """
    if listing:
        found = [one for one in rules.load_pauses(app.home) if not one.until]
        told = ((format_minute(one.since), one.what or "everything") for one in found)
        lines = [f"off since {since}: {what}" for since, what in told]
        return Output({"off": found}, lines or ["nothing is switched off"])
    return _change_pause(app, path, everything, session, off=not undo)


def _change_pause(
    app: App, path: Path | None, everything: bool, session: str | None, off: bool
) -> Output:
    if sum((path is not None, everything, session is not None)) > 1:
        raise UsageError("name one of PATH, --all and --session")
    if everything:
        kind, what, shown = "all", "", "everywhere"
    elif session is not None:
        kind, what, shown = "session", session, f"in session {session}"
    else:
        folder = str((path or Path.cwd()).resolve())
        kind, what = "path", app.memory.projects.by_folder(folder).root or folder
        shown = f"in {what}"
    changed = rules.change_pause(app.home, kind, what, app.now, off=off)
    rules.write_hook_rules(app.home, rules.load_rules(app.config))
    state = "off" if off else "on"
    lines = [f"yester is {state} {shown}" + ("" if changed else ", as it was")]
    if not off and (why := _explain_off(app, str(Path.cwd()))):
        lines.append(f"here it is off for another reason: {why}")
    return Output({"kind": kind, "what": what, "state": state, "changed": changed}, lines)


@command("on")
def on_command(app: App, path: Path | None, everything: bool, session: str | None) -> Output:
    """Switch yester on again, where `yester off` has switched it off; what happened meanwhile
    stays out."""
    return _change_pause(app, path, everything, session, off=False)


# --- a session taken up again ---------------------------------------------------------------------


@command("resume")
def resume_command(app: App, session: str | None, run: bool) -> Output:
    """Print the command that takes up SESSION again in its own agent; without a name, the last
    session of this project. --run starts it."""
    wanted = context.find_wanted(app.memory, session)
    words = context.resume_words(wanted)
    if run:
        _start_program(words, wanted.cwd)
    line = context.resume_line(wanted)
    value = {"session": wanted.key, "agent": wanted.agent, "cwd": wanted.cwd, "command": words}
    return Output(value, [Whole(line)])


@command("handoff")
def handoff_command(app: App, session: str | None, to: str, run: bool) -> Output:
    """Hand SESSION over to another agent: what was asked, done, decided and is open, and the
    command that begins a session with it. Without a name, the last session of this project."""
    wanted, agent = context.find_wanted(app.memory, session), find_agent(to)
    text = context.pack_session(app.memory, wanted)
    if run:
        _start_program(context.begin_words(agent, text), wanted.cwd)
    path = app.home / "run" / f"handoff-{wanted.id}.md"
    replace_file(path, text + "\n")
    marker = "\0"
    shown = shlex.join(context.begin_words(agent, marker)).replace(
        shlex.quote(marker), f'"$(cat {shlex.quote(str(path))})"'
    )
    place = f"cd {shlex.quote(wanted.cwd)} && " if wanted.cwd else ""
    value = {"session": wanted.key, "to": to, "text": text, "file": str(path)}
    return Output(value, [text, "", Whole(place + shown)])


def _start_program(words: Sequence[str], cwd: str) -> None:
    """In place of this process, in the session's folder."""
    program = shutil.which(words[0])
    if program is None:
        raise UsageError(f"{words[0]} is not on PATH; install it, or leave out --run")
    click.echo(f"starting {program}", err=True)
    if cwd and Path(cwd).is_dir():
        os.chdir(cwd)
    os.execv(program, [program, *words[1:]])  # noqa: S606 -- the user's own program, by their word
