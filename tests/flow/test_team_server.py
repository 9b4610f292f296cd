"""A server for many: who may ask, what each may do, and what is written down of it."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import closing

import psycopg
import pytest

from tests.golden.test_scores import Fixed
from tests.store.test_store import item, put
from tests.store.test_store_vectors import QUERY, embed
from tests.teams import OWNER, SERVER, Counting, Team, url_of
from yester.clock import DAY
from yester.errors import StoreBusy, StoreError, UsageError
from yester.faces.http.table import ALL_ENDPOINTS, TEAM_ENDPOINTS
from yester.ingest.prepare import prepare_item
from yester.model import Filters
from yester.recall.recall import Asked, answer_question
from yester.redact import redact
from yester.store.postgres.store import PostgresStore
from yester.store.postgres.team import Gate

pytestmark = pytest.mark.requirement("TEAM-01")

LOCKED = [one for one in TEAM_ENDPOINTS if not one.open]
ORDERS = {"text": "Orders keep UTC."}


@pytest.fixture
def team(tmp_path):
    return Team("yester-team", tmp_path)


def acts(server, token):
    rows = server.by(token).get("/v1/audit")["acts"]
    return [(one["user"], one["action"], one["about"], one["outcome"]) for one in rows]


def refusal(server, token, path="/v1/me"):
    said = server.ask("GET", path, token=token)
    return said.status, said.json.get("detail")


def test_a_token_says_who_asks_and_what_it_is_good_for(team):
    owner, reader = team.token("sam", role="owner"), team.token("kim", role="reader")
    narrow = team.token("sam", scopes=("read",), expires=int(time.time() * 1000) + DAY)
    with team.serving() as server:
        me = server.by(owner).get("/v1/me")
        assert (me["tenant"], me["user"], me["role"]) == ("acme", "sam", "owner")
        assert me["scopes"] == ["admin", "read", "write"]
        assert server.by(reader).get("/v1/me")["scopes"] == ["read"]
        assert server.by(narrow).get("/v1/me")["scopes"] == ["read"]
        saved = server.by(owner).send("/api/memory/save", ORDERS)
        assert saved.status == 200, saved.body
        found = server.by(reader).get("/api/search", query="orders utc")
        assert [row["id"] for row in found["results"]] == [saved.json["id"]]
        shown = server.by(reader).get(f"/api/memories/{saved.json['id']}")
        assert [one["who"] for one in shown["history"]] == ["sam"]
        assert server.failures == []


def test_without_a_token_nothing_is_told_but_that_it_is_there(team):
    good = team.token("sam", role="owner")
    with team.serving() as server:
        for token in (None, "x", "yst_" + "x" * 43, good[:-1], good.upper()):
            for one in LOCKED:
                path = one.path.replace("{id}", "1").replace("{session}", "S1")
                said = server.ask(one.method, path, token=token)
                assert said.status == 401, (one.path, said.body)
        assert server.status(f"/v1/me?token={good}", token=None) == 401
        assert server.status("/health", token=None) == 200
        assert server.status("/ready", token=None) == 200


def test_what_is_about_the_servers_machine_is_not_there(team):
    token = team.token("sam", role="owner")
    paths = {one.path for one in TEAM_ENDPOINTS}
    with team.serving() as server:
        for one in ALL_ENDPOINTS:
            if one.path not in paths:
                path = one.path.replace("{id}", "1").replace("{session}", "S1")
                assert server.send(path, {}, one.method, token).status == 404, one.path
        for path in ("/", "/index.html", "/app.js"):
            assert server.status(path, token) == 404
        told = server.by(token).get("/api/openapi.json")
        manual = server.ask("GET", "/api/search/help", token=token).body
    assert set(told["paths"]) == paths
    assert b".yester/token" not in manual + json.dumps(told).encode()
    assert not paths & {"/api/settings", "/api/doctor", "/api/file", "/api/why", "/api/forget"}


def test_a_token_may_do_no_more_than_its_scopes_and_its_owners_role(team):
    member, reader = team.token("kim"), team.token("lee", role="reader")
    narrow = team.token("kim", scopes=("read",))
    with team.serving() as server:
        for one in LOCKED:
            path = one.path.replace("{id}", "1").replace("{session}", "S1")
            for token, may in ((reader, "read"), (narrow, "read"), (member, "read write")):
                refused = server.send(path, {}, one.method, token).status == 403
                assert refused == (one.scope not in may.split()), one.path
        with team.directory() as directory:
            directory.put_account("kim", "reader")
            with pytest.raises(UsageError, match="may not write"):
                directory.issue_token("kim", "", ("write",), (), 0)
        assert server.send("/api/memory/save", ORDERS, token=member).status == 403


def test_a_token_ends_when_it_expires_is_revoked_or_its_user_leaves(team):
    expired = team.token("sam", expires=1)
    revoked, left, good = team.token("sam"), team.token("kim"), team.token("sam")
    with team.serving() as server:
        assert refusal(server, revoked) == (200, None)
        assert refusal(server, left) == (200, None)
        assert refusal(server, expired) == (401, "the token has expired")
        with team.directory() as directory:
            (number,) = [one.id for one in directory.tokens() if one.used and one.user == "sam"][1:]
            assert directory.revoke_token(number) == "sam"
            assert directory.end_account("kim") == 1
        assert refusal(server, revoked) == (401, "the token was revoked")
        assert refusal(server, left) == (401, "the token was revoked")
        assert refusal(server, good) == (200, None)
        with team.directory() as directory:
            directory.put_account("kim", "member")  # who comes back gets a new one
        assert refusal(server, left) == (401, "the token was revoked")


def test_a_token_for_some_projects_sees_and_changes_those_alone(team):
    owner, narrow = team.token("sam", role="owner"), None
    with team.serving() as server:
        for name in ("shop", "diary"):
            made = {"text": f"The {name} keeps UTC.", "project": name, "create": True}
            assert server.send("/api/memory/save", made, token=owner).status == 200
        narrow = team.token("sam", projects=("shop",), role="owner")
        mine = server.by(narrow)
        assert [one["name"] for one in mine.get("/api/projects")["projects"]] == ["shop"]
        assert mine.get("/v1/me")["projects"] == ["shop"]
        assert mine.get("/api/search", query="keeps utc")["count"] == 1
        assert mine.get("/api/search", query="diary")["count"] == 0
        more = {"text": "Prices are cents.", "project": "shop"}
        assert mine.send("/api/memory/save", more, token=narrow).status == 200
        for project, create in (("diary", False), ("diary", True), ("new", True), ("", True)):
            body = {"text": "The walrus sings.", "project": project, "create": create}
            said = mine.send("/api/memory/save", body, token=narrow)
            assert said.status in (403, 404), said.body
        assert server.by(owner).get("/api/search", query="walrus")["count"] == 0
        assert server.failures == []


def test_what_changes_something_is_in_the_log_and_the_log_only_grows(team):
    owner, reader = team.token("sam", role="owner"), team.token("kim", role="reader")
    expired = team.token("kim", expires=1)
    other = team.token("eve", "other", role="owner")
    with team.serving() as server:
        saved = server.by(owner).send("/api/memory/save", ORDERS, token=owner).json["id"]
        assert server.send("/api/memories/99/retire", {}, token=owner).status == 404
        assert server.send("/api/memory/save", ORDERS, token=reader).status == 403
        assert server.status("/v1/me", expired) == 401
        server.by(reader).get("/api/search", query="orders")
        told = acts(server, owner)
        assert [one for one in acts(server, other) if one[0] == "eve"] == acts(server, other)[:1]
    wanted = [
        ("sam", "POST /api/memory/save", "/api/memory/save", "asked"),
        ("sam", "POST /api/memories/{id}/retire", "/api/memories/99/retire", "asked"),
        ("sam", "POST /api/memories/{id}/retire", "/api/memories/99/retire", "refused: 404"),
        ("kim", "POST /api/memory/save", "", "refused: scope"),
        ("kim", "token", "", "expired"),
    ]
    assert saved
    assert [one for one in reversed(told) if one[0] and "/v1" not in one[1]] == wanted
    assert ("", "token", "1 for sam", "done") in told
    assert not any("eve" in one[0] or "eve" in one[2] for one in told)
    for role in (SERVER, OWNER):
        with psycopg.connect(url_of(team.name, role), autocommit=True) as connection:
            for change in ("UPDATE yester.audit SET action = ''", "DELETE FROM yester.audit"):
                with pytest.raises(psycopg.Error, match=r"only added to|permission denied"):
                    connection.execute(change)


def test_who_asks_too_much_waits_and_others_do_not(team):
    fast, other = team.token("sam"), team.token("kim")
    with team.serving(rate=0.001, burst=3) as server, team.serving(rate=0.001, burst=3) as second:
        told = [one.status("/v1/me", fast) for one in (server, second, server, second)]
        assert told == [200, 200, 200, 429]
        said = server.ask("GET", "/v1/me", token=fast)
        assert said.status == 429
        assert 900 < int(said.headers["retry-after"]) <= 1000
        assert server.status("/v1/me", other) == 200
    with team.serving(rate=1e6, burst=3) as server:
        assert server.status("/v1/me", fast) == 200


def test_only_a_role_that_row_level_security_binds_is_served(team):
    team.token("sam")
    place = {
        "roles": {
            "test_rich": "LOGIN IN ROLE " + OWNER,
            "test_free": "LOGIN BYPASSRLS",
            "test_poor": "LOGIN",
        }
    }
    with psycopg.connect(url_of(team.name, "postgres"), autocommit=True) as server:
        for role, power in place["roles"].items():
            server.execute(f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} {power}".encode())
    for role, why in (
        ("postgres", "ignores row-level security"), ("test_free", "ignores row-level security"),
        (OWNER, "owns the tables"), ("test_rich", "owns the tables"),
        ("test_poor", "has no right to the tables"),
    ):  # fmt: skip
        gate = Gate(url_of(team.name, role), team.home, 1, 1)
        with pytest.raises(StoreError, match=why):
            gate.check_database()
    Gate(url_of(team.name, SERVER), team.home, 1, 1).check_database()


def test_what_takes_too_long_in_the_database_is_ended_there(team):
    token = team.token("sam").encode()
    gate = Gate(url_of(team.name, SERVER), team.home, 1e6, 1e6)
    caller = gate.identify(token).caller
    with closing(gate.open_store(caller)) as store:
        named = ("statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout")
        with store.transaction("items"):
            told = [store._db.ask(f"SHOW {name}").fetchone()[0] for name in named]
        assert told == ["30s", "1min", "10min"]
        with store.transaction("items"):
            store.put([prepare_item(item("1", "apple"))])
        store._db._statement_ms = "20"
        with pytest.raises(StoreBusy, match="statement timeout"), store.transaction("items"):
            store.put([prepare_item(item("2", "apple"))])
            store._db.ask("SELECT pg_sleep(5)").fetchone()
        store._db._statement_ms = "30000"
        assert [one.ref for one in store.select(Filters())] == ["1"]


def test_the_servers_role_makes_no_tokens_and_reads_no_hash(team):
    token = team.token("sam")
    with closing(psycopg.connect(url_of(team.name, SERVER), autocommit=True)) as connection:
        connection.execute("SET search_path = yester")
        for command in (
            "SELECT * FROM token_hash",
            "INSERT INTO account(name, role, made) VALUES ('x', 'owner', 1)",
            "UPDATE token SET expires = 0", "UPDATE account SET role = 'owner'",
            "DELETE FROM token_use", "ALTER TABLE item DISABLE ROW LEVEL SECURITY",
            "SELECT protect_tables()", "SET ROLE test_owner",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(command.encode())
        rows = connection.execute("SELECT * FROM authenticate('x', 1, 1)").fetchall()
        assert set(rows[0]) == {None}
    with closing(psycopg.connect(url_of(team.name, "postgres"))) as connection:
        for table in ("token", "token_hash", "account", "audit"):
            rows = connection.execute(f"SELECT t::text FROM yester.{table} t".encode()).fetchall()
            assert rows
            assert not any(token[4:] in str(row) for row in rows)


def test_figures_need_their_own_token_and_name_nobody(team):
    token = team.token("sam", role="owner")
    secret = "m" * 32
    with team.serving(metrics_token=secret) as server, team.serving() as other:
        server.by(token).get("/api/search", query="walrus")
        server.ask("GET", "/walrus", token=token)
        server.status("/v1/me", token="wrong")
        for wrong in (token, None, "m" * 31):
            assert server.status("/metrics", wrong) == 401
        assert other.status("/metrics", "") == 401
        told = server.ask("GET", "/metrics", token=secret).body.decode()
    assert 'yester_requests_total{method="GET",path="/api/search",status="200"} 1' in told
    assert "yester_token_refused_total 1\n" in told
    assert 'yester_request_seconds_bucket{le="+Inf"} 6\n' in told
    assert not any(word in told for word in ("walrus", "sam", "acme"))


def test_no_page_may_ask(team):
    token = team.token("sam")
    with team.serving() as server:
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-origin"}):
            assert server.ask("GET", "/v1/me", headers, token=token).status == 403
        for host in ("memory.example.org", "10.0.0.7:8443"):  # whatever the proxy is called
            assert server.ask("GET", "/v1/me", {"Host": host}, token=token).status == 200
        said = server.ask("GET", "/v1/me", token=token)
        assert said.headers["cache-control"] == "no-store"
        assert "set-cookie" not in said.headers


def test_a_token_is_taken_out_of_what_is_stored_or_shown(team):
    assert redact(f"use {team.token('sam')} here") == "use [redacted:yester-token] here"


def test_messages_do_not_say_where_the_database_is(team):
    token = team.token("sam")
    with team.serving() as server, psycopg.connect(url_of(team.name, OWNER)) as owner:
        owner.execute("ALTER TABLE yester.session RENAME TO sessions")
        owner.commit()
        said = server.ask("GET", "/api/sessions", token=token)
    assert said.status == 500
    for word in (b"postgresql", team.name.encode(), SERVER.encode(), b"/dev/shm"):
        assert word not in said.body
    client = http.client.HTTPConnection("127.0.0.1", server.port)
    with closing(client), pytest.raises(ConnectionRefusedError):
        client.connect()


def test_answers_take_few_trips_to_the_database_however_much_they_hold(team):
    """It may be far away. A search is four or five of them; who asks, the names of projects, and
    what else is told of its hits are asked once each."""
    token, at = team.token("sam"), {"project": "name:shop", "agent": "codex"}
    with team.store() as store:
        put(
            store,
            *(
                item(f"{n}", f"the tax rounding of order {n} fails", session=f"s{n % 9}",
                     kind="prompt" if n % 20 == 0 else "message", epoch=n * 1_000, **at)
                for n in range(120)
            ),
        )  # fmt: skip
    asked = (
        ("/api/search", {"query": "tax rounding"}, 11),
        ("/api/search", {"query": "tax rounding", "format": "full", "limit": "100"}, 11),
        ("/api/search/grouped", {"query": "tax rounding", "limit": "50"}, 11),
        ("/api/items", {"limit": "100", "format": "full"}, 6),
        ("/api/sessions", {}, 5),
        ("/api/search/timeline", {"anchor": "30"}, 15),
    )
    database = Counting(team.name, SERVER)
    with closing(database), team.serving(url=database.url, threads=1) as server:
        mine = server.by(token)
        mine.get("/v1/me")  # the first one connects
        for path, given, most in asked:
            trips = []
            for _ in range(2):  # where a connection prepares a statement, that is a trip of its own
                before = database.settle().trips
                assert len(json.dumps(mine.get(path, **given))) > 1_000
                trips.append(database.settle().trips - before)
            assert 0 < min(trips) <= most, (path, given)
        assert server.failures == []


def test_a_search_is_four_questions_each_sent_with_the_settings_of_its_transaction(team):
    with team.store() as store:
        texts = {str(n): f"the tax rounding of order {n} fails" for n in range(60)}
        put(store, *(item(ref, text, session="s") for ref, text in texts.items()))
        embed(store, {ref: [QUERY] for ref in texts})
    database = Counting(team.name, OWNER, delay=0.01)
    url = f"{database.url}&tenant=acme"
    with closing(database), closing(PostgresStore.open_url(url, now=1)) as store:
        for query in ("why does the tax rounding fail", "roundng", '"tax rounding" -order'):
            for filters in (Filters(), Filters(projects=("name:shop",))):
                for embedder in (None, Fixed()):
                    before = database.statements, database.trips, time.monotonic()
                    asked = Asked(query, filters, now=1_000 * DAY)
                    assert answer_question(store, asked, embedder=embedder).hits
                    trips = database.trips - before[1]
                    assert database.statements - before[0] == 2 * trips
                    assert trips <= 4, (query, filters)
                    assert time.monotonic() - before[2] >= trips * 0.01
