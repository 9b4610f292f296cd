"""What was of use rises, what never is sinks a little; it shows, and can be taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capturing import Told, leave
from yester.ingest.transcripts import add_items
from yester.model import Candidate, Feedback, Injection, Item, Paging, UseCounts
from yester.project import identify_project
from yester.recall.feedback import WORTH, usefulness
from yester.recall.rank import Ranked, adjust_score

pytestmark = pytest.mark.requirement("REC-18")

NOW = 1_780_000_000
TWINS = (
    {"ref": "a", "project": "shop", "text": "The deploy key is rotated by the ops script."},
    {"ref": "b", "project": "shop", "text": "The deploy key is stored by the ops vault."},
)
counts = st.dictionaries(st.sampled_from(sorted(WORTH)), st.integers(0, 50))


@given(counts, st.integers(0, 100), st.integers(0, 100))
def test_usefulness_is_bounded_and_nothing_known_is_neither_good_nor_bad(told, shown, used_in):
    assert -1 <= usefulness(UseCounts(shown, used_in, told)) <= 1
    assert usefulness(UseCounts(0, 0, {})) == 0


@given(counts, st.sampled_from(sorted(WORTH)), st.integers(0, 20))
def test_more_of_a_kind_moves_it_one_way(told, what, shown):
    more = {**told, what: told.get(what, 0) + 1}
    before, after = usefulness(UseCounts(shown, 0, told)), usefulness(UseCounts(shown, 0, more))
    assert after >= before if WORTH[what] > 0 else after <= before
    assert usefulness(UseCounts(shown + 1, 0, told)) <= before  # shown once more, for nothing


@given(st.floats(0, 1), st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1))
def test_a_score_stays_a_score_and_follows_the_use(score, one, other, weight):
    ranked = Ranked(Candidate(1, "note", "", "", 1, 0, 0, b"", b""), score, {})
    low, high = (
        adjust_score(ranked, "use", weight * value).score for value in sorted((one, other))
    )
    assert 0 <= low <= high <= 1
    assert adjust_score(ranked, "use", 0.0) is ranked


def order(memory):
    return [hit.ref for hit in memory.recall("deploy key ops", now=NOW)]


def test_what_the_user_calls_useful_comes_first_until_it_is_taken_back(memory, home, run):
    memory.add({**note, "epoch": NOW} for note in TWINS)
    before = order(memory)
    last = memory.recall("deploy key ops", now=NOW)[1]
    assert run("feedback", f"#{last.id}", "--useful").out == (
        f"#{last.id}  use +0.76  shown in 0 sessions, useful 1\n"
    )
    assert order(memory) == before[::-1]
    explained = memory.recall("deploy key ops", now=NOW, explain=True)
    assert explained[0].factors["use"] > 0
    assert "use" not in explained[1].factors
    run("feedback", str(last.id), "--useless")  # the last word counts
    assert order(memory) == before
    assert run("feedback", str(last.id), "--json").json["items"] == [
        {
            "id": last.id,
            "shown": 0,
            "used_in": 0,
            "listed": 0,
            "feedback": {"useless": 1},
            "use": -0.7616,
        }
    ]
    run("feedback", str(last.id), "--undo")
    assert memory.store.entries(Feedback, {"item": last.id}, Paging(oldest_first=True)) == []


def test_a_wrong_call_names_the_fix(memory, run):
    memory.add(TWINS)
    for words, message in (
        (("x1", "--useful"), "'x1' is no id"),
        (("77",), "no item #77"),
        (("1", "--useful", "--undo"), "exclude each other"),
    ):
        done = run("feedback", *words)
        assert done.code in (1, 2)
        assert message in done.err


def test_what_was_shown_and_then_fetched_counts_as_used_once_a_session(memory, run):
    memory.add(TWINS)
    run("show", "1")
    assert (
        memory.store.entries(Feedback, {"item": 1}, Paging(oldest_first=True)) == []
    )  # nobody had been shown it
    with memory.store.transaction("items"):
        memory.store.append([Injection(7, "UserPromptSubmit", 1, 0.5, 10, NOW * 1000)])
        new = memory.store.append([Feedback(1, "acted", 1, 7), Feedback(1, "acted", 2, 7)])
    assert [bool(id_) for id_ in new] == [True, False]
    run("show", "1")
    run("show", "1", "--format", "index")
    assert [
        one.what for one in memory.store.entries(Feedback, {"item": 1}, Paging(oldest_first=True))
    ] == ["acted", "fetched"]
    assert memory.store.texts([1, 2]).used == {1: UseCounts(1, 1, {"acted": 1, "fetched": 1})}


def test_what_is_always_shown_and_never_used_sinks(memory):
    memory.add({**note, "epoch": NOW} for note in TWINS)
    before = order(memory)
    first = memory.recall("deploy key ops", now=NOW)[0].id
    with memory.store.transaction("items"):
        memory.store.append(
            [Injection(n, "UserPromptSubmit", first, 0.5, 10, NOW * 1000) for n in range(1, 40)]
        )
    assert order(memory) == before[::-1]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_editing_a_file_that_a_shown_memory_is_about_is_acting_on_it(
    memory, home, own_home, project, run
):
    found = identify_project(str(project))
    note = Item("n", "observation", found.key, title="Stock locks", body="The import locks stock.",
                files_modified=("stock.py",))  # fmt: skip
    add_items(memory.store, [(note, found)])
    told = Told(cwd=str(project))
    leave(home, told.prompt("why does the import lock the stock table?"))
    run("worker", "drain")
    session = memory.store.session(told.session, "claude-code")
    with memory.store.transaction("items"):
        memory.store.append([Injection(session.id, "UserPromptSubmit", 1, 0.5, 9, 9)])
    edit = told.event(
        "PostToolUse", tool_name="Edit", tool_use_id="t1",
        tool_input={"file_path": str(project / "stock.py"), "old_string": "a", "new_string": "b"},
        tool_response={"filePath": str(project / "stock.py")},
    )  # fmt: skip
    leave(home, edit)
    run("worker", "drain")
    (row,) = memory.store.entries(Feedback, {"item": 1}, Paging(oldest_first=True))
    assert (row.what, row.session) == ("acted", session.id)


def test_a_rule_is_not_blamed_for_being_shown_as_it_must_be(memory, run):
    assert run("remember", "Never commit to main", "--global").code == 0
    with memory.store.transaction("items"):
        memory.store.append(
            [Injection(n, "SessionStart", 1, 0, 10, NOW * 1000, "rule") for n in range(1, 9)]
        )
    lines = run("context", "--why").err.splitlines()
    (told,) = (line for line in lines if line.split()[:1] == ["1"])
    assert "rule" in told
    assert told.endswith("0.0000  shown in 8 sessions")
    run("feedback", "1", "--useless")  # a person's word counts
    assert " -0.76" in run("context", "--why").err
