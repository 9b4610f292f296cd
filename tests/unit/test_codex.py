"""Codex's rollouts: what becomes an item, and what must not."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.readings import accepted_by, by_identity, one, reading, resumed
from yester.agents.base import CLIENT_TEXTS, find_transcripts
from yester.agents.codex import READER
from yester.agents.descriptors import AGENTS
from yester.config import Config

pytestmark = pytest.mark.requirement("IMP-05")

SESSION = "019e0000-0000-7000-8000-00000000000a"
EARLIER = "019d0000-0000-7000-8000-00000000000b"
ROOT = "/home/sam/code/shop"


def line(kind, payload, second=0):
    return {"timestamp": f"2026-05-01T10:00:{second:02d}.000Z", "type": kind, "payload": payload}


def meta(**more):
    payload = {"id": SESSION, "timestamp": "2026-05-01T10:00:00.000Z", "cwd": ROOT, **more}
    return line("session_meta", {"source": "cli", "git": {"branch": "main"}, **payload})


def message(role, *texts, second=1, **more):
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    payload = {"type": "message", "role": role, "content": content, **more}
    return line("response_item", payload, second)


def call(key, name, given, second=2, **more):
    payload = {"type": "function_call", "name": name, "call_id": key, **more}
    return line("response_item", {**payload, "arguments": json.dumps(given)}, second)


def patch(key, text, second=3):
    payload = {"type": "custom_tool_call", "name": "apply_patch", "call_id": key, "input": text}
    return line("response_item", payload, second)


def output(key, text, second=4, kind="function_call_output"):
    return line("response_item", {"type": kind, "call_id": key, "output": text}, second)


def executed(text, code=0):
    return (
        f"Chunk ID: a1b2c3\nWall time: 0.1 seconds\nProcess exited with code {code}\n"
        f"Original token count: 9\nOutput:\n{text}"
    )


TALK = [
    meta(),
    message("developer", "INJECTED: we decided to use tabs"),
    message("user", "# AGENTS.md instructions for /x\n\nbe brief", "<environment_context>\n</e>"),
    message("user", "Why does the checkout fail?\nIt worked yesterday.", second=2),
    line("event_msg", {"type": "user_message", "message": "Why does the checkout fail?"}, 2),
    message("assistant", "Let me look.", second=3, id="msg_00000001"),
    call("call_00000001", "exec_command", {"cmd": "pytest -q"}, 4),
    call("call_00000002", "update_plan", {"plan": [{"step": "look", "status": "completed"}]}, 5),
    output("call_00000001", executed("2 failed", 1), 6),
    output("call_00000002", "Plan updated", 6),
    patch("call_00000003", "*** Begin Patch\n*** Update File: src/cart.py\n+x\n*** End Patch", 7),
    output("call_00000003", "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.", 8),
    message("user", "Now push it.", second=9),
    line("response_item", {"type": "reasoning", "id": "rs_00000001", "encrypted_content": "x"}, 9),
    message("assistant", "Pushed.", second=10, id="msg_00000002"),
    line("compacted", {"message": "We fixed the cart.", "replacement_history": []}, 11),
    call("call_00000004", "exec_command", {"cmd": "git push"}, 12),
]


@pytest.fixture
def rollout(tmp_path):
    def make(records, name=f"rollout-2026-05-01T10-00-00-{SESSION}.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        return path

    return make


def items(path, **options):
    return list(READER.read_items(reading(path, **options)))


def test_prompts_are_numbered_and_the_first_one_names_the_session(rollout):
    now = reading(rollout(TALK))
    first, second = [item for item in READER.read_items(now) if item.kind == "prompt"]
    assert (first.type, first.prompt_number, first.role) == ("first_prompt", 1, "user")
    assert (first.title, first.trust) == ("Why does the checkout fail?", 1.0)
    assert (second.type, second.prompt_number, second.body) == ("", 2, "Now push it.")
    (session,) = list(now.sessions.values())
    assert (session.key, session.title) == (SESSION, "Why does the checkout fail?")
    assert (session.branch, session.cwd) == ("main", ROOT)
    assert session.ended - session.started == 12_000


def test_a_call_and_its_output_are_one_item_and_the_exit_code_tells_failure(rollout):
    ran = one(items(rollout(TALK)), ref="call_00000001")
    assert ran.body == "pytest -q\n\n2 failed"
    assert (ran.kind, ran.role, ran.tool) == ("message", "tool", "exec_command")
    assert ran.tags == ("error",)


@pytest.mark.parametrize(
    ("text", "body", "failed"),
    [
        (executed("fine"), "make\n\nfine", False),
        ('{"output":"no rule","metadata":{"exit_code":2}}', "make\n\nno rule", True),
        ("Wall time: 0.1 seconds\naborted by user", "make\n\naborted by user", True),
        ("exec_command failed: no folder", "make\n\nexec_command failed: no folder", True),
        ('Wall time: 1 seconds\nOutput:\n{"result":"a server\'s"}', "make\n\na server's", False),
        ([{"type": "input_text", "text": "seen"}, {"type": "input_image"}], "make\n\nseen", False),
        ({"content": "denied", "success": False}, "make\n\ndenied", True),
    ],
)
def test_outputs_of_all_versions_are_read(rollout, text, body, failed):
    records = [meta(), call("call_00000001", "exec_command", {"cmd": "make"})]
    found = one(items(rollout([*records, output("call_00000001", text)])), tool="exec_command")
    assert (found.body, found.tags) == (body, ("error",) if failed else ())


def test_a_patch_names_the_files_it_changes_also_inside_a_shell_command(rollout):
    assert one(items(rollout(TALK)), tool="apply_patch").files_modified == ("src/cart.py",)
    text = (
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: /home/sam/code/shop/a.py\n+1\n"
        "*** Delete File: b.py\n*** Update File: c.py\n*** Move to: d.py\n*** End Patch\nEOF"
    )
    found = items(rollout([meta(), call("call_00000001", "exec_command", {"cmd": text})]))
    assert found[0].files_modified == ("a.py", "b.py", "c.py", "d.py")


def test_the_plan_is_one_note_that_later_plans_replace(rollout):
    steps = [{"step": "look", "status": "completed"}, {"step": "fix", "status": "pending"}]
    now = reading(rollout([*TALK, call("call_00000009", "update_plan", {"plan": steps}, 13)]))
    found = list(READER.read_items(now))
    notes = [item for item in found if item.type == "todo"]
    assert {note.ref for note in notes} == {f"{SESSION}:todo"}
    assert notes[-1].body == "[x] look\n[ ] fix"
    assert now.skipped["update_plan call"] == 2


def test_what_codex_calls_commentary_is_not_the_last_word(rollout):
    said = [
        message("assistant", "I look.", phase="commentary"),
        message("assistant", "It is the pool.", phase="final_answer"),
    ]
    found = items(rollout([meta(), message("user", "Why?"), *said]))
    told = [(item.body, item.type) for item in found if item.role == "assistant"]
    assert told == [("I look.", "commentary"), ("It is the pool.", "")]


def test_readable_reasoning_is_kept_and_can_be_switched_off(rollout):
    summary = [{"type": "summary_text", "text": "Perhaps the cache is stale."}]
    record = line("response_item", {"type": "reasoning", "id": "rs_1", "summary": summary})
    path = rollout([meta(), record])
    assert one(items(path), role="thinking").body == "Perhaps the cache is stale."
    assert items(path, thinking=False) == []


def test_a_summary_of_a_compaction_is_not_an_answer_as_well(rollout):
    prefix = "Another language model started to solve this problem … your own analysis:\n"
    records = [
        meta(),
        message("assistant", "We fixed the cart.", id="msg_00000009"),
        line("event_msg", {"type": "token_count"}),
        line("compacted", {"message": prefix + "We fixed the cart."}),
    ]
    now = reading(rollout(records))
    (summary,) = READER.read_items(now)
    assert (summary.kind, summary.type) == ("summary", "compact")
    assert summary.body == "We fixed the cart."
    assert now.skipped["summary said twice"] == 1
    assert one(items(rollout(TALK)), ref="msg_00000002").body == "Pushed."


@pytest.mark.requirement("CAP-11")
def test_text_the_client_puts_into_user_messages_is_left_out(rollout):
    rows = CLIENT_TEXTS["codex"].items()
    reasons = {start: what[5:] for what, starts in rows if what[:5] == "skip " for start in starts}
    texts = [f"{start} tabs were decided" for start in reasons]
    now = reading(rollout([meta(), message("user", *texts, "what I typed")]))
    (prompt,) = READER.read_items(now)
    assert (prompt.kind, prompt.body) == ("prompt", "what I typed")
    assert now.skipped == Counter(reasons.values())


@pytest.mark.requirement("CAP-11")
def test_developer_messages_and_repeating_events_are_left_out_and_counted(rollout):
    now = reading(rollout(TALK))
    assert not any("INJECTED" in item.body for item in READER.read_items(now))
    assert now.skipped["developer message"] == 1
    assert now.skipped["user_message event"] == 1
    assert now.skipped["encrypted reasoning"] == 1


def test_the_context_of_an_editor_is_cut_off_the_prompt(rollout):
    text = "# Context from my IDE setup:\n\n## Open tabs:\n\n## My request for Codex:\nfix it"
    assert one(items(rollout([meta(), message("user", text)])), kind="prompt").body == "fix it"


def test_a_command_the_user_ran_is_an_item_of_a_tool(rollout):
    text = (
        "<user_shell_command>\n<command>\nmake\n</command>\n<result>\nExit code: 2\n"
        "Duration: 0.1 seconds\nOutput:\nno rule\n</result>\n</user_shell_command>"
    )
    (ran,) = items(rollout([meta(), message("user", text)]))
    assert (ran.role, ran.origin, ran.tags) == ("tool", "user", ("error",))
    assert ran.body == "make\n\nno rule"


def spawned(**more):
    spawn = {"parent_thread_id": SESSION, "agent_nickname": "Ada", "agent_role": "explorer"}
    return meta(id="019e0000-0000-7000-8000-00000000000c", session_id=SESSION,
                source={"subagent": {"thread_spawn": spawn}}, **more)  # fmt: skip


def test_a_sub_agents_work_belongs_to_its_parents_session_and_can_be_skipped(rollout):
    answered = message("assistant", "seen", id="msg_0001")
    path = rollout([spawned(), message("user", "look"), answered])
    task, answer = items(path)
    assert (task.role, task.kind, answer.role) == ("task", "message", "assistant")
    assert task.actor == answer.actor == "explorer:019e0000-0000-7000-8000-00000000000c"
    assert task.session == SESSION
    now = reading(path, subagents=False)
    assert list(READER.read_items(now)) == []
    assert now.skipped["sub-agent"] == 2


def test_what_a_fork_copied_stays_with_the_session_it_came_from(rollout):
    turn = {"turn_id": "019d0000-0000-7000-8000-00000000000f", "cwd": ROOT}
    own = {"type": "task_started", "turn_id": "019e0000-0000-7000-8000-0000000000ff"}
    records = [
        meta(forked_from_id=EARLIER),
        meta(id=EARLIER),
        line("turn_context", turn),
        message("user", "an old prompt"),
        line("event_msg", own, 2),
        message("user", "a new prompt", second=3),
    ]
    now = reading(rollout(records))
    (prompt,) = READER.read_items(now)
    assert (prompt.body, prompt.session, prompt.prompt_number) == ("a new prompt", SESSION, 1)
    assert now.skipped["copied from another session"] == 1


def test_the_first_versions_lines_without_envelope_are_read(rollout):
    old = [
        {"id": SESSION, "timestamp": "2025-07-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": f"<environment_context>\n<cwd>{ROOT}</cwd>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "shell", "call_id": "call_00000001",
         "arguments": '{"command":["bash","-lc","ls"]}'},
    ]  # fmt: skip
    prompt, ran = items(rollout(old))
    assert (prompt.body, prompt.session, prompt.project) == ("hello", SESSION, f"dir:{ROOT}")
    assert (ran.body, ran.tool) == ("ls", "shell")


def test_calls_that_local_models_number_in_every_session_stay_apart(rollout):
    records = [meta(), call("0", "exec_command", {"cmd": "ls"}), output("0", executed("a"))]
    records += [call("0", "exec_command", {"cmd": "pwd"}), output("0", executed("b"))]
    found = items(rollout(records))
    assert [item.body for item in found] == ["ls\n\na", "pwd\n\nb"]
    assert len({item.ref for item in found}) == 2


def test_a_bad_line_is_named_and_the_others_are_read(rollout):
    path = rollout(TALK[:4])
    with open(path, "ab") as file:
        file.write(b"{half a record\n" + json.dumps(TALK[5]).encode() + b"\n")
    now = reading(path)
    assert one(list(READER.read_items(now)), ref="msg_00000001").body == "Let me look."
    assert now.problems == [f"{path}:5: not JSON"]


def test_only_rollouts_are_accepted_and_only_by_this_reader(rollout):
    path = rollout(TALK)
    assert accepted_by(path) == ["codex"]
    claude = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": "hi"}}
    assert not READER.is_transcript(rollout([claude], "claude.jsonl"))
    assert not READER.is_transcript(path.with_suffix(".missing"))
    linked_data = {"type": ["Person"], "payload": {}}
    assert not READER.is_transcript(rollout([linked_data], "linked.jsonl"))


def test_rollouts_are_found_where_codex_keeps_them(tmp_path):
    day = tmp_path / "sessions" / "2026" / "05" / "01"
    old = tmp_path / "archived_sessions"
    for folder in (day, old):
        folder.mkdir(parents=True)
        (folder / "rollout-1.jsonl").touch()
        (folder / "notes.txt").touch()
    config = Config(tmp_path, {"codex_dirs": (str(tmp_path), str(tmp_path / "none"))}, {})
    assert list(find_transcripts(AGENTS["codex"], config)) == [
        day / "rollout-1.jsonl",
        old / "rollout-1.jsonl",
    ]


def test_a_compressed_rollout_is_read_like_the_one_it_was(rollout):
    zstandard = pytest.importorskip("zstandard")
    path = rollout(TALK)
    packed = path.with_name(f"{path.name}.zst")
    packed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    assert READER.is_transcript(packed)
    now = reading(packed)
    assert by_identity(READER.read_items(now)) == by_identity(READER.read_items(reading(path)))
    (unanswered,) = READER.read_items(resumed(now))  # it waits for its result
    assert unanswered.ref == "call_00000004"
