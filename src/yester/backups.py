"""Backups of the store in `backups/`: consistent copies, the oldest let go.

    yester-20261115T212945-000012.db    when it was made, and the how-manyth it is

The number decides which is newer: clocks are set back. Names without one are of a former version,
and older than all that have one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import copyfile, rmtree

import apsw

from yester.errors import NotFound, StoreError, UsageError
from yester.store.base import Store
from yester.store.lock import write_lock
from yester.store.sqlite import PATIENCE, SqliteStore

_ABANDONED = 3600.0  # seconds without a page written
_NUMBERED = re.compile(r"-(\d{6,})\.db")


def listed(home: Path) -> list[Path]:
    """The backups there are, newest first."""
    found = (home / "backups").glob("yester-*.db")
    return sorted(found, key=lambda path: (_number(path), path.name), reverse=True)


def _number(path: Path) -> int:
    found = _NUMBERED.search(path.name)
    return int(found[1]) if found else 0


def make(store: Store, home: Path, kept: int, now: int) -> Path:
    """A new backup; then the oldest beyond `kept` go."""
    folder = home / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    for part in folder.glob("*.part*"):  # of one that was killed
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _ABANDONED:
                part.unlink()
    number = max(map(_number, listed(home)), default=0) + 1
    path = folder / f"yester-{_stamp(now)}-{number:06}.db"
    store.backup(path)
    for old in listed(home)[max(kept, 1) :]:
        if old != path:  # another process may have made newer ones meanwhile
            old.unlink(missing_ok=True)
    return path


def _stamp(now: int) -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(now / 1000))


def _free(folder: Path, name: str, now: int) -> Path:
    """A file name with the time in it that nothing has yet."""
    stamp = _stamp(now)
    path, number = folder / f"{name}-{stamp}.db", 1
    while path.exists():
        number += 1
        path = folder / f"{name}-{stamp}-{number}.db"
    return path


def before_migration(home: Path, kept: int, now: int) -> Callable[[Store], None]:
    """A schema change begins with a copy of what was there."""

    def copy(store: Store) -> None:
        make(store, home, kept, now)

    return copy


def restore(home: Path, given: str, now: int) -> tuple[Path, Path | None]:
    """Put a backup in the store's place; returns (backup, where the former store went).

    The former store is moved aside, never overwritten, and the backup is checked before.
    """
    backup = _named(home, given)
    path, trial = home / "yester.db", home / "run" / "restore"
    rmtree(trial, ignore_errors=True)
    trial.mkdir(mode=0o700, parents=True)
    try:
        copyfile(backup, trial / "yester.db")
        _check(trial, backup, now)
        (trial / "yester.db").chmod(0o600)
        with write_lock(home / "run" / "write.lock", PATIENCE):
            aside = _keep_aside(path, now) if path.exists() else None
            (trial / "yester.db").replace(path)  # at every moment there is a whole store
    finally:
        rmtree(trial, ignore_errors=True)
    return backup, aside


def _keep_aside(path: Path, now: int) -> Path:
    """A second name for the present store, with all that its log still held."""
    aside = _free(path.parent, "yester-before-restore", now)
    with suppress(apsw.Error):  # a damaged one goes aside as it is
        db = apsw.Connection(str(path))
        try:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            db.close()
    for end in ("-wal", "-shm"):
        part = Path(f"{path}{end}")
        if part.exists():
            part.rename(f"{aside}{end}")
    try:
        aside.hardlink_to(path)
    except OSError:  # a file system without second names
        copyfile(path, aside)
    return aside


def _named(home: Path, given: str) -> Path:
    if given == "latest":
        found = listed(home)
        if not found:
            raise NotFound(f"{home / 'backups'} holds no backup; `yester backup` makes one")
        return found[0]
    for path in (Path(given).expanduser(), home / "backups" / given):
        if path.is_file():
            return path
    raise UsageError(f"{given}: no such backup; `yester backup --list` shows what there is")


def _check(trial: Path, backup: Path, now: int) -> None:
    """Open the copy as a store and let it look at itself before it takes the store's place."""
    store = SqliteStore.open(trial, now=now)
    try:
        problems = store.check()
    finally:
        store.close()
    if problems:
        raise StoreError(f"{backup}: {problems[0]}; choose another backup")
