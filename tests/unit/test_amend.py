"""Amendment chains: a decision is linked to what it reverses, and to nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.memories.amend import amends, find_amended
from yester.memories.subject import CHOICES, named_thing, shared_choice
from yester.model import Item
from yester.tables import load_rows

pytestmark = pytest.mark.requirement("DIS-08")

EVERY_TURN = pytest.mark.parametrize(
    "turn", load_rows("decisions", "turns"), ids=lambda turn: turn.name
)


def decision(title: str, body: str = "", epoch: int = 1) -> Item:
    ref = f"{epoch}:{title}"
    return Item(ref=ref, kind="memory", type="decision", title=title, body=body, epoch=epoch)


def why(newer: str, older: str) -> str:
    return amends(decision(newer, epoch=2), decision(older))


@EVERY_TURN
def test_a_turn_amends_what_it_leaves_and_not_another(turn):
    (newer,), (older,), (other,) = turn.examples, turn.values["amends"], turn.near_misses
    assert why(newer, older).startswith(f"{turn.name}: ")
    assert why(newer, other) == ""


@EVERY_TURN
def test_only_a_newer_decision_amends(turn):
    (newer,), (older,) = turn.examples, turn.values["amends"]
    assert amends(decision(newer, epoch=1), decision(older, epoch=2)) == ""
    same = decision(newer)
    assert amends(same, same) == ""


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("Use PostgreSQL for session storage", "Use Redis for session storage"),
        ("Use pnpm", "Use npm"),
        ("Revert to REST", "Use GraphQL"),
        ("PostgreSQL as the database", "We chose SQLite as the database"),
        ("Do not cache tokens in memory", "Cache tokens in memory"),
        ("Remove the retry loop", "Use a retry loop for uploads"),
        ("Go with signed cookies for login state", "Went with server sessions for login state"),
    ],
)
def test_another_choice_for_the_same_purpose_amends(newer, older):
    assert why(newer, older)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("Use vitest for the web app", "Use jest for the api"),
        ("Use the yarn cache in CI", "Use yarn"),
        ("Switch from yarn to pnpm", "Use the yarn cache in CI"),
        ("We considered switching from yarn to pnpm", "Use yarn"),
        ("Should we drop Redis?", "Use Redis for queues"),
        ("Also use Redis for sessions", "Use PostgreSQL for sessions"),
        ("We decided against Redis", "We no longer use Redis"),
        ("Use SQLite in WAL mode", "Use SQLite"),
        ("Use SQLite", "Use SQLite"),
        ("Keep npm instead of moving to pnpm", "Use npm"),
        ("Fix the flaky login test", "Use signed cookies for login state"),
        ("Do not log tokens", "Cache tokens in memory"),
        ("", ""),
    ],
)
def test_what_does_not_reverse_it_leaves_a_decision_standing(newer, older):
    assert why(newer, older) == ""


def test_the_body_counts_as_well_as_the_title():
    newer = decision("Package manager", "CI was slow. We switch from yarn to pnpm.", epoch=2)
    assert amends(newer, decision("Packages", "We settled on yarn."))


def test_of_several_the_newest_is_amended():
    first, second, later = (decision("Use Redis for sessions", epoch=at) for at in (1, 5, 9))
    other = decision("Use tabs for indentation", epoch=6)
    found = find_amended(decision("No longer use Redis", epoch=7), [second, later, first, other])
    assert found is not None
    assert found[0] is second
    assert found[1] == "no longer: Redis"
    assert find_amended(decision("Use spaces", epoch=7), [first, second]) is None


def test_a_thing_is_known_by_its_name_alone():
    assert named_thing("pnpm") == "pnpm"
    assert named_thing("`pnpm` for the web app") == "pnpm"
    assert named_thing("UK English") == "british"
    assert named_thing("tabs everywhere") == "tabs"
    assert named_thing("build small steps") == ""
    assert named_thing("merge conflicts are bad") == ""
    assert shared_choice("pnpm", "npm") == "javascript packages"
    assert shared_choice("bun", "node") == "javascript runtime"
    assert (
        shared_choice("pnpm", "pip")
        == shared_choice("pnpm", "small steps")
        == shared_choice("", "")
        == ""
    )


@pytest.mark.parametrize("name", CHOICES)
def test_what_stands_in_one_choice_competes(name):
    one, other, *_ = sorted(CHOICES[name])
    assert shared_choice(one, other)
    assert why(f"Use {one}", f"Use {other}")


WORDS = st.lists(
    st.sampled_from(
        ["use", "Redis", "for", "sessions", "no longer", "instead of", "switch back to", "yarn",
         "from", "to", "pnpm", "drop", "in favour of", ".", "?", "\n", "decided against", "is",
         "not", "(", "the"]
    ),
    max_size=14,
).map(" ".join)  # fmt: skip


@given(WORDS | st.text(max_size=60), WORDS | st.text(max_size=60))
def test_any_two_texts_can_be_compared(newer, older):
    reason = amends(decision(newer, older, epoch=2), decision(older, newer))
    assert "\n" not in reason
    assert amends(decision(newer, epoch=2), decision(newer)) == ""
