"""How things came out: failing to passing, errors and what ended them, what did not help."""

from __future__ import annotations

import pytest

from tests.distilling import Story
from tests.table import each
from yester.cards.outcomes import edited_files, find_outcomes
from yester.cards.tools import RunCounts, count_tests
from yester.tables import load_rows

pytestmark = pytest.mark.requirement("DIS-09")

BROKEN = "E       KeyError: 'total'\n1 failed in 0.10s"
FINE = "1 passed in 0.10s"


def of(story):
    return find_outcomes(story.turns(), 5)


def test_every_runner_is_read_by_its_example():
    for row in load_rows("tools", "runners"):
        told = RunCounts(row.values["passed"], row.values["failed"])
        assert [count_tests(f"noise\n{example}\n") for example in row.examples] == [told]


def test_go_counts_packages_and_cases():
    output = "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx/y\t0.1s\nok  \tx/z\t0.2s\n"
    assert count_tests(output) == RunCounts(1, 1)
    assert not count_tests("nothing was run")


def test_an_error_ends_with_the_edits_after_which_the_same_check_is_clean():
    story = Story()
    story.prompt("fix it")
    story.fails("pytest -q", BROKEN)
    story.edits("cart.py")
    story.ran("pytest -q 2>&1 | tail -3", FINE)
    ((ended,), passed) = of(story)[0].ended, of(story)[0].passed
    assert ended.error.text == "KeyError: 'total'"
    assert edited_files(ended.edits) == ("cart.py",)
    assert ended.attempts == 1
    assert [run.counted for run in passed[0]] == [RunCounts(0, 1), RunCounts(1, 0)]


def test_a_pipe_hides_the_status_and_the_counts_tell():
    story = Story()
    story.prompt("fix it")
    story.ran("pytest -q 2>&1 | tail -3", BROKEN)
    story.edits("cart.py")
    story.ran("pytest -q 2>&1 | tail -3", FINE)
    assert len(of(story)[0].ended) == 1


def test_what_did_not_help_is_remembered_with_what_did():
    story = Story()
    story.prompt("fix it")
    story.fails("pytest -q", BROKEN)
    story.edits("cart.py")
    story.fails("pytest -q", BROKEN)
    story.edits("shop.py")
    story.ran("pytest -q", FINE)
    (ended,) = of(story)[0].ended
    assert ended.attempts == 2
    assert edited_files(ended.tries) == ("cart.py",)
    assert edited_files(ended.edits) == ("shop.py",)


def test_an_error_that_no_change_ended_is_stuck():
    story = Story()
    story.prompt("fix it")
    story.fails("pytest -q", BROKEN)
    story.edits("cart.py")
    story.fails("pytest -q", BROKEN)
    (came_out,) = of(story)
    assert not came_out.ended
    assert came_out.stuck[0].error.text == "KeyError: 'total'"


@each(
    ("first", "second", "ends"),
    [
        ("pytest tests/a.py", "pytest tests/a.py", True),
        ("pytest tests/a.py", "pytest", True),
        ("pytest tests/a.py", "pytest tests/b.py", False),
        ("pytest tests/a.py", "ruff check .", False),
        ("go test ./a -run TestX", "go test ./a -run TestX -v", True),
    ],
)
def test_only_a_run_that_could_have_shown_it_ends_an_error(first, second, ends):
    story = Story()
    story.prompt("fix it")
    story.fails(first, BROKEN)
    story.edits("cart.py")
    story.ran(second, FINE)
    assert bool(of(story)[0].ended) is ends


def test_a_second_run_without_a_change_tells_nothing():
    story = Story()
    story.prompt("is it flaky?")
    story.fails("pytest -q", BROKEN)
    story.ran("pytest -q", FINE)
    assert not of(story)[0].ended


def test_an_error_counts_in_the_turn_it_ended_in():
    story = Story()
    story.prompt("look")
    story.fails("pytest -q", BROKEN)
    story.prompt("fix it")
    story.edits("cart.py")
    story.ran("pytest -q", FINE)
    first, second = of(story)
    assert not first.ended
    assert len(second.ended) == 1


def test_what_lies_many_turns_back_does_not_count():
    story = Story()
    story.prompt("look")
    story.fails("pytest -q", BROKEN)
    for _ in range(6):
        story.prompt("something else")
    story.edits("cart.py")
    story.ran("pytest -q", FINE)
    assert not any(one.ended or one.passed for one in of(story))


def tried_in_vain(story):
    story.prompt("look at it")
    story.fails("pytest -q", BROKEN)
    story.edits("cart.py")
    story.fails("pytest -q", BROKEN)


def test_an_error_that_is_met_again_much_later_was_stuck_before():
    story = Story()
    tried_in_vain(story)
    for _ in range(5):
        story.prompt("something else")
    tried_in_vain(story)
    assert [len(one.stuck) for one in of(story)] == [1, 0, 0, 0, 0, 0, 1]
    story.items = []
    tried_in_vain(story)
    story.prompt("something else")
    tried_in_vain(story)
    assert [len(one.stuck) for one in of(story)] == [0, 0, 1]


def test_of_many_errors_those_that_were_seen_last_are_waited_for():
    story = Story()
    story.prompt("look at it")
    story.fails("pytest -q tests/first.py", BROKEN)
    for number in range(14):
        story.fails(f"pytest -q tests/{number}.py", f"E       KeyError: 'key{'x' * number}'")
        if number == 7:
            story.fails("pytest -q tests/first.py", BROKEN)
    story.edits("cart.py")
    story.ran("pytest -q", FINE)
    ended = {one.error.text for one in of(story)[0].ended}
    assert len(ended) == 12
    assert "KeyError: 'total'" in ended
    assert "KeyError: 'key'" not in ended


def test_a_command_that_is_wrong_over_and_over_is_told_once_until_long_after():
    story = Story()
    for turns in (1, 1, 6):
        story.prompt("run the tests")
        story.fails("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
        story.ran("bun run test", "5 pass\n0 fail")
        for _ in range(turns - 1):
            story.prompt("something else")
    story.prompt("run the tests")
    story.fails("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
    story.ran("bun run test", "5 pass\n0 fail")
    assert [len(one.instead) for one in of(story)] == [1, 0, 0, 0, 0, 0, 0, 0, 1]


def test_a_command_that_cannot_be_run_here_and_the_one_that_can():
    story = Story()
    story.prompt("run the tests")
    story.fails("rtk bun run test", "error: unrecognized subcommand 'bun'", 2)
    story.ran("ls", "a\nb")
    story.ran("bun run lint", "ok")
    story.ran("bun run test", "5 pass\n0 fail")
    (one,) = of(story)[0].instead
    assert one.last.ran.command == "bun run test"


@each(
    ("command", "output"),
    [
        ("cat nope", "cat: nope: No such file or directory"),  # looking
        ("ruff check .", "a.py:1:1: F401 unused import of the thing"),  # a check that worked
        ("git pull", "fatal: Not possible to fast-forward, your branches diverged"),  # for once
        ('git commit -m "x y z"', "error: pre-commit said no to it"),
    ],
)
def test_a_failure_that_says_nothing_about_how_things_are_done_here(command, output):
    story = Story()
    story.prompt("do it")
    story.fails(command, output)
    story.ran(f"{command} --more", "fine")
    assert not of(story)[0].instead


def test_what_the_user_refused_is_no_failure():
    story = Story()
    story.prompt("do it")
    story.ran("pytest", "The user doesn't want to proceed with this tool use.", failed=True)
    story.edits("a.py")
    story.ran("pytest", FINE)
    assert not of(story)[0].ended
