"""Opening a store on PostgreSQL: its schema, its tenant, transactions, and errors in words."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import errors

from yester.caller import Caller
from yester.errors import (
    NotFound,
    NotYours,
    StoreAway,
    StoreBusy,
    StoreChanged,
    StoreError,
    StoreNewer,
    StoreReplaced,
    YesterError,
)
from yester.store.contract import Lock
from yester.store.migrate import Migration, load_migrations
from yester.store.postgres import index
from yester.store.postgres.database import Database
from yester.store.rows.base import Rows
from yester.text import terms as tokenizer
from yester.tombstones import Tombstones

if TYPE_CHECKING:
    from yester.store import BeforeMigration

PATIENCE = 10.0  # seconds to wait for another writer's batch of a fraction of a second
_LOCKS = 7001  # of advisory locks: writing rows of a tenant
_SCHEMA = 7000  # the same for the schema
_NAME = re.compile(r"[\w.@:/+-]{1,200}")
# Tables whose rows get the tenant's next number.
_NUMBERED = (
    "project", "session", "turn", "injection", "feedback", "spend", "project_join", "memory_change",
)  # fmt: skip
_TENANT = "local"  # where an address names none


class Place(NamedTuple):
    """Where a store is: the address for the driver, the tenant in it, and what messages call it."""

    url: str
    tenant: str
    shown: str


def parse_url(url: str) -> Place:
    """`postgresql://…?tenant=NAME`; the rest is the driver's. Without its password for messages."""
    parts = urlsplit(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    tenant = dict(options).get("tenant", _TENANT)
    if not _NAME.fullmatch(tenant):
        raise StoreError(f"tenant {tenant!r}: write letters, digits and . @ : / + - _, up to 200")
    rest = [(name, value) for name, value in options if name != "tenant"]
    place = (
        f"postgresql://{parts.netloc}{parts.path}?{urlencode(rest, quote_via=quote)}"  # "//" stays
    )
    host = parts.netloc.rpartition("@")[2]
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    shown = f"postgresql://{user}{'@' if user else ''}{host}{parts.path}"
    return Place(place, tenant, shown + (f"?tenant={tenant}" if tenant != _TENANT else ""))


class Connection(Rows):
    """Not shared between threads. Open it with `open_url`."""

    def __init__(
        self, db: Database, place: Place, home: Path | None, patience: float, account: int
    ) -> None:
        self._place, self._patience, self._account = place, patience, account
        self._version = 0  # of the schema this yester knows
        super().__init__(db, index.IndexWriter(db), Tombstones(home or Path("/nonexistent")))

    @classmethod
    def open_url(
        cls,
        url: str,
        *,
        now: int,
        home: Path | None = None,
        patience: float = PATIENCE,
        account: int = 0,
        steps: Sequence[Migration] | None = None,
        before_migration: BeforeMigration | None = None,  # noqa: ARG003 -- its backups are its own
    ) -> Self:
        """Open the store at this address, making the schema and the tenant where there is none."""
        place = parse_url(url)
        known = load_migrations("postgres") if steps is None else steps
        with explain_errors(place):
            db = Database(place.url)  # by one that is idle, where there is one
            try:
                migrate_schema(db.connection, known, now, place)
                tenant, fresh = _find_tenant(db.connection, place.tenant)
                db.serve_tenant(tenant, account)
                store = cls(db, place, home, patience, account)
                store._version = known[-1].version
                if fresh:
                    with store.transaction("index"):
                        store._set_meta("tokenizer", str(tokenizer.VERSION))
                        store._set_meta("line_key", secrets.token_hex(32))
                return store
            except BaseException:
                db.close()
                raise

    @classmethod
    def open_account(
        cls, place: Place, caller: Caller, version: int, home: Path, statement_ms: int
    ) -> Self:
        """As one account of a server whose schema has this version, for one request."""
        with explain_errors(place):
            db = Database(place.url, statement_ms)
            try:
                db.serve_tenant(caller.tenant, caller.account, caller.projects)
                store = cls(db, place, home, PATIENCE, caller.account)
                store._version = version
                return store
            except BaseException:
                db.close()
                raise

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        with explain_errors(self._place):
            yield

    def _stored_text(self, text: str) -> str:
        return text.replace("\0", "\ufffd")

    def in_place(self) -> bool:
        try:
            return (
                self._restore_count() == self._restores and self._schema_version() <= self._version
            )
        except psycopg.Error:
            return False

    def _schema_version(self) -> int:
        return int(self._first_value("SELECT max(version) FROM migration"))

    @property
    def location(self) -> str:
        return self._place.shown

    @property
    def size(self) -> int:
        """Of all tenants: their rows lie in the same tables. Nothing for an account to know."""
        if self._account:
            return 0
        return int(
            self._first_value(
                "SELECT sum(pg_total_relation_size(oid)) FROM pg_class"
                " WHERE relnamespace = 'yester'::regnamespace AND relkind = 'r'"
            )
        )

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self, lock: Lock, patience: float | None = None) -> Iterator[None]:
        """One writer a tenant, whatever the lock is called: ids are in the order of commits then,
        and what was read stays true. Inside another one it is a part of that."""
        if self._db.in_transaction:
            outer, self._locked = self._locked, lock
            try:
                yield
            finally:
                self._locked = outer
            return
        with explain_errors(self._place):
            try:
                self._db.begin(_LOCKS, self._patience if patience is None else patience)
                self._locked = lock
                self._check_ours()
                self._tombstones.refresh()
                yield
                self._db.commit()
            except BaseException:
                self._index.forget_batch()
                self._forget_rows()  # that now never existed
                self._db.roll_back()
                raise
            finally:
                self._locked = None
            with suppress(psycopg.Error):  # all is written; whoever writes next tries again
                self._index.fold_many()

    def _check_ours(self) -> None:
        """Inside the transaction, so it holds to its end. Raises before anything is written."""
        have, moves, restores = self._first_row(
            "SELECT (SELECT max(version) FROM migration),"
            " coalesce((SELECT value FROM meta WHERE key = 'moves'), ''),"
            " coalesce((SELECT value FROM meta WHERE key = 'restores'), '0')"
        )
        self._compare_moves((moves, int(restores)))
        if have > self._version:
            raise _newer(self._place, have, self._version)
        if int(restores) != self._restores:
            raise StoreReplaced(
                f"{self.location} is another one now: something was forgotten; open it anew"
            )

    def _columns_of(self, table: str) -> dict[str, bool]:
        found = self._db.ask(
            "SELECT a.attname, a.attnum = ANY (i.indkey) FROM pg_attribute a JOIN pg_index i"
            " ON i.indrelid = a.attrelid AND i.indisprimary WHERE a.attrelid = $1::regclass"
            " AND a.attnum > 0 AND a.attname <> 'tenant' ORDER BY a.attnum", [table],
        )  # fmt: skip
        return {str(name): bool(is_key) for name, is_key in found}

    def _next_id(self, table: str) -> int:
        """Of items: also those that are hidden from this account have an id."""
        return int(
            self._first_value(
                f"SELECT 1 + greatest(newest_item(), (SELECT max(id) FROM {table}),"
                " (SELECT value::bigint FROM meta WHERE key = ?))", f"last_{table}",
            )
        )  # fmt: skip

    def _last_number(self, table: str) -> int:
        return int(self._first_value("SELECT last FROM counter WHERE name = ?", table) or 0)

    def _numbered_tables(self) -> Sequence[str]:
        return _NUMBERED

    def _continue_numbers(self, last: Mapping[str, int]) -> None:
        for table, number in last.items():
            self._db.ask(
                "INSERT INTO counter(name, last) VALUES ($1, $2)"
                " ON CONFLICT (tenant, name) DO UPDATE SET last = excluded.last",
                [table, number],
            )
        newest = (
            "SELECT setval('vector_number', greatest((SELECT max(id) FROM vector), last_value))"
        )
        self._db.ask(newest + " FROM vector_number")
        self._db.ask(
            "INSERT INTO counter(name, last) SELECT 'line_edit', coalesce(max(rowid), 0) + 1"
            " FROM line_edit ON CONFLICT (tenant, name) DO UPDATE SET last = excluded.last"
        )

    def _stream_rows(self, sql: str) -> Iterable[tuple[Any, ...]]:
        found: Iterable[tuple[Any, ...]] = self._db.stream_rows(sql)
        return found

    def _insert_rows(self, table: str, columns: Sequence[str], values: Sequence[Any]) -> None:
        self._db.copy_rows(table, columns, values)


def migrate_schema(
    connection: psycopg.Connection[Any], steps: Sequence[Migration], now: int, place: Place
) -> None:
    """Apply what is pending, each step all or nothing, by one of all that come at once."""
    there = "SELECT to_regclass('yester.migration') IS NOT NULL"
    have = 0
    if connection.execute(there).fetchone() == (True,):
        ((have,),) = connection.execute("SELECT coalesce(max(version), 0) FROM migration")
    if have > steps[-1].version:
        raise _newer(place, have, steps[-1].version)
    if have == steps[-1].version:
        return
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA}, 0)")
        connection.execute("CREATE SCHEMA IF NOT EXISTS yester")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration"
            " (version int PRIMARY KEY, name text NOT NULL, applied bigint NOT NULL)"
        )
        ((have,),) = connection.execute("SELECT coalesce(max(version), 0) FROM migration")
    for step in steps:
        if step.version <= have:
            continue
        with connection.transaction(), psycopg.ClientCursor(connection) as cursor:
            cursor.execute(f"SELECT pg_advisory_xact_lock({_SCHEMA}, 0)")
            cursor.execute("SELECT 1 FROM migration WHERE version = %s", [step.version])
            if cursor.fetchone() is None:  # nobody was faster
                cursor.execute(step.sql.encode())
                cursor.execute(
                    "INSERT INTO migration VALUES (%s, %s, %s)", [step.version, step.name, now]
                )


def _find_tenant(connection: psycopg.Connection[Any], name: str) -> tuple[int, bool]:
    """Its number, and whether it is a new one."""
    known = connection.execute("SELECT id FROM tenant WHERE name = $1", [name]).fetchone()
    if known:
        return int(known[0]), False
    made = connection.execute(
        "INSERT INTO tenant(name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING id", [name]
    ).fetchone()
    return (int(made[0]), True) if made else _find_tenant(connection, name)


def _newer(place: Place, have: int, known: int) -> StoreNewer:
    return StoreNewer(
        f"{place.shown} has schema version {have}, this yester knows up to {known}; "
        "update yester (pip install -U yester)"
    )


@contextmanager
def explain_errors(place: Place) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise _explain_error(error, place) from error


def _explain_error(error: psycopg.Error, place: Place) -> YesterError:
    reason = " ".join((error.diag.message_primary or str(error)).split())
    match error:
        case errors.LockNotAvailable() | errors.DeadlockDetected():
            return StoreBusy(f"{place.shown}: another program has been writing for too long; retry")
        case errors.QueryCanceled():
            return StoreBusy(f"{place.shown}: {reason}; ask again when less is going on")
        case errors.DiskFull():
            return StoreError(f"{place.shown}: its disk is full; free some space there and retry")
        case errors.InsufficientPrivilege() if "row-level security" in reason:
            return NotYours("this cannot be written there", "name a project that you may change")
        case errors.NumericValueOutOfRange():
            return NotFound("no number of anything here is so large")
        case errors.UniqueViolation():
            return StoreChanged("this is there already, perhaps where you cannot see it")
        case errors.InsufficientPrivilege():
            return StoreError(f"{place.shown}: {reason}; the user named in the address needs it")
        case psycopg.OperationalError():
            return StoreAway(f"{place.shown} cannot be reached ({reason}); is it running?")
    return StoreError(f"{place.shown}: {reason}")
