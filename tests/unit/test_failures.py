"""What came of a run that showed an error: by the runs and changes behind it alone."""

from __future__ import annotations

import pytest

from tests.distilling import Story, distilled
from yester.cards.failures import find_failures
from yester.cards.turns import LOOK_BACK
from yester.model import Failure

pytestmark = pytest.mark.requirement("DEL-15")

BROKEN = "FAILED tests/test_cart.py::test_ten - assert 9 == 10\n1 failed, 4 passed in 0.10s"
FINE = "5 passed in 0.09s"


def failed(story: Story) -> Story:
    story.prompt("Fix the totals in the cart")
    story.fails("pytest -q", BROKEN)
    return story


def fixed(story):
    story.replaces("src/retry.py", "n = 1", "n = 2")
    story.fails("pytest -q", BROKEN)
    story.replaces("src/cart.py", "count", "int(count)")
    story.ran("pytest -q", FINE)


def ran_again(story):
    story.ran("pytest -q", FINE)


def ran_in_another_way(story):
    story.ran("PYTHONPATH=src pytest -q", FINE)


def installed(story):
    story.ran("pip install pytest-cart", "Successfully installed pytest-cart-1.0")
    story.ran("pytest -q", FINE)


def gave_up(story):
    story.replaces("src/cart.py", "count", "int(count)")
    story.says("I could not find out why.")


def ran_less(story):
    """A test of something else says nothing about it."""
    story.replaces("src/cart.py", "count", "int(count)")
    story.ran("pytest -q tests/test_shop.py", FINE)


@pytest.mark.parametrize(
    ("goes_on", "came", "changed"),
    [
        (fixed, "fixed", ["src/cart.py"]),
        (ran_again, "itself", []),
        (ran_in_another_way, "instead", []),
        (installed, "fixed", []),
        (gave_up, "left", []),
        (ran_less, "left", []),
    ],
)
def test_an_error_ends_by_what_lies_before_the_run_that_passes(goes_on, came, changed):
    story = failed(Story())
    goes_on(story)
    one = find_failures(story.turns(), LOOK_BACK)[0]
    items = {item.id: item for item in story.items}
    files = [name for id_ in one.changes for name in items[id_].files_modified]
    assert (one.came, files) == (came, changed)
    assert bool(one.changes) is (came == "fixed")
    assert [items[id_].files_modified for id_ in one.tried] == [("src/retry.py",)] * (
        goes_on is fixed
    )


COMMIT = "git commit -m \"$(cat <<'EOF'\nTotals\nEOF\n)\""


@pytest.mark.parametrize(
    ("fails", "error", "passes", "came"),
    [
        ("go test ./a/ -run TestTen", "--- FAIL: TestTen (0.03s)", "go test -v ./a/", "itself"),
        (f"git add cart.py && {COMMIT}", BROKEN, f"{COMMIT} --no-verify", "left"),
    ],
)
def test_other_tests_and_a_check_left_out_are_no_way_to_run_it(fails, error, passes, came):
    story = Story()
    story.prompt("Fix the totals in the cart")
    story.fails(fails, error)
    story.ran(passes, "ok  \tcart\t0.030s")
    (one,) = find_failures(story.turns(), LOOK_BACK)[:1]
    assert one.came == came


def test_a_test_that_was_written_to_fail_and_what_a_passing_run_prints_teach_nothing():
    story = Story()
    story.prompt("Ten items must add up")
    story.ran("pytest -q", FINE)
    story.replaces("tests/test_cart.py", "", "def test_ten():\n    assert total(10) == 10")
    story.fails("pytest -q", BROKEN)
    story.replaces("src/cart.py", "count", "int(count)")
    story.ran("pytest -q", f"Error: no till is connected, as the test wants it\n{FINE}")
    assert [one.came for one in find_failures(story.turns(), LOOK_BACK)] == ["meant", "printed"]


def test_another_check_in_the_same_command_does_not_end_it():
    story = Story()
    story.prompt("Fix the totals")
    story.fails("ruff check . && pytest -q", "src/cart.py:3:1: F401 `os` imported but unused")
    story.ran("pytest -q", FINE)
    assert [one.came for one in find_failures(story.turns(), LOOK_BACK)] == ["left"]


def test_a_search_without_a_hit_is_no_failure():
    story = Story()
    story.prompt("Where is it?")
    story.fails("grep -rn total src", "grep: src: No such file or directory")
    assert find_failures(story.turns(), LOOK_BACK) == []


def test_turn_by_turn_and_all_at_once_give_the_same_and_what_goes_takes_its_failures_along(memory):
    store, story = memory.store, failed(Story())
    story.store(store)
    distilled(store)
    assert [one.came for one in store.entries(Failure)] == ["left"]
    before = len(story.items)
    story.prompt("Go on")
    fixed(story)
    story.store(store, before)
    distilled(store)
    rows = store.entries(Failure)
    assert [one.came for one in rows] == ["fixed", "fixed"]
    with store.transaction("work"):
        store.retract(Failure, {"item": [one.item for one in rows]})
        store.queue_sessions()
    distilled(store)
    assert store.entries(Failure) == rows
    with store.transaction("items"):
        store.remove([rows[0].item])
    assert store.entries(Failure) == rows[1:]


def test_a_secret_in_an_error_is_not_in_what_is_kept_of_it(memory):
    story = Story()
    story.prompt("Upload it")
    token = "ghp_" + "a1B2" * 9
    story.fails("npm run build", f"Error: the token {token} was refused by the till")
    story.store(memory.store)
    distilled(memory.store)
    kept = [one.text for one in memory.store.entries(Failure)]
    assert len(kept) == 1
    assert token not in kept[0]
