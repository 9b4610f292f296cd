"""Backups of the store in `backups/`: consistent copies, the oldest let go.

    yester-20261115T212945-000012.db    when it was made, and the how-manyth it is

The number decides which is newer: clocks are set back. Names without one are of a former version,
and older than all that have one.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import rmtree

from yester.errors import NotFound, StoreBusy, StoreError, UsageError
from yester.store import maintenance_of, open_store
from yester.store.contract import Store
from yester.store.lock import write_lock
from yester.store.sqlite.maintenance import (
    PATIENCE,
    copy_store,
    explain_errors,
    replace_store,
)

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
    # Copied under a name that no other process has: two may be at it. Only naming it is one by one.
    copy = folder / f"{os.getpid()}-{threading.get_ident()}.part.db"
    maintenance_of(store).backup(copy)
    with explain_errors(folder), write_lock(_run(home) / "backup.lock", PATIENCE):
        number = max(map(_number, listed(home)), default=0) + 1
        path = folder / f"yester-{_stamp(now)}-{number:06}.db"
        copy.rename(path)
        for old in listed(home)[max(kept, 1) :]:
            old.unlink(missing_ok=True)
    return path


def _run(home: Path) -> Path:
    (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    return home / "run"


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
    """Put a backup in the store's place; returns (backup, where the former store went)."""
    with checked_copy(home, given, now) as (found, copy):
        return found, put_in_place(home, copy, now)


@contextmanager
def checked_copy(home: Path, given: str, now: int) -> Iterator[tuple[Path, Path]]:
    """(backup, a copy of it that was opened as a store and found whole); nothing else is touched
    before `put_in_place`. One at a time: StoreBusy where another process is at it."""
    found = _named(home, given)
    with _alone(home):
        for left in (home / "run").glob("restore*/"):  # by one that was killed
            rmtree(left, ignore_errors=True)
        trial = home / "run" / f"restore-{os.getpid()}"
        trial.mkdir(mode=0o700)
        try:
            yield found, _copy_checked(found, trial, now)
        finally:
            rmtree(trial, ignore_errors=True)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    with ExitStack() as held:
        try:
            held.enter_context(write_lock(_run(home) / "restore.lock", 0.0))
        except StoreBusy:
            raise StoreBusy(
                f"{home}: another restore is under way; wait until it has ended, and try again"
            ) from None
        yield


def _copy_checked(found: Path, trial: Path, now: int) -> Path:
    copy = copy_store(found, trial)
    _check(trial, found, now)
    return copy


def put_in_place(home: Path, copy: Path, now: int) -> Path | None:
    """The copy's content as the store's, in one transaction: a kill at any point leaves the whole
    former store or the whole new one. Where the former one is kept, which comes first."""
    return replace_store(home, copy, _free(home, "yester-before-restore", now))


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
    store = open_store(trial, now=now)
    try:
        problems = maintenance_of(store).check()
    finally:
        store.close()
    if problems:
        raise StoreError(f"{backup}: {problems[0]}; choose another backup")
