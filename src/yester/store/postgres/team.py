"""A server for many: whose a token is, what was done with it, and who may have one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg

from yester.caller import (
    ROLES,
    Account,
    Act,
    Caller,
    Role,
    Scope,
    Token,
    hash_token,
    make_token,
)
from yester.errors import NotFound, StoreError, UsageError
from yester.model import Project
from yester.store.migrate import load_migrations
from yester.store.postgres.connection import explain_errors, parse_url
from yester.store.postgres.database import borrow_connection
from yester.store.postgres.store import PostgresStore

STATEMENT_MS = 30_000
_TIMEOUTS = (
    f"-c statement_timeout={STATEMENT_MS} -c idle_in_transaction_session_timeout=60000"
    " -c idle_session_timeout=600000"
)
_SHOWN = "the server's database"  # to its users: where that is, is none of their business
_UNBOUND = (
    "SELECT r.rolname, r.rolsuper OR r.rolbypassrls FROM pg_roles r"
    " WHERE pg_has_role(session_user, r.oid, 'MEMBER') AND (r.rolsuper OR r.rolbypassrls"
    " OR r.oid IN (SELECT c.relowner FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'yester' UNION SELECT nspowner FROM pg_namespace WHERE nspname = 'yester'))"
    " ORDER BY r.rolname = session_user DESC, 1 LIMIT 1"
)
_THERE = (
    "SELECT count(*) FILTER (WHERE c.relname = 'token') = 1,"
    " coalesce(bool_and(has_schema_privilege(n.oid, 'USAGE')"
    " AND has_table_privilege(c.oid, 'SELECT')) FILTER (WHERE c.relname IN ('token', 'item')),"
    " false) FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid"
    " WHERE n.nspname = 'yester'"
)
_AUDIT = "INSERT INTO audit(account, token, action, about, outcome) VALUES ($1, $2, $3, $4, $5)"


class Identified(NamedTuple):
    """Whose a token is. `state`: good, expired, revoked, unknown; `wait`: seconds for which it has
    asked too much."""

    caller: Caller | None
    state: str
    wait: float


class Gate:
    """The database as a server's processes use it: nothing is kept between two calls but idle
    connections. Any thread may call it; each takes one connection at a time."""

    def __init__(self, url: str, home: Path, rate: float, burst: float) -> None:
        """`rate`: requests a second of one token, `burst` of them at once."""
        self._place = parse_url(_add_timeouts(url))._replace(shown=_SHOWN)
        self._home, self._rate, self._burst = home, rate, burst
        self._version = load_migrations("postgres")[-1].version

    def check_database(self) -> None:
        """StoreError where this must not be served: another schema, or a role that could see what
        row-level security hides."""
        with explain_errors(self._place), borrow_connection(self._place.url) as connection:
            unbound = connection.execute(_UNBOUND).fetchone()
            if unbound:
                why = "ignores row-level security" if unbound[1] else "owns the tables"
                raise StoreError(
                    f"the server's role could see every tenant: it is or may become {unbound[0]},"
                    f" which {why}",
                    "serve as a role of its own: CREATE ROLE yester_server LOGIN IN ROLE"
                    " yester_app",
                )
            ((there, may),) = connection.execute(_THERE)
            if not there:
                raise StoreError(
                    "there is no team in this database", "its owner makes one: yester team init"
                )
            if not may:
                raise StoreError(
                    "the server's role has no right to the tables", "GRANT yester_app TO that role"
                )
            ((version,),) = connection.execute("SELECT max(version) FROM migration")
            if version != self._version:
                raise StoreError(
                    f"the database has schema version {version}, this yester has {self._version}",
                    "update the older one; the database: yester team init",
                )

    def identify(self, token: bytes) -> Identified:
        values = [hash_token(token), self._rate, self._burst]
        with explain_errors(self._place), borrow_connection(self._place.url) as connection:
            row = connection.execute("SELECT * FROM authenticate($1, $2, $3)", values).fetchone()
        assert row is not None
        (tenant, tenant_name, account, user, role, number, scopes, projects, expires, state,
         wait) = row  # fmt: skip
        if state is None:
            return Identified(None, "unknown", 0.0)
        caller = Caller(
            tenant=tenant, tenant_name=tenant_name, account=account, user=user, role=role,
            token=number, scopes=frozenset(scopes) & frozenset(ROLES[role]), expires=expires,
            projects=None if projects is None else tuple(projects),
        )  # fmt: skip
        return Identified(caller, state, wait or 0.0)

    def open_store(self, caller: Caller) -> PostgresStore:
        """As this caller sees it; the database itself hides the rest. For one request."""
        return PostgresStore.open_account(
            self._place, caller, self._version, self._home, STATEMENT_MS
        )

    def record(self, caller: Caller, action: str, about: str, outcome: str) -> None:
        """Into the audit log, before this returns."""
        with (
            explain_errors(self._place),
            borrow_connection(self._place.url) as connection,
            connection.transaction(),
        ):
            _enter_tenant(connection, caller.tenant)
            connection.execute(_AUDIT, [caller.account, caller.token, action, about, outcome])


def _add_timeouts(url: str) -> str:
    """Whatever the server forgets to end, the database ends."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    options["options"] = f"{options.get('options', '')} {_TIMEOUTS}".strip()
    options.setdefault("connect_timeout", "5")
    options.setdefault("application_name", "yester")
    place = url.partition("?")[0]
    return f"{place}?{urlencode(options, quote_via=quote)}"


def _enter_tenant(connection: psycopg.Connection[Any], tenant: int) -> None:
    connection.execute(
        "SELECT set_config('yester.tenant', $1, true), set_config('yester.account', '0', true)",
        [str(tenant)],
    )


# --- for the owner of the tables ------------------------------------------------------------------


class Directory:
    """The accounts of the tenant that the address names, for whoever owns the tables. Close it, or
    use `with`."""

    def __init__(self, url: str, now: int) -> None:
        self._place, self._now = parse_url(url), now
        self.store = PostgresStore.open_url(url, now=now)
        self.tenant = self._place.tenant

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    @contextmanager
    def _begin(self) -> Iterator[psycopg.Connection[Any]]:
        """Superusers are not bound by row-level security: every statement names the tenant."""
        with (
            explain_errors(self._place),
            borrow_connection(self._place.url) as connection,
            connection.transaction(),
        ):
            found = connection.execute("SELECT id FROM tenant WHERE name = $1", [self.tenant])
            ((tenant,),) = found
            _enter_tenant(connection, tenant)
            yield connection

    def _record(self, connection: psycopg.Connection[Any], action: str, about: str) -> None:
        connection.execute(_AUDIT, [0, 0, action, about, "done"])

    def protect_tables(self) -> bool:
        """The rights of the server's role are given; is there that role?"""
        with self._begin() as connection:
            connection.execute("SELECT protect_tables()")
            there = "SELECT 1 FROM pg_roles WHERE rolname = 'yester_app'"
            return connection.execute(there).fetchone() is not None

    def put_account(self, name: str, role: Role) -> int:
        """A new one, or one that gets another role or comes back."""
        with self._begin() as connection:
            ((id_,),) = connection.execute(
                "INSERT INTO account(name, role, made) VALUES ($1, $2, $3)"
                " ON CONFLICT (tenant, name) DO UPDATE SET role = excluded.role, ended = 0"
                " RETURNING id",
                [name, role, self._now],
            )
            self._record(connection, "account", f"{name} is {role}")
        return int(id_)

    def end_account(self, name: str) -> int:
        """Its tokens end with it; how many did."""
        with self._begin() as connection:
            account = _find_account(connection, name)
            connection.execute(
                "UPDATE account SET ended = $2 WHERE tenant = tenant() AND id = $1",
                [account, self._now],
            )
            ended = connection.execute(
                "UPDATE token SET revoked = $2 WHERE tenant = tenant() AND account = $1"
                " AND revoked = 0",
                [account, self._now],
            )
            self._record(connection, "account ended", name)
        return ended.rowcount

    def accounts(self) -> list[Account]:
        with self._begin() as connection:
            found = connection.execute(
                "SELECT a.id, a.name, a.role, a.made, a.ended, (SELECT count(*) FROM token t"
                " WHERE t.tenant = a.tenant AND t.account = a.id AND t.revoked = 0"
                " AND (t.expires = 0 OR t.expires > $1))"
                " FROM account a WHERE a.tenant = tenant() ORDER BY a.ended > 0, a.name",
                [self._now],
            ).fetchall()
        names = Account.__struct_fields__
        return [Account(**dict(zip(names, row, strict=True))) for row in found]

    def issue_token(
        self, user: str, name: str, scopes: Sequence[Scope], projects: Sequence[str], expires: int
    ) -> tuple[int, str]:
        """Its number, and the token: it stands nowhere else."""
        token = make_token()
        ids = [self._make_project(project) for project in projects] or None
        with self._begin() as connection:
            account = _find_account(connection, user)
            ((role,),) = connection.execute(
                "SELECT role FROM account WHERE tenant = tenant() AND id = $1", [account]
            )
            if beyond := [one for one in scopes if one not in ROLES[role]]:
                raise UsageError(
                    f"{user} is {role}, and may not {' or '.join(beyond)}",
                    f"scopes of a {role}: {', '.join(ROLES[role])}",
                )
            ((id_,),) = connection.execute(
                "INSERT INTO token(account, name, scopes, projects, made, expires)"
                " VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
                [account, name, list(scopes or ROLES[role]), ids, self._now, expires],
            )
            connection.execute(
                "INSERT INTO token_hash(hash, of_tenant, token) VALUES ($1, tenant(), $2)",
                [hash_token(token), id_],
            )
            self._record(connection, "token", f"{id_} for {user}")
        return int(id_), token

    def revoke_token(self, id_: int) -> str:
        """From now on it opens nothing; whose it was."""
        with self._begin() as connection:
            found = connection.execute(
                "UPDATE token SET revoked = CASE revoked WHEN 0 THEN $2 ELSE revoked END"
                " WHERE tenant = tenant() AND id = $1 RETURNING account",
                [id_, self._now],
            ).fetchone()
            if found is None:
                raise NotFound(f"no token {id_}", "yester team tokens lists them")
            ((user,),) = connection.execute(
                "SELECT name FROM account WHERE tenant = tenant() AND id = $1", [found[0]]
            )
            self._record(connection, "token revoked", f"{id_} of {user}")
        return str(user)

    def tokens(self) -> list[Token]:
        with self._begin() as connection:
            found = connection.execute(
                "SELECT t.id, a.name, t.name, t.scopes, ARRAY(SELECT p.name FROM project p"
                " WHERE p.tenant = t.tenant AND p.id = ANY (t.projects) ORDER BY 1), t.made,"
                " t.expires, t.revoked, coalesce(u.at * 1000, 0)::bigint FROM token t"
                " JOIN account a ON a.tenant = t.tenant AND a.id = t.account"
                " LEFT JOIN token_use u ON u.tenant = t.tenant AND u.token = t.id"
                " WHERE t.tenant = tenant() ORDER BY t.revoked > 0, t.id"
            ).fetchall()
        names = Token.__struct_fields__
        return [Token(**dict(zip(names, row, strict=True))) for row in found]

    def limit_project(self, name: str, users: Sequence[str]) -> str:
        """From now on it is these users' alone; without any, the whole tenant's. Its name."""
        known = [one for one in self.store.projects() if name in (one.name, one.key)]
        if not known:
            raise NotFound(f"no project is called {name!r}", "yester projects lists them")
        with self._begin() as connection:
            accounts = [_find_account(connection, user) for user in users]
            self._record(connection, "members", f"{known[0].key}: {', '.join(users) or 'all'}")
        with self.store.transaction("places"):
            self.store.limit_project(known[0].key, accounts)
        return known[0].name

    def _make_project(self, name: str) -> int:
        """It may be one that nobody has shared yet."""
        known = [one for one in self.store.projects() if name in (one.name, one.key)]
        if not known and ":" not in name:
            raise NotFound(
                f"no project is called {name!r}", "name it by its key: git:example.org/acme/shop"
            )
        project = known[0] if known else Project(name, name.rpartition("/")[2])
        with self.store.transaction("places"):
            return self.store.put_project(project)

    def audit(self, most: int) -> list[Act]:
        """The newest first."""
        return read_audit(self.store, most)


_ACTS = (
    "SELECT l.epoch, coalesce(a.name, ''), l.token, l.action, l.about, l.outcome FROM audit l"
    " LEFT JOIN account a ON a.tenant = l.tenant AND a.id = l.account"
    " WHERE l.tenant = tenant() ORDER BY l.epoch DESC, l.id LIMIT $1"
)


def read_audit(store: PostgresStore, most: int) -> list[Act]:
    """What was done in the tenant of a store, the newest first."""
    found = store._db.ask(_ACTS, [most])
    return [Act(**dict(zip(Act.__struct_fields__, row, strict=True))) for row in found]


def _find_account(connection: psycopg.Connection[Any], name: str) -> int:
    found = connection.execute(
        "SELECT id FROM account WHERE tenant = tenant() AND name = $1", [name]
    ).fetchone()
    if found is None:
        raise NotFound(f"no user is called {name!r}", "yester team users lists them")
    return int(found[0])
