"""What resembles something an agent was shown: kept whatever it is, ranked only if it is new."""

from __future__ import annotations

import pytest

from tests.capturing import SESSION, Told
from yester.agents import AGENTS
from yester.agents.base import Options
from yester.capture.rules import rules
from yester.config import load
from yester.deliver.context import Moment, context
from yester.deliver.prompt import Given, Search
from yester.deliver.start import Here
from yester.ingest import Ingest
from yester.ingest.events import Events
from yester.model import DISTILLED, Filters, Injection
from yester.recall.recall import Asked, recall
from yester.recall.timeline import timeline
from yester.store.sqlite import SqliteStore

pytestmark = pytest.mark.requirement("CAP-11")

OLD = "The ledger service listens on port 8080 behind the office proxy."
NEW = "The ledger service listens on port 7443 behind the office proxy."
FRAMED = "As noted, the ledger service listens on port 8080 behind the office proxy, as we saw."
EARLIER = "bbbbbbbb-0000-4000-8000-000000000002"
LONG = "x" * 60


class Desk:
    """A store that hooks and transcripts feed, in which one session was shown what another said."""

    def __init__(self, home):
        home.mkdir()
        self.home = home
        self.store = SqliteStore.open(home, now=1)
        self.config = load(home, {})
        self.events = Events(self.store, self.config, rules(self.config))

    def take(self, *batch):
        for event in batch:
            self.events.take([event])

    def read(self, path):
        ingest = Ingest(self.store, self.events.projects, Options(), rules(self.config))
        ingest.read(AGENTS["claude-code"], path, lambda _: None)
        ingest.flush()

    def tell(self, text, cwd="/home/sam/code/shop"):
        """Another session ends with this; the item it becomes."""
        earlier = Told(EARLIER, cwd=cwd, clock=1_760_000_000_000)
        self.take(earlier.prompt("where does it listen?", "t0"), earlier.stop(text))
        return next(item for item in self.store.items() if item.body == text)

    def show(self, item, told, event="UserPromptSubmit"):
        session = self.store.session(told.session, "claude-code")
        with self.store.transaction():
            self.store.put_injections([Injection(session.id, event, item.id, 1.0, 9, told.clock)])

    def said(self, text):
        return [i for i in self.store.items() if i.body == text and i.session == SESSION]

    def found(self, question):
        return [hit.id for hit in recall(self.store, Asked(question, k=50))]

    def made(self, kind="", project=""):
        return [
            item
            for item in self.store.items()
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


@pytest.mark.parametrize("text", [OLD, FRAMED])
@WAYS
def test_a_message_that_repeats_what_was_shown_is_kept_and_not_ranked(desk, transcript, way, text):
    way(desk, transcript, text)
    (item,) = desk.said(text)
    assert item.status == "echo"
    assert item.id not in desk.found("ledger service port")
    with desk.store.transaction():
        desk.store.reindex()
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
    assert item.id in [hit.id for hit in timeline(desk.store, f"S{SESSION}")]
    assert timeline(desk.store, item.id).anchor.id == item.id
    with desk.store.transaction():
        desk.store.reindex()
    everything = Filters(session=SESSION, echoes=True)
    assert item.id in [one.id for one in desk.store.newest(everything, 9)]
    assert item.id not in [one.id for one in desk.store.newest(Filters(session=SESSION), 9)]
    done = run("show", str(item.id))
    assert (done.code, OLD in done.out) == (0, True)
    assert "repeats what the agent was shown" in done.err


def test_an_echo_is_given_to_nobody_and_counts_as_no_use(desk, transcript):
    by_hooks(desk, transcript, OLD)
    (item,) = desk.said(OLD)
    session = desk.store.session(SESSION, "claude-code")
    (shown,) = {line.item for line in desk.store.injections(session.id)}
    project = desk.events.projects.of("/home/sam/code/shop")
    here = Here(project, "another session", Told().clock + 60_000)
    for moment in (Moment("start"), Moment("prompt", "where does the ledger service listen?")):
        given = context(desk.store, moment, here, Given(), Search())
        assert item.id not in [one.item for one in given.shown]
    assert desk.store.used([shown])[shown].feedback == {}
    assert item.id not in desk.store.used([item.id])


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
