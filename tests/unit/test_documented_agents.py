"""Agents known by their documentation or by other readers of their files: each form, once."""

from __future__ import annotations

import json
from hashlib import md5

import apsw
import pytest

from tests.readings import accepted_by, by_identity, loses_nothing_when_stopped, reading, resumed
from yester.agents.base import find_transcripts, load_reader
from yester.agents.descriptors import AGENTS
from yester.config import Config

pytestmark = pytest.mark.requirement("IMP-05")
ROLES = [
    ("prompt", "user"), ("message", "assistant"), ("message", "tool"), ("message", "assistant"),
]  # fmt: skip


def lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def text(words):
    return {"type": "text", "text": words}


def droid(folder):
    told = [
        ("user", [text("<system-reminder>x</system-reminder>Build it")]),
        ("assistant", [text("I run make."),
                       {"type": "tool_use", "id": "toolu_0123456789abcdef", "name": "Execute",
                        "input": {"command": "make"}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "toolu_0123456789abcdef",
                   "content": "no rule", "is_error": True}]),
        ("assistant", [text("There is no Makefile.")]),
    ]  # fmt: skip
    head = {"type": "session_start", "id": "d-1", "title": "Build", "cwd": "/home/sam/shop"}
    moment = "2026-06-01T10:00:00.000Z"
    return lines(folder / "sessions" / "-home-sam-shop" / "d-1.jsonl", [head, *(
        {"type": "message", "id": f"m{n}", "timestamp": moment,
         "message": {"role": role, "content": content}}
        for n, (role, content) in enumerate(told)
    )])  # fmt: skip


def openai(content=None):
    call = {"type": "function", "id": "call_0123456789abcdef",
            "function": {"name": "bash", "arguments": '{"command": "make"}'}}  # fmt: skip
    return [
        {"role": "user", "content": content or "Build it"},
        {"role": "assistant", "content": [text("I run make.")], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_0123456789abcdef", "content": "no rule"},
        {"role": "assistant", "content": "There is no Makefile."},
    ]


def kimi(folder):
    (folder / "kimi.json").write_text(json.dumps({"work_dirs": [{"path": "/home/sam/shop"}]}))
    slug = md5(b"/home/sam/shop").hexdigest()
    marks = [{"role": "_checkpoint", "id": 0}, *openai(), {"role": "_usage", "token_count": 7}]
    return lines(folder / "sessions" / slug / "d-1" / "context.jsonl", marks)


def cline(folder):
    task = folder / "tasks" / "1770000000000"
    task.mkdir(parents=True)
    (folder / "state").mkdir()
    (folder / "state" / "taskHistory.json").write_text(
        json.dumps([{"id": task.name, "cwdOnTaskInitialization": "/home/sam/shop"}])
    )
    around = "<task>\nBuild it\n</task>\n<environment_details>x</environment_details>"
    path = task / "api_conversation_history.json"
    path.write_text(json.dumps(openai(around)))
    return path


def goose(folder):
    path = folder / "sessions" / "sessions.db"
    path.parent.mkdir(parents=True)
    db = apsw.Connection(str(path))
    for line in ("CREATE TABLE sessions (id TEXT, name TEXT, working_dir TEXT)",
                 "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT,"
                 " content_json TEXT, created_timestamp INTEGER)",
                 "INSERT INTO sessions VALUES ('d-1', 'Build', '/home/sam/shop')"):  # fmt: skip
        db.execute(line).fetchall()
    call = {"name": "developer__shell", "arguments": {"command": "make"}}
    outcome = {"status": "success", "value": [text("no rule")]}
    told = [
        ("user", [text("Build it")]),
        ("assistant", [text("I run make."),
                       {"type": "toolRequest", "id": "call_1", "toolCall": {"value": call}}]),
        ("user", [{"type": "toolResponse", "id": "call_1", "toolResult": outcome}]),
        ("assistant", [text("There is no Makefile.")]),
    ]  # fmt: skip
    for role, content in told:
        db.execute("INSERT INTO messages (session_id, role, content_json, created_timestamp)"
                   " VALUES ('d-1', ?, ?, 1770000000)", (role, json.dumps(content)))  # fmt: skip
    db.close()
    return path


WRITERS = {"droid": droid, "kimi-code": kimi, "goose": goose, "cline": cline}


@pytest.mark.parametrize("agent", WRITERS)
def test_what_was_said_and_done_is_read_and_nothing_else(agent, tmp_path):
    path = WRITERS[agent](tmp_path)
    assert accepted_by(path) == [agent]
    now = reading(path)
    found = list(load_reader(agent).read_items(now))
    assert [(item.kind, item.role) for item in found] == ROLES
    assert found[0].body == "Build it"
    ran = found[2]
    assert (ran.call_result, ran.call_field("command")) == ("no rule", "make")
    assert {item.project for item in found} == {"dir:/home/sam/shop"}
    assert len(now.sessions) == 1
    again = by_identity(load_reader(agent).read_items(resumed(now)))
    assert again.items() <= by_identity(found).items()


@pytest.mark.parametrize("agent", WRITERS)
def test_reading_may_stop_anywhere(agent, tmp_path):
    loses_nothing_when_stopped(load_reader(agent), WRITERS[agent](tmp_path))


def test_each_is_found_where_its_client_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    config = Config(tmp_path, {}, {})
    places = {"droid": ".factory", "kimi-code": ".kimi", "goose": ".local/share/goose",
              "cline": ".cline/data"}  # fmt: skip
    for agent, folder in places.items():
        (tmp_path / folder).mkdir(parents=True)
        path = WRITERS[agent](tmp_path / folder)
        assert list(find_transcripts(AGENTS[agent], config)) == [path]


def test_the_documents_of_early_copilot_versions_are_read(tmp_path):
    path = tmp_path / "history-session-state" / "session_1.json"
    path.parent.mkdir()
    whole = {"sessionId": "h-1", "startTime": "2025-10-08T21:10:16.398Z", "chatMessages": openai()}
    path.write_text(json.dumps(whole, indent=2))
    assert accepted_by(path) == ["copilot-cli"]
    found = list(load_reader("copilot-cli").read_items(reading(path)))
    assert [(item.kind, item.role) for item in found] == ROLES
    assert {item.session for item in found} == {"h-1"}
