"""What Claude Code itself says: which version it is, whether it loads our plugin, runs our hooks.

The program is asked without a session: it sends nothing, starts no hook and no server.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from yester.agents.descriptors import CLAUDE_CODE
from yester.install.claude_code import PLUGIN, link_in
from yester.llm.client import CLAUDE_PLACES

_PATIENCE = 30.0
# Settings of an organisation, which no user can change.
_MANAGED = (
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)
_QUIET = {
    "YESTER_OFF": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}


def program(environ: Mapping[str, str]) -> Path | None:
    """The `claude` of this shell, else one where its installers put it."""
    named = [shutil.which(CLAUDE_CODE.program, path=environ.get("PATH", ""))]
    for path in (*named, *(Path(place).expanduser() for place in CLAUDE_PLACES)):
        if path and os.access(path, os.X_OK):
            return Path(path)
    return None


def version(path: Path, environ: Mapping[str, str], cwd: Path) -> tuple[int, ...]:
    """() where it does not say."""
    said = _said(path, ["--version"], environ, cwd) or ""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()


def plugins(
    path: Path, folder: Path, environ: Mapping[str, str], cwd: Path
) -> list[dict[str, Any]] | None:
    """The plugins it knows in this configuration folder; None where it does not say."""
    clean = {name: value for name, value in environ.items() if name != "CLAUDE_CONFIG_DIR"}
    usual = folder == Path("~/.claude").expanduser()
    with ExitStack() as stack:
        if not (folder.parent if usual else folder).joinpath(".claude.json").exists():
            clean["CLAUDE_CONFIG_DIR"] = stack.enter_context(_double(folder, cwd))
        elif not usual:
            clean["CLAUDE_CONFIG_DIR"] = str(folder)
        said = _said(path, ["plugin", "list", "--json"], clean, cwd) or ""
    try:
        return msgspec.json.decode(said, type=list[dict[str, Any]])
    except msgspec.MsgspecError:
        return None


@contextmanager
def _double(folder: Path, home: Path) -> Iterator[str]:
    """A folder that says the same. One in which the client was never started it would fill with
    files of its own, and the user has not asked for that."""
    with TemporaryDirectory(prefix="claude-", dir=home / "run") as made:
        link = link_in(Path(made))
        link.parent.mkdir()
        link.symlink_to(link_in(folder).resolve())
        with suppress(OSError):
            shutil.copyfile(folder / "settings.json", Path(made, "settings.json"))
        yield made


def why_not_loaded(known: Sequence[Mapping[str, Any]]) -> str:
    """What keeps our plugin out, by the client's own account; empty: it is in."""
    others = [
        str(one.get("id"))
        for one in known
        if str(one.get("id")).startswith("yester@") and one.get("id") != PLUGIN
        and one.get("enabled")
    ]  # fmt: skip
    if others:
        return f"it loads {others[0]} instead"
    for one in known:
        if one.get("id") == PLUGIN:
            if errors := one.get("errors"):
                return f"it says: {' '.join(map(str, errors))[:300]}"
            return "" if one.get("enabled") else "it is switched off there"
    return "it does not see the plugin"


def hooks_off(folder: Path) -> tuple[str, str]:
    """The settings file that switches hooks off, and the name of the setting; empty: none does."""
    for path in (folder / "settings.json", Path(_MANAGED)):
        settings = _settings(path)
        if settings.get("disableAllHooks") is True:
            return str(path), "disableAllHooks"
        if str(path) == _MANAGED and settings.get("allowManagedHooksOnly") is True:
            return str(path), "allowManagedHooksOnly"
    return "", ""


def unreadable(folder: Path) -> str:
    """What is wrong with its settings file, which is the user's: nobody but them repairs it."""
    path = folder / "settings.json"
    try:
        msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return ""
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        return f"{path} is not a JSON object ({error})"
    return ""


def _settings(path: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _said(path: Path, words: Sequence[str], environ: Mapping[str, str], cwd: Path) -> str | None:
    clean = {  # it must not take itself for part of a session that may be going on around us
        name: value
        for name, value in environ.items()
        if not name.startswith(("CLAUDECODE", "CLAUDE_CODE_"))
    }
    try:
        done = subprocess.run(  # noqa: S603 -- the user's own program, words of ours
            [str(path), *words], capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, cwd=cwd, env={**clean, **_QUIET}, timeout=_PATIENCE,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
