"""Who stands behind a command: an agent among the processes above it, a person at a terminal.

Variables can be taken away (`env -u CLAUDECODE yester …`); the processes above a command cannot. It
is no wall: a program that means harm can leave its parents behind and open a terminal of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath

from yester.agents.descriptors import AGENTS, detect_agent

_DEEPEST = 60
_INTERPRETERS = ("node", "bun", "deno", "python")


def find_agent_here() -> str:
    """The agent that has started this process, or one above it, by its variables or its name; ""
    where there is none."""
    return detect_agent(os.environ) or _find_agent_above()


def _find_agent_above() -> str:
    programs = {agent.program: agent.name for agent in AGENTS.values() if agent.program}
    for words in _list_ancestors(os.getppid()):
        names = [PurePath(word).stem.lower() for word in words[:2]]
        script = names[1:] if names and names[0].startswith(_INTERPRETERS) else []
        for name in (*names[:1], *script):
            if name in programs:
                return programs[name]
    return ""


def has_terminal() -> bool:
    """Is there a person who can see what is asked?"""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return any(os.isatty(number) for number in range(3))
    return True


def _list_ancestors(pid: int) -> Iterator[list[str]]:
    """The command lines of a process and of those above it."""
    look_up = _read_process if Path("/proc/self/stat").exists() else _list_processes().get
    for _ in range(_DEEPEST):
        found = look_up(pid) if pid > 1 else None
        if found is None:
            return
        pid, words = found
        yield words


def _read_process(pid: int) -> tuple[int, list[str]] | None:
    """(its parent, the words of its command line)"""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        status = Path(f"/proc/{pid}/stat").read_bytes()
        return int(status.rpartition(b")")[2].split()[1]), words
    return None


def _list_processes() -> dict[int, tuple[int, list[str]]]:
    """The same of all of them, where there is no /proc."""
    command = ["ps", "-axo", "pid=,ppid=,args="]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 -- a program of the system
            command, capture_output=True, text=True, timeout=2, check=True
        )
        rows = [line.split() for line in done.stdout.splitlines()]
        return {int(row[0]): (int(row[1]), row[2:]) for row in rows}
    return {}
