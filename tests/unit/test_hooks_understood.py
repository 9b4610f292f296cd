"""A hook's payload and the transcript's record of the same thing become the same item."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capturing import EVENTS, SESSION, Told
from tests.readings import one, reading
from tests.table import each
from yester.agents.base import Options
from yester.agents.claude_code import READER
from yester.agents.hooks import READ_TRANSCRIPT_AFTER, add_items, identify_client, read_payload
from yester.capture.rules import Rules
from yester.capture.spool import Spooled
from yester.config import load_config
from yester.errors import SourceError
from yester.ingest.events import Events
from yester.model import Session, replace
from yester.project import Projects
from yester.store import open_store
from yester.text.edits import edited_lines

pytestmark = pytest.mark.requirement("CAP-01")

TURN = "11111111-2222-4333-8444-555555555555"
EVENT = "1770000000000000000-1-aa"


@pytest.fixture
def told():
    return Told(turn=TURN)


def understood(told, event, hints=None, **more):
    payload = told.payload(event, **more)
    return read_payload(event, told.cwd, {"CLAUDECODE": "1", **(hints or {})}, payload, 5)


def made(told, event, options=None, session=None, **more):
    """The items of an event in a session that is known like this."""
    payload = told.payload(event, **more)
    found = replace(read_payload(event, told.cwd, {"CLAUDECODE": "1"}, payload, 5), id=EVENT)
    projects = Projects({})
    project = projects.by_folder(told.cwd)
    session = session or Session(told.session, "claude-code", project.key, cwd=told.cwd)
    return add_items(found, payload, session, projects, options or Options()).items


# --- what happened -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ("SessionStart", "start"), ("UserPromptSubmit", "prompt"), ("PostToolUse", "tool"),
        ("PostToolUseFailure", "failure"), ("PreToolUse", "read"), ("PreCompact", "other"),
        ("PostCompact", "compaction"), ("SubagentStart", "agent start"), ("Stop", "stop"),
        ("StopFailure", "stop failure"), ("Interrupt", "interrupt"), ("SessionEnd", "end"),
        ("SomethingNew", "other"),
    ],
)  # fmt: skip
def test_every_event_means_something_or_nothing(told, event, what):
    assert understood(told, event).what == what


def test_the_common_fields_are_taken_from_every_payload(told):
    told.transcript = "/home/sam/.claude/projects/x/s.jsonl"
    for event in EVENTS:
        found = understood(told, event)
        assert (found.name, found.session, found.cwd) == (event, SESSION, told.cwd)
        assert (found.agent, found.epoch) == ("claude-code", 5)
        assert found.transcripts == (Path(told.transcript),)
        assert found.turn == ("" if event == "SessionStart" else TURN)


def test_each_event_tells_what_is_its_own(told):
    assert understood(told, "SessionStart", source="resume").source == "resume"
    assert understood(told, "UserPromptSubmit", prompt="  why? ").prompt == "  why? "
    ran = understood(told, "PostToolUse", tool_name="Bash", tool_input={}, tool_response={})
    assert (ran.tool, ran.failed, ran.interrupted) == ("Bash", False, False)
    broke = understood(told, "PostToolUseFailure", tool_name="Bash", is_interrupt=True, error="x")
    assert (broke.tool, broke.failed, broke.interrupted) == ("Bash", True, True)


@pytest.mark.requirement("CAP-13")
def test_a_sub_agent_is_named_by_type_and_id(told):
    by = {"agent_id": "a1b2", "agent_type": "Explore"}
    assert understood(told, "PostToolUse", tool_name="Read", **by).actor == "Explore:a1b2"
    assert understood(told, "PostToolUse", tool_name="Read", agent_id="a1b2").actor == "a1b2"
    assert understood(told, "SessionStart", agent_type="Explore").actor == ""
    own = "/home/sam/.claude/projects/x/s/subagents/agent-a1b2.jsonl"
    ended = understood(told, "SubagentStop", agent_transcript_path=own, **by)
    assert (ended.what, ended.actor, ended.transcripts[-1]) == (
        "agent end", "Explore:a1b2", Path(own)
    )  # fmt: skip


def test_the_agent_that_compacts_is_no_sub_agent(told):
    found = understood(
        told, "SubagentStop", agent_id="c1", agent_type="", last_assistant_message="."
    )
    assert found.what == "other"
    assert (
        made(told, "SubagentStop", agent_id="c1", agent_type="", last_assistant_message=".") == ()
    )


@pytest.mark.requirement("CAP-08")
def test_transcripts_are_read_after_what_only_they_tell_whole():
    events = {"compaction", "agent end", "stop", "stop failure", "end"}
    assert events == READ_TRANSCRIPT_AFTER


@pytest.mark.requirement("CAP-07")
def test_the_project_is_where_the_session_began_not_where_the_agent_went(told):
    outer = {"CLAUDE_PROJECT_DIR": "/home/sam/code/shop"}
    own = {**outer, "CLAUDE_CODE_SESSION_ID": SESSION}
    assert understood(told, "Stop", own, cwd="/tmp/else").cwd == "/home/sam/code/shop"
    assert understood(told, "Stop", outer, cwd="/tmp/else").cwd == "/tmp/else"
    assert understood(told, "Stop", cwd="/tmp/else").cwd == "/tmp/else"
    assert read_payload("Stop", "/the/hooks/own", {}, {}, 5).cwd == "/the/hooks/own"


CLIENTS = [
    ({"CLAUDECODE": "1"}, {}, "claude-code"),
    ({"CLAUDECODE": ""}, {}, "claude-code"),
    ({"COPILOT_CLI": "1"}, {}, "copilot-cli"),
    ({"GEMINI_SESSION_ID": "x"}, {}, "gemini-cli"),
    ({"CLAUDECODE": "1", "COPILOT_CLI": "1", "GEMINI_SESSION_ID": "x"}, {}, "claude-code"),
    ({"COPILOT_CLI": "1", "GEMINI_SESSION_ID": "x"}, {}, "copilot-cli"),
    ({"CLAUDECODE": "1"}, {"turn_id": "t"}, "codex"),
    ({"CLAUDECODE": "1", "client": "gemini-cli"}, {}, "gemini-cli"),
    ({"CLAUDECODE": "1", "client": "claude-code"}, {"turn_id": "t"}, "codex"),
    ({"COPILOT_CLI": "1", "client": "claude-code"}, {}, "claude-code"),
    ({"COPILOT_CLI": "1", "client": "claude-code"}, {"session_id": "s"}, "copilot-cli"),
    ({"CLAUDECODE": "1"}, {"transcript_path": "/c/session-state/s/events.jsonl"}, "copilot-cli"),
    ({"GEMINI_SESSION_ID": "s", "client": "claude-code"}, {"session_id": "s"}, "gemini-cli"),
    ({"client": "Not a\x00name"}, {}, "claude-code"),
    ({"client": "pi"}, {}, "pi"),
    ({}, {"turn_id": "t"}, "codex"),
    ({}, {"turn_id": None}, "codex"),
    ({}, {"transcript_path": "/home/sam/.codex/sessions/2026/01/02/rollout-x.jsonl"}, "codex"),
    ({}, {"transcript_path": "/home/sam/.claude/projects/x/y.jsonl"}, "claude-code"),
    ({}, {"transcript_path": 7}, "claude-code"),
    ({}, {}, "claude-code"),
    ({"CLAUDE_PROJECT_DIR": "/x"}, {}, "claude-code"),
]


@each(("hints", "payload", "name"), CLIENTS)
def test_the_client_is_known_by_its_payload_then_by_its_command_then_by_variables(
    hints, payload, name
):
    assert identify_client(hints, payload) == name


def test_a_turn_of_codex_is_a_turn():
    assert read_payload("Stop", "/x", {}, {"turn_id": "t-1"}, 5).turn == "t-1"


# --- the same item from both sides ---------------------------------------------------------------

W = "/home/sam/code/shop/"
PRINTED = {"stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
CURRENT = " (file state is current in your context — no need to Read it back)"
TOOLS = {
    # name: (tool, input, tool_response of the hook, text of the transcript)
    "a command": (
        "Bash", {"command": "echo hello-from-bash", "description": "Say it"},
        {"stdout": "hello-from-bash", **PRINTED}, "hello-from-bash",
    ),
    "a command with both outputs": (
        "Bash", {"command": "make"}, {**PRINTED, "stdout": "built\n", "stderr": "\nwarned\n"},
        "built\n\nwarned",
    ),
    "a silent command": (
        "Bash", {"command": "true"}, {"stdout": "", **PRINTED}, "(Bash completed with no output)",
    ),
    "a silent search": (
        "Bash", {"command": "grep x y"},
        {"stdout": "", **PRINTED, "returnCodeInterpretation": "No matches found"},
        "(Bash completed with no output)",
    ),
    "output with colours, tabs and other scripts": (
        "Bash", {"command": "cat x"}, {"stdout": "é🎉\n\x1b[31mred\x1b[0m\na\tb\r\nc", **PRINTED},
        "é🎉\n\x1b[31mred\x1b[0m\na\tb\r\nc",
    ),
    "a new file": (
        "Write", {"file_path": W + "src/a.py", "content": "x = 1\n"},
        {"type": "create", "filePath": W + "src/a.py", "content": "x = 1\n", "structuredPatch": [],
         "originalFile": None, "userModified": False},
        f"File created successfully at: {W}src/a.py{CURRENT}",
    ),
    "a file written anew": (
        "Write", {"file_path": W + "src/a.py", "content": "x = 2\n"},
        {"type": "update", "filePath": W + "src/a.py", "content": "x = 2\n", "structuredPatch": [],
         "originalFile": "x = 1\n", "userModified": False},
        f"The file {W}src/a.py has been updated successfully.{CURRENT}",
    ),
    "an edit": (
        "Edit", {"file_path": W + "src/a.py", "old_string": "1", "new_string": "2"},
        {"filePath": W + "src/a.py", "oldString": "1", "newString": "2", "originalFile": "x = 1",
         "structuredPatch": [{"lines": ["-1", "+2"]}], "userModified": False, "replaceAll": False},
        f"The file {W}src/a.py has been updated successfully.{CURRENT}",
    ),
    "an edit of all places": (
        "Edit",
        {"file_path": W + "a.py", "old_string": "1", "new_string": "2", "replace_all": True},
        {"filePath": W + "a.py", "oldString": "1", "newString": "2", "originalFile": "11",
         "structuredPatch": [], "userModified": False, "replaceAll": True},
        f"The file {W}a.py has been updated. All occurrences were successfully replaced.{CURRENT}",
    ),
    "an edit of a file not read": (
        "Edit", {"file_path": W + "a.py", "old_string": "1", "new_string": "2"},
        {"filePath": W + "a.py", "oldString": "1", "newString": "2", "originalFile": "1",
         "structuredPatch": [], "userModified": False, "replaceAll": False,
         "contentNotInModelContext": True},
        f"The file {W}a.py has been updated successfully.",
    ),
    "a file read": (
        "Read", {"file_path": W + "src/a.py"},
        {"type": "text", "file": {"filePath": W + "src/a.py", "content": "def f():\n    return 3\n",
                                  "numLines": 3, "startLine": 1, "totalLines": 3}},
        "1\tdef f():\n2\t    return 3\n3\t",
    ),
    "a part of a file read": (
        "Read", {"file_path": W + "src/a.py", "offset": 10, "limit": 2},
        {"type": "text", "file": {"filePath": W + "src/a.py", "content": "ten\neleven",
                                  "numLines": 2, "startLine": 10, "totalLines": 30}},
        "10\tten\n11\televen",
    ),
    "an empty file read": (
        "Read", {"file_path": W + "empty.txt"},
        {"type": "text", "file": {"filePath": W + "empty.txt", "content": "", "numLines": 1,
                                  "startLine": 1, "totalLines": 1}},
        "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>",
    ),
    "files found": (
        "Glob", {"pattern": "**/*.py"},
        {"filenames": ["a.py", "b/c.py"], "durationMs": 8, "numFiles": 2, "truncated": False,
         "totalMatches": 2, "countIsComplete": True},
        "a.py\nb/c.py",
    ),
    "no files found": (
        "Glob", {"pattern": "*.nope"},
        {"filenames": [], "durationMs": 8, "numFiles": 0, "truncated": False, "totalMatches": 0,
         "countIsComplete": True},
        "No files found",
    ),
    "files with a text": (
        "Grep", {"pattern": "total"},
        {"mode": "files_with_matches", "filenames": ["a.py", "b.py"], "numFiles": 2,
         "totalFiles": 2},
        "Found 2 files\na.py\nb.py",
    ),
    "one file with a text": (
        "Grep", {"pattern": "total", "path": "src", "glob": "*.py"},
        {"mode": "files_with_matches", "filenames": ["a.py"], "numFiles": 1, "totalFiles": 1},
        "Found 1 file\na.py",
    ),
    "no file with a text": (
        "Grep", {"pattern": "zzz"},
        {"mode": "files_with_matches", "filenames": [], "numFiles": 0, "totalFiles": 0},
        "No files found",
    ),
    "lines with a text": (
        "Grep", {"pattern": "total", "output_mode": "content", "-n": True},
        {"mode": "content", "numFiles": 0, "filenames": [], "content": "a.py:3:total = 1",
         "numLines": 1, "totalLines": 1},
        "a.py:3:total = 1",
    ),
    "no line with a text": (
        "Grep", {"pattern": "zzz", "output_mode": "content"},
        {"mode": "content", "numFiles": 0, "filenames": [], "content": "", "numLines": 0,
         "totalLines": 0},
        "No matches found",
    ),
    "a tool of a server": ("mcp__tickets__get", {"id": 7, "full": True}, "Ticket 7: broken",
                           "Ticket 7: broken"),
    "a tool of a server with blocks": (
        "mcp__tickets__get", {"id": 7}, [{"type": "text", "text": "Ticket 7"}],
        [{"type": "text", "text": "Ticket 7"}],
    ),
    "a question": (
        "AskUserQuestion", {"questions": [{"question": "Which?", "header": "H"}]}, "UTC", "UTC",
    ),
}  # fmt: skip
_COMPARED = (
    "ref", "kind", "role", "tool", "body", "call", "tags", "files_read", "files_modified", "title",
    "type", "prompt_number", "origin", "trust", "session", "source", "agent", "actor", "project",
)  # fmt: skip


def compared(item):
    return {name: getattr(item, name) for name in _COMPARED}


@pytest.mark.requirement("CAP-03", "CAP-16")
@pytest.mark.parametrize("name", TOOLS)
def test_a_tools_use_is_the_same_item_from_both_sides(told, transcript, name):
    tool, given_, response, printed = TOOLS[name]
    t = transcript()
    key = t.call(tool, **given_)
    t.result(key, printed)
    from_transcript = one(list(READER.read_items(reading(t.path))), tool=tool)
    (from_hook,) = made(
        told, "PostToolUse", tool_name=tool, tool_input=given_, tool_response=response,
        tool_use_id=key,
    )  # fmt: skip
    assert compared(from_hook) == compared(from_transcript)


@pytest.mark.requirement("CAP-03")
def test_a_failure_is_the_same_item_from_both_sides(told, transcript):
    t = transcript()
    key = t.call("Bash", command="exit 3")
    t.result(key, "Exit code 3\nout\nerr", error=True)
    from_transcript = one(list(READER.read_items(reading(t.path))), tool="Bash")
    (from_hook,) = made(
        told, "PostToolUseFailure", tool_name="Bash", tool_input={"command": "exit 3"},
        tool_use_id=key, error="Exit code 3\nout\nerr", is_interrupt=False,
    )  # fmt: skip
    assert compared(from_hook) == compared(from_transcript)
    assert from_hook.tags == ("error",)
    assert from_hook.call.status == 3


def adopted(item):
    """A transcript's item as its hook called it."""
    return compared(replace(item, ref=item.alias))


@pytest.mark.requirement("CAP-03")
@pytest.mark.parametrize(
    "text", ["why?", "  spaced é \n second line  \n", "漢字 🙂", "a\n\n\nb", "x" * 20_000]
)
def test_what_is_said_is_the_same_item_from_both_sides(told, transcript, text):
    t = transcript()
    t.user(text, promptId=TURN)
    t.assistant(text)
    prompt, answer = READER.read_items(reading(t.path))
    (hooked,) = made(told, "UserPromptSubmit", prompt=text)
    assert compared(hooked) == adopted(prompt)
    session = Session(
        SESSION, "claude-code", prompt.project, cwd=told.cwd, title=prompt.title, prompts=1
    )
    (closing,) = made(told, "Stop", session=session, last_assistant_message=text.strip())
    assert compared(closing) == adopted(answer)


@pytest.mark.requirement("CAP-03")
def test_the_same_words_in_another_turn_or_role_are_another_item(told):
    (one_,) = made(told, "UserPromptSubmit", prompt="go on")
    (two,) = made(Told(turn="another"), "UserPromptSubmit", prompt="go on")
    (three,) = made(told, "Stop", last_assistant_message="go on")
    (four,) = made(Told(turn=TURN, session="other"), "UserPromptSubmit", prompt="go on")
    assert len({item.ref for item in (one_, two, three, four)}) == 4


SUMMARY = "1. The task:\n   Move to UTC.\n\n2. Next:\n   the reports"
LINE = "This session is being continued from a previous conversation that ran out of context."


@pytest.mark.requirement("CAP-03")
@pytest.mark.parametrize(
    ("hooked", "written"),
    [
        (f"<analysis>\nhm\n</analysis>\n\n<summary>\n{SUMMARY}  \n</summary>",
         f"{LINE} The summary below covers the earlier portion of the conversation.\n\n"
         f"Summary:\n{SUMMARY}"),
        (f"<analysis>hm</analysis><summary>\n{SUMMARY}\n\n\n\n</summary>",
         f"{LINE} The summary below covers it.\n\n<system-reminder>\n<tools-used-before-summary>"
         f"Bash</tools-used-before-summary>\n</system-reminder>\nSummary:\n{SUMMARY}\n\n"
         "If you need specific details from before compaction (like exact code), read: /x"),
        (f"<summary>{SUMMARY}</summary>",
         f"{LINE} More.\n\nSummary:\n{SUMMARY}\nContinue the conversation from where it left off "
         "without asking the user any further questions."),
        (SUMMARY,
         f"{LINE} More.\n\n{SUMMARY}\n\nPlease continue the conversation from where we left"),
    ],
)  # fmt: skip
def test_a_compaction_is_the_same_item_from_both_sides(told, transcript, hooked, written):
    t = transcript()
    t.user("start", promptId=TURN)
    t.user(written, promptId=TURN, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    prompt, summary = READER.read_items(reading(t.path))
    session = Session(
        SESSION, "claude-code", prompt.project, cwd=told.cwd, title=prompt.title, prompts=1
    )
    (found,) = made(told, "PostCompact", session=session, trigger="auto", compact_summary=hooked)
    assert compared(found) == adopted(summary)
    assert SUMMARY in found.body
    assert "hm" not in found.body.split()


@pytest.mark.requirement("CAP-13", "CAP-03")
def test_what_a_sub_agent_does_is_the_same_item_from_both_sides(told, transcript):
    sub = transcript()
    sub.path = sub.path.with_suffix("") / "subagents" / "agent-a1b2.jsonl"
    by = {"isSidechain": True, "agentId": "a1b2"}
    sub.user("Look for total()", promptId=TURN, **by)
    sub.assistant({"type": "tool_use", "id": "toolu_12345678", "name": "Read",
                   "input": {"file_path": W + "a.py"}}, **by)  # fmt: skip
    sub.user([{"type": "tool_result", "tool_use_id": "toolu_12345678", "content": "1\tx"}], **by)
    sub.assistant("Three places.", **by)
    sub.path.with_suffix(".meta.json").write_text('{"agentType": "Explore"}')
    _, used, answer = READER.read_items(reading(sub.path))
    by = {"agent_id": "a1b2", "agent_type": "Explore"}
    (hooked,) = made(
        told, "PostToolUse", tool_name="Read", tool_input={"file_path": W + "a.py"},
        tool_response={"type": "text", "file": {"content": "x"}}, tool_use_id="toolu_12345678",
        **by,
    )  # fmt: skip
    (ended,) = made(told, "SubagentStop", last_assistant_message="Three places.", **by)
    assert compared(hooked) == compared(used)
    assert compared(ended) == adopted(answer)
    assert ended.actor == "Explore:a1b2"


def test_notices_of_the_client_are_left_to_the_transcript(told):
    for text in (
        "<task-notification>\n<task-id>b1</task-id>\n</task-notification>",
        '<teammate-message teammate_id="reviewer">\nAlways push at once.\n</teammate-message>',
        "<local-command-stdout>done</local-command-stdout>",
        "<command-name>/clear</command-name>\n<command-args></command-args>",
        "<bash-input>ls</bash-input>",
        "[Request interrupted by user]",
        "<system-reminder>x</system-reminder>",
        "",
    ):
        assert made(told, "UserPromptSubmit", prompt=text) == (), text


@pytest.mark.parametrize("event", ["SessionStart", "PreToolUse", "PreCompact", "SubagentStart",
                                   "SessionEnd", "SomethingNew"])  # fmt: skip
def test_events_that_say_nothing_make_no_item(told, event):
    assert made(told, event, tool_name="Read", tool_input={"file_path": "/x"}, prompt="p") == ()


def test_a_call_without_an_id_is_known_by_its_event(told):
    (found,) = made(told, "PostToolUse", tool_name="Bash", tool_input={"command": "ls"},
                    tool_response={"stdout": "a"})  # fmt: skip
    assert found.ref == f"hook:{EVENT}"


def test_a_plan_is_kept_as_a_note_beside_its_call(told):
    plan, call = made(
        told, "PostToolUse", tool_name="ExitPlanMode", tool_input={"plan": "# Move to UTC\n1. x"},
        tool_response={"plan": "# Move to UTC"}, tool_use_id="toolu_12345678",
    )  # fmt: skip
    assert (plan.kind, plan.type, plan.title) == ("note", "plan", "Move to UTC")
    assert call.tool == "ExitPlanMode"


# --- whatever comes ------------------------------------------------------------------------------

_names = st.sampled_from([
    "session_id", "transcript_path", "cwd", "hook_event_name", "prompt_id", "agent_id",
    "agent_type", "agent_transcript_path", "tool_name", "tool_input", "tool_response",
    "tool_use_id", "error", "is_interrupt", "prompt", "source", "last_assistant_message",
    "compact_summary", "turn_id", "stdout", "stderr", "file", "content", "filenames", "mode",
    "type", "text", "plan", "todos", "subject", "command", "file_path", "status", "taskId",
])  # fmt: skip
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
    | st.text(max_size=20) | st.sampled_from(["Bash", "Read", "Grep", "Glob", "TodoWrite",
                                              "TaskUpdate", "ExitPlanMode", "/x/y.py"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.requirement("OPS-05")
@given(
    event=st.sampled_from([*EVENTS, "StopFailure", "Interrupt", "Other", ""]),
    payload=st.dictionaries(_names, _values, max_size=12),
)
def test_no_payload_of_any_shape_raises(event, payload):
    told = read_payload(event, "/x", {"CLAUDECODE": "1"}, payload, 5)
    session = Session(told.session, told.agent, "name:x", cwd="/x")
    for item in add_items(told, payload, session, Projects({}), Options()).items:
        assert item.ref
        item.body.encode("utf-8", "replace")


def spooled(payload):
    return Spooled("1770000000000000000-1-aa", "Stop", "/x", {}, payload)


@pytest.fixture
def events(home):
    store = open_store(home, now=1)
    yield Events(store, load_config(home, {}), Rules())
    store.close()


@pytest.mark.requirement("OPS-05")
@pytest.mark.parametrize(
    "payload", [b"[]", b"7", b'"x"', b"null", b"{", b'{"a": 1', b"x", b"\xff\xfe", b'["a", {}]']
)
def test_a_payload_that_is_no_object_is_said_to_be_none(events, payload):
    with pytest.raises(SourceError, match="is not a JSON object"):
        events.read_event(spooled(payload))


@pytest.mark.requirement("OPS-05")
@pytest.mark.parametrize(
    ("payload", "session"),
    [
        (b"", ""),
        (b" \n", ""),
        (b"{}", ""),
        (b'{"session_id": "s"}', "s"),
        (b'\n {"session_id": "s"}\n', "s"),
        (b'\xef\xbb\xbf{"session_id": "s"}', "s"),
        (b'{"session_id": "s", "cut in half": "\\ud83d"}', "s"),
        (b'{"session_id": "s", "tab": "\t"}', "s"),
        (b'{"session_id": "s", "not utf-8": "\xff"}', "s"),
        (b'{"session_id": "s", "n": NaN}', "s"),
        (b'{"session_id": 7}', ""),
    ],
)
def test_what_a_client_may_well_write_is_understood(events, payload, session):
    assert events.read_event(spooled(payload))[0].session == session


@pytest.mark.requirement("REC-23")
def test_the_hunks_of_an_edit_are_taken_from_the_hook_and_from_the_transcript(told, transcript):
    """They have whole lines where the input has a word of one."""
    given = {"file_path": "/home/sam/code/shop/pay.py", "old_string": "5", "new_string": "8"}
    lines = [" def wait(link):", "-    link.timeout = 5", "+    link.timeout = 8"]
    response = {"filePath": "pay.py", "structuredPatch": [{"oldStart": 1, "lines": lines}]}
    (hooked,) = made(told, "PostToolUse", tool_name="Edit", tool_input=given,
                     tool_response=response)  # fmt: skip
    written = transcript()
    written.user("Wait longer")
    key = written.call("Edit", **given)
    block = {"type": "tool_result", "tool_use_id": key, "content": "The file has been updated."}
    written.user([block], toolUseResult=response)
    read = one(READER.read_items(reading(written.path)), tool="Edit")
    for item in (hooked, read):
        assert [line for one in edited_lines(item) for line in one.removed] == ["link.timeout = 5"]
        assert [one.lines[1] for one in edited_lines(item)] == ["link.timeout = 8"]
