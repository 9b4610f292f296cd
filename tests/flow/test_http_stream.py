"""The stream: what is stored is told at once, and nothing of it twice or never."""

from __future__ import annotations

import re
import socket
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

import yester
from tests.serving import serving
from tests.stores import with_store
from yester.faces.http.stream import MOST_MISSED, encode_event, is_cursor
from yester.model import Change, Injection, Session

pytestmark = pytest.mark.requirement("DEL-07")


@pytest.fixture
def api(tmp_path):
    with yester.open(with_store(tmp_path / "memory")) as memory:
        memory.add([{"ref": "old", "text": "before anybody listened"}])
    with serving(tmp_path / "memory") as found:
        yield found
        assert found.failures == []


def add(api, *refs):
    with yester.open(api.home) as memory:
        memory.add([{"ref": ref, "text": f"said {ref}", "session": "s1"} for ref in refs])


def test_new_items_and_lines_of_the_ledger_are_told_as_they_are_stored(api):
    with api.stream() as events:
        assert next(events) == ("ready", "1-0", {})
        add(api, "a", "b")
        told = [next(events), next(events)]
        assert [(name, at) for name, at, _ in told] == [("item", "2-0"), ("item", "3-0")]
        assert [row["title"] for _, _, row in told] == ["said a", "said b"]
        with yester.open(api.home) as memory, memory.store.transaction("items"):
            number = memory.store.put_session(Session("s1", "", "name:unknown"))
            memory.store.append([Injection(number, "SessionStart", 2, 0.5, 9, 1, "why")])
        name, at, line = next(events)
        assert (name, at) == ("injection", "3-1")
        assert (line["item"], line["title"], line["reason"]) == (2, "said a", "why")


def test_a_client_that_comes_back_is_told_what_it_missed_and_nothing_twice(api):
    with api.stream() as events:
        next(events)
        add(api, "a", "b", "c")
        seen = [at for _, at, _ in islice(events, 2)]
    add(api, "d")
    with api.stream(last=seen[-1]) as events:
        assert next(events)[:2] == ("ready", seen[-1])
        assert [(at, row["title"]) for _, at, row in islice(events, 2)] == [
            ("4-0", "said c"), ("5-0", "said d"),
        ]  # fmt: skip
        add(api, "e")
        assert next(events)[2]["title"] == "said e"


def test_several_clients_are_told_the_same(api):
    with api.stream() as one, api.stream() as other:
        next(one), next(other)
        assert api.app.stream.clients == 2
        add(api, "a")
        assert next(one) == next(other)


def test_who_has_missed_too_much_is_told_to_load_it_anew(api):
    add(api, *(str(n) for n in range(MOST_MISSED + 1)))
    with api.stream(last="1-0") as events:
        next(events)
        name, at, _ = next(events)
        assert (name, at) == ("gap", f"{MOST_MISSED + 2}-0")
        add(api, "new")
        assert next(events)[2]["title"] == "said new"


def test_an_id_from_before_a_restored_backup_is_a_gap(api):
    with api.stream(last="900-900") as events:
        next(events)
        assert next(events)[:2] == ("gap", "1-0")


def test_a_last_event_id_that_is_none_is_refused(api):
    for text in ("x", "1", "1-2-3-4", "1-2-", "-1-1", "9" * 20 + "-1"):
        said = api.ask("GET", "/stream", {"Last-Event-ID": text})
        assert said.status == 400
        assert said.json["parameter"] == "Last-Event-ID"


def test_a_client_that_leaves_is_forgotten(api):
    with api.stream() as events:
        next(events)
        assert api.app.stream.clients == 1
    with api.stream() as events:  # by the time this one is greeted the other one's end is known
        next(events)
        while api.app.stream.clients > 1:
            api.get("/api/projects")


def test_the_server_ends_while_clients_listen(tmp_path):
    with serving(tmp_path / "memory") as api:
        client = socket.create_connection(("127.0.0.1", api.port), 30)
        head = (
            f"GET /stream HTTP/1.1\r\nHost: {api.host}\r\nAuthorization: Bearer {api.token}\r\n\r\n"
        )
        client.sendall(head.encode())
        assert client.recv(64).startswith(b"HTTP/1.1 200")
    found = b""
    while part := client.recv(1 << 16):
        found += part
    client.close()
    assert found.endswith(b"0\r\n\r\n")


@given(st.text(max_size=40), st.integers(0, 10**15 - 1), st.integers(0, 10**15 - 1))
def test_no_text_can_end_an_event_or_begin_another(text, item, line):
    told = encode_event("item", f"{item}-{line}", {"title": text, "more": f"\r\n\ndata: {text}"})
    lines = told.data.split(b"\n")
    assert len(lines) == 5
    assert [part.partition(b":")[0] for part in lines[:3]] == [b"event", b"id", b"data"]
    assert not re.search(rb"[\r\n]", lines[2])
    assert is_cursor(told.place)


@pytest.mark.requirement("MEM-02")
def test_that_a_memory_was_written_is_told_with_its_status_and_version(api):
    with api.stream() as events:
        next(events)
        with yester.open(api.home) as memory:
            id_ = memory.remember("Orders keep UTC", type="note")
        assert [next(events)[:2], next(events)[0]] == [("item", "2-0"), "memory"]
        with yester.open(api.home) as memory:
            memory.memories.retire(id_)
        name, at, told = next(events)
        assert (name, at) == ("memory", "2-0-2")
        assert told == {"id": id_, "status": "retired", "version": 2}
    with yester.open(api.home) as memory:
        memory.memories.restore(id_)
    for last in (at, "2-0"):  # the latter is of a client that knows of no memories yet
        with api.stream(last=last) as events:
            next(events)
            *_, (name, here, told) = islice(events, 1 if last == at else 3)
            assert (name, here, told["version"]) == ("memory", "2-0-3", 3)
            assert told["status"] == "active"


def test_what_goes_with_its_memory_is_no_gap(api):
    with yester.open(api.home) as memory:
        id_ = memory.remember("Orders keep UTC", type="note")
        with memory.store.transaction("memories"):
            memory.store.remove([id_], (1, "let go"))
        assert memory.store.entries(Change) == []
    with api.stream(last="1-0-1") as events:
        assert next(events)[:2] == ("ready", "1-0-1")
        add(api, "a")
        assert next(events)[0] == "item"
