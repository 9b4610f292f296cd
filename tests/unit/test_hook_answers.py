"""Each client gets context in its own form, and only where it takes any."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.agents.descriptors import AGENTS
from yester.deliver.hooks import answer

pytestmark = pytest.mark.requirement("DEL-02", "DEL-04")

NEVER = (
    "Stop", "SubagentStop", "SessionEnd", "StopFailure", "PreCompact", "PostCompact",
    "PostToolUseFailure", "PostToolBatch", "PermissionRequest", "Notification", "AfterAgent",
    "AfterModel", "BeforeModel", "BeforeToolSelection", "PreCompress", "agentStop", "sessionEnd",
    "permissionRequest", "Interrupt", "", "stop",
)  # fmt: skip


@pytest.mark.parametrize(
    ("client", "event"),
    [
        ("claude-code", "SessionStart"),
        ("claude-code", "UserPromptSubmit"),
        ("claude-code", "SubagentStart"),
        ("claude-code", "PreToolUse"),
        ("claude-code", "PostToolUse"),
        ("codex", "SessionStart"),
        ("codex", "UserPromptSubmit"),
        ("gemini-cli", "SessionStart"),
        ("gemini-cli", "BeforeAgent"),
    ],
)
def test_nested_under_the_name_of_the_event_and_with_no_other_key(client, event):
    assert json.loads(answer(client, event, "text")) == {
        "hookSpecificOutput": {"hookEventName": event, "additionalContext": "text"}
    }


@pytest.mark.parametrize("event", ["sessionStart", "userPromptSubmitted", "SessionStart"])
def test_copilot_takes_it_at_the_top(event):
    assert json.loads(answer("copilot-cli", event, "text")) == {"additionalContext": "text"}


def test_others_get_the_text_itself():
    assert (
        answer("somebody", "SessionStart", "zwei\nZeilen, schön") == "zwei\nZeilen, schön".encode()
    )


@pytest.mark.parametrize("client", [*AGENTS, "somebody", ""])
@pytest.mark.parametrize("event", NEVER)
def test_an_event_that_takes_no_context_gets_none(client, event):
    assert answer(client, event, "text") == b""


@pytest.mark.parametrize("client", [*AGENTS, "somebody"])
def test_nothing_to_say_is_nothing_at_all(client):
    for event in ("SessionStart", "UserPromptSubmit", "BeforeAgent", "sessionStart"):
        assert answer(client, event, "") == b""


def test_other_scripts_are_not_escaped():
    assert "漢字 🙂".encode() in answer("claude-code", "SessionStart", "漢字 🙂")


@given(st.text(alphabet=st.characters(exclude_categories=()), min_size=1))
def test_any_text_can_be_printed(text):
    for client in (*AGENTS, "somebody"):
        printed = answer(client, "SessionStart", text).decode()
        assert printed
        if client in ("claude-code", "codex", "gemini-cli", "copilot-cli"):
            json.loads(printed)
