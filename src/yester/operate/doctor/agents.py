"""yester in the agents, by their descriptors: is it in place, does each load it, and do its hooks
and its server do what they should?

An agent's program is asked without a session: it sends nothing, starts no hook and no server.

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

from yester.agents.descriptors import CLAUDE_CODE, INSTALLABLE, Agent
from yester.agents.hooks import TRIAL
from yester.capture.question import ask_health
from yester.capture.rules import is_off_here, load_pauses
from yester.capture.spool import Spool, read_event
from yester.errors import InstallError
from yester.llm.client import CLAUDE_PLACES, CLAUDE_QUIET
from yester.model import replace
from yester.operate import install
from yester.operate.doctor.finding import Examination, Finding, list_paths, make_finding
from yester.operate.doctor.trial import (
    TRIAL_PAYLOAD,
    Trial,
    ask_server,
    encode_request,
    find_answer,
    time_program,
)
from yester.operate.install import Place
from yester.operations.context import EVENTS

WORKER_SECONDS = 10.0  # that a worker may take to come up on a busy machine
_ASKED_SECONDS = 30.0
_AGAIN = 4  # times that a hook without an answer is tried once more
_VERSION = re.compile(r"(?<!\d)(\d{1,9})\.(\d{1,9})\.(\d{1,9})")
# Settings of an organisation, which no user can change.
_MANAGED = Path(
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)
_MANAGED_ONLY = "allowManagedHooksOnly"


# --- is it in place? -----------------------------------------------------------------------------


def _list_places(case: Examination) -> list[Place]:
    """Where the agents keep their settings, and where yester was once installed."""
    if case.places:
        return list(case.places)
    known = [
        Place(case.home, agent, folder)
        for agent in INSTALLABLE
        for folder in install.agent_folders(case.config, (), agent)
    ]
    with suppress(InstallError):  # said where the agents are looked at
        known += install.recorded_places(case.home)
    return list(dict.fromkeys(known))


def _list_installed(case: Examination) -> list[Place]:
    with suppress(InstallError):
        return [place for place in _list_places(case) if place.is_installed]
    return []


def look_at_plugin(case: Examination) -> list[Finding]:
    if not _list_installed(case):
        return []
    files = install.read_files(case.home, install.packaged_folder(), sys.executable)
    stale = install.plan_copy(case.home, files)
    say = partial(make_finding, copy=install.copy_folder(case.home))
    if not stale:
        return [say("plugin.current", number=len(files))]
    names = ", ".join(change.path.name for change in stale[:4])
    return [say("plugin.stale", partial(install.place_copy, case.home, files), names=names)]


def look_at_agents(case: Examination) -> Iterator[Finding]:
    for place in _list_places(case):
        for finding in _look_at_place(case, place):
            yield replace(finding, check=place.agent.name)


def _look_at_place(case: Examination, place: Place) -> Iterator[Finding]:
    agent = place.agent
    say = partial(make_finding, label=agent.label, name=agent.name, folder=place.folder)
    if not (place.is_installed or place.recorded):
        if place.folder.exists():
            yield say("agents.absent")
        return
    if lacking := install.plan_agent(place):
        yield say("agents.lost", what=list_paths([change.path for change in lacking]))
        return
    if not case.thorough:
        yield say("agents.linked")
        return
    if agent is CLAUDE_CODE:
        yield from look_at_settings(place.folder)
    yield _ask_client(case, place, say)
    yield from (say("agents.cannot", sentence=sentence) for sentence in agent.cannot)


def look_at_path(case: Examination) -> Iterator[Finding]:
    """The skill has the agent call `yester` in a shell."""
    lacks = shutil.which("yester", path=case.environ.get("PATH")) is None
    if lacks and _list_installed(case):
        yield make_finding("path.missing", folder=Path(sys.executable).parent)


# --- what the program says -----------------------------------------------------------------------


def _ask_client(case: Examination, place: Place, say: partial[Finding]) -> Finding:
    """Its version, and by its own account whether it loads us, where it gives one."""
    agent, program = place.agent, find_program(place.agent, case.environ)
    if program is None:
        return say("agents.not_asked", program=agent.program)
    version = read_version(program, case.environ, case.home)
    shown = _format_version(version) or "of an unknown version"
    say = partial(say, program=program, version=shown, plugin=install.PLUGIN)
    if version and version < agent.first_version:
        copy = install.copy_folder(case.home)
        return say("agents.old", first=_format_version(agent.first_version), copy=copy)
    if agent is CLAUDE_CODE:
        plugins = list_plugins(program, place.folder, case.environ, case.home)
        name, why = judge_listing(plugins)
        return say(f"claude-code.{name}", why=why, link=install.plugin_link(place.folder))
    if agent.name == "codex":
        trust = _judge_trust(case, place, program)
        return say("codex.new" if trust == "untrusted" and case.places else f"codex.{trust}")
    return say("agents.right")


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _judge_trust(case: Examination, place: Place, program: Path) -> str:
    """Codex skips hooks that the user has not trusted, silently. It is asked only where it has run:
    it would fill its folder."""
    if not (place.folder / "sessions").is_dir():
        return "unknown"
    environ = {**case.environ, "CODEX_HOME": str(place.folder)}
    wanted = {"cwds": [str(case.home)]}
    told = ask_server([str(program), "app-server"], "hooks/list", wanted, environ, case.home)
    rows = told.get("data") if isinstance(told, dict) else None
    hooks = [hook for row in rows or () for hook in row.get("hooks", ())]
    script = str(install.copy_folder(case.home))
    ours = [hook for hook in hooks if script in str(hook.get("command"))]
    trusted = [hook for hook in ours if hook.get("trustStatus") in ("trusted", "managed")]
    return "unknown" if not ours else "trusted" if len(ours) == len(trusted) else "untrusted"


def judge_listing(plugins: Sequence[Mapping[str, Any]] | None) -> tuple[str, str]:
    """The finding by Claude Code's own account of its plugins, and what keeps ours out."""
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


def find_program(agent: Agent, environ: Mapping[str, str]) -> Path | None:
    """The program of this shell; Claude Code's also where its installers put it."""
    on_path = shutil.which(agent.program, path=environ.get("PATH", ""))
    places = CLAUDE_PLACES if agent is CLAUDE_CODE else ()
    for path in (on_path, *(Path(place).expanduser() for place in places)):
        if path and os.access(path, os.X_OK):
            return Path(path)
    return None


def read_version(program: Path, environ: Mapping[str, str], cwd: Path) -> tuple[int, ...]:
    """() where it does not say."""
    shell = ["-c", '"$0" --version 2>&1', str(program)]  # pi tells it on stderr
    match = _VERSION.search(_ask_program(Path("/bin/sh"), shell, environ, cwd))
    return tuple(map(int, match.groups())) if match else ()


def list_plugins(
    program: Path, folder: Path, environ: Mapping[str, str], cwd: Path
) -> list[dict[str, Any]] | None:
    """The plugins Claude Code knows in this configuration folder; None where it does not say."""
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
    clean = {**_drop_session(environ), **CLAUDE_QUIET}
    done = time_program([str(program), *words], b"", cwd, clean, _ASKED_SECONDS)
    return "" if done.wrong else done.out.decode("utf-8", "replace")


def _drop_session(environ: Mapping[str, str]) -> dict[str, str]:
    """It must not take itself for part of a session that may be going on around us."""
    own = ("CLAUDECODE", "CLAUDE_CODE_", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
    return {name: value for name, value in environ.items() if not name.startswith(own)}


# --- hooks and servers on trial ------------------------------------------------------------------


def look_at_hooks(case: Examination, patience: float = WORKER_SECONDS) -> Iterator[Finding]:
    """Every hook of every agent once, as the client would run it."""
    places = _list_installed(case)
    if places and any(one.kind == "all" and not one.until for one in load_pauses(case.home)):
        yield make_finding("hooks.off")
    elif places and is_off_here(case.environ):
        yield make_finding("hooks.off_here")
    else:
        yield from (_try_hooks(case, place, patience) for place in places)


def _try_hooks(case: Examination, place: Place, patience: float) -> Finding:
    say = partial(make_finding, label=place.agent.label, name=place.agent.name, home=case.home)
    try:
        commands = hook_commands(place)
    except (OSError, ValueError, KeyError, TypeError) as error:
        return say("hooks.unreadable", error=error)
    times: dict[str, float] = {}
    for event, command in commands.items():
        trial = try_hook(place, event, command, case.environ)
        for _ in range(_AGAIN):  # it may only have been late: a hook waits for 0.28 s
            if not trial.silent or not _await_worker(case.home, patience):
                break
            trial = try_hook(place, event, command, case.environ)
        if trial.wrong:
            return _explain_hook(case.home, trial, partial(say, event=event, wrong=trial.wrong))
        times[event] = trial.seconds * 1000
    slowest = max(times, key=lambda event: times[event], default="")
    return say(
        "hooks.right", number=len(commands), slowest=slowest, milliseconds=times.get(slowest, 0)
    )


def _await_worker(home: Path, patience: float) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if ask_health(home):
            return True
        time.sleep(0.05)
    return False


def _explain_hook(home: Path, trial: Trial, say: partial[Finding]) -> Finding:
    left = clear_trials(Spool(home))
    if not trial.silent:
        return say("hooks.wrong")
    if ask_health(home):
        return say("hooks.elsewhere")
    return say("hooks.no_worker" if left else "hooks.no_event", log=home / "logs" / "worker.log")


def hook_commands(place: Place) -> dict[str, str]:
    """Our event → what the client runs. Claude Code's stand in the plugin: of several for an event
    the first, which is answered whatever there is to say."""
    agent = place.agent
    if agent is not CLAUDE_CODE:
        events = agent.events.values()
        return {event: install.hook_command(agent, place.home, event) for event in events}
    manifest = install.copy_folder(place.home) / "hooks" / "hooks.json"
    return {
        event: hook["command"]
        for event, entries in msgspec.json.decode(manifest.read_bytes())["hooks"].items()
        for entry in reversed(entries)
        for hook in entry["hooks"]
    }


def try_hook(place: Place, event: str, command: str, environ: Mapping[str, str]) -> Trial:
    """One hook, once, with what its client gives to a hook, for all we know."""
    cwd = place.home / "run" / "trial"
    cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
    payload = {**TRIAL_PAYLOAD, "cwd": str(cwd), "hook_event_name": event}
    given = _drop_session(environ)
    if place.agent is CLAUDE_CODE:
        given |= dict.fromkeys(CLAUDE_CODE.variables, "1")
        given |= {CLAUDE_CODE.session_variable: TRIAL, "CLAUDE_PROJECT_DIR": str(cwd)}
        given["CLAUDE_PLUGIN_ROOT"] = str(install.copy_folder(place.home))
    words = ["/bin/sh", "-c", command]
    trial = time_program(words, msgspec.json.encode(payload), cwd, given)
    return trial if trial.wrong else Trial(*trial[:2], *_judge_answer(place.agent, event, trial))


def _judge_answer(agent: Agent, event: str, trial: Trial) -> tuple[str, bool]:
    """What is wrong with what a hook printed, whose form depends on client and event; and whether
    it is wrong because nothing came."""
    unexpected = f"printed {trial.out[:80]!r}"
    if event not in EVENTS or event not in agent.answerable:
        return (unexpected if trial.out else ""), False
    if not trial.out:
        return "got no answer", True
    if agent.answer_form == "plain":
        return "", False
    try:
        answer = msgspec.json.decode(trial.out, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return unexpected, False
    if "systemMessage" in answer:
        return "found no worker and could not start one", True
    nested = agent.answer_form == "nested"
    inner = answer.get("hookSpecificOutput") if nested else answer
    if not isinstance(inner, dict) or (nested and inner.get("hookEventName") != event):
        return unexpected, False
    key = "additionalContext" if nested else agent.answer_form
    return ("" if inner.get(key) else "got an empty answer"), False


def look_at_servers(case: Examination) -> Iterator[Finding]:
    copy = install.copy_folder(case.home)
    for name, words in server_commands(copy).items() if _list_installed(case) else ():
        trial = try_server(words, case.environ, case.home)
        row = "mcp.wrong" if trial.wrong else "mcp.right"
        yield make_finding(row, name=name, wrong=trial.wrong, milliseconds=trial.seconds * 1000)


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


def try_server(words: list[str], environ: Mapping[str, str], cwd: Path) -> Trial:
    """Does an MCP server answer the first request a client makes?"""
    trial = time_program(words, encode_request("initialize", 1), cwd, environ)
    answered = find_answer(trial.out, 1) is not None
    return trial._replace(wrong="" if answered else trial.wrong or "gave no answer")


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
