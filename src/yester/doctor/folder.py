"""yester's folder: room, modes, owners; what is read and by which settings."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import apsw

from yester import __version__
from yester.agents.base import find_transcripts
from yester.agents.descriptors import AGENTS
from yester.config import Config
from yester.doctor.finding import Finding
from yester.store import store_file

_LITTLE_SPACE = 500 * 1024 * 1024
_FOLDERS = ("run", "logs", "spool", "spool/tmp", "spool/new")  # of a home that has been used


def versions() -> Finding:
    python = ".".join(map(str, sys.version_info[:3]))
    return Finding(
        "versions", "ok",
        f"yester {__version__}, Python {python}, SQLite {apsw.sqlite_lib_version()}",
    )  # fmt: skip


def settings(config: Config) -> Finding:
    changed = [name for name, origin in config.origins.items() if origin != "default"]
    return Finding(
        "settings", "ok", f"changed: {', '.join(changed)}" if changed else "all defaults"
    )


def home(home: Path, fix: bool) -> Iterator[Finding]:
    if not home.exists():
        yield Finding("home", "note", f"{home} does not exist yet", "It is made by: yester index")
        return
    free = shutil.disk_usage(home).free
    if free < _LITTLE_SPACE:
        yield Finding("disk", "problem", f"{free / 1e9:.1f} GB free", "Free some space.")
    else:
        yield Finding("disk", "ok", f"{free / 1e9:.1f} GB free")
    closed = yield from _closed_to_us(home, fix)
    if not closed:
        yield from _folders(home, fix)
    yield from _permissions(home, fix)


def _closed_to_us(home: Path, fix: bool) -> Generator[Finding, None, bool]:
    """What is ours by its owner, but by its mode not to be entered, read or written; first, since
    nothing else can be seen there. Whether some of it stays so."""
    lacking = []
    for path in (home, *(home / name for name in _FOLDERS), store_file(home)):
        try:
            found = path.lstat()
            needed = 0o700 if stat.S_ISDIR(found.st_mode) else 0o600
            if found.st_uid != os.getuid() or found.st_mode & needed == needed:
                continue
            if fix:
                path.chmod(stat.S_IMODE(found.st_mode) | needed)
                yield Finding("permissions", "ok", f"{path} opened to you again")
            else:
                lacking.append(path)
        except FileNotFoundError:
            continue
        except OSError:
            break  # below one that is lacking already, or is another's
    if lacking:
        yield Finding(
            "permissions", "problem", f"closed to you, who own it: {_some(lacking)}",
            f"Run: yester doctor --fix, or: chmod u+rwx '{lacking[0]}'",
        )  # fmt: skip
    return bool(lacking)


def _folders(home: Path, fix: bool) -> Iterator[Finding]:
    """Hooks and worker make what is missing, where they can."""
    used = (home / "spool").exists() or (home / "logs").exists()
    missing = [name for name in _FOLDERS if used and not (home / name).is_dir()]
    if not missing:
        return
    if not fix:
        yield Finding(
            "folders", "note", f"missing: {', '.join(missing)}", "Run: yester doctor --fix"
        )
        return
    try:
        for name in missing:
            (home / name).mkdir(mode=0o700, parents=True)
    except OSError as error:
        yield Finding(
            "folders", "problem", f"{error.filename}: {error.strerror}",
            f"Make sure that you may write in {home}.",
        )  # fmt: skip
        return
    yield Finding("folders", "ok", f"made: {', '.join(missing)}")


def _permissions(home: Path, fix: bool) -> Iterator[Finding]:
    open_ones, foreign = [], []
    for path in (home, *home.rglob("*")):
        try:
            found = path.lstat()
        except OSError:
            continue  # taken in by the worker just now
        if stat.S_ISLNK(found.st_mode):
            continue
        if found.st_uid != os.getuid():
            foreign.append(path)
        elif stat.S_IMODE(found.st_mode) & 0o077:
            open_ones.append(path)
    if foreign:
        yield Finding(
            "permissions", "problem", f"belong to another user: {_some(foreign)}",
            f"Make them yours: sudo chown -R {os.getuid()} '{home}'",
        )  # fmt: skip
    if open_ones and fix:
        for path in open_ones:
            path.chmod(0o700 if path.is_dir() else 0o600)
        yield Finding("permissions", "ok", f"closed to other users now: {_some(open_ones)}")
    elif open_ones:
        yield Finding(
            "permissions", "problem", f"open to other users: {_some(open_ones)}",
            "Run: yester doctor --fix",
        )  # fmt: skip
    elif not foreign:
        yield Finding("permissions", "ok", "closed to other users")


def _some(paths: list[Path]) -> str:
    more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
    return ", ".join(map(str, paths[:3])) + more


def transcripts(config: Config) -> Iterator[Finding]:
    for agent in AGENTS.values():
        number = sum(1 for _ in find_transcripts(agent, config))
        yield Finding("transcripts", "ok" if number else "note", f"{agent.label}: {number:,} found")
    other = os.environ.get("CLAUDE_CONFIG_DIR")
    known = [Path(folder).expanduser() for folder in config.texts("claude_code_dirs")]
    if other and Path(other) not in known:
        yield Finding(
            "transcripts", "note", f"CLAUDE_CONFIG_DIR={other} is not among claude_code_dirs",
            f"If its transcripts are yours, add it in {config.home / 'config.toml'}.",
        )  # fmt: skip
