"""Runs the hooks of an installed plugin as the client would, with made-up events.

They belong to the session TRIAL and happen inside yester's home: the worker answers them, so that
the whole way is walked, and keeps nothing. One that is older and does not know the session keeps
nothing either, because of the folder.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from yester.agents.descriptors import CLAUDE_CODE
from yester.agents.hooks import TRIAL
from yester.capture.spool import Spool, acknowledge, read
from yester.deliver.context import EVENTS

_PATIENCE = 15.0  # seconds; the client waits 10
_READ: dict[str, Any] = {
    "tool_name": "Read", "tool_input": {"file_path": "trial.txt"}, "tool_use_id": "trial",
}  # fmt: skip
_FILE: dict[str, Any] = {"filePath": "trial.txt", "content": ""}
# What the events carry besides what all of them do.
_MORE: Mapping[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "UserPromptSubmit": {"prompt": "Do the hooks of yester answer?"},
    "PreToolUse": _READ,
    "PostToolUse": {**_READ, "tool_response": {"type": "text", "file": _FILE}},
    "PostToolUseFailure": {**_READ, "error": "none"},
    "PreCompact": {"trigger": "manual", "custom_instructions": None},
    "PostCompact": {"trigger": "manual", "compact_summary": ""},
    "SubagentStart": {"agent_id": "trial", "agent_type": "trial"},
    "SubagentStop": {"agent_id": "trial", "agent_type": "trial", "last_assistant_message": ""},
    "Stop": {"stop_hook_active": False, "last_assistant_message": ""},
    "SessionEnd": {"reason": "other"},
}


@dataclass(frozen=True, slots=True)
class Outcome:
    what: str  # an event, or an MCP server
    seconds: float
    wrong: str = ""
    silent: bool = False  # wrong because an answer should have come, and nothing did


def commands(plugin: Path) -> dict[str, str]:
    """event → what the client runs, out of the plugin's hooks.json."""
    told = msgspec.json.decode((plugin / "hooks" / "hooks.json").read_bytes())
    return {
        event: hook["command"]
        for event, entries in told["hooks"].items()
        for entry in entries
        for hook in entry["hooks"]
    }


def environment(environ: Mapping[str, str], plugin: Path, cwd: Path) -> dict[str, str]:
    """What Claude Code gives to a hook, for all we know."""
    return {
        **environ,
        **dict.fromkeys(CLAUDE_CODE.variables, "1"),
        CLAUDE_CODE.session_variable: TRIAL,
        "CLAUDE_PROJECT_DIR": str(cwd),
        "CLAUDE_PLUGIN_ROOT": str(plugin),
    }


def try_hook(
    home: Path, plugin: Path, event: str, command: str, environ: Mapping[str, str]
) -> Outcome:
    """One hook, once."""
    cwd = home / "run" / "trial"
    cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
    payload = {
        "session_id": TRIAL, "cwd": str(cwd), "hook_event_name": event, **_MORE.get(event, {}),
    }  # fmt: skip
    began = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 -- the command of our own plugin
            ["/bin/sh", "-c", command], input=msgspec.json.encode(payload), capture_output=True,
            cwd=cwd, env=environment(environ, plugin, cwd), timeout=_PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(event, _PATIENCE, f"did not end within {_PATIENCE:g} s")
    except OSError as error:
        return Outcome(event, 0.0, f"cannot be run ({error.strerror})")
    took = time.monotonic() - began
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason"]
        return Outcome(event, took, f"ended with {done.returncode}: {said[0][:200]}")
    if event not in EVENTS:
        wrong = f"printed {done.stdout[:80]!r}" if done.stdout else ""
        return Outcome(event, took, wrong)
    if not done.stdout:
        return Outcome(event, took, "got no answer", silent=True)
    return Outcome(event, took, *_judged(event, done.stdout))


def _judged(event: str, out: bytes) -> tuple[str, bool]:
    """Is it the form in which the client takes context for this event?"""
    try:
        told = msgspec.json.decode(out, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return f"printed {out[:80]!r}", False
    if "systemMessage" in told:
        return "found no worker and could not start one", True
    inner = told.get("hookSpecificOutput")
    if not isinstance(inner, dict) or inner.get("hookEventName") != event:
        return f"printed {out[:80]!r}", False
    return ("" if inner.get("additionalContext") else "got an empty answer"), False


def try_server(name: str, words: list[str], environ: Mapping[str, str], cwd: Path) -> Outcome:
    """Does an MCP server answer the first request a client makes?"""
    first = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "yester-trial", "version": "1"},
        },
    }  # fmt: skip
    began = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 -- the words of our own plugin
            words, input=msgspec.json.encode(first) + b"\n", capture_output=True, cwd=cwd,
            env=dict(environ), timeout=_PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(name, _PATIENCE, f"did not answer and end within {_PATIENCE:g} s")
    except OSError as error:
        return Outcome(name, 0.0, f"{words[0]} cannot be run ({error.strerror})")
    took = time.monotonic() - began
    for line in done.stdout.splitlines():
        with suppress(msgspec.MsgspecError):
            told = msgspec.json.decode(line, type=dict[str, Any])
            if told.get("id") == 1 and "result" in told:
                return Outcome(name, took)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no reason"]
    return Outcome(name, took, f"gave no answer: {said[0][:200]}")


def servers(plugin: Path) -> dict[str, list[str]]:
    """name → command line of the plugin's MCP servers."""
    try:
        told = msgspec.json.decode((plugin / ".mcp.json").read_bytes())
    except FileNotFoundError:
        return {}
    return {
        name: [server["command"], *server.get("args", [])]
        for name, server in told.get("mcpServers", {}).items()
    }


def clear(spool: Spool) -> int:
    """Take made-up events out of the spool again, which no worker has; their number."""
    found = 0
    for path in spool.waiting():
        with suppress(OSError, ValueError, msgspec.MsgspecError):
            told = msgspec.json.decode(read(path).payload, type=dict[str, Any])
            if told.get("session_id") == TRIAL:
                acknowledge(path)
                found += 1
    return found
