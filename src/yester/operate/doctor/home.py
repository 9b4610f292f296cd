"""yester's folder: room, modes, owners; what is read and by which settings."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from yester import __version__
from yester.agents.base import find_transcripts
from yester.agents.descriptors import AGENTS, CLAUDE_CODE
from yester.operate.doctor.finding import (
    FIXING,
    Examination,
    Finding,
    list_paths,
    note,
    ok,
    problem,
)
from yester.store import engine_version, store_files

_LITTLE_SPACE = 500 * 1024 * 1024
_FOLDERS = ("run", "logs", "spool", "spool/tmp", "spool/new")  # of a home that has been used


def look_at_versions(_: Examination) -> Iterator[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    yield ok("versions", f"yester {__version__}, Python {python}, {engine_version()}")


def look_at_settings(case: Examination) -> Iterator[Finding]:
    changed = [name for name, origin in case.config.origins.items() if origin != "default"]
    yield ok("settings", f"changed: {', '.join(changed)}" if changed else "all defaults")
    yield from (note("settings", warning) for warning in case.config.warnings)


def look_at_disk(case: Examination) -> Iterator[Finding]:
    if not case.home.exists():
        yield note("home", f"{case.home} does not exist yet", "It is made by: yester index")
        return
    free = shutil.disk_usage(case.home).free
    text = f"{free / 1e9:.1f} GB free"
    few = free < _LITTLE_SPACE
    yield problem("disk", text, "Free some space.") if few else ok("disk", text)


def _closed_paths(home: Path) -> Iterator[tuple[Path, int]]:
    """What is ours by its owner, but by its mode not to be entered, read or written, and the mode
    it should have. The outermost first, since nothing can be seen below it."""
    for path in (home, *(home / name for name in _FOLDERS), *store_files(home)):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        except OSError:
            return  # below one that is closed, or is another's
        needed = 0o700 if stat.S_ISDIR(status.st_mode) else 0o600
        if status.st_uid == os.getuid() and status.st_mode & needed != needed:
            yield path, stat.S_IMODE(status.st_mode) | needed


def look_at_access(case: Examination) -> Iterator[Finding]:
    if closed := [path for path, _ in _closed_paths(case.home)]:
        text = f"closed to you, who own it: {list_paths(closed)}"
        yield problem("permissions", text, f"{FIXING}, or: chmod u+rwx '{closed[0]}'")


def mend_access(case: Examination) -> Iterator[Finding]:
    for path, mode in _closed_paths(case.home):
        path.chmod(mode)
        yield ok("permissions", f"{path} opened to you again")


def _missing_folders(home: Path) -> list[str]:
    """Hooks and worker make what is missing, where they can."""
    used = (home / "spool").exists() or (home / "logs").exists()
    return [name for name in _FOLDERS if used and not (home / name).is_dir()]


def look_at_folders(case: Examination) -> Iterator[Finding]:
    if missing := _missing_folders(case.home):
        yield note("folders", f"missing: {', '.join(missing)}", FIXING)


def mend_folders(case: Examination) -> Iterator[Finding]:
    missing = _missing_folders(case.home)
    for name in missing:
        (case.home / name).mkdir(mode=0o700, parents=True)
    if missing:
        yield ok("folders", f"made: {', '.join(missing)}")


def _exposed_paths(home: Path) -> tuple[list[Path], list[Path]]:
    """What others may read or write, and what belongs to others."""
    exposed, foreign = [], []
    for path in (home, *home.rglob("*")):
        try:
            status = path.lstat()
        except OSError:
            continue  # taken in by the worker just now
        if stat.S_ISLNK(status.st_mode):
            continue
        if status.st_uid != os.getuid():
            foreign.append(path)
        elif stat.S_IMODE(status.st_mode) & 0o077:
            exposed.append(path)
    return exposed, foreign


def look_at_modes(case: Examination) -> Iterator[Finding]:
    exposed, foreign = _exposed_paths(case.home)
    if foreign:
        fix = f"Make them yours: sudo chown -R {os.getuid()} '{case.home}'"
        yield problem("permissions", f"belong to another user: {list_paths(foreign)}", fix)
    if exposed:
        yield problem("permissions", f"open to other users: {list_paths(exposed)}", FIXING)
    if not foreign and not exposed and case.home.exists():
        yield ok("permissions", "closed to other users")


def mend_modes(case: Examination) -> Iterator[Finding]:
    exposed, _ = _exposed_paths(case.home)
    for path in exposed:
        path.chmod(0o700 if path.is_dir() else 0o600)
    if exposed:
        yield ok("permissions", f"closed to other users now: {list_paths(exposed)}")


def look_at_transcripts(case: Examination) -> Iterator[Finding]:
    for agent in AGENTS.values():
        number = sum(1 for _ in find_transcripts(agent, case.config))
        text = f"{agent.label}: {number:,} found"
        yield ok("transcripts", text) if number else note("transcripts", text)
    other = case.environ.get("CLAUDE_CONFIG_DIR")
    known = [Path(folder).expanduser() for folder in case.config.texts(CLAUDE_CODE.folders)]
    if other and Path(other) not in known:
        yield note(
            "transcripts",
            f"CLAUDE_CONFIG_DIR={other} is not among {CLAUDE_CODE.folders}",
            f"If its transcripts are yours, add it in {case.home / 'config.toml'}.",
        )
