"""What happened around something: `yester timeline` and `memory.timeline`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import yester
from tests.readings import every_item
from tests.stores import with_store
from yester.errors import NotFound, UsageError
from yester.ingest.prepare import prepare_item
from yester.model import replace
from yester.recall.recall import Answer, make_hit
from yester.recall.timeline import build_timeline

pytestmark = pytest.mark.requirement("REC-11")

NOON = 1_770_033_600  # 2026-02-02 12:00 UTC


def note(number, **more):
    more.setdefault("project", "shop")
    more.setdefault("text", f"step {number}")
    more.setdefault("epoch", NOON + 60 * number if isinstance(number, int) else NOON)
    return {"ref": str(number), **more}


def refs(hits):
    return [hit.ref for hit in hits]


def id_of(memory, ref):
    (item,) = memory.store.find_by_ref(ref)
    return item.id


@pytest.fixture
def steps(memory):
    """Thirty steps in shop, a minute each, and one in blog among them."""
    memory.add(note(n) for n in range(30))
    memory.add([note("b", project="blog", epoch=NOON + 60 * 15 + 30)])
    return memory


@pytest.mark.requirement("DEL-13")
def test_ten_before_and_ten_after_by_time(steps):
    found = steps.timeline(id_of(steps, "15"))
    assert refs(found) == [str(n) for n in range(5, 26)]
    assert refs(found.before) == [str(n) for n in range(5, 15)]
    assert found.anchor.ref == "15"
    assert refs(found.after) == [str(n) for n in range(16, 26)]
    assert len(found) == 21
    assert found.epoch == found.anchor.epoch == NOON + 900


@pytest.mark.parametrize("form", [int, str, "#{}".format])
def test_an_item_is_named_by_its_id(steps, form):
    assert refs(steps.timeline(form(id_of(steps, "3")), 1, 2)) == ["2", "3", "4", "5"]


def test_at_the_ends_there_is_less(steps):
    assert refs(steps.timeline(id_of(steps, "1"), 5, 1)) == ["0", "1", "2"]
    assert refs(steps.timeline("latest", 1, 5)) == ["28", "29"]


def test_without_an_anchor_it_is_the_newest_item(steps):
    assert refs(steps.timeline(before=2)) == ["27", "28", "29"]
    assert steps.timeline().anchor.ref == "29"
    assert steps.timeline(project="blog").anchor.ref == "b"


def test_the_neighbours_are_of_the_anchors_project_unless_told_otherwise(steps):
    around = id_of(steps, "15")
    assert refs(steps.timeline(around, 0, 2)) == ["15", "16", "17"]
    assert refs(steps.timeline(around, 0, 2, scope="all")) == ["15", "b", "16"]
    assert refs(steps.timeline(around, 2, 2, project="blog")) == ["15", "b"]
    assert refs(steps.timeline(id_of(steps, "b"))) == ["b"]


def test_neighbours_may_be_of_other_sessions(memory):
    memory.add(note(n, session=f"session-{n % 2}") for n in range(6))
    assert refs(memory.timeline(id_of(memory, "2"), 2, 2)) == ["0", "1", "2", "3", "4"]
    found = memory.timeline(id_of(memory, "2"), 2, 2, session="session-0")
    assert refs(found) == ["0", "2", "4"]


def test_a_session_begins_the_line_with_its_first_item(memory):
    memory.add(note(n, session="aaaa1111-x" if n < 3 else "bbbb2222-x") for n in range(6))
    for name in ("Sbbbb2222-x", "Sbbbb22"):
        found = memory.timeline(name, 1, 1)
        assert (refs(found), found.anchor.ref) == (["2", "3", "4"], "3")


def test_the_beginning_of_several_sessions_is_refused_with_their_names(memory):
    memory.add([note(1, session="aaaaaa-1"), note(2, session="aaaaaa-2")])
    with pytest.raises(UsageError, match=r"Saaaaaa may be .*Saaaaaa-1.*; write more of the id"):
        memory.timeline("Saaaaaa")


@pytest.mark.parametrize(
    "when", ["2026-02-02T12:15:30Z", datetime(2026, 2, 2, 12, 15, 30, tzinfo=UTC), "1h"]
)
def test_a_point_in_time_has_neighbours_in_all_projects_and_no_item(steps, when):
    found = steps.timeline(when, 2, 2, now=NOON + 930 + 3600)
    assert found.anchor is None
    assert found.epoch == NOON + 930
    assert (refs(found.before), refs(found.after)) == (["14", "15"], ["b", "16"])
    assert refs(steps.timeline(when, 1, 1, project="shop", now=NOON + 4530)) == ["15", "16"]


def test_words_lead_to_what_fits_them_best(steps):
    steps.add([note(9, text="the deploy key lives in the vault")])
    for found in (
        steps.timeline("deploy key vault", 1, 1),
        steps.timeline(None, 1, 1, query="key"),
    ):
        assert (refs(found), found.anchor.ref) == (["8", "9", "10"], "9")
        assert found.anchor.score > 0


def test_a_word_that_begins_with_s_is_a_word(steps):
    steps.add([note(4, text="Semaphores guard the pool")])
    assert steps.timeline("Semaphores").anchor.ref == "4"


@pytest.mark.parametrize("latest", ["latest", " Latest "])
def test_latest_with_a_query_is_the_newest_that_fits_well(steps, latest):
    steps.add([
        note(5, text="redis cache redis"),
        note(12, text="redis cache"),
        note(20, text="a cache, told at length among many other things that were done on that day "
             "by people who had never heard of what stood beneath it or why it was there at all"),
    ])  # fmt: skip
    assert steps.timeline(query="redis cache").anchor.ref == "5"
    assert steps.timeline(latest, query="redis cache").anchor.ref == "12"


def test_filters_choose_what_stands_around_and_what_words_find(memory):
    memory.add(
        note(n, kind="prompt" if n % 2 else "message", type="plan" if n == 7 else "")
        for n in range(10)
    )
    around = id_of(memory, "4")
    assert refs(memory.timeline(around, 2, 2, kinds=["prompt"])) == ["1", "3", "4", "5", "7"]
    assert refs(memory.timeline(around, types=["plan"])) == ["4", "7"]
    limits = {"since": NOON + 120, "until": NOON + 360}
    assert refs(memory.timeline(around, **limits)) == ["2", "3", "4", "5"]
    assert memory.timeline("latest", kinds=["message"]).anchor.ref == "8"
    assert memory.timeline("step 4", kinds=["prompt"]).anchor.kind == "prompt"


def test_only_active_items_are_in_the_line(steps):
    (old,) = steps.store.find_by_ref("14")
    with steps.store.transaction("items"):
        steps.store.put([prepare_item(replace(old, status="archived"))])
    assert refs(steps.timeline(id_of(steps, "15"), 2, 0)) == ["12", "13", "15"]
    with pytest.raises(NotFound, match=f"item #{old.id} is archived"):
        steps.timeline(old.id)


@pytest.mark.requirement("OPS-04")
@pytest.mark.parametrize(
    ("anchor", "message"),
    [
        (99_999, "no item #99999; `yester recall` shows ids"),
        ("#99999", "no item #99999"),
        ("9" * 30, f"no item #{'9' * 30}"),
        ("Sdeadbeef", "no item of a session Sdeadbeef; `yester sessions` shows their ids"),
        ("-3", "no item #-3; `yester recall` shows ids"),
        ("#-3", "no item #-3; `yester recall` shows ids"),
        ("Sdeadbeef-1", "no item of a session Sdeadbeef-1; `yester sessions` shows their ids"),
        ("pterodactyl", "nothing fits 'pterodactyl'; an anchor is an item's id"),
    ],
)
def test_an_unknown_anchor_is_named_with_the_fix(steps, anchor, message):
    with pytest.raises(NotFound) as caught:
        steps.timeline(anchor)
    assert message in str(caught.value)


def test_an_empty_memory_has_no_latest(memory):
    with pytest.raises(NotFound, match="yester index"):
        memory.timeline()


@pytest.mark.parametrize(
    "wrong",
    [
        {"before": -1},
        {"after": -1},
        {"anchor": 1, "query": "step"},
        {"anchor": "2026-02-31"},
        {"scope": "some"},
        {"kinds": ["poem"]},
    ],
)
def test_a_wrong_call_is_refused(steps, wrong):
    with pytest.raises(UsageError):
        steps.timeline(**wrong)


@given(data=st.data())
def test_a_timeline_is_a_slice_of_everything_by_time_however_many_share_a_moment(
    tmp_path_factory, data
):
    moments = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=40))
    kinds = data.draw(st.lists(st.sampled_from(["prompt", "message"]), min_size=40, max_size=40))
    before, after = data.draw(st.integers(0, 45)), data.draw(st.integers(0, 45))
    number = data.draw(st.integers(0, len(moments) - 1))
    only = data.draw(st.sampled_from([(), ("prompt",)]))
    with yester.open(with_store(tmp_path_factory.mktemp("line"))) as memory:
        memory.add(
            {"ref": str(n), "kind": kinds[n], "text": f"step {n}", "epoch": NOON + moment / 1000}
            for n, moment in enumerate(moments)
        )
        (anchor,) = memory.store.find_by_ref(str(number))
        found = memory.timeline(anchor.id, before, after, kinds=only)
        everything = sorted((item.epoch, item.id, item.kind) for item in every_item(memory.store))
        allowed = [id_ for _, id_, kind in everything if id_ == anchor.id or kind in (only or kind)]
        at = allowed.index(anchor.id)
        assert [hit.id for hit in found] == allowed[max(at - before, 0) : at + after + 1]
        assert found.anchor.id == anchor.id

        moment = anchor.epoch / 1000
        line = memory.timeline(datetime.fromtimestamp(moment, UTC), before, after, kinds=only)
        allowed = [one for one in everything if one[2] in (only or one[2])]
        cut = sum(epoch < anchor.epoch for epoch, _, _ in allowed)
        wanted = allowed[max(cut - before, 0) : cut + after]
        assert [hit.id for hit in line] == [id_ for _, id_, _ in wanted]


def test_nothing_before_and_after_is_the_anchor_alone(steps):
    assert refs(steps.timeline(id_of(steps, "15"), 0, 0)) == ["15"]


# --- the command -------------------------------------------------------------------------------


@pytest.fixture
def filled(run, home, memory):
    memory.add(note(n, session="aaaaaaaa-1", agent="codex", kind="message") for n in range(3))
    tomorrow = NOON + 86_400
    memory.add([
        note("p", session="bbbbbbbb-2", agent="codex", kind="prompt", epoch=tomorrow,
             text="Why is the build slow?"),
        note("q", session="bbbbbbbb-2", agent="codex", kind="note", epoch=tomorrow + 60,
             title="Plan: a build cache", text="First measure the build. Then cache it."),
    ])  # fmt: skip
    memory.close()
    return run


def test_rows_stand_under_their_day_and_session_and_the_anchor_is_marked(filled):
    done = filled("timeline", "build", "slow", "--before", "2")
    assert done.code == 0
    assert done.out == (
        "2026-02-02  shop · aaaaaaaa · codex\n"
        "  · #2  12:01  step 1  ~2t\n"
        "  · #3  12:02  step 2  ~2t\n"
        "\n"
        "2026-02-03  shop · bbbbbbbb · codex\n"
        "▶ ❯ #4  12:00  Why is the build slow?  ~6t\n"
        "  ▤ #5  12:01  Plan: a build cache  ~15t\n"
    )


def test_a_point_in_time_is_a_line_between_the_rows(filled):
    lines = filled("timeline", "2026-02-03", "-b", "1", "-a", "1").out.splitlines()
    assert lines == [
        "2026-02-02  shop · aaaaaaaa · codex",
        "  · #3  12:02  step 2  ~2t",
        "",
        "▶ 2026-02-03 00:00",
        "",
        "2026-02-03  shop · bbbbbbbb · codex",
        "  ❯ #4  12:00  Why is the build slow?  ~6t",
    ]


def test_the_default_is_the_latest_and_a_query_may_be_an_option(filled):
    assert "▶ ▤ #5" in filled("timeline").out
    assert "▶ ❯ #4" in filled("timeline", "--query", "why slow").out
    assert "▶ ▤ #5" in filled("timeline", "latest", "--query", "build").out
    assert "▶ · #1" in filled("timeline", "Saaaaaaaa-1").out


@pytest.mark.requirement("DEL-09")
def test_json_and_the_full_form(filled):
    answer = filled("timeline", "4", "--before", "1", "--json").json
    assert set(answer) == {"query", "anchor", "hits", "took_ms"}
    assert (answer["query"], answer["anchor"]) == ("4", 4)
    assert [hit["id"] for hit in answer["hits"]] == [3, 4, 5]
    assert "text" not in answer["hits"][0]
    full = filled("timeline", "4", "--format", "full", "--json").json["hits"][-1]
    assert full["text"] == "First measure the build. Then cache it."
    out = filled("timeline", "4", "--format", "full").out
    assert "▶ #4  shop · prompt" in out
    assert "Then cache it." in out


@pytest.mark.requirement("DEL-09")
def test_nothing_is_exit_code_one_and_a_wrong_call_two(filled, run, tmp_path):
    done = filled("timeline", "pterodactyl")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("yester: nothing fits 'pterodactyl'")
    done = filled("timeline", "99", "--json")
    assert (done.code, done.json["hits"], done.json["anchor"]) == (1, [], None)
    done = filled("timeline", "2026-02-03", "--type", "none")
    assert (done.code, done.out) == (1, "")
    assert "Nothing around it" in done.err
    for words in (("4", "--query", "x"), ("2026-02-31",), ("4", "--before", "-1")):
        assert filled("timeline", *words).code == 2, words
    assert filled("timeline", "4", "-p", "shop", "--all-projects").code == 2


def test_filters_are_taken(filled):
    rows = filled("timeline", "4", "--kind", "note", "--json").json["hits"]
    assert [hit["id"] for hit in rows] == [4, 5]
    assert filled("timeline", "4", "--project", "nowhere").code == 1


def test_the_newest_that_fits_is_at_least_half_as_good_as_the_best(steps):
    items = steps.store.get([id_of(steps, ref) for ref in ("3", "5", "7")])
    scores = (1.0, 0.55, 0.45)
    hits = [make_hit(item, {}, score) for item, score in zip(items, scores, strict=True)]
    found = build_timeline(steps.store, "latest", 0, 0, query="step", answer=lambda _: Answer(hits))
    assert found.anchor.ref == "5"
