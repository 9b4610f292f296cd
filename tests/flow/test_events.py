"""What hooks told, taken in: items, turns and counts; each event exactly once."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.batches import group_events
from tests.capturing import SESSION, Told, leave
from tests.readings import every_item
from tests.stores import with_store
from yester.agents.base import Options
from yester.agents.descriptors import AGENTS
from yester.capture.rules import change_pause, load_rules
from yester.config import load_config
from yester.ingest.events import Events
from yester.ingest.transcripts import Ingest
from yester.model import ECHO, Event, Filters, Injection, Muted, Paging, Turn, replace
from yester.store import maintenance_of, open_store
from yester.store.figures import Lag, content_counts, middle_lag

pytestmark = pytest.mark.requirement("CAP-03")

LONG = "x" * 60  # enough for an observation


class Intake:
    """Events and transcripts into one store, with the settings as they are now."""

    def __init__(self, home, clock=time.time):
        self.home = home
        self.store = open_store(with_store(home), now=1)
        self.clock = clock

    @property
    def events(self):
        config = load_config(self.home, {})
        return Events(self.store, config, load_rules(config), self.clock)

    def take(self, *batch):
        return self.events.take_batch(batch)

    def one_by_one(self, *batch):
        for event in batch:
            self.take(event)

    def read(self, path):
        events = self.events
        ingest = Ingest(
            self.store, events.projects, Options(), load_rules(load_config(self.home, {}))
        )
        ingest.read_transcript(AGENTS["claude-code"], path)
        ingest.flush()
        return ingest.report

    def items(self, **wanted):
        return [
            item
            for item in every_item(self.store)
            if all(getattr(item, name) == value for name, value in wanted.items())
        ]

    @property
    def session(self):
        return self.store.session(SESSION, "claude-code")

    @property
    def turns(self):
        return self.store.entries(Turn, {"session": self.session.id}, Paging(oldest_first=True))

    def text(self, id_):
        return self.store.get([id_])[0].body if id_ else ""


@pytest.fixture
def intake(home):
    home.mkdir()
    found = Intake(home)
    yield found
    found.store.close()


@pytest.fixture
def told():
    return Told()


def rows(home):
    """Every row of every table."""
    with closing(sqlite3.connect(home / "yester.db")) as db:
        tables = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: sorted(map(repr, db.execute(f'SELECT * FROM "{name}"')))
            for name, sql in tables
            if not sql.startswith("CREATE VIRTUAL")
        }


# --- turns ---------------------------------------------------------------------------------------


@pytest.mark.requirement("CAP-08", "CAP-01")
def test_a_prompt_its_tools_and_its_end_are_one_turn(intake, told):
    told.transcript = "/home/sam/.claude/projects/x/s.jsonl"
    batch = [
        told.event("SessionStart", source="startup"),
        told.prompt("Why is the total wrong?"),
        told.ran("pytest -q", f"2 failed {LONG}"),
        told.failed("make", "Exit code 2"),
        told.stop("A rounding error; it is fixed."),
        told.event("SessionEnd", reason="other"),
    ]
    intake.take(*batch)
    (turn,) = intake.turns
    assert (turn.key, turn.state) == ("turn-1", "done")
    assert (turn.started, turn.ended) == (batch[1].epoch, batch[4].epoch)
    assert intake.text(turn.prompt) == "Why is the total wrong?"
    assert intake.text(turn.closing) == "A rounding error; it is fixed."
    assert turn.transcript == told.transcript
    events = intake.store.entries(Event, {"turn": turn.id}, Paging(oldest_first=True))
    assert [event.id for event in events] == [event.id for event in batch[1:5]]
    assert [(event.tool, event.failed) for event in events[1:3]] == [
        ("Bash", False),
        ("Bash", True),
    ]
    assert all(event.item for event in events)
    session = intake.session
    assert (session.title, session.prompts) == ("Why is the total wrong?", 1)
    assert (session.started, session.ended) == (batch[0].epoch, batch[-1].epoch)
    assert session.transcript == told.transcript
    assert content_counts(intake.store).events == 6


@pytest.mark.requirement("CAP-08")
def test_how_a_turn_ends_is_known(intake, told):
    intake.take(
        told.prompt("one", "t1"), told.stop("done one"),
        told.prompt("two", "t2"), told.ran("sleep 9", LONG),
        told.prompt("three", "t3"), told.failed("sleep 9", "Interrupted", is_interrupt=True),
        told.prompt("four", "t4"), told.event("StopFailure"),
        told.prompt("five", "t5"), told.event("Interrupt"),
        told.prompt("six", "t6"), told.event("SessionEnd", reason="logout"),
    )  # fmt: skip
    assert [(turn.key, turn.state) for turn in intake.turns] == [
        ("t1", "done"), ("t2", "interrupted"), ("t3", "interrupted"), ("t4", "failed"),
        ("t5", "interrupted"), ("t6", "interrupted"),
    ]  # fmt: skip
    assert [intake.text(turn.prompt) for turn in intake.turns] == [
        "one", "two", "three", "four", "five", "six"
    ]  # fmt: skip
    assert all(turn.ended for turn in intake.turns)


def test_an_interrupted_tool_ends_its_turn_unless_the_agent_goes_on(intake, told):
    intake.take(told.prompt("go"), told.failed("sleep 9", "Interrupted", is_interrupt=True))
    (turn,) = intake.turns
    assert (turn.state, turn.ended) == ("interrupted", told.clock)
    intake.take(told.ran("ls", LONG))
    assert intake.turns[0].state == "interrupted"
    intake.take(told.stop("After all."))
    assert [(turn.state, intake.text(turn.closing)) for turn in intake.turns] == [
        ("done", "After all.")
    ]


def test_a_prompt_typed_meanwhile_belongs_to_the_running_turn(intake, told):
    intake.take(
        told.prompt("fix the build"), told.ran("make", LONG), told.prompt("on a new branch"),
        told.ran("git switch -c x", LONG), told.stop("Done."),
    )  # fmt: skip
    (turn,) = intake.turns
    assert (intake.text(turn.prompt), turn.state) == ("fix the build", "done")
    assert [item.body for item in intake.items(kind="prompt")] == [
        "fix the build", "on a new branch"
    ]  # fmt: skip
    assert [item.prompt_number for item in intake.items(kind="prompt")] == [1, 2]


@pytest.mark.requirement("CAP-13")
def test_a_sub_agent_that_ends_late_leaves_its_turn_done(intake, told):
    by = {"agent_id": "a1", "agent_type": "Explore"}
    intake.take(
        told.prompt("look", "t1"), told.event("SubagentStart", **by),
        told.stop("It looks."), told.event("SubagentStop", last_assistant_message="Three.", **by),
        told.prompt("and now?", "t2"), told.stop("Later."),
    )  # fmt: skip
    first, second = intake.turns
    assert (first.state, intake.text(first.closing)) == ("done", "It looks.")
    assert (second.state, intake.text(second.closing)) == ("done", "Later.")
    assert [
        e.name for e in intake.store.entries(Event, {"turn": first.id}, Paging(oldest_first=True))
    ][-1] == "SubagentStop"
    (ended,) = intake.items(actor="Explore:a1")
    assert ended.body == "Three."


def test_a_turn_without_an_id_goes_from_prompt_to_stop(intake, told):
    told.turn = ""
    batch = [
        told.prompt("one"), told.ran("ls", LONG), told.stop("first"),
        told.prompt("two"), told.stop("second"),
    ]  # fmt: skip
    intake.one_by_one(*batch)
    assert [(intake.text(t.prompt), intake.text(t.closing)) for t in intake.turns] == [
        ("one", "first"), ("two", "second")
    ]  # fmt: skip
    assert [turn.key for turn in intake.turns] == [batch[0].id, batch[3].id]


@pytest.mark.requirement("CAP-08")
def test_a_turn_that_began_unseen_gets_its_prompt_from_the_transcript(
    run, home, transcript, told, intake
):
    t = transcript(clock=1_769_999_000)
    t.user("Which queue library shall we take?", promptId="turn-0")
    t.assistant("arq, since everything else is asyncio.")
    told.transcript, told.turn = str(t.path), "turn-0"
    leave(home, told.stop("arq, since everything else is asyncio."))
    assert run("worker", "drain", "--json").json == {"events": 1}
    (turn,) = intake.turns
    assert intake.text(turn.prompt) == "Which queue library shall we take?"
    assert intake.text(turn.closing) == "arq, since everything else is asyncio."
    assert turn.transcript == str(t.path)
    assert len(intake.items()) == 2


# --- once, from both sides -----------------------------------------------------------------------


def both(told, t):
    """The same turn, told by hooks and written by the client."""
    key = "toolu_0123456789abcdef"
    t.user("Why is the total wrong?", promptId="turn-1")
    t.call("Bash", key, command="pytest -q")
    t.result(key, f"2 failed {LONG}")
    t.call("Bash", key + "f", command="make")
    t.result(key + "f", "Exit code 2", error=True)
    summary = "1. The task:\n   the total"
    t.user(
        f"This session is being continued from a previous conversation.\n\nSummary:\n{summary}",
        promptId="turn-1", isCompactSummary=True,
    )  # fmt: skip
    t.assistant("A rounding error.\n\nIt is fixed.")
    told.clock = 1_770_000_000_000
    told.transcript = str(t.path)
    return [
        told.prompt("Why is the total wrong?"),
        told.ran("pytest -q", f"2 failed {LONG}", key),
        told.failed("make", "Exit code 2", key + "f"),
        told.event("PostCompact", trigger="auto", compact_summary=f"<summary>{summary}</summary>"),
        told.stop("A rounding error.\n\nIt is fixed."),
    ]


def told_of(intake):
    return sorted((i.kind, i.role, i.tool, i.body, i.tags) for i in intake.items())


WHOLE = [
    ("message", "assistant", "", "A rounding error.\n\nIt is fixed.", ()),
    ("message", "tool", "Bash", "make\n\nExit code 2", ("error",)),
    ("message", "tool", "Bash", f"pytest -q\n\n2 failed {LONG}", ()),
    ("prompt", "user", "", "Why is the total wrong?", ()),
    ("summary", "assistant", "", "Summary:\n1. The task:\n   the total", ()),
]


def test_hook_then_transcript_is_one_item_each(intake, told, transcript):
    t = transcript()
    intake.one_by_one(*both(told, t))
    assert told_of(intake) == WHOLE
    before = {item.id for item in intake.items()}
    report = intake.read(t.path)
    assert told_of(intake) == WHOLE
    assert {item.id for item in intake.items()} == before
    assert report.put.added == 0
    uuids = {line["uuid"] for line in t.lines}
    assert {item.ref for item in intake.items() if item.role != "tool"} <= uuids
    (turn,) = intake.turns
    assert (intake.text(turn.prompt), intake.text(turn.closing)) == (WHOLE[3][3], WHOLE[0][3])
    assert maintenance_of(intake.store).check() == []


def test_transcript_then_hook_is_one_item_each(intake, told, transcript):
    t = transcript()
    batch = both(told, t)
    intake.read(t.path)
    assert told_of(intake) == WHOLE
    before = {item.id: item.ref for item in intake.items()}
    intake.one_by_one(*batch)
    assert told_of(intake) == WHOLE
    assert {item.id: item.ref for item in intake.items()} == before
    (turn,) = intake.turns
    assert (turn.state, intake.text(turn.prompt)) == ("done", WHOLE[3][3])
    assert intake.text(turn.closing) == WHOLE[0][3]
    assert all(
        event.item
        for event in intake.store.entries(Event, {"turn": turn.id}, Paging(oldest_first=True))
    )


def test_a_call_read_before_its_result_is_completed_by_the_hook(intake, told, transcript):
    t = transcript()
    t.user("go")
    key = t.call("Bash", "toolu_0123456789abcdef", command="make deploy")
    intake.read(t.path)
    intake.take(told.ran("make deploy", f"certificate has expired {LONG}", key))
    (item,) = intake.items(tool="Bash")
    assert item.body == f"make deploy\n\ncertificate has expired {LONG}"


@pytest.mark.requirement("CAP-06")
@pytest.mark.parametrize("file", [SESSION, "agent-a1"])
def test_a_call_read_before_its_result_does_not_undo_what_the_hook_told(
    intake, told, transcript, file
):
    """A sub-agent's transcript is read once, when it ends; its last lines may come after that."""
    by = {"agent_id": "a1"} if file == "agent-a1" else {}
    whole = f"make deploy\n\ncertificate has expired {LONG}"
    t = transcript(file, session=SESSION)
    key = t.call("Bash", "toolu_0123456789abcdef", command="make deploy")
    intake.take(told.prompt("go"), told.ran("make deploy", whole[13:], key, **by))
    intake.read(t.path)
    (item,) = intake.items(tool="Bash")
    assert (item.body, item.actor) == (whole, by.get("agent_id", ""))
    t.result(key, whole[13:])
    intake.read(t.path)
    assert [item.body for item in intake.items(tool="Bash")] == [whole]
    assert maintenance_of(intake.store).check() == []


def test_the_same_words_again_are_said_again(intake, told, transcript):
    t = transcript()
    for number in ("t1", "t2", "t3"):
        t.user("go on please", promptId=number)
        t.assistant("Done.")
        intake.one_by_one(told.prompt("go on please", number), told.stop("Done."))
        intake.read(t.path)
    prompts = intake.items(kind="prompt")
    assert [item.body for item in prompts] == ["go on please"] * 3
    assert [item.prompt_number for item in prompts] == [1, 2, 3]
    assert len(intake.items(role="assistant")) == 3
    turns = intake.turns
    assert [turn.prompt for turn in turns] == [item.id for item in prompts]
    assert len({turn.closing for turn in turns}) == 3


def test_a_replay_changes_nothing(home, intake, told, transcript):
    t = transcript()
    batch = [
        told.event("SessionStart", source="startup"), *both(told, t), told.ran("ls", "a"),
        told.tool("TodoWrite", {"todos": []}, {}), told.event("SessionEnd", reason="other"),
        replace(told.event("Stop"), payload=b"[]"), replace(told.event("Stop"), payload=b""),
    ]  # fmt: skip
    intake.take(*batch)
    intake.read(t.path)
    before = rows(home)
    again = intake.take(*batch)
    assert (again.new, len(again.again)) == ([], len(batch) - 1)
    intake.one_by_one(*batch)
    intake.take(*batch[3:7])
    intake.read(t.path)
    assert rows(home) == before


@settings(max_examples=8)
@given(
    cuts=st.lists(st.integers(0, 12), max_size=5), again=st.lists(st.integers(0, 12), max_size=3)
)
def test_however_events_are_batched_and_repeated_the_result_is_the_same(
    tmp_path_factory, cuts, again
):
    """What is stored does not depend on when a worker was killed."""
    told = Told()
    batch = [
        told.event("SessionStart", source="startup"),
        told.prompt("one", "t1"), told.ran("ls", LONG), told.ran("cat x", LONG), told.stop("first"),
        told.prompt("two", "t2"), told.prompt("two and a half"), told.failed("make", "Exit code 2"),
        told.stop("second"), told.prompt("three", "t3"), told.ran("true"),
        told.event("SessionEnd", reason="other"),
    ]  # fmt: skip

    def stored(*batches):
        home = tmp_path_factory.mktemp("home") / "memory"
        home.mkdir()
        intake = Intake(home, clock=lambda: 1_770_000_100.0)
        try:
            for part in batches:
                intake.take(*part)
        finally:
            intake.store.close()
        found = rows(home)
        return {name: found[name] for name in ("event", "turn", "item", "session", "skipped")}

    bounds = sorted({0, *cuts, len(batch)})
    parts = [batch[a:b] for a, b in pairwise(bounds)]
    repeats = [batch[max(0, at - 3) : at] for at in again]
    assert stored(*parts, *repeats) == stored(batch)


# --- where it belongs ----------------------------------------------------------------------------


@pytest.mark.requirement("CAP-07")
def test_the_project_is_where_the_session_began(intake, told, tmp_path):
    for name in ("shop", "blog"):
        git = tmp_path / name / ".git"
        git.mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
    told.cwd = str(tmp_path / "shop")
    moved = told.ran("ls", LONG, cwd=str(tmp_path / "blog"))
    read = {"file_path": str(tmp_path / "shop" / "src" / "a.py")}
    intake.take(
        told.prompt("hello"), moved, told.tool("Read", read, {"file": {"content": LONG}}),
        told.stop("bye"),
    )  # fmt: skip
    assert {item.project for item in intake.items()} == {f"dir:{tmp_path / 'shop'}"}
    assert [p.name for p in intake.store.projects()] == ["shop"]
    (seen,) = intake.items(tool="Read")
    assert seen.files_read == ("src/a.py",)


@pytest.mark.requirement("CAP-13")
def test_what_a_sub_agent_does_is_its_own_and_can_be_left_out(home, intake, told):
    by = {"agent_id": "a1", "agent_type": "Explore"}
    intake.take(told.prompt("look"), told.ran("grep x", LONG, **by), told.ran("ls", LONG))
    assert [(i.actor, i.body[:4]) for i in intake.items(tool="Bash")] == [
        ("Explore:a1", "grep"), ("", "ls\n\n")
    ]  # fmt: skip
    (home / "config.toml").write_text("subagents = false")
    intake.take(
        told.ran("grep y", LONG, **by),
        told.event("SubagentStop", last_assistant_message="Found three.", **by),
        told.ran("ls -l", LONG),
    )
    assert len(intake.items(actor="Explore:a1")) == 1
    assert len(intake.items(tool="Bash", actor="")) == 2
    assert content_counts(intake.store).skipped["sub-agent"] == 2
    (turn,) = intake.turns
    events = intake.store.entries(Event, {"turn": turn.id}, Paging(oldest_first=True))
    assert [e.actor for e in events] == ["", "Explore:a1", "", "Explore:a1", "Explore:a1", ""]


# --- what must not be kept -----------------------------------------------------------------------


def nothing_of(home, word):
    for path in home.rglob("*"):
        if path.is_file():
            assert word.encode() not in path.read_bytes(), path


@pytest.mark.requirement("CAP-14")
def test_nothing_is_kept_of_an_excluded_folder(home, intake, told, transcript):
    (home / "config.toml").write_text('exclude = ["/home/sam/code/*", "payroll"]')
    intake.take(told.prompt("the walrus"), told.ran("walrus", LONG), told.stop("walrus"))
    elsewhere = Told("bbbb", "/srv/payroll")
    intake.take(elsewhere.prompt("the walrus"))
    assert (
        intake.items()
        == intake.store.sessions(Filters(), Paging(9))
        == intake.store.projects()
        == []
    )
    assert content_counts(intake.store).skipped == {"excluded": 4}
    assert content_counts(intake.store).events == 4
    t = transcript()
    t.user("the walrus")
    t.other("queue-operation", operation="enqueue", content="and the walrus")
    t.call("TodoWrite", todos=[{"content": "the walrus", "status": "pending"}])
    intake.read(t.path)
    assert intake.items() == intake.store.sessions(Filters(), Paging(9)) == []
    nothing_of(home, "walrus")


@pytest.mark.requirement("CAP-14")
@pytest.mark.parametrize(
    ("kind", "what"), [("all", ""), ("path", "/home/sam/code"), ("session", SESSION)]
)
def test_nothing_is_kept_of_what_happened_while_it_was_off(
    home, intake, told, transcript, kind, what
):
    t = transcript()
    t.user("before", promptId="turn-1")
    before = told.prompt("before")
    told.clock = t.clock * 1000 + 2_000
    change_pause(home, kind, what, t.clock * 1000 + 1_000)
    t.user("the walrus", promptId="turn-1")
    off = told.prompt("the walrus")
    told.clock = t.clock * 1000 + 2_000
    change_pause(home, kind, what, t.clock * 1000 + 1_000, off=False)
    t.user("afterwards", promptId="turn-1")
    intake.one_by_one(before, off, told.prompt("afterwards"))
    assert [item.body for item in intake.items()] == ["before", "afterwards"]
    assert content_counts(intake.store).skipped == {"off": 1}
    intake.read(t.path)
    assert [item.body for item in intake.items()] == ["before", "afterwards"]
    nothing_of(home, "walrus")


@pytest.mark.requirement("CAP-14")
def test_a_session_is_not_named_by_what_was_typed_while_it_was_off(home, intake, transcript):
    t = transcript()
    change_pause(home, "all", "", t.clock * 1000)
    t.user("the walrus")
    change_pause(home, "all", "", t.clock * 1000 + 1_000, off=False)
    t.user("afterwards")
    intake.read(t.path)
    t.user("and later")
    intake.read(t.path)
    assert [item.body for item in intake.items()] == ["afterwards", "and later"]
    assert intake.session.title == ""
    nothing_of(home, "walrus")


@pytest.mark.requirement("CAP-14")
def test_a_session_that_was_started_switched_off_stays_out_with_its_transcript(
    home, intake, told, transcript
):
    t = transcript()
    t.user("the walrus", promptId="turn-1")
    note = told.event("SessionStart", {"off": "1"})
    intake.one_by_one(note, told.prompt("the walrus"), told.stop("the walrus"))
    assert {one.session for one in intake.store.entries(Muted)} == {SESSION}
    intake.read(t.path)
    assert intake.items() == []
    assert intake.session is None
    assert content_counts(intake.store).skipped == {"off": 4}
    nothing_of(home, "walrus")


@pytest.mark.requirement("CAP-09", "CAP-10")
def test_private_text_and_secrets_are_in_no_file(home, intake, told):
    key = "ghp_" + "a1B2" * 9
    intake.take(
        told.prompt(f"use {key} and <private>the walrus</private> please"),
        told.ran(f"curl -H 'Authorization: token {key}'", f"<PRIVATE>the walrus {LONG}"),
        told.failed("make", f"Exit code 1 {key}"),
        told.stop(f"I used {key}. <private>the walrus"),
        told.event("PostCompact", compact_summary=f"<summary>{key} <private>the walrus</summary>"),
    )
    intake.store.close()
    assert (home / "yester.db").stat().st_size > 0
    nothing_of(home, key)
    nothing_of(home, "walrus")


@pytest.mark.requirement("CAP-11")
def test_what_yester_itself_said_does_not_come_back(home, intake, told, transcript):
    intake.take(told.prompt("one"), told.stop("Safari fires no load event for cached images."))
    (shown,) = intake.items(role="assistant")
    later = Told("cccccccc-0000-4000-8000-000000000003", clock=told.clock)
    intake.take(later.prompt("why does the spinner never stop?", "t9"))
    session = intake.store.session(later.session, "claude-code")
    with intake.store.transaction("items"):
        intake.store.append([Injection(session.id, "x", shown.id, 1.0, 9, 5)])
    fenced = "<yester-memory>\nthe walrus\n</yester-memory>"
    intake.take(
        later.ran("yester recall spinner", f"the walrus {LONG}"),
        later.tool("mcp__yester__search", {"query": "spinner"}, f"the walrus {LONG}"),
        later.ran("cat notes", f"notes {LONG}\n{fenced}"),
        later.prompt(f"{fenced}What else?", "t10"),
        later.stop("Safari fires no load event for cached images."),
    )
    repeated = "Safari fires no load event for cached images."
    assert [item.body for item in intake.items(session=later.session)] == [
        "why does the spinner never stop?", f"cat notes\n\nnotes {LONG}\n", "What else?", repeated
    ]  # fmt: skip
    assert content_counts(intake.store).skipped == {"own answer": 2}
    t = transcript(later.session)
    t.user("why does the spinner never stop?", promptId="t9")
    t.user("What else?", promptId="t10")
    t.assistant(repeated)
    t.assistant("So I listen to decode() instead, which works in every browser we support.")
    intake.read(t.path)
    said = intake.items(session=later.session, role="assistant", status="active")
    assert [item.body for item in said] == [
        "So I listen to decode() instead, which works in every browser we support."
    ]
    assert [item.body for item in intake.items(status=ECHO)] == [repeated]
    nothing_of(home, "walrus")


# --- what is not worth an observation ------------------------------------------------------------


@pytest.mark.requirement("CAP-04", "CAP-05")
def test_short_and_listed_tools_stay_as_evidence_of_the_turn(intake, told):
    intake.take(
        told.prompt("go"), told.ran("true"), told.ran("ls", LONG),
        told.tool("TodoWrite", {"todos": [{"content": LONG}]}, {}), told.failed("x", "E"),
        told.tool("AskUserQuestion", {"questions": "UTC or local time?"}, f"UTC {LONG}"),
    )  # fmt: skip
    (turn,) = intake.turns
    events = intake.store.entries(Event, {"turn": turn.id}, Paging(oldest_first=True))[1:]
    assert [(e.tool, e.failed, e.skipped) for e in events] == [
        ("Bash", False, "short"), ("Bash", False, ""), ("TodoWrite", False, "skipped tool"),
        ("Bash", True, ""), ("AskUserQuestion", False, ""),
    ]  # fmt: skip
    assert [bool(e.item) for e in events] == [True, True, False, True, True]
    assert content_counts(intake.store).skipped == {"short": 1, "skipped tool": 1}


@pytest.mark.requirement("CAP-04")
def test_a_session_says_itself_what_is_skipped(intake, told):
    own = {"YESTER_SKIP_TOOLS": "Bash"}
    intake.take(
        told.prompt("go"), told.ran("ls", LONG, hints=own), told.ran("ls -l", LONG),
        told.tool("TodoWrite", {"todos": [{"content": LONG}]}, {}, hints=own),
    )  # fmt: skip
    (turn,) = intake.turns
    assert [
        e.skipped for e in intake.store.entries(Event, {"turn": turn.id}, Paging(oldest_first=True))
    ] == ["", "skipped tool", "", ""]


@pytest.mark.requirement("CAP-06")
def test_batches_go_by_the_time_of_the_events_and_never_across_a_prompt(home, intake, told):
    (home / "config.toml").write_text("batch_window_ms = 2000")
    quick = {"YESTER_BATCH_WINDOW_MS": "500"}
    batch = [
        told.prompt("one", "t1"), told.ran("a", LONG), told.ran("b", LONG, after=2_000),
        told.ran("c", LONG, after=2_001), told.ran("d", LONG, after=501, hints=quick),
        told.prompt("two", "t2"), told.ran("e", LONG, after=1),
    ]  # fmt: skip
    intake.one_by_one(*reversed(batch[1:5]), *batch[5:], batch[0])
    found = [
        [intake.text(e.item)[0] for e in part]
        for turn in sorted(intake.turns, key=lambda turn: turn.key)
        for part in group_events(
            intake.store.entries(Event, {"turn": turn.id}, Paging(oldest_first=True))
        )
    ]
    assert found == [["a", "b"], ["c"], ["d"], ["e"]]


# --- much, and bad -------------------------------------------------------------------------------


@pytest.mark.requirement("OPS-05", "CAP-09")
def test_a_huge_output_keeps_its_ends_and_takes_little_time(home, intake, told):
    middle = "lorem ipsum dolor\n" * 1_200_000
    output = f"begins <private>walrus{middle}walrus</private> {middle[:5_000_000]} ends"
    event = told.ran("cat log", output)
    assert len(event.payload) > 20_000_000
    began = time.process_time()
    intake.take(event)
    assert time.process_time() - began < 5
    (item,) = intake.items()
    assert len(item.body) < 8_200
    assert item.body.startswith("cat log\n\nbegins")
    assert item.body.endswith("ends")
    assert "characters left out" in item.body
    nothing_of(home, "walrus")


@pytest.mark.requirement("OPS-05")
def test_one_bad_event_keeps_no_other_out(intake, told):
    bad = [replace(told.event("Stop"), payload=data) for data in (b"[]", b"{", b"\xff")]
    taken = intake.take(told.prompt("one"), *bad, told.stop("two"))
    assert taken.unreadable == {event.id for event in bad}
    assert [item.body for item in intake.items()] == ["one", "two"]
    assert content_counts(intake.store).skipped == {"unreadable": 3}


@pytest.mark.requirement("OPS-05")
def test_a_text_cut_in_the_middle_of_a_character_is_kept(intake, told):
    event = told.ran("cat x", f"{LONG} X")
    cut = replace(event, payload=event.payload.replace(b" X", b" \\ud83d"))
    assert json.loads(cut.payload)["tool_response"]["stdout"].endswith("\ud83d")
    intake.take(cut)
    (item,) = intake.items()
    assert item.body.startswith(f"cat x\n\n{LONG}")


@pytest.mark.requirement("OPS-05")
def test_an_event_without_a_session_is_counted_and_harms_nothing(intake, told):
    told.session = ""
    intake.take(told.prompt("hello"), told.stop("bye"), replace(told.event("Stop"), payload=b""))
    assert content_counts(intake.store).events == 3
    assert intake.store.entries(Turn, {"session": 0}, Paging(oldest_first=True)) == []
    assert maintenance_of(intake.store).check() == []


# --- what `status` shows -------------------------------------------------------------------------


@pytest.mark.requirement("DIS-11")
def test_the_lag_from_hook_to_store_is_measured(home, told):
    home.mkdir()
    clock = iter([1_770_000_001.040, 1_770_000_002.300, 1_770_000_002.0])
    intake = Intake(home, clock=lambda: next(clock))
    intake.one_by_one(told.ran("a", LONG), told.ran("b", LONG), told.ran("from the future", LONG))
    assert middle_lag(intake.store, 10) == Lag(40, 300)
    assert middle_lag(intake.store, 1) == Lag(0, 0)
    intake.store.close()


@pytest.mark.requirement("DIS-11", "CAP-03")
def test_status_shows_events_lag_and_what_was_left_out(run, home, told):
    now = int(time.time() * 1000)
    told.clock = now - 10_000
    leave(
        home, told.prompt("hello"), told.ran("true"), told.tool("TodoWrite", {}, {}),
        replace(told.stop("."), payload=b"nonsense"),
    )  # fmt: skip
    waiting = run("status", "--json").json
    assert waiting["spool"]["waiting"] == 4
    assert 5 < waiting["spool"]["oldest_s"] < 300
    assert waiting["events"] == 0
    assert run("worker", "drain").out == "4 events taken in\n"
    found = run("status", "--json").json
    assert found["spool"] == {"waiting": 0, "oldest_s": None, "bad": 1}
    assert found["events"] == 4
    assert found["skipped"] == {"short": 1, "skipped tool": 1, "unreadable": 1}
    assert 5_000 < found["lag_ms"]["p50"] <= found["lag_ms"]["p99"] < 300_000
    text = run("status").out
    assert "events       4; recallable after" in text
    assert "left out     1 " in text
    assert "spool        0 waiting, 1 unreadable" in text
