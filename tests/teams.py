"""A server for many in a thread of the test: a database of its own, whose owner and whose server
are two roles without any power, as in the documentation."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from tests import postgres
from tests.capturing import until
from tests.serving import NO_MODEL, Said, Serving, at_once
from yester.caller import Role, Scope
from yester.faces.http.guard import Slowdown
from yester.faces.http.server import Server, open_socket
from yester.faces.http.team import TeamApp
from yester.memory import Memory
from yester.store.postgres.store import PostgresStore
from yester.store.postgres.team import Directory, Gate

OWNER, SERVER = "test_owner", "test_server"
RATE, BURST = 1e6, 1e6


def make_database(name: str) -> None:
    """An empty one; its owner may make nothing but tables in it."""
    with psycopg.connect(postgres.server(), autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(1)")  # roles belong to all databases
        for role, more in (
            ("yester_app", "NOLOGIN"),
            (OWNER, "LOGIN"),
            (SERVER, "LOGIN IN ROLE yester_app"),
        ):
            known = server.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
            if known.fetchone() is None:
                server.execute(f"CREATE ROLE {role} {more}")
        server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        server.execute(f'CREATE DATABASE "{name}" OWNER {OWNER}')


def url_of(name: str, role: str, tenant: str = "") -> str:
    there = psycopg.conninfo.conninfo_to_dict(postgres.server())
    place = f"postgresql://{role}@/{name}?host={there['host']}"
    if "port" in there:
        place += f"&port={there['port']}"
    return place + (f"&tenant={tenant}" if tenant else "")


class Counting:
    """Between a server and its database: counts the statements that pass, and the trips: how often
    the client waits for answers. Each part of an answer is held back for `delay` seconds, as on a
    long way. Close it."""

    def __init__(self, name: str, role: str, delay: float = 0.0) -> None:
        self._delay = delay
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        there = psycopg.conninfo.conninfo_to_dict(postgres.server())
        self._name, self._role = name, role
        self._database = f"{there['host']}/.s.PGSQL.{there.get('port', 5432)}"
        port = self._socket.getsockname()[1]
        self.url = f"postgresql://{role}@127.0.0.1:{port}/{name}?sslmode=disable&gssencmode=disable"
        self.statements = self.trips = 0
        self._pumps: list[threading.Thread] = []
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client = self._socket.accept()[0]
                database = socket.socket(socket.AF_UNIX)
                self._ends += [client, database]
                database.connect(self._database)
                for source, target in ((client, database), (database, client)):
                    counted = source is client
                    pump = threading.Thread(target=self._pump, args=(source, target, counted))
                    pump.daemon = True
                    self._pumps.append(pump)
                    pump.start()

    def _pump(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with suppress(OSError):  # either of them may end the connection
            self._pass_on(source, target, counted)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def _pass_on(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        pending, begun, last = b"", False, b""
        while data := source.recv(1 << 16):
            pending += data if counted else b""
            while len(pending) > 5:  # the first message has no type
                length = int.from_bytes(pending[begun : begun + 4], "big") + begun
                if len(pending) < length:
                    break
                kind = pending[:1] if begun else b""
                self.statements += kind in (b"E", b"Q")
                # The database answers when it is told to: by Query, Sync, or Flush.
                self.trips += kind in (b"Q", b"S") or (kind == b"H" and last != b"S")
                pending, begun, last = pending[length:], True, kind
            if self._delay and not counted:
                time.sleep(self._delay)
            target.sendall(data)

    def settle(self) -> Counting:
        """Once no transaction is open: an answer can be there before the last one has ended."""
        busy = "SELECT 1 FROM pg_stat_activity WHERE (datname, usename) = (%s, %s)"
        busy += " AND state <> 'idle'"
        with psycopg.connect(postgres.server(), autocommit=True) as server:
            until(lambda: server.execute(busy, [self._name, self._role]).fetchone() is None)
        return self

    def close(self) -> None:
        """Together with the connections, whose threads end by that."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._socket.close()
        for end in self._ends:
            with suppress(OSError):  # it has ended already
                end.shutdown(socket.SHUT_RDWR)
        for pump in self._pumps:
            pump.join()
        for end in self._ends:
            end.close()


class Team:
    """A database with its tenants; `serving` answers from it."""

    def __init__(self, name: str, home: Path) -> None:
        # The next test of this worker takes its place, so that there are never many.
        self.name = f"{name}-{os.environ.get('PYTEST_XDIST_WORKER', '')}"
        self.home = home
        make_database(self.name)

    def directory(self, tenant: str = "acme", now: int = 1) -> Directory:
        return Directory(url_of(self.name, OWNER, tenant), now)

    def token(
        self, user: str, tenant: str = "acme", *, role: Role = "member",
        scopes: tuple[Scope, ...] = (), projects: tuple[str, ...] = (), expires: int = 0,
    ) -> str:  # fmt: skip
        """Of a user who is made where there is none."""
        with self.directory(tenant) as directory:
            directory.protect_tables()
            if user not in {one.name for one in directory.accounts()}:
                directory.put_account(user, role)
            return directory.issue_token(user, "test", scopes, projects, expires)[1]

    @contextmanager
    def store(self, tenant: str = "acme", account: int = 0) -> Iterator[PostgresStore]:
        """As the owner of the database sees it, or an account."""
        url = url_of(self.name, OWNER, tenant)
        with closing(PostgresStore.open_url(url, now=1, account=account)) as store:
            yield store

    @contextmanager
    def serving(
        self,
        *,
        url: str = "",
        rate: float = RATE,
        burst: float = BURST,
        metrics_token: str = "",
        **more: Any,
    ) -> Iterator[TeamServing]:
        failures: list[BaseException] = []
        url = url or url_of(self.name, SERVER)
        gate = Gate(url, self.home, rate, burst)
        gate.check_database()
        sock = open_socket(0)
        memory = Memory(self.home, NO_MODEL, who="http", database=url)
        app = TeamApp(
            memory, gate, lambda _, error: failures.append(error), metrics_token=metrics_token,
            slowdown=Slowdown(sleep=at_once), **more,
        )  # fmt: skip
        server = Server(app, grace=30)
        thread = threading.Thread(target=server.run, args=([sock],))
        thread.start()
        try:
            yield TeamServing(self.home, app, sock.getsockname()[1], failures, server)
        finally:
            server.should_exit = True
            thread.join()
            app.end()


class TeamServing(Serving):
    """`ask` wants a token each time; `get` and `send` take one too."""

    def __init__(
        self, home: Path, app: TeamApp, port: int, failures: list[BaseException], server: Server
    ) -> None:
        self.home, self.port, self.failures, self.server = home, port, failures, server
        self.team = app
        self.token = ""

    def by(self, token: str) -> TeamServing:
        """The same server, asked with this token."""
        other = TeamServing(self.home, self.team, self.port, self.failures, self.server)
        other.token = token
        return other

    def status(self, path: str, token: str | None = "") -> int:
        said: Said = self.ask("GET", path, token=token)
        return said.status
