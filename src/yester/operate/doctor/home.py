"""yester's folder: room, modes, owners; what is read and by which settings."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from yester import __version__
from yester.agents.base import find_transcripts
from yester.agents.descriptors import AGENTS, CLAUDE_CODE
from yester.operate.doctor.finding import Examination, Finding, list_paths, make_finding
from yester.store import engine_version, store_files

_LITTLE_SPACE = 500 * 1024 * 1024
_FOLDERS = ("run", "logs", "spool", "spool/tmp", "spool/new")  # of a home that has been used


def look_at_versions(_: Examination) -> list[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    engine = engine_version()
    return [make_finding("versions.present", yester=__version__, python=python, engine=engine)]


def look_at_settings(case: Examination) -> Iterator[Finding]:
    changed = [name for name, origin in case.config.origins.items() if origin != "default"]
    name = "settings.changed" if changed else "settings.defaults"
    yield make_finding(name, names=", ".join(changed))
    yield from (make_finding("settings.warning", text=text) for text in case.config.warnings)


def look_at_disk(case: Examination) -> list[Finding]:
    if not case.home.exists():
        return [make_finding("home.missing", home=case.home)]
    free = shutil.disk_usage(case.home).free
    name = "disk.little" if free < _LITTLE_SPACE else "disk.enough"
    return [make_finding(name, free=free / 1e9)]


def look_at_modes(case: Examination) -> Iterator[Finding]:
    """What is ours by its owner, but by its mode not to be entered, read or written; what others
    may read or write; and what belongs to others. A folder comes before what is in it, which can
    only be seen once it is open."""
    needed = dict.fromkeys(store_files(case.home), 0o600)
    needed |= {case.home / name: 0o700 for name in ("", *_FOLDERS)}
    closed, exposed, foreign = [], [], []
    for path in chain([case.home], case.home.rglob("*")):
        try:
            status = path.lstat()
        except OSError:
            continue  # taken in by the worker just now
        mode, wanted = stat.S_IMODE(status.st_mode), needed.get(path, 0)
        if stat.S_ISLNK(status.st_mode):
            continue
        if status.st_uid != os.getuid():
            foreign.append(path)
        elif mode & wanted != wanted:
            closed.append(path)
            yield make_finding("permissions.closed", partial(path.chmod, mode | wanted), path=path)
        elif mode & 0o077:
            exposed.append(path)

    def close_paths() -> None:
        for path in exposed:
            path.chmod(0o700 if path.is_dir() else 0o600)

    if foreign:
        paths, user = list_paths(foreign), os.getuid()
        yield make_finding("permissions.foreign", paths=paths, user=user, home=case.home)
    if exposed:
        yield make_finding("permissions.exposed", close_paths, paths=list_paths(exposed))
    if not (closed or foreign or exposed) and case.home.exists():
        yield make_finding("permissions.private")


def look_at_folders(case: Examination) -> Iterator[Finding]:
    """Hooks and worker make what is missing, where they can."""
    used = (case.home / "spool").exists() or (case.home / "logs").exists()
    missing = [name for name in _FOLDERS if used and not (case.home / name).is_dir()]

    def make_folders() -> None:
        for name in missing:
            (case.home / name).mkdir(mode=0o700, parents=True)

    if missing:
        yield make_finding("folders.missing", make_folders, names=", ".join(missing))


def look_at_transcripts(case: Examination) -> Iterator[Finding]:
    for agent in AGENTS.values():
        number = sum(1 for _ in find_transcripts(agent, case.config))
        name = "transcripts.present" if number else "transcripts.none"
        yield make_finding(name, agent=agent.label, number=number)
    other = case.environ.get("CLAUDE_CONFIG_DIR")
    known = [Path(folder).expanduser() for folder in case.config.texts(CLAUDE_CODE.folders)]
    if other and Path(other) not in known:
        setting, file = CLAUDE_CODE.folders, case.home / "config.toml"
        yield make_finding("transcripts.elsewhere", folder=other, setting=setting, file=file)
