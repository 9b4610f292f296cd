"""A use of a tool as structure: its places stay right whatever is taken out of the text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.readings import reading
from tests.table import each
from yester.agents.base import Result
from yester.agents.claude_code import ClaudeCode
from yester.cards.tools import call_title, replaced_texts, split_call
from yester.fence import fence_text
from yester.ingest.prepare import HEAD_CHARS, TAIL_CHARS, prepare_item
from yester.model import Item, ToolCall
from yester.redact import redact
from yester.spans import apply_edits

pytestmark = pytest.mark.requirement("CAP-16")

KEY = "ghp_" + "a1B2c3D4e5" * 4
MEMORY = fence_text("memory", "an older line")
# Nothing of these is a secret only because of what stands beside it.
PIECES = (
    "plain words", "zwei Wörter 🎈", "\n", "\n\n", f"use {KEY} here", KEY, MEMORY, "x" * 90,
    "tail  ", "<private>mine</private>", "DB_PASSWORD=hunter2xyz9\n",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map(" ".join)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """A call as a reader makes it."""
    path = tmp_path_factory.mktemp("calls") / "a.jsonl"
    path.write_text("")

    def make(tool, fields, output=None, failed=False, status=None):
        item = ClaudeCode(reading(path)).make_call("toolu_0123456789", tool, fields)
        return item if output is None else Result(output, failed, status).complete_call(item)

    return make


def stripped(text: str) -> str:
    return redact(text.replace(MEMORY, "")).strip()


@given(st.dictionaries(st.sampled_from(["one", "two", "three"]), TEXTS, min_size=1), TEXTS)
def test_the_places_give_back_exactly_the_redacted_fields(make, fields, output):
    item = prepare_item(make("mcp__some__tool", fields, output)).item
    assert KEY not in item.body
    assert "yester-memory" not in item.body
    for name, text in fields.items():
        assert item.call_field(name).strip() == stripped(text)
    assert item.call_result.strip() == stripped(output)
    assert not item.call.cut


@given(st.integers(0, 12_000), st.integers(0, 12_000), st.integers(0, 12_000))
def test_of_long_texts_the_places_show_what_was_left_of_them(make, old, new, output):
    fields = {"file_path": "a.py", "old_string": "o" * old, "new_string": "n" * new}
    item = prepare_item(make("Edit", fields, "r" * output)).item
    marks = {"old_string": "o", "new_string": "n"}
    for name, start, end in item.call.fields[1:]:
        shown = re.sub(
            r"\n\[… .* characters left out, see the transcript …\]\n", "", item.body[start:end]
        )
        assert set(shown) <= {marks[name]}
        assert len(shown) <= len(fields[name])
    assert set(re.sub(r"\n\[… .*…\]\n", "", item.call_result)) <= {"r"}
    assert item.call.cut == (len(make("Edit", fields, "r" * output).body) > HEAD_CHARS + TAIL_CHARS)


def test_a_secret_is_known_by_the_name_of_its_field_and_goes_from_everywhere(make):
    given = {"password": "hunter2xyz9", KEY: "x", "query": "all"}
    item = prepare_item(make("mcp__db__login", given, "ok")).item
    assert item.call_field("password") == "[redacted:password]"
    assert item.call_field("query") == "all"
    flags = {"command": "ls", "password": "hunter2xyz9", "timeout": 9, "env": "e" * 300}
    shell = prepare_item(make("Bash", flags, "")).item
    assert shell.call.options == {"password": "[redacted:password]", "timeout": "9"}
    assert shell.call.cut  # one was too long to be kept
    assert KEY not in repr(item)
    assert "hunter2" not in repr((item, shell))


def test_what_reaches_over_a_border_shows_nothing_of_itself(make):
    item = prepare_item(make("Bash", {"command": "cat <private>a"}, "b</private> rest")).item
    assert item.body == "cat [private] rest"
    assert (item.call_field("command"), item.call_result) == ("cat [private]", " rest")


def test_places_are_moved_with_the_text():
    spans = [(0, 2), (2, 6), (3, 8), (8, 9)]
    assert apply_edits("abcdefghi", [(1, 3, "XYZ"), (5, 6, "")], spans) == "aXYZdeghi"
    assert spans == [(0, 4), (4, 6), (4, 8), (8, 9)]


@each(
    ("tool", "fields", "output", "status", "title"),
    [
        ("Edit", {"file_path": "/w/git_test.go", "old_string": "a\nb", "new_string": "a\nc\nd\ne"},
         "", None, "Edit git_test.go +3 −1"),
        ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "a", "new_string": "b\nc"}]},
         "", None, "MultiEdit a.py +2 −1"),
        ("apply_patch", {"input": "*** Update File: a.py\n--- a\n+++ b\n+x\n-y\n+z"}, "", None,
         "apply_patch a.py +2 −1"),
        ("Write", {"file_path": "a.py", "content": "x"}, "", None, "Write a.py"),
        ("Read", {"file_path": "/w/a.py", "offset": 3}, "x", None, "Read a.py"),
        ("Bash", {"command": "cd w && pytest -q 2>&1 | tail"}, "2 failed, 3 passed in 0.12s", 1,
         "pytest: 2 failed"),
        ("Bash", {"command": "pytest -q"}, "3 passed in 0.12s", None, "pytest: 3 passed"),
        ("Bash", {"command": "git push"}, "", None, "Bash: git push"),
        ("Bash", {"command": "make all"}, "no rule", 2, "Bash: make all (exit 2)"),
        ("Grep", {"pattern": "charge", "path": "src"}, "", None, "Grep: charge"),
        ("mcp__db__query", {"sql": "select 1\nfrom x"}, "", None, "mcp__db__query: select 1"),
        ("Bash", {}, "", None, ""),
    ],
)  # fmt: skip
def test_a_call_says_in_its_title_what_it_did(make, tool, fields, output, status, title):
    assert call_title(make(tool, fields, output, bool(status), status)) == title


def test_an_edit_that_failed_has_changed_nothing(make):
    fields = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
    assert call_title(make("Edit", fields, "no match", failed=True)) == "Edit a.py (failed)"
    assert replaced_texts(make("Edit", fields)) == [("a", "b")]


def test_without_a_result_or_structure_nothing_is_said_to_be_output(make):
    assert split_call(make("Bash", {"command": "ls\n\npwd"})) == ("ls\n\npwd", None)
    assert split_call(Item("a", "message", role="tool", tool="Edit", body="a\n\nb")) == (
        "a\n\nb",
        None,
    )
    assert call_title(Item("a", "message", role="tool", tool="Edit", body="a")) == ""
    assert Item("a", "message").call_field("command") is None
    assert Item("a", "message", call=ToolCall()).call_result is None
