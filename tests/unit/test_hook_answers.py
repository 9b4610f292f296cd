"""Each client gets context in its own form, and only where it takes any."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.agents.descriptors import AGENTS, find_agent
from yester.context.block import Context, Shown
from yester.worker.answers import describe_given, render_answer

pytestmark = pytest.mark.requirement("DEL-02", "DEL-04")

NEVER = (
    "Stop", "SubagentStop", "SessionEnd", "StopFailure", "PreCompact", "PostCompact",
    "PostToolUseFailure", "PostToolBatch", "PermissionRequest", "Notification", "AfterAgent",
    "AfterModel", "BeforeModel", "BeforeToolSelection", "PreCompress", "agentStop", "sessionEnd",
    "permissionRequest", "Interrupt", "", "stop",
)  # fmt: skip


@each("client", [*AGENTS, "somebody", ""])
def test_context_comes_in_the_form_the_client_takes(client):
    """Nested under the name of the event and with no other key, at the top, or as it is."""
    for event in find_agent(client).answerable:
        printed = render_answer(client, event, "text")
        if client in ("claude-code", "codex", "gemini-cli", "qwen-code", "droid"):
            output = {"hookEventName": event, "additionalContext": "text"}
            assert json.loads(printed) == {"hookSpecificOutput": output}
        elif client == "copilot-cli":
            assert json.loads(printed) == {"additionalContext": "text"}
        elif client == "cursor":
            assert json.loads(printed) == {"additional_context": "text"}
        else:
            assert printed == b"text"


@each(
    ("client", "events"),
    [
        (
            "claude-code",
            "SessionStart UserPromptSubmit SubagentStart PreToolUse PostToolUse PostToolUseFailure",
        ),
        ("codex", "SessionStart UserPromptSubmit SubagentStart PreToolUse PostToolUse"),
        ("gemini-cli", "SessionStart BeforeAgent UserPromptSubmit"),
        (
            "copilot-cli",
            "sessionStart userPromptSubmitted SessionStart UserPromptSubmit SubagentStart",
        ),
    ],
)
def test_each_client_takes_context_for_these_events(client, events):
    assert set(find_agent(client).answerable) == set(events.split())


def test_others_get_the_text_itself():
    assert (
        render_answer("somebody", "SessionStart", "zwei\nZeilen, schön")
        == "zwei\nZeilen, schön".encode()
    )


@each("client", [*AGENTS, "somebody", ""])
def test_an_event_that_takes_no_context_gets_none(client):
    never = [event for event in NEVER if event not in find_agent(client).answerable]
    assert [event for event in never if render_answer(client, event, "text")] == []
    assert set(NEVER) - set(never) <= {"PostToolUseFailure"}  # Claude Code's own (tests/e2e)


@each("client", [*AGENTS, "somebody"])
def test_nothing_to_say_is_nothing_at_all(client):
    for event in ("SessionStart", "UserPromptSubmit", "BeforeAgent", "sessionStart"):
        assert render_answer(client, event, "") == b""


def test_other_scripts_are_not_escaped():
    assert "漢字 🙂".encode() in render_answer("claude-code", "SessionStart", "漢字 🙂")


@given(st.text(alphabet=st.characters(exclude_categories=()), min_size=1))
def test_any_text_can_be_printed(text):
    for client in (*AGENTS, "somebody"):
        printed = render_answer(client, "SessionStart", text).decode()
        assert printed
        if client in ("claude-code", "codex", "gemini-cli", "copilot-cli"):
            json.loads(printed)


@pytest.mark.requirement("DEL-16")
def test_the_user_is_told_in_a_line_what_is_open_and_what_was_given():
    start = Context("…", (Shown(41, 0.0, 20, "open"), Shown(44, 0.0, 20, "last session")))
    fitting = Context("…", (Shown(7, 0.7, 30, "same project"), Shown(9, 0.0, 0, "same project")))
    assert describe_given(start, Context()) == "yester: 1 open from earlier sessions (#41)"
    assert describe_given(Context(), fitting) == "yester: 1 given to the agent (#7)"
    assert describe_given(Context(), Context()) == ""
    text = describe_given(start, fitting)
    printed = json.loads(render_answer("claude-code", "UserPromptSubmit", "text", text))
    assert printed["systemMessage"] == (
        "yester: 1 open from earlier sessions (#41); 1 given to the agent (#7)"
    )
    assert printed["hookSpecificOutput"]["additionalContext"] == "text"
