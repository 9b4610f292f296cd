"""Two into one: nothing of what either has added is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yester.errors import UsageError
from yester.memories.categories import CATEGORIES, merge_changes

WORDS = st.sampled_from(["a", "b", "c", "d", "e"])
LISTS = st.lists(WORDS, unique=True, max_size=4)
FORMS = st.fixed_dictionaries(
    {"tags": LISTS, "title": WORDS, "content": st.fixed_dictionaries({"steps": LISTS})}
)
RUNBOOK = CATEGORIES["runbook"]
RUNBOOKS = st.fixed_dictionaries(
    {"trigger": WORDS, "steps": LISTS.filter(bool), "verification": WORDS},
    optional={"symptoms": LISTS, "root_cause": WORDS},
)


def joined(old, new):
    return merge_changes(RUNBOOK.defaults, new, old, overrule=True)


@pytest.mark.requirement("MEM-02")
@given(FORMS, FORMS)
def test_who_changes_nothing_changes_nothing(base, other):
    assert merge_changes(base, base, other) == other
    assert merge_changes(base, other, base) == other
    assert merge_changes(base, other, other) == other


@pytest.mark.requirement("MEM-02")
@given(LISTS, LISTS, LISTS)
def test_of_lists_both_additions_and_both_removals_stay(base, mine, theirs):
    found = merge_changes({"tags": base}, {"tags": mine}, {"tags": theirs}).get("tags", [])
    added = (set(mine) | set(theirs)) - set(base)
    removed = set(base) - set(mine) | set(base) - set(theirs)
    assert set(found) == (set(base) | added) - removed
    assert len(found) == len(set(found))
    again = merge_changes({"tags": base}, {"tags": theirs}, {"tags": mine}).get("tags", [])
    assert set(again) == set(found)


@pytest.mark.requirement("MEM-02")
def test_where_both_have_written_something_else_they_are_told():
    base = {"title": "a", "content": {"rule": "x"}}
    with pytest.raises(UsageError, match=r"content.rule has been changed to 'z' meanwhile"):
        merge_changes(base, {**base, "content": {"rule": "y"}}, {**base, "content": {"rule": "z"}})
    found = merge_changes(base, {**base, "title": "b"}, {**base, "content": {"rule": "z"}})
    assert found == {"title": "b", "content": {"rule": "z"}}


@pytest.mark.requirement("MEM-03")
@given(RUNBOOKS, RUNBOOKS)
def test_joining_loses_nothing_of_a_list_and_takes_the_newer_word(old, new):
    found = joined(old, new)
    for name in ("steps", "symptoms"):
        assert found.get(name, [])[: len(old.get(name, []))] == old.get(name, [])
        assert set(found.get(name, [])) == {*old.get(name, []), *new.get(name, [])}
    assert found["trigger"] == new["trigger"]
    assert joined(found, new) == found
    assert joined(old, old) == old


def test_what_nobody_has_stated_replaces_nothing():
    old = RUNBOOK.draft_content("Disk full", {"steps": ["clean"], "verification": "df"})
    assert joined(old, RUNBOOK.draft_content("Disk full", {})) == old
    found = joined(RUNBOOK.draft_content("Disk full", {}), old)
    assert (found["steps"], found["verification"]) == (["clean"], "df")
