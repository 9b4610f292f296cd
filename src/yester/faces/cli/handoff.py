"""The commands that take up a session again: resume, handoff."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from yester.agents.descriptors import find_agent
from yester.errors import UsageError
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.screen import Whole
from yester.files import replace_file
from yester.operations.handoff import (
    begin_words,
    find_wanted,
    pack_session,
    resume_line,
    resume_words,
)


@command("resume")
def resume_command(app: App, session: str | None, run: bool) -> Output:
    """Print the command that takes up SESSION again in its own agent; without a name, the last
    session of this project. --run starts it."""
    wanted = find_wanted(app.memory, session or "", str(Path.cwd()))
    words = resume_words(wanted)
    if run:
        _start_program(words, wanted.cwd)
    line = resume_line(wanted)
    value = {"session": wanted.key, "agent": wanted.agent, "cwd": wanted.cwd, "command": words}
    return Output(value, [Whole(line)])


@command("handoff")
def handoff_command(app: App, session: str | None, to: str, run: bool) -> Output:
    """Hand SESSION over to another agent: what was asked, done, decided and is open, and the
    command that begins a session with it. Without a name, the last session of this project."""
    wanted, agent = find_wanted(app.memory, session or "", str(Path.cwd())), find_agent(to)
    text = pack_session(app.memory, wanted)
    if run:
        _start_program(begin_words(agent, text), wanted.cwd)
    path = app.home / "run" / f"handoff-{wanted.id}.md"
    replace_file(path, text + "\n")
    marker = "\0"
    shown = shlex.join(begin_words(agent, marker)).replace(
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
