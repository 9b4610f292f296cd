"""Clients besides Claude Code: a hook asks and rings, and the transcript is all that is stored."""

from __future__ import annotations

import json

import pytest

from tests.capturing import hook, made
from tests.readings import every_item
from yester.model import Event, Filters, OwedStart, Turn
from yester.store import open_store

pytestmark = pytest.mark.requirement("CAP-13")

SESSION = "01a1ed4e-0000-7000-8000-000000000001"


def write_session(folder, cwd, prompts):
    """A session file of pi's: each prompt with a call and an answer."""
    records = [{"type": "session", "version": 3, "id": SESSION, "cwd": str(cwd)}]
    for n, prompt in enumerate(prompts):
        call = {
            "type": "toolCall",
            "id": f"call_{n}",
            "name": "bash",
            "arguments": {"command": "ls"},
        }
        records += [
            _message("user", {"type": "text", "text": prompt}),
            _message("assistant", call),
            _message("toolResult", {"type": "text", "text": "a.py"}, toolCallId=f"call_{n}"),
            _message("assistant", {"type": "text", "text": f"Answer {n}."}),
        ]
    path = folder / "sessions" / "--shop--" / f"2026-06-01T10-00-00-000Z_{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"id": f"{n:08d}", "timestamp": f"2026-06-01T10:00:{n:02d}.000Z", **record})
        for n, record in enumerate(records)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def _message(role, part, **more):
    return {"type": "message", "message": {"role": role, "content": [part], **more}}


@pytest.fixture
def desk(home, own_home, tmp_path):
    (own_home / ".yester").symlink_to(made(home))
    cwd = tmp_path / "shop"
    cwd.mkdir()

    def ring(event, **payload):
        env = {"HOME": str(own_home), "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "outer"}
        told = {"session_id": SESSION, "cwd": str(cwd), **payload}
        hook(event, "pi", cwd=cwd, env=env, payload=told)

    return ring, cwd, own_home / ".pi" / "agent"


def test_what_was_said_and_done_is_stored_once_from_the_transcript(run, home, desk):
    ring, cwd, folder = desk
    write_session(folder, cwd, ["List the files", "And again"])
    ring("SessionStart", source="startup")
    ring("UserPromptSubmit", prompt="List the files")
    ring("PostToolUse", tool_name="bash", tool_input={"command": "ls"}, tool_response="a.py")
    ring("UserPromptSubmit", prompt="", agent_id="a sub-agent")
    ring("UserPromptSubmit", prompt="And again")
    ring("Stop", last_assistant_message="Answer 1.")
    assert run("worker", "drain").code == 0
    assert run("index").code in (0, 1)
    store = open_store(home, now=1)
    try:
        items = every_item(store)
        (session,) = store.sessions(Filters())
        assert [(item.kind, item.role, item.prompt_number) for item in items] == [
            (kind, role, number)
            for number in (1, 2)
            for kind, role in (("prompt", "user"), ("message", "tool"), ("message", "assistant"))
        ]
        assert {(item.agent, item.session) for item in items} == {("pi", SESSION)}
        assert (session.agent, session.prompts, session.cwd) == ("pi", 2, str(cwd))
        assert store.entries(Turn, {"session": session.id}) == []
        assert len(store.entries(Event, {"session": session.id})) == 6
    finally:
        store.close()


@pytest.mark.requirement("DEL-14")
def test_a_compaction_that_only_a_transcript_tells_of_costs_the_start_which_is_owed_once(
    run, home, own_home, tmp_path
):
    (own_home / ".yester").symlink_to(made(home))
    cwd = tmp_path / "shop"
    cwd.mkdir()
    chat = own_home / ".gemini" / "tmp" / "shop" / "chats" / f"session-2026-06-01T10-{SESSION[:8]}"
    chat.parent.mkdir(parents=True)

    def ring(event, **payload):
        told = {"session_id": SESSION, "cwd": str(cwd), "transcript_path": f"{chat}.jsonl"}
        hook(event, "gemini-cli", cwd=cwd, env={"HOME": str(own_home)}, payload=told | payload)

    def say(key, kind, text):
        record = {"id": key, "type": kind, "content": [{"text": text}]}
        with open(f"{chat}.jsonl", "a") as file:
            file.write(json.dumps({**record, "timestamp": "2026-06-01T10:00:01.000Z"}) + "\n")

    def owed_after(event, **payload):
        ring(event, **payload)
        assert run("worker", "drain").code == 0
        store = open_store(home, now=1)
        try:
            found = store.entries(OwedStart)
            with store.transaction("events"):  # as if it had been given
                for one in found:
                    store.retract(OwedStart, {"session": one.session, "event": one.event})
            return [one.source for one in found]
        finally:
            store.close()

    with open(f"{chat}.jsonl", "w") as file:
        head = {"sessionId": SESSION, "projectHash": "0", "kind": "main"}
        file.write(json.dumps({**head, "startTime": "2026-06-01T10:00:00Z"}) + "\n")
    say("p1", "user", "List the files")
    say("a1", "gemini", "There are two.")
    owed_after("SessionStart", source="startup")
    assert owed_after("Stop", last_assistant_message="There are two.") == []
    say("s1", "user", "<state_snapshot>\nWe listed the files.\n</state_snapshot>")
    say("a2", "gemini", "Now there are three.")
    assert owed_after("Stop", last_assistant_message="Now there are three.") == ["compact"]
    say("a3", "gemini", "And four.")
    assert owed_after("Stop", last_assistant_message="And four.") == []
