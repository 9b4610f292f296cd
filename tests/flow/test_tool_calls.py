"""What a tool was given and what it gave back are told apart only where that is certain."""

from __future__ import annotations

import pytest

from tests.serving import serving
from tests.tool_calls import NEW_TEXT, SCRIPT, make_calls
from yester.agents.base import TOOLS
from yester.agents.values import input_text, join_output
from yester.operations.rows import split_call

pytestmark = pytest.mark.requirement("DEL-10")


def test_the_api_tells_output_from_input_and_never_calls_an_edit_output(home, run, transcript):
    make_calls(transcript())
    assert run("index").code == 0
    with serving(home) as api:
        (session,) = api.get("/api/sessions")["sessions"]
        path = f"/api/sessions/S{session['db_id']}/transcript"
        rows = [row for row in api.get(path)["results"] if row["role"] == "tool"]
    parts = [(row["tool"], row["input"], row.get("output")) for row in rows]
    for row, (_, given, output) in zip(rows, parts, strict=True):
        assert row["narrative"] == (f"{given}\n\n{output}" if output else given)
    told = {tool: output for tool, _, output in parts if output is not None}
    assert told == {"Bash": "", "Read": "def charge(order):\n\n    pass"}
    assert ("Bash", SCRIPT, "1 passed\n\nall well") in parts
    edits = {tool: given for tool, given, output in parts if output is None}
    assert edits.keys() == {"Edit", "Write", "MultiEdit", "mcp__editor__insert"}
    assert NEW_TEXT in edits["Edit"]
    assert edits["Write"].endswith(f"{NEW_TEXT}\n\nError: EACCES: permission denied")


def test_no_tool_of_any_agent_that_changes_files_is_ever_taken_apart():
    edits = {t: row for t, row in TOOLS.items() if row.file == "changed" or "patch" in t}
    assert len(edits) > 15
    for tool, row in edits.items():
        given = dict.fromkeys(row.input, NEW_TEXT)
        body = join_output(input_text(given, row.input), "done")
        for name in (tool, tool.upper(), tool.title()):
            assert split_call(name, body) == (body, None), name


def test_a_command_that_was_cut_before_its_end_is_not_said_to_have_no_output():
    body = (
        "cat <<'EOF'\none\n\n[… 9,000 characters left out, see the transcript …]\nEnd\n\n3 passed"
    )
    assert split_call("Bash", body) == (body, None)
