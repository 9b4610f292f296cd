"""Agents in which yester is installed: do they load it, and do its hooks do what they should?"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from yester.agents.descriptors import CLAUDE_CODE
from yester.capture.question import ask_worker
from yester.capture.rules import pauses
from yester.capture.spool import Spool
from yester.config import Config
from yester.doctor.finding import Finding
from yester.errors import InstallError
from yester.install import claude_code, client, plugin, record, trial

_COMING_UP = 10.0  # seconds a worker may take on a busy machine
_AGAIN = f"Run: yester install --agent {CLAUDE_CODE.name}"


def agents(
    home: Path, config: Config, environ: Mapping[str, str], fix: bool, folders: Sequence[Path] = ()
) -> Iterator[Finding]:
    """One agent today. `folders`: where to look, instead of wherever it may be."""
    name = CLAUDE_CODE.name
    try:
        known = [Path(one.folder) for one in record.read(home) if one.agent == name]
    except InstallError as error:
        yield Finding(name, "problem", str(error), _AGAIN)
        known = []
    places = folders or list(dict.fromkeys([*claude_code.folders(config), *known]))
    installed = [folder for folder in places if claude_code.is_installed(home, folder)]
    for folder in places:
        if folder in installed:
            yield from _claude_code(home, folder, environ, fix)
        elif folder in known:
            yield Finding(
                name, "problem",
                f"yester was installed in {folder}, but its link is gone: nothing is captured",
                f"{_AGAIN}, or: yester uninstall --agent {name}",
            )  # fmt: skip
        elif folder.exists():
            yield Finding(name, "note", f"{folder} is there, but has no yester", _AGAIN)
    if installed:
        yield from _hooks(home, claude_code.link_in(installed[0]), environ)
        yield from _servers(home, claude_code.link_in(installed[0]), environ)
        yield from _command(claude_code.link_in(installed[0]), environ)


def installed(home: Path, config: Config) -> Iterator[Finding]:
    """Where it stands, by the files alone: no program is started."""
    name = CLAUDE_CODE.name
    for folder in claude_code.folders(config):
        if claude_code.is_installed(home, folder):
            yield Finding(name, "ok", f"{claude_code.link_in(folder)} is in place")
            yield from _copy(home, False)
        elif folder.exists():
            yield Finding(name, "note", f"{folder} is there, but has no yester", _AGAIN)


def _claude_code(
    home: Path, folder: Path, environ: Mapping[str, str], fix: bool
) -> Iterator[Finding]:
    name, link = CLAUDE_CODE.name, claude_code.link_in(folder)
    yield from _copy(home, fix)
    if wrong := client.unreadable(folder):
        yield Finding(
            name, "note", f"{wrong}; Claude Code goes without it", "Correct it, or move it away."
        )
    path, setting = client.hooks_off(folder)
    if path:
        yield Finding(
            name, "problem", f"{setting} in {path} switches off all hooks, ours too",
            "Take it out of there; whoever has put it there had a reason.",
        )  # fmt: skip
    program = client.program(environ)
    if program is None:
        yield Finding(
            name, "note", f"{link} is in place; the program claude is not to be found, so it was"
            " not asked", "Start a session: the next doctor shows whether events came.",
        )  # fmt: skip
        return
    version = client.version(program, environ, home)
    shown = ".".join(map(str, version)) or "of an unknown version"
    if version and version < CLAUDE_CODE.first_version:
        first = ".".join(map(str, CLAUDE_CODE.first_version))
        yield Finding(
            name, "problem", f"{program} is {shown}; plugins of this kind need {first}",
            f"Run: claude update, or start it with: claude --plugin-dir '{plugin.copy_of(home)}'",
        )  # fmt: skip
        return
    if version[:2] != CLAUDE_CODE.tried_version[:2]:
        tried = ".".join(map(str, CLAUDE_CODE.tried_version))
        yield Finding(name, "note", f"{program} is {shown}; yester was tried with {tried}")
    plugins = client.plugins(program, folder, environ, home)
    if plugins is None:
        yield Finding(
            name, "note", f"{program} does not say which plugins it loads",
            f"Look yourself: claude plugin list must show {claude_code.PLUGIN}.",
        )  # fmt: skip
    elif why := client.why_not_loaded(plugins):
        yield Finding(name, "problem", f"{shown} does not load {link}: {why}", _door(why))
    else:
        yield Finding(name, "ok", f"{shown} loads {link}")


def _door(why: str) -> str:
    if "switched off" in why:
        return f"Run: claude plugin enable {claude_code.PLUGIN}"
    if "instead" in why:
        return "Its hooks work as well; keep one of the two: yester uninstall, or /plugin there."
    return f"{_AGAIN}; if it stays so, your organisation's settings may forbid it."


def _copy(home: Path, fix: bool) -> Iterator[Finding]:
    try:
        files = plugin.wanted(plugin.packaged(), sys.executable)
        stale = plugin.place(home, files) if fix else plugin.changes(home, files)
    except (InstallError, OSError) as error:
        yield Finding("plugin", "problem", str(error), _AGAIN)
        return
    names = ", ".join(change.path.name for change in stale[:4])
    if stale and fix:
        yield Finding("plugin", "ok", f"{plugin.copy_of(home)} brought up to date: {names}")
    elif stale:
        yield Finding(
            "plugin", "problem", f"{plugin.copy_of(home)} is not that of this version: {names}",
            "Run: yester doctor --fix",
        )  # fmt: skip
    else:
        yield Finding("plugin", "ok", f"{plugin.copy_of(home)}, {len(files)} files")


def _hooks(
    home: Path, link: Path, environ: Mapping[str, str], patience: float = _COMING_UP
) -> Iterator[Finding]:
    """Every hook once, as the client would run it."""
    if any(one.kind == "all" and not one.until for one in pauses(home)):
        yield Finding(
            "hooks", "note", "not tried: yester is off everywhere", "Run: yester off --all --undo"
        )
        return
    if environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false"):
        yield Finding(
            "hooks", "note", "not tried: YESTER_OFF is set in this shell, so sessions started from"
            " it are not remembered", "Run: unset YESTER_OFF",
        )  # fmt: skip
        return
    try:
        commands = trial.commands(link)
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield Finding("hooks", "problem", f"{link}/hooks/hooks.json: {error!r}", _AGAIN)
        return
    outcomes = []
    for event, command in commands.items():
        outcome = trial.try_hook(home, link, event, command, environ)
        if outcome.silent and _comes_up(home, patience):  # it may only have been late
            outcome = trial.try_hook(home, link, event, command, environ)
        outcomes.append(outcome)
        if outcome.wrong:
            break
    if outcomes[-1].wrong:
        yield _wrong(home, outcomes[-1])
        return
    slowest = max(outcomes, key=lambda one: one.seconds)
    yield Finding(
        "hooks", "ok", f"{len(outcomes)} of {len(commands)} do what they should, the slowest "
        f"({slowest.what}) in {slowest.seconds * 1000:.0f} ms",
    )  # fmt: skip


def _comes_up(home: Path, patience: float) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if ask_worker(home / "run", "GET /health", 1.0) is not None:
            return True
        time.sleep(0.05)
    return False


def _wrong(home: Path, outcome: trial.Outcome) -> Finding:
    text = f"{outcome.what} {outcome.wrong}"
    left = trial.clear(Spool(home))
    if not outcome.silent:
        return Finding("hooks", "problem", text, "Run: yester doctor --fix, and see python3 above.")
    if ask_worker(home / "run", "GET /health", 1.0) is None:
        reason = "its event is in the spool, but no worker came up" if left else (
            "no worker came up, and its event is not in the spool"
        )  # fmt: skip
        log = home / "logs" / "worker.log"
        return Finding(
            "hooks", "problem", f"{text}: {reason}",
            f"See {log}, or run the worker in the foreground: yester worker run",
        )  # fmt: skip
    return Finding(
        "hooks", "problem", f"{text}, though the worker runs: its event did not reach {home}",
        "Run: yester doctor --fix; the folder must be yours alone, and hooks use it only where"
        " it is ~/.yester, or YESTER_HOME names it and a command of yours has used it.",
    )  # fmt: skip


def _servers(home: Path, link: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    for name, words in trial.servers(link).items():
        outcome = trial.try_server(name, words, environ, home)
        if outcome.wrong:
            yield Finding("mcp", "problem", f"{name} {outcome.wrong}", _AGAIN)
        else:
            yield Finding("mcp", "ok", f"{name} answers within {outcome.seconds * 1000:.0f} ms")


def _command(link: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The skill has the agent call `yester` in a shell."""
    if (link / "skills").exists() and shutil.which("yester", path=environ.get("PATH")) is None:
        yield Finding(
            "path", "note", "yester is not on the PATH, and the skill mem-search calls it",
            f"Put {Path(sys.executable).parent} on the PATH your agent is started with.",
        )  # fmt: skip
