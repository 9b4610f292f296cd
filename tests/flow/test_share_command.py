"""`yester share` as its users give it, over a server in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest

import yester
from tests.capturing import until
from tests.flow.test_team_processes import Process, process
from tests.serving import serving
from tests.sharing import Sender
from tests.teams import OWNER, SERVER, Team, url_of
from yester.config import load_config
from yester.worker.jobs import Exchanging
from yester.worker.process import Log

pytestmark = pytest.mark.requirement("TEAM-02")

KEY = "name:shop"


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    return Team("yester-share-command", tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def served(team):
    team.token("somebody")
    with process(team) as running:
        yield running


@pytest.fixture
def url(served):
    return f"http://127.0.0.1:{served.port}"


@pytest.fixture
def users(team, run, request, tmp_path):
    """Makes a user's home with a project, and the command there."""

    def make(user, text="", **more):
        home, file = tmp_path / user, tmp_path / f"{user}.token"
        file.write_text(team.token(user, request.node.name, role="owner", **more) + "\n")
        with yester.open(home) as memory:
            memory.add([{"ref": user, "kind": "message", "project": "shop", "text": text or user}])

        def run_there(*words, **given):
            return run("--home", str(home), *words, **given)

        run_there.home, run_there.file = home, str(file)  # type: ignore[attr-defined]
        return run_there

    return make


def shared(user, url):
    done = user("share", "shop", "--to", url, "--token-file", user.file)
    assert done.code == 0, done.err
    return done


def test_two_users_share_a_project_and_stop(users, url):
    sam, kim = users("sam", "Orders keep UTC"), users("kim", "The badger digs")
    assert "Nothing is shared" in sam("share").out
    seen = sam("share", "shop", "--to", url, "--dry-run")
    assert f"Would go of shop to {url}: 1 item" in seen.out
    assert "message: Orders keep UTC" in seen.out
    assert sam("share", "shop", "--to", url, "--dry-run", "--json").json["lines"][0]["item"]
    assert not (sam.home / "share.json").exists()
    assert "shop: sent 1 item" in shared(sam, url).out
    assert "shop: read 1 stored" in shared(kim, url).out
    assert "sent" not in kim("share", "--now").out
    assert "from sam" in kim("recall", "UTC").out
    assert "read 1 stored" in sam("share", "--now").out
    listed = sam("share", "--json").json["projects"][0]
    assert (listed["state"], listed["others"], listed["waiting"]) == ("on", {"kim": 1}, 0)
    for name in ("share.json", "share.tokens"):
        assert stat.S_IMODE((sam.home / name).stat().st_mode) == 0o600
    stopped = kim("share", "shop", "--stop")
    assert "1 item of sam gone from here" in stopped.out
    assert "lines withdrawn there: 1" in stopped.out
    assert not (kim.home / "share.tokens").exists()
    assert "is not shared" in kim("share", "shop", "--stop").err
    sam("share", "--now")
    assert sam("recall", "badger", "--json").json["hits"] == []


def test_the_token_is_asked_for_where_nobody_else_reads_it(users, url, team, tmp_path):
    sam = users("sam")
    nothing = sam("share", "shop", "--to", url)  # no terminal, and nothing is piped
    assert (nothing.code, "a token is needed" in nothing.err) == (2, True)
    token = Path(sam.file).read_text().strip()
    env = {**os.environ, "YESTER_TOKEN": token, "HOME": str(tmp_path)}
    words = [sys.executable, "-m", "yester", "--home", str(sam.home), "share", "shop", "--to", url]
    done = subprocess.run(
        words, input=f"{token}\n", text=True, capture_output=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    assert token not in done.stdout + done.stderr + sam("share", "--json").out
    bad = tmp_path / "bad"
    bad.write_text("yst_" + "x" * 43)
    other = users("kim")
    refused = other("share", "shop", "--to", url, "--token-file", str(bad))
    assert "does not take the token (the token is wrong)" in refused.err
    assert not (other.home / "share.json").exists()


def test_what_must_not_be_shared_is_refused_before_anybody_is_asked(users, url):
    sam = users("sam")
    for to, why in (
        ("http://example.org", "plain http goes to this machine only"),
        ("https://me:secret@example.org", "an address with a name or password in it"),
        ("ftp://example.org", "must be like https://host"),
    ):
        refused = sam("share", "shop", "--to", to)
        assert (refused.code, why in refused.err) == (2, True), refused.err
        assert "secret" not in refused.err
    (sam.home / "config.toml").write_text('[projects]\n"name:shop" = { private = true }\n')
    for words in (("--to", url), ("--dry-run",)):
        refused = sam("share", "shop", *words)
        assert "shop is private" in refused.err
    for words in (("--to", url), ("--stop",)):
        agent = sam("share", "shop", *words, env={"CLAUDECODE": "1"})
        assert "is the user's word" in agent.err
    assert not (sam.home / "share.json").exists()


def test_a_project_that_becomes_private_is_withdrawn_and_says_so(users, url, team, request):
    sam = users("sam", "Orders keep UTC")
    shared(sam, url)
    told = sam("projects", "--private", "shop")
    assert "nothing more is sent, and the next run withdraws what was" in told.err
    assert "the project is private now; lines withdrawn there: 1" in sam("share", "--now").out
    finding = next(f for f in sam("doctor", "--json").json["findings"] if f["check"] == "share")
    assert "shared no more: the project is private now" in finding["text"]
    assert "UTC" in sam("recall", "UTC", "--project", "shop").out


def test_status_doctor_privacy_and_the_api_show_what_is_shared(users, url):
    sam = users("sam", "Orders keep UTC")
    assert sam("status", "--json").json["share"] == []
    shared(sam, url)
    with yester.open(sam.home) as memory:
        memory.add([{"ref": "late", "kind": "message", "project": "shop", "text": "It waits"}])
    (state,) = sam("status", "--json").json["share"]
    assert (state["project"], state["key"], state["waiting"]) == ("shop", KEY, 1)
    assert "shop; 1 line waiting" in sam("status").out
    finding = next(f for f in sam("doctor", "--json").json["findings"] if f["check"] == "share")
    assert (finding["state"], "lines that wait: 1" in finding["text"]) == ("ok", True)
    (leaving,) = sam("privacy", "--json").json["leaves"]
    assert leaving["setting"] == "yester share"
    with serving(sam.home) as here:
        (told,) = here.get("/api/share")["projects"]
        assert told["last"] == round(state["last"] * 1000)
        assert all(told[name] == state[name] for name in told if name != "last")
        assert here.failures == []
    (item,) = sam("recall", "UTC", "--json").json["hits"]
    gone = sam("forget", str(item["id"]), "--yes", "--json").json
    assert [one["command"] for one in gone["elsewhere"]] == ["yester share --now"]


def test_the_worker_shares_in_a_process_of_its_own(users, url):
    sam, kim = users("sam", "Orders keep UTC"), users("kim")
    shared(sam, url)
    shared(kim, url)
    with yester.open(sam.home) as memory:
        memory.add([{"ref": "late", "kind": "message", "project": "shop", "text": "It waits"}])
    for user in (sam, kim):
        clock = iter((0.0, 100.0, *(200.0 + at for at in range(100_000))))
        job = Exchanging(Log(user.home / "logs"), "share", lambda clock=clock: next(clock))
        config = load_config(user.home, {})
        assert not job.step(config)
        assert job.process is not None
        until(lambda job=job, config=config: job.step(config) or job.process is None)
    assert "waits" in kim("recall", "waits").out


def test_a_server_that_is_away_costs_nothing_and_is_tried_again(users, team, request):
    sam, kim = users("sam", "Orders keep UTC"), users("kim")
    with process(team) as first:
        url = f"http://127.0.0.1:{first.port}"
        shared(sam, url)
        shared(kim, url)
        port = first.port
    with yester.open(sam.home) as memory:
        memory.add([{"ref": "late", "kind": "message", "project": "shop", "text": "It waits"}])
    away = sam("share", "--now")
    assert (away.code, "cannot be reached" in away.out) == (1, True)
    assert "; 1 line waiting" in away.out
    refused = kim("share", "shop", "--stop")
    assert (refused.code, "it is tried again" in refused.err) == (3, True)
    assert "to be withdrawn" in kim("share").out
    with process(team, "--port", str(port)):
        assert "sent 1 item" in sam("share", "--now").out
        assert "you stopped it; lines withdrawn there: 1" in kim("share", "--now").out
    lee = users("lee")
    with process(team) as third:
        shared(lee, f"http://127.0.0.1:{third.port}")
    ended = lee("share", "shop", "--stop", "--anyway")
    assert (ended.code, "what was sent of it remains on http://127.0.0.1:" in ended.out) == (
        0,
        True,
    )


def test_a_server_that_is_killed_while_it_takes_lines_has_all_or_none(users, team, request):
    sam = users("sam")
    with yester.open(sam.home) as memory:
        memory.add([
            {"ref": f"r{n}", "kind": "message", "project": "shop", "text": f"otter number {n}"}
            for n in range(700)
        ])  # fmt: skip
    first = Process(team.home, url_of(team.name, SERVER))
    port, done = first.port, []
    with psycopg.connect(url_of(team.name, OWNER), autocommit=True) as lock:
        ((tenant,),) = lock.execute(
            "SELECT id FROM yester.tenant WHERE name = %s", [request.node.name]
        )
        shared_by = threading.Thread(target=lambda: done.append(
            sam("share", "shop", "--to", f"http://127.0.0.1:{port}", "--token-file", sam.file)
        ))  # fmt: skip
        lock.execute("SELECT pg_advisory_lock(7001, %s)", [tenant])
        shared_by.start()
        waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
        until(lambda: lock.execute(waits).fetchone())
        first.end(signal.SIGKILL)
    shared_by.join(60)
    assert done[0].code != 0
    with process(team, "--port", str(port)) as second:
        assert shared(sam, f"http://127.0.0.1:{second.port}").code == 0
        with team.serving() as reading:
            reader = Sender(reading, Path(sam.file).read_text().strip())
            lines = [*reader.pull("", project=KEY), *reader.pull(project=KEY)]
    assert sorted(one["item"]["item"]["ref"] for one in lines) == sorted(
        ["sam", *(f"r{n}" for n in range(700))]
    )
    assert "nothing waits" in sam("share").out


@pytest.mark.requirement("OPS-03")
def test_a_server_is_believed_by_its_certificate_alone(users, team, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    sam = users("sam")
    log = tmp_path / "keys.log"
    variables = {"SSL_CERT_FILE": str(cert), "SSLKEYLOGFILE": str(log)}
    with process(team, "--cert", str(cert), "--key", str(key)) as served:
        to = ("share", "shop", "--to", f"https://127.0.0.1:{served.port}")
        token = ("--token-file", sam.file)
        refused = sam(*to, *token, env=variables)
        assert "certificate verify failed" in refused.err
        done = sam(*to, *token, "--ca", str(cert), env=variables)
        assert done.code == 0, done.err
        assert sam("share", "--now", env=variables).code == 0
        wrong = sam("share", "shop", "--to", f"https://localhost:{served.port}", *token,
                    "--ca", str(cert))  # fmt: skip
        assert wrong.code != 0
    assert not log.exists()


def test_a_home_without_room_keeps_what_it_has_and_says_so(users, url, disk, run):
    sam, kim = users("sam"), users("kim")
    with yester.open(sam.home) as memory:
        memory.add([
            {"ref": f"r{n}", "kind": "message", "project": "shop",
             "text": " ".join(f"otter{n}word{w}" for w in range(300))}
            for n in range(600)
        ])  # fmt: skip
    shared(sam, url)

    def there(*words):
        return run("--home", str(disk), *words)

    full = there("share", KEY, "--to", url, "--token-file", kim.file)
    assert full.code != 0
    assert re.search(r"full|room|space", full.out + full.err), full.out + full.err
    subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
    again = there("share", KEY, "--to", url, "--token-file", kim.file)
    assert again.code == 0, again.err
    state = there("share", "--json").json["projects"][0]
    assert state["others"] == {"sam": 601}
    assert time.time() - state["last"] < 60
