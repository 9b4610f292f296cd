"""yester in Claude Code: does it load the plugin, and do our hooks do what they should?

The program is asked without a session: it sends nothing, starts no hook and no server.

Hooks are tried with made-up events. They belong to the session TRIAL and happen inside yester's
home: the worker answers them, so that the whole way is walked, and keeps nothing. One that is older
and does not know the session keeps nothing either, because of the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from yester.agents.descriptors import CLAUDE_CODE
from yester.agents.hooks import TRIAL
from yester.capture.question import ask_health
from yester.capture.rules import load_pauses
from yester.capture.spool import Spool, read_event
from yester.errors import InstallError
from yester.llm.client import CLAUDE_PLACES, CLAUDE_QUIET
from yester.operate import install
from yester.operate.doctor.finding import Examination, Finding, make_finding
from yester.operate.doctor.trial import TRIAL_PAYLOAD, Trial, time_program
from yester.operations.context import EVENTS

WORKER_SECONDS = 10.0  # that a worker may take to come up on a busy machine
_ASKED_SECONDS = 30.0
# Settings of an organisation, which no user can change.
_MANAGED = Path(
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)
_MANAGED_ONLY = "allowManagedHooksOnly"


# --- is it installed, and up to date? ----------------------------------------------------------


def _list_folders(case: Examination) -> list[Path]:
    """The agent's folders by the settings, and those where yester was once installed."""
    recorded: list[Path] = []
    with suppress(InstallError):
        recorded = _recorded_folders(case)
    return list(case.folders or dict.fromkeys([*install.agent_folders(case.config), *recorded]))


def _recorded_folders(case: Examination) -> list[Path]:
    rows = install.read_installed(case.home).values()
    return [Path(row.folder) for row in rows if row.agent == CLAUDE_CODE.name]


def _find_link(case: Examination) -> Path | None:
    """The plugin as an agent sees it; None where it is installed in none."""
    folders = (one for one in _list_folders(case) if install.is_installed(case.home, one))
    return next(map(install.plugin_link, folders), None)


def look_at_plugin(case: Examination) -> list[Finding]:
    if _find_link(case) is None:
        return []
    files = install.read_files(case.home, install.packaged_folder(), sys.executable)
    stale = install.plan_copy(case.home, files)
    say = partial(make_finding, copy=install.copy_folder(case.home))
    if not stale:
        return [say("plugin.current", number=len(files))]
    names = ", ".join(change.path.name for change in stale[:4])
    return [say("plugin.stale", partial(install.place_copy, case.home, files), names=names)]


def look_at_folders(case: Examination) -> Iterator[Finding]:
    recorded = _recorded_folders(case)
    for folder in _list_folders(case):
        if install.is_installed(case.home, folder):
            yield from _look_at_client(case, folder)
        elif folder in recorded:
            yield make_finding("claude-code.lost", folder=folder)
        elif folder.exists():
            yield make_finding("claude-code.absent", folder=folder)


def look_at_path(case: Examination) -> Iterator[Finding]:
    """The skill has the agent call `yester` in a shell."""
    link = _find_link(case)
    lacks = shutil.which("yester", path=case.environ.get("PATH")) is None
    if link and (link / "skills").exists() and lacks:
        yield make_finding("path.missing", folder=Path(sys.executable).parent)


# --- what the program says ---------------------------------------------------------------------


def _look_at_client(case: Examination, folder: Path) -> Iterator[Finding]:
    link = install.plugin_link(folder)
    if not case.thorough:
        yield make_finding("claude-code.linked", link=link)
        return
    yield from look_at_settings(folder)
    program = find_program(case.environ)
    if program is None:
        yield make_finding("claude-code.not_asked", link=link)
        return
    version = read_version(program, case.environ, case.home)
    shown = _format_version(version) or "of an unknown version"
    say = partial(make_finding, program=program, version=shown, link=link, plugin=install.PLUGIN)
    if version and version < CLAUDE_CODE.first_version:
        first = _format_version(CLAUDE_CODE.first_version)
        yield say("claude-code.old", first=first, copy=install.copy_folder(case.home))
        return
    name, why = judge_listing(list_plugins(program, folder, case.environ, case.home))
    yield say(f"claude-code.{name}", why=why)


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def judge_listing(plugins: Sequence[Mapping[str, Any]] | None) -> tuple[str, str]:
    """The finding by the client's own account of its plugins, and what keeps ours out."""
    if plugins is None:
        return "no_list", ""
    ids = [str(plugin.get("id")) for plugin in plugins if plugin.get("enabled")]
    if others := [name for name in ids if name.startswith("yester@") and name != install.PLUGIN]:
        return "another", f"it loads {others[0]} instead"
    ours = next((one for one in plugins if one.get("id") == install.PLUGIN), None)
    if ours is None:
        return "not_loaded", "it does not see the plugin"
    if errors := ours.get("errors"):
        return "not_loaded", f"it says: {' '.join(map(str, errors))[:300]}"
    return ("loaded", "") if ours.get("enabled") else ("switched_off", "it is switched off there")


def find_program(environ: Mapping[str, str]) -> Path | None:
    """The `claude` of this shell, else one where its installers put it."""
    on_path = shutil.which(CLAUDE_CODE.program, path=environ.get("PATH", ""))
    for path in (on_path, *(Path(place).expanduser() for place in CLAUDE_PLACES)):
        if path and os.access(path, os.X_OK):
            return Path(path)
    return None


def read_version(program: Path, environ: Mapping[str, str], cwd: Path) -> tuple[int, ...]:
    """() where it does not say."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", _ask_program(program, ["--version"], environ, cwd))
    return tuple(map(int, match.groups())) if match else ()


def list_plugins(
    program: Path, folder: Path, environ: Mapping[str, str], cwd: Path
) -> list[dict[str, Any]] | None:
    """The plugins it knows in this configuration folder; None where it does not say."""
    clean = {name: value for name, value in environ.items() if name != "CLAUDE_CONFIG_DIR"}
    usual = folder == Path("~/.claude").expanduser()
    with ExitStack() as stack:
        if not (folder.parent if usual else folder).joinpath(".claude.json").exists():
            clean["CLAUDE_CONFIG_DIR"] = stack.enter_context(_double_folder(folder, cwd))
        elif not usual:
            clean["CLAUDE_CONFIG_DIR"] = str(folder)
        text = _ask_program(program, ["plugin", "list", "--json"], clean, cwd)
    try:
        return msgspec.json.decode(text, type=list[dict[str, Any]])
    except msgspec.MsgspecError:
        return None


@contextmanager
def _double_folder(folder: Path, home: Path) -> Iterator[str]:
    """A folder that says the same. One in which the client was never started it would fill with
    files of its own, and the user has not asked for that."""
    with TemporaryDirectory(prefix="claude-", dir=home / "run") as double:
        link = install.plugin_link(Path(double))
        link.parent.mkdir()
        link.symlink_to(install.plugin_link(folder).resolve())
        with suppress(OSError):
            shutil.copyfile(folder / "settings.json", Path(double, "settings.json"))
        yield double


def look_at_settings(folder: Path) -> Iterator[Finding]:
    """What keeps hooks out; nobody but the client's user repairs its settings."""
    off = ("disableAllHooks",)
    for path, names in ((folder / "settings.json", off), (_MANAGED, (*off, _MANAGED_ONLY))):
        try:
            settings = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            yield make_finding("claude-code.settings", path=path, error=error)
            continue
        if setting := next((name for name in names if settings.get(name) is True), ""):
            yield make_finding("claude-code.hooks_off", setting=setting, path=path)


def _ask_program(program: Path, words: Sequence[str], environ: Mapping[str, str], cwd: Path) -> str:
    """What it prints; "" where it fails."""
    clean = {  # it must not take itself for part of a session that may be going on around us
        name: value
        for name, value in environ.items()
        if not name.startswith(("CLAUDECODE", "CLAUDE_CODE_"))
    }
    words = [str(program), *words]
    done = time_program(words, b"", cwd, {**clean, **CLAUDE_QUIET}, _ASKED_SECONDS)
    return "" if done.wrong else done.out.decode("utf-8", "replace")


# --- hooks and servers on trial ----------------------------------------------------------------


def look_at_hooks(case: Examination, patience: float = WORKER_SECONDS) -> list[Finding]:
    """Every hook once, as the client would run it."""
    link = _find_link(case)
    if link is None:
        return []
    if any(one.kind == "all" and not one.until for one in load_pauses(case.home)):
        return [make_finding("hooks.off")]
    if case.environ.get("YESTER_OFF", "0").lower() not in ("", "0", "false"):
        return [make_finding("hooks.off_here")]
    try:
        commands = hook_commands(link)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [make_finding("hooks.unreadable", link=link, error=error)]
    times: dict[str, float] = {}
    for event, command in commands.items():
        trial = try_hook(case.home, link, event, command, case.environ)
        if trial.silent and _await_worker(case.home, patience):  # it may only have been late
            trial = try_hook(case.home, link, event, command, case.environ)
        if trial.wrong:
            return [_explain_hook(case.home, event, trial)]
        times[event] = trial.seconds * 1000
    slowest = max(times, key=lambda event: times[event], default="")
    say = partial(make_finding, number=len(commands), slowest=slowest)
    return [say("hooks.right", milliseconds=times.get(slowest, 0))]


def _await_worker(home: Path, patience: float) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if ask_health(home):
            return True
        time.sleep(0.05)
    return False


def _explain_hook(home: Path, event: str, trial: Trial) -> Finding:
    say = partial(make_finding, event=event, wrong=trial.wrong)
    left = clear_trials(Spool(home))
    if not trial.silent:
        return say("hooks.wrong")
    if ask_health(home):
        return say("hooks.elsewhere", home=home)
    return say("hooks.no_worker" if left else "hooks.no_event", log=home / "logs" / "worker.log")


def look_at_servers(case: Examination) -> Iterator[Finding]:
    link = _find_link(case)
    for name, words in server_commands(link).items() if link else ():
        trial = try_server(words, case.environ, case.home)
        say = partial(make_finding, name=name, wrong=trial.wrong)
        row = "mcp.wrong" if trial.wrong else "mcp.right"
        yield say(row, milliseconds=trial.seconds * 1000)


_INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "yester-trial", "version": "1"},
    },
}  # fmt: skip


def hook_commands(plugin: Path) -> dict[str, str]:
    """event → what the client runs, out of the plugin's hooks.json; the first, which is answered
    whatever there is to say."""
    manifest = msgspec.json.decode((plugin / "hooks" / "hooks.json").read_bytes())
    return {
        event: hook["command"]
        for event, entries in manifest["hooks"].items()
        for entry in reversed(entries)
        for hook in entry["hooks"]
    }


def server_commands(plugin: Path) -> dict[str, list[str]]:
    """name → command line of the plugin's MCP servers."""
    try:
        manifest = msgspec.json.decode((plugin / ".mcp.json").read_bytes())
    except FileNotFoundError:
        return {}
    return {
        name: [server["command"], *server.get("args", [])]
        for name, server in manifest.get("mcpServers", {}).items()
    }


def try_hook(
    home: Path, plugin: Path, event: str, command: str, environ: Mapping[str, str]
) -> Trial:
    """One hook, once, with what Claude Code gives to a hook, for all we know."""
    cwd = home / "run" / "trial"
    cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
    payload = {**TRIAL_PAYLOAD, "cwd": str(cwd), "hook_event_name": event}
    given = {
        **environ,
        **dict.fromkeys(CLAUDE_CODE.variables, "1"),
        CLAUDE_CODE.session_variable: TRIAL,
        "CLAUDE_PROJECT_DIR": str(cwd),
        "CLAUDE_PLUGIN_ROOT": str(plugin),
    }
    words = ["/bin/sh", "-c", command]
    trial = time_program(words, msgspec.json.encode(payload), cwd, given)
    return trial if trial.wrong else Trial(*trial[:2], *_judge_answer(event, trial.out))


def _judge_answer(event: str, out: bytes) -> tuple[str, bool]:
    """What is wrong with what a hook printed, whose form depends on the event; and whether it is
    wrong because nothing came."""
    unexpected = f"printed {out[:80]!r}"
    if event not in EVENTS:
        return (unexpected if out else ""), False
    if not out:
        return "got no answer", True
    try:
        answer = msgspec.json.decode(out, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return unexpected, False
    if "systemMessage" in answer:
        return "found no worker and could not start one", True
    inner = answer.get("hookSpecificOutput")
    if not isinstance(inner, dict) or inner.get("hookEventName") != event:
        return unexpected, False
    return ("" if inner.get("additionalContext") else "got an empty answer"), False


def try_server(words: list[str], environ: Mapping[str, str], cwd: Path) -> Trial:
    """Does an MCP server answer the first request a client makes?"""
    trial = time_program(words, msgspec.json.encode(_INITIALIZE), cwd, environ)
    for line in trial.out.splitlines():
        with suppress(msgspec.MsgspecError):
            answer = msgspec.json.decode(line, type=dict[str, Any])
            if answer.get("id") == 1 and "result" in answer:
                return trial._replace(wrong="")
    return trial._replace(wrong=trial.wrong or "gave no answer")


def clear_trials(spool: Spool) -> int:
    """Take made-up events out of the spool again, which no worker has; their number."""
    number = 0
    for path in spool.list_waiting():
        with suppress(OSError, ValueError, msgspec.MsgspecError):
            event = msgspec.json.decode(read_event(path).payload, type=dict[str, Any])
            if event.get("session_id") == TRIAL:
                path.unlink(missing_ok=True)
                number += 1
    return number
