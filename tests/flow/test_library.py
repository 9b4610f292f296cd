"""The Python interface, exactly as documented."""

from __future__ import annotations

import re
import stat
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yester
from tests.stores import with_store
from yester.errors import StoreError, UsageError
from yester.model import Project
from yester.project import identify_project

pytestmark = pytest.mark.requirement("DEL-13")

NOTES = [
    {"ref": "1", "project": "shop", "title": "Use UTC", "text": "Orders are stored in UTC.",
     "facts": ["reports broke in March"], "concepts": ["gotcha"], "files": ["db/orders.py"],
     "type": "decision", "session": "s1", "role": "assistant", "epoch": 1_770_000_000},
    {"ref": "2", "project": "shop", "kind": "message", "text": "The cache was cold.",
     "epoch": 1_771_000_000.5},
    {"ref": "3", "project": "blog", "kind": "prompt", "text": "Why is the cache cold?",
     "epoch": 1_772_000_000, "source": "import"},
]  # fmt: skip


def test_add_recall_get_and_close(home):
    with yester.open(home) as memory:
        assert memory.add(NOTES) == 3
        hits = memory.recall("utc orders", k=5)
        assert [hit.ref for hit in hits] == ["1"]
        hit = hits[0]
        assert (hit.kind, hit.project, hit.session, hit.title) == (
            "observation",
            "shop",
            "s1",
            "Use UTC",
        )
        assert (hit.text, hit.epoch) == ("Orders are stored in UTC.", 1_770_000_000.0)
        assert 0 < hit.score <= 1
        assert memory.get([hit.id, 999])[0].ref == "1"
    with yester.open(str(home)) as memory:
        assert memory.recall("reports march")[0].ref == "1"


def test_adding_again_is_idempotent_and_new_text_updates(memory):
    memory.add(NOTES)
    assert memory.add(NOTES) == 0
    assert memory.add([{**NOTES[0], "text": "Orders are stored in TAI."}]) == 1
    assert memory.recall("tai")[0].ref == "1"
    assert memory.add([{**NOTES[0], "source": "elsewhere"}]) == 1


def test_without_a_ref_the_content_is_the_identity(memory):
    assert memory.add([{"text": "a thought"}, {"text": "a thought"}, {"text": "another"}]) == 2
    assert memory.add(iter([{"text": "a thought"}])) == 0


def test_scope_project_looks_in_one_project_alone(memory):
    memory.add(NOTES)
    assert {h.project for h in memory.recall("cache", project="shop")} == {"shop", "blog"}
    assert {h.project for h in memory.recall("cache", project="shop", scope="project")} == {"shop"}
    assert memory.recall("cache", project="nowhere", scope="project") == []


@pytest.mark.requirement("REC-09")
def test_all_filters_are_taken(memory):
    memory.add(NOTES)
    assert [h.ref for h in memory.recall(kinds=["prompt"])] == ["3"]
    assert [h.ref for h in memory.recall(types=["decision"])] == ["1"]
    assert [h.ref for h in memory.recall(concepts=["gotcha"])] == ["1"]
    assert [h.ref for h in memory.recall(session="s1")] == ["1"]
    assert [h.ref for h in memory.recall("cache", since=1_771_500_000)] == ["3"]
    assert [h.ref for h in memory.recall("cache", until="2026-02-18")] == ["2"]
    assert [h.ref for h in memory.recall("cache", since="1h", now=1_772_000_500)] == ["3"]
    assert [h.ref for h in memory.recall(order="date_asc")] == ["1", "2", "3"]
    assert [h.ref for h in memory.recall(k=1, offset=1)] == ["2"]
    assert memory.recall(agent="codex") == memory.recall(tool="Bash") == []
    # Files are no filter: what is about them is found as well, and what is found by words stays.
    assert {h.ref for h in memory.recall("cache", files=["db/orders.py"])} == {"1", "2", "3"}
    assert memory.recall("cache", k=0) == []


def test_factors_are_given_when_asked_for(memory):
    memory.add(NOTES)
    assert memory.recall("cache")[0].factors == {}
    assert memory.recall("cache", explain=True)[0].factors["keyword"] > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"text": "x", "titel": "y"}, "no parameter is called 'titel'; did you mean title"),
        ({"text": 3}, "text is '3', but must be a text$"),
        ({"text": "x", "files": "a.py"}, "files is 'a.py', but must be a list of texts"),
        ({"text": "x", "kind": "poem"}, "kind is 'poem', but must be one of memory, message"),
        ({"text": "x", "epoch": "now"}, "epoch is 'now', but must be a number$"),
        ("x", "an item is 'x', but must be a dict"),
    ],
)
@pytest.mark.requirement("OPS-04")
def test_a_wrong_item_is_refused_with_field_value_and_fix(memory, wrong, message):
    with pytest.raises(UsageError, match=message):
        memory.add([wrong])


@pytest.mark.parametrize(
    "arguments",
    [{"scope": "some"}, {"scope": "project"}, {"order": "random"}, {"k": -1}, {"kinds": ["poem"]}],
)
def test_a_wrong_question_is_refused(memory, arguments):
    with pytest.raises(UsageError):
        memory.recall("x", **arguments)


@pytest.mark.requirement("OPS-03")
def test_a_closed_memory_is_not_opened_again_by_itself(memory):
    memory.add(NOTES)
    memory.close()
    memory.close()
    for use in (lambda: memory.recall("cache"), lambda: memory.add(NOTES), lambda: memory.get([1])):
        with pytest.raises(StoreError, match=r"is closed; open it anew: yester\.open"):
            use()


def test_an_address_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="'mysql://db/team', but must be a folder"):
        yester.open("mysql://db/team")
    assert not list(tmp_path.iterdir())


def test_the_folder_is_closed_to_others(home):
    yester.open(home).close()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_names_given_by_programs_meet_projects_of_that_name(run, transcript, home):
    transcript().talk(1)
    run("index")
    with yester.open(home) as memory:
        memory.add([{"ref": "n", "project": "shop", "text": "a note on the checkout"}])
        hits = memory.recall("checkout", project="shop", scope="project")
        assert {"n"} < {hit.ref for hit in hits}


def test_several_threads_and_openings_may_write_at_once(home):
    def write(number):
        with yester.open(home) as memory:
            for turn in range(5):
                memory.add([{"ref": f"{number}-{turn}", "text": f"thread {number} turn {turn}"}])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with yester.open(home) as memory:
        assert len(memory.recall("thread", k=100)) == 30


@settings(max_examples=15)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=5), st.text(max_size=60))
def test_any_texts_can_be_added_and_any_text_asked(tmp_path_factory, texts, query):
    with yester.open(with_store(tmp_path_factory.mktemp("any"))) as memory:
        memory.add({"ref": str(n), "text": text} for n, text in enumerate(texts))
        assert len(memory.recall("", k=10)) == len(texts)
        for hit in memory.recall(query):
            assert 0 < hit.score <= 1 or hit.rung == "recent"


@pytest.mark.requirement("MEM-01", "MEM-02", "MEM-03")
def test_remember_and_what_can_be_done_with_it(memory):
    text = "Use UTC because reports broke"
    id_ = memory.remember(text, type="decision", project="shop", tags=["Time"], files=["db/o.py"])
    assert memory.remember("Use UTC", type="decision", project="shop", tags=["time"]) == id_
    (hit,) = memory.recall("reports broke", project="shop")
    assert (hit.id, hit.kind, hit.type, hit.project) == (id_, "memory", "decision", "shop")
    memories = memory.memories
    (memo,) = memories.list("shop")
    assert memo.content["rationale"] == ["reports broke"]
    assert memories.get("use-utc") == memories.get(id_) == memo
    edited = memories.edit(id_, {"content": {"context": "orders"}, "confidence": 0.9})
    assert (edited.content["context"], edited.content["rationale"]) == ("orders", ["reports broke"])
    assert memories.undo(id_)[0].content == memo.content
    assert memories.candidate("utc time", "decision", "shop").action == "UPDATE"
    new = memory.remember("Use TAI", type="decision", project="shop", supersedes=id_)
    assert [m.item.id for m in memories.list("shop", status="superseded")] == [id_]
    assert memories.archive(new).item.status == "archived"
    assert memories.restore(new).item.status == "active"
    with pytest.raises(UsageError, match="is not deleted"):
        memories.retire(new)
    assert memories.retire(new, force=True).item.status == "retired"
    assert memory.recall("tai") == []
    assert [change.what for change in memories.history(new)][:3] == ["retire", "restore", "archive"]


def test_without_a_project_a_memory_holds_everywhere(memory):
    id_ = memory.remember("Always write English")
    memo = memory.memories.get(id_)
    assert (memo.scope, memo.item.type, memory.get([id_])[0].project) == (
        "global",
        "rule",
        "global",
    )


def test_two_memories_are_put_in_one_anothers_place(memory):
    old, new = (memory.remember(text, project="shop") for text in ("one", "two"))
    assert memory.memories.supersede(old, new).item.supersedes == old


@pytest.mark.parametrize("bad", [{"tags": "a,b"}, {"text": 3}, {"files": [1]}, {"embed": "soon"}])
def test_remember_says_what_it_cannot_use(memory, bad):
    with pytest.raises(UsageError, match="but must be"):
        memory.remember(**{"text": "x", **bad})


def test_the_context_an_agent_would_get(memory, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    key = identify_project(str(folder)).key
    assert memory.context(cwd=folder) == ""
    memory.add([{"ref": "1", "project": "shop", "title": "Prices are whole cents",
                 "text": "Floating point lost a penny in March.", "files": ["money.py"]}]
               )  # fmt: skip
    with memory.store.transaction("places"):
        memory.store.merge_project("name:shop", Project(key, "shop", str(folder)))
    assert "Prices are whole cents" in memory.context("SessionStart", cwd=folder)
    asked = memory.context("UserPromptSubmit", folder, "why are prices kept as whole cents?")
    assert "lost a penny" in asked
    assert memory.context("UserPromptSubmit", folder, "yes") == ""
    assert "Prices" in memory.context("PreToolUse", folder, file=str(folder / "money.py"))
    assert memory.context("SubagentStart", folder) == ""
    with pytest.raises(UsageError, match="event is 'Stop', but must be one of SessionStart"):
        memory.context("Stop", folder)


def test_the_command_shows_it_with_the_reasons(memory, tmp_path, run):
    folder = tmp_path / "shop"
    folder.mkdir()
    memory.add([{"ref": str(n), "project": "shop", "text": text} for n, text in enumerate((
        "Prices are kept as whole cents, since floats lose money.",
        "The price page is yellow."))])  # fmt: skip
    with memory.store.transaction("places"):
        found = Project(identify_project(str(folder)).key, "shop", str(folder))
        memory.store.merge_project("name:shop", found)
    memory.close()
    done = run("context", "are prices kept as whole cents or as floats?", "--why", cwd=folder)
    assert done.out.startswith("<yester-memory")
    shown, left = done.err.split("left out")
    assert re.search(r"\n +1 ", shown)
    assert re.search(r"\n +2 ", left)
    assert "unlikely to help: " in left
    told = run("context", "--cwd", str(folder), "--json").json
    assert [one["reason"] for one in told["shown"]] == ["earlier", "earlier"]
    nothing = run("context", "yes", cwd=folder)
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "Nothing would be given.\n")


def test_what_was_said_comes_before_what_a_tool_printed(memory):
    told = {"kind": "message", "project": "shop", "epoch": 1_700_000_000}
    printed = [
        {"ref": str(n), "session": str(n), "role": "tool", "text": f"a{n}: webhook"}
        for n in range(12)
    ]
    said = {
        "ref": "said",
        "session": "x",
        "role": "assistant",
        "text": "A webhook waits five minutes, then is sent again.",
    }
    memory.add([one | told for one in (*printed, said)])
    assert memory.recall("webhook", k=3)[0].ref == "said"
    assert memory.recall("webhook", k=3)[1].role == "tool"
