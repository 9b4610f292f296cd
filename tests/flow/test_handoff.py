"""A session taken up again: in its own client, or by another with what it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capturing import Told, leave, made

pytestmark = pytest.mark.requirement("DEL-18")


@pytest.fixture
def worked(run, home, tmp_path):
    """A session of Claude Code that has changed a file and left something open."""
    made(home)
    told = Told(cwd=str(tmp_path))
    edit = {"file_path": f"{tmp_path}/link.py", "old_string": "pool()", "new_string": "connect()"}
    leave(
        home, told.event("SessionStart", source="startup"),
        told.prompt("Make the link reconnect when the server drops it"),
        told.tool("Edit", edit, {}),
        told.ran("pytest", "2 passed in 0.1s"),
        told.stop("The link reconnects now: one connection for each call."),
        told.prompt("Now do the same for the mail queue", turn="turn-2"),
        told.tool("Edit", edit | {"file_path": f"{tmp_path}/queue.py"}, {}),
        told.failed("pytest", "Exit code 1\n1 failed, 2 passed in 0.1s"),
        told.stop("The test of the queue still fails: it keeps its pool."),
        told.event("SessionEnd", reason="other"),
    )  # fmt: skip
    assert run("worker", "drain").code == 0
    assert run("distil", "--backfill").code == 0
    return told


def test_the_command_that_takes_it_up_again_is_that_of_its_own_client(run, worked):
    done = run("resume", worked.session[:8])
    assert done.out == f"cd {worked.cwd} && claude --resume {worked.session}\n"
    assert run("resume", "nobody").code == 1


def test_another_agent_is_given_the_request_what_was_done_and_what_is_open(run, home, worked):
    done = run("handoff", worked.session[:8], "--to", "codex", "--json")
    given = json.loads(done.out)
    text = given["text"]
    assert text.startswith("Go on with work that was begun in Claude Code. The request was:")
    assert "Make the link reconnect" in text
    assert "The last thing asked for:\n\nNow do the same for the mail queue" in text
    assert "link.py" in text
    assert "Left open:" in text
    assert "queue" in text.partition("Left open:")[2]
    assert len(text) < 4 * 1_500
    assert Path(given["file"]).stat().st_mode & 0o077 == 0
    shown = run("handoff", worked.session[:8], "--to", "gemini-cli").out.splitlines()[-1]
    assert shown == f'cd {worked.cwd} && gemini -i "$(cat {given["file"]})"'


def test_the_other_agent_is_started_only_by_the_users_word(home, worked, tmp_path):
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$@"\n')
    program.chmod(0o755)
    command = [sys.executable, "-m", "yester", "--home", str(home), "handoff", worked.session[:8]]
    env = {**os.environ, "PATH": str(program.parent)}
    done = subprocess.run(
        [*command, "--to", "codex", "--run"], capture_output=True, text=True, env=env
    )
    assert done.stderr == f"starting {program}\n"
    assert done.stdout.startswith(f"{worked.cwd}|Go on with work that was begun in Claude Code.")
