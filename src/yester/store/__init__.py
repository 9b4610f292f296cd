"""The store: `open_store` is the only way in, and `contract.py` says what a store does.

Importing this package loads no engine: whoever only asks whether there is a store must not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from yester.errors import UsageError

if TYPE_CHECKING:
    from yester.model import Entry, Filters, Item
    from yester.store.contract import Maintenance, Store
    from yester.store.migrate import Migration

Target = Path | str  # a home, or a URL: sqlite:///FOLDER
BeforeMigration = Callable[["Store"], object]
_PAGE = 1_000  # items


def open_store(
    target: Target,
    *,
    now: int,
    patience: float | None = None,
    before_migration: BeforeMigration | None = None,
    steps: Sequence[Migration] | None = None,
) -> Store:
    """The store of this target, made where there is none, with its schema brought up to date.

    `patience` is how long to wait for another writer, in seconds. `before_migration(store)` is
    called once when an existing store is about to be changed. `steps`: other migrations than those
    of this yester.
    """
    from yester.store.sqlite.maintenance import PATIENCE
    from yester.store.sqlite.store import SqliteStore

    wait = PATIENCE if patience is None else patience
    if (_sqlite_folder(target) / "secrets").exists():  # looked at first: loading them takes a while
        from yester.known_secrets import keep_out_secrets

        keep_out_secrets(_sqlite_folder(target))
    return SqliteStore.open_folder(
        _sqlite_folder(target), now=now, patience=wait, before_migration=before_migration,
        steps=steps,
    )  # fmt: skip


def store_exists(target: Target) -> bool:
    return sqlite_file(_sqlite_folder(target)).exists()


def store_location(target: Target) -> str:
    """Where the store of a target is, for messages."""
    return str(sqlite_file(_sqlite_folder(target)))


def store_files(target: Target) -> tuple[Path, ...]:
    """The files that hold what is stored, and that only their owner may read."""
    return (sqlite_file(_sqlite_folder(target)),)


def sqlite_file(folder: Path) -> Path:
    return folder / "yester.db"


def _sqlite_folder(target: Target) -> Path:
    scheme, found, rest = str(target).partition("://")
    if isinstance(target, Path) or not found:
        return Path(target)
    if scheme != "sqlite" or not rest.startswith("/"):
        # What stands behind the scheme may hold a password.
        raise UsageError(
            f"store {scheme + '://…'!r}: there is no such store; write a folder, or sqlite:///FOLDER"
        )
    return Path(rest)


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


def walk_items(
    store: Store, filters: Filters | None = None, statuses: tuple[str, ...] = ()
) -> Iterator[Item]:
    """Items that pass the filters by time, whatever their number: a page at a time is held. Without
    statuses: whatever theirs is."""
    from yester.model import ANYTHING, Paging

    behind: tuple[int, ...] = ()
    while page := store.select(filters or ANYTHING, Paging(_PAGE, 0, True, behind, statuses)):
        yield from page
        behind = (page[-1].epoch, page[-1].id)


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


def rewrite_texts(
    store: Store,
    change: Callable[[str], str],
    prepare: Callable[[Item], Entry] | None,
    apply: bool,
    only_quotes: bool = False,
) -> int:
    """Every text that is stored, changed; how many rows are, or would be. Without
    `prepare`, items are left out; only quotes: what histories and ledgers give of what was said."""
    from yester.store.sqlite.store import SqliteStore

    assert isinstance(store, SqliteStore)
    return store.rewrite_texts(change, prepare, apply, only_quotes)


def scrub_store(path: Path, home: Path) -> None:
    """Nothing that was deleted is left in a store's file, its index or its log."""
    from yester.store.sqlite import forgetting

    forgetting.scrub_file(path, home)


def read_values(path: Path) -> Iterator[bytes]:
    """Every text and blob of a store's file, row by row."""
    from yester.store.sqlite import forgetting

    return forgetting.read_values(path)
