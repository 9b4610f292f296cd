"""Copilot CLI's event logs: what becomes an item, and what must not."""

from __future__ import annotations

import json

import pytest

from tests.readings import (
    accepted_by,
    one,
    reading,
)
from yester.agents.base import find_transcripts
from yester.agents.copilot_cli import READER
from yester.agents.descriptors import AGENTS
from yester.config import Config

pytestmark = pytest.mark.requirement("IMP-05")

SESSION = "5e550000-0000-4000-8000-000000000001"
ROOT = "/home/sam/code/shop"
GUIDANCE = '\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:\nuse tabs\nok'


class Log:
    """Writes events as the client does: numbered, each naming the one before."""

    def __init__(self, path):
        self.path, self.count = path, 0
        path.parent.mkdir(parents=True, exist_ok=True)

    def event(self, kind, agent=None, **data):
        self.count += 1
        record = {
            "type": kind,
            "data": data,
            "id": f"event-{self.count:08d}",
            "timestamp": f"2026-06-01T10:{self.count // 60:02d}:{self.count % 60:02d}.000Z",
            "parentId": f"event-{self.count - 1:08d}" if self.count > 1 else None,
        }
        if agent:
            record["agentId"] = agent
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        return record["id"]

    def start(self):
        context = {"cwd": ROOT, "gitRoot": ROOT, "branch": "main"}
        self.event("session.start", sessionId=SESSION, producer="copilot-agent", context=context)

    def user(self, text, agent=None, **more):
        changed = f"<current_datetime>now</current_datetime>\n{text}\nuse tabs"
        return self.event("user.message", agent, content=text, transformedContent=changed, **more)

    def answer(self, text, agent=None, **more):
        key = f"message-{self.count:08d}"
        self.event("assistant.message", agent, messageId=key, content=text, **more)
        return key

    def tool(self, name, key, agent=None, **given):
        self.event("tool.execution_start", agent, toolCallId=key, toolName=name, arguments=given)

    def done(self, key, text, agent=None, success=True, **more):
        more |= {"result": {"content": text}} if success else {"error": {"message": text}}
        self.event("tool.execution_complete", agent, toolCallId=key, success=success, **more)


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path / "session-state" / SESSION / "events.jsonl")


@pytest.fixture
def talk(log):
    write_talk(log)
    return log


def write_talk(log):
    log.start()
    log.event("hook.end", hookType="sessionStart", output={"additionalContext": "use tabs"})
    log.user("Why does the checkout fail?\nIt worked yesterday.")
    log.event("system.message", role="system", content="You are … use tabs")
    log.answer("Let me look.", toolRequests=[{"toolCallId": "call_00000001", "name": "bash"}])
    log.tool("bash", "call_00000001", command="pytest -q", description="Run tests")
    log.tool("view", "call_00000002", path=f"{ROOT}/src/cart.py")
    ending = "\n<shellId: 0 completed with exit code 1>" + GUIDANCE
    log.done("call_00000001", "2 failed" + ending, shellExecution={"exitCode": 1})
    log.done("call_00000002", "1. def total(): ...")
    log.tool("edit", "call_00000003", path=f"{ROOT}/src/cart.py", old_str="x = 1", new_str="x = 2")
    log.done("call_00000003", "No match found", success=False)
    log.user("Now push it.")
    log.answer("", reasoningText="Perhaps CI is down.", toolRequests=[{"toolCallId": "x"}])
    log.event("session.compaction_complete", success=True, summaryContent="We fixed the cart.")
    log.tool("bash", "call_00000004", command="git push")


def items(path, **options):
    return list(READER.read_items(reading(path, **options)))


def test_prompts_are_numbered_and_the_first_one_names_the_session(talk):
    now = reading(talk.path)
    first, second = [item for item in READER.read_items(now) if item.kind == "prompt"]
    assert (first.type, first.prompt_number, first.origin) == ("first_prompt", 1, "user")
    assert (first.title, first.trust) == ("Why does the checkout fail?", 1.0)
    assert (second.type, second.prompt_number, second.body) == ("", 2, "Now push it.")
    (session,) = list(now.sessions.values())
    assert (session.key, session.branch) == (SESSION, "main")
    assert (session.title, session.cwd) == ("Why does the checkout fail?", ROOT)
    assert session.started < session.ended


def test_an_execution_and_its_result_are_one_item(talk):
    found = items(talk.path)
    ran = one(found, ref="call_00000001")
    assert ran.body == "pytest -q\nRun tests\n\n2 failed"
    assert (ran.role, ran.tool, ran.tags) == ("tool", "bash", ("error",))
    assert one(found, tool="view").files_read == ("src/cart.py",)
    edit = one(found, tool="edit")
    assert (edit.files_modified, edit.tags) == (("src/cart.py",), ("error",))
    assert edit.body.endswith("x = 1\nx = 2\n\nNo match found")
    assert one(found, ref="call_00000004").body == "git push"


def test_answers_reasoning_and_compactions_have_their_kinds(talk):
    found = items(talk.path)
    assert one(found, role="assistant", kind="message").body == "Let me look."
    assert one(found, role="thinking").body == "Perhaps CI is down."
    assert one(found, kind="summary", type="compact").body == "We fixed the cart."
    now = reading(talk.path, thinking=False)
    assert not [item for item in READER.read_items(now) if item.role == "thinking"]
    assert now.skipped["thinking"] == 1


@pytest.mark.requirement("CAP-11")
def test_what_hooks_and_the_client_inject_is_left_out_and_counted(talk):
    talk.user("<system_reminder>\nuse tabs\n</system_reminder>\nand then?")
    talk.user("skill text: use tabs", source="skill-pdf")
    now = reading(talk.path)
    found = list(READER.read_items(now))
    assert not any("use tabs" in item.body or "current_datetime" in item.body for item in found)
    assert one(found, kind="prompt", prompt_number=3).body == "and then?"
    assert now.skipped["hook.end"] == now.skipped["system.message"] == 1
    assert now.skipped["client's own text"] == 1


def test_edits_the_client_reports_name_the_files_changed(log):
    log.start()
    log.tool("apply_patch", "call_00000001", input="*** Begin Patch\n*** Add File: a.py\n+1")
    log.done("call_00000001", "ok", fileEdits=[{"path": f"{ROOT}/b.py", "kind": "edit"}])
    log.tool("str_replace_editor", "call_00000002", command="view", path="c.py")
    patched, viewed = items(log.path)
    assert patched.files_modified == ("a.py", "b.py")
    assert (viewed.files_read, viewed.files_modified) == (("c.py",), ())


def test_a_todo_list_becomes_a_note_and_bookkeeping_is_counted(log):
    log.start()
    log.tool("update_todo", "call_00000001", todos="- [x] one\n- [ ] two")
    log.done("call_00000001", "ok")
    log.tool("report_intent", "call_00000002", intent="Looking")
    now = reading(log.path)
    (note,) = READER.read_items(now)
    assert (note.kind, note.type, note.body) == ("note", "todo", "- [x] one\n- [ ] two")
    assert now.skipped["update_todo call"] == now.skipped["report_intent call"] == 1


def test_sub_agents_are_named_their_task_is_no_prompt_and_they_can_be_skipped(log):
    log.start()
    log.user("look around")
    log.tool("task", "call_00000001", description="look", prompt="look at the code")
    log.event("subagent.started", "agent-01", toolCallId="call_00000001", agentName="explore")
    log.user("look at the code", "agent-01")
    log.answer("seen", "agent-01")
    log.answer("seen too", parentToolCallId="call_00000001")
    log.done("call_00000001", "all seen")
    found = items(log.path)
    assert one(found, role="task").body == "look at the code"
    named = [item.actor for item in found if item.actor]
    assert named == ["explore:agent-01"] * 3
    assert one(found, tool="task").body == "look\nlook at the code\n\nall seen"
    now = reading(log.path, subagents=False)
    assert [item.actor for item in READER.read_items(now)] == ["", ""]
    assert now.skipped["sub-agent"] == 3


def test_a_long_sub_agent_between_a_call_and_its_result_does_not_part_them(log):
    log.start()
    log.tool("task", "call_00000001", prompt="look")
    for _ in range(400):
        log.event("session.usage_record")
    log.done("call_00000001", "seen")
    assert one(items(log.path), tool="task").body == "look\n\nseen"


def test_the_folder_is_taken_from_the_workspace_file_where_the_log_has_none(log):
    log.event("session.start", sessionId=SESSION, copilotVersion="0.0.369")
    log.user("hello")
    log.path.with_name("workspace.yaml").write_text(f"id: {SESSION}\ncwd: {ROOT}\n", "utf-8")
    assert one(items(log.path), kind="prompt").project == f"dir:{ROOT}"


def test_a_bad_line_is_named_and_the_others_are_read(log):
    log.start()
    with open(log.path, "ab") as file:
        file.write(b'{half a record\n{"type":7}\n')
    log.user("hello")
    now = reading(log.path)
    assert one(list(READER.read_items(now)), kind="prompt").body == "hello"
    assert now.skipped["unreadable"] == 2
    assert now.problems[0] == f"{log.path}:2: not JSON"


def test_only_event_logs_are_accepted_and_only_by_this_reader(talk, tmp_path):
    assert accepted_by(talk.path) == ["copilot-cli"]
    claude = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": "hi"}}
    path = tmp_path / "claude.jsonl"
    path.write_text(json.dumps(claude) + "\n", "utf-8")
    assert not READER.is_transcript(path)
    assert not READER.is_transcript(tmp_path / "missing.jsonl")


def test_logs_are_found_where_copilot_keeps_them(talk, tmp_path):
    flat = tmp_path / "session-state" / "older.jsonl"
    flat.touch()
    config = Config(tmp_path, {"copilot_dirs": (str(tmp_path),)}, {})
    assert list(find_transcripts(AGENTS["copilot-cli"], config)) == [talk.path, flat]
