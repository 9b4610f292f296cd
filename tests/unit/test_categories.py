"""The table of categories, walked."""

from __future__ import annotations

import pytest

from yester.errors import UsageError
from yester.memories.categories import CATEGORIES, UNSTATED, category_priority, get_category
from yester.recall.rank import HALF_LIFE, IMPORTANCE
from yester.text.terms import STOP

pytestmark = pytest.mark.requirement("MEM-01")
EVERY = pytest.mark.parametrize("category", CATEGORIES.values(), ids=lambda c: c.name)


def fields(category):
    for field in category.fields:
        yield field
        yield from field.fields


@pytest.mark.requirement("MEM-05")
def test_the_priorities_are_the_published_ones():
    order = ("decision", "constraint", "preference", "runbook", "tech_debt", "session_summary")
    assert [category_priority("memory", name) for name in order] == [1, 2, 3, 4, 5, 6]
    assert category_priority("memory", "anything else") == 10
    assert category_priority("observation", "decision") == 10


@pytest.mark.requirement("MEM-03")
def test_what_is_never_deleted_is_what_tells_how_it_was():
    kept = {name for name, row in CATEGORIES.items() if not row.deletable}
    assert kept == {"decision", "preference", "session_summary"}


@EVERY
def test_ranking_knows_every_category(category):
    if category.name != "note":
        assert category.name in IMPORTANCE
        assert category.name in HALF_LIFE or category.name == "session_summary"


@EVERY
def test_a_plain_text_is_enough_for_a_valid_memory(category):
    content = category.check_content(category.draft_content("Keep the total in cents", {}))
    assert category.lead_text(content) == "Keep the total in cents"
    assert category.render_content(content).startswith("Keep the total in cents")
    assert UNSTATED not in category.render_content(content)
    assert UNSTATED not in "".join(category.section_texts(content).values())
    assert category.list_texts(content) == ["Keep the total in cents"]


@EVERY
@pytest.mark.requirement("MEM-04")
def test_no_label_is_a_word_that_could_be_asked_for(category):
    for field in fields(category):
        if field.name != category.text and field.kind in ("text", "texts") and field.label:
            assert set(field.label.lower().split()) <= STOP, field
        elif field.kind in ("text", "texts") and field.name != category.text:
            assert field.name in ("option", "rejected_reason"), f"{field.name} has no label"


def problem(category, content):
    with pytest.raises(UsageError) as caught:
        category.check_content(content)
    return str(caught.value)


@EVERY
def test_what_is_missing_unknown_or_wrong_is_told_by_field_value_and_fix(category):
    for field in category.fields:
        place = f"{category.name}.{field.name}"
        good = category.draft_content("x", {})
        if field.required:
            told = problem(category, {k: v for k, v in good.items() if k != field.name})
            assert told.startswith(f"{place} is missing; give it ")
        told = problem(category, {**good, field.name: 7})
        assert told.startswith(f"{place} is 7, but must ")
        for choice in field.choices:
            assert choice in told
    told = problem(category, {**good, "colour": "red"})
    assert told.startswith(f"{category.name} has no field 'colour'; its fields are ")


def test_records_are_checked_inside():
    row = CATEGORIES["decision"]
    good, option = row.draft_content("x", {}), {"option": "y", "rejected_reason": "z"}
    assert row.check_content({**good, "alternatives": [option]})["alternatives"] == [option]
    assert problem(row, {**good, "alternatives": [{"option": "y"}]}) == (
        "decision.alternatives[1].rejected_reason is missing; give it a text"
    )
    assert problem(row, {**good, "alternatives": [option, 3]}) == (
        "decision.alternatives[2] is 3, but must hold the fields option, rejected_reason"
    )
    row = CATEGORIES["preference"]
    assert problem(row, {**row.draft_content("x", {}), "examples": {"avoid": "y"}}) == (
        "preference.examples.avoid is 'y', but must be a list of texts"
    )


def test_a_text_too_long_is_refused_with_its_length():
    assert problem(CATEGORIES["note"], {"text": "x" * 20_001}) == (
        "note.text has 20,001 characters; at most 20,000 are kept"
    )
    row = CATEGORIES["runbook"]
    many = {**row.draft_content("x", {}), "steps": ["x"] * 101}
    assert problem(row, many) == "runbook.steps has 101 texts; at most 100 are kept"


def test_a_reason_and_further_lines_find_their_fields():
    said = "Use PostgreSQL over MySQL because we need partial indexes"
    content = CATEGORIES["decision"].draft_content(said, {})
    assert content["decision"] == "Use PostgreSQL over MySQL"
    assert content["rationale"] == ["we need partial indexes"]
    content = CATEGORIES["preference"].draft_content("Tabs, because they are fewer keys", {})
    assert (content["value"], content["reason"]) == ("Tabs", "they are fewer keys")
    content = CATEGORIES["runbook"].draft_content(
        "Disk full\n- look at logs\n2. delete old ones\n", {}
    )
    assert (content["trigger"], content["steps"]) == (
        "Disk full", ["look at logs", "delete old ones"],
    )  # fmt: skip
    given = {"rationale": ["mine"]}
    content = CATEGORIES["decision"].draft_content(said, given)
    assert (content["decision"], content["rationale"]) == (said, ["mine"])


def test_fields_are_set_from_a_command_line():
    row = CATEGORIES["constraint"]
    assert row.parse_settings(["impact=a", "impact=b=c", "active=false", "kind=gap"]) == {
        "impact": ["a", "b=c"], "active": "false", "kind": "gap",
    }  # fmt: skip
    given = row.parse_settings(["active=false"])
    assert row.check_content(row.draft_content("x", given))["active"] is False
    for bad in ("impact", "colour=red"):
        with pytest.raises(UsageError, match=r"sets nothing; write FIELD=VALUE with a field of a"):
            row.parse_settings([bad])


def test_the_readable_text_says_what_is_not_as_usual():
    row = CATEGORIES["decision"]
    content = row.draft_content("Use X", {
        "status": "proposed", "context": "the store", "rationale": ["fast", "small"],
        "alternatives": [{"option": "Y", "rejected_reason": "slow"}],
    })  # fmt: skip
    assert row.render_content(row.check_content(content)) == (
        "Use X (proposed)\nAbout: the store\nWhy:\n- fast\n- small\nNot: Y: slow"
    )
    row = CATEGORIES["preference"]
    content = row.draft_content("Short names", {"examples": {"prefer": ["i"], "avoid": ["index"]}})
    assert row.render_content(row.check_content(content)) == "Short names\nLike: i\nNot: index"


def test_a_category_is_known_by_its_name_however_it_is_spelled():
    assert get_category("Tech-Debt").name == "tech_debt"
    with pytest.raises(UsageError, match="type 'dcision' is no category"):
        get_category("dcision")
