"""`yester roam` as a user gives it, and what else shows of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import yester
from tests.capturing import until
from yester.config import load_config
from yester.faces.cli.app import render_json
from yester.memory import Memory
from yester.operations.roam import show_roam
from yester.worker.jobs import Exchanging
from yester.worker.process import Log

pytestmark = pytest.mark.requirement("TEAM-05")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def said(home: Path) -> Path:
    """A home with something of two projects, one of them private."""
    with yester.open(home) as memory:
        for project, text in (("shop", "Orders keep UTC"), ("diary", "The otter is mine alone")):
            memory.add([{"ref": project, "kind": "message", "project": project, "text": text}])
    (home / "config.toml").write_text('[projects."name:diary"]\nprivate = true\n')
    return home


def other_home(run, home: Path, log: Path, tmp_path: Path):
    """Another machine that has joined; the command there."""
    there = tmp_path / "other"
    code = tmp_path / "code"
    code.write_text((home / "roam.key").read_text())

    def run_there(*words: str):
        return run("--home", str(there), *words)

    joined = run_there("roam", "--join", str(log), "--code-file", str(code))
    assert joined.code == 0, joined.err
    return there, run_there


def test_private_projects_stay_and_the_preview_says_so(run, said, log, tmp_path):
    shown = run("roam", "--dry-run")
    assert "shop: 1" in shown.out
    assert "Stays here, of private projects: 1 item" in shown.out
    assert not log.exists()
    assert run("roam", "--to", str(log)).code == 0
    _, there = other_home(run, said, log, tmp_path)
    assert "UTC" in there("recall", "UTC").out
    assert "otter" not in there("recall", "otter").out
    state = run("roam", "--json").json["state"]
    assert (state["waiting"], state["private"]) == (1, 1)
    leaves = run("privacy", "--json").json["leaves"]
    assert leaves == [
        {
            "what": "every item, encrypted, but those of private projects",
            "where": str(log),
            "setting": "yester roam",
        }
    ]


def test_what_came_from_another_machine_says_so_wherever_it_is_shown(run, said, log, tmp_path):
    run("roam", "--to", str(log))
    there, run_there = other_home(run, said, log, tmp_path)
    name = run_there("roam", "--json").json["state"]["machines"][1]["name"]
    found = run_there("recall", "UTC").out
    assert f"from {name}" in found
    (id_,) = [hit["id"] for hit in run_there("recall", "UTC", "--json").json["hits"]]
    assert f"from        {name}" in run_there("show", str(id_), "--format", "full").out
    with yester.open(there) as memory:
        from yester.operations.items import Rows

        rows = Rows(memory.store, full=True)
        (row,) = rows.item_rows(memory.store.get([id_]))
        assert row.machine == name
    assert "from" not in run("recall", "UTC").out.splitlines()[0]


def test_status_doctor_and_the_api_show_machines_and_what_waits(run, said, log, tmp_path):
    assert run("status", "--json").json["roam"] is None
    run("roam", "--to", str(log))
    other_home(run, said, log, tmp_path)
    run("roam")
    with yester.open(said) as memory:
        memory.add([{"ref": "late", "kind": "message", "project": "shop", "text": "It waits"}])
    state = run("status", "--json").json["roam"]
    assert [one["own"] is True for one in state["machines"]] == [True, False]
    assert all(one["seen"] > 0 and one["segments"] for one in state["machines"])
    assert (state["waiting"], state["private"]) == (2, 1)
    assert "1 item waiting" in run("status").out
    findings = {one["check"]: one for one in run("doctor", "--json").json["findings"]}
    assert findings["roam"]["state"] == "ok"
    assert "other machines: 1, items that wait: 1" in findings["roam"]["text"]
    with Memory(said, os.environ) as memory:
        assert json.loads(render_json(show_roam(memory))) == state
    for path in log.glob("*/*/*"):
        path.write_bytes(path.read_bytes()[:-1])
    with yester.open(tmp_path / "other") as memory:
        memory.add([{"ref": "new", "kind": "message", "project": "shop", "text": "More of it"}])
    for path in log.glob("*/*/*"):
        path.unlink()
    assert run("roam").code == 1
    findings = [one for one in run("doctor", "--json").json["findings"] if one["check"] == "roam"]
    assert {one["state"] for one in findings} == {"problem"}


def test_what_would_be_sent_is_seen_before_anything_is(run, said, log):
    seen = run("roam", "--dry-run", "--to", str(log), "--json")
    assert (seen.code, seen.json["items"]) == (0, 1)  # one more is of a private project
    assert not log.exists()
    assert run("status", "--json").json["roam"] is None


def test_an_agent_can_look_and_send_nothing(run, said, log):
    agent = {"CLAUDECODE": "1"}
    for words in (("--to", str(log)), ("--join", str(log)), ("--stop",), ("--new-key",)):
        refused = run("roam", *words, env=agent)
        assert refused.code != 0, words
    assert not log.exists()
    run("roam", "--to", str(log))
    before = sorted(log.rglob("*"))
    with yester.open(said) as memory:
        memory.add([{"ref": "late", "kind": "message", "project": "shop", "text": "It waits"}])
    looked = run("roam", env=agent)
    assert "waiting: 1 item" in looked.out
    assert sorted(log.rglob("*")) == before


def test_to_stop_leaves_everything_and_says_what_remains_elsewhere(run, said, log):
    run("roam", "--to", str(log))
    stopped = run("roam", "--stop")
    assert f"{log} keeps what was written there, encrypted (segments: 1, items: 1)" in stopped.out
    assert list(log.glob("*/*/*"))
    assert "UTC" in run("recall", "UTC").out
    assert "does not roam" in run("roam", "--stop").err
    assert "Begin with" in run("roam").err


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("ftp://host/x", "ftp://… is none of"),
        ("ssh://me:secret@host/x", "a password does not belong"),
        ("ssh://-oProxyCommand=x/y", "is no name of a machine"),
        ("ssh://%2DoProxyCommand=x@host/y", "is no name of a machine or of its user"),
        ("ssh://host%20-oProxyCommand=x/y", "is no name of a machine"),
        ("git+ssh://%2Doa@host/y", "is no name of a machine or of its user"),
        ("ssh://host/%0a!touch%20x", "is no path of a log"),
        ("ssh://host:port/x", "ssh://… is no address (Port"),
        ("git+file://host/x", "git+file://… is none of"),
        ("git+file:///nowhere/log.git", "does not appear to be a git repository"),
    ],
)
def test_a_place_that_cannot_be_one_is_said_to_be(run, said, place, told):
    refused = run("roam", "--to", place)
    assert told in refused.err
    assert "secret" not in refused.err
    assert not (said / "roam.json").exists()


def test_without_the_extra_one_line_says_how_to_get_it(said, log, tmp_path):
    code = (
        "import sys\nsys.modules['nacl'] = None\n"
        f"sys.argv = ['yester', '--home', {str(said)!r}, 'roam', '--to', {str(log)!r}]\n"
        "from yester.__main__ import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stderr.strip() == (
        "yester: roaming needs PyNaCl; install it: pip install 'yester[roam]'"
    )
    assert not log.exists()


def test_the_worker_brings_machines_into_step_in_a_process_of_its_own(run, said, log, tmp_path):
    run("roam", "--to", str(log))
    there, run_there = other_home(run, said, log, tmp_path)
    with yester.open(said) as memory:
        memory.add([{"ref": "late", "kind": "message", "project": "shop", "text": "It waits"}])
    for home in (said, there):
        clock = iter((0.0, 1.0, 100.0, *(200.0 + at for at in range(100_000))))
        job = Exchanging(Log(home / "logs"), "roam", lambda clock=clock: next(clock))
        config = load_config(home, {})
        assert not job.step(config)  # not at once
        assert not job.step(config)
        assert job.process is not None
        pid = job.process.pid
        until(lambda job=job, config=config: job.step(config) or job.process is None)
        assert not Path(f"/proc/{pid}").exists()
    assert "waits" in run_there("recall", "waits").out
    assert time.time() * 1000 - show_state(there)["last"] < 60_000


def show_state(home: Path) -> dict:
    return json.loads((home / "roam.json").read_text())
