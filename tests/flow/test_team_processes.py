"""`yester serve --database` as processes: beside each other, killed, cut off, ended in good order;
and the commands of whoever owns the database."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import closing, contextmanager

import psycopg
import pytest

from tests import postgres
from tests.capturing import until
from tests.teams import OWNER, SERVER, Team, url_of

pytestmark = pytest.mark.requirement("TEAM-01")

ORDERS = {"text": "Orders keep UTC."}


@pytest.fixture
def team(tmp_path):
    return Team("yester-team", tmp_path / "home")


class Process:
    """A server as somebody starts it."""

    def __init__(self, home, url, *words):
        command = [sys.executable, "-P", "-m", "yester", "--home", str(home), "serve"]
        command += ["--database", url, "--port", "0", *words] if url else words
        env = {**os.environ, "YESTER_EMBEDDER": "none"}
        self.popen = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
        self.said = self.popen.stderr.readline()
        match = re.match(r"serving https?://\S+:(\d+), pid \d+\n", self.said)
        self.port = int(match[1]) if match else 0
        if not match:
            self.popen.stderr.close()

    def ask(self, token, path="/v1/me", body=None, tls=None):
        kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
        client = kind("127.0.0.1", self.port, timeout=30, **({"context": tls} if tls else {}))
        with closing(client):
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            sent = None if body is None else json.dumps(body).encode()
            client.request("POST" if body else "GET", path, sent, headers)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())

    def figures(self, token):
        """Does it give them?"""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with closing(client):
            client.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
            return client.getresponse().status == 200

    def save(self, token):
        return self.ask(token, "/api/memory/save", ORDERS)

    def end(self, sign=signal.SIGTERM):
        if self.popen.poll() is None:
            self.popen.send_signal(sign)
        code = self.popen.wait(60)
        self.popen.stderr.close()
        return code


@contextmanager
def process(team, *words, url=""):
    served = Process(team.home, url or url_of(team.name, SERVER), *words)
    try:
        assert served.port, served.said
        yield served
    finally:
        served.end(signal.SIGKILL)


@contextmanager
def writers_wait(team):
    """Whoever writes waits, until this ends."""
    with psycopg.connect(url_of(team.name, OWNER), autocommit=True) as connection:
        ((tenant,),) = connection.execute("SELECT id FROM yester.tenant WHERE name = 'acme'")
        connection.execute("SELECT pg_advisory_lock(7001, %s)", [tenant])
        yield connection


def waiting(connection):
    """The backend that waits."""
    found = connection.execute(
        "SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE NOT l.granted AND l.locktype = 'advisory' AND d.datname = current_database()"
    ).fetchone()
    return found and found[0]


@contextmanager
def saving(served, token):
    """A request that is being answered; its answer is added to the list."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(served.save(token)))
    thread.start()
    yield answers
    thread.join(60)


def test_processes_beside_each_other_are_one_server(team):
    token, other = team.token("sam", role="owner"), team.token("kim", "other")
    with process(team, "--rate", "100") as first, process(team, "--rate", "100") as second:
        status, saved = first.save(token)
        assert status == 200
        assert second.ask(token, f"/api/memories/{saved['id']}")[0] == 200
        assert second.save(token)[1]["new"] is False
        assert second.ask(other, "/api/search?query=orders")[1]["count"] == 0
        told = [served.ask(token)[0] for served in (first, second) * 10]
        assert told.count(429) >= 1  # 10 at once, of which some are used up
        with team.directory() as directory:
            directory.revoke_token(1)
        assert [served.ask(token)[0] for served in (first, second)].count(200) == 0
        assert (first.end(), second.end()) == (0, 0)


def test_what_is_being_answered_is_finished_when_the_server_is_told_to_end(team):
    token = team.token("sam")
    with process(team) as served, writers_wait(team) as lock, saving(served, token) as answers:
        until(lambda: waiting(lock))
        served.popen.send_signal(signal.SIGTERM)
        until(lambda: refuses(served.port))
        assert served.popen.poll() is None
        lock.execute("SELECT pg_advisory_unlock_all()")
        until(lambda: answers)
        assert answers[0][0] == 200
        assert served.popen.wait(30) == 0


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return True
    return False


def test_a_server_that_is_killed_leaves_nothing_half_done(team):
    token = team.token("sam", role="owner")
    with process(team) as first, process(team) as second, writers_wait(team) as lock:
        caught = []

        def save():
            try:
                first.save(token)
            except OSError as error:
                caught.append(error)

        thread = threading.Thread(target=save)
        thread.start()
        pid = until(lambda: waiting(lock))
        first.end(signal.SIGKILL)
        thread.join(30)
        assert caught
        lock.execute("SELECT pg_advisory_unlock_all()")
        until(lambda: not is_running(lock, pid))
        assert second.ask(token, "/api/search?query=orders")[1]["count"] == 0
        assert second.save(token)[0] == 200
        acts = [one["action"] for one in second.ask(token, "/v1/audit")[1]["acts"]]
    assert acts.count("POST /api/memory/save") == 2  # what it was asked is known all the same


def is_running(connection, pid):
    found = connection.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
    return found.fetchone() is not None


def test_a_connection_that_is_cut_costs_one_answer_at_most(team):
    token = team.token("sam")
    with (
        process(team) as served,
        psycopg.connect(url_of(team.name, "postgres"), autocommit=True) as admin,
    ):
        with writers_wait(team) as lock, saving(served, token) as answers:
            pid = until(lambda: waiting(lock))
            admin.execute("SELECT pg_terminate_backend(%s)", [pid])
            until(lambda: answers)
        status, problem = answers[0]
        assert status == 503
        assert "postgresql" not in json.dumps(problem)
        assert served.save(token)[0] == 200
        ours = "FROM pg_stat_activity WHERE usename = %s AND datname = current_database()"
        admin.execute(f"SELECT pg_terminate_backend(pid) {ours}", [SERVER])
        until(lambda: admin.execute(f"SELECT count(*) {ours}", [SERVER]).fetchone() == (0,))
        assert served.ask(token)[0] == 200  # those that were idle are not used any more


def test_who_leaves_in_the_middle_holds_nobody_up(team):
    token = team.token("sam")
    with process(team) as served, writers_wait(team) as lock:
        for _ in range(20):  # more than there are threads
            with socket.create_connection(("127.0.0.1", served.port)) as client:
                head = f"Host: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n"
                head += "Content-Type: application/json\r\n\r\n{"
                client.sendall(f"POST /api/memory/save HTTP/1.1\r\n{head}".encode())
        lock.execute("SELECT pg_advisory_unlock_all()")
        assert served.ask(token)[0] == 200


def test_a_database_that_stops_and_comes_back_is_noticed(tmp_path, monkeypatch):
    folder = postgres.own_server(f"yester-stopped-{os.getpid()}")
    monkeypatch.setattr(
        postgres, "server", lambda: f"postgresql:///postgres?host={folder}&user=postgres"
    )
    try:
        team = Team("yester-stopped", tmp_path / "home")
        token = team.token("sam")
        with process(team) as served:
            assert (served.ask("", "/ready")[0], served.save(token)[0]) == (200, 200)
            postgres.control_server(folder, "stop", "-m", "fast")
            assert served.ask("", "/ready")[0] == 503
            assert served.ask(token)[0] == 503
            assert served.ask("", "/health")[0] == 200
            postgres.control_server(folder, "start", "-l", str(folder / "server.log"))
            assert served.ask("", "/ready")[0] == 200
            assert served.ask(token, "/api/search?query=orders")[1]["count"] == 1
            assert served.save(token)[0] == 200
    finally:
        postgres.control_server(folder, "stop", "-m", "immediate")
        shutil.rmtree(folder)


@pytest.mark.requirement("OPS-03")
def test_elsewhere_than_on_loopback_it_speaks_tls_or_stands_behind_a_proxy(team, tmp_path):
    token = team.token("sam")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    url = url_of(team.name, SERVER)
    for words in (
        ["--listen", "0.0.0.0"], ["--listen", "::"], ["--listen", "example.org"],
        ["--cert", str(cert)], ["--cert", str(key), "--key", str(cert)],
    ):  # fmt: skip
        refused = Process(team.home, url, *words)
        assert (refused.popen.wait(30), refused.port) == (2, 0), refused.said
    with process(team, "--listen", "0.0.0.0", "--behind-proxy") as served:
        assert served.ask(token)[0] == 200
    tls = ["--listen", "0.0.0.0", "--cert", str(cert), "--key", str(key)]
    with process(team, *tls) as served:
        assert "https://0.0.0.0:" in served.said
        assert served.ask(token, tls=ssl.create_default_context(cafile=str(cert)))[0] == 200
        with pytest.raises(OSError, match="certificate verify failed"):
            served.ask(token, tls=ssl.create_default_context())
        with pytest.raises((OSError, http.client.HTTPException)):
            served.ask(token)
        assert served.end() == 0


def test_a_server_that_could_see_everything_does_not_start(team):
    team.token("sam")
    refused = Process(team.home, url_of(team.name, OWNER))
    assert refused.popen.wait(30) == 3
    assert "owns the tables" in refused.said


def test_the_owner_lets_people_in_by_commands(team, run, tmp_path):
    file = tmp_path / "address"
    file.write_text(url_of(team.name, OWNER, "acme") + "\n")

    def do(*words, **more):
        return run("team", *words, "--database", str(file), **more)

    begun = do("init", "sam")
    assert begun.code == 0, begun.err
    owner = begun.out.split()[-1]
    assert begun.out == f"tenant acme is ready; sam is its owner\n{owner}\n"
    assert do("add", "kim", "--role", "reader").out == "kim is reader\n"
    token = do("token", "kim", "--name", "laptop", "--days", "0").out.strip()
    assert re.fullmatch(r"yst_[\w-]{43}", token)
    assert do("token", "kim", "--scope", "write").code == 2
    assert do("token", "eve").code == 1
    with team.serving() as server:
        made = {"text": "The diary is mine.", "project": "diary", "create": True}
        assert server.send("/api/memory/save", made, token=owner).status == 200
        assert server.by(token).get("/api/search", query="diary")["count"] == 1
        assert do("members", "diary", "sam").out == "diary is seen by sam\n"
        assert server.by(token).get("/api/search", query="diary")["count"] == 0
        assert do("members", "diary", "--everybody").out == "diary is seen by everybody\n"
        narrow = do("token", "sam", "--project", "git:example.org/acme/shop").out.strip()
        assert server.by(narrow).get("/v1/me")["projects"] == ["shop"]
        assert do("revoke", "2").out == "token 2 of kim is revoked\n"
        assert server.status("/v1/me", token) == 401
    assert "2 kim (laptop): read; revoked; used " in do("tokens").out
    assert do("remove", "kim").out == "kim is out; 0 tokens ended\n"
    assert "out     0 tokens" in do("users").out
    told = do("audit").out
    assert "(database) token revoked 2 of kim done\n" in told
    assert "sam [1] POST /api/memory/save /api/memory/save asked\n" in told
    again = do("init", "sam")
    assert again.out.split()[-1] not in (owner, token)
    everything = json.dumps([do(one, "--json").out for one in ("tokens", "users", "audit")])
    assert not any(secret[4:] in everything for secret in (owner, token, narrow))
    assert do("add", "eve", env={"CLAUDECODE": "1"}).code == 2
    assert run("team", "users").code == 2
