"""Cursor's conversations: the CLI's stores and the editor's database."""

from __future__ import annotations

import hashlib
import json

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readings import by_identity, loses_nothing_when_stopped, one, reading, resumed
from yester.agents.base import find_transcripts, stamp_transcript
from yester.agents.cursor import READER
from yester.agents.descriptors import AGENTS
from yester.config import Config

pytestmark = pytest.mark.requirement("IMP-05")

ID = "9a0e2b1c-0000-4000-8000-00000000abcd"
NOON = 1_770_000_000_000
ASKED = (
    "<user_info>\nOS: linux\n</user_info>\n"
    "<timestamp>Monday, Aug 31, 2026, 5:52 PM (UTC-4)</timestamp>\n"
    "<user_query>\nWhy is the total wrong?\n</user_query>"
)


def items(path, **options):
    return list(READER.read_items(reading(path, **options)))


def said(role, *content):
    return {"role": role, "content": [c if isinstance(c, dict) else text(c) for c in content]}


def text(words):
    return {"type": "text", "text": words}


def call(name="Shell", key="call_0123456789abcdefABCD", **args):
    return {"type": "tool-call", "toolCallId": key, "toolName": name, "args": args}


def result(words, key="call_0123456789abcdefABCD", failed=False):
    answer = said("tool", {"type": "tool-result", "toolCallId": key, "result": words})
    high = {"highLevelToolCallResult": {"isError": failed}}
    return {**answer, "providerOptions": {"cursor": high}}


# --- the CLI's store -----------------------------------------------------------------------------


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def wire(field, payload):
    return varint(field << 3 | 2) + varint(len(payload)) + payload


def store(folder, *messages, meta=None, beside=None, workspace="file:///home/sam/my%20shop"):
    path = folder / "chats" / "0123abcd" / ID / "store.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(path))
    for line in ("PRAGMA journal_mode = WAL",
                 "CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB)",
                 "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)"):  # fmt: skip
        db.execute(line).fetchall()
    root = b"\x10\x05"
    for message in messages:
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        key = hashlib.sha256(raw)
        db.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?)", (key.hexdigest(), raw))
        root += wire(1, key.digest())
    root += wire(9, workspace.encode())
    id_ = hashlib.sha256(root).hexdigest()
    db.execute("INSERT OR REPLACE INTO blobs VALUES (?, ?)", (id_, root))
    about = {"agentId": ID, "latestRootBlobId": id_, "name": "Fix the cart", "createdAt": NOON}
    value = json.dumps({**about, **(meta or {})}).encode().hex()
    db.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (value,))
    db.close()
    if beside is not None:
        path.with_name("meta.json").write_text(json.dumps(beside))
    return path


FULL = (
    {"role": "system", "content": "You are a model"},
    said("user", "<user_info>OS</user_info>"),
    said("user", ASKED),
    said(
        "assistant", {"type": "reasoning", "text": "Rounding?"}, "Let me see.", call(command="make")
    ),
    result("Exit code: 2", failed=True),
    said("assistant", call("Write", "w" * 20, path="/home/sam/my shop/a.py", contents="x = 2")),
    result("ok", "w" * 20),
    said("assistant", call("TodoWrite", "t" * 20, todos=[{"content": "Go", "status": "pending"}])),
    result("todos set", "t" * 20),
    said("assistant", "It rounds too early.", {"type": "redacted-reasoning", "data": "x"}),
    {**said("user", "We fixed the total."), "providerOptions": {"cursor": {"isSummary": True}}},
)


def test_a_store_is_told_in_the_order_of_its_root(tmp_path):
    now = reading(store(tmp_path, *FULL))
    prompt, thought, looked, ran, wrote, todo, answer, summary = READER.read_items(now)
    assert (prompt.body, prompt.session, prompt.type) == (
        "Why is the total wrong?", ID, "first_prompt",
    )  # fmt: skip
    assert prompt.project == "dir:/home/sam/my shop"
    assert (thought.role, looked.body) == ("thinking", "Let me see.")
    assert (ran.body, ran.tags) == ("make\n\nExit code: 2", ("error",))
    assert ran.ref == "call_0123456789abcdefABCD"
    assert (wrote.files_modified, wrote.body) == (("a.py",), "/home/sam/my shop/a.py\nx = 2\n\nok")
    assert (todo.type, todo.body) == ("todo", "[ ] Go")
    assert (answer.body, summary.type) == ("It rounds too early.", "compact")
    (session,) = list(now.sessions.values())
    assert (session.title, session.cwd) == ("Fix the cart", "/home/sam/my shop")
    assert now.skipped == {
        "system": 1, "client's own text": 1, "TodoWrite call": 1, "redacted-reasoning block": 1,
    }  # fmt: skip


def test_what_stands_beside_a_store_tells_its_folder_and_title(tmp_path):
    beside = {"cwd": "/home/sam/shop", "title": "Totals", "createdAtMs": NOON + 5}
    now = reading(store(tmp_path, said("user", "Hello"), beside=beside))
    (prompt,) = READER.read_items(now)
    assert (prompt.epoch, prompt.project) == (NOON + 5, "dir:/home/sam/shop")
    assert next(iter(now.sessions.values())).title == "Totals"


def test_a_store_of_a_sub_agent_belongs_to_the_session_it_works_for(tmp_path):
    about = {"subagentInfo": {"rootParentAgentId": "root", "typeName": "explore"}}
    (task,) = items(store(tmp_path, said("user", "Find callers"), meta=about))
    assert (task.session, task.actor, task.role) == ("root", f"explore:{ID}", "task")


def test_reading_a_store_on_gives_what_reading_it_at_once_gives(tmp_path):
    whole = by_identity(items(store(tmp_path, *FULL)))
    for cut in range(len(FULL)):
        first = reading(store(tmp_path, *FULL[:cut]))
        found = by_identity(READER.read_items(first))
        store(tmp_path, *FULL)
        later = resumed(first)
        found |= by_identity(READER.read_items(later))
        assert found == whole, cut
        assert list(READER.read_items(resumed(later))) == []
    for changed in (FULL[-3:], [*FULL[3:], *(said("user", f"more {n}") for n in range(9))]):
        rewritten = store(tmp_path, *changed)
        assert by_identity(READER.read_items(resumed(later))) == by_identity(items(rewritten))


def test_a_blob_that_is_gone_or_no_message_is_counted_and_passed(tmp_path):
    now = reading(
        store(tmp_path, said("user", "Hello"), b"\x0a\x05hello", said("assistant", "Yes"))
    )
    assert [item.body for item in READER.read_items(now)] == ["Hello", "Yes"]
    assert now.skipped["unreadable"] == 1
    empty = reading(store(tmp_path, meta={"latestRootBlobId": "none"}))
    assert list(READER.read_items(empty)) == []
    assert empty.skipped == {"store without messages": 1}


# --- the editor's database -----------------------------------------------------------------------


class Editor:
    """Writes rows as the editor does: to change one is to replace it."""

    def __init__(self, folder):
        self.path = folder / "Cursor" / "User" / "globalStorage" / "state.vscdb"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.db = apsw.Connection(str(self.path))
        self.db.execute("PRAGMA journal_mode = WAL").fetchall()
        for table in ("ItemTable", "cursorDiskKV"):
            columns = "(key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
            self.db.execute(f"CREATE TABLE {table} {columns}").fetchall()
        self.lists = {}

    def put(self, key, value):
        value = value if isinstance(value, bytes | None) else json.dumps(value).encode()
        self.db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, value))

    def bubble(self, id_, kind=2, composer=ID, listed=True, **more):
        self.put(f"bubbleId:{composer}:{id_}", {"bubbleId": id_, "type": kind, **more})
        headers = self.lists.setdefault(composer, [])
        if listed and id_ not in [header["bubbleId"] for header in headers]:
            headers.append({"bubbleId": id_, "type": kind})

    def composer(self, id_=ID, **more):
        headers = self.lists.get(id_, [])
        where = {"uri": {"fsPath": "/home/sam/shop"}}
        data = {"_v": 10, "composerId": id_, "name": "Fix the cart", "createdAt": NOON,
                "workspaceIdentifier": where, "fullConversationHeadersOnly": headers}  # fmt: skip
        self.put(f"composerData:{id_}", {**data, **more})


def tool(name="run_terminal_cmd", key="toolu_0123456789abcdefAB", **more):
    return {"name": name, "toolCallId": key, "status": "completed", **more}


@pytest.fixture
def editor(tmp_path):
    made = Editor(tmp_path)
    yield made
    made.db.close()


def talk(editor):
    editor.bubble("b1", 1, text="Why is the total wrong?", createdAt="2026-02-02T02:40:00.000Z")
    editor.bubble("b2", thinking={"text": "Rounding?"}, text="")
    editor.bubble("b3", capabilityType=15, toolFormerData=tool(
        rawArgs='{"command": "make"}',
        result='{"output": "2 failed", "exitCodeV2": 2}'))  # fmt: skip
    editor.bubble("b4", text="It rounds too early.", timingInfo={"clientStartTime": NOON + 90.5})
    editor.composer()


@pytest.mark.requirement("CAP-16")
def test_a_conversation_of_the_editor_is_told_bubble_by_bubble(editor):
    talk(editor)
    now = reading(editor.path)
    prompt, thought, ran, answer = READER.read_items(now)
    assert (prompt.ref, prompt.kind, prompt.epoch) == ("b1", "prompt", NOON)
    assert (thought.role, thought.body) == ("thinking", "Rounding?")
    assert (ran.ref, ran.tool, ran.body) == (
        "toolu_0123456789abcdefAB", "run_terminal_cmd", "make\n\n2 failed",
    )  # fmt: skip
    assert (ran.call_field("command"), ran.call_result, ran.call.status) == ("make", "2 failed", 2)
    assert (answer.body, answer.epoch, answer.prompt_number) == (
        "It rounds too early.", NOON + 90, 1,
    )  # fmt: skip
    (session,) = list(now.sessions.values())
    assert (session.key, session.title, session.cwd) == (ID, "Fix the cart", "/home/sam/shop")


def test_failed_calls_todo_lists_and_summaries_are_told_as_such(editor):
    failed = {"status": "error", "error": '{"clientVisibleErrorMessage": "No such file"}'}
    editor.bubble(
        "b1", toolFormerData=tool("read_file", rawArgs='{"target_file": "a.py"}') | failed
    )
    editor.bubble("b2", toolFormerData=tool("todo_write", "t" * 20, result=json.dumps(
        {"finalTodos": [{"content": "Go", "status": "completed"}]})))  # fmt: skip
    editor.composer(latestConversationSummary={"summary": {"summary": "Read one file."}})
    now = reading(editor.path)
    seen, todo, summary = READER.read_items(now)
    assert (seen.tags, seen.files_read) == (("error",), ("a.py",))
    assert "No such file" in seen.body
    assert (todo.type, todo.body) == ("todo", "[x] Go")
    assert (summary.type, summary.body) == ("compact", "Read one file.")
    assert now.skipped == {"todo_write call": 1}


def test_a_time_that_counts_from_the_editors_start_is_none(editor):
    sent = {"clientStartTime": 98_813.1, "clientRpcSendTime": NOON + 5_000}
    editor.bubble("b1", 1, text="Change it")
    editor.bubble("b2", text="Changed.", timingInfo=sent)
    editor.composer()
    assert [item.epoch for item in items(editor.path)] == [NOON, NOON + 5_000]


def test_a_workspaces_own_list_tells_the_folder_of_earlier_conversations(editor):
    talk(editor)
    editor.composer(workspaceIdentifier=None)
    folder = editor.path.parents[1] / "workspaceStorage" / "abc"
    folder.mkdir(parents=True)
    (folder / "workspace.json").write_text('{"folder": "file:///home/sam/old%20shop"}')
    db = apsw.Connection(str(folder / "state.vscdb"))
    db.execute("CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB)").fetchall()
    listed = json.dumps({"allComposers": [{"composerId": ID}]})
    db.execute("INSERT INTO ItemTable VALUES ('composer.composerData', ?)", (listed,)).fetchall()
    db.close()
    assert {item.project for item in items(editor.path)} == {"dir:/home/sam/old shop"}


def test_a_sub_agents_conversation_belongs_to_its_root(editor):
    about = {
        "parentComposerId": "p",
        "rootParentConversationId": "r",
        "subagentTypeName": "explore",
    }
    editor.bubble("b1", 1, text="Find callers")
    editor.composer(subagentInfo=about)
    (task,) = items(editor.path)
    assert (task.role, task.session, task.actor) == ("task", "r", f"explore:{ID}")
    off = reading(editor.path, subagents=False)
    assert list(READER.read_items(off)) == []
    assert off.skipped == {"sub-agent": 1}


def test_reading_the_editor_on_gives_what_reading_all_at_once_gives(editor):
    talk(editor)
    first = reading(editor.path)
    found = by_identity(READER.read_items(first))
    editor.bubble("b3", toolFormerData=tool(rawArgs='{"command": "make"}', result="3 passed"))
    editor.bubble("b5", 1, text="And the tax?")
    editor.bubble("b6", text="Not listed yet.", listed=False)
    editor.bubble("c1", 1, composer="other", text="Hello")
    editor.composer()
    editor.composer("other", name="Another")
    second = resumed(first)
    later = list(READER.read_items(second))
    assert {item.ref for item in later} == {"toolu_0123456789abcdefAB", "b5", "b6", "c1"}
    assert one(later, ref="b5").prompt_number == 2
    assert (found | by_identity(later)) == by_identity(items(editor.path))
    assert list(READER.read_items(resumed(second))) == []


def test_stopping_at_any_item_of_the_editor_loses_nothing(editor):
    for at in range(4):
        editor.bubble("q", 1, composer=f"c{at}", text=f"question {at}")
        editor.bubble("a", composer=f"c{at}", text=f"answer {at}")
        editor.composer(f"c{at}")
    loses_nothing_when_stopped(READER, editor.path)


def test_cleared_and_bad_rows_are_counted_and_passed(editor):
    talk(editor)
    editor.put(f"bubbleId:{ID}:b2", None)
    editor.put(f"bubbleId:{ID}:b4", b"{half")
    editor.put("composerData:draft", {"composerId": "draft"})
    editor.put("composerData:gone", None)
    editor.put("composerData:bad", b"\xff")
    now = reading(editor.path)
    assert {item.ref for item in READER.read_items(now)} == {"b1", "toolu_0123456789abcdefAB"}
    assert now.skipped == {
        "cleared bubble": 1, "cleared conversation": 1, "unreadable": 2, "empty conversation": 3,
    }  # fmt: skip


# --- all of them ---------------------------------------------------------------------------------


def test_each_is_found_where_cursor_keeps_it_and_only_its_own_accepted(editor, tmp_path):
    cli = store(tmp_path / ".cursor", said("user", "Hello"))
    dirs = (str(tmp_path / ".cursor"), str(tmp_path / "Cursor"), str(tmp_path / "none"))
    config = Config(tmp_path, {"cursor_dirs": dirs}, {})
    assert list(find_transcripts(AGENTS["cursor"], config)) == [cli, editor.path]
    assert all(map(READER.is_transcript, (cli, editor.path)))
    claude = tmp_path / "claude.jsonl"
    claude.write_text('{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user"}}\n')
    foreign = tmp_path / "state.vscdb"
    db = apsw.Connection(str(foreign))
    db.execute("CREATE TABLE ItemTable (key, value)").fetchall()
    db.close()
    for path in (claude, foreign, tmp_path / "missing.jsonl"):
        assert not READER.is_transcript(path)


def test_the_stamp_changes_with_the_write_ahead_log(editor):
    talk(editor)
    before = stamp_transcript(editor.path)
    editor.bubble("b9", text="More")
    assert stamp_transcript(editor.path) != before


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    editor = Editor(folder)
    talk(editor)
    editor.db.close()
    return [("store.db", store(folder, *FULL).read_bytes()), ("a.vscdb", editor.path.read_bytes())]


@given(changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=40))
def test_flipped_bytes_never_stop_the_run(whole_files, tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("damaged")
    for name, whole in whole_files:
        raw = bytearray(whole)
        for at, value in changes:
            raw[at % len(raw)] = value
        (folder / name).write_bytes(raw)
        now = reading(folder / name)
        list(READER.read_items(now))
        msgspec.to_builtins(now.state)
        READER.is_transcript(folder / name)


@given(junk=st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(tmp_path_factory, junk):
    folder = tmp_path_factory.mktemp("junk")
    for name, head in (("store.db", b""), ("store.db", b"SQLite format 3\0")):
        (folder / name).write_bytes(head + junk)
        list(READER.read_items(reading(folder / name)))
        READER.is_transcript(folder / name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([
        "role", "message", "content", "type", "text", "toolCallId", "toolName", "args", "input",
        "name", "result", "id", "providerOptions", "cursor", "todos", "status", "timestamp",
        "thinking", "toolFormerData", "rawArgs", "bubbleId", "timingInfo", "clientStartTime",
        "createdAt", "conversation", "capabilities", "data", "bubbleDataMap", "subagentInfo",
        "fullConversationHeadersOnly", "workspaceIdentifier", "uri", "latestConversationSummary",
    ]), inner, max_size=4), max_leaves=12,
)  # fmt: skip


@given(value=JSON, role=st.sampled_from(["user", "assistant", "tool"]))
def test_any_json_in_any_place_is_read_without_an_error(tmp_path_factory, value, role):
    folder = tmp_path_factory.mktemp("any")
    blocks = [value, {"type": "tool-call", "args": value}, {"type": "text", "text": value}]
    records = [value, {"role": role, "content": value}, {"role": role, "content": blocks}]
    list(READER.read_items(reading(store(folder, *records))))
    made = Editor(folder)
    made.put("composerData:a", value)
    made.bubble("z", composer="d", toolFormerData=value, thinking=value, timingInfo=value)
    made.bubble("x", composer="c", toolFormerData={"name": "n", "result": value, "rawArgs": value})
    made.put("bubbleId:c:y", value)
    told = {"subagentInfo": value, "latestConversationSummary": value}
    made.composer("c", name=value, capabilities=value, **told)
    list(READER.read_items(reading(made.path)))
    made.db.close()
