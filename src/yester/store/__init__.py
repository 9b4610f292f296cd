"""The store. `open_store` is the only way in; `contract.py` says what a store does.

Importing this package loads no engine: whoever only asks whether there is a store must not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yester.store.contract import Maintenance, Store

_FILE = "yester.db"


def open_store(
    home: Path,
    *,
    now: int,
    patience: float | None = None,
    before_migration: Callable[[Store], None] | None = None,
) -> Store:
    """The store of this home, made where there is none, with its schema brought up to date.

    `patience` is how long to wait for another writer, in seconds. `before_migration(store)` is
    called once when an existing store is about to be changed.
    """
    from yester.store.sqlite.maintenance import PATIENCE
    from yester.store.sqlite.store import SqliteStore

    wait = PATIENCE if patience is None else patience
    return SqliteStore.open_folder(home, now=now, patience=wait, before_migration=before_migration)


def store_file(home: Path) -> Path:
    """The file of the store, for messages and for looking at its mode."""
    return home / _FILE


def store_exists(home: Path) -> bool:
    return store_file(home).exists()


def engine_version() -> str:
    """The database engine and its version, for people."""
    import apsw

    return f"SQLite {apsw.sqlite_lib_version()}"


def maintenance_of(store: Store) -> Maintenance:
    """What looks after the store's file: checks, copies, a new index."""
    from yester.errors import StoreError
    from yester.store.sqlite.store import SqliteStore

    if not isinstance(store, SqliteStore):
        raise StoreError(f"{store.location} looks after itself; use the tools of its database")
    return store


def copy_store(path: Path, folder: Path) -> Path:
    """A store's file, wherever it lies, as the store of another folder."""
    from yester.store.sqlite import maintenance

    return maintenance.copy_store(path, folder)


def replace_store(home: Path, copy: Path, aside: Path) -> Path | None:
    """The copy's content as the store's, in one transaction: a kill at any point leaves the whole
    former store or the whole new one. Before that the former one is kept at `aside`; None where
    there was none."""
    from yester.store.sqlite import maintenance

    return maintenance.replace_store(home, copy, aside)
