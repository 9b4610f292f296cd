"""A turn is what a search answers with, and a prompt is asked with its conversation."""

from __future__ import annotations

import pytest

import yester
from tests.distilling import Story, distilled
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.context.talk import asks_back
from yester.errors import ConfigError
from yester.git import Signals
from yester.model import Filters
from yester.operations.context import ContextRequest, build_context
from yester.operations.turns import TurnsRequest, list_turns
from yester.project import named_project
from yester.recall.conversation import read_conversation
from yester.recall.rank import Weights
from yester.recall.recall import Asked, recall_hits

NOW = 1_770_000_000
SAID = (
    # session, prompt, kind, role, text, files it has edited
    ("s1", 1, "prompt", "user", "The berth planner loses ships at low tide", ()),
    ("s1", 1, "message", "assistant", "I look at the tide table of the planner.", ()),
    ("s1", 1, "message", "tool", "Edit tides.py", ("port/tides.py",)),
    ("s1", 1, "message", "assistant", "The tide table ended at midnight; it goes on now.", ()),
    ("s1", 2, "prompt", "user", "Print the crane report on one page", ()),
    ("s1", 2, "message", "assistant", "The crane report fits on one page.", ()),
    ("s1", 2, "message", "tool", "Edit report.py", ("cranes/report.py",)),
    ("s2", 1, "prompt", "user", "Round the harbour dues to cents", ()),
    ("s2", 1, "message", "assistant", "Harbour dues are rounded to cents.", ()),
)  # fmt: skip


def rows(numbered=True):
    return [
        {
            "ref": f"{n}", "session": session, "prompt_number": number if numbered else 0,
            "kind": kind, "role": role, "text": text, "files_modified": list(files),
            "project": "harbour", "epoch": NOW - 86_400 + n, "agent": "claude-code",
        }
        for n, (session, number, kind, role, text, files) in enumerate(SAID)
    ]  # fmt: skip


@pytest.fixture
def harbour(memory):
    memory.add(rows())
    return memory


@pytest.mark.requirement("REC-15")
def test_of_a_turn_there_is_one_hit_and_the_rest_is_named_with_it(harbour):
    hits = harbour.recall("tide table of the berth planner", now=NOW)
    turns = [(hit.session, hit.prompt_number) for hit in hits]
    assert len(turns) == len(set(turns))
    first = hits[0]
    assert (first.session, first.prompt_number) == ("s1", 1)
    found = {first.ref, *(item.ref for item in harbour.get(first.parts))}
    assert {"0", "1", "3"} <= found


@pytest.mark.requirement("REC-15")
def test_a_memory_is_an_answer_of_its_own_whatever_the_turn_it_was_made_in(harbour):
    memo = harbour.remember("The tide table of the planner ends at midnight", project="harbour")
    hits = harbour.recall("tide table of the planner", now=NOW)
    assert {memo, *(hit.id for hit in hits if hit.kind != "memory")} == {h.id for h in hits}
    assert not next(hit for hit in hits if hit.id == memo).parts


@pytest.mark.requirement("REC-15")
def test_where_nothing_is_of_a_turn_everything_ranks_as_it_did(memory):
    memory.add(rows(numbered=False))
    asked = Asked("tide table of the berth planner", k=9, now=NOW * 1000)
    now, before = (
        [(hit.ref, hit.score) for hit in recall_hits(memory.store, asked, weights)]
        for weights in (Weights(), Weights(said=0.0, worked=0.0))
    )
    assert now == before
    assert len(now) > 2


@pytest.mark.requirement("DIS-12", "REC-15")
def test_a_turn_is_shown_by_its_card_unless_something_else_is_asked_for(memory):
    story = Story("s1", named_project("harbour").key)
    story.prompt("The berth planner loses ships at low tide, mend it")
    story.replaces("port/tides.py", "old", "new")
    story.commits("Let the tide table go on after midnight", "", "1a2b3c4")
    story.says("The tide table goes on after midnight.")
    story.store(memory.store, 0)
    distilled(memory.store)
    (hit,) = memory.recall("berth planner loses ships")
    assert (hit.kind, hit.type) == ("summary", "turn")
    assert hit.title == "Let the tide table go on after midnight"
    assert "berth planner" in hit.excerpt
    (dated,) = memory.recall("berth planner loses ships", since="2000-01-01")
    assert (dated.id, dated.excerpt) == (hit.id, hit.excerpt)
    (prompt,) = memory.recall("berth planner loses ships", kinds=["prompt"])
    assert (prompt.kind, prompt.excerpt) == ("prompt", "")


@pytest.mark.requirement("REC-21")
def test_a_prompt_is_asked_with_what_was_said_before_it(harbour):
    asked = {"now": NOW, "session": "s9", "k": 1}
    (alone,) = harbour.recall("And what about dues?", before="", **asked)
    assert alone.session == "s2"
    said = "The crane report is what I look at: the crane report has two pages."
    (hit,) = harbour.recall("And what about the page?", before=said, **asked)
    assert (hit.session, hit.prompt_number) == ("s1", 2)


@pytest.mark.requirement("REC-21", "REC-22")
def test_the_session_that_asks_gets_nothing_of_itself(harbour):
    hits = harbour.recall(
        "tide table, crane report, harbour dues", before="", session="s1", now=NOW
    )
    assert {hit.session for hit in hits} == {"s2"}
    found = recall_hits(harbour.store, Asked("tide", Filters(without_session="s1"), now=NOW * 1000))
    assert found == []


@pytest.mark.requirement("REC-21")
def test_files_of_the_session_raise_the_turns_that_edited_them_and_find_them(harbour):
    asked = {"before": "", "session": "s9", "now": NOW, "explain": True}
    without = harbour.recall("one page of the table", **asked)
    with_file = harbour.recall("one page of the table", files=["/home/x/port/tides.py"], **asked)
    score = {(h.session, h.prompt_number): h.score for h in without}
    raised = {(h.session, h.prompt_number): h for h in with_file}
    assert raised["s1", 1].score == pytest.approx(score["s1", 1] + 0.2)
    assert raised["s1", 1].factors["worked"] == pytest.approx(0.2)
    assert raised["s1", 2].score == pytest.approx(score["s1", 2])
    (alone,) = harbour.recall("zebra crossing", files=["tides.py", "other.py"], **asked)
    assert (alone.session, alone.prompt_number) == ("s1", 1)
    assert alone.score == pytest.approx(0.12 + 0.2 / 2)


@pytest.mark.requirement("REC-17", "DEL-02")
def test_a_turn_that_shares_names_is_told_and_says_which(harbour):
    here = Here(named_project("harbour"), "s9", NOW * 1000)
    harbour.add([
        {**rows()[0], "ref": "n1", "session": "s3", "text": "EnsureSetup fails in port/setup.py"},
        {**rows()[1], "ref": "n2", "session": "s3",
         "text": "EnsureSetup in port/setup.py ran before the tide_table was there; fixed."},
    ])  # fmt: skip
    given = at_prompt(harbour.store, "Why does EnsureSetup in port/setup.py need tide_table?", here)
    assert "ran before the tide_table was there" in given.text
    other = at_prompt(harbour.store, "Rename handle_crane in cranes/hooks.py, please do", here)
    assert other.text == ""
    assert any("unlikely to help" in left.why for left in other.left)


@pytest.mark.requirement("REC-21", "REC-08")
def test_a_hook_asks_with_what_its_session_has_said_and_touched(harbour):
    files = {"files_modified": ["port/tides.py"], "files_read": ["port/berths.py"]}
    harbour.add([
        {**rows()[3], "ref": "c1", "session": "s9", "text": "Now the crane report of report.py."},
        {**rows()[2], "ref": "c2", "session": "s9", "text": "Edit port/tides.py", **files},
    ])  # fmt: skip
    said, worked = read_conversation(harbour.store, "s9")
    assert said == "Now the crane report of report.py."
    assert worked == ("port/tides.py", "port/berths.py")
    assert read_conversation(harbour.store, "") == ("", ())
    request = ContextRequest(
        "UserPromptSubmit", prompt="Make that fit on a page as well",
        project=named_project("harbour"), session="s9",
    )  # fmt: skip
    left = [one.item for one in build_context(harbour, request).left]
    own = {hit.id for hit in harbour.recall("crane report tides", session="s9", k=9)}
    assert left
    assert own.isdisjoint(left)


@pytest.mark.requirement("REC-21")
def test_a_hook_asks_with_the_branch_unless_it_is_that_of_all_work(harbour):
    def find_candidates(branch: str) -> set[int]:
        here = Here(named_project("harbour"), "s9", NOW * 1000, signals=Signals(branch=branch))
        left = at_prompt(harbour.store, "Now make the tests of that pass, please", here).left
        return {one.item for one in left}

    dues = {item.id for item in harbour.store.select(Filters(session="s2"))}
    assert dues.isdisjoint(find_candidates("main"))
    assert dues & find_candidates("sam/round-harbour-dues")


@pytest.mark.requirement("REC-24", "REC-05")
def test_the_seeds_ranking_can_be_chosen(harbour, home):
    (home / "config.toml").write_text('ranking = "seed"\n')
    with yester.open(home) as seed:
        hit = seed.recall("tide table", now=NOW, explain=True)[0]
    assert hit.factors["recency"] == pytest.approx(2**-0.5, abs=0.01)  # a day of two
    (home / "config.toml").write_text('ranking = "best"\n')
    with (
        yester.open(home) as wrong,
        pytest.raises(ConfigError, match="ranking is 'best', but must be default or seed"),
    ):
        wrong.recall("tide table")


def test_a_turn_is_told_by_the_first_160_characters_of_its_prompt(memory):
    words = " ".join(f"berth{n}" for n in range(100))
    memory.add([{**rows()[0], "text": words}])
    (turn,) = list_turns(memory, TurnsRequest()).turns
    assert 150 < len(turn.title) <= 160
    assert (turn.card, turn.status, turn.files) == (0, "", [])


@pytest.mark.requirement("REC-17")
def test_a_plan_that_nobody_has_begun_is_not_told_at_a_prompt(memory):
    story = Story("s1", named_project("harbour").key)
    story.prompt("How could port/tides.py keep its sessions open?")
    story.reads("port/tides.py")
    story.refuses("ExitPlanMode", {"plan": "# Plan: Keep the sessions of port/tides.py open"})
    story.store(memory.store, 0)
    distilled(memory.store)
    prompt = "Which sessions does port/tides.py keep open?"
    told = at_prompt(memory.store, prompt, Here(named_project("harbour"), "s2", NOW * 1000))
    assert told.text == ""
    assert "a plan that nobody has begun" in {one.why.partition(": ")[2] for one in told.left}


@pytest.mark.requirement("REC-17")
def test_again_asks_for_earlier_sessions_where_a_session_begins_and_for_itself_later():
    assert asks_back("Tell me again how ships are moored", begins=True)
    assert not asks_back("Run it again", begins=False)
    assert not asks_back("Check it again", begins=True)
    assert asks_back("Why did we moor ships in pairs?", begins=False)
