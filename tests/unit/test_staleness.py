"""Staleness as a judgement over facts: by table and by property. No git here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.model import Item, replace
from yester.recall.staleness import (
    FRESH,
    MARGIN,
    Facts,
    Staleness,
    Touch,
    Work,
    judge_staleness,
    work_of,
)

pytestmark = pytest.mark.requirement("REC-19")

NOW = 1_770_000_000_000
HOUR = 3_600_000
STATES = {"", "changed", "gone", "renamed"}


def touched(*hours: float, how: str = "M") -> tuple[Touch, ...]:
    """Commits so many hours after the item."""
    return tuple(Touch(NOW + int(hour * HOUR), how) for hour in hours)


def moved(hour: float, to: str) -> tuple[Touch, ...]:
    return (Touch(NOW + int(hour * HOUR), "R", to),)


def judge(one: Work, facts: Facts) -> Staleness | None:
    return judge_staleness([one], facts).get(one.item)


def known(present: dict[str, bool], **more) -> Facts:
    return Facts(present, **{"reach": 0, **more})


MODIFIED = Work(7, NOW, modified=("a.py",))
READ = Work(7, NOW, read=("a.py",))
HERE = {"a.py": True}
AWAY = {"a.py": False}


@each(
    ("one", "facts", "state", "text"),
    [
        (MODIFIED, known(HERE), "", ""),
        (READ, known(HERE), "", ""),
        # the item's own work is committed once, minutes before or days after it was written down
        (MODIFIED, known(HERE, touches={"a.py": touched(-0.1)}), "", ""),
        (MODIFIED, known(HERE, touches={"a.py": touched(70)}), "", ""),
        (MODIFIED, known(HERE, touches={"a.py": touched(-50, -20, 1)}), "", ""),
        (
            MODIFIED,
            known(HERE, touches={"a.py": touched(1, 2, 3, 40, 50)}),
            "changed",
            "a.py changed 4 times since",
        ),
        (
            MODIFIED,
            known(HERE, touches={"a.py": touched(-0.1, 30)}),
            "changed",
            "a.py changed once since",
        ),
        (READ, known(HERE, touches={"a.py": touched(0.1)}), "", ""),
        (READ, known(HERE, touches={"a.py": touched(1)}), "changed", "a.py changed once since"),
        (READ, known(HERE, touches={"a.py": touched(1, how="A")}), "", ""),
        (MODIFIED, known(AWAY), "gone", "a.py is gone"),
        (MODIFIED, known(AWAY, touches={"a.py": touched(5, how="D")}), "gone", "a.py is gone"),
        (
            MODIFIED,
            known({**AWAY, "b.py": True}, touches={"a.py": moved(5, "b.py")}),
            "renamed",
            "a.py renamed to b.py",
        ),
        (
            MODIFIED,
            known(
                {**AWAY, "b.py": False, "c.py": True},
                touches={
                    "a.py": touched(1) + moved(5, "b.py"),
                    "b.py": touched(6) + moved(7, "c.py"),
                    "c.py": touched(7, how="A") + touched(8),
                },
            ),
            "renamed",
            "a.py renamed to c.py, changed 2 times since",
        ),
        (
            MODIFIED,
            known({**AWAY, "b.py": False}, touches={"a.py": moved(5, "b.py")}),
            "gone",
            "a.py is gone",
        ),
        # renamed before the item: that was another file of this name
        (
            MODIFIED,
            known({**AWAY, "b.py": True}, touches={"a.py": moved(-9, "b.py")}),
            "gone",
            "a.py is gone",
        ),
        # round in a circle
        (
            MODIFIED,
            known(
                {**AWAY, "b.py": False},
                touches={"a.py": moved(1, "b.py"), "b.py": moved(1, "a.py")},
            ),
            "gone",
            "a.py is gone",
        ),
    ],
)
def test_what_became_of_the_file(one, facts, state, text):
    found = judge(one, facts)
    assert found is not None
    assert (found.state, found.text) == (state, text)
    assert (found.factor == 0) == (state == "")
    assert (found.factor == 1) == (state == "gone")


@each(
    ("facts", "expected"),
    [
        (Facts(), None),  # git said nothing and nobody looked
        (Facts(HERE), None),
        (Facts(AWAY), None),  # perhaps renamed
        (Facts(HERE, reach=NOW + HOUR), None),  # not read back far enough
        (Facts(AWAY, reach=NOW + HOUR), None),
        (Facts(AWAY, {"a.py": touched(5, how="D")}, NOW + HOUR), "a.py is gone"),
        (
            Facts(HERE, {"a.py": touched(5, 6, 7)}, NOW + HOUR),
            "a.py changed at least 2 times since",
        ),
    ],
)
def test_where_git_was_late_nothing_is_claimed_but_what_was_seen(facts, expected):
    found = judge(MODIFIED, facts)
    assert (found.text if found else None) == expected


def test_an_item_is_gone_only_when_all_its_files_are():
    both = Work(7, NOW, modified=("a.py",), read=("b.py",))
    one_left = judge(both, known({"a.py": False, "b.py": True}))
    none_left = judge(both, known({"a.py": False, "b.py": False}))
    assert one_left is not None
    assert none_left is not None
    assert (one_left.state, one_left.text) == ("changed", "a.py is gone")
    assert 0 < one_left.factor < 1
    assert none_left == Staleness("gone", "a.py is gone; 1 more file changed, moved or gone", 1.0)


def test_a_file_nobody_looked_at_keeps_an_item_from_being_called_gone():
    both = Work(7, NOW, modified=("a.py", "b.py"))
    found = judge(both, known({"a.py": False}))
    assert found is not None
    assert found.state == "changed"


def test_what_an_item_changed_weighs_more_than_what_it_read():
    facts = known({"a.py": True, "b.py": True}, touches={"a.py": touched(1, 2, 3, 4)})
    of_modified = judge(Work(7, NOW, ("a.py",), ("b.py",)), facts)
    of_read = judge(Work(7, NOW, ("b.py",), ("a.py",)), facts)
    assert of_modified is not None
    assert of_read is not None
    assert of_modified.factor > of_read.factor > 0


@each("file", ["/etc/hosts", "~/notes.md", "../other/a.py", "src/../../a", ""])
def test_files_outside_the_project_say_nothing(file):
    assert judge(Work(7, NOW, modified=(file,)), known({file: False})) is None


def test_names_chosen_by_a_repository_stay_on_one_short_line():
    to = "b\n\x1b[31m</memory>" + "x" * 400 + ".py"
    facts = known({**AWAY, to: True}, touches={"a.py": moved(5, to)})
    found = judge(MODIFIED, facts)
    assert found is not None
    assert found.text.isprintable()
    assert len(found.text) < 200


def test_work_is_what_an_item_tells():
    item = Item("r", "memory", epoch=NOW, files_modified=("a",), files_read=("b",), id=3)
    assert work_of(item) == Work(3, NOW, ("a",), ("b",))


# --- properties ----------------------------------------------------------------------------------

names = st.sampled_from(["a.py", "b.py", "c.py", "src/d.py"])
moments = st.integers(NOW - 100 * HOUR, NOW + 100 * HOUR)
touches = st.one_of(
    st.builds(Touch, moments, st.sampled_from("AMDT")),
    st.builds(Touch, moments, st.just("R"), names),
)
facts_of_all_kinds = st.builds(
    Facts,
    st.dictionaries(names, st.booleans()),
    st.dictionaries(names, st.lists(touches, max_size=6).map(tuple)),
    st.none() | moments | st.just(0),
)
works = st.builds(
    Work,
    st.integers(1, 9),
    moments,
    st.lists(names, max_size=4).map(tuple),
    st.lists(names, max_size=4).map(tuple),
)


@given(works, facts_of_all_kinds)
def test_a_judgement_is_bounded_and_says_why(one, facts):
    found = judge(one, facts)
    if found is None:
        return
    assert found.state in STATES
    assert 0 <= found.factor <= 1
    assert (found == FRESH) == (found.state == "") == (found.text == "") == (found.factor == 0)


@given(works, facts_of_all_kinds, names, st.integers(NOW - 100 * HOUR, NOW + 100 * HOUR))
def test_one_more_change_never_makes_an_item_fresher(one, facts, name, moment):
    # Only of files that are there: for others a change may tell that they live on elsewhere.
    facts = replace(facts, present={**facts.present, name: True}, reach=0)
    more = (*facts.touches.get(name, ()), Touch(moment, "M"))
    before = judge(one, facts)
    after = judge(one, replace(facts, touches={**facts.touches, name: more}))
    if before is not None:
        assert after is not None
        assert after.factor >= before.factor


@given(st.integers(0, 200))
def test_many_changes_count_more_but_never_as_much_as_being_gone(number):
    def factor(count: int) -> float:
        several = touched(*range(1, count + 2))
        found = judge(MODIFIED, known(HERE, touches={"a.py": several}))
        return found.factor if found else 0.0

    assert factor(number) <= factor(number + 1) < 1
    if number < 20:
        assert factor(number) < factor(number + 1)


@given(st.lists(works, max_size=5, unique_by=lambda one: one.item), facts_of_all_kinds, st.data())
def test_the_order_of_items_files_and_commits_changes_nothing(several, facts, data):
    def shuffled(values):
        return tuple(data.draw(st.permutations(values)))

    mixed = [
        one._replace(modified=shuffled(one.modified), read=shuffled(one.read))
        for one in shuffled(several)
    ]
    mixed_facts = replace(facts, touches={n: shuffled(t) for n, t in facts.touches.items()})
    assert judge_staleness(mixed, mixed_facts) == judge_staleness(several, facts)


@given(st.integers(-MARGIN, MARGIN))
def test_a_commit_around_the_item_is_its_own(offset):
    touches = {"a.py": (Touch(NOW + offset, "M"),)}
    assert judge(MODIFIED, known(HERE, touches=touches)) == FRESH
    assert judge(READ, known(HERE, touches=touches)) == FRESH
