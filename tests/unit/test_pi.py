"""pi's session files: what becomes an item, and what must not."""

from __future__ import annotations

import json

import pytest

from tests.readings import accepted_by, loses_nothing_when_stopped, reading
from yester.agents.pi import READER

pytestmark = pytest.mark.requirement("IMP-05")

SESSION = "01a1ed4e-0000-7000-8000-000000000001"


def said(role, *parts, **more):
    return {"type": "message", "message": {"role": role, "content": list(parts), **more}}


@pytest.fixture
def file(tmp_path):
    call = {"type": "toolCall", "id": "call_1", "name": "bash", "arguments": {"command": "make"}}
    bash = {"command": "ls", "output": "a.py", "exitCode": 0}
    records = [
        {"type": "session", "version": 3, "id": SESSION, "cwd": "/home/sam/code/shop"},
        {"type": "model_change", "provider": "p", "modelId": "m"},
        said("user", {"type": "text", "text": "Build it"}),
        {"type": "custom_message", "customType": "yester", "content": "what we injected"},
        said("assistant", {"type": "thinking", "thinking": "make knows how"}, call),
        said("toolResult", {"type": "text", "text": "no rule"}, toolCallId="call_1", isError=True),
        said("assistant", {"type": "text", "text": "There is no Makefile."}),
        {"type": "message", "message": {"role": "bashExecution", **bash}},
        {"type": "compaction", "summary": "It has no Makefile."},
    ]
    path = tmp_path / f"2026-06-01T10-00-00-000Z_{SESSION}.jsonl"
    lines = [
        json.dumps({"id": f"{n:08d}", "timestamp": f"2026-06-01T10:00:{n:02d}.000Z", **record})
        for n, record in enumerate(records)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_prompts_answers_thoughts_calls_and_summaries_are_items_and_nothing_injected_is(file):
    assert accepted_by(file) == ["pi"]
    found = list(READER.read_items(reading(file)))
    assert [(item.kind, item.role) for item in found] == [
        ("prompt", "user"), ("message", "thinking"), ("message", "tool"), ("message", "assistant"),
        ("message", "tool"), ("summary", "assistant"),
    ]  # fmt: skip
    assert {item.session for item in found} == {SESSION}
    assert not [item for item in found if "injected" in item.body]
    calls = [item for item in found if item.role == "tool"]
    assert [item.body for item in calls] == ["make\n\nno rule", "ls\n\na.py"]
    assert [item.call.status for item in calls] == [None, 0]


def test_reading_may_stop_anywhere(file):
    loses_nothing_when_stopped(READER, file)
