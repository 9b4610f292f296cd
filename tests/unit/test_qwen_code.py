"""Qwen Code's chats: what becomes an item, and what must not."""

from __future__ import annotations

import json

import pytest

from tests.readings import accepted_by, loses_nothing_when_stopped, reading
from yester.agents.qwen_code import READER

pytestmark = pytest.mark.requirement("IMP-05")

SESSION = "eaaf21dd-0000-4000-8000-000000000001"
_SHELL = "run_shell_command"


@pytest.fixture
def file(tmp_path):
    call = {"id": "call_1", "name": _SHELL, "args": {"command": "make", "description": "x"}}
    output = "Command: make\nDirectory: (root)\nOutput: no rule\nError: (none)\nExit Code: 2"
    answer = {"id": "call_1", "name": _SHELL, "response": {"output": output}}
    records = [
        ("user", [{"text": "Build it\n<hook_context>what we injected</hook_context>"}]),
        ("system", None),  # telemetry
        ("assistant", [{"text": "make knows", "thought": True}, {"functionCall": call}]),
        ("tool_result", [{"functionResponse": answer}]),
        ("assistant", [{"text": "There is no Makefile."}]),
        ("user", [{"text": "<task-notification>\na sub-agent has ended\n</task-notification>"}]),
        ("user", [{"text": " "}]),
    ]
    path = tmp_path / f"{SESSION}.jsonl"
    with path.open("w") as file:
        for n, (kind, parts) in enumerate(records):
            record = {
                "uuid": f"uuid-{n:08d}", "parentUuid": None, "sessionId": SESSION, "type": kind,
                "cwd": "/home/sam/code/shop", "timestamp": f"2026-06-01T10:00:{n:02d}.000Z",
            }  # fmt: skip
            more = (
                {"message": {"parts": parts}}
                if parts
                else {"subtype": "ui_telemetry", "systemPayload": {}}
            )
            file.write(json.dumps(record | more) + "\n")
    return path


def test_prompts_answers_thoughts_and_calls_are_items_and_nothing_injected_is(file):
    assert accepted_by(file) == ["qwen-code"]
    found = list(READER.read_items(reading(file)))
    assert [(item.kind, item.role, item.prompt_number) for item in found] == [
        ("prompt", "user", 1), ("message", "thinking", 1), ("message", "tool", 1),
        ("message", "assistant", 1), ("message", "tool", 1),
    ]  # fmt: skip
    assert found[0].body == "Build it"
    assert found[2].call is not None
    assert (found[2].call.status, found[2].body.startswith("make")) == (2, True)


def test_reading_may_stop_anywhere(file):
    loses_nothing_when_stopped(READER, file)
