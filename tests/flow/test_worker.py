"""The worker as a process: one at a time, quick, quiet, obedient, and nothing is lost when it ends.

Every worker here is one that a test has started; each is ended at its test's end.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import apsw
import pytest

import yester
from tests.capturing import ROOT, Told, hook, leave, made, until, waiting
from tests.readings import every_item
from tests.table import each
from yester.capture.question import ask_worker
from yester.capture.spool import Spool
from yester.ingest.transcripts import add_items
from yester.model import Filters, Injection, Item, Paging
from yester.project import identify_project
from yester.store import open_store
from yester.store.figures import content_counts, daily_figures
from yester.worker.process import (
    LARGEST_LOG,
    LOGS_KEPT,
    Log,
    clean_environment,
    seat_holder,
    version_numbers,
    write_launch,
)
from yester.worker.worker import TICK, Worker

pytestmark = pytest.mark.requirement("OPS-02")

LONG = "x" * 60


class Running:
    """`yester worker run`, started by this test."""

    def __init__(self, home, zygote, *words, python=""):
        """By this interpreter; without one forked by the zygote, which is much cheaper."""
        self.home = home
        command = ["--home", str(home), "worker", "run", *words]
        env = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
        printed = home.parent.with_name(f"{home.parent.name}-worker-{uuid4()}")
        self._out, self._err = Path(f"{printed}.out"), Path(f"{printed}.err")
        if not python:
            self.process = zygote.start(command, home.parent, env, self._out, self._err)
            return
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [python, "-P", "-m", "yester", *command],
                stdout=out, stderr=err, cwd=home.parent, env=env,
            )  # fmt: skip

    def ready(self):
        until(lambda: (said := self.health()) and said["pid"] == self.process.pid)
        return self

    def health(self):
        return health(self.home)

    def ended(self):
        return self.process.wait(30), self._out.read_text(), self._err.read_text()

    def close(self):
        self.process.kill()
        self.process.wait(30)


@pytest.fixture
def worker(home, own_home, zygote_of_commands):
    """Starts workers of this home; none of them is left at the end."""
    running = []

    def start(*words, **more):
        running.append(Running(home, zygote_of_commands, *words, **more))
        return running[-1]

    yield start
    for one in running:
        one.close()
    if ask_worker(home / "run", "POST /stop", 5.0) is not None:
        until(lambda: not seat_holder(home))


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def env(home, own_home):
    """A client's; the home is the account's own, wherever it lies."""
    (own_home / ".yester").symlink_to(made(home))
    return {"HOME": str(own_home), "CLAUDECODE": "1"}


@pytest.fixture
def store(home):
    """What the store holds, seen by somebody else than the worker."""
    opened = []

    def open_():
        if not opened:
            opened.append(open_store(home, now=1))
        return opened[0]

    yield open_
    for one in opened:
        one.close()


def health(home):
    said = ask_worker(home / "run", "GET /health", 2.0)
    return None if said is None else json.loads(said)


def opened(pid):
    """Where its input and output go."""
    return {str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in (0, 1, 2)}


def log(home):
    return (home / "logs" / "worker.log").read_text()


def earlier(cwd):
    """A session of another day in this folder."""
    told = Told("eeeeeeee-0000-4000-8000-00000000000e", str(cwd), clock=1_769_000_000_000)
    return [
        told.prompt("Which queue library shall we take for the invoices?"),
        told.stop("arq was chosen over celery, since everything else is asyncio already."),
    ]


# --- one worker ----------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-03")
def test_it_is_started_looked_at_and_stopped(run, worker, home):
    nothing = run("worker", "status")
    assert (nothing.code, nothing.out.split(";")[0]) == (1, "not running")
    assert run("worker", "stop").out == "no worker is running\n"
    hostile = {
        "PYTHONPATH": "/evil", "YESTER_SKIP_TOOLS": "Bash", "YESTER_OFF": "1", "LD_DEBUG": "none",
        "PATH": f"/evil:{os.environ['PATH']}", "GIT_DIR": "/evil", "YESTER_THINKING": "false",
    }  # fmt: skip
    started = run("worker", "start", env=hostile)
    pid = health(home)["pid"]
    assert started.out == f"the worker is running (pid {pid})\n"
    again = run("worker", "start")
    assert (again.code, again.out) == (0, f"the worker is running already (pid {pid})\n")
    found = run("worker", "status", "--json").json
    assert (found["running"], found["pid"], found["events"]) == (True, pid, 0)
    assert found["version"] == yester.__version__
    assert f"pid {pid}, yester {yester.__version__}" in run("worker", "status").out
    assert run("status", "--json").json["worker"]["pid"] == pid
    if Path("/proc/self/environ").exists():
        given = Path(f"/proc/{pid}/environ").read_bytes().rstrip(b"\0").split(b"\0")
        names = {entry.split(b"=")[0].decode() for entry in given} - {"YESTER_EMBEDDER"}
        assert {"HOME", "PATH", "LANG"} <= names <= {"HOME", "PATH", "LANG", "XDG_RUNTIME_DIR"}
        assert b"evil" not in b"".join(given)
        assert Path(f"/proc/{pid}/cwd").resolve() == (home / "run").resolve()
        assert os.getsid(pid) == pid
        assert opened(pid) == {"/dev/null"}
    assert run("worker", "stop").out == f"the worker has ended (pid {pid})\n"
    assert health(home) is None
    assert run("worker", "status").code == 1
    assert not (home / "run" / "worker.sock").exists()


@pytest.mark.requirement("OPS-03")
def test_of_the_environment_it_gets_only_what_can_harm_nobody(tmp_path):
    evil = ("HOME", "PATH", "LANG", "PYTHONPATH", "LD_PRELOAD", "XDG_RUNTIME_DIR", "HTTPS_PROXY",
            "YESTER_HOME", "YESTER_EMBEDDER", "YESTER_EMBED_URL", "SSL_CERT_FILE")  # fmt: skip
    given = clean_environment(dict.fromkeys(evil, "/evil"))
    assert set(given) <= {"HOME", "PATH", "LANG", "XDG_RUNTIME_DIR"}
    assert "/evil" not in given.values()
    (tmp_path / "closed").mkdir(mode=0o700)
    given = clean_environment({"XDG_RUNTIME_DIR": str(tmp_path / "closed")})
    assert given["XDG_RUNTIME_DIR"] == str(tmp_path / "closed")


@pytest.mark.requirement("OPS-03")
def test_its_files_are_closed_to_others_whatever_the_umask(run, home, worker, project):
    leave(home, *earlier(project))
    home.chmod(0o700)
    old = os.umask(0)
    try:
        assert run("worker", "drain").code == 0
        worker().ready()
    finally:
        os.umask(old)
    modes = {
        str(path.relative_to(home)): stat.S_IMODE(path.lstat().st_mode)
        for path in (home, *home.rglob("*"))
    }
    folders = {name for name in modes if (home / name).is_dir()}
    assert {"run", "logs", "spool", "spool/new", "spool/tmp", "spool/bad"} <= folders
    assert {modes[name] for name in folders} == {0o700}
    files = {name: mode for name, mode in modes.items() if name not in folders}
    assert {"run/worker.sock", "run/wake", "run/launch", "run/sock", "yester.db"} <= set(files)
    assert {name: mode for name, mode in files.items() if mode != 0o600} == {}


def test_of_two_started_at_once_one_works_and_the_other_says_so(worker, home):
    both = [worker(), worker()]
    pid = until(lambda: (health(home) or {}).get("pid"))
    (other,) = (one for one in both if one.process.pid != pid)
    code, out, err = other.ended()
    assert (code, err) == (0, "")
    assert out.startswith("the worker is running already")
    (winner,) = (one for one in both if one.process.pid == pid)
    assert winner.process.poll() is None
    assert health(home)["pid"] == pid


def test_a_pid_in_the_lock_file_is_not_believed(run, worker, home):
    """A worker that was killed leaves its pid behind, and the number may be another's by now."""
    made(home)
    for text in ("", "nonsense", "4194303", "-1", str(os.getpid())):
        (home / "run" / "worker.lock").write_text(text)
        assert seat_holder(home) == 0
    assert run("worker", "stop").out == "no worker is running\n"
    assert worker().ready().health()["events"] == 0


def test_a_killed_worker_leaves_nothing_in_the_way(run, worker, home):
    first = worker().ready()
    first.process.kill()
    first.ended()
    assert (home / "run" / "worker.sock").exists()
    assert run("worker", "status", "--json").json == {"running": False, "pid": None}
    assert worker().ready().health()["pid"] != first.process.pid


def test_looking_at_the_seat_does_not_keep_a_worker_away(worker, home):
    made(home)
    with open(home / "run" / "worker.lock", "w") as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        starting = worker()
        until(lambda: Path(f"/proc/{starting.process.pid}/stat").exists())
    starting.ready()


def test_a_worker_that_does_not_answer_is_told_apart_from_none(run, home):
    made(home)
    with open(home / "run" / "worker.lock", "w") as held:
        held.write(f"{os.getpid()}\n")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run("worker", "status")
    assert done.code == 1
    assert done.out.startswith(f"does not answer (pid {os.getpid()})")


# --- the end -------------------------------------------------------------------------------------


def test_without_work_it_ends_by_itself(worker, home):
    code, _, err = worker("--idle", "0.3").ended()
    assert (code, err) == (0, "")
    assert "ended: idle, 0 events taken" in log(home)
    assert seat_holder(home) == 0


@pytest.mark.requirement("CAP-03")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, "stop"])
def test_before_it_ends_it_takes_in_what_the_spool_holds(worker, run, home, store, how):
    running = worker().ready()
    told = Told()
    leave(home, told.prompt("go"), *(told.ran(f"echo {n}", LONG) for n in range(60)))
    if how == "stop":
        assert run("worker", "stop").code == 0
    else:
        running.process.send_signal(how)
    assert running.ended() == (0, "", "")
    assert waiting(home) == []
    assert content_counts(store()).events == 61
    assert "ended: stopped, 61 events taken" in log(home)


@pytest.mark.requirement("OPS-04")
@pytest.mark.parametrize("how", ["stopped", "waiting for a pipe"])
def test_stop_ends_one_that_hangs_and_says_so(worker, run, home, store, how):
    running = worker().ready()
    if how == "stopped":
        running.process.send_signal(signal.SIGSTOP)
    else:
        os.mkfifo(home / "config.toml")
        ask_worker(home / "run", "POST /drain", 0.1)  # looks at the settings first
        until(lambda: running.health() is None)
    leave(home, Told().prompt("Still there afterwards"))
    began = time.monotonic()
    done = run("worker", "stop")
    assert time.monotonic() - began < 15
    assert running.process.wait(10) == -signal.SIGKILL
    assert (done.code, done.out) == (0, f"the worker has ended (pid {running.process.pid})\n")
    assert done.err == (
        f"the worker (pid {running.process.pid}) did not end when it was asked, so it was killed; "
        "what it had not taken in is still in the spool\n"
    )
    (home / "config.toml").unlink(missing_ok=True)
    assert run("worker", "drain").out == "1 event taken in\n"
    assert [item.body for item in every_item(store())] == ["Still there afterwards"]


@pytest.mark.requirement("OPS-04")
def test_stop_ends_nobody_but_who_has_the_seat(run, home, tmp_path):
    """The pid in the lock's file may be another's: it is written after the lock was taken."""
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with open(made(home) / "run" / "worker.lock", "w") as held:
            held.write(f"{bystander.pid}\n")
            held.flush()
            fcntl.flock(held, fcntl.LOCK_EX)
            done = run("worker", "stop")
        assert done.code == 3
        assert f"process {bystander.pid}, which it names, is another" in done.err
        assert bystander.poll() is None
    finally:
        bystander.communicate(b"\n")
        assert bystander.returncode == 0


def test_one_that_cannot_be_found_any_more_ends(home, tmp_path, monkeypatch):
    """Its folder was removed, or another listens there: nobody will ever ask it to."""
    monkeypatch.chdir(tmp_path)
    made(home)
    now = [0.0]
    found = Worker(home, idle=1e9, clock=lambda: now[0])
    (home / "run" / "worker.sock").unlink()
    now[0] += 2 * TICK
    try:
        assert found.run() == "lost"
    finally:
        found.close()


# --- versions ------------------------------------------------------------------------------------


@each(
    ("one", "other", "newer"),
    [
        ("0.1.0", "0.1.1", True), ("0.1.9", "0.1.10", True), ("0.2", "0.10", True),
        ("1.0", "1.0.1", True), ("0.1.0", "0.1.0", False), ("0.2.0", "0.1.9", False),
        ("1.0.0", "", False), ("1.0.0", "nonsense", False), ("", "0.0.1", True),
    ],
)  # fmt: skip
def test_versions_are_numbers(one, other, newer):
    assert (version_numbers(other) > version_numbers(one)) is newer


def test_it_does_not_leave_for_an_older_or_the_same_version(worker, home):
    running = worker().ready()
    for version in (yester.__version__, "0.0.1", "", "nonsense", "9" * 9_000):
        said = ask_worker(home / "run", f"POST /leave?version={version}", 5.0)
        assert said is None or json.loads(said) == {"leaving": False}
        assert running.health()["pid"] == running.process.pid


def test_it_finishes_and_leaves_for_a_newer_version(worker, home, store):
    running = worker().ready()
    told = Told()
    leave(home, *(told.ran(f"echo {n}", LONG) for n in range(30)))
    said = ask_worker(home / "run", "POST /leave?version=9.9.9", 5.0)
    assert json.loads(said) == {"leaving": True}
    assert running.ended()[0] == 0
    assert (waiting(home), content_counts(store()).events) == ([], 30)


@pytest.fixture
def installed(tmp_path):
    """yester installed in an environment of its own, where it can be upgraded."""
    place = tmp_path / "env"
    library = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    package = place / library / "yester"
    package.mkdir(parents=True)
    (place / "bin").mkdir()
    base = Path(sys._base_executable)
    (place / "bin" / "python").symlink_to(base)
    (place / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    for path in (ROOT / "src" / "yester").iterdir():
        if path.name not in ("__init__.py", "__pycache__"):
            (package / path.name).symlink_to(path)
    others = [path for path in sys.path if path.endswith("site-packages")]
    (place / library / "others.pth").write_text("\n".join(others) + "\n")
    source = Path(yester.__file__).read_text("utf-8")

    def install(version):
        text = source.replace(f'"{yester.__version__}"', f'"{version}"')
        assert text.count(version) == 1
        (package / "__init__.py.new").write_text(text, "utf-8")
        (package / "__init__.py.new").rename(package / "__init__.py")
        return str(place / "bin" / "python")

    return install


def test_an_upgrade_takes_over_at_the_next_session_in_the_same_process(
    installed, worker, home, env, project, store
):
    running = worker(python=installed("8.0.0")).ready()
    leave(home, *earlier(project))
    assert running.health()["version"] == "8.0.0"
    installed("8.0.1")
    told = Told(cwd=str(project))
    for number in range(20):  # a busy machine may keep the hook from being answered in time
        payload = told.payload("SessionStart", source="startup", session_id=f"s-{number}")
        hook("SessionStart", cwd=project, env=env, payload=payload)
        if (running.health() or {}).get("version") != "8.0.0":
            break
    until(lambda: (running.health() or {}).get("version") == "8.0.1")
    assert running.health()["pid"] == running.process.pid
    assert "ended: new version" in log(home)
    hook("Stop", cwd=project, env=env, payload=told.payload("Stop", last_assistant_message="Bye."))
    until(lambda: [i.body for i in every_item(store()) if i.role == "assistant"][1:] == ["Bye."])


def test_a_newer_version_relieves_an_older_worker_and_not_the_other_way_round(
    installed, worker, run, home
):
    old = worker().ready()
    new = worker(python=installed("9.9.9")).ready()
    assert old.ended()[0] == 0
    assert new.health()["version"] == "9.9.9"
    again = run("worker", "start")
    assert again.out == f"the worker is running already (pid {new.process.pid})\n"
    code, out, _ = worker().ended()
    assert (code, out.split(" (")[0]) == (0, "the worker is running already")
    assert new.health()["pid"] == new.process.pid


NEWER = "import apsw, sys; apsw.Connection(sys.argv[1]).execute('PRAGMA user_version = 9999')"


def raise_schema(home):
    """As a newer yester does that was started beside ours."""
    subprocess.run([sys.executable, "-c", NEWER, str(home / "yester.db")], check=True)


@pytest.mark.requirement("STO-01")
def test_a_worker_whose_store_a_newer_yester_has_changed_writes_nothing_and_makes_room(
    worker, run, home, env, project
):
    running = worker().ready()
    told = Told(cwd=str(project))
    leave(home, told.prompt("Which queue library?"))
    ask_worker(home / "run", "POST /drain", 10.0)
    db = apsw.Connection(str(home / "yester.db"))
    (events,) = db.execute("SELECT count(*) FROM event")
    raise_schema(home)
    late = json.loads(told.ran("pytest -q", LONG).payload)
    assert hook("PostToolUse", cwd=project, env=env, payload=late).silent
    assert running.ended()[0] == 3
    assert [json.loads(one.payload) for one in waiting(home)] == [late]  # for the newer one
    assert [*db.execute("SELECT count(*) FROM event")] == [events]
    db.close()
    said = "has schema version 9999, this yester knows up to "
    assert log(home).count(said) == 1
    assert "ended: new version, 1 events taken" in log(home)
    assert said in " ".join(f["text"] for f in run("doctor", "--json").json["findings"])
    for words in (("status",), ("worker", "start"), ("worker", "drain"), ("recall", "queue")):
        done = run(*words)
        assert done.code == 3
        assert said in done.err
        assert "update yester" in done.err
        assert done.err.count("\n") == 1
    assert len(waiting(home)) == 1


# --- taking in -----------------------------------------------------------------------------------


@pytest.mark.requirement("DIS-11", "CAP-03")
def test_what_a_hook_leaves_is_recallable_at_once(worker, run, home, env, project, transcript):
    t = transcript()
    t.cwd = str(project)
    t.user("Why is the invoice empty for refunds?", promptId="turn-1")
    t.assistant("Let me look at the templates.")
    t.assistant("A refund has no lines of its own.")
    running = worker().ready()
    told = Told(cwd=str(project), transcript=str(t.path))
    for event, more in (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "Why is the invoice empty for refunds?"}),
        ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "grep -r refund"},
                         "tool_response": {"stdout": f"a.py {LONG}"}}),
        ("Stop", {"last_assistant_message": "A refund has no lines of its own."}),
    ):  # fmt: skip
        assert hook(event, cwd=project, env=env, payload=told.payload(event, **more)).code == 0
    until(lambda: running.health()["events"] == 4)
    until(lambda: waiting(home) == [])  # the transcript has been read
    hits = run("recall", "--raw", "--json", "--limit", "20").json["hits"]
    assert sorted(hit["text"] for hit in hits) == [
        "A refund has no lines of its own.", "Let me look at the templates.",
        "Why is the invoice empty for refunds?", f"grep -r refund\n\na.py {LONG}",
    ]  # fmt: skip
    assert {hit["project"] for hit in hits} == {"project"}
    if Path(f"/proc/{running.process.pid}/task").exists():
        tasks = Path(f"/proc/{running.process.pid}/task")
        assert {path.joinpath("children").read_text() for path in tasks.iterdir()} == {""}
    said = log(home)
    assert "started: yester" in said
    for word in ("refund", "invoice", "templates", "grep"):
        assert word not in said
    assert running.health()["rss_bytes"] < 100_000_000


@pytest.mark.requirement("CAP-03", "OPS-05")
def test_it_survives_what_should_not_be_in_a_spool(worker, run, home, store, tmp_path):
    told = Told(transcript=str(tmp_path / ("n" * 300)))
    new = made(home) / "spool" / "new"
    (new / "1-a-folder").mkdir()
    (new / "2-nonsense").write_bytes(b"\xff\x00")
    (new / "3-newer").write_bytes(b"yester/2\tStop\n{}")
    (new / "4-no-json").write_bytes(b"yester/1\tStop\n[1]")
    (new / ".hidden").write_bytes(b"")
    leave(home, told.prompt("still here?"), told.stop("Yes."))
    running = worker().ready()
    assert run("worker", "drain").code == 0
    assert running.health()["pid"] == running.process.pid
    assert [item.body for item in every_item(store())] == ["still here?", "Yes."]
    assert sorted(path.name for path in new.iterdir()) == ["1-a-folder", "3-newer"]
    bad = sorted(path.name for path in (home / "spool" / "bad").iterdir())
    assert bad == [".hidden", "2-nonsense", "4-no-json"]
    assert running.process.poll() is None


@pytest.mark.requirement("CAP-03", "CAP-07")
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_repository_cannot_hold_it_up(worker, home, env, project, store, kind):
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for path in (project / ".git" / "config", project / "session.jsonl", project / "package.json"):
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    told = Told(cwd=str(project), transcript=str(project / "session.jsonl"))
    running = worker().ready()
    for event, more in (
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "Who is there?"}),
        ("Stop", {"last_assistant_message": "Nobody but us."}),
    ):
        hook(event, cwd=project, env=env, payload=told.payload(event, **more))
    until(lambda: waiting(home) == [])
    assert [item.body for item in every_item(store())] == ["Who is there?", "Nobody but us."]
    assert {item.project for item in every_item(store())} == {f"dir:{project}"}
    assert running.health()["events"] == 3


# --- what ends it ---------------------------------------------------------------------------------


def pass_time(home):
    """Whoever comes back at once was killed from outside, for all that can be known."""
    long_ago = time.time() - 600
    os.utime(home / "run" / "working", (long_ago, long_ago))


@pytest.mark.requirement("CAP-03", "OPS-05")
def test_an_event_that_has_ended_it_twice_is_set_aside_and_the_others_are_taken(
    worker, run, home, store
):
    told = Told()
    events = [told.prompt("go"), *(told.ran(f"echo {n}", LONG) for n in range(9))]
    leave(home, *events)
    culprit = home / "spool" / "new" / events[4].id
    os.truncate(culprit, 1 << 40)  # more than any memory; nothing of it is on the disk
    for _ in range(2):
        code, _, err = worker().ended()
        assert (code, err.strip().rpartition("\n")[2]) == (1, "MemoryError")
        assert culprit.exists()  # and a service starts it again at once
    running = worker().ready()
    until(lambda: not list(culprit.parent.iterdir()))
    assert {item.body for item in every_item(store())} == {
        "go", *(f"echo {n}\n\n{LONG}" for n in range(9) if n != 3)
    }  # fmt: skip
    (aside,) = (home / "spool" / "bad").iterdir()
    assert (aside.name, aside.stat().st_size) == (culprit.name, 1 << 40)
    assert f"{culprit.name} has ended the worker twice; moved to spool/bad" in log(home)
    os.truncate(aside, 0)  # doctor may look at it
    findings = run("doctor", "--json").json["findings"]
    (said,) = (f for f in findings if "ended the worker" in f["text"] and f["check"] == "spool")
    assert said["text"] == "1 event has ended the worker twice and was set aside"
    assert str(aside.parent) in said["fix"]
    assert "delete" not in said["fix"]
    leave(home, told.ran("echo after", LONG))
    ask_worker(home / "run", "POST /drain", 10.0)
    assert (waiting(home), running.health()["pid"]) == ([], running.process.pid)
    leave(home, events[4])  # as it was, before somebody cut it
    (home / "spool" / "new" / events[4].id).rename(aside)
    findings = run("doctor", "--fix", "--json").json["findings"]
    assert "put back for another try: 1 of 1 events" in [f["text"] for f in findings]
    ask_worker(home / "run", "POST /drain", 10.0)
    assert f"echo 3\n\n{LONG}" in {item.body for item in every_item(store())}
    assert list(aside.parent.iterdir()) == []


@pytest.mark.requirement("OPS-05")
def test_one_that_hangs_ends_by_itself_and_says_where(worker, run, home, store):
    running = worker("--hung", "0.5").ready()
    os.mkfifo(home / "config.toml")
    leave(home, Told().prompt("Still there afterwards"))
    ask_worker(home / "run", "POST /drain", 0.1)  # looks at the settings first
    assert running.process.wait(20) == -signal.SIGALRM
    assert "config.py" in log(home)
    (home / "config.toml").unlink()
    worker().ready()
    until(lambda: waiting(home) == [])
    assert [item.body for item in every_item(store())] == ["Still there afterwards"]


def test_one_that_has_nothing_to_do_or_much_does_not_hang(worker, home, store):
    running = worker("--hung", "0.5").ready()
    told, began = Told(), time.monotonic()
    leave(home, *(told.ran(f"echo {n}", LONG) for n in range(400)))
    ask_worker(home / "run", "POST /drain", 60.0)
    until(lambda: waiting(home) == [] and time.monotonic() - began > 1.5)
    assert running.health()["events"] == content_counts(store()).events == 400


SLOW = '{"a":1}' * 200_000 + "\n"  # records in one line: it is taken apart in one go, for a second


@pytest.mark.requirement("OPS-05", "STO-05")
def test_a_transcript_that_has_ended_it_twice_waits_for_another_reason_to_try(
    worker, run, home, transcript, tmp_path
):
    t = transcript()
    t.path.parent.mkdir(parents=True, exist_ok=True)
    t.path.write_text(SLOW)
    t.assistant("only the transcript has this")
    leave(home, Told(transcript=str(t.path)).stop("Done."))
    for _ in range(2):
        assert worker("--hung", "0.3").process.wait(60) in (-signal.SIGALRM, -signal.SIGPROF)
        pass_time(home)
    running = worker().ready()
    until(lambda: waiting(home) == [])
    assert "reading a transcript failed: it has ended the worker twice" in log(home)
    assert bodies(home) == ["Done."]
    (said,) = (f for f in run("doctor", "--json").json["findings"] if str(t.path) in f["text"])
    assert said["text"] == (
        f"reading {t.path} has ended the worker twice, so the rest of it is not read"
    )
    assert said["fix"].endswith("To have it tried again, run: yester doctor --fix")
    running.close()
    as_it_was = tmp_path / "as it was"
    shutil.copytree(home, as_it_was, ignore=shutil.ignore_patterns("worker.sock", "wake"))
    for what in ("meets another version", "is put back without a worker", "is put back", "grows"):
        shutil.rmtree(home)
        shutil.copytree(as_it_was, home)
        if what == "is put back":  # two have read it all: as long a line is enough for the others
            t.path.write_text(
                t.path.read_text().replace(SLOW, '{"a":1}'.ljust(len(SLOW) - 1) + "\n")
            )
        running = worker().ready() if what in ("is put back", "grows") else None
        if what == "grows":
            t.assistant("and this")
            leave(home, Told(transcript=str(t.path), clock=1_780_000_000_000).stop("Done again."))
        elif what == "meets another version":
            working = home / "run" / "working"
            working.write_text(working.read_text().replace(yester.__version__, "0.0.9", 1))
        else:
            run("doctor", "--fix")
        assert run("worker", "drain").code == 0
        assert "only the transcript has this" in bodies(home), what
        assert (waiting(home), list((home / "spool" / "bad").iterdir())) == ([], []), what
        if running:
            running.close()


def bodies(home):
    with closing(open_store(home, now=1)) as store:
        return [item.body for item in every_item(store)]


def stopped_at_work(running, home, kind):
    """The worker, stopped while it is at such a piece of work."""
    until((home / "run" / "working").exists)

    def caught():
        running.process.send_signal(signal.SIGSTOP)
        if f'"at": [["{kind}"' in (home / "run" / "working").read_text():
            return True
        running.process.send_signal(signal.SIGCONT)
        return False

    until(caught, 60)


@pytest.mark.requirement("OPS-05", "STO-05")
def test_a_good_transcript_is_read_on_however_often_the_worker_is_killed(
    worker, run, home, store, transcript
):
    t = transcript()
    t.talk(1_500)
    leave(home, Told(transcript=str(t.path)).stop("Done."))
    seen = 1
    for _ in range(3):
        running = worker().ready()
        until(lambda before=seen: sum(content_counts(store()).items.values()) > before, 60)
        stopped_at_work(running, home, "transcript")
        seen = sum(content_counts(store()).items.values())
        running.process.kill()
        running.process.wait()
        pass_time(home)
    assert run("worker", "drain").code == 0
    assert (waiting(home), list((home / "spool" / "bad").iterdir())) == ([], [])
    prompts = [item for item in every_item(store()) if item.kind == "prompt"]
    assert len(prompts) == 1_500


@pytest.mark.requirement("OPS-05")
def test_what_the_worker_was_at_when_it_was_stopped_is_not_suspected(worker, run, home, transcript):
    t = transcript()
    t.path.parent.mkdir(parents=True, exist_ok=True)
    t.path.write_text(SLOW[: len(SLOW) // 4] + "\n")
    leave(home, Told(transcript=str(t.path)).stop("Done."))
    running = worker()
    stopped_at_work(running, home, "transcript")
    assert "did not end when it was asked, so it was killed" in run("worker", "stop").err
    pass_time(home)
    assert run("worker", "drain").code == 0
    assert "the worker before this one failed" not in log(home)


@pytest.mark.requirement("OPS-05")
def test_the_watchdog_does_not_count_the_time_in_which_the_process_was_stopped(tmp_path):
    child = watched(tmp_path, "input(); dog.watch(); print('alive')")
    child.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    until(lambda: time.monotonic() - began > 1.5)
    child.send_signal(signal.SIGCONT)
    assert (child.communicate("\n")[0], child.returncode) == ("alive\n", 0)


@pytest.mark.requirement("OPS-05")
@pytest.mark.parametrize(
    ("code", "by"), [("input()", signal.SIGALRM), ("sum(range(10**15))", signal.SIGPROF)]
)
def test_the_watchdog_ends_one_that_waits_and_one_that_never_comes_back(tmp_path, code, by):
    child = watched(tmp_path, code)
    assert child.wait(20) == -by
    child.communicate()
    assert "<string>" in (tmp_path / "log").read_text()


def watched(tmp_path, code):
    """A process that is to do this within half a second."""
    before = (
        "from pathlib import Path; from yester.worker.watchdog import Watchdog;"
        "dog = Watchdog(Path('log')); dog.start(0.5); dog.watch(); print('ready', flush=True);"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", before + code], cwd=tmp_path, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.requirement("CAP-03", "OPS-05")
def test_an_event_that_waits_for_the_store_is_not_suspected(worker, run, home, store):
    made(home)
    leave(home, Told().prompt("about zeppelins"))
    with open(home / "run" / "write.lock", "w") as held:
        for _ in range(2):
            running = worker().ready()
            fcntl.flock(held, fcntl.LOCK_EX)
            leave(home, Told(clock=1_771_000_000_000).prompt("about narwhals"))
            wake(home)
            time_of_two_attempts(running)
            running.health()  # then the next attempt begins, and waits a quarter of a second
            began = time.monotonic()
            until(lambda began=began: time.monotonic() - began > 0.15)
            running.process.kill()
            running.process.wait()
            pass_time(home)
            fcntl.flock(held, fcntl.LOCK_UN)
    assert "the worker before this one failed" not in log(home)
    assert run("worker", "drain").code == 0
    assert {item.body for item in every_item(store())} == {"about zeppelins", "about narwhals"}


@pytest.mark.requirement("OPS-05", "STO-05")
def test_a_transcript_without_line_ends_is_given_up_and_holds_nobody_up(
    worker, run, home, store, tmp_path
):
    endless = tmp_path / "session.jsonl"
    endless.touch()
    os.truncate(endless, 1 << 40)
    leave(home, Told(transcript=str(endless)).stop("Done."))
    running = worker("--hung", "20").ready()
    until(lambda: waiting(home) == [], 15)
    assert "a transcript of claude-code could not be read" in log(home)
    leave(home, Told(transcript=str(endless), clock=1_780_000_000_000).stop("Done again."))
    assert run("worker", "drain").code == 0
    assert (waiting(home), running.process.poll()) == ([], None)
    assert [item.body for item in every_item(store())] == ["Done.", "Done again."]


@pytest.mark.requirement("CAP-03")
def test_the_second_place_is_emptied_too(worker, run, home, store, tmp_path):
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    told = Told()
    leave(home, told.prompt("one"))
    second = Spool(home, runtime).folders[1].parent
    leave(second, told.ran("two", LONG))
    assert run("worker", "drain", env={"XDG_RUNTIME_DIR": str(runtime)}).code == 0
    assert waiting(home) == waiting(second) == []
    assert content_counts(store()).events == 2


@pytest.mark.requirement("CAP-03")
def test_another_writer_delays_it_and_nothing_more(worker, home, store, transcript):
    running = worker().ready()
    t = transcript()
    t.user("hello", promptId="turn-1")
    t.assistant("only the transcript has this")
    told = Told(transcript=str(t.path))
    with open(home / "run" / "write.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        leave(home, told.prompt("hello"), told.stop("bye"))
        wake(home)
        began = time.monotonic()
        assert running.health()["events"] == 0  # it answers meanwhile
        assert time.monotonic() - began < 2
    until(lambda: running.health()["events"] == 2)
    with open(home / "run" / "write.lock", "w") as held:  # now the transcript's turn
        fcntl.flock(held, fcntl.LOCK_EX)
        time_of_two_attempts(running)
    until(lambda: waiting(home) == [])
    assert sorted(item.body for item in every_item(store())) == [
        "bye", "hello", "only the transcript has this"
    ]  # fmt: skip


def wake(home):
    handle = os.open(home / "run" / "wake", os.O_WRONLY | os.O_NONBLOCK)
    os.write(handle, b".")
    os.close(handle)


def time_of_two_attempts(running):
    """An attempt to write takes a quarter of a second; health is answered between them."""
    for _ in range(2):
        began = time.monotonic()
        until(lambda: running.health(), 10)
        until(lambda began=began: time.monotonic() - began > 0.3)


def test_draining_works_with_and_without_a_worker(worker, run, home, store):
    told = Told()
    assert run("worker", "drain").out == "0 events taken in\n"
    leave(home, told.prompt("one"))
    assert run("worker", "drain").out == "1 event taken in\n"
    running = worker().ready()
    leave(home, told.ran("two", LONG), told.stop("three"))
    assert run("worker", "drain", "--json").json["events"] <= 2  # some it took by itself
    assert running.health()["events"] == 2
    assert content_counts(store()).events == 3


# --- answering -----------------------------------------------------------------------------------


def context(printed):
    return json.loads(printed)["hookSpecificOutput"]["additionalContext"] if printed else ""


def asked(event, project, env, **more):
    """A hook's answer; a busy machine may keep the first one from being in time."""
    payload = Told(cwd=str(project)).payload(event, **more)
    return until(lambda: context(hook(event, cwd=project, env=env, payload=payload).out))


@pytest.mark.requirement("DEL-01", "DEL-02", "DEL-04")
def test_a_session_is_told_what_an_earlier_one_said_and_it_is_written_down(
    worker, home, env, project, store
):
    leave(home, *earlier(project))
    running = worker().ready()
    until(lambda: running.health()["events"] == 2)
    text = asked("SessionStart", project, env, source="startup")
    assert "arq was chosen over celery" in text
    assert text.startswith("<yester-memory")
    assert text.endswith("</yester-memory>")
    session = until(lambda: store().session(Told().session, "claude-code"))
    shown = until(
        lambda: store().entries(Injection, {"session": session.id}, Paging(oldest_first=True))
    )
    assert daily_figures(store(), 0).answers  # how long it took is written down with it
    assert {one.event for one in shown} == {"SessionStart"}
    texts = {item.body for item in store().get([one.item for one in shown])}
    assert "arq was chosen over celery, since everything else is asyncio already." in texts
    for prompt in ("yes", "what is the weather like in Kyoto in autumn"):
        payload = Told(cwd=str(project)).payload("UserPromptSubmit", prompt=prompt)
        assert hook("UserPromptSubmit", cwd=project, env=env, payload=payload).silent


def recorded(home, project):
    """An observation about a file, in the project of this folder."""
    found = identify_project(str(project))
    note = Item(
        "n1", "observation", found.key, session="before", type="bugfix", epoch=1_770_000_000_000,
        title="The import locked the table", files_modified=("jobs/stock.py",),
        body="The transaction is opened after the download now.",
    )  # fmt: skip
    store = open_store(made(home), now=1)
    add_items(store, [(note, found)])
    store.close()


@pytest.mark.requirement("DEL-03")
def test_before_a_file_is_read_what_is_known_about_it_is_told_once(
    worker, home, env, project, store
):
    recorded(home, project)
    worker().ready()
    read = {"tool_name": "Read", "tool_input": {"file_path": str(project / "jobs" / "stock.py")}}
    payload = Told(cwd=str(project)).payload("PreToolUse", **read)
    printed = until(lambda: hook("PreToolUse", cwd=project, env=env, payload=payload).out)
    said = json.loads(printed)["hookSpecificOutput"]
    assert set(said) == {"hookEventName", "additionalContext"}  # nothing that touches the tool
    assert "Recorded about jobs/stock.py" in said["additionalContext"]
    assert "opened after the download" in said["additionalContext"]
    session = until(lambda: store().session(Told().session, "claude-code"))
    until(lambda: store().entries(Injection, {"session": session.id}, Paging(oldest_first=True)))
    assert hook("PreToolUse", cwd=project, env=env, payload=payload).silent
    other = Told(cwd=str(project)).payload(
        "PreToolUse", tool_name="Read", tool_input={"file_path": str(project / "README.md")}
    )
    assert hook("PreToolUse", cwd=project, env=env, payload=other).silent
    for strange in (None, "x", ["a"], {"file_path": 7}, {}):
        odd = Told(cwd=str(project)).payload("PreToolUse", tool_name="Read", tool_input=strange)
        assert hook("PreToolUse", cwd=project, env=env, payload=odd).silent


# --- what a session's own environment may change about its answers --------------------------------

WEBHOOKS = "every webhook is refused: the signature does not match since we have the proxy"


@pytest.fixture
def notes_shown(worker, home, env, project):
    """The numbers of the notes that a session with these variables is shown for its prompt."""
    here, other = identify_project(str(project)), identify_project("/home/sam/code/other")

    def note(number, place, days, text):
        return Item(
            f"n{number}", "observation", place.key, session=f"before-{number}", type="bugfix",
            title=f"Webhook signatures {number}", body=text,
            epoch=int((time.time() - days * 86_400) * 1000),
        )  # fmt: skip

    said = "The proxy unpacked the body, so every webhook was refused"
    notes = [
        (note(1, here, 30, f"{said} and no signature did match."), here),
        (note(2, here, 0, f"{said}."), here),
        (note(3, other, 1, f"{said}; its signature is of the raw bytes."), other),
    ]
    store = open_store(made(home), now=1)
    add_items(store, notes)
    store.close()
    worker().ready()

    def ask(variables):
        told = Told(str(uuid4()), str(project))  # no session is shown the same twice
        payload = told.payload("UserPromptSubmit", prompt=WEBHOOKS)
        done = hook("UserPromptSubmit", cwd=project, env={**env, **variables}, payload=payload)
        return "".join(re.findall(r"Webhook signatures (\d)", done.out.decode()))

    def answer(settings="", none=False, **variables):
        (home / "config.toml").write_text(settings)
        return ask(variables) if none else until(lambda: ask(variables))

    return answer


@pytest.mark.requirement("REC-06", "DEL-03")
def test_a_session_can_have_its_answers_from_its_own_project_alone(notes_shown):
    cases = (("", "off", "21"), ("", "maybe", "213"), ("cross_project = false", "true", "21"))
    for settings, said, shown in cases:
        for variable in ("YESTER_CROSS_PROJECT", "CLAUDE_MEM_CROSS_PROJECT"):
            found = notes_shown(f"max_inject = 5\n{settings}", **{variable: said})
            assert found == shown, (settings, variable, said)


@pytest.mark.requirement("DEL-03")
@pytest.mark.parametrize(  # where two are shown, the prompt of a session before may be one
    ("settings", "cases"),
    [
        ("", {"1": 1, "0": 0, "many": 2, "-1": 2, "²": 2, "9" * 5_000: 2}),
        ("max_inject = 3", {"4": 3}),
        ("max_inject = 3", {"many": 3}),
    ],
    ids=["default", "more", "nonsense"],
)
def test_a_session_can_have_less_shown_and_never_more(notes_shown, settings, cases):
    for said, shown in cases.items():
        found = notes_shown(settings, none=not shown, YESTER_MAX_INJECT=said)
        assert len(found) == shown, said[:9]


@pytest.mark.requirement("REC-05", "DEL-03")
def test_a_session_can_say_how_soon_things_are_old(notes_shown):
    for variable, said, shown in (
        ("YESTER_RECENCY_HALFLIFE_DAYS", "99999", "12"),  # age is next to nothing
        ("CLAUDE_MEM_RECENCY_HALFLIFE_DAYS", "99999", "12"),
        ("YESTER_RECENCY_HALFLIFE_DAYS", "-5", "21"),
        ("YESTER_RECENCY_HALFLIFE_DAYS", "soon", "21"),
    ):
        found = notes_shown("max_inject = 5\ncross_project = false", **{variable: said})
        assert found == shown, (variable, said)


@pytest.mark.requirement("DEL-03")
def test_a_sub_agent_gets_what_is_known_about_the_work_at_hand(worker, home, env, project):
    (project / "jobs").mkdir()
    (project / "jobs" / "stock.py").write_text("one\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    recorded(home, project)
    worker().ready()
    text = asked("SubagentStart", project, env, agent_type="Explore", agent_id="a1")
    assert "About what you are changing" in text
    assert "opened after the download" in text


@pytest.mark.requirement("DEL-03")
def test_a_resumed_session_is_told_what_others_did_meanwhile_and_one_compacted_everything(
    worker, home, env, project, store
):
    leave(home, *earlier(project))
    running = worker().ready()
    until(lambda: running.health()["events"] == 2)
    mine = json.loads(earlier(project)[0].payload)["session_id"]
    back = Told(mine, str(project)).payload("SessionStart", source="resume")
    assert hook("SessionStart", cwd=project, env=env, payload=back).silent
    again = Told(mine, str(project)).payload("SessionStart", source="compact")
    text = until(lambda: context(hook("SessionStart", cwd=project, env=env, payload=again).out))
    assert "arq was chosen over celery" in text


@pytest.mark.requirement("DEL-02")
def test_what_was_shown_is_written_down_also_when_the_event_was_faster(
    worker, home, project, store
):
    leave(home, *earlier(project))
    running = worker().ready()
    start = Told(cwd=str(project)).event("SessionStart", source="startup")
    leave(home, start)
    wake(home)
    until(lambda: running.health()["events"] == 3)
    assert context(ask_worker(home / "run", f"POST /hook?id={start.id}", 5.0))
    session = store().session(Told().session, "claude-code")
    until(lambda: store().entries(Injection, {"session": session.id}, Paging(oldest_first=True)))


@pytest.mark.parametrize(
    "request_",
    ["POST /hook?id=none", "POST /hook", "POST /hook?id=../../config.toml", "POST /hook?id="],
)
def test_a_hook_nobody_knows_gets_no_answer(worker, home, request_):
    worker().ready()
    assert ask_worker(home / "run", request_, 5.0) == b""


@pytest.mark.requirement("OPS-03", "OPS-05")
def test_its_door_takes_anything(worker, home):
    running = worker().ready()

    def said(data):
        here = Path.cwd()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(10)
            os.chdir(home / "run")
            try:
                client.connect("worker.sock")
            finally:
                os.chdir(here)
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            try:
                return client.recv(4096)
            except ConnectionError:
                return b""

    assert said(b"GET /health HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200 OK\r\n")
    for request in (
        b"GET /other HTTP/1.0", b"GET /hook HTTP/1.0", b"DELETE /health HTTP/1.0",
        b"GET //[ HTTP/1.0", b"\xff\xfe \x00 \x00", b"POST /leave?version=%FF HTTP/1.0",
        b"POST /leave?version=" + b"9" * 9_000 + b" HTTP/1.0", b"POST /nothing HTTP/1.0",
    ):  # fmt: skip
        answer = said(request + b"\r\n\r\n")
        if not request.startswith(b"POST /leave?version=%"):
            assert answer.startswith(b"HTTP/1.0 404"), request
    for unfinished in (b"", b"G", b"GET /health HTTP/1.0\r\n", b"x" * 40_000, b"\r\n\r\n"):
        assert not said(unfinished).startswith(b"HTTP/1.0 200")
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(20)]
    here = Path.cwd()
    os.chdir(home / "run")
    try:
        for client in silent:
            client.connect("worker.sock")
    finally:
        os.chdir(here)
    assert running.health()["pid"] == running.process.pid
    for client in silent:
        client.close()
    assert running.health()["pid"] == running.process.pid


def test_a_hook_is_answered_while_there_is_much_to_read(
    worker, home, env, project, transcript, store
):
    leave(home, *earlier(project))
    t = transcript("ffffffff-0000-4000-8000-00000000000f", cwd=str(project))
    t.user("the first of many")
    line = t.path.read_text().strip()
    number = 8_000
    t.raw("".join(
        line.replace("ffffffff-0001", f"ffffffff-{n:06}").replace("first", f"word{n}") + "\n"
        for n in range(2, number)
    ))  # fmt: skip
    running = worker().ready()
    told = Told(t.session, str(project), str(t.path))
    leave(home, told.stop("."))
    wake(home)
    until(lambda: running.health()["events"] == 3)
    assert "arq was chosen" in asked("SessionStart", project, env, source="startup")
    assert len(store().select(Filters(session=t.session), Paging(10_000))) < number - 1


# --- settings while it runs ----------------------------------------------------------------------


@pytest.mark.requirement("CAP-14")
def test_what_is_switched_off_or_excluded_meanwhile_is_obeyed(
    worker, run, home, env, project, store
):
    leave(home, *earlier(project))
    running = worker().ready()
    until(lambda: running.health()["events"] == 2)
    assert run("off", "--all").code == 0
    start = Told(cwd=str(project), clock=int(time.time() * 1000)).event("SessionStart")
    leave(home, start)  # as if the hook had not seen it yet
    assert ask_worker(home / "run", f"POST /hook?id={start.id}", 5.0) == b""
    until(lambda: waiting(home) == [])
    assert content_counts(store()).skipped == {"off": 1}
    assert hook("SessionStart", cwd=project, env=env).silent
    assert waiting(home) == []
    assert run("off", "--all", "--undo").code == 0
    (home / "config.toml").write_text(f'exclude = ["{project}"]')
    told = Told(cwd=str(project), clock=int(time.time() * 1000) + 60_000)
    start = told.event("SessionStart")
    leave(home, start)
    assert ask_worker(home / "run", f"POST /hook?id={start.id}", 5.0) == b""
    until(lambda: content_counts(store()).skipped == {"off": 1, "excluded": 1})
    until(lambda: (home / "run" / "rules").exists())
    assert (home / "run" / "rules").read_text() == f"path {project}\n"
    assert hook("SessionStart", cwd=project, env=env).silent
    (home / "config.toml").write_text("exclude = [")  # half saved
    leave(home, told.prompt("still out"))
    wake(home)
    until(lambda: content_counts(store()).skipped == {"off": 1, "excluded": 2})
    (home / "config.toml").write_text("")
    leave(home, told.prompt("in again"))
    wake(home)
    until(lambda: "in again" in [item.body for item in every_item(store())])
    assert "reading config.toml failed: ConfigError" in log(home)
    assert not (home / "run" / "rules").exists()


# --- how a session starts it ---------------------------------------------------------------------


@pytest.mark.requirement("DEL-01", "OPS-03")
def test_the_first_session_starts_it_and_gets_its_answer(worker, run, home, env, project):
    leave(home, *earlier(project))
    assert run("worker", "drain").code == 0
    assert stat.S_IMODE((home / "run" / "launch").stat().st_mode) == 0o600
    hostile = {"PYTHONPATH": "/evil", "LD_LIBRARY_PATH": "/evil", "PATH": "/evil"}
    payload = Told(cwd=str(project)).payload("SessionStart", source="startup")
    done = hook("SessionStart", cwd=project, env=env | hostile, payload=payload)
    assert (done.code, done.err) == (0, b"")
    pid = until(lambda: (health(home) or {}).get("pid"))
    if Path(f"/proc/{pid}/environ").exists():
        given = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"evil" not in given
        assert {entry.split(b"=")[0] for entry in given.rstrip(b"\0").split(b"\0")} == {
            b"HOME", b"PATH", b"LANG"
        }  # fmt: skip
        assert opened(pid) == {"/dev/null"}
        assert os.getsid(pid) != os.getsid(0)
        assert b"yester\0--home" in Path(f"/proc/{pid}/cmdline").read_bytes()
    if done.out:  # in time, though it had to be started
        assert "arq was chosen over celery" in context(done.out)
    assert "arq was chosen" in asked("SessionStart", project, env, source="startup")
    assert health(home)["pid"] == pid
    until(lambda: waiting(home) == [])


@pytest.mark.requirement("DEL-01", "CAP-03")
def test_a_prompt_starts_one_that_has_died_without_waiting_for_it(worker, home, env, project):
    write_launch(home)
    os.utime(home / "run" / "launch", (0, 0))
    first = worker().ready()
    first.process.kill()
    first.ended()
    payload = Told(cwd=str(project)).payload("UserPromptSubmit", prompt="which queue do we use")
    assert hook("UserPromptSubmit", cwd=project, env=env, payload=payload).silent
    again = until(lambda: (health(home) or {}).get("pid"))
    assert again != first.process.pid
    until(lambda: waiting(home) == [])  # what was left for the dead one is taken in


@pytest.mark.requirement("OPS-04")
def test_one_that_cannot_start_says_why_to_the_session_and_in_the_log(worker, home, env, project):
    write_launch(home)
    (home / "config.toml").write_text("thinking = 7\n")
    told = until(lambda: hook("SessionStart", cwd=project, env=env).out)
    message = json.loads(told)["systemMessage"]
    assert "/config.toml: thinking is 7, but must be true or false" in message
    assert message.endswith("Run: yester doctor")
    assert "starting failed: " in log(home)
    assert "thinking is 7" in log(home)
    del env["CLAUDECODE"]
    assert hook("SessionStart", cwd=project, env=env).silent
    env["CLAUDECODE"] = "1"
    (home / "config.toml").write_text("thinking = false\nfoo = 1\n")
    hook("SessionStart", cwd=project, env=env)
    until(lambda: health(home))
    assert "no setting is called 'foo', so it changes nothing" in log(home)
    until(lambda: waiting(home) == [])


@pytest.mark.requirement("OPS-02")
def test_one_that_does_not_come_is_not_started_at_every_prompt(home, env, project):
    file, mark = home / "run" / "launch", home.parent / "started"
    words = ["/bin/sh", "-c", 'echo >> "$0"', str(mark), "--home", str(home)]
    file.write_text("\n".join(words) + "\n")
    file.chmod(0o600)
    assert hook("UserPromptSubmit", cwd=project, env=env).silent  # written a moment ago
    os.utime(file, (0, 0))
    for _ in range(3):
        assert hook("UserPromptSubmit", cwd=project, env=env).silent
    until(mark.exists)
    os.utime(file, (0, 0))
    for event in ("PreToolUse", "SubagentStart", "PostToolUse"):
        assert hook(event, cwd=project, env=env).silent
    assert file.stat().st_mtime == 0
    assert mark.read_text() == "\n"


@pytest.mark.requirement("OPS-03")
@pytest.mark.parametrize(
    "how",
    ["ours", "missing", "open to others", "of another home", "empty", "a folder", "another user's"],
)
def test_a_way_to_start_it_that_is_not_ours_is_not_taken(home, env, project, how):
    file = home / "run" / "launch"
    mark = home.parent / "started"
    meant = home.parent if how == "of another home" else home
    words = ["/bin/sh", "-c", 'touch "$0"', str(mark), "--home", str(meant)]
    file.write_text("" if how == "empty" else "\n".join(words) + "\n")
    file.chmod(0o644 if how == "open to others" else 0o600)
    if how == "another user's":
        if os.geteuid():
            pytest.skip("needs root to give a file away")
        os.chown(file, 65534, 65534)
    if how in ("missing", "a folder"):
        file.unlink()
    if how == "a folder":
        file.mkdir()
    done = hook("SessionStart", cwd=project, env=env)
    if how == "ours":
        until(mark.exists)
        return
    assert (done.code, done.err) == (0, b"")
    assert done.out.count(b"\n") <= 1
    assert json.loads(done.out)["systemMessage"].endswith("pipx install yester")
    assert not mark.exists()
    assert len(waiting(home)) == 1
    del env["CLAUDECODE"]
    assert hook("SessionStart", cwd=project, env=env).silent


# --- its log -------------------------------------------------------------------------------------


@pytest.mark.requirement("CAP-10")
def test_the_log_says_where_something_failed_and_not_what_it_said(tmp_path):
    log = Log(tmp_path / "logs", clock=lambda: 1_770_000_000.0)
    try:
        raise ValueError("the walrus")
    except ValueError as error:
        log.say_failure("taking 1-2-3", error)
    log.say("ended")
    text = (tmp_path / "logs" / "worker.log").read_text()
    first, second = text.splitlines()
    assert first.startswith(
        "2026-02-02T02:40:00Z taking 1-2-3 failed: ValueError at test_worker.py:"
    )
    assert second == "2026-02-02T02:40:00Z ended"
    assert "walrus" not in text


@pytest.mark.requirement("OPS-03")
def test_the_log_rotates_and_keeps_only_so_much(tmp_path):
    log = Log(tmp_path / "logs")
    path = tmp_path / "logs" / "worker.log"
    for number in range(LOGS_KEPT + 3):
        log.say(f"round {number}")
        with open(path, "a") as file:
            file.write("x" * LARGEST_LOG + "\n")
    log.say("now")
    files = sorted(found.name for found in path.parent.iterdir())
    assert files == ["worker.log", *(f"worker.log.{n}" for n in range(1, LOGS_KEPT + 1))]
    assert path.read_text().endswith("now\n")
    assert len(path.read_text()) < 100
    for number in range(1, LOGS_KEPT + 1):
        older = path.with_name(f"worker.log.{number}")
        assert f"round {LOGS_KEPT + 3 - number} " not in older.read_text()
        assert f"round {LOGS_KEPT + 3 - number}\n" in older.read_text()
    assert {stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()} == {0o600}


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    log = Log(tmp_path / "logs")
    (tmp_path / "logs" / "worker.log").mkdir()
    log.say("hello")
