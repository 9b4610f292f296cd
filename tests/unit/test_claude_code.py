"""Claude Code's transcripts: what becomes an item, and what must not."""

from __future__ import annotations

import json
from itertools import chain

import pytest

from tests.readings import loses_nothing_when_stopped, one, reading, resumed
from yester.agents.base import CLIENT_TEXTS
from yester.agents.claude_code import READER

pytestmark = pytest.mark.requirement("IMP-05", "STO-05")


def items(path, **options):
    return list(READER.read_items(reading(path, **options)))


def test_prompts_are_numbered_and_the_first_one_names_the_session(transcript):
    t = transcript()
    t.user("Why does the checkout fail?\nIt worked yesterday.")
    t.assistant("Let me look.")
    t.user([{"type": "text", "text": "Never touch the vendor folder."}])
    now = reading(t.path)
    first, answer, second = READER.read_items(now)
    assert (first.kind, first.type, first.prompt_number) == ("prompt", "first_prompt", 1)
    assert first.title == "Why does the checkout fail?"
    assert (first.origin, first.role) == ("user", "user")
    assert (answer.kind, answer.role, answer.body) == ("message", "assistant", "Let me look.")
    assert (second.type, second.prompt_number) == ("", 2)
    (session,) = list(now.sessions.values())
    assert (session.title, session.branch) == ("Why does the checkout fail?", "main")
    assert session.started < session.ended
    assert now.messages == 3


def test_a_tool_call_and_its_result_are_one_item(transcript):
    t = transcript()
    t.user("run the tests")
    first = t.call("Bash", command="pytest -q", description="Run tests")
    second = t.call("Read", file_path="/home/sam/code/shop/src/cart.py")
    t.result(second, [{"type": "text", "text": "     1→def total(): ...\n     2→    return 3"}])
    t.result(first, "Exit code 1\n2 failed", error=True)
    found = items(t.path)
    ran = one(found, tool="Bash")
    assert ran.body == "pytest -q\nRun tests\n\nExit code 1\n2 failed"
    assert (ran.ref, ran.tags, ran.role) == (first, ("error",), "tool")
    seen = one(found, tool="Read")
    assert seen.files_read == ("src/cart.py",)
    assert seen.body.endswith("src/cart.py\n\ndef total(): ...\n    return 3")
    assert not one(found, tool="Read").tags


def test_an_edit_names_the_file_it_changed(transcript):
    t = transcript()
    key = t.call(
        "Edit", file_path="/home/sam/code/shop/a/b.py", old_string="x = 1", new_string="x = 2"
    )
    t.result(key, "ok")
    edit = one(items(t.path), tool="Edit")
    assert edit.files_modified == ("a/b.py",)
    assert "x = 1" in edit.body
    assert "x = 2" in edit.body


def test_a_call_without_a_result_is_kept_and_completed_by_a_later_run(transcript):
    t = transcript()
    t.user("start the server")
    key = t.call("Bash", command="make serve")
    now = reading(t.path)
    alone = one(list(READER.read_items(now)), tool="Bash")
    assert alone.body == "make serve"
    t.result(key, "listening on port 80")
    t.assistant("It runs.")
    found = list(READER.read_items(resumed(now, t.path)))
    whole = one(found, tool="Bash")
    assert (whole.ref, whole.body) == (alone.ref, "make serve\n\nlistening on port 80")
    assert one(found, role="assistant").prompt_number == 1


def test_a_result_whose_call_was_given_up_does_not_replace_it(transcript):
    t = transcript()
    key = t.call("Bash", command="sleep 9000")
    for _ in range(1010):
        t.assistant("still waiting")
    t.result(key, "done at last")
    found = items(t.path)
    assert one(found, ref=key).body == "sleep 9000"
    assert one(found, ref=f"{key}:result").body == "done at last"


def test_thinking_is_an_item_of_its_own_and_can_be_switched_off(transcript):
    t = transcript()
    t.assistant({"type": "thinking", "thinking": "Perhaps the cache is stale.", "signature": "x"})
    t.assistant({"type": "thinking", "thinking": "", "signature": "only this"})
    assert one(items(t.path), role="thinking").body == "Perhaps the cache is stale."
    off = reading(t.path, thinking=False)
    assert list(READER.read_items(off)) == []
    assert off.skipped["thinking"] == 2


def test_a_plan_is_a_titled_note_once(transcript):
    t = transcript()
    plan = "# Plan: move to UTC\n\n1. change the column"
    t.result(t.call("ExitPlanMode", plan=plan), "approved")
    t.user(f"Implement the following plan:\n\n{plan}", planContent=plan)
    notes = [i for i in items(t.path) if i.type == "plan"]
    assert {i.ref for i in notes} == {notes[0].ref}
    assert (notes[0].kind, notes[0].title, notes[0].body) == ("note", "Plan: move to UTC", plan)


def test_a_session_that_begins_with_a_plan_is_named_as_the_plan_is(transcript):
    t = transcript()
    t.user("Implement the following plan:\n\n# Plan: move to UTC\n\n1. change the column")
    now = reading(t.path)
    (prompt,) = READER.read_items(now)
    (session,) = now.sessions.values()
    assert prompt.title == session.title == "Plan: move to UTC"


def test_only_the_last_todo_list_is_kept(transcript):
    t = transcript()
    t.user("tidy up")
    for status in ("pending", "in_progress", "completed"):
        todos = [{"content": "remove dead code", "status": status, "activeForm": "removing"}]
        t.result(t.call("TodoWrite", todos=todos), "ok")
    todo = one(items(t.path), type="todo")
    assert todo.body == "[x] remove dead code"
    assert todo.title == "Todo list: tidy up"


def test_a_task_list_is_put_together_from_its_calls(transcript):
    t = transcript()
    t.result(
        t.call("TaskCreate", subject="write tests"), "Task #1 created successfully: write tests"
    )
    t.result(t.call("TaskCreate", subject="write docs"), "Task #2 created successfully: write docs")
    t.result(t.call("TaskUpdate", taskId="1", status="completed"), "Updated task #1")
    found = items(t.path)
    assert one(found, type="todo").body == "[x] write tests\n[ ] write docs"
    assert not [i for i in found if i.tool]


def test_a_compaction_summary_is_a_summary(transcript):
    t = transcript()
    t.other("system", subtype="compact_boundary", content="Conversation compacted")
    text = "This session is being continued from a previous conversation. We chose UTC."
    t.user(text, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    t.user(text + " Again.")
    found = items(t.path)
    assert [(i.kind, i.type) for i in found] == [("summary", "compact")] * 2


def test_what_is_typed_while_the_agent_works_is_a_prompt(transcript):
    t = transcript()
    t.user("fix the build")
    t.other(
        "queue-operation",
        operation="enqueue",
        content="and use a new branch",
        timestamp="2026-02-03T00:00:00Z",
    )
    t.other("queue-operation", operation="remove", timestamp="2026-02-03T00:00:01Z")
    t.other(
        "attachment",
        uuid="u",
        cwd=t.cwd,
        attachment={"type": "queued_command", "prompt": "and use a new branch"},
    )
    t.other("queue-operation", operation="enqueue", content="next, the docs")
    t.other("queue-operation", operation="dequeue")
    t.user("next, the docs")
    t.other("queue-operation", operation="enqueue", content='{"task_id":"b1"}')
    t.other("queue-operation", operation="remove")
    t.other("queue-operation", operation="enqueue", content="never mind")
    t.other("queue-operation", operation="popAll")
    found = [(i.prompt_number, i.body) for i in items(t.path)]
    assert found == [(1, "fix the build"), (2, "and use a new branch"), (3, "next, the docs")]


def test_text_the_client_writes_is_not_taken_for_a_typed_prompt(transcript):
    t = transcript()
    for start in chain.from_iterable(CLIENT_TEXTS["claude-code"].values()):
        t.user(f"{start} and more text of the client")
    assert not [i.body for i in items(t.path) if i.kind == "prompt"]


def test_a_slash_command_with_arguments_is_something_said(transcript):
    t = transcript()
    t.user("<command-name>/review</command-name>\n<command-args>the cart module</command-args>")
    t.user("<command-name>/clear</command-name>\n<command-args></command-args>")
    t.user("<bash-input>git log -1</bash-input>")
    found = items(t.path)
    assert one(found, kind="prompt").body == "/review the cart module"
    assert one(found, tool="Bash").body == "git log -1"


@pytest.mark.requirement("CAP-11")
def test_injected_memory_and_reminders_are_left_out(transcript):
    t = transcript()
    t.other("attachment", attachment={"type": "hook_additional_context", "content": ["INJECTED"]})
    t.other("api-request", body="INJECTED")
    t.user("<system-reminder>INJECTED</system-reminder>Please go on")
    t.user([{"type": "text", "text": "INJECTED skill body"}], isMeta=True)
    t.result(t.call("Bash", command="ls"), "a.py\n<system-reminder>INJECTED</system-reminder>")
    found = items(t.path)
    assert "INJECTED" not in repr(found)
    assert one(found, kind="prompt").body == "Please go on"


@pytest.mark.parametrize(
    "kind",
    ["progress", "file-history-snapshot", "attachment", "api-request", "api-request-blob",
     "api-request-shape", "last-prompt", "cost-state", "tools-used", "mode", "atis-latch",
     "summary"],
)  # fmt: skip
def test_a_record_of_the_client_is_left_out_and_counted(transcript, kind):
    t = transcript()
    t.other(kind, content="noise", message={"role": "user", "content": "noise"})
    now = reading(t.path)
    assert list(READER.read_items(now)) == []
    assert now.skipped == {kind: 1}


@pytest.mark.requirement("CAP-13")
def test_a_sub_agent_belongs_to_its_session_and_is_named(transcript, own_home):
    t = transcript()
    t.user("find the bug")
    sub = transcript("agent-a1b2")
    sub.path = t.path.with_suffix("") / "subagents" / "agent-a1b2.jsonl"
    sub.session = t.session
    sub.user("Search for usages of total()", isSidechain=True, agentId="a1b2")
    sub.assistant("Three places use it.", isSidechain=True, agentId="a1b2")
    sub.path.with_suffix(".meta.json").write_text('{"agentType": "Explore"}')
    task, answer = items(sub.path)
    assert task.session == answer.session == t.session
    assert task.actor == answer.actor == "Explore:a1b2"
    assert (task.kind, task.role, task.origin) == ("message", "task", "agent")
    off = reading(sub.path, subagents=False)
    assert list(READER.read_items(off)) == []
    assert off.skipped["sub-agent"] == 2


def test_a_bad_line_is_counted_with_its_place_and_the_rest_is_read(transcript):
    t = transcript()
    t.user("first")
    t.raw('{"type": "user", "broken\n')
    t.raw(b"\xff\xfe\x00 nothing\n")
    t.other("user", uuid="u", message=None)
    t.user("last")
    now = reading(t.path)
    assert [i.body for i in READER.read_items(now)] == ["first", "last"]
    assert now.skipped["unreadable"] == 3
    assert f"{t.path}:2: not JSON" in now.problems


def test_glued_records_are_taken_apart(transcript):
    t = transcript()
    first, second = t.base("user"), t.base("user")
    first["message"] = {"role": "user", "content": "one"}
    second["message"] = {"role": "user", "content": "two"}
    t.path.parent.mkdir(parents=True, exist_ok=True)
    t.raw(json.dumps(first) + json.dumps(second) + "\n")
    assert [i.body for i in items(t.path)] == ["one", "two"]


def test_an_unfinished_last_line_waits_for_the_next_run(transcript):
    t = transcript()
    t.user("first")
    line = json.dumps(t.base("user", message={"role": "user", "content": "second"}))
    t.raw(line[:40])
    now = reading(t.path)
    assert [i.body for i in READER.read_items(now)] == ["first"]
    t.raw(line[40:] + "\n")
    assert [i.body for i in READER.read_items(resumed(now, t.path))] == ["second"]


def test_surrogates_and_control_characters_survive_as_text(transcript):
    t = transcript()
    record = json.dumps(t.base("user", message={"role": "user", "content": "X"}))
    t.path.parent.mkdir(parents=True, exist_ok=True)
    t.raw(record.replace('"X"', '"broken \\ud83d emoji \\u0000 nul"') + "\n")
    (item,) = items(t.path)
    item.body.encode("utf-8")
    assert "emoji" in item.body


def test_windows_paths_become_relative_with_slashes(transcript):
    t = transcript(cwd="D:\\code\\shop")
    t.user("hello")
    t.result(t.call("Write", file_path="D:\\code\\shop\\src\\a.py", content="x"), "ok")
    assert one(items(t.path), tool="Write").files_modified == ("src/a.py",)


def test_reading_on_from_any_item_loses_nothing(transcript):
    t = transcript()
    t.talk(3)
    first, second = t.call("Bash", command="make a"), t.call("Bash", command="make b")
    t.assistant("Both run.")
    t.result(second, "b is made")
    t.user("and now?")
    t.result(first, "a is made")
    t.talk(2)
    loses_nothing_when_stopped(READER, t.path)


def test_its_files_are_recognised_and_others_are_not(transcript, tmp_path):
    t = transcript()
    t.user("hello")
    assert READER.is_transcript(t.path)
    for name, text in (
        ("rollout.jsonl", '{"timestamp":"t","type":"session_meta","payload":{}}\n'),
        ("events.jsonl", '{"type":"session.start","data":{},"id":"1","timestamp":"t"}\n'),
        ("empty.jsonl", ""),
        ("notes.md", "# hello"),
        ("numbers.jsonl", "1\n2\n"),
    ):
        (tmp_path / name).write_text(text)
        assert not READER.is_transcript(tmp_path / name), name
