"""The Store contract, run against every backend there is."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

import yester.store
from tests import finding
from tests.readings import every_item
from tests.stores import BACKENDS, with_store
from tests.table import each
from yester.errors import FeedExpired, UsageError
from yester.ingest.prepare import prepare_item
from yester.model import (
    DISTILLED,
    ECHO,
    Answered,
    Event,
    Feedback,
    Filters,
    Injection,
    Item,
    Muted,
    OwedStart,
    Paging,
    Project,
    Session,
    Skipped,
    Source,
    Spend,
    Turn,
    replace,
)
from yester.store import maintenance_of
from yester.store.figures import (
    Lag,
    content_counts,
    daily_figures,
    distilled_totals,
    filter_facets,
    middle_lag,
    project_parts,
    shown_totals,
    spending_by_day,
    spent_since,
)
from yester.text.document import tokens_of_length

DAY = 86_400_000


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


@pytest.mark.requirement("STO-01")
def test_a_store_is_opened_by_its_folder_or_by_a_url(tmp_path):
    url = f"sqlite://{tmp_path}/store"
    assert not yester.store.store_exists(url)
    with closing(yester.store.open_store(url, now=1)) as store:
        with store.transaction("places"):
            store.put_project(Project("name:shop", "shop"))
        for target in (tmp_path / "store", str(tmp_path / "store"), url):
            assert yester.store.store_exists(target)
            assert yester.store.store_location(target) == store.location
            with closing(yester.store.open_store(target, now=1)) as again:
                assert [one.name for one in again.projects()] == ["shop"]


@each("url", ["mysql://sam:hunter2@host/db", "sqlite://relative", "x://"])
def test_a_store_that_does_not_exist_is_named_with_what_to_write_instead(url):
    with pytest.raises(UsageError, match=r"sqlite:///FOLDER") as told:
        yester.store.open_store(url, now=1)
    assert url.partition(":")[0] in str(told.value)
    assert "hunter2" not in str(told.value)


def item(ref, body="", **more):
    more.setdefault("kind", "message")
    more.setdefault("project", "name:shop")
    more.setdefault("epoch", 1_000 * DAY)
    return Item(ref, body=body, **more)


def put(store, *items):
    with store.transaction("items"):
        return store.put([prepare_item(one) for one in items])


def refs(found):
    return [one.ref for one in found]


def found(store, query, filters=None, limit=100):
    found = finding.by_words(store, query.split(), filters or Filters(), limit)
    return refs(store.get([one.id for one in found]))


@pytest.mark.requirement("STO-02")
def test_an_item_comes_back_as_it_went_in(store):
    whole = Item(
        "r1", "observation", project="name:shop", session="s1", source="test", agent="claude-code",
        actor="Explore:1", role="assistant", prompt_number=3, epoch=5 * DAY, updated=6 * DAY,
        type="bugfix", title="The total was wrong", subtitle="rounding", body="Body ünïcode 数据",
        facts=("a fact", "another"), concepts=("gotcha",), tags=("money",),
        files_read=("a.py",), files_modified=("b/c.py",), sections={"learned": "use decimals"},
        tool="Edit", origin="user", trust=0.9, confidence=0.8, supersedes=0, discovery_tokens=77,
    )  # fmt: skip
    assert put(store, whole).added == 1
    (back,) = store.find_by_ref("r1")
    assert replace(back, id=0) == whole
    assert store.get([back.id]) == [back]


@pytest.mark.requirement("STO-02")
def test_identity_is_source_kind_and_ref(store):
    first = put(
        store, item("1", "one"), item("1", "two", kind="prompt"), item("1", "x", source="b")
    )
    assert (first.added, first.changed, first.unchanged) == (3, 0, 0)
    again = put(store, item("1", "one"))
    assert (again.added, again.changed, again.unchanged) == (0, 0, 1)
    new = put(store, item("1", "one, corrected"))
    assert (new.added, new.changed) == (0, 1)
    assert len(store.find_by_ref("1")) == 3


@pytest.mark.requirement("STO-02")
def test_a_changed_item_is_found_by_its_new_words_only(store):
    put(store, item("1", "the walrus sings", concepts=("old",), files_read=("old.py",)))
    put(store, item("1", "the carpenter weeps", concepts=("new",), files_read=("new.py",)))
    assert found(store, "walrus") == []
    assert found(store, "carpent") == ["1"]
    assert refs(store.select(Filters(files=("old.py",)), Paging(9))) == []
    assert refs(store.select(Filters(files=("new.py",)), Paging(9))) == ["1"]
    assert refs(store.select(Filters(concepts=("old",)), Paging(9))) == []
    assert finding.statistics(store, ["walrus"], Filters()).frequencies == {"walrus": 0}
    assert maintenance_of(store).check() == []


def test_the_same_identity_twice_in_one_batch_keeps_the_later(store):
    assert put(store, item("1", "early"), item("1", "late")).added == 1
    assert store.find_by_ref("1")[0].body == "late"


@pytest.mark.requirement("STO-01")
def test_a_failed_batch_leaves_nothing_behind(store):
    put(store, item("kept", "kept"))
    with pytest.raises(ZeroDivisionError), store.transaction("items"):
        store.put_project(Project("name:other", "other"))
        store.put([prepare_item(item("lost", "lost", project="name:other"))])
        raise ZeroDivisionError
    assert store.find_by_ref("lost") == []
    assert [p.name for p in store.projects()] == ["shop"]
    assert put(store, item("new", "new", project="name:other")).added == 1
    assert maintenance_of(store).check() == []


@pytest.mark.requirement("STO-01")
def test_what_is_committed_is_there_after_reopening(open_store):
    store = open_store()
    put(store, item("1", "remember the milk"))
    store.close()
    assert found(open_store(), "milk") == ["1"]


def test_two_open_stores_see_each_other(open_store):
    one, two = open_store(), open_store()
    put(one, item("1", "apple"))
    put(two, item("2", "apple"))
    put(one, item("3", "apple"))
    assert sorted(found(two, "appl")) == ["1", "2", "3"]
    assert one.check() == []


@pytest.mark.requirement("CAP-07")
def test_projects_with_one_name_get_different_readable_names(store):
    with store.transaction("items"):
        for key in ("git:example.org/acme/api", "git:example.org/other/api", "dir:/srv/api"):
            store.put_project(Project(key, "api"))
            store.put_project(Project(key, "api"))
    names = {project.key: project.name for project in store.projects()}
    assert names == {
        "git:example.org/acme/api": "api",
        "git:example.org/other/api": "other/api",
        "dir:/srv/api": "srv/api",
    }


@pytest.mark.requirement("CAP-07")
def test_a_project_merges_into_another_with_everything_it_has(store):
    put(
        store,
        item("1", "apple", project="name:old", session="s"),
        item("2", "apple", project="name:old", session="only-old"),
        item("3", "apple", project="name:new", session="s"),
        item("4", "apple", project="name:old", status="retired"),
    )
    with store.transaction("places"):
        assert store.merge_project("name:old", Project("name:new", "new")) == 3
        assert store.merge_project("name:old", Project("name:new", "new")) == 0
    assert [p.name for p in store.projects()] == ["new"]
    within = Filters(projects=("new",))
    assert sorted(found(store, "appl", within)) == ["1", "2", "3"]
    assert finding.statistics(store, ["appl"], within).frequencies == {"appl": 3}
    assert sorted(s.key for s in store.sessions(within, Paging(9))) == ["only-old", "s"]
    assert sorted(refs(store.select(Filters(session="s"), Paging(9)))) == ["1", "3"]
    assert maintenance_of(store).check() == []


@pytest.mark.requirement("CAP-07")
def test_a_project_with_nothing_to_merge_with_is_only_called_otherwise(store):
    put(store, item("1", "apple", project="git:x/old", session="s"), item("2", project="name:else"))
    with store.transaction("items"):
        store.put_project(Project("git:x/old", "old", "/code/old"))
        store.put_project(Project("git:x/sub", "sub", parent="git:x/old"))
    before = store.find_by_ref("1")[0]
    with store.transaction("places"):
        assert store.merge_project("git:x/old", Project("name:old", "old")) == 1
    assert store.find_by_ref("1")[0] == replace(before, project="name:old")
    assert Project("name:old", "old") in [replace(p, root="") for p in store.projects()]
    assert {p.key: p.parent for p in store.projects()}["git:x/sub"] == "name:old"
    assert store.select(Filters(projects=("git:x/old",)), Paging(9)) == []
    assert found(store, "appl", Filters(projects=("old",))) == ["1"]
    assert maintenance_of(store).check() == []


@pytest.mark.requirement("CAP-07")
def test_who_has_remembered_a_project_writes_to_what_it_was_merged_into(open_store):
    one, two = open_store(), open_store()
    put(one, item("1", "apple", project="name:old", session="s"), item("2", project="name:new"))
    with two.transaction("places"):
        two.merge_project("name:old", Project("name:new", "new"))
    put(one, item("3", "apple", project="name:old", session="s"))  # made anew, not a loose end
    assert {p.key for p in one.projects()} == {"name:new", "name:old"}
    assert one.find_by_ref("3")[0].project == "name:old"
    assert one.check() == []


def test_a_session_grows_and_keeps_its_title(store):
    with store.transaction("items"):
        store.put_session(Session("s", "claude-code", "name:shop", 50, 60, "/x", "main", "Title"))
        store.put_session(Session("s", "claude-code", "name:shop", 40, 90, "/y", "dev", ""))
    put(store, item("p", "x", kind="prompt", session="s", agent="claude-code"), item("m", "y"))
    (session,) = store.sessions(Filters(), Paging(10))
    assert (session.started, session.ended, session.title) == (40, 90, "Title")
    assert (session.cwd, session.branch) == ("/x", "dev")
    assert (session.prompts, session.items) == (1, 1)


@pytest.mark.requirement("STO-05")
def test_a_source_is_remembered(store):
    source = Source("/a.jsonl", "claude-code", 10, 20, 5, 2, "5:abc", {"prompts": 3})
    with store.transaction("items"):
        store.append([source, Skipped(source.agent, "progress", 2)])
        counts = {"progress": 1, "mode": 1}
        skipped = [Skipped(source.agent, reason, n) for reason, n in counts.items()]
        store.append([replace(source, offset=9), *skipped])
    assert next(iter(store.entries(Source, {"path": "/a.jsonl"})), None) == replace(
        source, offset=9
    )
    assert next(iter(store.entries(Source, {"path": "/b.jsonl"})), None) is None
    assert store.entries(Source, {"agent": source.agent}) == [replace(source, offset=9)]
    assert store.entries(Source, {"agent": "nobody"}) == []
    assert content_counts(store).skipped == {"progress": 3, "mode": 1}


FILTERED = [
    item("a", "needle", project="name:one", kind="prompt", session="sess-aaaaaa", epoch=10 * DAY),
    item("b", "needle", project="name:two", type="plan", kind="note", epoch=20 * DAY),
    item("c", "needle", project="name:two", tool="Bash", agent="codex", epoch=30 * DAY),
    item("d", "needle", project="name:two", concepts=("Gotcha",), epoch=40 * DAY),
    item("e", "needle", project="name:two", files_modified=("src/Auth/login.py",), epoch=50 * DAY),
    item("f", "needle", project="name:two", files_read=("/abs/src/auth/login.py",), epoch=60 * DAY),
]
FILTER_TABLE = [
    (Filters(), "abcdef"),
    (Filters(projects=("one",)), "a"),
    (Filters(projects=("name:one", "two")), "abcdef"),
    (Filters(projects=("three",)), ""),
    (Filters(kinds=("prompt", "note")), "ab"),
    (Filters(types=("PLAN",)), "b"),
    (Filters(tool="bash"), "c"),
    (Filters(agent="codex"), "c"),
    (Filters(session="sess-aaaaaa"), "a"),
    (Filters(session="sess-a"), "a"),
    (Filters(session="sess"), ""),
    (Filters(session="unknown"), ""),
    (Filters(concepts=("gotcha",)), "d"),
    (Filters(files=("login.py",)), "ef"),
    (Filters(files=("auth/login.py",)), "ef"),
    (Filters(files=("/abs/src/auth/login.py",)), "ef"),
    (Filters(files=("h/login.py",)), ""),
    (Filters(files=("l%.py",)), ""),
    (Filters(since=30 * DAY), "cdef"),
    (Filters(until=30 * DAY), "ab"),
    (Filters(since=20 * DAY, until=40 * DAY), "bc"),
    (Filters(projects=("two",), since=35 * DAY, files=("login.py",)), "ef"),
]


@pytest.mark.requirement("REC-09", "STO-03")
@pytest.mark.parametrize(("filters", "expected"), FILTER_TABLE)
def test_a_filter_lets_exactly_these_through(store, filters, expected):
    put(store, *FILTERED)
    assert "".join(sorted(found(store, "needl", filters))) == expected
    assert "".join(sorted(refs(store.select(filters, Paging(10))))) == expected


@pytest.mark.requirement("REC-09")
def test_newest_goes_by_time_both_ways_and_by_pages(store):
    put(store, *FILTERED)
    assert refs(store.select(Filters(), Paging(2))) == ["f", "e"]
    assert refs(store.select(Filters(), Paging(2, 2))) == ["d", "c"]
    assert refs(store.select(Filters(), Paging(2, oldest_first=True))) == ["a", "b"]


@pytest.mark.parametrize("status", ["retired", "archived", "superseded"])
def test_only_active_items_are_found(store, status):
    put(store, item("1", "needle"))
    put(store, item("1", "needle", status=status))
    assert found(store, "needl") == []
    assert store.select(Filters(), Paging(5)) == []
    assert maintenance_of(store).check() == []
    put(store, item("1", "needle"))
    assert found(store, "needl") == ["1"]


def test_rare_terms_decide_which_candidates_come_first(store):
    put(store, *(item(f"c{n}", "common words here") for n in range(50)))
    put(store, item("rare", "common zebra"))
    assert found(store, "common zebra", limit=1) == ["rare"]
    assert len(found(store, "common zebra", limit=20)) == 20


def test_a_project_that_holds_most_items_is_searched_exactly_too(open_store):
    one, two = open_store(), open_store()
    put(one, *(item(f"a{n}", "needle", project="name:big") for n in range(20)), item("b", "needle"))
    assert len(found(one, "needl", Filters(projects=("big",)))) == 20
    put(two, item("late", "needle", project="name:big"))
    assert len(found(one, "needl", Filters(projects=("big",)))) == 21
    put(two, item("a2", "needle, moved"))
    with two.transaction("places"):
        two.merge_project("name:shop", Project("name:else", "else"))
    assert "a2" in found(one, "needl", Filters(projects=("else",)))
    assert "a2" not in found(one, "needl", Filters(projects=("big",)))


@pytest.mark.requirement("REC-09")
def test_the_list_of_a_project_is_complete_however_many_others_have_the_word(store):
    """What is rarer has led somewhere already, and the word is newer everywhere else."""
    put(store, item("old", "walrus"))
    put(store, *(item(f"r{n}", "carpenter walrus") for n in range(110)))
    put(store, *(item(f"o{n}", "walrus", project="name:other") for n in range(2_001)))
    here = found(store, "walrus carpent", Filters(projects=("shop",)), 200)
    assert len(here) == 111
    assert here[-1] == "old"


def test_neighbours_are_those_before_and_behind_in_time_within_a_session(store):
    put(
        store,
        item("a1", "x", session="a", epoch=10),
        item("b1", "x", session="b", epoch=11),
        item("a2", "x", session="a", epoch=20),
        item("a3", "x", session="a", epoch=20),
        item("n1", "x", epoch=15),
        item("n2", "x", epoch=30),
        item("other", "x", epoch=20, project="name:other"),
    )
    ids = {i.ref: i.id for i in every_item(store)}
    names = {0: "-", **{id_: ref for ref, id_ in ids.items()}}
    beside = finding.neighbours(store, list(ids.values()))
    assert {names[i]: (names[b], names[a]) for i, (b, a) in beside.items()} == {
        "a1": ("-", "a2"),
        "a2": ("a1", "a3"),
        "a3": ("a2", "-"),
        "b1": ("-", "-"),
        "n1": ("-", "n2"),
        "n2": ("n1", "-"),
        "other": ("-", "-"),
    }


def test_terms_alike_begin_alike_both_ways(store):
    put(store, item("1", "authentication author authentic"), item("2", "auth config"))
    assert finding.alike(store, "auth")[0] in ("authent", "author")
    assert finding.alike(store, "configurationx") == ["config"]
    assert finding.alike(store, "zzzz") == []


def test_statistics_count_items_terms_and_lengths_per_project(store):
    put(
        store,
        item("1", "apple pear", project="name:one"),
        item("2", "apple", project="name:two"),
        item("3", "apple apple apple", project="name:two"),
    )
    everywhere = finding.statistics(store, ["appl", "pear", "none"], Filters())
    assert everywhere.items == 3
    assert everywhere.frequencies == {"appl": 3, "pear": 1, "none": 0}
    assert everywhere.lengths["message", 2] == pytest.approx(2.0)
    two = finding.statistics(store, ["appl", "pear"], Filters(projects=("two",)))
    assert (two.items, two.frequencies) == (2, {"appl": 2, "pear": 0})


@pytest.mark.requirement("STO-06")
def test_reindex_builds_the_same_index_from_the_rows_alone(store):
    put(store, *FILTERED, item("g", "needle", status="retired"))
    before = finding.statistics(store, ["needl"], Filters())
    with store.transaction("items"):
        assert maintenance_of(store).reindex() == 6
    assert finding.statistics(store, ["needl"], Filters()) == before
    assert sorted(found(store, "needl")) == list("abcdef")
    assert sorted(found(store, "needl", Filters(session="sess-aaaaaa"))) == ["a"]
    assert maintenance_of(store).check() == []


def test_counts_are_the_numbers_of_what_is_there(store):
    put(store, *FILTERED)
    counts = content_counts(store)
    assert counts.items == {"message": 4, "note": 1, "prompt": 1}
    assert (counts.projects, counts.sessions) == (2, 1)
    assert (counts.oldest, counts.newest) == (10 * DAY, 60 * DAY)
    assert counts.bytes > 0


# --- what hooks told -----------------------------------------------------------------------------


def session_of(store, key="s", agent="claude-code", project="name:shop", **more):
    with store.transaction("items"):
        return store.put_session(Session(key, agent, project, 100, 200, "/x", **more))


def event(id_, **more):
    return Event(id_, "PostToolUse", 5_000, **more)


@pytest.mark.requirement("CAP-03")
def test_an_event_is_kept_once_and_as_it_was_first(store):
    whole = Event(
        "2-1-a", "PostToolUseFailure", 5_000, 3, 7, "Explore:1", "Bash", True, 11, "short", 3_000,
        42,
    )  # fmt: skip
    with store.transaction("items"):
        store.append([whole, event("1-1-a", turn=7), event("3-1-a", turn=8), event("4-1-a")])
        store.append([replace(whole, tool="Read", turn=9), event("5-1-a", turn=7)])
        store.append([])
    assert store.entries(Event, {"turn": 7}, Paging(oldest_first=True)) == [
        event("1-1-a", turn=7),
        whole,
        event("5-1-a", turn=7),
    ]
    assert [one.id for one in store.entries(Event, {"turn": 8}, Paging(oldest_first=True))] == [
        "3-1-a"
    ]
    assert store.entries(Event, {"turn": 9}, Paging(oldest_first=True)) == []
    assert content_counts(store).events == 5


@pytest.mark.requirement("CAP-03")
def test_which_events_are_stored_can_be_asked(open_store):
    store = open_store()
    with store.transaction("items"):
        store.append([event("1-1-a"), event("2-1-a")])
    for one in (store, open_store()):
        assert {event.id for event in one.entries(Event, {"id": ["2-1-a", "9-9-z", "1-1-a"]})} == {
            "1-1-a",
            "2-1-a",
        }
        assert {event.id for event in one.entries(Event, {"id": ["9-9-z"]})} == set()
        assert {event.id for event in one.entries(Event, {"id": []})} == set()
    with pytest.raises(ZeroDivisionError), store.transaction("items"):
        store.append([event("3-1-a")])
        raise ZeroDivisionError
    assert {event.id for event in store.entries(Event, {"id": ["3-1-a"]})} == set()


@pytest.mark.requirement("DIS-11")
def test_the_lag_is_that_of_the_last_events(store):
    assert middle_lag(store, 5) == Lag(None, None)
    with store.transaction("items"):
        store.append([event(f"{n}-1-a", lag=n * 10) for n in (3, 1, 2)])
    assert middle_lag(store, 5) == Lag(20, 30)
    assert middle_lag(store, 1) == Lag(30, 30)


@pytest.mark.requirement("CAP-08")
def test_a_turn_is_one_per_session_and_key_and_its_latest_state_counts(store):
    one, other = session_of(store), session_of(store, "other")
    turn = Turn("t-1", one, 1, 2, 10, 20, "done", "/a.jsonl")
    with store.transaction("items"):
        (first,) = store.append([replace(turn, state="open", closing=0, ended=0)])
        assert store.append([turn]) == [first]
        assert store.append([replace(turn, session=other)]) != [first]
        (last,) = store.append([Turn("t-2", one, started=30)])
    assert last_turn(store, one, "t-1") == replace(turn, id=first)
    assert last_turn(store, one, "t-9") is None
    assert [
        found.key for found in store.entries(Turn, {"session": one}, Paging(oldest_first=True))
    ] == ["t-1", "t-2"]
    assert [
        found.key for found in store.entries(Turn, {"session": other}, Paging(oldest_first=True))
    ] == ["t-1"]
    assert store.entries(Turn, {"session": 99}, Paging(oldest_first=True)) == []
    assert last_turn(store, one).id == last
    with store.transaction("items"):
        changed = replace(last_turn(store, one), state="interrupted", prompt=5)
        assert store.append([changed]) == [last]
    assert last_turn(store, one) is None
    assert last_turn(store, one, "t-2") == changed


def last_turn(store, session, key=""):
    where = {"key": key} if key else {"state": "open"}
    return next(iter(store.entries(Turn, {"session": session, **where}, Paging(1))), None)


def test_without_a_key_the_last_open_turn_is_meant(store):
    session = session_of(store)
    with store.transaction("items"):
        for key, state in (("a", "open"), ("b", "open"), ("c", "done"), ("d", "failed")):
            store.append([Turn(key, session, started=1, state=state)])
    assert last_turn(store, session).key == "b"
    assert last_turn(store, session + 1) is None


@pytest.mark.requirement("CAP-03")
def test_a_session_is_found_by_its_client_with_its_number_of_prompts(store):
    assert store.session("s", "claude-code") is None
    id_ = session_of(store, title="Title", transcript="/a.jsonl")
    put(
        store,
        item("1", "x", kind="prompt", session="s", agent="claude-code"),
        item("2", "y", kind="prompt", session="s", agent="claude-code"),
        item("3", "z", session="s", agent="claude-code"),
    )
    found = store.session("s", "claude-code")
    assert (found.id, found.project, found.prompts) == (id_, "name:shop", 2)
    assert (found.title, found.transcript, found.cwd) == ("Title", "/a.jsonl", "/x")
    assert store.session("s", "codex") is None
    session_of(store, project="name:later")
    assert store.session("s", "claude-code").project == "name:shop"


def test_what_was_left_out_is_counted_by_reason_over_all_agents(store):
    with store.transaction("items"):
        store.append(
            [Skipped("claude-code", reason, n) for reason, n in {"short": 2, "off": 1}.items()]
        )
        store.append([Skipped("codex", reason, n) for reason, n in {"short": 3}.items()])
        store.append([Skipped("claude-code", reason, n) for reason, n in {"short": 1}.items()])
        store.append([Skipped("claude-code", reason, n) for reason, n in {}.items()])
    assert content_counts(store).skipped == {"short": 6, "off": 1}


@pytest.mark.requirement("DEL-02")
def test_what_an_agent_was_shown_is_a_list_in_order(store):
    one, other = session_of(store), session_of(store, "other")
    shown = [
        Injection(one, "SessionStart", 7, 0.0, 40, 1_000, "recent", 0),
        Injection(one, "UserPromptSubmit", 3, 0.75, 20, 2_000, "same project", 1),
        Injection(one, "UserPromptSubmit", 7, 0.5, 20, 2_000, "same project", 2),
    ]
    with store.transaction("items"):
        store.append(shown[:1])
        store.append([*shown[1:], Injection(other, "SessionStart", 9, 0.0, 1, 1_500)])
    lines = store.entries(Injection, {"session": one}, Paging(oldest_first=True))
    assert [replace(line, id=0) for line in lines] == shown
    assert [
        found.item
        for found in store.entries(Injection, {"session": other}, Paging(oldest_first=True))
    ] == [9]
    assert store.entries(Injection, {"session": 99}, Paging(oldest_first=True)) == []


@pytest.mark.requirement("DEL-14")
def test_the_start_that_is_owed_is_the_last_one_until_its_own_block_has_arrived(store):
    session = session_of(store)
    first, last = OwedStart("1-1-a", "startup", 1), OwedStart("2-1-a", "compact", 2)
    assert next(iter(store.entries(OwedStart, {"session": session})), None) is None
    with store.transaction("items"):
        store.append([replace(first, session=session)])
        store.append([replace(last, session=session)])
        store.retract(OwedStart, {"session": session, "event": first.event})
    assert next(iter(store.entries(OwedStart, {"session": session})), None) == replace(
        last, session=session
    )
    with store.transaction("items"):
        store.retract(OwedStart, {"session": session, "event": last.event})
    assert next(iter(store.entries(OwedStart, {"session": session})), None) is None
    assert first.followed_by(last) == last
    assert first.followed_by(OwedStart("3-1-a", "resume", 3)) == OwedStart("3-1-a", "startup", 3)


@pytest.mark.requirement("CAP-14")
def test_a_muted_session_stays_muted(open_store):
    store = open_store()
    assert {one.session for one in store.entries(Muted)} == set()
    with store.transaction("items"):
        store.append([Muted("a", 1)])
        store.append([Muted("a", 2)])
        store.append([Muted("b", 3)])
    assert (
        {one.session for one in store.entries(Muted)}
        == {one.session for one in open_store().entries(Muted)}
        == {"a", "b"}
    )


@pytest.mark.requirement("CAP-03")
def test_a_transcripts_item_takes_over_what_a_hook_stored(store):
    put(store, item("hook:s:1", "first words", concepts=("old",)), item("hook:s:2", "same words"))
    ids = {found.ref: found.id for found in every_item(store)}
    with store.transaction("items"):
        store.append([event("1-1-a", item=ids["hook:s:1"])])
    again = put(
        store,
        item("uuid-1", "first words, and more", alias="hook:s:1"),
        item("uuid-2", "same words", alias="hook:s:2"),
        item("uuid-3", "new words", alias="hook:s:3"),
    )
    assert (again.added, again.changed, again.unchanged) == (1, 1, 1)
    now = {found.ref: found.id for found in every_item(store)}
    assert now["uuid-1"] == ids["hook:s:1"]
    assert now["uuid-2"] == ids["hook:s:2"]
    assert len(now) == 3
    assert store.find_by_ref("hook:s:1") == store.find_by_ref("hook:s:2") == []
    assert store.find_by_ref("uuid-1")[0].body == "first words, and more"
    assert sorted(found(store, "word")) == ["uuid-1", "uuid-2", "uuid-3"]
    put(store, item("uuid-1", "first words, and more", alias="hook:s:1"))
    assert len(list(every_item(store))) == 3
    assert maintenance_of(store).check() == []


@pytest.mark.parametrize("other", [{"kind": "note"}, {"source": "codex"}])
def test_an_alias_of_another_kind_or_source_takes_nothing_over(store, other):
    put(store, item("hook:s:1", "words"))
    with store.transaction("items"):
        store.append([event("1-1-a")])
    put(store, item("uuid", "words", alias="hook:s:1", **other))
    assert sorted(refs(every_item(store))) == ["hook:s:1", "uuid"]


def test_an_item_that_is_known_adopts_nothing(store):
    put(store, item("uuid", "words"), item("hook:s:1", "words"))
    with store.transaction("items"):
        store.append([event("1-1-a")])
    put(store, item("uuid", "words, corrected", alias="hook:s:1"))
    assert {one.ref: one.body for one in every_item(store)} == {
        "uuid": "words, corrected", "hook:s:1": "words"
    }  # fmt: skip


@pytest.mark.requirement("CAP-07")
def test_turns_events_and_what_was_shown_go_with_a_merged_project(store):
    gone, kept = session_of(store, project="name:old"), session_of(store, project="name:new")
    moved = session_of(store, "only-old", project="name:old")
    with store.transaction("places"):
        for session in (gone, moved):
            (turn,) = store.append([Turn(f"t-{session}", session, started=1)])
            store.append([event(f"{session}-1-a", session=session, turn=turn)])
            store.append([Injection(session, "SessionStart", 1, 0.0, 1, 1)])
            store.append([replace(OwedStart(f"start-{session}", "startup", 1), session=session)])
        store.merge_project("name:old", Project("name:new", "new"))
    assert store.session("s", "claude-code").id == kept
    (turn,) = store.entries(Turn, {"session": kept}, Paging(oldest_first=True))
    assert [
        (one.id, one.session)
        for one in store.entries(Event, {"turn": turn.id}, Paging(oldest_first=True))
    ] == [(f"{gone}-1-a", kept)]
    assert len(store.entries(Injection, {"session": kept}, Paging(oldest_first=True))) == 1
    assert (
        store.entries(Turn, {"session": gone}, Paging(oldest_first=True))
        == store.entries(Injection, {"session": gone}, Paging(oldest_first=True))
        == []
    )
    assert (
        len(store.entries(Turn, {"session": moved}, Paging(oldest_first=True)))
        == len(store.entries(Injection, {"session": moved}, Paging(oldest_first=True)))
        == 1
    )
    assert next(iter(store.entries(OwedStart, {"session": kept})), None).event == f"start-{gone}"
    assert next(iter(store.entries(OwedStart, {"session": moved})), None).event == f"start-{moved}"
    assert next(iter(store.entries(OwedStart, {"session": gone})), None) is None


def test_closing_twice_is_harmless(store):
    store.close()
    store.close()


@given(st.text(max_size=300), st.text(max_size=40), st.text(min_size=1, max_size=40))
def test_any_text_can_be_stored_and_asked_for(tmp_path_factory, body, title, query):
    from yester.text.terms import query_terms

    store = yester.store.open_store(with_store(tmp_path_factory.mktemp("any")), now=1)
    try:
        clean = [text.encode("utf-8", "replace").decode() for text in (body, title)]
        put(store, item("1", clean[0], title=clean[1], tool=clean[1], type=clean[1]))
        filters = Filters(tool=query, types=(query,), files=(query,))
        finding.by_words(store, query_terms(query), filters, 5)
        store.select(
            Filters(tool=query, concepts=(query,), files=(query,), session=query), Paging(5)
        )
        assert maintenance_of(store).check() == []
    finally:
        store.close()


@pytest.mark.requirement("DIS-05")
def test_what_was_spent_is_summed_from_a_time_on_and_seen_by_others(store, open_store):
    with store.transaction("items"):
        store.append([Spend(5, "m", "turn/1", 10, 1, 0.1, outcome="ok")])
        (first,) = store.append([Spend(DAY, "m", "turn/1", 100, 10, 0.5, until=DAY + 9)])
        store.append([Spend(DAY + 1, "m", "turn/1", 1, 1, 0.25, until=DAY + 2)])
    other = open_store()
    assert spent_since(other, 0, DAY + 1) == (0.85, 123, 2)
    assert spent_since(other, DAY, DAY + 2) == (0.75, 112, 1)
    assert spent_since(other, 2 * DAY, DAY + 9) == (0.0, 0, 0)
    with other.transaction("items"):
        paid = Spend(DAY, "m", "turn/1", 50, 5, 0.2, until=DAY + 9, outcome="ok", id=first)
        other.append([paid])
    assert spent_since(store, DAY, DAY + 1) == (0.45, 57, 1)


@pytest.mark.requirement("DIS-05")
def test_spending_is_grouped_by_day_model_purpose_and_outcome(store):
    with store.transaction("items"):
        for epoch, model, outcome in (
            (1, "a", "ok"), (DAY - 1, "a", "ok"), (DAY, "a", "ok"), (DAY, "a", ""),
            (DAY, "b", "ok"),
        ):  # fmt: skip
            store.append([Spend(epoch, model, "turn/1", 3, 2, 0.5, outcome=outcome)])
    assert [astuple(row) for row in spending_by_day(store, 0)] == [
        ("1970-01-02", "a", "turn/1", "", 1, 3, 2, 0.5),
        ("1970-01-02", "a", "turn/1", "ok", 1, 3, 2, 0.5),
        ("1970-01-02", "b", "turn/1", "ok", 1, 3, 2, 0.5),
        ("1970-01-01", "a", "turn/1", "ok", 2, 6, 4, 1.0),
    ]
    assert len(spending_by_day(store, DAY)) == 3


@pytest.mark.requirement("DIS-05")
def test_a_call_entered_in_a_transaction_that_fails_was_never_entered(store):
    with pytest.raises(ZeroDivisionError), store.transaction("items"):
        store.append([Spend(5, "m", "turn/1", 10, 1, 0.1)])
        raise ZeroDivisionError
    assert spending_by_day(store, 0) == []


@pytest.mark.requirement("DEL-11")
def test_what_was_shown_counts_what_it_was_made_from(store):
    put(store, item("a", "one", discovery_tokens=40), item("b", "two"))
    one, two = (store.find_by_ref(ref)[0].id for ref in "ab")
    with store.transaction("items"):
        store.append(
            [Injection(1, "Start", one, 0.0, 5, 10), Injection(1, "Start", two, 0.0, 6, 10),
             Injection(1, "Start", 4711, 0.0, 7, 11), Injection(2, "Prompt", one, 0.0, 5, 3)]
        )  # fmt: skip
    assert [astuple(row) for row in shown_totals(store, 0)] == [
        ("Prompt", 1, 1, 5, 40),
        ("Start", 2, 3, 18, 40),
    ]
    assert [row.event for row in shown_totals(store, 10)] == ["Start"]
    assert [astuple(row) for row in distilled_totals(store)] == [("message", 1, 40, 1)]


@pytest.mark.requirement("DEL-11")
def test_what_reading_a_summary_costs_is_what_stands_in_its_sections(store):
    said = {"request": "make it fast", "learned": 'the index was missing\nit is "there" now'}
    summary = item("s", "", kind="summary", title="Fast", discovery_tokens=9, sections=said)
    put(store, summary)
    (row,) = distilled_totals(store)
    long = len("Fast") + sum(len(name) + len(text) + 2 for name, text in said.items())
    assert astuple(row) == ("summary", 1, 9, tokens_of_length(long))


def test_the_ledger_is_read_newest_first_page_by_page_or_from_a_line_on(store):
    put(store, item("a"), item("b"))
    with store.transaction("items"):
        first = store.put_session(Session("s1", "claude-code", "name:shop"))
        other = store.put_session(Session("s2", "claude-code", "name:shop"))
        store.append(
            [Injection(s, "Start", i, 0.5, 7, 9) for s, i in ((first, 1), (first, 2), (other, 1))]
        )
    lines = store.entries(Injection, {}, Paging(9))
    assert [(line.id, line.session, line.item) for line in lines] == [
        (3, other, 1), (2, first, 2), (1, first, 1),
    ]  # fmt: skip
    assert store.entries(Injection, {}, Paging(1)) == lines[:1]
    assert store.entries(Injection, {}, Paging(9, behind=(3,))) == lines[1:]
    assert store.entries(Injection, {"session": first}, Paging(9)) == lines[1:]
    assert store.entries(Injection, {"item": 1}, Paging(9)) == [lines[0], lines[2]]
    assert store.entries(Injection, {}, Paging(9, oldest_first=True, behind=(0,))) == lines[::-1]
    assert store.entries(Injection, {}, Paging(9, oldest_first=True, behind=(2,))) == lines[:1]


def test_feedback_is_read_newest_first_page_by_page(store):
    put(store, item("a"), item("b"))
    with store.transaction("items"):
        store.append([Feedback(1, "opened", 5), Feedback(2, "useful", 6, 3)])
    newest, oldest = store.entries(Feedback, {}, Paging(9))
    assert (newest.item, newest.what, newest.session) == (2, "useful", 3)
    assert store.entries(Feedback, {}, Paging(9, behind=(newest.id,))) == [oldest]
    assert store.entries(Feedback, {"item": 1}, Paging(9)) == [oldest]


def test_the_feed_tells_what_others_have_committed_and_nothing_twice(store, open_store):
    other = open_store()
    lines, start = store.feed()
    assert lines == []
    assert store.feed(start) == ([], start)
    put(other, item("1", "milk"), item("2", "bread"))
    lines, behind = store.feed(start, 1)
    assert [line.row.ref for line in lines] == ["1"]
    assert lines[-1].cursor == behind
    lines, behind = store.feed(behind)
    assert [line.row.ref for line in lines] == ["2"]
    with other.transaction("items"):
        other.append([Injection(0, "Start", 1, 0.5, 7, 9)])
    lines, end = store.feed(behind)
    assert [line.row.item for line in lines] == [1]
    assert store.feed(end) == ([], end)
    assert len(store.feed(start)[0]) == 3
    assert other.feed()[1] == end
    for foreign in ("900-900", "no cursor"):
        with pytest.raises(FeedExpired):
            store.feed(foreign)


def test_a_session_has_a_number(store):
    put(store, item("a", session="s1", kind="prompt"), item("b", session="s1"))
    (session,) = store.sessions(Filters(), Paging(9))
    assert next(iter(store.sessions(Filters(session_id=session.id))), None) == session
    assert (session.prompts, session.items) == (1, 2)
    assert next(iter(store.sessions(Filters(session_id=99))), None) is None


def test_sessions_come_oldest_first_on_request(store):
    with store.transaction("items"):
        for key, ended in (("s1", 5), ("s2", 9), ("s3", 7)):
            store.put_session(Session(key, "x", "name:shop", 1, ended))
    assert [one.key for one in store.sessions(Filters(), Paging(9))] == ["s2", "s3", "s1"]
    assert [one.key for one in store.sessions(Filters(), Paging(2, 1, oldest_first=True))] == [
        "s3",
        "s2",
    ]


def test_projects_and_facets_are_counted(store):
    put(
        store,
        item("a", session="s1", type="bugfix", concepts=("Gotcha",)),
        item("b", kind="prompt", type="bugfix", concepts=("gotcha", "pattern")),
        item("c", project="name:bakery", status="archived"),
    )
    bakery, shop = project_parts(store)
    assert (bakery.project.name, dict(bakery.items)) == ("bakery", {})
    assert dict(shop.items) == {"message": 1, "prompt": 1}
    assert (shop.sessions, shop.last) == (1, 1_000 * DAY)
    facets = filter_facets(store, 9)
    assert dict(facets.kinds) == {"message": 1, "prompt": 1}
    assert dict(facets.types) == {"bugfix": 2}
    assert list(facets.concepts.items()) == [("gotcha", 2), ("pattern", 1)]
    assert list(filter_facets(store, 1).concepts) == ["gotcha"]
    assert dict(facets.agents) == {"": 1}


# --- day by day -----------------------------------------------------------------------------------


def test_days_say_what_happened_on_them(store):
    put(
        store,
        item("1", "a", type="bugfix", kind="observation", epoch=10 * DAY, discovery_tokens=70),
        item("2", "b", epoch=10 * DAY + 5),
        item("3", "c", epoch=11 * DAY - 1),
        item("4", "d", epoch=11 * DAY),
        item("5", "e", epoch=9 * DAY),
        item("6", "f", epoch=11 * DAY, status="retired"),
    )
    (id_,) = [one.id for one in store.find_by_ref("1")]
    with store.transaction("items"):
        store.append([
            Injection(1, "SessionStart", id_, 0.5, 10, 11 * DAY),
            Injection(1, "SessionStart", id_, 0.5, 12, 11 * DAY + 1),
            Injection(1, "SessionStart", id_, 0.5, 12, 9 * DAY),
        ])  # fmt: skip
        store.append([
            Event(f"e{n}", "Stop", epoch=10 * DAY + n, lag=n) for n in range(1, 101)
        ])  # fmt: skip
        store.append(
            [
                Answered(at // DAY, ms)
                for at, ms in [(10 * DAY, 5), (10 * DAY, 5), (10 * DAY + 1, 9), (9 * DAY, 1)]
            ]
        )
        store.append([Answered(at // DAY, ms) for at, ms in [(10 * DAY, -3)]])
    daily = daily_figures(store, 10 * DAY + 77)
    assert daily.items == {"bugfix": {10: 1}, "message": {10: 2, 11: 1}}
    assert daily.shown == {11: (2, 22, 140, 0)}
    assert daily.lags == {10: Lag(51, 100)}
    assert daily.answers == {10: Lag(5, 9)}


def test_what_was_made_of_what_is_known_both_ways(store):
    put(store, item("m1", "said", epoch=5), item("m2", "done", epoch=3))
    ids = {one.ref: one.id for one in every_item(store)}
    made = {
        "o1": [(-1, ids["m1"]), (0, ids["m1"]), (1, ids["m2"]), (2, 999)],
        "o2": [(-1, ids["m1"])],
    }
    observed = {"kind": "observation", "source": DISTILLED}
    entries = [
        replace(prepare_item(item("o1", "found", **observed)), evidence=tuple(made["o1"])),
        replace(
            prepare_item(item("o2", "gone", status="retired", **observed)),
            evidence=tuple(made["o2"]),
        ),
    ]
    for _ in range(2):  # the second time nothing else is different
        with store.transaction("items"):
            store.put(entries)
    ids = {one.ref: one.id for one in every_item(store)}
    everything = list(ids.values())
    one, first, last = ids["o1"], ids["m2"], ids["m1"]
    assert store.evidence(everything)[one] == ((1, first), (-1, last), (0, last))  # as it happened
    assert store.evidence(everything, into=True) == {
        last: ((-1, one), (0, one)),
        first: ((1, one),),
    }
    assert store.evidence([]) == store.evidence([], into=True) == {}
    with store.transaction("items"):
        store.put([replace(entries[0], evidence=None), replace(entries[1], evidence=())])
    assert store.evidence(everything).keys() == {one}


@pytest.mark.requirement("CAP-11")
def test_an_echo_is_kept_for_those_who_look_and_found_by_no_search(store):
    put(store, item("a", "the ledger listens on a port"))
    put(store, item("b", "the ledger listens on a port", status=ECHO, session="s1"))
    (echo,) = store.find_by_ref("b")
    for _ in range(2):
        assert found(store, "ledger") == ["a"]
        assert [one.ref for one in store.select(Filters(), Paging(9))] == ["a"]
        assert [one.ref for one in store.select(Filters(echoes=True), Paging(9))] == ["b", "a"]
        assert finding.statistics(store, ["ledger"], Filters()).frequencies == {"ledger": 1}
        assert echo.id not in store.unembedded(9)
        assert maintenance_of(store).check() == []
        with store.transaction("items"):
            maintenance_of(store).reindex()
    (session,) = store.sessions(Filters(session="s1"), Paging(1))
    assert [one.ref for one, _ in store.history(session.id, (), 9, (0, 0), 9)] == ["b"]
    put(store, item("b", "the ledger listens on a port", session="s1"))
    assert sorted(found(store, "ledger")) == ["a", "b"]
