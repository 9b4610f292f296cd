"""Which events are worth an observation, which belong together, and what is only our own echo."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.batches import group_events
from tests.capturing import Told
from tests.table import each
from yester.agents.hooks import read_payload
from yester.config import SETTINGS
from yester.ingest.prepare import (
    batch_window,
    is_own_answer,
    no_observation,
    skipped_tools,
)
from yester.model import Event, Item

DEFAULT = next(setting.default for setting in SETTINGS if setting.name == "skip_tools")


# --- tools that are not worth it -----------------------------------------------------------------


@pytest.mark.requirement("CAP-04")
def test_the_closed_list_of_tools_that_are_skipped():
    assert set(DEFAULT) == {
        "TodoRead", "TodoWrite", "LS", "TaskCreate", "TaskUpdate", "TaskList", "ToolSearch", "Skill"
    }  # fmt: skip


@pytest.mark.requirement("CAP-04")
@each(
    ("hints", "skipped"),
    [
        ({}, DEFAULT),
        ({"YESTER_SKIP_TOOLS": "Bash"}, ["Bash"]),
        ({"YESTER_SKIP_TOOLS": " Bash , mcp__x__y ,,"}, ["Bash", "mcp__x__y"]),
        ({"YESTER_SKIP_TOOLS": ""}, []),
        ({"CLAUDE_MEM_SKIP_TOOLS": "Read,Grep"}, ["Read", "Grep"]),
        ({"YESTER_SKIP_TOOLS": "Bash", "CLAUDE_MEM_SKIP_TOOLS": "Read"}, ["Bash"]),
        ({"YESTER_SKIP_TOOLS": "", "CLAUDE_MEM_SKIP_TOOLS": "Read"}, []),
        ({"SKIP_TOOLS": "Bash"}, DEFAULT),
    ],
)
def test_a_session_can_have_its_own_list(hints, skipped):
    assert skipped_tools(hints, DEFAULT) == frozenset(skipped)


@pytest.mark.requirement("CAP-04", "CAP-05")
@each(
    ("tool", "size", "failed", "reason"),
    [
        ("Bash", 50, False, ""),
        ("Bash", 49, False, "short"),
        ("Bash", 0, False, "short"),
        ("Bash", 0, True, ""),
        ("LS", 5_000, False, "skipped tool"),
        ("LS", 0, False, "skipped tool"),
        ("LS", 0, True, ""),
        ("TodoWrite", 5_000, True, ""),
        ("AskUserQuestion", 50, False, ""),
        ("ls", 5_000, False, ""),
    ],
)
def test_short_ones_and_listed_ones_are_not_worth_it_and_failures_always_are(
    tool, size, failed, reason
):
    assert no_observation(tool, size, failed, frozenset(DEFAULT)) == reason


SIZES = [
    # input, response: characters
    ({"command": "ls"}, {"stdout": "a\nb"}, 5),
    ({"command": "ls"}, "a\nb", 5),
    ({"a_very_long_name_of_a_field_that_does_not_count": "x"}, {}, 1),
    ({"n": 123456789, "b": True, "z": None, "f": 1.5}, [], 0),
    ({"deep": [{"er": ["ab", {"est": "c"}]}]}, ["d", ["e"]], 5),
    ({"command": "äöü漢字🙂"}, None, 6),
    ({"command": '"\\\n\t"'}, None, 5),
    (None, None, 0),
    ("text", 7, 4),
]


@pytest.mark.requirement("CAP-05")
@each(("given_", "response", "size"), SIZES)
def test_characters_are_counted_over_decoded_texts(given_, response, size):
    payload = {"tool_name": "Bash", "tool_input": given_, "tool_response": response}
    assert read_payload("PostToolUse", "/x", {}, payload, 1).size == size


@pytest.mark.requirement("CAP-05")
def test_the_text_of_a_failure_counts():
    payload = Told().payload("PostToolUseFailure", tool_name="B", tool_input="ab", error="cde")
    told = read_payload("PostToolUseFailure", "/x", {}, payload, 1)
    assert (told.size, told.failed) == (5, True)


# --- batches -------------------------------------------------------------------------------------


def used(tool, epoch, actor="", window=3_000, **more):
    return Event(f"{epoch:09}-{tool}-{actor}", "PostToolUse", epoch, 1, 1, actor, tool,
                 window=window, **more)  # fmt: skip


def shape(events):
    return [[(event.tool, event.epoch) for event in batch] for batch in group_events(events)]


@pytest.mark.requirement("CAP-06")
@each(
    ("hints", "milliseconds"),
    [
        ({}, 3_000),
        ({"YESTER_BATCH_WINDOW_MS": "500"}, 500),
        ({"YESTER_BATCH_WINDOW_MS": "0"}, 0),
        ({"CLAUDE_MEM_BATCH_WINDOW_MS": "9000"}, 9_000),
        ({"YESTER_BATCH_WINDOW_MS": "500", "CLAUDE_MEM_BATCH_WINDOW_MS": "9000"}, 500),
        ({"YESTER_BATCH_WINDOW_MS": "soon"}, 3_000),
        ({"YESTER_BATCH_WINDOW_MS": "-1"}, 3_000),
        ({"YESTER_BATCH_WINDOW_MS": "²"}, 3_000),
        ({"YESTER_BATCH_WINDOW_MS": "9" * 5_000}, 3_000),
        ({"YESTER_BATCH_WINDOW_MS": ""}, 3_000),
    ],
)
def test_a_session_can_have_its_own_window(hints, milliseconds):
    assert batch_window(hints, 3_000) == milliseconds


@pytest.mark.requirement("CAP-06")
def test_the_window_runs_from_the_event_before_not_from_the_first():
    events = [used("Read", at) for at in (0, 2_000, 4_000, 7_000, 10_001)]
    assert shape(events) == [
        [("Read", 0), ("Read", 2_000), ("Read", 4_000), ("Read", 7_000)], [("Read", 10_001)]
    ]  # fmt: skip


@pytest.mark.requirement("CAP-06")
def test_another_tool_ends_a_batch():
    events = [used("Read", 0), used("Edit", 100), used("Read", 200), used("Read", 300)]
    assert shape(events) == [[("Read", 0)], [("Edit", 100)], [("Read", 200), ("Read", 300)]]


@pytest.mark.requirement("CAP-06", "CAP-13")
def test_agents_that_work_at_once_have_batches_of_their_own():
    events = [
        used("Read", 0), used("Grep", 10, "Explore:1"), used("Read", 20),
        used("Grep", 30, "Explore:1"), used("Grep", 40, "Explore:2"), used("Read", 50),
    ]  # fmt: skip
    assert shape(events) == [
        [("Read", 0), ("Read", 20), ("Read", 50)], [("Grep", 10), ("Grep", 30)], [("Grep", 40)]
    ]  # fmt: skip


@pytest.mark.requirement("CAP-05", "CAP-06")
def test_what_is_not_worth_an_observation_neither_makes_nor_breaks_a_batch():
    events = [
        used("Read", 0), used("LS", 10, skipped="skipped tool"), used("Read", 20, skipped="short"),
        Event("x", "SubagentStart", 30, 1, 1), used("Read", 40), used("Bash", 50, skipped="short"),
    ]  # fmt: skip
    assert shape(events) == [[("Read", 0), ("Read", 40)]]


@pytest.mark.requirement("CAP-06")
def test_no_window_is_no_batch():
    events = [used("Read", at, window=0) for at in (0, 1, 2)]
    assert [len(batch) for batch in group_events(events)] == [1, 1, 1]


_events = st.lists(
    st.tuples(
        st.sampled_from(["Read", "Edit", "Bash", ""]), st.integers(0, 5_000),
        st.sampled_from(["", "a", "b"]), st.sampled_from(["", "", "short"]),
        st.sampled_from([0, 1_000, 3_000]),
    ),
    max_size=30,
)  # fmt: skip


@pytest.mark.requirement("CAP-06")
@given(_events)
def test_batches_are_all_worthy_events_once_and_in_order(drawn):
    at, events = 0, []
    for tool, later, actor, skipped, window in drawn:
        at += later
        events.append(used(tool, at, actor, window, skipped=skipped))
    found = group_events(events)
    worthy = [event for event in events if event.tool and not event.skipped]
    assert sorted((e for batch in found for e in batch), key=events.index) == worthy
    assert [batch[0] for batch in found] == sorted((b[0] for b in found), key=events.index)
    for batch in found:
        assert len({(event.tool, event.actor) for event in batch}) == 1
        assert [*batch] == sorted(batch, key=events.index)
        for before, event in pairwise(batch):
            assert event.epoch - before.epoch <= event.window
    for actor in ("", "a", "b"):
        for before, after in pairwise(batch for batch in found if batch[0].actor == actor):
            far = after[0].epoch - before[-1].epoch > after[0].window
            assert far or before[0].tool != after[0].tool
    assert group_events(events) == found


# --- our own words -------------------------------------------------------------------------------

COMMANDS = [
    ("yester recall redis", True),
    ("yester show 12 13", True),
    ("yester --home /x recall redis", True),
    ("cd shop && yester recall redis", True),
    ("ls; yester recall x | head", True),
    ("(yester recall x)", True),
    ("x=$(yester recall x)", True),
    ("echo `yester recall x`", True),
    ("/home/sam/.venv/bin/yester recall x", True),
    ("python -m yester recall x", True),
    (".venv/bin/python3.12 -m yester recall x", True),
    ("YESTER_HOME=/x LANG=C yester recall x", True),
    ("uv run yester recall x", True),
    ("time yester status --json", True),
    ("cd shop\nyester recall x", True),
    ("yester", False),
    ("cat yester.md", False),
    ("git log yester/", False),
    ("git log -- src/yester worker", False),
    ("cd yester && make", False),
    ("pip install yester", False),
    ("grep -r yester recall", False),
    ("echo yester recall", False),
    ("yesterday show", False),
    ("yester-tool recall x", False),
    ("python -m pytest tests/yester worker", False),
    ("cat > notes.md <<'END'\nyester recall is a command\nEND", False),
    ("ls\n\nyester recall x", False),
]


@pytest.mark.requirement("CAP-11")
@each(("command", "own"), COMMANDS)
@each("tool", ["Bash", "shell", "run_shell_command"])
def test_a_command_that_asks_yester_gives_nothing_new(command, own, tool):
    item = Item("r", "message", role="tool", tool=tool, body=f"{command}\n\nsome output")
    assert is_own_answer(item) is own


@pytest.mark.requirement("CAP-11")
@each(
    ("tool", "own"),
    [
        ("mcp__yester__search", True),
        ("mcp__plugin_yester_yester__timeline", True),
        ("mcp__Yester__search", True),
        ("mcp__yesterday__search", False),
        ("mcp__other__yester__search", False),
        ("Read", False),
        ("Grep", False),
        ("", False),
    ],
)
def test_a_tool_of_ours_gives_nothing_new(tool, own):
    item = Item("r", "message", role="tool", tool=tool, body="yester recall x\n\nyester recall y")
    assert is_own_answer(item) is own


@each("role", ["user", "assistant", "thinking", "task"])
def test_what_is_said_about_yester_is_no_answer_of_yester(role):
    assert not is_own_answer(Item("r", "message", role=role, body="yester recall x"))


def test_a_huge_command_takes_no_time():
    body = ";(a/" * 50_000 + "x" * 100_000
    began = time.process_time()
    assert not is_own_answer(Item("r", "message", role="tool", tool="Bash", body=body))
    assert time.process_time() - began < 2.0
