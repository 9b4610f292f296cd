"""The agents yester knows, as data: `tables/agents.toml` says what each field means.

`yester mcp`, `--help` and a hook's answer look things up here and must start quickly: this module
loads no reader. `base.load_reader` loads the one of an agent when a transcript is to be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from yester.tables import load_table

_TABLE = load_table("agents")
CLAUDE_EVENTS: Mapping[str, str] = _TABLE["claude_events"]


@dataclass(frozen=True, slots=True)
class Setup:
    """How yester gets into a client."""

    folder: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    form: str = ""
    timeout: int = 10
    end_timeout: int = 0
    hooks: str = ""
    servers: str = ""
    server_fields: Mapping[str, Any] = field(default_factory=dict)
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    changes: str = ""
    holds: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Agent:
    """A row of the table. As it stands: an agent that yester does not know."""

    name: str = ""
    label: str = ""
    folders: str | tuple[str, ...] = ()
    transcripts: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    session_variable: str = ""
    answer_form: str = "plain"
    shows_messages: bool = False
    answerable: tuple[str, ...] = (
        "SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUse",
    )  # fmt: skip
    payload_field: str = ""
    transcript_path: str = ""
    names_transcript: bool = True
    program: str = ""
    first_version: tuple[int, ...] = ()
    tried: str = ""
    resume: tuple[str, ...] = ()
    begin: tuple[str, ...] = ()
    bell: bool = False
    session_files: tuple[str, ...] = ()
    owes_start: bool = False
    loses_start: bool = False
    notes: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    events: Mapping[str, str] = field(default_factory=dict)
    setup: Setup = Setup()

    def tells_of(self, event: str) -> bool:
        """Has it an event that says so?"""
        return event in {CLAUDE_EVENTS.get(one, "") for one in self.events.values()}


def _describe_agent(name: str, row: Mapping[str, Any]) -> Agent:
    setup = Setup(**_freeze_lists(row.get("setup", {})))
    return Agent(name, **{**_freeze_lists(row), "setup": setup})


def _freeze_lists(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


AGENTS = {name: _describe_agent(name, row) for name, row in _TABLE["agent"].items()}
CLAUDE_CODE = AGENTS["claude-code"]
INSTALLABLE = tuple(AGENTS[name] for name, row in _TABLE["agent"].items() if "setup" in row)


def find_agent(name: str) -> Agent:
    return AGENTS.get(name, Agent(name))


def detect_agent(environ: Mapping[str, str]) -> str:
    """The agent that has started this process; "" where a person has, or nobody says.

    A variable can be inherited from far above or be missing, so nothing depends on it but how
    answers look and which session they are written down for.
    """
    for agent in AGENTS.values():
        if any(environ.get(variable) for variable in agent.variables):
            return agent.name
    return ""


def detect_session(environ: Mapping[str, str]) -> tuple[str, str]:
    """The session we were started in and its agent; both "" where they are not known."""
    for agent in AGENTS.values():
        if agent.session_variable and (key := environ.get(agent.session_variable, "")):
            return key, agent.name
    return "", ""


# --- who stands behind a command -----------------------------------------------------------------

# An agent among the processes above it, or a person at a terminal. Variables can be taken away
# (`env -u CLAUDECODE yester …`); the processes above a command cannot. It is no wall: a program
# that means harm can leave its parents behind and open a terminal of its own.
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
    import subprocess

    command = ["ps", "-axo", "pid=,ppid=,args="]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 -- a program of the system
            command, capture_output=True, text=True, timeout=2, check=True
        )
        rows = [line.split() for line in done.stdout.splitlines()]
        return {int(row[0]): (int(row[1]), row[2:]) for row in rows}
    return {}
