"""A connection to PostgreSQL that understands the statements of `store/rows`, and gives every
transaction its tenant."""

from __future__ import annotations

import atexit
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec
import psycopg
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

_MOST_PLANS = 200  # that the server keeps for a connection
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
_NUMBERED = re.compile(r"\$(\d+)")
# Rows whose values are all given, and what is to be done where one is there already.
_INSERTED = re.compile(r"\AINSERT INTO (\w+)\(([^()]*)\) VALUES \((.*?)\)( ON CONFLICT.*)?$", re.S)
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
    """The rows of an answer, as SQLite's cursor gives them; waited for when they are looked at."""

    def __init__(self, fetch: Callable[[], list[tuple[Any, ...]]]) -> None:
        self._fetch = fetch
        self._rows: Iterator[tuple[Any, ...]] | None = None

    # No cached_property: before Python 3.12 all threads share its lock, and one of them would wait
    # for a lock of the database that another cannot let go of.
    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        if self._rows is None:
            self._rows = iter(self._fetch())
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(iter(self), None)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self)


class Insertion(NamedTuple):
    text: str
    columns: dict[int, str]  # place → column


@lru_cache(200)
def insert_all(text: str) -> Insertion | None:
    """The statement that inserts a row, for all rows of a JSON list; None: it is another one."""
    match = _INSERTED.match(text)
    if match is None:
        return None
    table, names, values, rest = match.groups()
    columns, chosen = {}, []
    for name, value in zip(names.split(", "), values.split(", "), strict=True):
        place = _NUMBERED.fullmatch(value)
        if place:
            columns[int(place[1]) - 1] = name.strip('"')
        chosen.append(f"r.{name}" if place else value)
    rows = f"json_populate_recordset(NULL::{table}, $1::json) r"
    inserted = f"INSERT INTO {table}({names}) SELECT {', '.join(chosen)} FROM {rows}{rest or ''}"
    return Insertion(inserted, columns)


def _fetch(cursor: psycopg.Cursor[Any]) -> list[tuple[Any, ...]]:
    """All rows; none of a statement that gives none."""
    try:
        return cursor.fetchall()
    except psycopg.ProgrammingError:
        if cursor.pgresult is None or cursor.description:
            raise
        return []


class Read(NamedTuple):
    """A question that waits to be sent together with others."""

    text: str
    width: int  # columns of its answer
    values: list[Any]


@lru_cache(1_000)
def join_reads(shared: str, reads: tuple[tuple[str, int], ...]) -> str:
    """One statement for all: a row in which each column of each answer is an array."""
    parts = []
    for text, width in reads:
        names = [f"c{number}" for number in range(width)]
        columns = ", ".join(f"array_agg(x.{name})" for name in names)
        parts.append(f"(SELECT {columns} FROM ({text}) x({', '.join(names)}))")
    joined = ", ".join(f"{part} r{number}" for number, part in enumerate(parts))
    return f"{shared}SELECT * FROM {joined}"


@lru_cache(2_000)
def move_places(text: str, by: int) -> str:
    """The same with places for values that are numbered from there on."""
    return _NUMBERED.sub(lambda match: f"${int(match[1]) + by}", text)


class Database:
    """One connection, for one thread. Outside of a transaction each statement is one of its own.

    Inside, statements are sent without waiting for their answers (a pipeline): a trip to the server
    is made where an answer is looked at, and at the end.
    """

    def __init__(self, url: str, statement_ms: int = 60_000) -> None:
        self._tenant = self._account = self._projects = ""
        self._statement_ms = str(statement_ms)
        self.in_transaction = False
        self._pipeline: Any = None
        self._shared: list[Read] = []
        self._waiting: list[Read] = []
        self._answers: list[list[tuple[Any, ...]]] = []
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
        if self.connection.unbound:
            self.connection.execute("SET ROLE yester_app")

    def close(self) -> None:
        """Let go of the connection: the next store of this process may have it."""
        if self._open:
            self._open = False
            self._leave_pipeline()
            _give_back(self._url, self.connection)

    def _renew(self) -> None:
        """Another connection, where the server has ended this one."""
        if not self._open:
            raise psycopg.InterfaceError("the store is closed")
        if not self.in_transaction and not _is_alive(self.connection):
            self.connection.close()
            self.connection = _take_connection(self._url)
            self._bind_user()

    # --- transactions ----------------------------------------------------------------------------

    def begin(self, lock: int, patience: float) -> None:
        """A transaction of the only one who has this lock of the tenant."""
        self._renew()
        self._enter_pipeline()
        self.in_transaction = True
        self.connection.execute("BEGIN")
        self._set_tenant()
        wait = f"{max(1, int(patience * 1000))}ms"
        self.connection.execute("SELECT set_config('lock_timeout', $1, true)", [wait])
        keys = [lock, int(self._tenant)]
        self.connection.execute("SELECT pg_advisory_xact_lock($1::int, $2::int)", keys)

    def commit(self) -> None:
        self.connection.execute("COMMIT")
        self._leave_pipeline()
        self.in_transaction = False

    def roll_back(self) -> None:
        if self.in_transaction:
            self.in_transaction = False
            with suppress(psycopg.Error):  # what went wrong has been raised already
                self._leave_pipeline()
            if self.connection.info.transaction_status == TransactionStatus.INERROR:
                # The driver takes for prepared what was sent behind the one that failed.
                self.connection.close()
            elif not self.connection.closed:
                self.connection.execute("ROLLBACK")

    def _enter_pipeline(self) -> None:
        self._pipeline = self.connection.pipeline()
        self._pipeline.__enter__()

    def _leave_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.__exit__(None, None, None)

    def _set_tenant(self) -> None:
        values = [self._tenant, self._account, self._projects, self._statement_ms]
        self.connection.execute(_SETTINGS, values)

    # --- statements ------------------------------------------------------------------------------

    def execute(self, sql: str, args: Any = ()) -> Found:
        """A statement of `store/rows`; values in their order, or by name."""
        text, names = translate_sql(sql)
        return self.ask(text, [_stored_value(args[name]) for name in names])

    def ask(self, text: str, values: Sequence[Any] = (), binary: bool = False) -> Found:
        """In PostgreSQL's own words."""
        self._renew()
        if self.in_transaction:
            return Found(partial(_fetch, self.connection.execute(text, values, binary=binary)))
        with self.connection.pipeline():
            self._set_tenant()
            cursor = self.connection.execute(text, values, binary=binary)
        return Found(partial(_fetch, cursor))

    def read(self, width: int, sql: str, *args: Any) -> Found:
        """A question of `store/rows` whose answer has so many columns, none of them an array. It is
        sent when one that waits is looked at, in one statement with all others that wait."""
        self._waiting.append(self._read_of(sql, width, args))
        at = len(self._answers) + len(self._waiting) - 1
        answers = self._answers

        def fetch() -> list[tuple[Any, ...]]:
            if at >= len(answers):
                self._send_reads()
            return answers[at]

        return Found(fetch)

    def share(self, name: str, sql: str, *args: Any) -> None:
        """Make an answer known under a name to the questions that wait and to those that come until
        they are sent."""
        read = self._read_of(sql, 0, args)
        self._shared.append(read._replace(text=f"{name} AS MATERIALIZED ({read.text})"))

    def forget_reads(self) -> None:
        """Nobody will look at the answers that were not looked at."""
        self._shared, self._waiting, self._answers = [], [], []

    def _read_of(self, sql: str, width: int, args: Sequence[Any]) -> Read:
        text, names = translate_sql(sql)
        return Read(text, width, [_stored_value(args[int(name)]) for name in names])

    def _send_reads(self) -> None:
        shared, reads = self._shared, self._waiting
        self._shared, self._waiting = [], []
        values: list[Any] = []
        texts = []
        for read in (*shared, *reads):
            texts.append(move_places(read.text, len(values)))
            values += read.values
        named = f"WITH {', '.join(texts[: len(shared)])} " if shared else ""
        if len(reads) == 1:
            self._answers.append(self.ask(named + texts[-1], values, binary=True).fetchall())
            return
        widths = [read.width for read in reads]
        text = join_reads(named, tuple(zip(texts[len(shared) :], widths, strict=True)))
        (row,) = self.ask(text, values, binary=True)
        at = 0
        for width in widths:
            columns = [column or () for column in row[at : at + width]]
            self._answers.append(list(zip(*columns, strict=True)))
            at += width

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """For each of the rows; those to insert go in one statement."""
        text, names = translate_sql(sql)
        values = [[_stored_value(row[name]) for name in names] for row in rows]
        if not values:
            return
        inserted = insert_all(text)
        if inserted is None:
            self.connection.cursor().executemany(text, values)
            return
        columns = [inserted.columns[place] for place in range(len(names))]
        documents = [
            {name: _json_value(value) for name, value in zip(columns, row, strict=True)}
            for row in values
        ]
        self.ask(inserted.text, [msgspec.json.encode(documents).decode()])

    def stream_rows(self, sql: str, size: int = 2_000) -> Iterator[tuple[Any, ...]]:
        """The rows of an answer, a page at a time; inside a transaction."""
        self.connection.execute(f"DECLARE walking NO SCROLL CURSOR FOR {translate_sql(sql)[0]}")
        while page := self.connection.execute(f"FETCH {size} FROM walking").fetchall():
            yield from page
        self.connection.execute("CLOSE walking")

    def copy_rows(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """By way of a table that is ours alone: COPY goes past row-level security, and may not."""
        names = ", ".join(f'"{name}"' for name in columns)
        run = self.connection.execute
        self._leave_pipeline()  # in which nothing is copied
        run(f"CREATE TEMPORARY TABLE coming AS SELECT {names} FROM {table} WITH NO DATA")
        with self.connection.cursor() as cursor, cursor.copy("COPY coming FROM STDIN") as copy:
            for row in rows:
                copy.write_row([_stored_value(value) for value in row])
        run(f"INSERT INTO {table} ({names}) SELECT * FROM coming")
        run("DROP TABLE coming")
        self._enter_pipeline()


def _json_value(value: Any) -> Any:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else value


def _stored_value(value: Any) -> Any:
    """SQLite has no truth values, and a text of PostgreSQL's no NUL."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list):
        return (
            [_stored_value(one) for one in value] if value and isinstance(value[0], str) else value
        )
    if isinstance(value, str) and "\0" in value:
        return value.replace("\0", "\ufffd")
    return value


class Link(psycopg.Connection[Any]):
    """`unbound`: row-level security does not bind who has connected."""

    unbound = False


_idle: dict[tuple[int, str], list[tuple[float, Link]]] = {}  # by process
_IDLE, _MOST_IDLE = 30.0, 16  # seconds for which so many connections are kept
_changing = threading.Lock()


def _take_connection(url: str) -> Link:
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
def borrow_connection(url: str) -> Iterator[Link]:
    """One that is idle, without a tenant: nothing of any is seen by it."""
    connection = _take_connection(url)
    try:
        yield connection
    finally:
        _give_back(url, connection)


def _give_back(url: str, connection: Link) -> None:
    try:
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
        if connection.unbound:
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


def _connect(url: str) -> Link:
    """The address says where the data goes. What variables (PGHOST, PGHOSTADDR, PGSERVICE …) could
    add to it is left out: a repository may set them for an agent."""
    with _changing:
        theirs = {name: os.environ.pop(name) for name in list(os.environ) if name[:2] == "PG"}
        try:
            connection = Link.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor)
        finally:
            os.environ.update(theirs)
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_loader("numeric", _Number)
    # Every question is one of a tenant's, and every key begins with it: an index always helps. A
    # plan made while a table was small is kept, and would read all of it later.
    # Planning costs as much as asking: what is asked a second time is planned for the last time.
    connection.prepare_threshold, connection.prepared_max = 1, _MOST_PLANS
    connection.execute(
        "SET enable_seqscan = off; SET random_page_cost = 1.1; SET jit = off;"
        " SET max_parallel_workers_per_gather = 0;"
        " SET plan_cache_mode = force_generic_plan; SET search_path = yester, pg_catalog"
    )
    ((connection.unbound,),) = connection.execute(
        "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    )
    return connection
