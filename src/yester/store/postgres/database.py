"""A connection to PostgreSQL that understands the statements of `store/rows`, and gives every
transaction its tenant."""

from __future__ import annotations

import atexit
import os
import re
import select
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import Loader
from psycopg.types.numeric import Int8Dumper

_SETTINGS = (
    "SELECT set_config('yester.tenant', $1, true), set_config('yester.account', $2, true),"
    " set_config('yester.projects', $3, true), set_config('statement_timeout', $4, true)"
)
# A place for a value, or something in which none is meant.
_PLACE = re.compile(r"'(?:[^']|'')*'|::|\?(\d*)|:([a-z_]+)")
# What SQLite spells otherwise. Its keys do not begin with the tenant; a join with a condition is
# called a cross join where the planner is to keep the order; some columns have names of commands.
_SPELLED = (
    (re.compile(r"ON CONFLICT ?\((?!tenant)"), "ON CONFLICT (tenant, "),
    (re.compile(r"CROSS JOIN(?= \w+ \w+\s+ON)"), "JOIN"),
    (re.compile(r"(?<![\w.:\"])(window|offset)(?![\w\"])"), r'"\1"'),
    (re.compile(r"(?<![\w.])([\w.]+) COLLATE NOCASE IN \((\$[^()]*)\)"), r"lower(\1) IN (\2)"),
)
_NOCASE = re.compile(r"(lower\([\w.]+\) IN )\(([^)]*)\)")


@lru_cache(2_000)
def translate_sql(sql: str) -> tuple[str, tuple[int | str, ...]]:
    """The statement in PostgreSQL's words, and which value belongs to each of its places."""
    names: list[int | str] = []

    def number_place(match: re.Match[str]) -> str:
        if match[0] == "::" or match[0][0] == "'":
            return match[0]
        name: int | str = match[2] or (int(match[1]) - 1 if match[1] else len(names))
        if match[2] is None and not match[1]:
            names.append(name)
            return f"${len(names)}"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    found = _PLACE.sub(number_place, sql)
    for pattern, spelled in _SPELLED:
        found = pattern.sub(spelled, found)
    found = _NOCASE.sub(_fold_case, found)
    return found, tuple(names)


def _fold_case(match: re.Match[str]) -> str:
    folded = ", ".join(f"lower({place.strip()})" for place in match[2].split(","))
    return f"{match[1]}({folded})"


class _Number(Loader):
    """Sums of whole numbers are whole numbers."""

    def load(self, data: Any) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text or b"N" in text else int(text)


class Found:
    """The rows of an answer, as SQLite's cursor gives them."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._next = iter(rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._next

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._next, None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._next)


class Database:
    """One connection, for one thread. Outside of a transaction each statement is one of its own."""

    def __init__(self, url: str, statement_ms: int = 60_000) -> None:
        self._tenant = self._account = self._projects = ""
        self._statement_ms = str(statement_ms)
        self._changes = 0
        self.in_transaction = False
        self._url, self._open = url, True
        self.connection = _take_connection(url)

    def serve_tenant(
        self, tenant: int, account: int, projects: Sequence[int] | None = None
    ) -> None:
        """From now on; with `projects`, these alone. Whom row-level security does not bind goes on
        as somebody whom it does."""
        self._tenant, self._account = str(tenant), str(account)
        self._projects = "" if projects is None else f"{{{','.join(map(str, projects))}}}"
        self._bind_user()

    def _bind_user(self) -> None:
        ((unbound,),) = self.connection.execute(
            "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        if unbound:
            self.connection.execute("SET ROLE yester_app")

    def close(self) -> None:
        """Let go of the connection: the next store of this process may have it."""
        if self._open:
            self._open = False
            _give_back(self._url, self.connection)

    def total_changes(self) -> int:
        return self._changes

    def _renew(self) -> None:
        """Another connection, where the server has ended this one."""
        if not self._open:
            raise psycopg.InterfaceError("the store is closed")
        if self.connection.closed and not self.in_transaction:
            self.connection = _take_connection(self._url)
            self._bind_user()

    def begin(self, lock: int, patience: float) -> None:
        """A transaction of the only one who has this lock of the tenant."""
        self._renew()
        with self.connection.pipeline():
            self.connection.execute("BEGIN")
            self.in_transaction = True
            self._set_tenant()
            wait = f"{max(1, int(patience * 1000))}ms"
            self.connection.execute("SELECT set_config('lock_timeout', $1, true)", [wait])
            keys = [lock, int(self._tenant)]
            self.connection.execute("SELECT pg_advisory_xact_lock($1::int, $2::int)", keys)

    def commit(self) -> None:
        self.in_transaction = False
        self.connection.execute("COMMIT")

    def roll_back(self) -> None:
        if self.in_transaction:
            self.in_transaction = False
            if not self.connection.closed:
                self.connection.execute("ROLLBACK")

    def _set_tenant(self) -> None:
        values = [self._tenant, self._account, self._projects, self._statement_ms]
        self.connection.execute(_SETTINGS, values)

    def execute(self, sql: str, args: Any = ()) -> Found:
        """A statement of `store/rows`; values in their order, or by name."""
        text, names = translate_sql(sql)
        values = [_plain(args[name]) for name in names]
        return self.ask(text, values)

    def ask(self, text: str, values: Sequence[Any] = ()) -> Found:
        """In PostgreSQL's own words."""
        self._renew()
        if self.in_transaction:
            cursor = self.connection.execute(text, values)
        else:
            with self.connection.pipeline():
                self._set_tenant()
                cursor = self.connection.execute(text, values)
        self._changes += max(cursor.rowcount, 0)
        return Found(cursor.fetchall() if cursor.description else ())

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        text, names = translate_sql(sql)
        values = [[_plain(row[name]) for name in names] for row in rows]
        if values:
            with self.connection.cursor() as cursor:
                cursor.executemany(text, values)

    def walk(self, sql: str, size: int = 2_000) -> Iterator[tuple[Any, ...]]:
        """The rows of an answer, a page at a time; inside a transaction."""
        self.connection.execute(f"DECLARE walking NO SCROLL CURSOR FOR {translate_sql(sql)[0]}")
        while page := self.connection.execute(f"FETCH {size} FROM walking").fetchall():
            yield from page
        self.connection.execute("CLOSE walking")

    def copy_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """By way of a table that is ours alone: COPY goes past row-level security, and may not."""
        names = ", ".join(f'"{name}"' for name in columns)
        run = self.connection.execute
        run(f"CREATE TEMPORARY TABLE coming AS SELECT {names} FROM {table} WITH NO DATA")
        with self.connection.cursor() as cursor, cursor.copy("COPY coming FROM STDIN") as copy:
            for row in rows:
                copy.write_row([_plain(value) for value in row])
        run(f"INSERT INTO {table} ({names}) SELECT * FROM coming")
        run("DROP TABLE coming")


def _plain(value: Any) -> Any:
    """SQLite has no truth values, and a text of PostgreSQL's no NUL."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and "\0" in value:
        return value.replace("\0", "\ufffd")
    return value


_idle: dict[tuple[int, str], list[tuple[float, psycopg.Connection[Any]]]] = {}  # by process
_IDLE, _MOST_IDLE = 30.0, 16  # seconds for which so many connections are kept
_changing = threading.Lock()


def _take_connection(url: str) -> psycopg.Connection[Any]:
    """An idle one, else a new one. It remembers of its last use nothing but prepared statements:
    what row-level security goes by is set in each transaction."""
    key = (os.getpid(), url)
    while True:
        with _changing:
            left, connection = _idle[key].pop() if _idle.get(key) else (0.0, None)
        if connection is None:
            return _connect(url)
        if time.monotonic() - left < _IDLE and _is_alive(connection):
            return connection
        connection.close()


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    """Nobody has asked it anything: if there is something to read, the server has ended it."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)


@contextmanager
def borrow_connection(url: str) -> Iterator[psycopg.Connection[Any]]:
    """One that is idle, without a tenant: nothing of any is seen by it."""
    connection = _take_connection(url)
    try:
        yield connection
    finally:
        _give_back(url, connection)


def _give_back(url: str, connection: psycopg.Connection[Any]) -> None:
    try:
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
        connection.execute("RESET ROLE")
    except psycopg.Error:
        connection.close()
        return
    with _changing:
        others = _idle.setdefault((os.getpid(), url), [])
        others.append((time.monotonic(), connection))
        surplus = others.pop(0)[1] if len(others) > _MOST_IDLE else None
    if surplus is not None:
        surplus.close()


@atexit.register
def _close_idle() -> None:
    for (process, _), others in _idle.items():
        for _, connection in others if process == os.getpid() else ():
            connection.close()


def _connect(url: str) -> psycopg.Connection[Any]:
    """The address says where the data goes. What variables (PGHOST, PGHOSTADDR, PGSERVICE …) could
    add to it is left out: a repository may set them for an agent."""
    with _changing:
        theirs = {name: os.environ.pop(name) for name in list(os.environ) if name[:2] == "PG"}
        try:
            connection = psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor)
        finally:
            os.environ.update(theirs)
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("numeric", _Number)
    # Every question is one of a tenant's, and every key begins with it: an index always helps. A
    # plan made while a table was small is kept, and would read all of it later.
    connection.execute("SET enable_seqscan = off; SET random_page_cost = 1.1")
    connection.execute("SET search_path = yester, pg_catalog")
    return connection
