"""What an agent asks for through MCP or in its shell is written down, and only reading counts."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import apsw
import pytest

import yester
from tests.capturing import Told, leave
from tests.flow.test_mcp import Peer, start  # noqa: F401 -- a fixture
from tests.stores import with_store
from tests.table import each
from yester.agents.descriptors import AGENTS, detect_agent, detect_session
from yester.model import ON_REQUEST, Injection, UseCounts
from yester.recall.feedback import usefulness
from yester.store import open_store
from yester.store.contract import Store

pytestmark = pytest.mark.requirement("REC-18")

SESSION = "0b0e5c1e-0000-4000-8000-000000000009"
CLAUDE = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": SESSION}


TALK = (
    "Product pages are slow, can we cache them?",
    "Redis keeps the pages for a minute.",
    "We dropped redis: stale prices.",
)


@pytest.fixture
def store(home: Path) -> Path:
    with yester.open(with_store(home)) as memory:
        memory.add(
            {
                "ref": str(n),
                "kind": "message",
                "project": "shop",
                "text": text,
                "epoch": 1_770_000_000,
            }
            for n, text in enumerate(TALK)
        )
    return home


def opened(home: Path) -> Store:
    return open_store(home, now=1)


def show_unasked(home: Path, item: int, session: int = 7) -> None:
    known = opened(home)
    with known.transaction("items"):
        known.append([Injection(session, "UserPromptSubmit", item, 0.5, 10, 1)])
    known.close()


def used(home: Path, *items: int) -> dict[int, UseCounts]:
    known = opened(home)
    try:
        return known.texts(items).used
    finally:
        known.close()


def settled(peer: Peer) -> None:
    """Tools are called one after the other: with this answer the notes of the one before are in."""
    peer.call("__IMPORTANT")


def test_what_a_search_lists_is_in_the_ledger_and_counts_for_nothing(start, store):  # noqa: F811
    peer = start()
    for _ in range(3):
        peer.call("search", query="redis")
    settled(peer)
    known = opened(store)
    lines = known.entries(Injection)
    assert {line.item for line in lines} == {2, 3}
    assert len(lines) == 6
    assert {(line.event, line.reason, line.session) for line in lines} == {
        (ON_REQUEST, "search", 0)
    }
    assert all(line.tokens > 0 and line.score > 0 for line in lines)
    one = known.texts([2]).used[2]
    assert one == UseCounts(0, 0, {}, 3)
    assert usefulness(one) == 0
    known.close()


def test_reading_what_was_shown_or_listed_is_a_fetch_once_a_session(start, store):  # noqa: F811
    peer = start()
    peer.call("get_observations", ids=["1"])
    settled(peer)
    assert used(store, 1) == {}, "nobody had been shown it, and reading is no listing"
    show_unasked(store, 1)
    peer.call("search", query="redis")
    for _ in range(2):
        peer.call("get_observations", ids=["1", "2"])
    settled(peer)
    assert used(store, 1, 2, 3) == {
        1: UseCounts(1, 0, {"fetched": 1}),
        2: UseCounts(0, 0, {"fetched": 1}, 1),
        3: UseCounts(0, 0, {}, 1),
    }


def test_the_anchor_of_a_timeline_is_read_its_neighbours_only_came_along(start, store):  # noqa: F811
    for item in (1, 2, 3):
        show_unasked(store, item)
    peer = start()
    peer.call("timeline", query="redis pages")
    settled(peer)
    assert not any(one.feedback for one in used(store, 1, 2, 3).values())
    peer.call("timeline", anchor="#2")
    settled(peer)
    assert {item: one.feedback for item, one in used(store, 1, 2, 3).items()} == {
        1: {},
        2: {"fetched": 1},
        3: {},
    }


def test_a_session_that_the_client_names_is_the_one_that_has_used_it(
    start, store, run, tmp_path, own_home  # noqa: F811
):  # fmt: skip
    told = Told(cwd=str(tmp_path), session=SESSION)
    leave(store, told.prompt("why is redis dropped again?"))
    run("worker", "drain")
    known = opened(store)
    session = known.session(SESSION, "claude-code")
    assert session is not None
    show_unasked(store, 2, session.id)
    peer = start(**CLAUDE)
    peer.call("search", query="redis")
    peer.call("get_observations", ids=["2"])
    settled(peer)
    assert {line.session for line in known.entries(Injection)} == {session.id}
    assert known.texts([2]).used == {2: UseCounts(1, 1, {"fetched": 1}, 1)}
    # The agent's shell is the same session: nothing is counted twice.
    assert run("show", "2", env=CLAUDE).code == 0
    assert known.texts([2]).used[2].feedback == {"fetched": 1}
    assert run("show", "2").code == 0  # somebody else
    assert known.texts([2]).used[2].feedback == {"fetched": 2}
    known.close()


def test_it_shows_and_can_be_taken_back(start, store, run):  # noqa: F811
    peer = start()
    peer.call("search", query="redis")
    peer.call("get_observations", ids=["2"])
    settled(peer)
    assert run("feedback", "2").out == (
        "#2  use +0.24  shown in 0 sessions, listed 1 time, fetched 1\n"
    )
    run("feedback", "2", "--useful")
    assert "useful 1" in run("feedback", "2").out
    assert "fetched 1" in run("feedback", "2", "--undo").out
    assert run("feedback", "2", "--reset", "--json").json["items"] == [
        {"id": 2, "shown": 0, "used_in": 0, "listed": 1, "feedback": {}, "use": 0.0}
    ]
    assert run("feedback", "2", "--reset", "--undo").code == 2


def test_another_writer_costs_an_answer_nothing_and_what_is_owed_is_written_later(start, store):  # noqa: F811
    show_unasked(store, 2)
    peer = start()
    peer.call("search", query="redis")
    settled(peer)
    lock = os.open(store / "run" / "write.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        assert "#2" in peer.call("get_observations", ids=["2"])
        settled(peer)
        assert used(store, 2)[2].feedback == {}
        foreign = apsw.Connection(str(store / "yester.db"))  # a tool that does not know our lock
        foreign.execute("BEGIN IMMEDIATE")
    finally:
        os.close(lock)
    peer.call("search", query="redis")
    settled(peer)
    assert used(store, 2)[2].feedback == {}  # what is owed may be written from here on
    foreign.execute("ROLLBACK")
    foreign.close()
    assert peer.end()[0] == 0
    assert used(store, 2) == {2: UseCounts(1, 0, {"fetched": 1}, 2)}


def test_where_nothing_can_be_written_everything_is_answered(start, store):  # noqa: F811
    lock = store / "run" / "write.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    peer = start()
    assert "#2" in peer.call("search", query="redis")
    assert "#2" in peer.call("get_observations", ids=["2"])
    code, _, err = peer.end()
    assert (code, err) == (0, b"")


def test_what_an_agent_asked_for_is_told_apart_in_the_figures(start, store, run):  # noqa: F811
    peer = start()
    peer.call("search", query="redis")
    peer.end()
    assert ["mcp", "1", "2"] in [line.split()[:3] for line in run("stats").out.splitlines()]


@each("one", AGENTS.values())
def test_every_agent_is_known_by_its_variables(one):
    for mark in one.variables:
        assert detect_agent({mark: "1"}) == one.name
        assert detect_agent({mark: ""}) == ""
    if one.session_variable:
        assert detect_session({one.session_variable: "abc"}) == ("abc", one.name)
    assert detect_session({}) == ("", "")
    assert detect_agent({}) == ""


@pytest.mark.requirement("DEL-06", "REC-22")
@pytest.mark.parametrize("named", [True, False])
def test_a_search_leaves_out_the_session_that_asks(start, transcript, tmp_path, run, named):  # noqa: F811
    """A client that does not name it is known by what happened in the project just now."""
    now = int(time.time())
    for name, at, words in (("earlier", now - 86_400, "The heron sleeps."),
                            ("running", now - 5, "Where does the heron sleep?")):  # fmt: skip
        told = transcript(name, cwd=str(tmp_path), clock=at)
        told.user(words)
    assert run("index", "--no-vectors").code == 0
    peer = start(**({"CLAUDE_CODE_SESSION_ID": "running"} if named else {}))
    found = peer.call("search", query="heron")
    assert "The heron sleeps." in found
    assert "Where does the heron sleep?" not in found


@pytest.mark.requirement("DEL-06", "REC-22")
def test_what_another_agent_was_told_just_now_is_found(start, transcript, tmp_path, run):  # noqa: F811
    told = transcript("running", cwd=str(tmp_path), clock=int(time.time()) - 5)
    told.user("The heron sleeps in the reeds.")
    assert run("index", "--no-vectors").code == 0
    assert "in the reeds" in start(GEMINI_CLI="1").call("search", query="heron")
    assert "in the reeds" not in start(CLAUDECODE="1").call("search", query="heron")
