"""Forgetting in a store, run against every backend: the items, what came of them, every trace."""

from __future__ import annotations

import pytest

from tests.store.test_store import item, put, refs
from tests.stores import BACKENDS
from yester.errors import StoreReplaced
from yester.ingest.prepare import prepare_item
from yester.model import (
    DISTILLED,
    Archived,
    Feedback,
    Filters,
    Injection,
    Project,
    Queue,
    Session,
    Source,
    replace,
)
from yester.tombstones import Tombstones

pytestmark = pytest.mark.requirement("STO-07")


@pytest.fixture(params=BACKENDS)
def open_store(request, tmp_path):
    return lambda: BACKENDS[request.param](tmp_path / "store")


@pytest.fixture
def store(open_store):
    found = open_store()
    with found.transaction("items"):
        found.put_project(Project("name:shop", "shop"))
        found.put_session(Session("s1", "codex", "name:shop", 1, 9, title="Kites", transcript="/t"))
        found.put_session(Session("s2", "codex", "name:shop", 1, 9))
    about = {"project": "name:shop", "agent": "codex", "prompt_number": 1}
    put(found, item("p1", "Fly the kite", kind="prompt", session="s1", **about))
    put(found, item("p2", "Land the plover", kind="prompt", session="s2", **about))
    with found.transaction("items"):
        ids = {one.ref: one.id for one in found.select(Filters())}
        card = item("card", "Kite flown", kind="summary", session="s1", source=DISTILLED, **about)
        shared = item("both", "Flown, landed", kind="observation", source=DISTILLED, **about)
        found.put(
            [
                replace(prepare_item(card), evidence=((-1, ids["p1"]),)),
                replace(prepare_item(shared), evidence=((-1, ids["p1"]), (0, ids["p2"]))),
            ]
        )
        found.append([Source("/t", "codex", 1, 1, 1, 1, "", {"title": "Kites", "session": "s1"})])
    yield found
    found.close()


def id_of(store, ref):
    return store.find_by_ref(ref)[0].id


def test_what_was_made_of_it_goes_and_is_made_anew_of_what_is_left(store):
    wanted = [id_of(store, "p1")]
    session = store.session("s1", "codex").id
    with store.transaction("ledger"):
        store.append(
            [Injection(session, "Stop", *wanted, 1.0, 9, 5), Feedback(*wanted, "useful", 5)]
        )
        store.append([Archived(session, 9, 9)])
    shown = store.forget(wanted, dry_run=True)
    assert sorted(refs(store.select(Filters()))) == ["both", "card", "p1", "p2"]
    with store.transaction("items"):
        gone = store.forget(wanted)
    assert gone == shown
    assert (len(gone.items), len(gone.derived)) == (3, 2)
    assert refs(store.select(Filters())) == ["p2"]
    assert store.session("s1", "codex") is None  # nothing of it is left
    for kind in (Injection, Feedback, Archived, Source):
        assert store.entries(kind) == []
    waiting = store.queued_sessions(Queue("distil", since=0, quiet_since=1 << 50))
    assert "s2" in [one.session.key for one in waiting]


def test_whoever_has_it_open_cannot_write_what_he_made_of_it(store, open_store):
    other = open_store()
    with store.transaction("items"):
        store.forget([id_of(store, "p1")])
    with pytest.raises(StoreReplaced, match="forgotten"), other.transaction("items"):
        pass
    other.close()
    put(store, item("p3", "Something else", project="name:shop"))  # who forgot goes on


def test_a_project_goes_with_its_name_and_comes_back_with_what_is_new(store, tmp_path):
    home = tmp_path / "store"
    sessions = [one.id for one in store.sessions(Filters())]
    with store.transaction("items"):
        store.forget([one.id for one in store.select(Filters())], sessions, ["name:shop"])
    assert store.projects() == []
    Tombstones(home).add({("project", "name:shop"): 100})
    with store.transaction("items"):
        assert store.put_project(Project("name:shop", "shop")) == 0
        assert store.put_session(Session("s1", "codex", "name:shop", 1, 9)) == 0
    put(store, item("old", "Kites", project="name:shop", epoch=100))
    assert store.select(Filters()) == []
    put(store, item("new", "Kites", project="name:shop", epoch=101))
    assert refs(store.select(Filters())) == ["new"]


def test_what_is_known_of_a_file_of_notes_stays_but_for_those_that_are_forgotten(store, tmp_path):
    put(store, item("/n#1", "Kites fly", kind="note", project="name:shop"))
    Tombstones(tmp_path / "store").add({("session", "other"): 100})
    rows = [
        Source("/n", "notes", 1, 1, 1, 0, "", {"notes": ["/n#1", "/n#2"], "asked": True}),
        Source("/m", "notes", 1, 1, 1, 0, "", {"notes": ["/m#1"], "asked": True}),
    ]
    with store.transaction("places"):
        store.append(rows)
    (kept,) = store.entries(Source, {"agent": "notes"})
    assert (kept.path, dict(kept.state)) == ("/n", {"notes": ["/n#1"], "asked": True})
