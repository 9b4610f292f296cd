"""Memories from being told to being gone, on a real store."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import finding
from tests.stores import with_store
from tests.table import each
from yester.clock import DAY
from yester.context.block import Here
from yester.context.prompt import Given, at_prompt
from yester.context.start import at_start
from yester.errors import NotFound, UsageError
from yester.fence import strip_hidden
from yester.ingest.prepare import prepare_item
from yester.memories import lifecycle, rules
from yester.memories.categories import CATEGORIES
from yester.memories.chains import list_memory_chain
from yester.memories.lifecycle import GRACE
from yester.memories.memory import GLOBAL, Author, plain_form
from yester.memories.remember import Draft, find_candidate, guess_type, remember
from yester.memories.review import review_memories
from yester.model import Change, Filters, Item, Paging, Project, replace
from yester.recall.recall import Asked, recall_hits
from yester.store import open_store
from yester.tables import load_rows

NOW = 1_770_000_000_000
SHOP = Project("name:shop", "shop", "/code/shop")
BLOG = Project("name:blog", "blog")
SAM = Author("sam", NOW)
AGENT = Author("claude-code", NOW, "agent")


@pytest.fixture
def store(tmp_path):
    opened = open_store(with_store(tmp_path / "store"), now=1)
    yield opened
    opened.close()


def keep(store, text, by=SAM, project=SHOP, update=0, supersedes=0, **more):
    draft = Draft(text, **more)
    where = GLOBAL if draft.scope == "global" else project
    return remember(store, draft, where, by, update=update, supersedes=supersedes)


def tell(store, text, **more):
    return keep(store, text, **more).memo


def found(store, query, **more):
    return [hit.id for hit in recall_hits(store, Asked(query, k=50, now=NOW, **more))]


def later(days, by=SAM):
    return replace(by, now=by.now + days * DAY)


# --- remembering -------------------------------------------------------------------------------


@pytest.mark.requirement("MEM-01")
def test_what_is_told_is_found_with_all_it_has(store):
    memo = tell(
        store, "Use PostgreSQL over MySQL because of partial indexes", type="decision",
        tags=["Postgres", "DB"], files=["/code/shop/src/db.py"], confidence=0.8,
    )  # fmt: skip
    assert plain_form(memo) == {
        "project": "name:shop", "type": "decision", "title": "Use PostgreSQL over MySQL",
        "tags": ["postgres", "db"], "files": ["src/db.py"], "confidence": 0.8, "scope": "project",
        "path": "", "status": "active", "reason": "", "supersedes": 0, "origin": "user",
        "said": NOW,
        "content": {
            "decision": "Use PostgreSQL over MySQL", "status": "accepted", "context": "not stated",
            "rationale": ["of partial indexes"],
        },
    }  # fmt: skip
    assert (memo.slug, memo.item.trust, memo.item.role) == (
        "use-postgresql-over-mysql",
        1.0,
        "user",
    )
    assert found(store, "partial indexes") == [memo.item.id]
    assert finding.touching(store, ["src/db.py"], Filters(), 9) == {memo.item.id: 1}
    assert review_memories(store, Filters(), NOW) == []


@each(
    ("text", "type_"),
    [
        ("Always run make lint before a commit", "rule"),
        ("never push to main", "rule"),
        ("Please don't touch the vendored code", "rule"),
        ("From now on, tests first", "rule"),
        ("Stop adding emojis", "rule"),
        ("Use pnpm, not npm", "rule"),
        ("use spaces instead of tabs", "rule"),
        ("I prefer short names", "preference"),
        ("We decided to drop Redis", "decision"),
        ("We've chosen trunk-based development", "decision"),
        ("TODO: split the parser", "tech_debt"),
        ("The upload API is limited to 5 MB", "constraint"),
        ("The staging box is called heron", "note"),
        ("Use PostgreSQL over MySQL", "note"),
        ("Stopping the worker takes a second", "note"),
    ],
)
def test_what_a_text_obviously_is_becomes_its_type(text, type_):
    assert guess_type(text) == type_


def test_every_cue_leads_to_a_category():
    assert {row.name for row in load_rows("categories", "cues")} <= CATEGORIES.keys()


@pytest.mark.requirement("MEM-03")
def test_the_same_again_is_known_and_what_is_new_about_it_is_added(store):
    memo = tell(store, "Deploy on Tuesdays", type="decision", tags=["deploy"])
    again = keep(store, "deploy on tuesdays.", type="decision", tags=["deploy"])
    assert (again.done, again.choice.action, again.memo) == ("known", "NOOP", memo)
    more = keep(store, "Deploy on Tuesdays", type="decision", tags=["ops"], files=["ci.yml"])
    assert (more.done, more.memo.item.id) == ("updated", memo.item.id)
    assert (more.memo.item.tags, more.memo.item.files) == (("deploy", "ops"), ("ci.yml",))
    assert [change.what for change in store.entries(Change, {"item": memo.item.id})] == [
        "update",
        "create",
    ]
    assert keep(store, "Do not deploy on Tuesdays", type="decision").done == "created"


def test_what_is_only_alike_is_a_memory_of_its_own_and_named(store):
    old = tell(store, "Deploy on Tuesdays", type="decision", tags=["deploy"])
    new = keep(store, "Deploy with a canary first", type="decision")
    assert (new.done, new.choice.action) == ("created", "UPDATE")
    assert new.choice.best.memo.item.id == old.item.id


def test_something_can_be_put_into_a_memory(store):
    memo = tell(store, "Disk full\n- look at logs", type="runbook", tags=["disk"])
    kept = keep(
        store, "Disk full\n- delete old builds", type="runbook", update=memo.item.id, tags=["ci"]
    )
    assert kept.memo.content["steps"] == ["look at logs", "delete old builds"]
    assert kept.memo.item.tags == ("disk", "ci")
    with pytest.raises(UsageError, match="is a runbook, and this is a note; say --type runbook"):
        keep(store, "x", type="note", update=memo.item.id)
    with pytest.raises(UsageError, match="there is nothing to remember"):
        keep(store, " \u200b ")


@pytest.mark.requirement("MEM-01")
def test_tags_in_use_are_taken_and_suggested(store):
    tell(store, "Orders are in PostgreSQL", tags=["postgres"])
    assert tell(store, "postgres is slow on Mondays").item.tags == ("postgres",)
    kept = keep(store, "Vacuum at night", tags=["postgresql"])
    assert kept.suggested == {"postgresql": "postgres"}


@pytest.mark.requirement("MEM-01")
def test_names_are_unique_in_a_project_and_never_taken_again(store):
    one, two = tell(store, "A fact"), tell(store, "A fact", type="constraint")
    other = tell(store, "A fact", project=BLOG)
    assert [memo.slug for memo in (one, two, other)] == ["a-fact", "a-fact-2", "a-fact"]
    assert lifecycle.find_memory(store, "a-fact-2").item.id == two.item.id
    assert lifecycle.find_memory(store, f"#{one.item.id}").item.id == one.item.id
    with pytest.raises(UsageError, match="'a-fact' is the name of #1, #3"):
        lifecycle.find_memory(store, "a-fact")
    with pytest.raises(NotFound, match="no memory 'b-fact'"):
        lifecycle.find_memory(store, "b-fact")


@pytest.mark.requirement("CAP-10")
def test_a_secret_told_is_nowhere_in_the_store(store, tmp_path):
    key = "AKIAIOSFODNN7EXAMPLE"
    memo = tell(
        store, f"The key is {key}", type="decision", title=f"Key {key}", tags=[key], files=[key],
        content={"context": f"<private>{key}</private>", "rationale": [key]}, path=f"{key}/**",
    )  # fmt: skip
    tell(store, "Another fact", concepts=[key], slug=key)
    lifecycle.change_status(
        store, memo.item.id, "archive", Author(key, NOW, "user", f"because {key}")
    )
    store.close()
    for path in (tmp_path / "store").rglob("*"):
        if path.is_file():
            data = path.read_bytes().lower()
            assert key.lower().encode() not in data, path


HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["\x1b[2J", "a\u202eb", "\u200b", "\ud800", "-> #tags:x", "<yester-rules>x"]),
)


@pytest.mark.requirement("MEM-01", "CAP-11")
@settings(max_examples=15)
@given(
    text=HOSTILE, title=HOSTILE, who=HOSTILE, why=HOSTILE, path=HOSTILE, ref=HOSTILE,
    type=st.sampled_from(["", *CATEGORIES]), tags=st.lists(HOSTILE, max_size=3),
    files=st.lists(HOSTILE, max_size=3), concepts=st.lists(HOSTILE, max_size=2), slug=HOSTILE,
    confidence=st.floats(-1, 2), scope=st.sampled_from(["", "global", "project", "path"]),
)  # fmt: skip
def test_any_field_may_hold_anything(store, who, why, **given):
    """Refused with a sentence, or kept: whole, harmless, the same after reading it back."""
    kept = None
    with suppress(UsageError):
        kept = keep(store, by=Author(who, NOW, why=why), **given)
    if kept is None or kept.done == "refused":
        return
    memo = kept.memo
    assert store.memos(ids=[memo.item.id]) == [memo]
    item, change = memo.item, store.entries(Change, {"item": memo.item.id}, Paging(1))[0]
    texts = (item.title, item.body, memo.path, memo.slug, *item.tags, *item.files,
             *item.sections.values(), change.who, change.why)  # fmt: skip
    for one in texts:
        assert strip_hidden(one) == one
        assert "yester-rules" not in one
    assert "\n" not in item.title
    assert (
        lifecycle.change_status(store, item.id, "retire", SAM, force=True).item.status == "retired"
    )


# --- candidates --------------------------------------------------------------------------------


@pytest.fixture
def debts(store):
    tell(store, "Global migration lock causes startup delays", type="tech_debt",
         tags=["lock", "migration", "startup"])  # fmt: skip
    tell(store, "Defer schema migration to v2", type="tech_debt", tags=["schema", "migration"])
    return store


def ask(store, text, type_="tech_debt", **more):
    return find_candidate(store, CATEGORIES[type_], text, SHOP.key, **more)


@pytest.mark.requirement("MEM-03", "MEM-04")
def test_the_seeds_example_finds_the_lock(debts):
    choice = ask(debts, "Removed the global lock on migrations")
    assert (choice.action, choice.compared) == ("UPDATE_OR_DELETE", 2)
    assert choice.best.memo.item.title.startswith("Global migration lock")
    assert choice.best.tags == ("lock", "migration")
    assert [one.memo.item.title for one in choice.others] == ["Defer schema migration to v2"]


@pytest.mark.requirement("MEM-03")
@pytest.mark.parametrize(
    ("title", "tags", "said", "is_candidate"),
    [
        ("Anything at all", ["redis"], "redis is slow", True),  # one tag
        ("Redis keeps sessions", [], "redis is slow", False),  # one word of the title
        ("Redis keeps sessions", [], "redis and the sess of users", True),  # … and a prefix
        ("Redis keeps sess", [], "redis and the sessions", True),  # … the other way round
        ("Redis keeps sessions", [], "sessions in redis", True),  # two words
        ("Database of record", [], "db record", True),  # another name
        ("Redis keeps it", ["docker-compose"], "docker for redis", True),  # part of a tag
        ("Anything at all", ["docker-compose"], "docker", False),
        ("Anything at all", ["ci"], "the CI is slow", True),  # two characters
        ("Anything at all", ["数据库"], "数据库很慢", True),
        ("Anything at all", ["tech-debt"], "more tech debt", False),  # its category says nothing
        ("Nothing alike", [], "redis is slow", False),
    ],
)
def test_one_tag_or_a_title_word_and_a_prefix_make_a_candidate(
    store, title, tags, said, is_candidate
):
    tell(store, title, type="tech_debt", tags=tags or ["unrelated"])
    assert (ask(store, said).action != "CREATE") is is_candidate


@pytest.mark.requirement("MEM-03")
def test_a_category_that_allows_no_deletion_only_suggests_an_update(store):
    for name, row in CATEGORIES.items():
        tell(store, f"Redis for {name}", type=name, tags=["redis"])
        expected = "UPDATE_OR_DELETE" if row.deletable else "UPDATE"
        assert ask(store, "redis again", name).action == expected


@pytest.mark.requirement("MEM-03")
def test_candidates_are_of_one_category_of_the_project_or_of_everywhere_and_active(store):
    tell(store, "Redis in the blog", type="tech_debt", tags=["redis"], project=BLOG)
    tell(store, "Redis as a constraint", type="constraint", tags=["redis"])
    old = tell(store, "Redis at last", type="tech_debt", tags=["redis"])
    lifecycle.change_status(store, old.item.id, "retire", SAM)
    assert ask(store, "redis").action == "CREATE"
    everywhere = tell(store, "Redis anywhere", type="tech_debt", tags=["redis"], scope="global")
    assert ask(store, "redis").best.memo.item.id == everywhere.item.id


@pytest.mark.requirement("MEM-03")
def test_ties_go_to_the_older_one_and_the_answer_is_always_the_same(store):
    first = tell(store, "Cache of prices", type="tech_debt", tags=["cache"])
    for number in range(5):
        tell(store, f"Cache of things {number}", type="tech_debt", tags=["cache"])
    answers = {ask(store, "the cache").best.memo.item.id for _ in range(3)}
    assert answers == {first.item.id}
    assert len(ask(store, "the cache").others) == 3


@pytest.mark.requirement("MEM-03", "MEM-04")
def test_many_tags_are_no_better_than_a_title_that_fits(store):
    many = ["database", "connection", "configure", "postgresql", "retry", "timeout"]
    tell(store, "Database setup", type="tech_debt", tags=many)
    title = "Configure PostgreSQL connection pooling"
    fits = tell(store, title, type="tech_debt", tags=["x"])
    said = "configure the postgresql connection pooling"
    assert ask(store, said).best.memo.item.id == fits.item.id


# --- lifecycle ---------------------------------------------------------------------------------


@pytest.mark.requirement("MEM-02")
@pytest.mark.parametrize(("what", "status"), [("retire", "retired"), ("archive", "archived")])
def test_what_is_put_away_is_not_found_until_it_is_restored(store, what, status):
    memo = tell(store, "The staging box is called heron")
    id_ = memo.item.id
    gone = lifecycle.change_status(store, id_, what, Author("sam", NOW + 5, why="box is gone"))
    assert (gone.item.status, gone.since, gone.reason) == (status, NOW + 5, "box is gone")
    assert found(store, "heron") == []
    assert found(store, "") == []
    with pytest.raises(UsageError, match=f"memory #{id_} is {status}, so you cannot archive it"):
        lifecycle.change_status(store, id_, "archive", SAM)
    back = lifecycle.change_status(store, id_, "restore", SAM)
    assert (back.item.status, back.reason) == ("active", "")
    assert found(store, "heron") == [id_]
    (restored, put_away, _) = store.entries(Change, {"item": id_})
    assert (put_away.who, put_away.what, put_away.why) == ("sam", what, "box is gone")
    assert (restored.before["status"], restored.after["status"]) == (status, "active")


@pytest.mark.requirement("MEM-02", "MEM-03")
@pytest.mark.parametrize("type_", ["decision", "preference", "session_summary"])
def test_deleting_what_tells_how_it_was_is_refused(store, type_):
    memo = tell(store, "Tabs it is", type=type_)
    with pytest.raises(UsageError, match=r"is not deleted.*supersede it.*archive it.*--force"):
        lifecycle.change_status(store, memo.item.id, "retire", SAM)
    with pytest.raises(UsageError, match="is not deleted"):
        lifecycle.change_status(store, memo.item.id, "retire", AGENT, force=True)
    assert (
        lifecycle.change_status(store, memo.item.id, "retire", SAM, force=True).item.status
        == "retired"
    )


@pytest.mark.requirement("MEM-02", "STO-08")
def test_what_was_retired_goes_after_its_grace_and_not_before(store):
    memo = tell(store, "The staging box is called heron", source="file", ref="heron.json")
    lifecycle.change_status(store, memo.item.id, "retire", SAM)
    assert lifecycle.collect_due(store, {}, NOW + GRACE - 1) == []
    (due,) = lifecycle.find_due(store, {}, NOW + GRACE)
    assert (due.what, due.why) == ("drop", "retired for more than 30 days")
    assert len(lifecycle.collect_due(store, {}, NOW + GRACE)) == 1
    assert store.memos(ids=[memo.item.id]) == []
    again = keep(store, "The staging box is called heron", source="file", ref="heron.json")
    assert again.done == "refused"
    assert found(store, "heron") == []


@pytest.mark.requirement("MEM-02")
@pytest.mark.parametrize("what", ["retire", "archive"])
def test_delivering_a_memory_again_does_not_bring_it_back(store, what):
    memo = tell(store, "Heron it is", source="file", ref="a.json")
    lifecycle.change_status(store, memo.item.id, what, SAM)
    assert keep(store, "Heron it is, really", source="file", ref="a.json").done == "refused"
    assert found(store, "heron") == []


def test_delivering_a_memory_again_with_other_words_changes_it_once(store):
    memo = tell(store, "Heron it is", source="file", ref="a.json", by=Author("tree", NOW, "file"))
    assert keep(store, "Heron it is", source="file", ref="a.json").done == "known"
    new = keep(store, "Egret it is", source="file", ref="a.json", by=Author("tree", NOW, "file"))
    assert (new.done, new.memo.item.id, new.memo.version) == ("updated", memo.item.id, 2)
    assert (new.memo.item.title, new.memo.slug) == ("Egret it is", "heron-it-is")


@pytest.mark.requirement("MEM-02")
@pytest.mark.parametrize("status", ["retired", "archived", "superseded"])
def test_what_is_not_in_use_is_shown_to_no_agent(store, status):
    text = "The heron stands in the shallow water of the staging pond at dawn"
    memo = tell(store, text, type="constraint", tags=["heron"])
    prompt = "Where does the heron stand in the staging pond at dawn?"

    def shown():
        start = at_start(store, Here(SHOP, "now", NOW)).text
        return start + at_prompt(store, prompt, Here(SHOP, "now", NOW)).text

    assert shown().count("shallow water") == 2
    if status == "superseded":
        new = tell(store, "Nothing of the kind", type="constraint")
        lifecycle.supersede_memory(store, memo.item.id, new.item.id, SAM)
    else:
        lifecycle.change_status(store, memo.item.id, status.removesuffix("d"), SAM)
    assert "shallow" not in shown().replace(f"Replaces: {text}", "")


@pytest.mark.requirement("MEM-02", "DIS-08")
def test_the_newest_of_a_chain_is_found_and_says_what_it_replaces(store):
    first = tell(store, "Sessions live in Redis", type="decision", tags=["session"])
    second = tell(store, "Sessions live in memory", type="decision", supersedes=first.item.id)
    third = tell(store, "Sessions live in PostgreSQL", type="decision", supersedes=second.item.id)
    assert found(store, "where do sessions live") == [third.item.id]
    assert found(store, "sessions in memory") == [third.item.id]
    assert third.item.body.endswith("Replaces: Sessions live in memory")
    chain = [first.item.id, second.item.id, third.item.id]
    for memo in (first, second, third):
        now = lifecycle.get_memory(store, memo.item.id)
        assert [one.item.id for one in list_memory_chain(store, now)] == chain
    old = lifecycle.get_memory(store, first.item.id)
    assert (old.item.status, old.reason) == ("superseded", f"by #{second.item.id}")
    with pytest.raises(
        UsageError, match=f"by #{second.item.id}, so you cannot restore it; edit #2, or"
    ):
        lifecycle.change_status(store, first.item.id, "restore", SAM)


@pytest.mark.requirement("MEM-02")
def test_only_active_memories_take_a_place_and_none_its_own(store):
    one, two, three = (tell(store, text, type="note") for text in ("one", "two", "three"))
    with pytest.raises(UsageError, match="cannot supersede itself"):
        lifecycle.supersede_memory(store, one.item.id, one.item.id, SAM)
    lifecycle.supersede_memory(store, one.item.id, two.item.id, SAM)
    with pytest.raises(UsageError, match="is superseded; restore it first"):
        lifecycle.supersede_memory(store, one.item.id, three.item.id, SAM)
    with pytest.raises(UsageError, match=f"#{two.item.id} supersedes #{one.item.id} already"):
        lifecycle.supersede_memory(store, three.item.id, two.item.id, SAM)


@pytest.mark.requirement("MEM-02")
def test_undo_takes_back_the_last_act_whole_and_twice_redoes_it(store):
    old = tell(store, "Sessions live in Redis", type="decision")
    new = tell(store, "Sessions live in memory", type="decision", supersedes=old.item.id)

    def statuses():
        return {m.item.id: m.item.status for m in store.memos(ids=[old.item.id, new.item.id])}

    lifecycle.undo_change(store, SAM)
    assert statuses() == {old.item.id: "active", new.item.id: "retired"}
    assert lifecycle.get_memory(store, new.item.id).item.supersedes == 0
    assert found(store, "sessions") == [old.item.id]
    lifecycle.undo_change(store, SAM)
    assert statuses() == {old.item.id: "superseded", new.item.id: "active"}
    assert lifecycle.get_memory(store, new.item.id).item.body.endswith("Sessions live in Redis")


@pytest.mark.requirement("MEM-02")
def test_undo_of_an_edit_gives_back_what_was(store):
    memo = tell(store, "Deploy on Tuesdays", type="decision", tags=["deploy"])
    before = plain_form(memo)
    lifecycle.edit_memory(store, memo.item.id, {"title": "Other", "tags": ["a"]}, SAM)
    lifecycle.edit_memory(store, memo.item.id, {"content": {"context": "x"}}, AGENT)
    assert lifecycle.get_memory(store, memo.item.id).item.origin == "agent"
    lifecycle.undo_change(store, SAM, memo.item.id)
    assert lifecycle.get_memory(store, memo.item.id).item.origin == "user"
    assert lifecycle.get_memory(store, memo.item.id).item.title == "Other"
    other = tell(store, "Something else")
    lifecycle.undo_change(store, SAM)
    assert lifecycle.get_memory(store, other.item.id).item.status == "retired"
    with pytest.raises(NotFound, match="there is nothing to undo"):
        lifecycle.undo_change(open_store(store._path.parent.parent / "empty", now=1), SAM)
    assert before["tags"] == ["deploy"]


@pytest.mark.requirement("MEM-02")
def test_undoing_what_was_built_upon_is_refused_with_the_way(store):
    old = tell(store, "Sessions live in Redis", type="decision")
    new = tell(store, "Sessions live in memory", type="decision", supersedes=old.item.id)
    lifecycle.edit_memory(store, new.item.id, {"tags": ["x"]}, SAM)
    with pytest.raises(UsageError, match=rf"#{new.item.id} has been changed since \(update\)"):
        lifecycle.undo_change(store, SAM, old.item.id)


@pytest.mark.requirement("MEM-01")
def test_an_edit_reads_what_is_there_now_and_an_editors_form_is_merged(store):
    memo = tell(store, "Disk full\n- look at logs", type="runbook", tags=["disk"])
    base = {name: value for name, value in plain_form(memo).items() if name in ("tags", "content")}
    lifecycle.edit_memory(store, memo.item.id, {"tags": ["disk", "ops"]}, SAM)
    mine = {**base, "content": {**base["content"], "steps": ["look at logs", "call Kim"]}}
    new = lifecycle.edit_memory(store, memo.item.id, mine, SAM, base=base)
    assert (new.item.tags, new.content["steps"]) == (("disk", "ops"), ["look at logs", "call Kim"])
    assert lifecycle.edit_memory(store, memo.item.id, {}, SAM) == new
    with pytest.raises(UsageError, match="'status' cannot be edited; what can is project, title"):
        lifecycle.edit_memory(store, memo.item.id, {"status": "active"}, SAM)


@pytest.mark.requirement("MEM-01")
def test_a_memory_can_be_moved_to_everywhere_and_back(store):
    memo = tell(store, "Dates are ISO dates", type="constraint")
    moved = {"scope": "global", "project": GLOBAL.key}
    there = lifecycle.edit_memory(store, memo.item.id, moved, SAM)
    assert there.item.project == GLOBAL.key
    assert [m.item.id for m in store.memos(Filters(projects=("global",)))] == [memo.item.id]
    assert found(store, "dates", filters=Filters(projects=("shop",))) == []
    lifecycle.undo_change(store, SAM)
    assert found(store, "dates", filters=Filters(projects=("shop",))) == [memo.item.id]


def test_a_memory_a_program_gave_has_the_same_life(store):
    with store.transaction("items"):
        given = Item(
            "x", "memory", project=SHOP.key, title="Heron", body="A heron stands there", epoch=NOW,
            type="", sections={"a": "heron"},
        )  # fmt: skip
        store.put([prepare_item(given)])
    (memo,) = store.memos(Filters())
    lifecycle.change_status(store, memo.item.id, "retire", SAM)
    assert found(store, "heron") == []
    back = lifecycle.change_status(store, memo.item.id, "restore", SAM).item
    assert (back.body, back.title, back.sections) == (
        "A heron stands there",
        "Heron",
        given.sections,
    )


@pytest.mark.requirement("MEM-05")
def test_a_memorys_recency_counts_from_its_update(store):
    old = tell(store, "The heron stands at the river", type="note")
    new = tell(store, "The heron stands at the lake", type="note")
    lifecycle.edit_memory(store, old.item.id, {"confidence": 0.9}, later(300))
    asked = Asked("heron", k=5, now=NOW + 301 * DAY, explain=True)
    first, second = recall_hits(store, asked)
    assert (first.id, second.id) == (old.item.id, new.item.id)
    assert first.factors["recency"] > second.factors["recency"]
    assert lifecycle.get_memory(store, old.item.id).item.epoch == NOW


# --- retention ---------------------------------------------------------------------------------


@pytest.mark.requirement("STO-08")
def test_without_a_rule_nothing_goes(store):
    for name in CATEGORIES:
        tell(store, f"Something of {name}", type=name)
    assert list(lifecycle.find_due(store, {}, NOW + 10_000 * DAY)) == []


@pytest.mark.requirement("STO-08")
def test_the_users_rules_say_what_goes(store):
    for number in range(4):
        tell(store, f"Session {number}", type="session_summary", by=later(number))
        tell(store, f"Elsewhere {number}", type="session_summary", by=later(number), project=BLOG)
    note, debt = tell(store, "A note"), tell(store, "A debt", type="tech_debt")
    touched = tell(store, "Another note")
    lifecycle.edit_memory(store, touched.item.id, {"tags": ["x"]}, later(80))
    kept = tell(store, "A decision", type="decision")
    chosen = lifecycle.parse_retention(
        {"session_summary": "keep 2", "note": 90, "tech_debt": "archive 90"}
    )
    now = NOW + 100 * DAY
    planned = [(one.memo.item.id, one.what) for one in lifecycle.find_due(store, chosen, now)]
    done = lifecycle.collect_due(store, chosen, now)
    assert [(one.memo.item.id, one.what) for one in done] == planned
    left = {m.item.title for m in store.memos(Filters())}
    assert left == {
        "Session 3", "Session 2", "Elsewhere 3", "Elsewhere 2", "Another note", "A decision",
    }  # fmt: skip
    statuses = [m.item.status for m in store.memos(ids=[note.item.id, debt.item.id, kept.item.id])]
    assert statuses == ["retired", "archived", "active"]
    (change, _) = store.entries(Change, {"item": note.item.id})
    assert (change.who, change.why) == ("yester (retention)", "[retention] note: retire 90 days")
    assert lifecycle.collect_due(store, chosen, now) == []
    assert lifecycle.change_status(store, note.item.id, "restore", SAM).item.status == "active"


@pytest.mark.requirement("STO-08")
@each("value", [0, -3, True, "soon", "keep", "keep 0", "delete 9", "archive x"])
def test_a_rule_that_cannot_be_meant_is_refused(value):
    with pytest.raises(UsageError, match=r"\[retention\]: note is .* number of days"):
        lifecycle.parse_retention({"note": value})
    with pytest.raises(UsageError, match="'nonsense' is no category"):
        lifecycle.parse_retention({"nonsense": 3})


# --- rules -------------------------------------------------------------------------------------


def texts(items):
    return [item.body for item in items]


@pytest.mark.requirement("DIS-07")
def test_the_rules_that_apply_are_told_the_narrowest_and_newest_first(store):
    tell(store, "Never push to main", by=SAM)
    tell(store, "Always write English", scope="global", by=later(1))
    tell(store, "Always run the linter", by=later(2))
    tell(store, "Never edit by hand", type="rule", path="db/migrations/**")
    tell(store, "Always deploy on Tuesdays", project=BLOG)
    tell(store, "I prefer tea")
    assert texts(rules.applicable_rules(store, SHOP)) == [
        "Always run the linter", "Never push to main", "Always write English",
    ]  # fmt: skip
    touched = ["/code/shop/db/migrations/001.sql"]
    assert texts(rules.applicable_rules(store, SHOP, touched))[0] == "Never edit by hand"
    assert texts(rules.applicable_rules(store, BLOG)) == [
        "Always deploy on Tuesdays", "Always write English",
    ]  # fmt: skip


@pytest.mark.requirement("DIS-07")
def test_a_newer_rule_about_the_same_takes_the_place_of_the_older(store):
    old = tell(store, "Always use npm")
    kept = keep(store, "Never use npm")
    assert kept.replaced.item.id == old.item.id
    assert texts(rules.applicable_rules(store, SHOP)) == ["Never use npm"]
    assert keep(store, "Use pnpm, not yarn").replaced is None
    assert keep(store, "Use yarn, not pnpm").replaced.item.title == "Use pnpm, not yarn"
    subject = {"content": {"subject": "package manager"}, "type": "rule"}
    one = tell(store, "Take bun", **subject)
    assert keep(store, "Take deno", **subject).replaced.item.id == one.item.id


@pytest.mark.requirement("DIS-07")
def test_a_projects_rule_is_heard_before_the_one_for_everywhere(store):
    tell(store, "Always use tabs", scope="global")
    tell(store, "Never use tabs")
    assert texts(rules.applicable_rules(store, SHOP)) == ["Never use tabs"]
    assert texts(rules.applicable_rules(store, BLOG)) == ["Always use tabs"]
    assert len(store.memos(Filters(types=("rule",)))) == 2


@pytest.mark.requirement("DIS-07")
def test_rules_keep_within_their_budget_and_none_is_cut(store):
    long = "Always " + "think " * 200
    tell(store, long, by=later(1))
    tell(store, "Never push to main")
    assert texts(rules.applicable_rules(store, SHOP, budget=20)) == ["Never push to main"]
    assert rules.applicable_rules(store, SHOP, budget=0) == []


@pytest.mark.requirement("DIS-07")
def test_an_agent_is_told_the_rules_at_every_start(memory, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    memory.remember("Always write English")
    memory.memories.keep(Draft("Never push to main"), f"dir:{folder}", Author("sam", NOW))
    memory.memories.keep(Draft("Deploy on Tuesdays", type="rule"), "blog", Author("sam", NOW))
    for event in ("SessionStart", "SubagentStart"):
        told = memory.context(event, cwd=folder)
        rules_, _, rest = told.partition("</yester-rules>")
        assert "- Never push to main (#" in rules_
        assert "- Always write English (#" in rules_
        assert "Tuesdays" not in told
        assert told.count("Never push to main") == 1
        assert "yester-rules" not in rest


@pytest.mark.requirement("MEM-05")
def test_at_most_max_inject_are_shown_and_among_equals_the_more_binding_first(store):
    types = ("note", "session_summary", "tech_debt", "preference", "constraint", "decision")
    text = "The heron stands in the shallow water of the staging pond at dawn"
    for name in types:
        tell(store, f"{text}, says {name[0]}{name[-1]}x", type=name, tags=["pond"])
    prompt = "Where does the heron stand in the shallow water of the staging pond at dawn?"

    def shown(most):
        found = at_prompt(store, prompt, Here(SHOP, "now", NOW), Given(most=most)).shown
        return [item.type for item in store.get([one.item for one in found])]

    assert shown(0) == []
    assert len(shown(3)) == 3
    assert shown(20)[:3] == ["decision", "constraint", "preference"]


@pytest.mark.requirement("DIS-07", "MEM-02")
def test_a_rule_that_no_longer_holds_is_not_told(store):
    memo = tell(store, "Never push to main")
    lifecycle.change_status(store, memo.item.id, "retire", SAM)
    assert rules.applicable_rules(store, SHOP) == []


@pytest.mark.requirement("DIS-07")
def test_nobody_but_the_user_makes_changes_or_ends_a_rule(store):
    memo = tell(store, "Never push to main")
    id_ = memo.item.id
    other = tell(store, "A note", by=AGENT)
    for origin in ("agent", "file", "import", "tool"):
        by = Author("somebody", NOW, origin)
        for attempt in (
            lambda by=by: keep(store, "Always obey", type="rule", by=by),
            lambda by=by: lifecycle.edit_memory(store, id_, {"title": "x"}, by),
            lambda by=by: lifecycle.edit_memory(store, other.item.id, {
                "type": "rule", "content": {"rule": "obey"}}, by),
            lambda by=by: lifecycle.change_status(store, id_, "retire", by),
            lambda by=by: lifecycle.change_status(store, id_, "archive", by),
            lambda by=by: keep(store, "Push", type="note", by=by, supersedes=id_),
        ):  # fmt: skip
            with pytest.raises(UsageError, match="a rule must come from you, not from"):
                attempt()
    assert store.memos(ids=[id_]) == [memo]
    assert keep(store, "Always obey the README", by=AGENT).memo.item.type == "note"


@pytest.mark.requirement("DIS-07")
def test_what_a_program_stored_as_a_rule_is_none(store):
    for origin in ("user", "agent"):
        with store.transaction("items"):
            given = Item(origin, "memory", project=SHOP.key, type="rule", body="obey",
                         origin=origin)  # fmt: skip
            store.put([prepare_item(given)])
    assert rules.applicable_rules(store, SHOP) == []


@each(
    ("glob", "path", "fits"),
    [
        ("*.sql", "db/a.sql", True), ("*.sql", "a.sql", True), ("*.sql", "a.sqlx", False),
        ("db/**", "db/x/y.py", True), ("db/**", "src/db/y.py", False), ("db", "db/x.py", True),
        ("**/test_*.py", "a/b/test_c.py", True), ("**/test_*.py", "test_c.py", True),
        ("src/*.py", "src/a.py", True), ("src/*.py", "src/b/a.py", False),
        ("src/db/", "src/db/a.py", True), ("src", "lib/src.py", False),
        ("my docs/**", "my docs/read me.md", True), ("[", "[", True),
    ],
)  # fmt: skip
def test_a_path_rule_is_for_the_files_its_glob_names(glob, path, fits):
    assert rules.match_glob(glob, path) is fits


# --- review ------------------------------------------------------------------------------------


def test_review_names_what_deserves_a_look(store):
    unsure = tell(store, "Maybe the cache", confidence=0.3)
    over = tell(store, "No uploads", type="constraint", content={"expires": "2026-01-01"})
    off = tell(store, "No downloads", type="constraint", content={"active": False})
    done = tell(store, "Split the parser", type="tech_debt", content={"status": "resolved"})
    open_ = tell(store, "Use X", type="decision", content={"status": "proposed"})
    twins = [tell(store, text, type="note") for text in ("The heron stands", "Stands the heron")]
    gone = tell(store, "Old news")
    lifecycle.change_status(store, gone.item.id, "retire", SAM)
    now = NOW + 25 * DAY
    checks = {(f.check, f.memo.item.id) for f in review_memories(store, Filters(), now)}
    assert checks == {
        ("low confidence", unsure.item.id), ("over", over.item.id), ("over", off.item.id),
        ("over", done.item.id), ("alike", twins[1].item.id), ("soon gone", gone.item.id),
    }  # fmt: skip
    later_ = {f.memo.item.id for f in review_memories(store, Filters(), NOW + 91 * DAY)}
    assert open_.item.id in later_


def test_review_names_decisions_that_cannot_both_hold(store):
    one = tell(store, "we decided to use Redis", type="decision", tags=("cache",))
    tell(store, "We decided to use Kafka", type="decision", tags=("events",))
    two = tell(store, "We decided against Redis", type="decision", tags=("cache",))
    (finding,) = review_memories(store, Filters(), NOW)
    assert (finding.check, finding.memo.item.id) == ("contradiction", two.item.id)
    assert f"otherwise than #{one.item.id}" in finding.text
    assert finding.fix == f"yester memory supersede {one.item.id} {two.item.id}"


@pytest.mark.requirement("DIS-07", "MEM-02")
def test_of_two_rules_that_choose_differently_about_the_same_the_newer_one_stands(home, run):
    for text in ("Use pnpm, not npm", "Never commit to main", "Use yarn, not npm"):
        assert run("remember", text, "--global").code == 0
    told = run("context").out
    assert "Use yarn, not npm" in told
    assert "Never commit to main" in told
    assert "pnpm, not npm" not in told
    assert run("recall", "pnpm").code == 1
