"""What is booked as shown was delivered: the hook says that it has printed the answer. A start
block that did not arrive comes with the next answer of its session, once.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import postgres
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
    use_home,
    waiting,
    within,
    worker_that,
)
from tests.flow.test_worker import Running, context, earlier, recorded
from tests.stores import BACKENDS
from yester.capture.question import ask_worker
from yester.fence import MOST_UNITS, count_units
from yester.ingest.transcripts import add_items
from yester.model import Injection, Item, Paging
from yester.project import identify_project
from yester.store import open_store
from yester.worker.socket import PATIENCE, Door, Reply

pytestmark = pytest.mark.requirement("DEL-14")

ARQ = "arq was chosen over celery"
WEATHER = "what is the weather like in Kyoto in autumn"  # nothing fits it


@pytest.fixture
def worker(home, own_home, zygote_of_commands):
    """Starts workers of this home; none of them is left at the end."""
    running = []

    def start():
        running.append(Running(home, zygote_of_commands))
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
    use_home(home, own_home)
    return {"HOME": str(own_home), "YESTER_HOME": str(home), "CLAUDECODE": "1"}


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


def request(client, event):
    client.sendall(f"POST /hook?id={event.id}&ack=1 HTTP/1.0\r\n\r\n".encode())


def body_read(client):
    """The answer, as far as the end the worker has put to it."""
    data = b""
    while part := client.recv(1 << 16):
        data += part
    return data.partition(b"\r\n\r\n")[2]


def drain(home):
    assert ask_worker(home / "run", "POST /drain", 10.0) is not None


def ledger(store, key=SESSION):
    session = store().session(key, "claude-code")
    return (
        []
        if session is None
        else store().entries(Injection, {"session": session.id}, Paging(oldest_first=True))
    )


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


def given_once(store, home, project, env):
    """The start block comes with the next prompt, is booked as such, and does not come again."""
    assert ledger(store) == []
    text = until(lambda: prompted(project, env))
    assert ARQ in text
    rows = until(lambda: ledger(store))
    assert {row.event for row in rows} == {"SessionStart"}
    assert any(ARQ in body for body in bodies(store, rows))
    drain(home)
    assert prompted(project, env) == ""
    drain(home)
    assert ledger(store) == rows


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


def test_a_hook_that_reads_the_answer_and_dies_was_not_told(begun, home, project, env, store):
    start = Told(cwd=str(project)).event("SessionStart", source="startup")
    leave(home, start)
    with connected(home) as client:
        request(client, start)
        assert ARQ in context(body_read(client))
    drain(home)
    given_once(store, home, project, env)


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
    assert ARQ not in context(ask_worker(home / "run", f"POST /hook?id={prompt.id}", 10.0))


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
    assert ask_worker(home / "run", f"POST /hook?id={read.id}", 10.0) == b""
    drain(home)
    session = store().session(SESSION, "copilot-cli")
    assert store().entries(Injection, {"session": session.id}, Paging(oldest_first=True)) == []


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


@pytest.mark.requirement("OPS-02")
def test_a_session_taken_up_again_does_not_wait_for_a_cold_worker(home, own_home, project, env):
    use_home(home, own_home, "/bin/true")  # a worker that never comes
    assert started(project, env, source="startup").seconds > 1.0
    for source in ("resume", "compact"):
        assert within(1.0, lambda source=source: started(project, env, source=source)).silent
    spaced = b'{"session_id": "s", "source" : "resume"}'
    assert within(1.0, lambda: hook("SessionStart", cwd=project, env=env, payload=spaced)).silent


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


# --- a start block that came too late -------------------------------------------------------------


@pytest.mark.parametrize("version", ["this", "0.1"])
def test_a_worker_that_was_stopped_at_the_start_gives_the_block_at_the_next_prompt(
    begun, home, project, env, store, old_hook, version
):
    script = HOOK if version == "this" else old_hook
    begun.process.send_signal(signal.SIGSTOP)
    assert started(project, env, script).silent
    begun.process.send_signal(signal.SIGCONT)
    drain(home)
    given_once(store, home, project, env)


def test_a_worker_that_is_slow_at_the_start_gives_the_block_at_the_next_prompt(
    begun, home, project, env, store, transcript
):
    t = transcript("ffffffff-0000-4000-8000-00000000000f", cwd=str(project))
    t.user("the first of many")
    line = t.path.read_text().strip()
    t.raw("".join(
        line.replace("ffffffff-0001", f"ffffffff-{n:06}").replace("first", f"word{n}") + "\n"
        for n in range(2, 8_000)  # a second of work
    ))  # fmt: skip
    leave(home, Told(t.session, str(project), str(t.path)).stop("."))
    with connected(home) as client:
        client.sendall(b"POST /drain HTTP/1.0\r\n\r\n")
        assert started(project, env).silent
        client.settimeout(60)
        body_read(client)
    drain(home)
    assert ledger(store) == []
    assert until(lambda: prompted(project, env))
    assert {row.event for row in until(lambda: ledger(store))} == {"SessionStart"}


@pytest.fixture(params=BACKENDS)
def on_each_store(home, request):
    if request.param == "postgresql":
        home.mkdir(0o700, exist_ok=True)
        (home / "database").write_text(postgres.address(home))


@pytest.mark.requirement("DEL-16", "MEM-08", "STO-04")
def test_the_end_of_a_turn_tells_the_user_of_the_rule_that_was_typed_in_it_and_no_other_end_asks(
    on_each_store, begun, home, project, env, transcript
):
    def end(told):
        payload = told.payload("Stop", last_assistant_message="Understood.")
        return hook("Stop", cwd=project, env=env, payload=payload).out

    def type_prompt(told, text):
        written.user(text)
        payload = told.payload("UserPromptSubmit", prompt=text)
        hook("UserPromptSubmit", cwd=project, env=env, payload=payload)
        drain(home)

    written = transcript("eeeeeeee-0000-4000-8000-00000000000e", cwd=str(project))
    told = Told(written.session, str(project), str(written.path))
    armed = home / "run" / "armed"
    type_prompt(told, "Never commit to main.")
    until(lambda: armed.exists() and told.session in armed.read_text("utf-8"))
    # A hook of a busy machine may have had no answer in time, and nothing was booked then.
    assert until(lambda: b"yester keeps a rule: Never commit to main." in end(told))
    until(lambda: not armed.exists() or told.session not in armed.read_text("utf-8"))
    assert end(told) == b""  # once
    type_prompt(told, WEATHER)
    assert end(told) == b""


@pytest.mark.requirement("DEL-16", "MEM-08", "STO-04")
def test_the_end_of_a_turn_waits_until_the_client_has_written_down_what_was_typed(
    on_each_store, begun, home, project, transcript
):
    written = transcript("eeeeeeee-0000-4000-8000-00000000000e", cwd=str(project))
    told = Told(written.session, str(project), str(written.path))
    leave(home, told.prompt("Always use tabs."))
    drain(home)
    stop = told.event("Stop", last_assistant_message="Understood.")
    leave(home, stop)
    with connected(home) as client:
        request(client, stop)
        written.user("Always use tabs.")
        assert b"a rule: Always use tabs." in body_read(client)


def test_a_worker_killed_between_answer_and_byte_leaves_the_block_to_the_next(
    begun, home, project, env, store, worker
):
    start = Told(cwd=str(project)).event("SessionStart", source="startup")
    leave(home, start)
    with connected(home) as client:
        request(client, start)
        assert ARQ in context(body_read(client))
        drain(home)  # the event is stored
        begun.process.kill()
        begun.ended()
        with pytest.raises(OSError):  # noqa: PT011 -- whichever it is
            client.sendall(b".")
            client.recv(1)
            client.sendall(b".")
    worker().ready()
    given_once(store, home, project, env)


def test_without_a_worker_at_the_start_the_first_prompt_it_answers_brings_the_block(
    home, own_home, project, env, store, worker
):
    use_home(home, own_home, "/nonexistent")  # the hook cannot start one
    leave(home, *earlier(project))
    del env["CLAUDECODE"]  # else it prints that no worker is running
    env["CLAUDE_PROJECT_DIR"] = str(project)
    assert started(project, env).silent
    env["CLAUDECODE"] = "1"
    worker().ready()
    given_once(store, home, project, env)


def test_a_start_that_still_lies_in_the_spool_is_known_to_the_prompt_after_it(begun, home, project):
    """The worker was stopped at both: it answers the second before it has taken in the first."""
    told = Told(cwd=str(project))
    start, prompt = told.event("SessionStart", source="startup"), told.prompt(WEATHER)
    begun.process.send_signal(signal.SIGSTOP)
    leave(home, start, prompt)
    with connected(home) as first:
        request(first, start)
    with connected(home) as client:
        request(client, prompt)
        begun.process.send_signal(signal.SIGCONT)
        assert ARQ in context(body_read(client))


def test_a_late_block_that_is_late_again_is_still_owed(begun, home, project, env, store):
    told = Told(cwd=str(project))
    leave(home, told.event("SessionStart", source="startup"))
    for number in range(2):
        prompt = told.prompt(WEATHER, turn=f"turn-{number}")
        leave(home, prompt)
        with connected(home) as client:
            request(client, prompt)
            assert ARQ in context(body_read(client))
    drain(home)
    given_once(store, home, project, env)


def test_the_reading_of_a_file_brings_a_late_block_and_a_sub_agent_does_not_take_it_away(
    begun, home, project, env, store
):
    told = Told(cwd=str(project))
    read = {"tool_name": "Read", "tool_input": {"file_path": str(project / "x.py")}}
    leave(home, told.event("SessionStart", source="startup"))
    drain(home)
    inner = {"agent_id": "a1", "agent_type": "Explore"}
    for event, more in (("SubagentStart", inner), ("PreToolUse", {**read, **inner})):
        payload = told.payload(event, **more)
        assert ARQ not in context(hook(event, cwd=project, env=env, payload=payload).out)
    payload = told.payload("PreToolUse", **read)
    text = until(lambda: context(hook("PreToolUse", cwd=project, env=env, payload=payload).out))
    assert ARQ in text
    assert {row.event for row in until(lambda: ledger(store))} == {"SessionStart"}


def test_a_session_resumed_before_its_first_block_arrived_gets_all_of_it(begun, home, project, env):
    told = Told(cwd=str(project))
    leave(home, told.event("SessionStart", source="startup"), told.event("SessionEnd"))
    drain(home)
    assert ARQ in until(lambda: context(started(project, env, source="resume").out))


def test_a_late_block_of_a_resumed_session_tells_what_others_did_before_it_was_resumed(
    begun, home, project, env
):
    mine = json.loads(earlier(project)[0].payload)["session_id"]
    other = Told("dddddddd-0000-4000-8000-00000000000d", str(project), clock=1_769_500_000_000)
    leave(home, other.prompt("Is the pager switched on?"), other.stop("The pager is switched on."))
    back = Told(mine, str(project))
    leave(home, back.event("SessionStart", source="resume"), back.prompt("go on"))
    drain(home)  # the session has said something since
    text = until(lambda: prompted(project, env, session_id=mine))
    assert "The pager is switched on" in text
    assert ARQ not in text  # its own words it has


def test_only_a_start_that_was_seen_and_not_answered_is_owed(begun, home, project, env, store):
    mine = json.loads(earlier(project)[0].payload)["session_id"]
    back = Told(mine, str(project)).event("SessionStart", source="resume")
    leave(home, back)
    assert ask_worker(home / "run", f"POST /hook?id={back.id}", 10.0) == b""  # nothing to say
    drain(home)
    other = Told("dddddddd-0000-4000-8000-00000000000d", str(project))
    leave(home, other.prompt("Is the pager switched on?"), other.stop("The pager is switched on."))
    drain(home)
    assert prompted(project, env, session_id=mine) == ""  # though there would be something by now
    assert prompted(project, env) == ""  # its start was before hooks, or before this version


@pytest.mark.requirement("CAP-14")
def test_a_session_that_is_off_or_excluded_is_owed_nothing(begun, home, project, env, store, run):
    told = Told(cwd=str(project), clock=int(time.time() * 1000))
    leave(home, told.event("SessionStart", source="startup"))
    drain(home)
    (home / "config.toml").write_text(f'exclude = ["{project}"]')
    prompt = told.prompt(WEATHER)
    leave(home, prompt)
    assert ask_worker(home / "run", f"POST /hook?id={prompt.id}", 10.0) == b""
    (home / "config.toml").write_text("")
    other = Told("cccccccc-0000-4000-8000-00000000000c", str(project))
    leave(home, other.event("SessionStart", {"off": "1"}, source="startup"))
    drain(home)
    assert prompted(project, env, session_id=other.session) == ""


def test_a_late_block_and_what_fits_the_prompt_stay_within_what_clients_take(
    home, project, worker, env
):
    found = identify_project(str(project))
    store = open_store(made(home), now=1)
    add_items(store, [
        (Item(f"n{n}", "observation", found.key, type="bugfix", epoch=1_770_000_000_000 + n,
              title=f"Invoice queue {n}: " + "𝄞" * 60,
              body=f"The invoice queue of shard{n} was drained twice. " + "𝄞 word " * 60), found)
        for n in range(60)
    ])  # fmt: skip
    store.close()
    worker().ready()
    told = Told(cwd=str(project))
    leave(home, told.event("SessionStart", source="startup"))
    drain(home)
    text = until(lambda: prompted(project, env, "was the invoice queue of shard7 drained twice?"))
    assert "Earlier: " in text
    assert "Found in earlier sessions for this prompt" in text
    assert count_units(text) <= MOST_UNITS
    ids = [line.split(" ", 1)[0] for line in text.splitlines() if line.startswith("#")]
    assert len(ids) == len(set(ids))  # nothing twice


def test_a_worker_that_ends_still_hears_that_its_last_answer_was_printed(
    begun, home, project, store
):
    start = Told(cwd=str(project)).event("SessionStart", source="startup")
    leave(home, start)
    with connected(home) as client:
        request(client, start)
        assert ARQ in context(body_read(client))
        assert ask_worker(home / "run", "POST /stop", 5.0) == b"{}"
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
    assert door.seconds_left() == PATIENCE
    quick.sendall(b".")
    turn()
    assert settled == [True]
    now[0] = PATIENCE + 0.1
    turn()
    assert settled == [True, False]
    assert (mute.recv(1), door.seconds_left()) == (b"", float("inf"))
    for client in (mute, late, quick):
        client.close()
    door.close()
    selector.close()


def test_an_answer_that_comes_later_keeps_nobody_waiting(home, monkeypatch):
    monkeypatch.chdir(made(home))
    ready = []

    def answer(request, _):
        return (
            Reply(b"now") if request == "GET /health" else lambda: Reply(b"text") if ready else None
        )

    selector = selectors.DefaultSelector()
    door = Door(home / "run", selector, answer, lambda: 0.0)

    def turn():
        for key, mask in selector.select(0):
            key.data(mask)
        door.answer_later_ones()

    patient, gone, quick = (connected(home) for _ in range(3))
    for client in (patient, gone):
        client.sendall(b"POST /hook HTTP/1.0\r\n\r\n")
    quick.sendall(b"GET /health HTTP/1.0\r\n\r\n")
    for _ in range(3):
        turn()
    assert body_read(quick) == b"now"
    assert 0 < door.seconds_left() < 0.1  # who waits is asked for soon
    gone.close()
    ready.append(True)
    for _ in range(3):
        turn()
    assert body_read(patient) == b"text"
    assert door.seconds_left() == float("inf")
    patient.close()
    quick.close()
    door.close()
    selector.close()
