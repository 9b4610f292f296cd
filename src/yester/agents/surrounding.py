"""Which agent has started this process, by the variables it leaves: its shell, or its MCP server.

A variable can be inherited from far above or be missing, so nothing depends on it but how answers
look and which session they are written down for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Surrounding(NamedTuple):
    """One agent: the variables that say it is there, and the one that names the session."""

    agent: str
    marks: tuple[str, ...]
    session: str = ""


AGENTS = (
    Surrounding("claude-code", ("CLAUDECODE",), "CLAUDE_CODE_SESSION_ID"),
    Surrounding(
        "codex",
        ("CODEX_THREAD_ID", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED"),
        "CODEX_THREAD_ID",
    ),
    Surrounding("gemini-cli", ("GEMINI_CLI",), "GEMINI_SESSION_ID"),
    Surrounding("copilot-cli", ("COPILOT_CLI",)),
    Surrounding("cursor", ("CURSOR_AGENT",)),
    Surrounding("opencode", ("OPENCODE",)),
)


def started_by(environ: Mapping[str, str]) -> str:
    """The agent's name; "" where a person has started us, or nobody says."""
    for one in AGENTS:
        if any(environ.get(mark) for mark in one.marks):
            return one.agent
    return ""


def session_of(environ: Mapping[str, str]) -> tuple[str, str]:
    """The session we were started in and its agent; both "" where they are not known."""
    for one in AGENTS:
        if one.session and (key := environ.get(one.session, "")):
            return key, one.agent
    return "", ""
