"""Backups of the store in `backups/`: consistent copies, checked and compressed, the oldest let go;
and what can be read of a damaged store.

    yester-20261115T212945-000012.db.gz    when it was made, and the how-manyth it is

The number decides which is newer: clocks are set back. Names without one are of a former version,
and older than all that have one.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from yester import __version__
from yester.capture.question import ask_worker
from yester.errors import NotFound, StoreDamaged, StoreError, UsageError
from yester.store import (
    Target,
    file_store,
    find_target,
    keeps_file,
    maintenance_of,
    open_store,
    replace_store,
    scrub_store,
    store_files,
)
from yester.store.lock import write_lock

if TYPE_CHECKING:
    from yester.config import Config
    from yester.store.contract import Store

_PATIENCE = 10.0  # seconds; another backup is being named, which takes a moment
_ABANDONED = 3600.0  # seconds without a page written
_DAY = 86_400.0  # seconds
_SHARE = 0.25  # of the disk that would be free without them, for all backups together
_NUMBERED = re.compile(r"-(\d{6,})\.db")


def list_backups(home: Path) -> list[Path]:
    """The backups there are, newest first."""
    folder = home / "backups"
    paths = (*folder.glob("yester-*.db"), *folder.glob("yester-*.db.gz"))
    return sorted(paths, key=lambda path: (_backup_number(path), path.name), reverse=True)


def _backup_number(path: Path) -> int:
    match = _NUMBERED.search(path.name)
    return int(match[1]) if match else 0


def make_backup(store: Store, home: Path, kept: int, now: int) -> Path:
    """A new backup; then the oldest go, beyond `kept` and beyond their share of the disk."""
    folder = home / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    for part in folder.glob("*.part*"):  # of one that was killed
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > _ABANDONED:
                part.unlink()
    # Copied under a name that no other process has: two may be at it. Only naming it is one by one.
    copy = folder / f"{os.getpid()}-{threading.get_ident()}.part.db.gz"
    file_store(store).backup(copy)
    try:
        with write_lock(_make_run_folder(home) / "backup.lock", _PATIENCE):
            number = max(map(_backup_number, list_backups(home)), default=0) + 1
            path = folder / f"yester-{_format_stamp(now)}-{number:06}.db.gz"
            copy.rename(path)
            room = find_room(home) - path.stat().st_size
            for at, old in enumerate(list_backups(home)[1:], 1):
                room -= old.stat().st_size
                if at >= kept or room < 0:
                    old.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"{error.filename or folder}: {error.strerror}; check the folder and the disk"
        ) from error
    return path


def find_room(home: Path) -> int:
    """How many bytes all backups together may have."""
    import shutil  # `yester status` opens a store, too, and copies nothing

    used = sum(path.stat().st_size for path in list_backups(home))
    return int((shutil.disk_usage(home).free + used) * _SHARE)


def make_daily_backup(store: Store, home: Path, kept: int, now: int) -> Path | None:
    """One where the newest is a day old. None of a store that is empty, for which none that is not
    must go, nor one that would be too large."""
    newest = next(iter(list_backups(home)), None)
    if newest is not None and abs(now / 1000 - newest.stat().st_mtime) < _DAY:
        return None
    if not keeps_file(store) or not count_items(store) or store.size > find_room(home):
        return None
    return make_backup(store, home, kept, now)


def count_items(store: Store) -> int:
    return sum(number or 0 for (number,) in store.totals("indexed"))


def open_safely(
    home: Path,
    config: Config,
    now: int,
    patience: float | None = None,
    target: Target | None = None,
) -> Store:
    """The store of a home, or another. A schema change begins with a copy of what was there."""

    def prepare_migration(store: Store) -> None:
        # A worker of the former version would go on writing in its own way; 0.1 looks for a new
        # one at a session's start alone.
        ask_worker(home / "run", f"POST /leave?version={__version__}", 1.0)
        make_backup(store, home=home, kept=config.number("backups_kept"), now=now)

    return open_store(
        target or find_target(home), now=now, home=home, patience=patience,
        before_migration=prepare_migration,
    )  # fmt: skip


@contextmanager
def checked_copy(home: Path, name: str, now: int) -> Iterator[tuple[Path, Path]]:
    """(backup, a copy of it that was opened as a store and found whole); nothing else is touched
    before `put_in_place`. One at a time: StoreBusy where another process is at it."""
    from yester.operate.purge import obey_wishes, open_copy

    backup = _find_backup(home, name)
    with (
        write_lock(_make_run_folder(home) / "restore.lock", 0.0),
        open_copy(backup, home, now) as (store, copy),
    ):
        if problems := maintenance_of(store).check():
            raise StoreError(f"{backup}: {problems[0]}; choose another backup")
        obey_wishes(store, home)
        store.close()
        scrub_store(copy, copy.parent)
        yield backup, copy


class Salvaged(NamedTuple):
    number: int  # items that could be read
    lost: Counter[str]  # rows that could not, by table
    aside: Path | None  # where the damaged store is kept


def salvage_store(home: Path, now: int) -> Salvaged:
    """What can be read of a damaged store, in its place. The caller has ended the worker."""
    from yester.operate.purge import open_copy

    with (
        write_lock(_make_run_folder(home) / "restore.lock", 0.0),
        open_copy(None, home, now) as (store, copy),
    ):
        with store.transaction("index"):
            lost = file_store(store).salvage(*store_files(home))
        number = count_items(store)
        store.close()
        if not number:
            raise StoreDamaged(f"{home}: no item can be read; yester restore latest")
        return Salvaged(number, lost, put_in_place(home, copy, now))


def put_in_place(home: Path, copy: Path, now: int) -> Path | None:
    """The copy's content as the store's, in one transaction: a kill at any point leaves the whole
    former store or the whole new one. Where the former one is kept, which comes first."""
    stem = f"yester-before-restore-{_format_stamp(now)}"
    names = chain([f"{stem}.db"], (f"{stem}-{number}.db" for number in count(2)))
    return replace_store(home, copy, next(home / one for one in names if not (home / one).exists()))


def _make_run_folder(home: Path) -> Path:
    (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    return home / "run"


def _format_stamp(now: int) -> str:
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(now / 1000))


def _find_backup(home: Path, name: str) -> Path:
    if name == "latest":
        if backups := list_backups(home):
            return backups[0]
        raise NotFound(f"{home / 'backups'} holds no backup; `yester backup` makes one")
    for path in (Path(name).expanduser(), home / "backups" / name):
        if path.is_file():
            return path
    raise UsageError(f"{name}: no such backup; `yester backup --list` shows what there is")
