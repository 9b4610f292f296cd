"""What a hook tells is found where the transcript was faster."""

from __future__ import annotations

import pytest

from tests.readings import every_item
from tests.store.test_store import event, item, open_store, put, session_of, store  # noqa: F401
from yester.ingest.events import SAME_TIME, find_said
from yester.model import Turn


@pytest.mark.requirement("CAP-03")
def test_what_was_said_is_found_by_its_words_in_its_time(store):  # noqa: F811
    session = session_of(store)
    told = {"session": "s", "agent": "claude-code", "role": "assistant"}
    put(
        store,
        item("1", "  go on \n", epoch=1_000, **told),
        item("2", "go on", epoch=5_000, kind="prompt", session="s", agent="claude-code"),
        item("3", "go on", epoch=2_000, actor="Explore:1", **told),
        item("4", "go on", epoch=1_500, session="other", agent="claude-code"),
    )
    ids = {found.ref: found.id for found in every_item(store)}

    def said(text="go on", epoch=1_000, of=session, **more):
        return find_said(store, of, item("", text, **more), epoch)

    assert said() == ids["1"]
    assert said(kind="prompt") == ids["2"]
    assert said(actor="Explore:1") == ids["3"]
    assert said(epoch=1_000 + SAME_TIME) == said(epoch=1_000 - SAME_TIME) == ids["1"]
    assert said(epoch=1_001 + SAME_TIME) == said(epoch=999 - SAME_TIME) == 0
    assert said("go") == said("Go on") == said(kind="summary") == said(of=99) == 0


@pytest.mark.requirement("CAP-03")
def test_what_an_event_has_told_is_not_found_for_another(store):  # noqa: F811
    session = session_of(store)
    told = {"session": "s", "agent": "claude-code", "kind": "prompt"}
    put(store, item("1", "go on", epoch=1_000, **told), item("2", "go on", epoch=3_000, **told))
    ids = {found.ref: found.id for found in every_item(store)}
    prompt = item("", "go on", kind="prompt")
    assert find_said(store, session, prompt, 2_000) in ids.values()
    assert find_said(store, session, prompt, 2_500) == ids["2"]
    with store.transaction("items"):
        (turn,) = store.append([Turn("t", session, started=1)])
        store.append([event("1-1-a", session=session, turn=turn, item=ids["2"])])
    assert find_said(store, session, prompt, 3_000) == ids["1"]
    with store.transaction("items"):
        store.append([event("2-1-a", session=session, turn=turn, item=ids["1"])])
    assert find_said(store, session, prompt, 3_000) == 0
