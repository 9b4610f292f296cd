"""Agents in which yester is installed: do they load it, and do its hooks do what they should?"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from yester.agents.descriptors import CLAUDE_CODE
from yester.capture.question import ask_worker
from yester.capture.rules import pauses
from yester.capture.spool import Spool
from yester.errors import InstallError
from yester.operate import claude_code as client
from yester.operate import install
from yester.operate.doctor.finding import Examination, Finding, make_finding

WORKER_SECONDS = 10.0  # that a worker may take to come up on a busy machine


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
        yield make_finding("plugin.unreadable", error=error)
        return
    names = ", ".join(change.path.name for change in stale[:4])
    name = "plugin.stale" if stale else "plugin.current"
    yield make_finding(name, copy=copy, names=names, number=len(files))


def mend_plugin(case: Examination) -> Iterator[Finding]:
    if _find_link(case) is None:
        return
    with suppress(InstallError):  # then it stays as it is, and that is said
        files = install.read_files(install.packaged_folder(), sys.executable)
        if done := install.place_copy(case.home, files):
            names = ", ".join(change.path.name for change in done[:4])
            copy = install.copy_folder(case.home)
            yield make_finding("plugin.renewed", copy=copy, names=names)


def look_at_agents(case: Examination) -> Iterator[Finding]:
    try:
        recorded = install.recorded_folders(case.home)
    except InstallError as error:
        yield make_finding("claude-code.record", error=error)
        recorded = []
    for folder in _list_folders(case):
        if install.is_installed(case.home, folder):
            yield from _look_at_client(case, folder)
        elif folder in recorded:
            yield make_finding("claude-code.lost", folder=folder)
        elif folder.exists():
            yield make_finding("claude-code.absent", folder=folder)


def _look_at_client(case: Examination, folder: Path) -> Iterator[Finding]:
    link = install.plugin_link(folder)
    if not case.thorough:
        yield make_finding("claude-code.linked", link=link)
        return
    _, unreadable = client.read_settings(folder / "settings.json")
    if unreadable:
        yield make_finding("claude-code.settings", wrong=unreadable)
    path, setting = client.find_hooks_off(folder)
    if path:
        yield make_finding("claude-code.hooks_off", setting=setting, path=path)
    program = client.find_program(case.environ)
    if program is None:
        yield make_finding("claude-code.not_asked", link=link)
        return
    version = client.read_version(program, case.environ, case.home)
    shown = _format_version(version) or "of an unknown version"
    first, tried = map(_format_version, (CLAUDE_CODE.first_version, CLAUDE_CODE.tried_version))
    say = partial(make_finding, program=program, version=shown, link=link, plugin=install.PLUGIN)
    if version and version < CLAUDE_CODE.first_version:
        yield say("claude-code.old", first=first, copy=install.copy_folder(case.home))
        return
    if version[:2] != CLAUDE_CODE.tried_version[:2]:
        yield say("claude-code.untried", tried=tried)
    plugins = client.list_plugins(program, folder, case.environ, case.home)
    why = client.why_not_loaded(plugins or ())
    if plugins is None:
        yield say("claude-code.no_list")
    elif not why:
        yield say("claude-code.loaded")
    elif "switched off" in why:
        yield say("claude-code.switched_off", why=why)
    else:
        yield say("claude-code.another" if "instead" in why else "claude-code.not_loaded", why=why)


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def look_at_hooks(case: Examination, patience: float = WORKER_SECONDS) -> Iterator[Finding]:
    """Every hook once, as the client would run it."""
    link = _find_link(case)
    if link is None:
        return
    if any(one.kind == "all" and not one.until for one in pauses(case.home)):
        yield make_finding("hooks.off")
        return
    if case.environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false"):
        yield make_finding("hooks.off_here")
        return
    try:
        commands = client.hook_commands(link)
    except (OSError, ValueError, KeyError, TypeError) as error:
        yield make_finding("hooks.unreadable", link=link, error=error)
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
    number, milliseconds = len(commands), slowest.seconds * 1000
    yield make_finding(
        "hooks.right", number=number, slowest=slowest.what, milliseconds=milliseconds
    )


def _await_worker(home: Path, patience: float) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if ask_worker(home / "run", "GET /health", 1.0) is not None:
            return True
        time.sleep(0.05)
    return False


def _explain_hook(home: Path, outcome: client.Outcome) -> Finding:
    say = partial(make_finding, event=outcome.what, wrong=outcome.wrong)
    left = client.clear_trials(Spool(home))
    if not outcome.silent:
        return say("hooks.wrong")
    if ask_worker(home / "run", "GET /health", 1.0) is not None:
        return say("hooks.elsewhere", home=home)
    return say("hooks.no_worker" if left else "hooks.no_event", log=home / "logs" / "worker.log")


def look_at_servers(case: Examination) -> Iterator[Finding]:
    link = _find_link(case)
    for name, words in client.server_commands(link).items() if link else ():
        outcome = client.try_server(name, words, case.environ, case.home)
        milliseconds = outcome.seconds * 1000
        row = "mcp.wrong" if outcome.wrong else "mcp.right"
        yield make_finding(row, name=name, wrong=outcome.wrong, milliseconds=milliseconds)


def look_at_path(case: Examination) -> Iterator[Finding]:
    """The skill has the agent call `yester` in a shell."""
    link = _find_link(case)
    lacks = shutil.which("yester", path=case.environ.get("PATH")) is None
    if link and (link / "skills").exists() and lacks:
        yield make_finding("path.missing", folder=Path(sys.executable).parent)
