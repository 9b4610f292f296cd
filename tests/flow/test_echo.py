"""What resembles something an agent was shown: kept whatever it is, ranked only if it is new."""

from __future__ import annotations

import pytest

from tests.capturing import SESSION, Told
from tests.distilling import distilled
from tests.readings import every_item
from tests.stores import with_store
from yester.agents.base import Options
from yester.agents.descriptors import AGENTS
from yester.capture.rules import load_rules
from yester.config import load_config
from yester.context.block import Here
from yester.context.prompt import at_prompt
from yester.context.start import at_start
from yester.ingest.events import Events
from yester.ingest.transcripts import Ingest
from yester.model import DISTILLED, Filters, Injection, Paging
from yester.recall.recall import Asked, recall_hits
from yester.recall.timeline import build_timeline
from yester.store import maintenance_of, open_store

pytestmark = pytest.mark.requirement("CAP-11", "CAP-17")

OLD = "The ledger service listens on port 8080 behind the office proxy."
NEW = "The ledger service listens on port 7443 behind the office proxy."
EARLIER = "bbbbbbbb-0000-4000-8000-000000000002"
LONG = "x" * 60


class Desk:
    """A store that hooks and transcripts feed, in which one session was shown what another said."""

    def __init__(self, home):
        home.mkdir()
        self.home = home
        self.store = open_store(with_store(home), now=1)
        self.config = load_config(home, {})
        self.events = Events(self.store, self.config, load_rules(self.config))

    def take(self, *batch):
        for event in batch:
            self.events.take_batch([event])

    def read(self, path):
        ingest = Ingest(self.store, self.events.projects, Options(), load_rules(self.config))
        ingest.read_transcript(AGENTS["claude-code"], path)
        ingest.flush()

    def tell(self, text, cwd="/home/sam/code/shop"):
        """Another session ends with this; the item it becomes."""
        earlier = Told(EARLIER, cwd=cwd, clock=1_760_000_000_000)
        self.take(earlier.prompt("where does it listen?", "t0"), earlier.stop(text))
        return next(item for item in every_item(self.store) if item.body == text)

    def show(self, item, told, event="UserPromptSubmit"):
        session = self.store.session(told.session, "claude-code")
        with self.store.transaction("items"):
            self.store.append([Injection(session.id, event, item.id, 1.0, 9, told.clock)])

    def said(self, text):
        return [
            item
            for item in every_item(self.store)
            if (item.body, item.session, item.kind) == (text, SESSION, "message")
        ]

    def found(self, question):
        return [hit.id for hit in recall_hits(self.store, Asked(question, k=50))]

    def made(self, kind="", project=""):
        return [
            item
            for item in every_item(self.store)
            if item.source == DISTILLED and kind in ("", item.kind) and project in item.project
        ]


@pytest.fixture
def desk(home):
    opened = Desk(home)
    yield opened
    opened.store.close()


def by_hooks(desk, transcript, text):
    told = Told()
    desk.take(told.prompt("where does the ledger service listen now?"))
    desk.show(desk.tell(OLD), told)
    desk.take(told.stop(text))


def by_transcript(desk, transcript, text):
    told = Told()
    desk.take(told.prompt("where does the ledger service listen now?"))
    desk.show(desk.tell(OLD), told)
    t = transcript(clock=told.clock // 1000)
    t.user("where does the ledger service listen now?", promptId="turn-1")
    t.assistant(text)
    desk.read(t.path)


def by_both(desk, transcript, text):
    by_hooks(desk, transcript, text)
    t = transcript()
    t.user("where does the ledger service listen now?", promptId="turn-1")
    t.assistant(text)
    desk.read(t.path)


WAYS = pytest.mark.parametrize("way", [by_hooks, by_transcript, by_both])


@WAYS
def test_a_message_that_repeats_what_was_shown_is_kept_and_not_ranked(desk, transcript, way):
    way(desk, transcript, OLD)
    (item,) = desk.said(OLD)
    assert item.status == "echo"
    assert item.id not in desk.found("ledger service port")
    with desk.store.transaction("items"):
        maintenance_of(desk.store).reindex()
    assert item.id not in desk.found("ledger service port")
    assert desk.store.get([item.id]) == [item]
    assert desk.store.unembedded(50).count(item.id) == 0


@WAYS
def test_a_correction_that_differs_in_one_number_is_a_memory_like_any_other(desk, transcript, way):
    way(desk, transcript, NEW)
    (item,) = desk.said(NEW)
    assert item.status == "active"
    assert item.id in desk.found("ledger service port 7443")


def test_an_echo_is_shown_where_what_happened_is_shown(desk, transcript, run):
    by_hooks(desk, transcript, OLD)
    (item,) = desk.said(OLD)
    assert item.id in [hit.id for hit in build_timeline(desk.store, f"S{SESSION}")]
    assert build_timeline(desk.store, item.id).anchor.id == item.id
    with desk.store.transaction("items"):
        maintenance_of(desk.store).reindex()
    everything = Filters(session=SESSION, echoes=True)
    assert item.id in [one.id for one in desk.store.select(everything, Paging(9))]
    assert item.id not in [one.id for one in desk.store.select(Filters(session=SESSION), Paging(9))]
    done = run("show", str(item.id))
    assert (done.code, OLD in done.out) == (0, True)
    assert "repeats what the agent was shown" in done.err


def test_an_echo_is_given_to_nobody_and_counts_as_no_use(desk, transcript):
    by_hooks(desk, transcript, OLD)
    (item,) = desk.said(OLD)
    session = desk.store.session(SESSION, "claude-code")
    (shown,) = {
        line.item
        for line in desk.store.entries(
            Injection, {"session": session.id}, Paging(oldest_first=True)
        )
    }
    project = desk.events.projects.by_folder("/home/sam/code/shop")
    here = Here(project, "another session", Told().clock + 60_000)
    asked = "where does the ledger service listen?"
    at_asking = at_prompt(desk.store, asked, here)
    for given in (at_start(desk.store, here), at_asking):
        assert item.id not in [one.item for one in given.shown]
    assert desk.store.texts([shown]).used[shown].feedback == {}
    assert item.id not in desk.store.texts([item.id]).used


def test_what_was_said_before_it_was_shown_stays_when_its_transcript_is_read_again(
    desk, transcript
):
    told = Told()
    t = transcript(clock=told.clock // 1000)
    t.user("where does it listen?", promptId="turn-1")
    t.assistant(OLD)
    desk.read(t.path)
    (item,) = desk.said(OLD)
    told.clock += 60_000
    desk.show(item, told)  # after a compaction, say
    t.path.write_text(t.path.read_text().replace("2.1.100", "2.1.101"))
    desk.read(t.path)
    assert desk.said(OLD) == [item]


# --- work that resembles what was shown ----------------------------------------------------------

FIX = (
    "The client hammers the server because the retry loop has no pause, so the loop now waits with"
    " jitter between attempts."
)


def worked(told, prompt, file, closing, turn):
    """A turn that changes a file and ends with these words."""
    edit = {"file_path": f"{told.cwd}/{file}", "old_string": "a" * 40, "new_string": "b" * 40}
    return (
        told.prompt(prompt, turn),
        told.tool("Edit", edit, {"filePath": edit["file_path"], "structuredPatch": []}),
        told.stop(closing),
    )


def written(t, told, prompt, file, closing, turn):
    """The same turn in a transcript."""
    t.user(prompt, promptId=turn)
    edit = {"file_path": f"{told.cwd}/{file}", "old_string": "a" * 40, "new_string": "b" * 40}
    t.result(t.call("Edit", **edit), "The file has been updated.")
    t.assistant(closing)


@pytest.mark.requirement("CAP-11", "DIS-03", "DIS-06")
@pytest.mark.parametrize("by", ["hooks", "transcript"])
def test_the_same_fix_in_two_more_files_is_observed_for_each(desk, transcript, by):
    told = Told()
    turns = [
        ("Fix the retry loop of the mail client", "mail/client.py"),
        ("Fix it the same way in the push client", "push/client.py"),
        ("And the same way in the sms client", "sms/client.py"),
    ]
    shown = desk.tell(FIX)
    desk.take(told.event("SessionStart", source="startup"))
    desk.show(shown, told, "SessionStart")
    t = transcript(clock=told.clock // 1000)
    for number, (prompt, file) in enumerate(turns):
        if by == "hooks":
            desk.take(*worked(told, prompt, file, FIX, f"turn-{number}"))
        else:
            written(t, told, prompt, file, FIX, f"turn-{number}")
    if by == "transcript":
        desk.read(t.path)
    distilled(desk.store)
    own = [item for item in desk.made() if item.session == SESSION]
    observed = [item for item in own if item.kind == "observation"]
    assert {file for item in observed for file in item.files_modified} == {f for _, f in turns}
    assert len(observed) == 3
    (card,) = [item for item in own if item.type == "session"]
    assert set(card.files_modified) == {file for _, file in turns}
    assert len(desk.said(FIX)) == 3


@pytest.mark.requirement("CAP-11", "DIS-03")
@pytest.mark.parametrize("by", ["hooks", "transcript"])
def test_a_fix_that_is_recalled_in_another_project_and_used_there_is_found_there(
    desk, transcript, by
):
    first = Told(EARLIER, cwd="/home/sam/code/mail", clock=1_760_000_000_000)
    asked = "The mail client hammers the server, fix its retry loop"
    desk.take(*worked(first, asked, "client.py", FIX, "t0"))
    distilled(desk.store)
    (known,) = desk.made("observation")
    told = Told(cwd="/home/sam/code/push")
    desk.take(told.event("SessionStart", source="startup"))
    desk.show(known, told, "SessionStart")
    t = transcript(clock=told.clock // 1000, cwd=told.cwd)
    turn = ("The push client hammers the server as well, fix it", "client.py", FIX, "turn-1")
    if by == "hooks":
        desk.take(*worked(told, *turn))
    else:
        written(t, told, *turn)
        desk.read(t.path)
    distilled(desk.store)
    (observed,) = desk.made("observation", project="push")
    assert observed.files_modified == ("client.py",)
    assert desk.made("summary", project="push")
    assert len(desk.said(FIX)) == 1
    asked_there = Asked("retry loop hammers the server", Filters(projects=(observed.project,)), k=9)
    found = recall_hits(desk.store, asked_there)
    assert observed.id in [id_ for hit in found for id_ in (hit.id, *hit.parts)]
