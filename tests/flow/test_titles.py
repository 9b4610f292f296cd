"""Turns named by the reader model, by the command and by the worker."""

from __future__ import annotations

import threading

import pytest

from tests.capturing import Told, leave, until
from tests.distilling import LATER, RULES, SESSION, Story, made
from tests.stores import with_store
from yester.cards.sessions import DistilReport, distil_session
from yester.config import load_config
from yester.ingest.prepare import prepare_item
from yester.model import Injection, Queue, Turn, replace
from yester.store import open_store
from yester.text.models import PACKAGED
from yester.text.reader import open_reader
from yester.worker.jobs import Distilling, Work
from yester.worker.process import Log
from yester.worker.watchdog import Marks

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.requirement("DIS-03", "DIS-15")

CLOSING = (
    "Let me know if anything is unclear.\n\n"
    "I've added up to three retries with exponential backoff to `PaymentClient.send`.\n\n"
    "Should I commit it?"
)
TITLE = "Added up to three retries with exponential backoff to PaymentClient.send"


@pytest.fixture(scope="module")
def reader():
    opened = open_reader({}, PACKAGED)
    assert opened is not None
    return opened


@pytest.fixture
def store(home):
    opened = open_store(with_store(home), now=1)
    yield opened
    opened.close()


def worked(story, prompt="ok go on then please", closing=CLOSING):
    story.prompt(prompt)
    story.edits("src/payment.py")
    story.says(closing)
    return story


def distil_all(store, reader):
    report = DistilReport()
    for waiting in store.queued_sessions(Queue("distil", quiet_since=LATER, limit=99)):
        for _ in distil_session(store, waiting, replace(RULES, reader=reader), report):
            pass
    return report


def titles(store):
    return [item.title for item in made(store, "observation")]


def test_a_turn_without_a_commit_is_named_by_the_reader(store, reader):
    worked(Story()).store(store)
    distil_all(store, reader)
    assert titles(store) == [TITLE]


def test_a_commit_and_a_plan_name_their_turns_themselves(store, reader):
    story = worked(Story(), "Implement the following plan:\n\n# Retry payments that time out")
    story.prompt("and the refunds")
    story.edits("src/refund.py")
    story.commits("Retry refunds")
    story.says("I've added three retries to every refund that the provider refuses.")
    story.store(store)
    distil_all(store, reader)
    assert titles(store) == ["Retry payments that time out", "Retry refunds"]


def test_what_the_session_was_shown_before_is_no_title(store, reader):
    shown = "The timetable cache holds the departures of yesterday after midnight."
    story = Story()
    story.prompt("ok go on then please")
    story.edits("src/cache.py")
    story.says(shown)
    story.store(store)
    known = replace(story.items[0], ref="old", kind="memory", session="", body=shown, epoch=2)
    with store.transaction("items"):
        store.put([prepare_item(known)])
        session, (old,) = store.session(SESSION, "claude-code").id, store.find_by_ref("old")
        store.append([Injection(session, "UserPromptSubmit", old.id, 0.9, 20, 5)])
    distil_all(store, reader)
    assert not any(title.startswith("The timetable cache") for title in titles(store))


def test_an_answer_is_named_by_the_reader(store, reader):
    story = Story()
    story.prompt("why is the nightly export so slow?")
    story.reads("src/export.py")
    story.says(
        "## Cause\n\nThe export opens one connection for every row because `pool.close()` is called"
        " inside the loop. The root cause is that `export()` takes its pool from `rows()`."
    )
    story.store(store)
    distil_all(store, reader)
    without = titles(store)
    with store.transaction("work"):
        store.queue_sessions()
    distil_all(store, None)
    assert len(without) == len(titles(store)) == 1
    assert without[0].startswith("The export opens one connection for every row")


def test_turn_by_turn_and_twice_give_the_same_titles(tmp_path, reader):
    story, after = Story(), []
    for number in range(9):
        worked(story, f"ok go on with part {number}", CLOSING.replace("three", f"{number + 3}"))
        after.append(len(story.items))
    live, whole = (open_store(with_store(tmp_path / name), now=1) for name in ("live", "whole"))
    for since, end in zip([0, *after], after, strict=False):
        replace(story, items=story.items[:end]).store(live, since)
        distil_all(live, reader)
    story.store(whole)
    distil_all(whole, reader)
    assert titles(live) == titles(whole)
    assert len(titles(whole)) == 9
    with whole.transaction("work"):
        whole.queue_sessions()
    assert distil_all(whole, reader).put.total_written == 0
    live.close()
    whole.close()


class BrokenReader:
    def find_title(self, *_):
        raise ValueError("a text that breaks it")


@pytest.fixture
def thread(home):
    """The worker's thread, which has not begun, and what it says when something is ready."""
    ready = threading.Event()
    work = Work(load_config(home, {}), Log(home / "logs"), ready.set)
    yield work, ready
    if work.is_alive():
        work.end()


def distil_beside(store, home, story, thread):
    """As the worker does: while a title is read it goes on with something else."""
    work, ready = thread
    with store.transaction("items"):
        session = store.session(SESSION, "claude-code").id
        store.append([Turn("t", session, started=1, ended=2, state="done")])
    marks = Marks(home / "working", "0", 0.0)
    log = Log(home / "logs")
    distilling = Distilling(store, log, marks, [].append, lambda: story.clock / 1000, work)
    waited = 0
    while distilling.step(load_config(home, {})) or distilling.at:
        if distilling.at:
            waited += 1
            if not work.is_alive():
                work.start()
            assert ready.wait(120)
            ready.clear()
    marks.close()
    return waited


@pytest.mark.requirement("DIS-15")
@pytest.mark.parametrize("broken", [False, True])
def test_a_thread_names_the_turns_for_the_worker_and_rules_those_that_cannot_be_read(
    store, home, broken, thread
):
    title = "Up to three retries with exponential backoff in PaymentClient.send"
    story = worked(
        Story(), closing=f"Tests pass.\n\nLook at it.\n\n- {title}\n\nShould I commit it?"
    )
    story.store(store)
    thread[0].reader = BrokenReader() if broken else None
    assert distil_beside(store, home, story, thread)
    found = titles(store)
    assert len(found) == 1
    assert (found == [title]) is not broken
    log = Log(home / "logs")
    assert broken is (log._path.exists() and "reading a title" in log._path.read_text())


def test_a_thread_that_has_ended_leaves_no_turn_without_a_title(store, home, thread):
    story = worked(Story())
    story.store(store)
    work, ready = thread
    asked = work.find_title("", CLOSING)
    work.start()
    assert asked.result(30).text == TITLE
    work.end()
    ready.clear()
    assert not work.find_title("", CLOSING).result(30).usable
    assert distil_beside(store, home, story, thread) == 0
    assert len(titles(store)) == 1


def test_the_worker_and_the_command_name_a_turn_alike(
    home, own_home, run, monkeypatch, zygote_of_commands
):
    monkeypatch.delenv("YESTER_EMBEDDER")
    told = Told()
    file = {"file_path": f"{told.cwd}/src/payment.py", "old_string": "a" * 40, "new_string": "b"}
    leave(
        home,
        told.event("SessionStart", source="startup"),
        told.prompt("ok go on then please"),
        told.tool("Edit", file, "", "call-1"),
        told.stop(CLOSING),
    )
    process = zygote_of_commands.start_worker(home)
    store = open_store(home, now=1)
    try:
        until(lambda: titles(store) == [TITLE])
    finally:
        process.terminate()
        process.wait(30)
    again = run("distil", "--backfill", "--again", "--json").json
    assert (again["sessions"], again["changed"]) == (1, 0)
    assert titles(store) == [TITLE]
    store.close()
