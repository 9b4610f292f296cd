"""Sessions distilled: from the store and back into it, by the command and by the worker."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import yester
from tests import finding
from tests.capturing import Told, leave, until
from tests.distilling import (
    LATER,
    RULES,
    SESSION,
    SKIPPED,
    Story,
    distilled,
    fixed_bug,
    letters,
    made,
)
from tests.readings import every_item
from tests.stores import with_store
from yester.agents.base import Options
from yester.agents.descriptors import AGENTS
from yester.capture.rules import load_rules
from yester.cards.cards import Distilled
from yester.cards.repeats import find_insight, find_stored_insight, fold_insight
from yester.cards.sessions import DistilReport, distil_session
from yester.cards.turns import BRIEF_CHARS, BRIEF_TOOLS
from yester.config import load_config
from yester.ingest.events import Events
from yester.ingest.prepare import is_repeated, prepare_item, shown_texts
from yester.ingest.transcripts import Ingest
from yester.model import DISTILLED, Event, Filters, Injection, Item, Queue, Turn, replace
from yester.redact import redact
from yester.store import maintenance_of, open_store
from yester.worker.jobs import Distilling
from yester.worker.process import Log
from yester.worker.watchdog import Marks

pytestmark = pytest.mark.requirement("DIS-03")

HOUR = 3_600_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def sources_of(store, item):
    """Number of the fact → the items it was taken from."""
    found = {}
    for fact, source in sorted(store.evidence([item.id]).get(item.id, ())):
        found.setdefault(fact, []).append(source)
    return found


@pytest.fixture
def store(home):
    opened = open_store(with_store(home), now=1)
    yield opened
    opened.close()


def second_turn(story):
    story.prompt("Explain why discount() has the same weakness as total() had")
    story.reads("src/discount.py")
    story.says(
        "`discount()` reads counts from `cart.json`, where they are text because the importer"
        " writes them so.\n\nIt fails when `count` has two digits, since `max()` compares text."
    )
    return story


def test_a_typed_decision_is_found_as_one_when_its_session_is_distilled(store):
    story = Story()
    story.prompt("We decided to keep the monolith because two teams are too few for services")
    story.store(store)
    distilled(store)
    (one,) = made(store, "observation")
    assert one.type == "decision"
    assert one.facts == (story.items[0].body,)
    assert sources_of(store, one)[0] == [store.find_by_ref(story.items[0].ref)[0].id]


def snapshot(store):
    """Everything that was distilled and what it was made of, without the numbers the store gave."""
    refs = {item.id: item.ref for item in every_item(store)}
    found = {}
    for item in made(store):
        evidence = {
            fact: sorted(refs[source] for source in sources)
            for fact, sources in sources_of(store, item).items()
        }
        own = replace(item, id=0, supersedes=0, updated=0)
        found[item.kind, item.ref] = own, refs.get(item.supersedes), evidence
    return found


# --- what is stored ------------------------------------------------------------------------------


@pytest.mark.requirement("DIS-01", "DIS-02")
def test_a_session_becomes_observations_and_summaries_with_all_their_fields(store):
    story = second_turn(fixed_bug(Story()))
    story.store(store)
    report = distilled(store)
    fix, found = made(store, "observation")
    assert (fix.type, found.type) == ("bugfix", "discovery")
    assert fix.title == "Fix the cart's total for ten and more items"
    assert (fix.session, fix.project, fix.prompt_number) == (SESSION, "name:shop", 1)
    assert (fix.source, fix.origin, fix.agent) == (DISTILLED, "agent", "claude-code")
    assert story.items[0].epoch < fix.epoch <= story.items[7].epoch
    assert fix.files_modified == ("src/cart.py",)
    assert fix.files_read == ()
    assert found.files_read == ("src/discount.py",)
    assert fix.discovery_tokens > 0
    types = [item.type for item in made(store, "summary")]
    assert types == ["turn", "turn", "session"]
    summary = made(store, "summary")[-1]
    assert summary.sections["completed"] == fix.title
    assert summary.files_modified == ("src/cart.py",)
    assert (report.sessions, report.turns, report.observations, report.summaries) == (1, 2, 2, 3)


@pytest.mark.requirement("DIS-01")
def test_every_fact_stands_in_the_item_it_points_to(store):
    second_turn(fixed_bug(Story())).store(store)
    distilled(store)
    checked = 0
    for item in made(store, "observation"):
        evidence = sources_of(store, item)
        assert evidence[-1], "what the rest was made of"
        for number, fact in enumerate(item.facts):
            (source,) = store.get(evidence[number])
            assert letters(fact) in letters(source.body)
            checked += 1
    assert checked >= 5


@pytest.mark.requirement("DIS-01")
def test_discovery_tokens_are_shared_out_and_never_more_than_the_session_has(store):
    story = second_turn(fixed_bug(Story()))
    story.store(store)
    distilled(store)
    held = sum((len(item.body) + 3) // 4 for item in story.items)
    assert 0 < sum(item.discovery_tokens for item in made(store)) <= held


def test_a_session_of_one_telling_turn_has_one_summary(store):
    story = fixed_bug(Story())
    story.prompt("thanks")
    story.says("You're welcome.")
    story.store(store)
    distilled(store)
    (summary,) = made(store, "summary")
    assert (summary.type, summary.prompt_number) == ("turn", 1)


@pytest.mark.requirement("DIS-09", "DIS-11")
def test_recall_finds_an_outcome_by_the_text_of_the_error(home):
    story = Story()
    story.prompt("run the tests")
    story.fails("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
    story.ran("bun run test", " 5 pass\n 0 fail" + " " * 50)
    with yester.open(home) as memory:
        story.store(memory.store)
        distilled(memory.store)
        hits = memory.recall("unrecognized subcommand 'bun'", kinds=["observation"])
        assert hits[0].title == "rtk bun run test fails: unrecognized subcommand 'bun'"
        assert "`bun run test` did it" in hits[0].text
        assert "- error: unrecognized subcommand 'bun'" in hits[0].text


# --- again ---------------------------------------------------------------------------------------


def test_distilling_again_changes_nothing(store):
    second_turn(fixed_bug(Story())).store(store)
    distilled(store)
    before = made(store)
    with store.transaction("items"):
        store.queue_sessions()
    assert distilled(store).put.total_written == 0
    assert made(store) == before


def test_a_turn_that_has_grown_replaces_what_came_of_it_and_what_no_longer_comes_goes(store):
    story = Story()
    story.prompt("Add a --local option to the enable command of the program")
    story.edits("src/enable.py")
    story.says("Added the `--local` option to `enable`; it writes to `settings.local.json`.")
    story.store(store)
    distilled(store)
    (before,) = made(store, "observation")
    at = len(story.items)
    story.prompt("commit this")
    story.commits("Write local settings", "They were only global before.")
    story.store(store, at)
    distilled(store)
    (after,) = made(store, "observation")
    assert (before.title, after.title) != (after.title, before.title)
    assert after.title == "Write local settings"
    assert store.get([before.id]) == []
    assert sources_of(store, before) == {}
    assert maintenance_of(store).check() == []


TURNS = (
    "fixed_bug", "fixed_again", "second_turn", "talk", "commit", "add", "stuck", "wrong", "plan",
    "late",
)  # fmt: skip


@settings(max_examples=8)
@given(
    st.lists(st.sampled_from(TURNS), min_size=2, max_size=20),
    st.sets(st.integers(1, 25)),
    st.sampled_from([1, 7, 40]),
)
@example(["fixed_bug", *["talk"] * 14, "add", "commit"], {15}, 1)  # one turn was its session
@example(["stuck", *["talk"] * 6, "stuck", *["talk"] * 5, "stuck"], set(range(26)), 7)
@example(["wrong", *["talk"] * 7, "wrong", "wrong", *["talk"] * 4, "wrong"], {8, 9}, 1)
@example(["add", *["talk"] * 4, "commit"], set(range(9)), 1)  # work is committed much later
@example(["plan", *["talk"] * 13, "add"], {14}, 1)
@example(["stuck", *["add"] * 5, "stuck", "stuck", "add", "stuck"], set(), 1)  # told in three turns
@example(["fixed_bug", *["talk"] * 9, "fixed_again", "talk", "fixed_again"], set(range(26)), 1)
def test_turn_by_turn_in_several_goes_and_all_at_once_give_the_same(kinds, ends, most):
    """A long session is not read from its beginning again, and must not show it."""
    story, parts = Story(), []
    for number, kind in enumerate(kinds):
        if number in ends or not parts:
            parts.append(len(story.items))
        globals()[kind](story)
    folder = tempfile.TemporaryDirectory()
    stores = [open_store(with_store(Path(folder.name) / name), now=1) for name in ("1", "2", "3")]
    live, whole, goes = stores
    for at, end in zip(parts, [*parts[1:], len(story.items)], strict=True):
        replace(story, items=story.items[:end]).store(live, at)
        distilled(live)
    story.store(whole)
    distilled(whole)
    story.store(goes)
    while found := goes.queued_sessions(Queue("distil", quiet_since=LATER, limit=9)):
        for _ in distil_session(goes, found[0], replace(RULES, most=most), DistilReport()):
            pass
    assert snapshot(live) == snapshot(whole)
    assert snapshot(goes) == snapshot(whole)
    for store in stores:
        store.close()
    folder.cleanup()


@pytest.mark.parametrize("most", [1, 7, 40])
def test_where_memory_is_bounded_a_long_session_is_distilled_in_several_goes(store, most):
    story = Story()
    for _ in range(7):
        add(story)
        fixed_bug(story)
    story.store(store)
    since = []
    while found := store.queued_sessions(Queue("distil", quiet_since=LATER, limit=9)):
        since.append(found[0].since)
        for _ in distil_session(store, found[0], replace(RULES, most=most), DistilReport()):
            pass
    assert len(since) > 1
    assert since == sorted(set(since)), "every go comes further than the one before"
    assert len(made(store, "observation")) == 14  # each fix was committed with another part


def talk(story):
    story.prompt("thanks")
    story.says("You're welcome.")


def commit(story):
    story.prompt("commit this")
    story.commits(
        f"Add part {LETTERS[story.number % 26]} of the parser", "It was missing until now."
    )


def add(story):
    part = f"part{story.number}"
    story.prompt(f"Add a parser for {part} of the configuration files")
    story.edits(f"src/{part}.py")
    story.says(f"Added `{part}()`, which reads `{part}.toml`.")


def stuck(story):
    story.prompt("The parser fails on empty files, look at it")
    for _ in range(2):
        story.fails(
            "pytest -q tests/test_parser.py", "E       KeyError: 'parser'\n1 failed in 0.1s"
        )
        story.edits("src/parser.py")
    story.says("It fails still, though `parse()` was changed.")


def wrong(story):
    story.prompt("run the tests")
    story.fails("rtk bun run test", f"error: unrecognized subcommand 'bun' {story.number}", 2)
    story.ran("bun run test", " 5 pass\n 0 fail" + " " * 50)


def plan(story):
    add(story)
    story._add("note", "", "[x] read the files\n[ ] write the docs", type="todo")


def late(story):
    """What a tool gave is told when the next prompt is typed already."""
    add(story)
    number = story.number
    story.prompt("and the next one")
    story.commits(f"Add part {LETTERS[number % 26]} of the writer", "It was missing.")
    story.items[-1] = replace(story.items[-1], prompt_number=number)
    story.says("Committed it.")


def test_what_comes_while_a_session_is_distilled_is_not_taken_for_done(store):
    story = fixed_bug(Story())
    story.store(store)
    (waiting,) = store.queued_sessions(Queue("distil", quiet_since=LATER, limit=9))
    steps = distil_session(store, waiting, RULES, DistilReport())
    next(steps)
    at = len(story.items)
    second_turn(story).store(store, at)
    for _ in steps:
        pass
    assert len(store.queued_sessions(Queue("distil", quiet_since=LATER, limit=9))) == 1
    distilled(store)
    assert len(made(store, "observation")) == 2
    assert store.queued_sessions(Queue("distil", quiet_since=LATER, limit=9)) == []


def test_a_session_that_is_left_half_way_waits_still(store):
    fixed_bug(Story()).store(store)
    (waiting,) = store.queued_sessions(Queue("distil", quiet_since=LATER, limit=9))
    steps = distil_session(store, waiting, RULES, DistilReport())
    next(steps)
    steps.close()
    assert made(store) == []
    assert store.queued_sessions(Queue("distil", quiet_since=LATER, limit=9)) == [waiting]


# --- once ----------------------------------------------------------------------------------------


CART = "Fixed the rounding of totals in the shopping cart module"


def titled(ref, title, epoch, project="name:shop", files=("cart.py",)):
    return Item(
        ref, "observation", project=project, source=DISTILLED, epoch=epoch, title=title,
        files_modified=files,
    )  # fmt: skip


@pytest.mark.requirement("DIS-06")
@pytest.mark.parametrize(
    ("title", "after", "project", "files", "same"),
    [
        (CART, 0, "name:shop", ("cart.py",), True),
        (CART.replace("the rounding", "rounding"), HOUR, "name:shop", ("cart.py",), True),
        (CART, HOUR + 1, "name:shop", ("cart.py",), False),
        (CART, 0, "name:blog", ("cart.py",), False),
        (CART, 0, "name:shop", ("wishes.py",), False),
        (CART, 0, "name:shop", ("cart.py", "wishes.py"), False),
        ("Fixed the rounding of prices in the wishes", 0, "name:shop", ("cart.py",), False),
    ],
)  # fmt: skip
def test_the_same_insight_is_one_about_the_same_files_of_a_project_within_an_hour(
    store, title, after, project, files, same
):
    with store.transaction("items"):
        store.put([prepare_item(titled("1", CART, 10 * HOUR))])
    again = titled("2", title, 10 * HOUR + after, project, files)
    assert (find_stored_insight(store, again) is not None) is same
    assert find_stored_insight(store, again, ["1"]) is None
    observed = [Distilled(titled("1", CART, 10 * HOUR), ())]
    assert (find_insight(observed, again) is not None) is (same or project == "name:blog")


@pytest.mark.requirement("DIS-06")
def test_what_is_folded_in_brings_the_turn_it_was_made_of():
    first = Distilled(replace(titled("1", CART, 0), facts=("a", "b")), ((0, 11), (-1, 13)))
    again = Distilled(replace(titled("2", CART, 9), facts=("B",)), ((0, 21), (-1, 23)))
    folded = fold_insight(first, again)
    assert folded.item == first.item
    assert set(folded.sources) == {(0, 11), (-1, 13), (-1, 23)}
    assert fold_insight(folded, again) == folded


def fixed_again(story, cause="discount() is called twice"):
    """The same commit once more, a few minutes later, with another reason."""
    story.prompt("The totals in the cart are wrong again")
    story.edits("src/cart.py")
    story.commits("Fix the cart's total for ten and more items")
    story.says(f"The total was wrong because {cause} in `src/cart.py` when `count` is ten.")
    return story


@pytest.mark.requirement("DIS-06")
def test_two_sessions_that_do_the_same_at_the_same_time_are_observed_once(store):
    one, two = fixed_bug(Story()), fixed_bug(Story(session=f"b{SESSION[1:]}"))
    one.store(store)
    distilled(store)
    (alone,) = made(store, "observation")
    two.store(store)
    report = distilled(store)
    (item,) = made(store, "observation")
    assert report.repeated == 1
    assert (item.id, item.session, item.facts) == (alone.id, SESSION, alone.facts)
    behind = store.get(list(dict.fromkeys(i for _, i in store.evidence([item.id])[item.id])))
    assert {one.session for one in behind} == {one.session, two.session}
    assert len(made(store, "summary")) == 2  # each session still has its own
    for session in (two.session, one.session):
        for waiting in store.queued_sessions(Queue("any", key=session)):
            for _ in distil_session(store, waiting, RULES, DistilReport()):
                pass
        assert made(store, "observation") == [item]


@pytest.mark.requirement("DIS-06")
@pytest.mark.parametrize("between", [0, 9])
def test_work_of_the_same_name_that_tells_something_else_is_told_by_itself(home, between):
    told = []
    for all_at_once in (True, False):
        with closing(open_store(with_store(home / str(all_at_once)), now=1)) as store:
            story, at = Story(), 0
            turns = [fixed_bug, *[second_turn] * between, fixed_again, second_turn]
            for turn in turns:
                turn(story)
                if not all_at_once:
                    story.store(store, at)
                    at = len(story.items)
                    distilled(store)
            if all_at_once:
                story.store(store)
                distilled(store)
            fixes = [i for i in made(store, "observation") if i.title.startswith("Fix the cart")]
            told.append([replace(item, id=0) for item in fixes])
    assert told[0] == told[1]
    first, second = sorted(told[0], key=lambda item: item.epoch)
    assert not any("discount() is called twice" in fact for fact in first.facts)
    assert any("discount() is called twice" in fact for fact in second.facts)
    assert first.prompt_number < second.prompt_number


@pytest.mark.requirement("CAP-17")
def test_turns_that_only_changed_the_same_file_again_have_an_observation_each(store):
    story = Story()
    for _ in range(3):
        story.prompt("continue")
        story.edits("src/p.py")
        story.says("Done.")
    story.store(store)
    distilled(store)
    changed = made(store, "observation")
    assert sorted(item.prompt_number for item in changed) == [1, 2, 3]


@pytest.mark.requirement("CAP-11", "CAP-17")
def test_a_message_is_no_echo_of_what_was_made_of_its_own_session(store):
    story = fixed_bug(Story())
    story.store(store)
    distilled(store)
    (item,) = made(store, "observation")
    session = store.session(SESSION, "claude-code")
    with store.transaction("items"):  # as after a compaction
        store.append([Injection(session.id, "SessionStart", item.id, 0.9, 20, 1)])
    assert item.facts
    assert not is_repeated(item.facts[0], shown_texts(store, session.id, session.key))
    assert is_repeated(item.facts[0], shown_texts(store, session.id, "another"))


@pytest.mark.requirement("DIS-06")
def test_the_same_commit_for_other_files_is_another_observation(store):
    story = fixed_bug(Story())
    story.prompt("Now the wish list")
    story.edits("src/wishes.py")
    story.commits("Fix the cart's total for ten and more items")
    story.says("Done in the same way.")
    story.store(store)
    distilled(store)
    fixes = [i for i in made(store, "observation") if i.title.startswith("Fix the cart")]
    assert [item.files_modified for item in fixes] == [("src/cart.py",), ("src/wishes.py",)]


# --- work always leaves something ----------------------------------------------------------------


@pytest.mark.parametrize(
    "turn",
    [
        lambda story: story.edits("src/cart.py"),
        lambda story: story.commits("wip"),
        lambda story: story.fails("pytest -q", "FAILED test_a.py::test_ten - assert 9 == 10"),
        lambda story: (
            story.fails("pytest -q", "1 failed, 4 passed in 0.10s"),
            story.ran("uv sync", "installed"),
            story.ran("pytest -q", "5 passed in 0.10s" + " " * 40),
        ),
    ],
    ids=["edit", "commit", "failing check", "failing, then passing"],
)
def test_a_turn_with_work_or_an_outcome_leaves_an_observation_and_a_summary(store, turn):
    story = Story()
    story.prompt("ok")
    turn(story)
    story.says("Done.")
    story.store(store)
    distilled(store)
    assert len(made(store, "observation")) == 1
    assert [item.type for item in made(store, "summary")] == ["turn"]


@pytest.mark.requirement("DIS-09")
def test_a_command_that_does_not_work_is_kept_once_as_it_was_met_last(store):
    for number in (2, 1, 3):  # the newest first, as a backfill does
        story = Story(
            session=f"{number}{SESSION[1:]}", clock=1_770_000_000_000 + number * 10 * HOUR
        )
        story.prompt("run the tests")
        story.fails("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
        story.ran("bun run test", " 5 pass\n 0 fail" + " " * 50)
        story.store(store)
        distilled(store)
    (item,) = made(store, "observation")
    assert item.session[0] == "3"


# --- what must not be in it ----------------------------------------------------------------------


@pytest.mark.requirement("CAP-09", "CAP-10", "CAP-11")
def test_nothing_secret_private_or_injected_is_distilled(home, transcript):
    secret = "sk-ant-" + "api03-" + "Zx9" * 31 + "A" * 2
    t = transcript()
    t.user(
        f"The login fails with the key {secret}, fix it <private>my password is hunter22</private>"
    )
    key = t.call("Edit", file_path="/home/sam/code/shop/src/login.py", old_string="a" * 40,
                 new_string="b" * 40)  # fmt: skip
    t.result(key, "The file has been updated.")
    t.assistant(
        f"The login fails because `{secret}` was expired, so `login()` now reads it anew.\n\n"
        "<yester-memory>\nThe cart fails because `total()` compares text.\n</yester-memory>\n\n"
        "- Note that <private>hunter22</private> was never sent to `auth.example.com`"
    )
    read_transcript(home, t.path)
    store = open_store(home, now=1)
    distilled(store)
    assert made(store, "observation")
    for item in made(store):
        texts = (item.title, item.subtitle, item.body, *item.facts, *item.sections.values())
        for text in texts:
            assert not any(word in text for word in (secret, "hunter22", "total()", "yester-m"))
            assert redact(text) == text
    store.close()


@pytest.mark.requirement("CAP-11")
def test_what_an_agent_repeats_of_what_it_was_shown_is_not_distilled(store):
    known = Item(
        "old", "observation", project="name:shop", epoch=1, title="Orders in UTC",
        body="Orders are stored in UTC because reports broke in March when the clocks changed",
    )  # fmt: skip
    story = Story()
    story.prompt("why is the report wrong?")
    story.reads("report.py")
    story.says(
        "Orders are stored in UTC because reports broke in March when the clocks"
        " changed.\n\nBut `render()` fails because `zone` is read from the wrong `settings.toml`,"
        " and the page is wrong because `render()` caches `zone` for each `Report`."
    )
    story.store(store)
    with store.transaction("items"):
        store.put([prepare_item(known)])
        session = store.session(SESSION, "claude-code")
        shown = store.find_by_ref("old")[0].id
        store.append([Injection(session.id, "UserPromptSubmit", shown, 0.9, 20, 5)])
    distilled(store)
    assert made(store, "observation")
    for item in made(store):
        assert not any("March" in text for text in (item.title, item.body, *item.facts))
        assert not any("March" in text for text in item.sections.values())


# --- live and replayed ---------------------------------------------------------------------------


def read_transcript(home, path):
    store = open_store(home, now=1)
    config = load_config(home, {})
    events = Events(store, config, load_rules(config))
    ingest = Ingest(store, events.projects, Options(), load_rules(config))
    ingest.read_transcript(AGENTS["claude-code"], path)
    ingest.flush()
    store.close()


def tell(told, transcript):
    """The same session by its hooks and by its transcript, at the same times."""
    prompt = "The totals in the cart are wrong for more than nine items, please fix it"
    events = [told.event("SessionStart", source="startup"), told.prompt(prompt)]
    transcript.user(prompt)
    for name, value, response in (
        ("Read", {"file_path": f"{told.cwd}/src/cart.py"}, "def total(): ...\n" * 9),
        ("Edit", {"file_path": f"{told.cwd}/src/cart.py", "old_string": "a" * 40,
                  "new_string": "b" * 40}, ""),
        ("Bash", {"command": "git commit -m 'Fix the total of the cart for ten items'"},
         "[main abc1234] Fix the total of the cart for ten items"),
    ):  # fmt: skip
        key = transcript.call(name, **value)
        result = {"stdout": response, "stderr": ""} if name == "Bash" else response
        events.append(told.tool(name, value, result, key))
        transcript.result(key, response)
    closing = "The total was wrong because `total()` compared text; it now compares numbers."
    events.append(told.stop(closing))
    transcript.assistant(closing)
    return events


def story_of(item):
    return (
        item.kind, item.type, item.title, item.subtitle, item.body, item.facts, item.concepts,
        item.files_read, item.files_modified, dict(item.sections),
    )  # fmt: skip


@pytest.mark.requirement("CAP-06", "CAP-08", "DIS-03")
def test_hooks_alone_and_the_transcript_alone_give_the_same(tmp_path, transcript):
    told, t = Told(), transcript()
    events = tell(told, t)
    live, later = tmp_path / "live", tmp_path / "later"
    store = open_store(live, now=1)
    config = load_config(live, {})
    Events(store, config, load_rules(config)).take_batch(events)
    distilled(store, hooked=True)
    read_transcript(later, t.path)
    replayed = open_store(later, now=1)
    distilled(replayed)
    assert made(store, "observation")
    assert list(map(story_of, made(store))) == list(map(story_of, made(replayed)))
    store.close()
    replayed.close()


def test_a_session_at_work_is_left_alone_until_its_turn_ends(home):
    told = Told()
    store = open_store(home, now=1)
    config = load_config(home, {})
    events = Events(store, config, load_rules(config))
    events.take_batch([told.prompt("fix it"), told.ran("pytest -q", "x" * 60)])
    now = told.clock
    assert (
        store.queued_sessions(Queue("distil", hooked=True, quiet_since=now - HOUR, limit=9)) == []
    )
    assert store.totals("undistilled", where={"hooked": 1})[0][0] == 1
    assert (
        len(store.queued_sessions(Queue("distil", hooked=True, quiet_since=now + 1, limit=9))) == 1
    ), "nothing has happened since: it is over"
    events.take_batch([told.stop("Done.")])
    assert (
        len(store.queued_sessions(Queue("distil", hooked=True, quiet_since=now - HOUR, limit=9)))
        == 1
    )
    distilled(store, hooked=True)
    with closing(sqlite3.connect(home / "yester.db")) as db:
        assert db.execute("SELECT distilled FROM turn").fetchall() == [(1,)]
    store.close()


def test_the_worker_distils_when_a_turn_has_ended(home, own_home, transcript, zygote_of_commands):
    leave(home, *tell(Told(), transcript()))
    process = zygote_of_commands.start_worker(home)
    store = open_store(home, now=1)
    try:
        found = until(lambda: made(store, "observation"))
        assert [item.title for item in found] == ["Fix the total of the cart for ten items"]
        assert store.totals("undistilled", where={"hooked": 1})[0][0] == 0
    finally:
        process.terminate()
        process.wait(30)
        store.close()


def test_in_the_worker_distilling_is_steps_until_nothing_waits(store, home):
    story = fixed_bug(Story())
    story.store(store)
    with store.transaction("items"):
        session = store.session(SESSION, "claude-code").id
        store.append([Turn("t", session, started=1, ended=2, state="done")])
    done = []
    marks = Marks(home / "working", "0", 0.0)
    log = Log(home / "logs")
    distilling = Distilling(store, log, marks, done.append, lambda: story.clock / 1000)
    config = load_config(home, {})
    steps = 0
    while distilling.step(config):
        steps += 1
    marks.close()
    assert steps > 10
    assert done == [session]
    assert len(made(store, "observation")) == 1


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def indexed(run, transcript):
    """Two sessions in the store, one of them with something to tell."""
    tell(Told(), transcript())
    t = transcript("other.jsonl", session=f"b{SESSION[1:]}")
    t.user("hello")
    t.assistant("Hello! How can I help?")
    assert run("index", str(t.path.parent)).code == 0


def test_backfill_distils_what_is_indexed_and_a_second_run_has_nothing_to_do(run, indexed):
    first = run("distil")
    assert "nothing waits to be distilled" in first.out
    assert "2 indexed sessions not distilled yet: yester distil --backfill" in first.out
    assert run("status", "--json").json["undistilled"] == {"sessions": 2, "of_hooks": 0}
    done = run("distil", "--backfill", "--json").json
    assert (done["sessions"], done["observations"], done["summaries"]) == (2, 1, 1)
    assert "nothing waits" in run("distil", "--backfill").out
    again = run("distil", "--backfill", "--again", "--json").json
    assert (again["sessions"], again["added"], again["changed"]) == (2, 0, 0)
    assert "Fix the total of the cart" in run("recall", "total of the cart").out


def test_one_session_can_be_distilled_and_shown(run, indexed):
    shown = run("distil", "--session", "aaaaaa", "--show")
    assert " · observation · bugfix · " in shown.out
    assert "Fix the total of the cart for ten items" in shown.out
    assert "1 observation and 1 summary of 1 session" in shown.out
    items = run("distil", "--session", "aaaaaa", "--show", "--json").json["items"]
    observation = next(item for item in items if item["kind"] == "observation")
    assert observation["facts"][0]["sources"]
    assert observation["discovery_tokens"] > 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--session", "nobody"], 1, "no session nobody"),
        (["--show"], 2, "name it with --session ID"),
        (["--again"], 2, "--again belongs to --backfill"),
    ],
)
def test_what_cannot_be_distilled_is_said(run, indexed, words, code, message):
    said = run("distil", *words)
    assert said.code == code
    assert message in said.err


# --- the store -----------------------------------------------------------------------------------


def test_the_history_of_a_session_comes_page_by_page_and_what_is_glanced_at_is_short(store):
    story = Story()
    story.prompt("go")
    story._add("message", "tool", "a.py\n\n" + "x" * 5_000, tool="Read", files_read=("a.py",))
    story.ran("make", "y" * 2_000)
    story.ran("make all", "first " + "y" * 6_000 + " last")
    story.thinks("z" * 2_000)
    story.store(store)
    session = store.session(SESSION, "claude-code")
    found, after = [], (-1, 0)
    while page := store.history(session.id, BRIEF_TOOLS, BRIEF_CHARS, after, 2):
        assert len(page) <= 2
        found += page
        after = (page[-1][0].epoch, page[-1][0].id)
    assert [len(item.body) for item, _ in found] == [2, BRIEF_CHARS, 2_006, 5_003, BRIEF_CHARS]
    assert [length for _, length in found] == [2, 5_006, 2_006, 6_021, 2_000]
    assert found[3][0].body.startswith("make all\n\nfirst y")
    assert found[3][0].body.endswith("y last")


def test_where_memory_is_bounded_nothing_goes_that_was_not_looked_at(store):
    story = fixed_bug(Story())
    story.store(store)
    distilled(store)
    at = len(story.items)
    second_turn(story).store(store, at)
    while found := store.queued_sessions(Queue("distil", quiet_since=LATER, limit=9)):
        for _ in distil_session(store, found[0], replace(RULES, most=2), DistilReport()):
            pass
    # What came of the turn that was not looked at is still there.
    assert [item.type for item in made(store, "observation")] == ["bugfix", "discovery"]


def test_removed_items_are_gone_from_rows_and_index(store):
    fixed_bug(Story()).store(store)
    distilled(store)
    ids = [item.id for item in made(store)]
    with store.transaction("items"):
        store.remove([*ids, 999_999])
    assert made(store) == []
    assert maintenance_of(store).check() == []
    assert finding.touching(store, ["src/cart.py"], Filters(kinds=("observation",)), 9) == {}


def test_the_rules_of_the_settings_are_what_the_distiller_skips_by(home):
    assert set(load_config(home, {}).texts("skip_tools")) >= SKIPPED


@pytest.mark.requirement("DIS-03", "CAP-03")
def test_a_card_keeps_its_id_when_the_transcript_names_its_prompt(store):
    """An agent may have been given the number."""
    story = second_turn(fixed_bug(Story()))
    typed = story.items[0]
    story.items[0] = replace(typed, ref=f"hook:{SESSION}:1")
    story.store(store)
    with store.transaction("items"):
        store.append([Event("1-1-a", "UserPromptSubmit", typed.epoch)])
    distilled(store)
    before = {item.id: item.ref for item in made(store)}
    with store.transaction("items"):
        store.put([prepare_item(replace(typed, alias=f"hook:{SESSION}:1"))])
    distilled(store)
    after = {item.id: item.ref for item in made(store)}
    assert after.keys() == before.keys()
    assert after != before


def test_a_check_is_called_by_what_checks_not_by_the_folder_it_is_run_in(memory):
    story = Story()
    story.prompt("Let the crane report its load")
    story.edits("crane/load.go")
    story.ran('cd /home/sam/depot\necho "=== test ==="\ngo test ./...', "ok  \tdepot/crane\t0.1s")
    story.says("The crane reports its load.")
    story.store(memory.store)
    distilled(memory.store)
    [card] = made(memory.store, "summary")
    assert card.tags == ("`go test ./...`",)
