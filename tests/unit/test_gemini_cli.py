"""Gemini CLI's chats: what becomes an item, and what must not."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from tests.readings import (
    accepted_by,
    one,
    reading,
    resumed,
)
from yester.agents.base import find_transcripts
from yester.agents.descriptors import AGENTS
from yester.agents.gemini_cli import READER
from yester.config import Config

pytestmark = pytest.mark.requirement("IMP-05")

SESSION = "9e310000-0000-4000-8000-000000000001"
ROOT = "/home/sam/code/shop"
HASH = sha256(ROOT.encode()).hexdigest()
HOOK = "<hook_context>we decided: use tabs</hook_context>"


def head(**more):
    return {"sessionId": SESSION, "projectHash": HASH, "startTime": "2026-06-01T10:00:00Z",
            "lastUpdated": "2026-06-01T10:00:00Z", "kind": "main", **more}  # fmt: skip


def said(key, kind, content, second=1, **more):
    moment = f"2026-06-01T10:00:{second:02d}.000Z"
    return {"id": key, "timestamp": moment, "type": kind, "content": content, **more}


def called(key, name, output, status="success", **args):
    answer = {"error" if status == "error" else "output": output}
    part = {"functionResponse": {"id": key, "name": name, "response": answer}}
    return {"id": key, "name": name, "args": args, "result": [part], "status": status,
            "timestamp": "2026-06-01T10:00:30.000Z", "resultDisplay": "shown"}  # fmt: skip


RAN = called(
    "shell_00000001",
    "run_shell_command",
    f"<untrusted_context>\nOutput: 2 failed\nExit Code: 1\nProcess Group PGID: 7\n"
    f"</untrusted_context>\n\n{HOOK}",
    command="pytest -q",
)
SEEN = called("read_00000001", "read_file", "def total(): ...", file_path=f"{ROOT}/src/cart.py")
FAILED = called("edit_00000001", "replace", "no match", "error", file_path=f"{ROOT}/a.py",
                old_string="x = 1", new_string="x = 2")  # fmt: skip
CONTEXT = said("c0", "user", [{"text": "<session_context>\nLinux</session_context>"}])
SNAPSHOT = [{"text": "<state_snapshot>\nWe fixed the cart.\n</state_snapshot>"}]
THOUGHTS = [{"subject": "Cache", "description": "stale?"}]
TALK = [
    head(),
    {"$set": {"messages": [CONTEXT]}},
    said("p1", "user", [
        {"text": f"{HOOK}\n\nWhy does the checkout fail?\nSee @notes.txt"},
        {"text": "\n--- Content from referenced files ---"}, {"text": "secret notes"},
        {"text": "\n--- End of content ---"}, {"text": HOOK},
    ], 2),
    {"$set": {"lastUpdated": "2026-06-01T10:00:02Z"}},
    said("a1", "gemini", "Let me look.", 3, thoughts=THOUGHTS),
    said("a1", "gemini", "Let me look.", 3, thoughts=THOUGHTS, toolCalls=[RAN]),
    said("a1", "gemini", "Let me look.", 3, thoughts=THOUGHTS, toolCalls=[RAN, SEEN, FAILED]),
    said("r1", "user", [{"functionResponse": {"response": {"output": "2 failed"}}}], 4),
    said("i1", "info", "Update available", 4),
    said("p2", "user", [{"text": "Now push it."}], 5, displayContent=[{"text": "Now push it."}]),
    said("p2", "user", [{"text": "Now push it."}], 5, displayContent=[{"text": "Now push it!"}]),
    {"$rewindTo": "p2"},
    said("p3", "user", "Only commit it.", 6),
    said("a2", "gemini", [{"text": "thinking", "thought": True}, {"text": "Done."}], 7),
    {"$set": {"messages": [
        said("s1", "user", SNAPSHOT, 8),
        said("n1", "user", [{"text": "Only commit it."}], 8),
    ]}},
]  # fmt: skip


def written(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


@pytest.fixture
def chats(tmp_path):
    return tmp_path / "tmp" / "shop" / "chats"


@pytest.fixture
def talk(tmp_path, chats):
    table = {"projects": {"/home/sam/other": "other", ROOT: "shop"}}
    (tmp_path / "projects.json").write_text(json.dumps(table), "utf-8")
    return written(chats / "session-2026-06-01T10-00-9e310000.jsonl", TALK)


def items(path, **options):
    return list(READER.read_items(reading(path, **options)))


def test_prompts_are_numbered_and_the_first_one_names_the_session(talk):
    now = reading(talk)
    found = list(READER.read_items(now))
    first = one(found, type="first_prompt")
    assert (first.ref, first.prompt_number, first.trust) == ("p1", 1, 1.0)
    assert first.title == "Why does the checkout fail?"
    assert one(found, ref="p3").prompt_number == 3
    (session,) = list(now.sessions.values())
    assert (session.key, session.title) == (SESSION, "Why does the checkout fail?")
    assert session.cwd == ROOT
    assert session.started < session.ended


def test_a_prompt_written_again_replaces_itself_and_is_counted_once(talk):
    found = items(talk)
    again = [item for item in found if item.ref == "p2"]
    assert [item.prompt_number for item in again] == [2, 2]
    assert (again[-1].kind, again[-1].body, again[-1].title) == ("prompt", "Now push it!", "")


def test_a_call_and_its_result_are_one_item(talk):
    now = reading(talk)
    found = list(READER.read_items(now))
    ran = one(found, ref="shell_00000001")
    assert ran.body == "pytest -q\n\n2 failed\nExit Code: 1"
    assert (ran.role, ran.tool, ran.tags) == ("tool", "run_shell_command", ("error",))
    seen = one(found, tool="read_file")
    assert (seen.files_read, seen.tags) == (("src/cart.py",), ())
    edit = one(found, tool="replace")
    assert (edit.files_modified, edit.tags) == (("a.py",), ("error",))
    assert now.skipped["message written again"] == 5
    assert now.skipped["tool result repeated"] == 1


def test_answers_thoughts_and_compressions_have_their_kinds(talk):
    found = items(talk)
    assert one(found, ref="a2").body == "Done."
    assert one(found, ref="a1:thoughts").body == "Cache\nstale?"
    assert one(found, ref="a2:thoughts").body == "thinking"
    summary = one(found, kind="summary")
    assert (summary.ref, summary.type) == ("s1", "compact")
    assert not [item for item in items(talk, thinking=False) if item.role == "thinking"]


@pytest.mark.requirement("CAP-11")
def test_what_hooks_and_the_client_inject_is_left_out_and_counted(talk):
    now = reading(talk)
    bodies = "\n".join(item.body for item in READER.read_items(now))
    for injected in ("use tabs", "hook_context", "session_context", "secret notes", "untrusted"):
        assert injected not in bodies
    assert now.skipped["injected context"] == 1
    assert now.skipped["history written again"] == 1
    assert now.skipped["info message"] == 1


def test_the_todo_list_is_a_note(chats):
    todos = [{"description": "look", "status": "completed"}, {"description": "fix"}]
    call = called("todo_00000001", "write_todos", "ok", todos=todos)
    path = written(chats / "session-1.jsonl", [head(), said("a1", "gemini", "", toolCalls=[call])])
    (note,) = items(path)
    assert (note.kind, note.type, note.ref) == ("note", "todo", f"{SESSION}:todo")
    assert note.body == "[x] look\n[ ] fix"


def test_a_sub_agents_work_belongs_to_its_parents_session_and_can_be_skipped(chats):
    records = [
        head(sessionId="sub-0001", kind="subagent"),
        said("t1", "user", [{"text": "<loaded_context>rules</loaded_context>"}, {"text": "look"}]),
        said("a1", "gemini", "seen", 2),
        said("t2", "user", "You have stopped calling tools", 3),
    ]
    path = written(chats / SESSION / "sub-0001.jsonl", records)
    now = reading(path)
    task, answer = READER.read_items(now)
    assert (task.role, task.body, task.actor) == ("task", "look", "sub-0001")
    assert (answer.session, answer.actor) == (SESSION, "sub-0001")
    assert now.skipped["client's own text"] == 1
    assert items(path, subagents=False) == []


def test_the_document_of_older_versions_is_read_as_a_whole(talk, chats):
    message = said("p1", "user", "Why does the checkout fail?", 2)
    whole = {**head(), "messages": [message, said("a1", "gemini", "Look.", 3, toolCalls=[RAN])]}
    path = chats / "session-2025-10-01T10-00-9e310000.json"
    path.write_text(json.dumps(whole, indent=2), "utf-8")
    assert READER.is_transcript(path)
    now = reading(path)
    found = list(READER.read_items(now))
    assert [item.ref for item in found] == ["p1", "a1", "shell_00000001"]
    assert found[0].project == f"dir:{ROOT}"
    whole["messages"].append(said("p2", "user", "Again?", 9))
    path.write_text(json.dumps(whole, indent=2), "utf-8")
    assert one(list(READER.read_items(resumed(now, path))), ref="p2").prompt_number == 2
    renamed = path.with_suffix(".jsonl")
    renamed.write_text(json.dumps(whole, indent=2), "utf-8")
    assert READER.is_transcript(renamed)
    assert {item.ref for item in items(renamed)} == {"p1", "a1", "shell_00000001", "p2"}
    path.write_text("{broken", "utf-8")
    broken = reading(path)
    assert list(READER.read_items(broken)) == []
    assert broken.problems == [f"{path}:1: not JSON"]


@pytest.mark.parametrize("slug", ["shop-2", HASH])
def test_the_project_is_the_folder_the_client_noted_or_else_its_name(tmp_path, slug):
    chats = tmp_path / "tmp" / slug / "chats"
    path = written(chats / "session-1.jsonl", [head(), said("p1", "user", "hello")])
    assert one(items(path), ref="p1").project == f"name:{slug[:8]}"
    (tmp_path / "projects.json").write_text(json.dumps({"projects": {ROOT: "shop"}}), "utf-8")
    assert one(items(path), ref="p1").project == f"dir:{ROOT}"  # its hash is in the head
    (chats.parent / ".project_root").write_text("/home/sam/moved", "utf-8")
    assert one(items(path), ref="p1").project == "dir:/home/sam/moved"


def test_a_bad_line_is_named_and_the_others_are_read(talk):
    with open(talk, "ab") as file:
        file.write(b"{half a record\n")
        file.write(json.dumps(said("p9", "user", "go on", 9)).encode() + b"\n")
    now = reading(talk)
    assert one(list(READER.read_items(now)), ref="p9").prompt_number == 4
    assert now.problems == [f"{talk}:{len(TALK) + 1}: not JSON"]


def test_only_chats_are_accepted_and_only_by_this_reader(talk, tmp_path):
    assert accepted_by(talk) == ["gemini-cli"]
    claude = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": "hi"}}
    assert not READER.is_transcript(written(tmp_path / "claude.jsonl", [claude]))
    assert not READER.is_transcript(written(tmp_path / "package.json", [{"name": "shop"}]))
    assert not READER.is_transcript(tmp_path / "missing.json")


def test_chats_are_found_where_gemini_keeps_them(talk, chats, tmp_path):
    older = written(chats / "session-1.json", [])
    nested = written(chats / SESSION / "sub.jsonl", [])
    written(chats.parent / "logs.json", [])
    config = Config(tmp_path, {"gemini_dirs": (str(tmp_path),)}, {})
    assert list(find_transcripts(AGENTS["gemini-cli"], config)) == [older, talk, nested]
