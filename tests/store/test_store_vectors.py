"""Vectors in a store, run against every backend: exact, filtered before, never of what is gone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import finding
from tests.readings import every_item
from tests.store.test_store import DAY, FILTER_TABLE, FILTERED, item, put, refs
from tests.stores import BACKENDS
from yester.ingest.prepare import prepare_item
from yester.model import Filters, Paging, Probe, Project
from yester.store import maintenance_of
from yester.store.figures import content_counts, has_vectors

pytestmark = pytest.mark.requirement("REC-03")

DIMS, MODEL, OTHER = 64, "model-one", "model-two"
EVERYTHING = Filters()
MANY = 5_000
NEAR = [*range(400, 4_400, 400)]  # the places of those near the question


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


def units(seed, number=1, dims=DIMS):
    rows = np.random.default_rng(seed).normal(size=(number, dims)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def towards(vector, cosine, seed=0):
    """A vector of length one with this cosine to another."""
    aside = units(seed, 1, len(vector))[0]
    aside -= (aside @ vector) * vector
    aside /= np.linalg.norm(aside)
    return (cosine * vector + (1 - cosine**2) ** 0.5 * aside).astype(np.float32)


QUERY = units(99)[0]


def embed(store, vectors, model=MODEL):
    """ref → vectors of its parts"""
    ids = {ref: store.find_by_ref(ref)[0].id for ref in vectors}
    with store.transaction("items"):
        for ref, parts in vectors.items():
            store.put_vectors(ids[ref], model, list(parts))


def filled(store, vectors, **more):
    put(store, *(item(ref, f"text {ref}", **more) for ref in vectors))
    embed(store, vectors)


def nearest(store, filters=EVERYTHING, limit=100, vector=QUERY, model=MODEL):
    found = finding.nearest(store, vector, model, filters, limit)
    names = {one.id: one.ref for one in store.get([id_ for id_, _ in found])}
    cosines = [near.cosine for _, near in found]
    assert cosines == sorted(cosines, reverse=True)
    return {names[id_]: near.cosine for id_, near in found}


def brute_force(vectors, query=QUERY):
    return {ref: max(float(part @ query) for part in parts) for ref, parts in vectors.items()}


# --- nearest -------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=25), st.integers(0, 2**31))
def test_the_nearest_are_those_of_comparing_each_with_each(tmp_path_factory, parts, seed):
    for name, open_ in BACKENDS.items():
        store = open_(tmp_path_factory.mktemp(name))
        try:
            vectors = {f"r{n}": units(seed + n, parts_) for n, parts_ in enumerate(parts)}
            filled(store, vectors)
            expected = brute_force(vectors)
            assert nearest(store) == pytest.approx(expected, abs=0.01)
            best = nearest(store, limit=3)
            worst_in = min(expected[ref] for ref in best)
            worst_out = max((expected[ref] for ref in expected if ref not in best), default=-2)
            assert len(best) == min(3, len(parts))
            assert worst_in >= worst_out - 0.01
        finally:
            store.close()


@pytest.mark.parametrize("dims", [16, 40, 256, 384])
def test_vectors_of_any_length_can_be_stored(store, dims):
    query = units(5, 1, dims)[0]
    filled(store, {"near": [towards(query, 0.9)], "far": [towards(query, 0.1)]})
    found = nearest(store, vector=query)
    assert found == pytest.approx({"near": 0.9, "far": 0.1}, abs=0.01)
    assert list(found) == ["near", "far"]


def test_the_nearest_part_speaks_for_the_item_which_says_how_many_it_has(store):
    three = [towards(QUERY, cosine, n) for n, cosine in enumerate((0.2, 0.8, -0.5))]
    filled(store, {"three": three, "one": [towards(QUERY, 0.7)]})
    assert nearest(store) == pytest.approx({"three": 0.8, "one": 0.7}, abs=0.01)
    assert [near.parts for _, near in finding.nearest(store, QUERY, MODEL, EVERYTHING, 9)] == [3, 1]


def test_cosines_of_given_items_are_the_same_as_those_found(store):
    vectors = {f"r{n}": units(n, 1 + n % 3) for n in range(20)}
    filled(store, vectors)
    put(store, item("bare", "without a vector"))
    ids = [one.id for one in every_item(store)]
    by_id = dict(finding.nearest(store, QUERY, MODEL, EVERYTHING, 100))
    found = finding.cosines(store, QUERY, MODEL, ids)
    assert found.keys() == by_id.keys()
    for id_, near in found.items():
        assert near == pytest.approx(by_id[id_], abs=1e-6)
    assert len(by_id) == 20
    assert finding.cosines(store, QUERY, MODEL, ids[:2]).keys() == set(ids[:2])
    assert (
        finding.cosines(store, QUERY, MODEL, []) == finding.cosines(store, QUERY, OTHER, ids) == {}
    )


def test_an_empty_store_and_an_unknown_model_have_nothing_near(store):
    assert finding.nearest(store, QUERY, MODEL, EVERYTHING, 5) == []
    filled(store, {"a": units(1)})
    assert finding.nearest(store, QUERY, OTHER, EVERYTHING, 5) == []
    assert finding.nearest(store, QUERY, MODEL, EVERYTHING, 0) == []


def test_there_are_vectors_as_soon_as_one_is_stored(store):
    put(store, item("a", "text"))
    assert not has_vectors(store)
    embed(store, {"a": units(1, 3)})
    assert has_vectors(store)
    assert (content_counts(store).vectors, content_counts(store).unembedded) == (1, 0)


# --- filters -------------------------------------------------------------------------------------


@pytest.mark.requirement("REC-09")
@pytest.mark.parametrize(("filters", "expected"), FILTER_TABLE)
def test_a_filter_lets_exactly_these_vectors_through(store, filters, expected):
    put(store, *FILTERED)
    embed(store, {one.ref: units(n, 2) for n, one in enumerate(FILTERED)})
    assert "".join(sorted(nearest(store, filters))) == expected
    ids = {one.id: one.ref for one in every_item(store)}
    passing = [id_ for id_, ref in ids.items() if ref in expected]
    pairs = store.around(Probe(filters), passing, (), ())
    beside = {ids[one.id] for one in pairs.candidates}
    assert {ids[id_] for id_ in pairs.passing} == beside & set(expected)


@pytest.fixture(scope="module", params=BACKENDS)
def large(request, tmp_path_factory):
    """Many vectors; those of the filters below are the farthest from the question of all."""
    store = BACKENDS[request.param](tmp_path_factory.mktemp("large"))
    vectors = units(7, MANY)
    vectors[:3] = -QUERY
    for at in NEAR:
        vectors[at] = towards(QUERY, 0.6 + 0.03 * (at % 11), at)
    with store.transaction("items"):
        rare = {"project": "name:small", "epoch": 10 * DAY}
        rare |= {"kind": "note", "files_read": ("rare.py",)}
        common = {"project": "name:large", "epoch": 50 * DAY}
        store.put(
            [
                prepare_item(item(f"r{at}", f"text {at}", **(rare if at < 3 else common)))
                for at in range(MANY)
            ]
        )
        for at, one in enumerate(every_item(store)):
            store.put_vectors(one.id, MODEL, [vectors[at]])
    yield store, vectors
    store.close()


@pytest.mark.requirement("REC-09")
@pytest.mark.parametrize(
    "filters",
    [
        Filters(projects=("small",)),
        Filters(projects=("name:small",)),
        Filters(projects=("small", "unknown")),
        Filters(kinds=("note",)),
        Filters(until=20 * DAY),
        Filters(files=("rare.py",)),
        Filters(projects=("small",), kinds=("note",), since=DAY, until=20 * DAY),
    ],
)
def test_the_three_that_pass_are_found_among_thousands_that_are_nearer(large, filters):
    store, _ = large
    found = nearest(store, filters, 200)
    assert found == pytest.approx({"r0": -1.0, "r1": -1.0, "r2": -1.0}, abs=0.01)


def test_among_thousands_the_nearest_are_the_nearest(large):
    store, vectors = large
    true = np.argsort(-(vectors @ QUERY))[:10]
    assert sorted(true.tolist()) == NEAR
    assert list(nearest(store, limit=10)) == [f"r{at}" for at in true]


def test_a_filter_takes_none_of_the_nearest_away(large):
    store, _ = large
    most = Filters(kinds=("message",))
    assert list(nearest(store, most, 20)) == list(nearest(store, limit=20))
    assert list(nearest(store, Filters(projects=("large",)), 20)) == list(nearest(store, limit=20))


def test_a_project_nobody_knows_has_nothing_near(large):
    assert nearest(large[0], Filters(projects=("unknown",))) == {}


def test_a_project_that_moved_takes_its_vectors_along(open_store):
    one, two = open_store(), open_store()
    filled(one, {"a": units(1), "b": units(2)}, project="name:old")
    filled(one, {"c": units(3)}, project="name:new")
    assert set(nearest(two, Filters(projects=("new",)))) == {"c"}
    with one.transaction("places"):
        one.merge_project("name:old", Project("name:new", "new"))
    for store in (one, two):
        assert set(nearest(store, Filters(projects=("new",)))) == {"a", "b", "c"}


# --- what is gone --------------------------------------------------------------------------------


def test_a_replaced_item_is_not_found_by_what_it_was(store):
    filled(store, {"a": [QUERY], "b": [towards(QUERY, 0.3)]})
    assert list(nearest(store)) == ["a", "b"]
    put(store, item("a", "something else altogether"))
    assert list(nearest(store)) == ["b"]
    assert finding.cosines(store, QUERY, MODEL, [store.find_by_ref("a")[0].id]) == {}
    assert refs(store.get(store.unembedded(9))) == ["a"]
    embed(store, {"a": [towards(QUERY, -0.5)]})
    assert nearest(store) == pytest.approx({"b": 0.3, "a": -0.5}, abs=0.01)


@pytest.mark.parametrize("status", ["retired", "archived", "superseded"])
def test_what_is_no_longer_active_is_not_found_and_wants_no_vectors(store, status):
    filled(store, {"a": [QUERY], "b": units(2)})
    put(store, item("w", "waits for its vectors"))
    put(store, item("a", "text a", status=status), item("w", "waits", status=status))
    assert list(nearest(store)) == ["b"]
    embed(store, {"a": [QUERY]})  # had been made meanwhile
    assert list(nearest(store)) == ["b"]
    assert store.unembedded(9) == []


def test_another_item_in_the_place_of_one_that_is_gone_is_itself(open_store):
    """The newest vectors go, and others come to lie where they lay; a reader had seen the old."""
    reader, writer = open_store(), open_store()
    filled(writer, {"keep": units(1)})
    filled(writer, {"gone": [QUERY]}, kind="note")
    put(writer, item("new", "text", kind="prompt"))
    assert next(iter(nearest(reader))) == "gone"
    put(writer, item("gone", "now without a vector", kind="note"))
    embed(writer, {"new": [towards(QUERY, 0.9)]})
    for store in (reader, writer):
        assert nearest(store, Filters(kinds=("note",))) == {}
        assert list(nearest(store, Filters(kinds=("prompt",)))) == ["new"]
        assert list(nearest(store)) == ["new", "keep"]


def test_an_item_written_anew_again_and_again_pushes_no_other_out(open_store):
    """A reader that was there all the time has seen 800 codes nearer than any that is left."""
    reader, writer = open_store(), open_store()
    others = {f"r{n}": [towards(QUERY, 0.5, n)] for n in range(20)}
    filled(writer, {"busy": units(1), **others})
    for _ in range(8):
        embed(writer, {"busy": [QUERY] * 100})
        assert next(iter(nearest(reader))) == "busy"
    embed(writer, {"busy": [towards(QUERY, 0.1)]})
    assert set(nearest(reader)) == {"busy", *others}


def test_what_is_rolled_back_is_not_found(store):
    filled(store, {"a": units(1)})
    id_ = store.find_by_ref("a")[0].id
    with pytest.raises(ZeroDivisionError), store.transaction("items"):
        store.put_vectors(id_, MODEL, [QUERY, QUERY])
        raise ZeroDivisionError
    assert nearest(store) == pytest.approx(brute_force({"a": units(1)}), abs=0.01)
    embed(store, {"a": [QUERY]})
    assert nearest(store) == pytest.approx({"a": 1.0}, abs=0.01)


def test_what_was_seen_and_rolled_back_does_not_stay(store):
    filled(store, {"a": units(1)})
    put(store, item("b", "text b"))
    id_ = store.find_by_ref("b")[0].id
    with pytest.raises(ZeroDivisionError), store.transaction("items"):
        store.put_vectors(id_, MODEL, [QUERY])
        assert next(iter(nearest(store))) == "b"
        raise ZeroDivisionError
    assert list(nearest(store)) == ["a"]
    embed(store, {"b": [towards(QUERY, 0.9)]})
    assert list(nearest(store, Filters(kinds=("message",)))) == ["b", "a"]


# --- several at once, and afterwards -------------------------------------------------------------


def test_what_another_connection_writes_is_seen_at_once(open_store):
    one, two = open_store(), open_store()
    filled(one, {"a": units(1)})
    assert set(nearest(two)) == {"a"}
    filled(one, {"b": units(2)})
    assert set(nearest(two)) == {"a", "b"}
    filled(two, {"c": units(3)})
    assert set(nearest(one)) == set(nearest(two)) == {"a", "b", "c"}


def test_the_same_is_found_after_reopening(open_store):
    store = open_store()
    filled(store, {f"r{n}": units(n, 1 + n % 4) for n in range(30)})
    put(store, item("r3", "changed"))
    embed(store, {"r3": units(77, 2)})
    before = finding.nearest(store, QUERY, MODEL, EVERYTHING, 20)
    store.close()
    assert finding.nearest(open_store(), QUERY, MODEL, EVERYTHING, 20) == before


def test_equal_vectors_have_an_order_that_does_not_change(open_store):
    store = open_store()
    filled(store, {f"r{n}": [QUERY] for n in range(12)})
    first = list(nearest(store, limit=5))
    assert first == ["r11", "r10", "r9", "r8", "r7"]
    assert list(nearest(open_store(), limit=5)) == first


def test_vectors_are_no_part_of_what_a_check_complains_about(store):
    filled(store, {"a": units(1, 3)})
    put(store, item("a", "changed"))
    assert maintenance_of(store).check() == []


# --- what is still to be embedded ----------------------------------------------------------------


def waiting(store, limit=100, since=0):
    return refs(store.get(store.unembedded(limit, since)))


def test_what_waits_comes_newest_first(store):
    put(store, *(item(f"r{n}", f"text {n}", epoch=n * DAY) for n in (3, 1, 5, 2, 4)))
    assert waiting(store) == ["r5", "r4", "r3", "r2", "r1"]
    assert waiting(store, 2) == ["r5", "r4"]
    embed(store, {"r5": units(1), "r3": []})  # one without anything to embed is done as well
    assert waiting(store) == ["r4", "r2", "r1"]


def test_only_what_was_stored_since_then_however_old_it_is(store):
    put(store, item("early", "text"))
    queued = next(n for n in range(0, 10**14, 10**11) if not store.unembedded(9, n))
    low, high = queued - 10**11, queued
    while low < high:  # the first moment since which nothing was stored
        middle = (low + high) // 2
        low, high = (middle + 1, high) if store.unembedded(9, middle) else (low, middle)
    put(store, item("late", "text, older by date", epoch=DAY))
    assert "late" in waiting(store, since=low - 1)
    assert waiting(store, since=low + 10**9) == []


@pytest.mark.parametrize(
    ("role", "wanted"),
    [("user", True), ("assistant", True), ("", True), ("tool", False), ("thinking", False),
     ("task", False)],
)  # fmt: skip
def test_what_tools_print_and_what_is_thought_wants_no_vectors(store, role, wanted):
    put(store, item("r", "some text", role=role))
    assert waiting(store) == (["r"] if wanted else [])
    with store.transaction("items"):
        assert store.use_model(MODEL) == store.use_model(OTHER) == int(wanted)
    assert waiting(store) == (["r"] if wanted else [])
    assert content_counts(store).unembedded == int(wanted)


def test_what_became_the_output_of_a_tool_no_longer_waits(store):
    put(store, item("r", "said"))
    put(store, item("r", "printed", role="tool"))
    assert waiting(store) == []


@pytest.mark.requirement("REC-04")
def test_another_model_queues_everything_and_the_old_vectors_serve_until_replaced(store):
    assert store.unembedded(1, model=MODEL) is None
    with store.transaction("items"):
        assert store.use_model(MODEL) == 0
    filled(store, {"a": units(1), "b": units(2), "c": units(3)})
    with store.transaction("items"):
        assert store.use_model(MODEL) == 0  # nothing is queued again
        assert store.unembedded(1, model=MODEL) == []
        assert store.use_model(OTHER) == 3
    assert store.unembedded(1, model=MODEL) is None
    assert set(nearest(store)) == {"a", "b", "c"}
    embed(store, {"c": units(4)}, OTHER)
    assert set(nearest(store)) == {"a", "b"}
    assert set(nearest(store, model=OTHER)) == {"c"}


def test_switching_models_is_taken_up_where_it_was_left(open_store):
    store = open_store()
    with store.transaction("items"):
        store.use_model(MODEL)
    filled(store, {"a": units(1), "b": units(2), "c": units(3)})
    with store.transaction("items"):
        store.use_model(OTHER)
    embed(store, {"b": units(4)}, OTHER)
    store.close()
    again = open_store()
    with again.transaction("items"):
        assert again.use_model(OTHER) == 2
    assert sorted(waiting(again)) == ["a", "c"]


def test_switching_back_wants_only_what_was_replaced_meanwhile(store):
    with store.transaction("items"):
        store.use_model(MODEL)
    filled(store, {"a": units(1), "b": units(2), "c": units(3)})
    with store.transaction("items"):
        store.use_model(OTHER)
    embed(store, {"b": units(4)}, OTHER)
    put(store, item("c", "changed meanwhile"))
    with store.transaction("items"):
        assert store.use_model(MODEL) == 2
    assert sorted(waiting(store)) == ["b", "c"]


@pytest.mark.requirement("REC-04")
def test_one_who_still_asks_with_the_old_model_is_not_disturbed_by_the_new(open_store):
    """Its vectors may have another length, and lie where the old ones lay."""
    reader, writer = open_store(), open_store()
    filled(writer, {"a": units(1), "b": units(2)})
    assert set(nearest(reader)) == {"a", "b"}
    embed(writer, {"b": units(3, 1, 128)}, OTHER)
    assert set(nearest(reader)) == {"a"}
    assert set(nearest(reader, Filters(kinds=("message",)))) == {"a"}
    longer = units(5, 1, 128)[0]
    assert set(nearest(reader, vector=longer, model=OTHER)) == {"b"}


# --- files, concepts, projects -------------------------------------------------------------------


def touching(store, files, filters=EVERYTHING, limit=100):
    found = finding.touching(store, files, filters, limit)
    return [(store.get([id_])[0].ref, number) for id_, number in found.items()]


def test_what_is_about_files_comes_with_how_many_most_first_then_newest(store):
    put(
        store,
        item("both", "x", files_read=("src/a.py",), files_modified=("src/b.py",), epoch=DAY),
        item("old", "x", files_read=("src/a.py",), epoch=2 * DAY),
        item("new", "x", files_modified=("src/a.py",), epoch=3 * DAY),
        item("other", "x", files_read=("src/c.py",)),
        item("gone", "x", files_read=("src/a.py",), status="retired"),
    )
    asked = ["src/a.py", "src/b.py"]
    assert touching(store, asked) == [("both", 2), ("new", 1), ("old", 1)]
    assert touching(store, asked, limit=2) == [("both", 2), ("new", 1)]
    assert touching(store, asked, Filters(since=3 * DAY)) == [("new", 1)]
    assert touching(store, ["src/a.py"] * 3) == [("new", 1), ("old", 1), ("both", 1)]
    assert touching(store, []) == touching(store, ["nowhere.py"]) == []


@pytest.mark.parametrize(
    ("stored", "asked", "found"),
    [
        ("src/auth/login.py", "login.py", True),
        ("src/auth/login.py", "auth/login.py", True),
        ("src/auth/login.py", "/home/sam/shop/src/auth/login.py", True),
        ("/abs/src/login.py", "src/login.py", True),
        ("/abs/src/login.py", "/abs/src/login.py", True),
        ("SRC/Login.py", "src/login.PY", True),
        ("docs/Übersicht.md", "docs/Übersicht.md", True),
        ("src/auth/login.py", "h/login.py", False),
        ("src/auth/login.py", "other/login.py", False),
        ("src/a_b/login.py", "src/aXb/login.py", False),
        ("src/auth/login.py", "src/auth", False),
        ("src/auth/login.py", "l%.py", False),
        ("login.py", "xlogin.py", False),
    ],
)
def test_the_end_of_a_path_is_the_file_and_nothing_else_is(store, stored, asked, found):
    put(store, item("r", "x", files_read=(stored,)))
    assert bool(touching(store, [asked])) is found
    assert bool(store.select(Filters(files=(asked,)), Paging(5))) is found


def test_concepts_are_counted_among_those_that_exist(store):
    put(
        store,
        item("a", "needle", concepts=("Gotcha", "how-it-works")),
        item("b", "needle", concepts=("gotcha",), files_read=("b.py",)),
        item("c", "needle", concepts=("other",)),
        item("d", "needle"),
    )
    ids = {one.ref: one.id for one in every_item(store)}

    def concepts(*names, **more):
        found = store.probe(Probe(terms={"needl": 1.0}, words=9, names=names, **more))
        return found.concepts, found.having

    assert concepts("gotcha", "how-it-works", "unknown", "gotcha") == (
        2,
        {ids["a"]: 2, ids["b"]: 1},
    )
    assert concepts("other", filters=Filters(files=("b.py",))) == (1, {})
    assert concepts("unknown") == concepts() == (0, {})


def test_a_project_has_one_number_by_name_and_by_key(store):
    put(store, item("a", "needle"), item("b", "x", project="name:blog"))
    (a,) = finding.by_words(store, ["needl"])
    assert (
        store.probe(Probe(project="shop")).project
        == store.probe(Probe(project="name:shop")).project
        == a.project
        > 0
    )
    assert store.probe(Probe(project="blog")).project not in (0, a.project)
    assert (
        store.probe(Probe(project="nowhere")).project == store.probe(Probe(project="")).project == 0
    )


def test_a_candidate_is_the_same_whichever_way_it_is_found(store):
    put(
        store,
        item("a", "needle", role="user", session="s", epoch=1, files_read=("a.py",)),
        item("b", "needle", type="plan", kind="note", session="s", epoch=2),
    )
    embed(store, {"a": [QUERY], "b": [QUERY]})
    by_words = finding.by_words(store, ["needl"])
    ways = Probe(vector=lambda: QUERY, model=MODEL, nearest=9), Probe(files=["a.py"], most_files=9)
    by_meaning, by_files = (store.probe(probe).candidates for probe in ways)
    a, b = sorted(by_words)
    assert sorted(by_meaning) == [a, b]
    assert by_files == [a]
    assert list(store.around(Probe(), [a.id], [a.id], ()).candidates) == [b]
    assert store.around(Probe(), [999], (), ()).pairs == {}


def test_what_is_found_in_several_ways_is_one_candidate(store):
    put(store, item("a", "needle", files_read=("a.py",)), item("b", "hay", files_read=("a.py",)))
    embed(store, {"a": [QUERY], "b": [towards(QUERY, 0.5)]})
    found = store.probe(
        Probe(
            terms={"needl": 1.0}, words=9, vector=lambda: QUERY, model=MODEL, nearest=9,
            files=["a.py"], paths=["a.py"], most_files=9,
        )
    )  # fmt: skip
    ids = sorted(one.id for one in found.candidates)
    assert ids == sorted(found.near) == sorted(found.touching) == sorted(found.named)
    assert len(found.words) == 1
    # How near those are that no vector found, and nothing that is known already.
    near = store.around(Probe(vector=lambda: QUERY, model=MODEL), (), ids, ids[:1]).near
    assert near.keys() == {ids[1]}


def test_equally_far_codes_are_taken_from_the_newest(store):
    """More of them than are looked at by value: which ones must not be left to chance."""
    filled(store, {f"r{n}": [QUERY] for n in range(350)})
    assert list(nearest(store, limit=5)) == ["r349", "r348", "r347", "r346", "r345"]
