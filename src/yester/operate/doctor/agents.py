"""Agents in which yester is installed: do they load it, and do its hooks do what they should?"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from yester.agents.descriptors import CLAUDE_CODE
from yester.capture.question import ask_worker
from yester.capture.rules import pauses
from yester.capture.spool import Spool
from yester.errors import InstallError
from yester.operate import claude_code as client
from yester.operate import install
from yester.operate.doctor.finding import FIXING, Examination, Finding, note, ok, problem

WORKER_SECONDS = 10.0  # that a worker may take to come up on a busy machine
_AGENT = CLAUDE_CODE.name
_AGAIN = f"Run: yester install --agent {_AGENT}"


def _list_folders(case: Examination) -> list[Path]:
    """The agent's folders by the settings, and those where yester was once installed."""
    recorded: list[Path] = []
    with suppress(InstallError):
        recorded = install.recorded_folders(case.home)
    return list(case.folders or dict.fromkeys([*install.agent_folders(case.config), *recorded]))


def _find_link(case: Examination) -> Path | None:
    """The plugin as an agent sees it; None where it is installed in none."""
    folders = (one for one in _list_folders(case) if install.is_installed(case.home, one))
    return next(map(install.plugin_link, folders), None)


def look_at_plugin(case: Examination) -> Iterator[Finding]:
    if _find_link(case) is None:
        return
    copy = install.copy_folder(case.home)
    try:
        files = install.read_files(install.packaged_folder(), sys.executable)
        stale = install.plan_copy(case.home, files)
    except (InstallError, OSError) as error:
        yield problem("plugin", str(error), _AGAIN)
        return
    if stale:
        names = ", ".join(change.path.name for change in stale[:4])
        yield problem("plugin", f"{copy} is not that of this version: {names}", FIXING)
    else:
        yield ok("plugin", f"{copy}, {len(files)} files")


def mend_plugin(case: Examination) -> Iterator[Finding]:
    if _find_link(case) is None:
        return
    with suppress(InstallError):  # then it stays as it is, and that is said
        files = install.read_files(install.packaged_folder(), sys.executable)
        if done := install.place_copy(case.home, files):
            names = ", ".join(change.path.name for change in done[:4])
            yield ok("plugin", f"{install.copy_folder(case.home)} brought up to date: {names}")


def look_at_agents(case: Examination) -> Iterator[Finding]:
    try:
        recorded = install.recorded_folders(case.home)
    except InstallError as error:
        yield problem(_AGENT, str(error), _AGAIN)
        recorded = []
    for folder in _list_folders(case):
        if install.is_installed(case.home, folder):
            yield from _look_at_client(case, folder)
        elif folder in recorded:
            yield problem(
                _AGENT,
                f"yester was installed in {folder}, but its link is gone: nothing is captured",
                f"{_AGAIN}, or: yester uninstall --agent {_AGENT}",
            )
        elif folder.exists():
            yield note(_AGENT, f"{folder} is there, but has no yester", _AGAIN)


def _look_at_client(case: Examination, folder: Path) -> Iterator[Finding]:
    link = install.plugin_link(folder)
    if not case.thorough:
        yield ok(_AGENT, f"{link} is in place")
        return
    _, unreadable = client.read_settings(folder / "settings.json")
    if unreadable:
        fix = "Correct it, or move it away."
        yield note(_AGENT, f"{unreadable}; Claude Code goes without it", fix)
    path, setting = client.find_hooks_off(folder)
    if path:
        fix = "Take it out of there; whoever has put it there had a reason."
        yield problem(_AGENT, f"{setting} in {path} switches off all hooks, ours too", fix)
    program = client.find_program(case.environ)
    if program is None:
        text = f"{link} is in place; the program claude is not to be found, so it was not asked"
        yield note(_AGENT, text, "Start a session: the next doctor shows whether events came.")
        return
    version = client.read_version(program, case.environ, case.home)
    shown = _format_version(version) or "of an unknown version"
    if version and version < CLAUDE_CODE.first_version:
        first = _format_version(CLAUDE_CODE.first_version)
        copy = install.copy_folder(case.home)
        fix = f"Run: claude update, or start it with: claude --plugin-dir '{copy}'"
        yield problem(_AGENT, f"{program} is {shown}; plugins of this kind need {first}", fix)
        return
    if version[:2] != CLAUDE_CODE.tried_version[:2]:
        tried = _format_version(CLAUDE_CODE.tried_version)
        yield note(_AGENT, f"{program} is {shown}; yester was tried with {tried}")
    plugins = client.list_plugins(program, folder, case.environ, case.home)
    if plugins is None:
        fix = f"Look yourself: claude plugin list must show {install.PLUGIN}."
        yield note(_AGENT, f"{program} does not say which plugins it loads", fix)
    elif why := client.why_not_loaded(plugins):
        yield problem(_AGENT, f"{shown} does not load {link}: {why}", _advise_loading(why))
    else:
        yield ok(_AGENT, f"{shown} loads {link}")


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _advise_loading(why: str) -> str:
    if "switched off" in why:
        return f"Run: claude plugin enable {install.PLUGIN}"
    if "instead" in why:
        return "Its hooks work as well; keep one of the two: yester uninstall, or /plugin there."
    return f"{_AGAIN}; if it stays so, your organisation's settings may forbid it."


def look_at_hooks(case: Examination, patience: float = WORKER_SECONDS) -> Iterator[Finding]:
    """Every hook once, as the client would run it."""
    link = _find_link(case)
    if link is None:
        return
    if any(one.kind == "all" and not one.until for one in pauses(case.home)):
        fix = "Run: yester off --all --undo"
        yield note("hooks", "not tried: yester is off everywhere", fix)
        return
    if case.environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false"):
        text = "YESTER_OFF is set in this shell, so sessions started from it are not remembered"
        yield note("hooks", f"not tried: {text}", "Run: unset YESTER_OFF")
        return
    try:
        commands = client.hook_commands(link)
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield problem("hooks", f"{link}/hooks/hooks.json: {error!r}", _AGAIN)
        return
    slowest = client.Outcome("", 0.0)
    for event, command in commands.items():
        outcome = client.try_hook(case.home, link, event, command, case.environ)
        if outcome.silent and _await_worker(case.home, patience):  # it may only have been late
            outcome = client.try_hook(case.home, link, event, command, case.environ)
        if outcome.wrong:
            yield _explain_hook(case.home, outcome)
            return
        slowest = max(slowest, outcome, key=lambda one: one.seconds)
    yield ok(
        "hooks",
        f"{len(commands)} of {len(commands)} do what they should, the slowest ({slowest.what}) in"
        f" {slowest.seconds * 1000:.0f} ms",
    )


def _await_worker(home: Path, patience: float) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if ask_worker(home / "run", "GET /health", 1.0) is not None:
            return True
        time.sleep(0.05)
    return False


def _explain_hook(home: Path, outcome: client.Outcome) -> Finding:
    text = f"{outcome.what} {outcome.wrong}"
    left = client.clear_trials(Spool(home))
    if not outcome.silent:
        return problem("hooks", text, f"{FIXING}, and see python3 above.")
    if ask_worker(home / "run", "GET /health", 1.0) is None:
        reason = (
            "its event is in the spool, but no worker came up"
            if left
            else "no worker came up, and its event is not in the spool"
        )
        log = home / "logs" / "worker.log"
        fix = f"See {log}, or run the worker in the foreground: yester worker run"
        return problem("hooks", f"{text}: {reason}", fix)
    return problem(
        "hooks",
        f"{text}, though the worker runs: its event did not reach {home}",
        f"{FIXING}; the folder must be yours alone, and hooks use it only where it is ~/.yester, or"
        " YESTER_HOME names it and a command of yours has used it.",
    )


def look_at_servers(case: Examination) -> Iterator[Finding]:
    link = _find_link(case)
    for name, words in client.server_commands(link).items() if link else ():
        outcome = client.try_server(name, words, case.environ, case.home)
        if outcome.wrong:
            yield problem("mcp", f"{name} {outcome.wrong}", _AGAIN)
        else:
            yield ok("mcp", f"{name} answers within {outcome.seconds * 1000:.0f} ms")


def look_at_path(case: Examination) -> Iterator[Finding]:
    """The skill has the agent call `yester` in a shell."""
    link = _find_link(case)
    lacks = shutil.which("yester", path=case.environ.get("PATH")) is None
    if link and (link / "skills").exists() and lacks:
        yield note(
            "path",
            "yester is not on the PATH, and the skill mem-search calls it",
            f"Put {Path(sys.executable).parent} on the PATH your agent is started with.",
        )
