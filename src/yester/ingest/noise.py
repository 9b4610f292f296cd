"""Which events are worth an observation of their own, and which are one piece of work together.

The rules work on what is stored, in event time, so a replay or a backfill gives the same result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from yester.model import Event, Item

SHORTEST = 50  # characters of a tool's input and output that can be worth an observation
_SWITCHES = {"skip_tools": "SKIP_TOOLS", "batch_window_ms": "BATCH_WINDOW_MS"}
# `yester recall …` in a shell prints what is stored already; so does our MCP server.
SHELLS = frozenset(
    {
        "bash", "exec_command", "local_shell", "powershell", "run_shell_command",
        "run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2", "shell",
        "shell_command",
    }
)  # fmt: skip
_OWN_COMMAND = re.compile(
    r"(?:^|[;&|(`])\s*(?:(?:\w{1,40}=\S{0,200}|env|exec|sudo|time|uvx|uv run|pipx run)\s+){0,8}"
    r"(?:\S{0,200}/)?(?:yester|python\S{0,9} -m yester)\s+[\w-]", re.M
)  # fmt: skip
_OWN_TOOL = re.compile(r"mcp__(?:plugin_)?yester_", re.IGNORECASE)


def switch(hints: Mapping[str, str], name: str) -> str | None:
    """A setting that a session's environment may change, under our name or claude-mem's."""
    return hints.get(f"YESTER_{_SWITCHES[name]}", hints.get(f"CLAUDE_MEM_{_SWITCHES[name]}"))


def skip_list(hints: Mapping[str, str], default: Sequence[str]) -> frozenset[str]:
    text = switch(hints, "skip_tools")
    if text is None:
        return frozenset(default)
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def window(hints: Mapping[str, str], default: int) -> int:
    text = switch(hints, "batch_window_ms") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else default


def no_observation(tool: str, size: int, failed: bool, skipped: frozenset[str]) -> str:
    """Why a tool's use is not worth an observation, or "". A failure always is."""
    if failed:
        return ""
    if tool in skipped:
        return "skipped tool"
    return "short" if size < SHORTEST else ""


def own_answer(item: Item) -> bool:
    """Is this the use of a tool that answers with what yester knows?"""
    if item.role != "tool":
        return False
    if item.tool.lower() not in SHELLS:
        return _OWN_TOOL.match(item.tool) is not None
    command = item.body.split("\n\n", 1)[0].split("<<", 1)[0]  # without output and documents
    return _OWN_COMMAND.search(command) is not None


def batches(events: Iterable[Event]) -> list[list[Event]]:
    """Uses of one tool by one agent that follow each other closely, together.

    The events are those of one turn, in order: a batch never goes across a prompt. What is not
    worth an observation neither makes nor breaks one.
    """
    found: list[list[Event]] = []
    last: dict[str, list[Event]] = {}  # actor → the batch at hand
    for event in events:
        if not event.tool or event.skipped:
            continue
        batch = last.get(event.actor)
        if batch and batch[-1].tool == event.tool and _near(batch[-1], event):
            batch.append(event)
        else:
            last[event.actor] = [event]
            found.append(last[event.actor])
    return found


def _near(before: Event, event: Event) -> bool:
    return event.epoch - before.epoch <= event.window
