"""opencode's sessions: a database that is in use, and damage."""

from __future__ import annotations

import json
import os

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readings import by_identity, loses_nothing_when_stopped, one, reading, resumed
from yester.agents.base import find_transcripts, stamp_transcript
from yester.agents.descriptors import AGENTS
from yester.agents.opencode import READER
from yester.config import Config

pytestmark = pytest.mark.requirement("IMP-05")

FIRST = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text,
  directory text NOT NULL, title text NOT NULL, agent text,
  time_created integer NOT NULL, time_updated integer NOT NULL);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE todo (session_id text, content text, status text, priority text, position integer,
  time_created integer, time_updated integer);
"""
NOON = 1_770_000_000_000


class Database:
    """Writes as opencode does: in write-ahead mode, rows rewritten in place."""

    def __init__(self, path, schema=FIRST):
        self.path = path
        self.clock = NOON
        path.parent.mkdir(parents=True, exist_ok=True)
        self.db = apsw.Connection(str(path))
        for line in ("PRAGMA journal_mode = WAL", *schema.split(";")):
            self.db.execute(line).fetchall()

    def tick(self):
        self.clock += 1_000
        return self.clock

    def session(self, id_="ses_1", parent=None, title="Fix the cart", directory="/home/sam/shop"):
        now = self.tick()
        self.db.execute(
            "INSERT INTO session VALUES (?, 'p', ?, ?, ?, NULL, ?, ?)",
            (id_, parent, directory, title, now, now),
        )

    def message(self, id_, *parts, role="user", session="ses_1", **info):
        now = self.tick()
        data = json.dumps({"role": role, "time": {"created": now}, **info})
        self.db.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (id_, session, now, now, data)
        )
        for at, part in enumerate(parts):
            self.part(f"prt_{id_}_{at}", id_, part, session)

    def part(self, id_, message, part, session="ses_1"):
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        now = self.tick()
        data = part if isinstance(part, bytes) else json.dumps(part)
        self.db.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO UPDATE"
            " SET data = excluded.data, time_updated = excluded.time_updated",
            (id_, message, session, now, now, data),
        )


def call(tool="bash", key="call_0123456789abcdefABCDEF", status="completed", **state):
    return {"type": "tool", "tool": tool, "callID": key, "state": {"status": status, **state}}


@pytest.fixture
def database(tmp_path):
    made = []

    def make(schema=FIRST, name="opencode.db"):
        made.append(Database(tmp_path / "share" / "opencode" / name, schema))
        return made[-1]

    yield make
    for database in made:
        database.db.close()


def items(path, **options):
    return list(READER.read_items(reading(path, **options)))


def talk(db):
    db.session()
    db.message("msg_1", "Why is the total wrong?")
    db.message(
        "msg_2", {"type": "step-start"}, {"type": "reasoning", "text": "Rounding, perhaps."},
        call(input={"command": "pytest -q", "timeout": 9}, output="1 failed", metadata={"exit": 1}),
        "It rounds too early.", {"type": "step-finish", "cost": 0}, role="assistant",
    )  # fmt: skip


@pytest.mark.requirement("CAP-16")
def test_a_session_is_told_as_prompt_thought_call_and_answer(database):
    db = database()
    talk(db)
    now = reading(db.path)
    prompt, thought, ran, answer = READER.read_items(now)
    assert (prompt.kind, prompt.role, prompt.origin, prompt.trust) == (
        "prompt",
        "user",
        "user",
        1.0,
    )
    assert (prompt.type, prompt.prompt_number) == ("first_prompt", 1)
    assert prompt.title == "Why is the total wrong?"
    assert (thought.role, thought.body) == ("thinking", "Rounding, perhaps.")
    assert (ran.role, ran.tool, ran.body) == ("tool", "bash", "pytest -q\n\n1 failed")
    assert (ran.ref, ran.tags) == ("call_0123456789abcdefABCDEF", ("error",))
    assert (ran.call_field("command"), ran.call_field("timeout")) == ("pytest -q", "9")
    assert (ran.call_result, ran.call.status) == ("1 failed", 1)
    assert (answer.role, answer.prompt_number) == ("assistant", 1)
    assert {item.source for item in (prompt, answer)} == {"opencode"}
    (session,) = list(now.sessions.values())
    assert (session.key, session.title, session.cwd) == ("ses_1", "Fix the cart", "/home/sam/shop")
    assert NOON < session.started < session.ended
    assert now.skipped == {"step-start part": 1, "step-finish part": 1}
    assert now.messages == 4


def test_what_the_client_adds_to_a_prompt_is_left_out(database):
    db = database()
    db.session(title="New session - 2026-02-02T02:40:00.000Z")
    db.message(
        "msg_1", "Look at this", {"type": "text", "text": "Called a tool", "synthetic": True},
        {"type": "text", "text": "not sent", "ignored": True},
        {"type": "file", "mime": "text/plain", "source": {"path": "/home/sam/shop/src/a.py"}},
    )  # fmt: skip
    db.message("msg_2", {"type": "compaction", "auto": True})
    now = reading(db.path)
    (prompt,) = READER.read_items(now)
    assert prompt.body == "Look at this"
    assert prompt.files_read == ("src/a.py",)
    assert now.skipped == {"synthetic part": 1, "ignored part": 1, "compaction part": 1}
    assert next(iter(now.sessions.values())).title == "Look at this"


def test_the_quotation_marks_of_a_run_from_the_command_line_are_not_the_users(database):
    db = database()
    db.session()
    for at, said in enumerate(('"please run the tests"', '"a" or "b"', '"')):
        db.message(f"msg_{at}", said)
    assert [item.body for item in items(db.path)] == ["please run the tests", '"a" or "b"', '"']


def test_tools_name_the_files_they_read_and_change(database):
    db = database()
    db.session()
    db.message(
        "msg_1",
        call("read", "r" * 20, input={"filePath": "/home/sam/shop/src/cart.py"}, output="1: x"),
        call("edit", "e" * 20, input={"filePath": "src/b.py", "oldString": "x", "newString": "y"}),
        call("apply_patch", "p" * 20, input={"patchText": "*** Update File: src/c.py\n+z"}),
        call("grep", "g" * 20, input={"pattern": "total", "path": "/home/sam/shop/src"}),
        role="assistant",
    )
    found = items(db.path)
    assert one(found, tool="read").files_read == ("src/cart.py",)
    assert one(found, tool="edit").files_modified == ("src/b.py",)
    assert one(found, tool="edit").body == "src/b.py\nx\ny"
    assert one(found, tool="apply_patch").files_modified == ("src/c.py",)
    assert one(found, tool="grep").files_read == ()


def test_a_failed_call_says_what_went_wrong(database):
    db = database()
    db.session()
    db.message(
        "msg_1", call("read", status="error", input={"filePath": "/x"}, error="File not found"),
        role="assistant",
    )  # fmt: skip
    (failed,) = items(db.path)
    assert (failed.tags, failed.body) == (("error",), "/x\n\nFile not found")


def test_calls_that_are_numbered_in_each_session_stay_apart(database):
    db = database()
    for id_ in ("ses_1", "ses_2"):
        db.session(id_)
        db.message(f"msg_{id_}", call(key="functions.bash:0", input={"command": id_}),
                   role="assistant", session=id_)  # fmt: skip
    assert len(by_identity(items(db.path))) == 2


def test_thinking_can_be_switched_off(database):
    db = database()
    talk(db)
    off = reading(db.path, thinking=False)
    assert not [item for item in READER.read_items(off) if item.role == "thinking"]
    assert off.skipped["thinking"] == 1


def test_a_sub_agents_session_belongs_to_its_root_and_has_an_actor(database):
    db = database()
    talk(db)
    db.session("ses_2", parent="ses_1", title="Child session - now")
    db.session("ses_3", parent="ses_2", title="")
    db.message("msg_5", "Find all callers", session="ses_2")
    db.message("msg_6", "Deeper still", session="ses_3")
    now = reading(db.path)
    found = list(READER.read_items(now))
    task = one(found, body="Find all callers")
    assert (task.kind, task.role, task.session) == ("message", "task", "ses_1")
    assert task.actor.endswith("ses_2")
    assert one(found, body="Deeper still").session == "ses_1"
    assert [session.title for session in list(now.sessions.values())] == ["Fix the cart"]
    off = reading(db.path, subagents=False)
    assert not [item for item in READER.read_items(off) if item.actor]
    assert off.skipped["sub-agent"] == 2


def test_the_todo_list_and_the_summary_of_a_compaction_are_kept(database):
    db = database()
    db.session()
    db.message("msg_1", "Start")
    db.message("msg_2", "We changed the rounding.", role="assistant", summary=True)
    db.message("msg_3", call("todowrite", input={"todos": []}), role="assistant")
    for at, (content, status) in enumerate([("Write a test", "completed"), ("Fix it", "pending")]):
        db.db.execute("INSERT INTO todo VALUES ('ses_1', ?, ?, 'high', ?, 0, 0)",
                      (content, status, at))  # fmt: skip
    now = reading(db.path)
    found = list(READER.read_items(now))
    assert one(found, kind="summary", type="compact").body == "We changed the rounding."
    todo = one(found, kind="note", type="todo")
    assert todo.body == "[x] Write a test\n[ ] Fix it"
    assert now.skipped["todowrite call"] == 1


def test_reading_on_gives_what_reading_all_at_once_gives(database):
    db = database()
    talk(db)
    db.clock += 3_600_000  # later than any overlap
    db.part("prt_msg_2_9", "msg_2", call(key="k" * 24, status="running", input={"command": "make"}))
    first = reading(db.path)
    found = by_identity(READER.read_items(first))
    db.clock += 3_600_000
    db.part("prt_msg_2_9", "msg_2", call(key="k" * 24, input={"command": "make"}, output="built"))
    db.message("msg_3", "And the tax?")
    db.message("msg_4", "Also wrong.", role="assistant")
    db.session("ses_9", title="Another")
    db.message("msg_9", "Hello", session="ses_9")
    second = resumed(first)
    later = list(READER.read_items(second))
    assert one(later, body="And the tax?").prompt_number == 2
    assert not [item for item in later if item.ref == "msg_1"]  # read before, and unchanged
    found |= by_identity(later)
    assert found == by_identity(items(db.path))
    assert found["message", "k" * 24] == "make\n\nbuilt"
    third = resumed(second)
    db.message("msg_5", "with an older stamp", session="ses_9")
    db.db.execute("UPDATE message SET time_created = 1, time_updated = 1 WHERE id = 'msg_5'")
    db.db.execute("UPDATE part SET time_created = 1, time_updated = 1 WHERE message_id = 'msg_5'")
    assert one(list(READER.read_items(third)), ref="msg_5").body == "with an older stamp"


def test_stopping_at_any_item_loses_nothing(database):
    db = database()
    for at in range(4):
        db.session(f"ses_{at}")
        db.message(f"msg_a{at}", f"question {at}", session=f"ses_{at}")
        db.clock += 600_000
        db.message(f"msg_b{at}", f"answer {at}", role="assistant", session=f"ses_{at}")
    os.utime(db.path, ns=(db.clock * 1_000_000,) * 2)
    loses_nothing_when_stopped(READER, db.path)


def test_a_stamp_from_the_future_does_not_hide_what_comes_later(database):
    db = database()
    talk(db)
    db.db.execute("UPDATE message SET time_updated = 4000000000000 WHERE id = 'msg_1'")
    now = reading(db.path)
    list(READER.read_items(now))
    db.message("msg_8", "Still there?")
    assert "msg_8" in {item.ref for item in READER.read_items(resumed(now))}


def test_a_row_changed_after_one_from_the_future_is_read(database):
    db = database()
    talk(db)
    db.db.execute("UPDATE session SET time_updated = 4000000000000")
    db.db.close()
    os.utime(db.path, ns=(db.clock * 1_000_000,) * 2)
    now = reading(db.path)
    list(READER.read_items(now))
    db.db = apsw.Connection(str(db.path))
    db.part("prt_msg_2_3", "msg_2", "It rounds too late.")
    assert "It rounds too late." in {item.body for item in READER.read_items(resumed(now))}


def test_the_database_is_found_and_only_its_own(tmp_path, database):
    db = database()
    folder = db.path.parent
    config = Config(tmp_path, {"opencode_dirs": (str(folder), str(tmp_path / "none"))}, {})
    assert list(find_transcripts(AGENTS["opencode"], config)) == [db.path]
    assert READER.is_transcript(db.path)
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE session (id)").fetchall()
    other.close()
    for path in (tmp_path / "other.db", tmp_path / "nothing.db"):
        assert not READER.is_transcript(path)


def test_a_database_in_use_is_read_and_one_at_rest_is_left_as_it_was(database):
    db = database()
    talk(db)
    assert len(items(db.path)) == 4  # what is only in the write-ahead log is seen
    before = stamp_transcript(db.path)
    db.message("msg_7", "More")
    assert stamp_transcript(db.path) != before
    db.db.close()
    alone = {file.name: file.read_bytes() for file in db.path.parent.iterdir()}
    assert set(alone) == {"opencode.db"}
    assert READER.is_transcript(db.path)
    assert len(items(db.path)) == 5
    assert {file.name: file.read_bytes() for file in db.path.parent.iterdir()} == alone


def test_a_locked_database_is_a_problem_of_this_run_only(database, monkeypatch):
    monkeypatch.setattr("yester.agents.sources._BUSY_MS", 1)
    db = database()
    talk(db)
    db.db.execute("PRAGMA journal_mode = DELETE").fetchall()
    db.db.execute("BEGIN EXCLUSIVE").fetchall()
    now = reading(db.path)
    assert list(READER.read_items(now)) == []
    assert now.problems == [f"{db.path}:0: locked by another program; the next run reads it"]
    db.db.execute("COMMIT").fetchall()
    assert len(list(READER.read_items(resumed(now)))) == 4


def test_a_lock_in_the_middle_of_a_run_loses_nothing(database, monkeypatch):
    monkeypatch.setattr("yester.agents.sources._BUSY_MS", 1)
    db = database()
    for id_ in ("ses_1", "ses_2", "ses_3"):
        db.session(id_)
        db.message(f"msg_{id_}", f"question of {id_}", session=id_)
        db.clock += 600_000
    db.db.execute("PRAGMA journal_mode = DELETE").fetchall()
    now = reading(db.path)
    run = READER.read_items(now)
    found = [next(run)]
    db.db.execute("BEGIN EXCLUSIVE").fetchall()
    found += run
    db.db.execute("COMMIT").fetchall()
    assert len(found) == 1
    assert now.skipped["unreadable"] >= 1
    found += READER.read_items(resumed(now))
    assert {item.session for item in found} == {"ses_1", "ses_2", "ses_3"}


def test_a_bad_row_is_counted_and_passed(database):
    db = database()
    talk(db)
    db.db.execute("UPDATE message SET data = 'half {' WHERE id = 'msg_1'")
    db.part("prt_x", "msg_2", b"\xff\xfe\x00")
    now = reading(db.path)
    assert len(list(READER.read_items(now))) == 3
    assert now.skipped["unreadable"] == 2
    assert now.problems[0] == f"{db.path}:1: message msg_1 is not a JSON object"


def test_a_row_that_cannot_be_read_costs_nothing_but_itself(database, monkeypatch):
    monkeypatch.setattr("yester.agents.sources.LONGEST_LINE", 20_000)
    db = database()
    talk(db)
    db.part("prt_msg_2_99", "msg_2", "endless " * 5_000)
    db.message("msg_3", "And the tax?")
    now = reading(db.path)
    assert len(list(READER.read_items(now))) == 5
    assert now.skipped["unreadable"] == 1
    assert now.state.since > NOON  # the next run does not meet it again


def test_parts_are_told_in_the_order_of_their_ids(database):
    db = database()
    db.session()
    db.message("msg_1", role="assistant")
    for id_ in ("prt_3", "prt_1", "prt_2"):
        db.part(id_, "msg_1", id_)
    assert [item.body for item in items(db.path)] == ["prt_1", "prt_2", "prt_3"]


def test_missing_columns_and_tables_cost_only_what_they_held(database):
    db = database()
    talk(db)
    for line in ("ALTER TABLE session DROP COLUMN agent", "ALTER TABLE session DROP COLUMN title",
                 "ALTER TABLE part DROP COLUMN time_updated", "DROP TABLE todo"):  # fmt: skip
        db.db.execute(line).fetchall()
    now = reading(db.path)
    assert len(list(READER.read_items(now))) == 4
    assert next(iter(now.sessions.values())).title == "Why is the total wrong?"
    db.db.execute("DROP TABLE session").fetchall()
    lost = reading(db.path)
    assert list(READER.read_items(lost)) == []
    assert "not known" in lost.problems[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    db = Database(tmp_path_factory.mktemp("whole") / "opencode.db")
    talk(db)
    db.db.close()
    return db.path.read_bytes()


@given(changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=40))
def test_flipped_bytes_never_stop_the_run(whole, tmp_path_factory, changes):
    path = tmp_path_factory.mktemp("damaged") / "opencode.db"
    raw = bytearray(whole)
    for at, value in changes:
        raw[at % len(raw)] = value
    path.write_bytes(raw)
    now = reading(path)
    list(READER.read_items(now))
    msgspec.to_builtins(now.state)
    READER.is_transcript(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([
        "role", "type", "text", "tool", "name", "callID", "id", "state", "status", "input",
        "output", "content", "error", "message", "metadata", "exit", "summary", "synthetic",
        "source", "path", "filename", "filePath", "command", "files", "time", "created",
    ]), inner, max_size=4), max_leaves=12,
)  # fmt: skip


@given(value=JSON, kind=st.sampled_from(["tool", "text", "reasoning", "file"]))
def test_any_json_in_any_place_is_read_without_an_error(tmp_path_factory, value, kind):
    db = Database(tmp_path_factory.mktemp("any") / "opencode.db")
    db.session()
    db.message("m1", value, {"type": kind, "text": value, "source": value})
    db.message("m2", value, {"type": kind, "state": value, "tool": value}, role="assistant")
    db.message("m3", role="assistant", summary=value, error=value)
    list(READER.read_items(reading(db.path)))
    db.db.close()


@given(junk=st.binary(max_size=300))
def test_any_bytes_are_no_database_or_a_damaged_one(tmp_path_factory, junk):
    folder = tmp_path_factory.mktemp("junk")
    for head in (b"", b"SQLite format 3\0"):
        path = folder / "opencode.db"
        path.write_bytes(head + junk)
        list(READER.read_items(reading(path)))
        READER.is_transcript(path)


@given(state=st.recursive(st.none() | st.integers() | st.text(), lambda s: st.dictionaries(
    st.sampled_from(["since", "row", "x"]), s)))  # fmt: skip
def test_another_versions_state_is_no_state(whole, tmp_path_factory, state):
    path = tmp_path_factory.mktemp("state") / "opencode.db"
    path.write_bytes(whole)
    now = reading(path)
    now.state = state
    list(READER.read_items(now))
