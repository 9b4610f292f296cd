"""What is booked as shown was delivered: the hook says that it has printed the answer."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capturing import (
    HOOK,
    SESSION,
    Told,
    answered,
    connected,
    hook,
    leave,
    made,
    until,
    waiting,
    worker_that,
)
from tests.flow.test_worker import Running, context, earlier, recorded
from yester.store.sqlite import SqliteStore
from yester.worker.door import PATIENCE, Door, Reply, ask

pytestmark = pytest.mark.requirement("DEL-14")

ARQ = "arq was chosen over celery"
WEATHER = "what is the weather like in Kyoto in autumn"  # nothing fits it


@pytest.fixture
def worker(home, own_home):
    """Starts workers of this home; none of them is left at the end."""
    running = []

    def start():
        running.append(Running(home))
        return running[-1]

    yield start
    for one in running:
        one.close()


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def env(home, own_home):
    made(home)
    return {"HOME": str(own_home), "YESTER_HOME": str(home), "CLAUDECODE": "1"}


@pytest.fixture
def store(home):
    """What the store holds, seen by somebody else than the worker."""
    opened = []

    def open_():
        if not opened:
            opened.append(SqliteStore.open(home, now=1))
        return opened[0]

    yield open_
    for one in opened:
        one.close()


def request(client, event):
    client.sendall(f"POST /hook?id={event.id}&ack=1 HTTP/1.0\r\n\r\n".encode())


def body_read(client):
    """The answer, as far as the end the worker has put to it."""
    data = b""
    while part := client.recv(1 << 16):
        data += part
    return data.partition(b"\r\n\r\n")[2]


def drain(home):
    assert ask(home / "run", "POST /drain", 10.0) is not None


def ledger(store, key=SESSION):
    session = store().session(key, "claude-code")
    return [] if session is None else store().injections(session.id)


def bodies(store, rows):
    return {item.body for item in store().get([row.item for row in rows])}


def prompted(project, env, prompt=WEATHER, script=HOOK, **more):
    """What the hook of a prompt prints."""
    payload = Told(cwd=str(project)).payload("UserPromptSubmit", prompt=prompt, **more)
    done = hook("UserPromptSubmit", cwd=project, env=env, payload=payload, script=script)
    assert (done.code, done.err) == (0, b"")
    return context(done.out)


def started(project, env, script=HOOK, **more):
    payload = Told(cwd=str(project)).payload("SessionStart", **{"source": "startup", **more})
    return hook("SessionStart", cwd=project, env=env, payload=payload, script=script)


@pytest.fixture
def begun(home, project, worker):
    """A worker that knows an earlier session."""
    leave(home, *earlier(project))
    running = worker().ready()
    until(lambda: running.health()["events"] == 2)
    return running


# --- the byte -----------------------------------------------------------------------------------


def test_an_answer_is_booked_when_the_hook_says_it_was_printed_and_not_before(
    begun, home, project, store
):
    start = Told(cwd=str(project)).event("SessionStart", source="startup")
    leave(home, start)
    with connected(home) as client:
        request(client, start)
        assert ARQ in context(body_read(client))  # half closed: all of it is here
        drain(home)
        assert waiting(home) == []
        assert ledger(store) == []
        client.sendall(b".")
        rows = until(lambda: ledger(store))
    assert {row.event for row in rows} == {"SessionStart"}
    drain(home)
    assert ledger(store) == rows


def test_a_prompts_answer_that_did_not_arrive_is_dropped_and_counts_as_unknown(
    begun, home, project, env, store
):
    told = Told("ffffffff-0000-4000-8000-00000000000f", str(project))
    question = "which queue library was chosen for the invoices, arq or celery?"
    for arrives in (False, True):
        prompt = told.prompt(question, turn=f"turn-{arrives}")
        leave(home, prompt)
        with connected(home) as client:
            request(client, prompt)
            assert ARQ in context(body_read(client))
            if arrives:
                client.sendall(b".")
        drain(home)
        assert bool(ledger(store, told.session)) is arrives
    prompt = told.prompt(question, turn="turn-3")
    leave(home, prompt)
    assert ARQ not in context(ask(home / "run", f"POST /hook?id={prompt.id}", 10.0))


def test_an_event_that_takes_no_text_from_us_books_nothing(home, project, worker, store):
    """Copilot takes no context before a tool is used."""
    recorded(home, project)
    worker().ready()
    file = {"file_path": str(project / "jobs" / "stock.py")}
    read = Told(cwd=str(project)).event(
        "PreToolUse", {"COPILOT_CLI": "1"}, tool_name="Read", tool_input=file
    )
    read.hints.pop("CLAUDECODE")
    leave(home, read)
    assert ask(home / "run", f"POST /hook?id={read.id}", 10.0) == b""
    drain(home)
    session = store().session(SESSION, "copilot-cli")
    assert store().injections(session.id) == []


# --- what the hook does ---------------------------------------------------------------------------


def half_closing(heard):
    def serve(client):
        client.sendall(answered(b"x" * 100_000))
        client.shutdown(socket.SHUT_WR)
        heard.append(client.recv(8))

    return serve


def test_the_hook_sends_one_byte_after_it_has_printed_everything(home, project, env):
    heard = []
    with worker_that(home, half_closing(heard)) as requests:
        done = until(lambda: (ran := started(project, env)).out and ran)
        until(lambda: b"." in heard)
    assert (done.code, done.out, done.err) == (0, b"x" * 100_000, b"")
    assert requests[0].split(b" ")[1].endswith(b"&ack=1")
    assert b".." not in heard


def test_a_hook_that_cannot_print_does_not_say_that_it_did(home, project, env):
    heard = []
    reading, writing = os.pipe()
    os.close(reading)  # the client has gone
    with worker_that(home, half_closing(heard)):
        for _ in range(4):  # a busy machine may keep it from being answered in time
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(HOOK), "UserPromptSubmit"], input=b"{}",
                stdout=writing, stderr=subprocess.PIPE, cwd=project, env=env,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, b"")
        until(lambda: len(heard) == 4)
    os.close(writing)
    assert heard == [b""] * 4


# --- versions that do not know of it --------------------------------------------------------------


@pytest.fixture
def old_hook(tmp_path):
    """hook.py and ask.py as 0.1 has installed them."""
    data = Path(__file__).parent / "data"
    (tmp_path / "old").mkdir()
    for name in ("hook", "ask"):
        text = (data / f"{name}-0.1.py.txt").read_text()
        (tmp_path / "old" / f"{name}.py").write_text(text)
    return tmp_path / "old" / "hook.py"


def test_a_hook_of_0_1_is_answered_and_its_answer_booked_as_before(
    begun, home, project, env, store, old_hook
):
    until(lambda: ARQ in context(started(project, env, old_hook).out))
    assert {row.event for row in until(lambda: ledger(store))} == {"SessionStart"}
    drain(home)
    assert prompted(project, env, script=old_hook) == ""


def test_a_hook_works_with_a_worker_of_0_1_which_closes_when_it_has_answered(home, project, env):
    def serve(client):
        client.sendall(answered(b"hello"))
        client.close()

    with worker_that(home, serve):
        done = until(lambda: (ran := started(project, env)).out and ran)
    assert (done.code, done.out, done.err) == (0, b"hello", b"")


def test_a_worker_that_ends_still_hears_that_its_last_answer_was_printed(
    begun, home, project, store
):
    start = Told(cwd=str(project)).event("SessionStart", source="startup")
    leave(home, start)
    with connected(home) as client:
        request(client, start)
        assert ARQ in context(body_read(client))
        assert ask(home / "run", "POST /stop", 5.0) == b"{}"
        client.sendall(b".")
        assert begun.ended()[0] == 0
    assert {row.event for row in ledger(store)} == {"SessionStart"}


# --- the door -------------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-02")
@pytest.mark.parametrize("silent", ["ask nothing", "acknowledge nothing"])
def test_128_clients_that_say_nothing_do_not_keep_the_others_out(begun, home, project, silent):
    clients = []
    for number in range(128):
        clients.append(connected(home))
        if silent == "acknowledge nothing":
            start = Told(f"session-{number}", str(project)).event("SessionStart", source="startup")
            leave(home, start)
            request(clients[-1], start)
            assert body_read(clients[-1])
    for _ in range(3):
        assert begun.health()["pid"] == begun.process.pid
    for client in clients:
        client.close()


def test_who_says_nothing_for_two_seconds_is_let_go_and_holds_up_nobody(home, monkeypatch):
    monkeypatch.chdir(made(home))
    now, settled = [0.0], []
    selector = selectors.DefaultSelector()
    door = Door(home / "run", selector, lambda *_: Reply(b"text", settled.append), lambda: now[0])

    def turn():
        for key, mask in selector.select(0):
            key.data(mask)
        door.drop_overdue()

    mute, late, quick = (connected(home) for _ in range(3))
    for client in (late, quick):
        client.sendall(b"POST /hook?ack=1 HTTP/1.0\r\n\r\n")
    for _ in range(3):
        turn()
    assert (body_read(late), body_read(quick)) == (b"text", b"text")
    assert door.patience() == PATIENCE
    quick.sendall(b".")
    turn()
    assert settled == [True]
    now[0] = PATIENCE + 0.1
    turn()
    assert settled == [True, False]
    assert (mute.recv(1), door.patience()) == (b"", float("inf"))
    for client in (mute, late, quick):
        client.close()
    door.close()
    selector.close()
