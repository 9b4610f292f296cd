"""The store: `open_store` is the only way in, and `contract.py` says what a store does.

Importing this package loads no engine: whoever only asks whether there is a store must not wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from yester.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from yester.caller import Act
    from yester.model import Entry, Filters, Identity, Item
    from yester.store.contract import Maintenance, Store
    from yester.store.migrate import Migration
    from yester.store.postgres.lines import TeamLines
    from yester.store.postgres.team import Directory, Gate
    from yester.store.rows.sharing import ShareRows
    from yester.store.sqlite.store import SqliteStore

Target = Path | str  # a home, or a URL: sqlite:///FOLDER, postgresql://…
BeforeMigration = Callable[["Store"], object]
_PAGE = 1_000  # items


def open_store(
    target: Target,
    *,
    now: int,
    home: Path | None = None,
    patience: float | None = None,
    before_migration: BeforeMigration | None = None,
    steps: Sequence[Migration] | None = None,
) -> Store:
    """The store of this target, made where there is none, with its schema brought up to date.

    `home` has the secrets and what was forgotten, where the target is no folder. `patience` is how
    long to wait for another writer, in seconds. `before_migration(store)` is called once when an
    existing store is about to be changed. `steps`: other migrations than those of this yester.
    """
    folder = _sqlite_folder(target)
    home = folder or home
    if home and (home / "secrets").exists():  # looked at first: loading them takes a while
        from yester.known_secrets import keep_out_secrets

        keep_out_secrets(home)
    if folder is None:
        if home:
            (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
            home.chmod(0o700)
        postgres = _load_postgres()
        wait = postgres.connection.PATIENCE if patience is None else patience
        store: Store = postgres.store.PostgresStore.open_url(
            str(target), now=now, home=home, patience=wait, steps=steps
        )
        return store
    from yester.store.sqlite.maintenance import PATIENCE
    from yester.store.sqlite.store import SqliteStore

    return SqliteStore.open_folder(
        folder, now=now, patience=PATIENCE if patience is None else patience,
        before_migration=before_migration, steps=steps,
    )  # fmt: skip


def find_target(home: Path) -> Target:
    """Where the store of a home is: in it, or on the server that its file `database` names. That is
    no setting, and no variable: a repository has no say in it."""
    try:
        named = (home / "database").read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return home
    if not is_server_url(named):
        raise ConfigError(
            f"{home / 'database'}: write postgresql://USER@HOST/DATABASE in it, or take it away"
        )
    return named


def store_exists(target: Target) -> bool:
    """On a server there is always one: opening it makes what is missing."""
    folder = _sqlite_folder(target)
    return folder is None or sqlite_file(folder).exists()


def store_location(target: Target) -> str:
    """Where the store of a target is, for messages."""
    folder = _sqlite_folder(target)
    if folder is None:
        shown: str = _load_postgres().connection.parse_url(str(target)).shown
        return shown
    return str(sqlite_file(folder))


def store_files(target: Target) -> tuple[Path, ...]:
    """The files that hold what is stored, and that only their owner may read."""
    folder = _sqlite_folder(target)
    return () if folder is None else (sqlite_file(folder),)


def sqlite_file(folder: Path) -> Path:
    return folder / "yester.db"


def is_server_url(target: Target) -> bool:
    """Does it name a PostgreSQL server?"""
    return not isinstance(target, Path) and target.startswith(("postgresql://", "postgres://"))


def refuse_server(target: Target, command: str) -> None:
    """UsageError where it is one: the command works with a file."""
    if is_server_url(target):
        raise UsageError(
            f"yester {command} works with the file of a store, and this one is on a server"
            f" ({store_location(target)}); use its tools: pg_dump, pg_restore"
        )


def _sqlite_folder(target: Target) -> Path | None:
    """None for a store on a server."""
    if is_server_url(target):
        return None
    scheme, found, rest = str(target).partition("://")
    if isinstance(target, Path) or not found:
        return Path(target)
    if scheme != "sqlite" or not rest.startswith("/"):
        # What stands behind the scheme may hold a password.
        raise UsageError(
            f"store {scheme + '://…'!r}: there is no such store; write a folder, sqlite:///FOLDER"
            " or postgresql://USER@HOST/DATABASE"
        )
    return Path(rest)


def _load_postgres() -> Any:
    """The engine for servers, whose driver is an extra."""
    try:
        from yester.store.postgres import connection, store, team
    except ImportError as error:
        raise UsageError(
            f"a store on a server needs a package that is not there ({error.name});"
            " pip install 'yester[postgres]'"
        ) from error
    return SimpleNamespace(connection=connection, store=store, team=team)


def open_gate(url: str, home: Path, rate: float, burst: float) -> Gate:
    """A server's database, as its processes use it."""
    gate: Gate = _load_postgres().team.Gate(url, home, rate, burst)
    return gate


def open_directory(url: str, now: int) -> Directory:
    """Who may ask a server, for the owner of its database."""
    directory: Directory = _load_postgres().team.Directory(url, now)
    return directory


def read_audit(store: Store, most: int) -> list[Act]:
    """What was done in a tenant, the newest first."""
    found: list[Act] = _load_postgres().team.read_audit(store, most)
    return found


def engine_version() -> str:
    """The database engine and its version, for people."""
    import apsw

    return f"SQLite {apsw.sqlite_lib_version()}"


def maintenance_of(store: Store) -> Maintenance:
    """What looks after a store's index."""
    return cast("Maintenance", store)


def keeps_file(store: Store) -> bool:
    """Is it a file of ours, of which there are copies?"""
    return not is_server_url(store.location)


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


def find_item(store: Store, identity: Identity | None) -> Item | None:
    """What the store has of this identity, whatever it says by now."""
    found = store.find_by_ref(identity[2]) if identity else ()
    return next((one for one in found if one.identity == identity), None)


def file_store(store: Store) -> SqliteStore:
    """What only a store of one machine can do: copies of its file, and the log that its owner's
    machines share. A server is reached from all of them, and has tools of its own."""
    from yester.errors import StoreError
    from yester.store.sqlite.store import SqliteStore

    if not isinstance(store, SqliteStore):
        raise StoreError(f"{store.location} is on a server", "pg_dump -n yester makes copies")
    return store


def sharing_of(store: Store) -> ShareRows:
    """What compares the store with what the teams of its projects have."""
    return cast("ShareRows", store)


def team_lines_of(store: Store) -> TeamLines:
    """What the members of a team share with each other on their server, whose store this is."""
    return cast("TeamLines", store)


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
    from yester.store.rows.forgetting import ForgetRows

    assert isinstance(store, ForgetRows)
    return store.rewrite_texts(change, prepare, apply, only_quotes)


def scrub_store(path: Path, home: Path) -> None:
    """Nothing that was deleted is left in a store's file, its index or its log."""
    from yester.store.sqlite import maintenance

    maintenance.scrub_file(path, home)


def store_values(store: Store) -> Iterator[bytes]:
    """The same of a store on a server."""
    values: Iterator[bytes] = cast(Any, store).read_values()
    return values


def read_values(path: Path) -> Iterator[bytes]:
    """Every text and blob of a store's file, row by row."""
    from yester.store.sqlite import maintenance

    return maintenance.read_values(path)
