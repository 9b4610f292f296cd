"""Commands as agents write them: taken apart, what they are for, what they commit."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.cards.tools import (
    Ran,
    command_kind,
    find_commits,
    main_part,
    program_name,
    read_run,
    split_call,
    split_command,
)
from yester.model import Item
from yester.tables import load_rows

pytestmark = pytest.mark.requirement("DIS-09")


def ran_without_structure(text):
    return Item("a", "message", role="tool", tool="Bash", body=text)


def test_every_row_of_the_table_knows_its_example():
    for row in load_rows("tools", "commands"):
        assert [command_kind(example) for example in row.examples] == [row.name]


@each(
    ("command", "parts"),
    [
        ("cd src && go test ./... 2>&1 | tail -5", ["go test ./..."]),
        ("FOO=1 timeout 60 npm test; echo done", ["npm test", "echo done"]),
        ("export X=1\npytest -q", ["pytest -q"]),
        ("git add a.py && git commit -m \"$(cat <<'EOF'\nfix && more\nEOF\n)\"",
         ["git add a.py", 'git commit -m "$(cat']),
        ("", []),
    ],
)  # fmt: skip
def test_what_only_shapes_the_output_is_not_the_command(command, parts):
    assert split_command(command) == parts


def test_the_check_of_a_line_is_what_matters():
    assert main_part("cd app && npm install && npm test 2>&1 | tail") == "npm test"
    assert program_name("mise run lint 2>&1") == "mise run lint"
    assert program_name("pytest -q tests/a.py") == "pytest"
    assert program_name("go test ./... -run TestX") == "go test"
    assert command_kind("ls && pytest -q") == "test"
    assert command_kind("git status && ls") == "look"
    assert command_kind("./deploy.sh") == ""


@each(
    ("body", "command", "output", "status"),
    [
        ("make\nBuild it\n\nok", "make\nBuild it", "ok", 0),
        ("make\n\nExit code 2\nmake: *** no rule", "make", "make: *** no rule", 2),
        ("make", "make", "", 0),
        ("cat > a <<'EOF'\none\n\ntwo\nEOF\n\nwritten", "cat > a <<'EOF'\none\n\ntwo\nEOF",
         "written", 0),
        ('git commit -m "one\n\ntwo"\n\n[main abc1234] one', 'git commit -m "one\n\ntwo"',
         "[main abc1234] one", 0),
    ],
)  # fmt: skip
def test_input_and_output_of_an_older_store_are_told_apart(body, command, output, status):
    found = read_run(*split_call(ran_without_structure(body)), failed=status > 0)
    assert (found.command, found.output, found.status) == (command, output, status)


def test_a_failure_without_a_number_has_status_one():
    assert read_run("gh pr view", "no pull requests found", failed=True).status == 1


def test_the_status_that_the_client_told_counts_before_what_the_output_says():
    assert read_run("make; echo", "Exit code: 3", failed=False, status=0).status == 0
    assert read_run("make; echo", "Exit code: 3", failed=False).status == 3


def test_what_the_user_refused_has_not_failed():
    text = "The user doesn't want to proceed with this tool use. STOP"
    found = read_run("rm -rf x", text, failed=True)
    assert (found.refused, found.failed, found.status) == (True, False, None)


@each(
    ("command", "expected"),
    [
        ('git commit -m "Add a flag"', [("Add a flag", "")]),
        ("git add . && git commit -am 'fix: x' && git push", [("fix: x", "")]),
        ('git commit -m "Title" -m "Body"', [("Title", "Body")]),
        ("git commit -m \"$(cat <<'EOF'\nTitle\n\nWhy \"so\".\n\n"
         "Co-Authored-By: Agent <a@b.test>\nEOF\n)\"", [("Title", 'Why "so".')]),
        ("git commit -F - <<'EOF'\nTitle\n\nBody\nEOF", [("Title", "Body")]),
        ("git commit --no-edit", [("x", "")]),
        ("git commit --amend --no-edit", []),
        ("git commit --dry-run -m x", []),
        ("cd /tmp && git init t && cd t && git commit -m init", []),
        ("git log --grep commit", []),
    ],
)  # fmt: skip
def test_what_was_committed_is_told_by_its_message(command, expected):
    found = list(find_commits(Ran(command, "[main 1a2b3c4] x", 0)))
    assert [(one.subject, one.body) for one in found] == expected
    assert all(one.hash == "1a2b3c4" for one in found)


def test_a_commit_that_failed_is_none():
    assert list(find_commits(Ran('git commit -m "Add a flag"', "hook failed", 1))) == []


@given(st.text(alphabet="ab \n\"'<EOF&|;`$(){}-", max_size=60))
def test_any_text_is_a_command(text):
    head, tail = split_call(ran_without_structure(text))
    assert head in text
    assert (tail or "") in text
    assert isinstance(command_kind(text), str)
    assert isinstance(main_part(text), str)
    assert list(find_commits(read_run(head, tail or "", failed=False))) is not None


@each(
    "unit", ["git commit -F - <<EOF\n", 'git commit -m "$(cat <<EOF\n', "-F - <<EOF\n", "git init;"]
)
def test_a_command_of_beginnings_takes_no_longer_for_each_letter_of_a_longer_one(unit):
    """In processor time: for four times the text sixteen times the time would be squared."""

    def measure(size):
        command = ("git commit " + unit * (size // len(unit)))[:size]
        began = time.process_time()
        assert list(find_commits(Ran(command, "", 0))) == []
        return max(time.process_time() - began, 0.002)

    assert min(measure(100_000) / measure(25_000) for _ in range(3)) < 9
