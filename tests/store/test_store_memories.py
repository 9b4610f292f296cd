"""Structured memories in a store, run against every backend: whole, versioned, gone when gone."""

from __future__ import annotations

import numpy as np
import pytest

from tests import finding
from tests.store.test_store import DAY, found, item, put, refs
from tests.stores import BACKENDS
from yester.errors import StoreChanged
from yester.ingest.prepare import prepare_item
from yester.memories.lifecycle import successor_id
from yester.model import Change, Filters, Memo, Paging, Project, replace
from yester.store import maintenance_of
from yester.store.figures import tag_counts

NOT_ACTIVE = ("retired", "archived", "superseded")
CONTENT = {"decision": "Use UTC ✓", "rationale": ["a", "b\nc"], "active": True}


@pytest.fixture(params=BACKENDS)
def open_store(request, tmp_path):
    """Opens the same store again and again; everything is closed at the end."""
    opened = []

    def open_():
        opened.append(BACKENDS[request.param](tmp_path / "store"))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


def memory(ref, body="", **more):
    more.setdefault("type", "decision")
    more.setdefault("title", body)
    return item(ref, body, kind="memory", **more)


def memo(ref, body="", **more):
    return Memo(memory(ref, body, **more), ref, content=CONTENT, since=5, reason="because")


def entry(memo):
    return prepare_item(memo.item)


def write(store, memo, what="create", act=0):
    before = None if what == "create" else {"title": "old"}
    with store.transaction("memories"):
        change = Change(memo.item.id, 7, "sam", what, "why not", before, {"title": "new"}, act)
        id_ = store.put_memo(entry(memo), memo, change)
    return store.memos(ids=[id_])[0]


def with_status(memo, status):
    return replace(memo, item=replace(memo.item, status=status))


@pytest.mark.requirement("MEM-01")
def test_a_memory_comes_back_as_it_went_in(open_store):
    given = Memo(
        memory("r", "Use UTC", tags=("time", "db"), files_read=("a b/c.py",), confidence=0.7,
               origin="user", trust=1.0, updated=1_001 * DAY, sections={"decision": "Use UTC"}),
        "use-utc", "path", "src/**", CONTENT, since=5, reason="said so",
    )  # fmt: skip
    back = write(open_store(), given)
    assert replace(back, item=replace(back.item, id=0), version=0) == given
    assert back.version == 1
    assert open_store().memos(ids=[back.item.id, 99]) == [back]
    assert open_store().memos(slug="use-utc") == [back]


@pytest.mark.requirement("MEM-01", "MEM-02")
def test_every_write_adds_a_line_to_the_history_and_a_version(store):
    one = write(store, memo("a", "first"))
    two = write(store, replace(one, reason="other"), "update")
    assert (two.item.id, two.version, two.reason) == (one.item.id, 2, "other")
    later, earlier = store.entries(Change, {"item": one.item.id})
    assert (later.what, later.who, later.why, later.epoch) == ("update", "sam", "why not", 7)
    assert (later.before, later.after) == ({"title": "old"}, {"title": "new"})
    assert (earlier.what, earlier.before) == ("create", None)
    assert later.id > earlier.id
    assert store.entries(Change, {}, Paging(1)) == [later]


@pytest.mark.requirement("MEM-02")
def test_who_writes_what_they_have_not_seen_is_told_and_writes_nothing(store):
    one = write(store, memo("a", "first"))
    write(store, with_status(one, "active"), "update")
    with pytest.raises(StoreChanged, match="'a' has been written by somebody else meanwhile"):
        write(store, one, "update")
    with pytest.raises(StoreChanged):
        write(store, memo("a", "the same identity as if it were new"))
    assert len(store.entries(Change, {"item": one.item.id})) == 2
    assert maintenance_of(store).check() == []


@pytest.mark.requirement("MEM-02")
def test_a_memory_and_its_history_are_written_together_or_not_at_all(store):
    one = write(store, memo("a", "first"))
    with pytest.raises(ZeroDivisionError), store.transaction("memories"):
        store.put_memo(
            entry(with_status(one, "retired")), with_status(one, "retired"),
            Change(one.item.id, 7, "sam", "retire"),
        )  # fmt: skip
        raise ZeroDivisionError
    assert store.memos(ids=[one.item.id]) == [one]
    assert [change.what for change in store.entries(Change, {"item": one.item.id})] == ["create"]
    assert tag_counts(store) == {}


@pytest.mark.requirement("MEM-02")
def test_changes_made_together_are_found_together(store):
    one, two = write(store, memo("a", "first")), write(store, memo("b", "second"))
    with store.transaction("memories"):
        act = 0
        for memo_ in (one, two):
            change = Change(memo_.item.id, 7, "sam", "update", act=act)
            store.put_memo(entry(memo_), memo_, change)
            act = store.entries(Change, {"item": memo_.item.id}, Paging(1))[0].act
    assert [c.item for c in store.entries(Change, {"act": act})] == [two.item.id, one.item.id]
    later = write(store, memo("c", "third"))
    assert store.entries(Change, {"item": later.item.id})[0].act > act


@pytest.mark.requirement("MEM-02")
@pytest.mark.parametrize("status", NOT_ACTIVE)
def test_what_is_not_active_is_supplied_by_no_way_of_finding(store, status):
    seen = {
        "files_read": ("src/db.py",),
        "tags": ("utc",),
        "session": "s",
        "agent": "x",
        "concepts": ("c",),
    }
    one = write(store, memo("a", "walrus needle", **seen))
    put(store, item("before", "walrus", epoch=999 * DAY, **seen))
    put(store, item("after", "walrus", epoch=1_001 * DAY, **seen))
    vector = np.ones(64, np.float32) / 8
    with store.transaction("items"):
        store.use_model("m")
        store.put_vectors(one.item.id, "m", [vector])
    before, after = (store.find_by_ref(ref)[0].id for ref in ("before", "after"))
    id_ = one.item.id
    assert found(store, "needl") == ["a"]
    assert finding.nearest(store, vector, "m", Filters(), 9)[0][0] == id_
    assert finding.neighbours(store, [before])[before] == (0, id_)
    gone = write(store, with_status(one, status), "retire")
    assert gone.item.status == status
    for filters in (Filters(), Filters(projects=("shop",)), Filters(kinds=("memory",))):
        assert "a" not in found(store, "walrus needl", filters)
        assert "a" not in refs(store.select(filters, Paging(9)))
        assert id_ not in finding.touching(store, ["src/db.py"], filters, 9)
        assert id_ not in dict(finding.nearest(store, vector, "m", filters, 9))
    assert finding.neighbours(store, [before])[before] == (0, after)
    assert finding.cosines(store, vector, "m", [id_]) == {}
    assert id_ not in store.unembedded(9)
    assert finding.alike(store, "needle") == []
    assert tag_counts(store) == {}
    assert store.memos(Filters()) == []
    assert store.memos(Filters(), Paging(statuses=(status,))) == [gone]
    with store.transaction("items"):
        maintenance_of(store).reindex()
    assert found(store, "needl") == []
    assert maintenance_of(store).check() == []
    back = write(store, with_status(gone, "active"), "restore")
    assert found(store, "needl") == ["a"]
    assert finding.touching(store, ["src/db.py"], Filters(), 9).keys() >= {back.item.id}


@pytest.mark.requirement("MEM-02")
@pytest.mark.parametrize("status", ["active", *NOT_ACTIVE])
def test_putting_an_item_changes_no_structured_memory(store, status):
    kept = write(store, with_status(memo("a", "as it was"), status))
    assert put(store, memory("a", "as an import has it")).unchanged == 1
    assert store.memos(ids=[kept.item.id]) == [kept]


@pytest.mark.requirement("MEM-02")
def test_a_plain_memory_that_was_retired_is_not_brought_back_by_an_import(store):
    put(store, memory("a", "walrus", status="retired"))
    assert put(store, memory("a", "walrus")).unchanged == 1
    assert found(store, "walrus") == []


@pytest.mark.requirement("MEM-02")
def test_what_was_let_go_is_gone_and_does_not_come_back(store):
    kept = write(store, memo("kept", "about walruses"))
    gone = write(store, memo("a", "walrus", files_read=("x.py",), tags=("sea",)))
    with store.transaction("memories"):
        store.remove([gone.item.id], (9, "grace over"))
    assert store.memos(ids=[gone.item.id]) == []
    assert store.entries(Change, {"item": gone.item.id}) == []
    assert store.find_by_ref("a") == []
    assert found(store, "walrus") == ["kept"]
    assert tag_counts(store) == {}
    assert store.was_dropped("", "a")
    assert not store.was_dropped("", "kept")
    assert put(store, memory("a", "walrus")).unchanged == 1
    assert store.find_by_ref("a") == []
    assert maintenance_of(store).check() == []
    new = write(store, memo("new", "another"))
    assert new.item.id > gone.item.id > kept.item.id


def test_no_id_is_given_twice_whoever_opens_the_store(open_store):
    store = open_store()
    one = write(store, memo("a", "first"))
    with store.transaction("memories"):
        store.remove([one.item.id], (9, ""))
    store.close()
    later = open_store()
    put(later, item("b", "second"))
    assert later.find_by_ref("b")[0].id > one.item.id


@pytest.mark.requirement("MEM-01")
def test_memories_are_listed_by_status_type_project_and_tag_the_last_written_first(store):
    for number, (ref, more) in enumerate({
        "a": {"tags": ("x", "y")}, "b": {"tags": ("x",), "type": "runbook"},
        "c": {"project": "name:blog"}, "d": {"status": "archived", "tags": ("x",)},
    }.items()):  # fmt: skip
        write(store, memo(ref, ref, updated=(2_000 - number) * DAY, **more))
    put(store, item("no memory", "x"))

    def listed(filters=Filters(), tags=(), **paging):  # noqa: B008
        return [one.slug for one in store.memos(filters, Paging(**paging), tags=tags)]

    assert listed() == ["a", "b", "c"]
    assert listed(limit=1, offset=1) == ["b"]
    assert listed(Filters(types=("runbook",))) == ["b"]
    assert listed(Filters(projects=("shop",))) == ["a", "b"]
    assert listed(tags=("x",)) == ["a", "b"]
    assert listed(tags=("x", "y")) == ["a"]
    assert listed(statuses=("active", "archived")) == ["a", "b", "c", "d"]
    assert tag_counts(store) == {"x": 2, "y": 1}


def test_a_memory_a_program_gave_is_one_too(store):
    put(store, memory("plain", "just a text", tags=("x",), updated=7))
    (one,) = store.memos(Filters())
    assert (one.version, one.slug, one.content) == (
        0,
        f"item-{one.item.id}",
        {"text": "just a text"},
    )
    again = write(store, with_status(one, "archived"), "archive")
    assert (again.version, again.item.id, again.item.status) == (1, one.item.id, "archived")


def test_a_slug_is_made_free_within_its_project(store):
    with store.transaction("items"):
        store.put_project(Project("name:shop", "shop"))
    assert store.free_slug("name:shop", "use-utc") == "use-utc"
    one = write(store, replace(memo("r", "x"), slug="use-utc"))
    assert store.free_slug("name:shop", "use-utc") == "use-utc-2"
    assert store.free_slug("name:blog", "use-utc") == "use-utc"
    with store.transaction("memories"):
        store.remove([one.item.id], (9, ""))
    assert store.free_slug("name:shop", "use-utc") == "use-utc-2"
    long = "a" * 80
    write(store, replace(memo("s", "x"), slug=long))
    assert store.free_slug("name:shop", long) == "a" * 72 + "-2"


@pytest.mark.requirement("DIS-08")
def test_what_replaces_a_memory_is_found_from_it(store):
    old = write(store, memo("old", "first"))
    assert successor_id(store, old.item.id) == 0
    new = write(store, memo("new", "second", supersedes=old.item.id))
    assert successor_id(store, old.item.id) == new.item.id
    assert successor_id(store, 0) == 0


@pytest.mark.requirement("MEM-05")
def test_the_time_of_a_candidate_is_a_memorys_last_write_and_an_items_own(store):
    put(store, memory("m", "walrus", epoch=DAY, updated=9 * DAY), item("i", "walrus", epoch=DAY))
    times = {one.kind: one.epoch for one in finding.by_words(store, ["walrus"])}
    assert times == {"memory": 9 * DAY, "message": DAY}


def test_a_project_that_becomes_another_takes_its_memories_along(store):
    with store.transaction("items"):
        store.put_project(Project("name:shop", "shop"))
    one = write(store, memo("a", "walrus"))
    with store.transaction("places"):
        store.merge_project("name:shop", Project("name:new", "new"))
    (moved,) = store.memos(Filters(projects=("new",)))
    assert (moved.item.project, moved.slug, moved.version) == ("name:new", one.slug, 1)


@pytest.mark.requirement("MEM-06")
def test_the_file_of_a_memory_is_kept_with_the_version_it_was_read_into(open_store):
    store = open_store()
    one, other = write(store, memo("a", "first")), write(store, memo("b", "second"))
    assert store.memo_files([one.item.id, other.item.id]) == {}
    with store.transaction("items"):
        store.put_memo_file(one.item.id, b"\x00{}\xff", "hash")
    write(store, replace(one, reason="other"), "update")
    assert open_store().memo_files([one.item.id, other.item.id, 99]) == {
        one.item.id: (b"\x00{}\xff", "hash", 1)
    }
    with store.transaction("memories"):
        store.remove([one.item.id], (9, "gone"))
    assert store.memo_files([one.item.id]) == {}
