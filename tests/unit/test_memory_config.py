"""memory-config.json: what can be used is used, the rest is named and replaced by defaults."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table import each
from tests.written import values
from yester.memories.folder import MOST_INJECTED, FolderConfig, parse_folder_config

pytestmark = pytest.mark.requirement("MEM-06")


def config(**given):
    return parse_folder_config(json.dumps(given).encode(), "c.json")


def test_without_one_the_defaults_hold():
    found = parse_folder_config(None)
    assert found == FolderConfig()
    assert found.folder_of("session_summary") == "sessions"
    assert found.folder_of("tech_debt") == "tech-debt"
    assert found.folder_of("never_heard_of") == "never-heard-of"


def test_what_it_says_holds():
    found = config(
        retrieval={"max_inject": 9},
        categories={
            "decision": {"description": "why", "folder": "adr", "retention_days": 30},
            "meeting": {"folder": "notes/meetings"},
        },
    )
    assert (found.max_inject, found.warnings) == (9, ())
    assert (found.folder_of("decision"), found.retention_days["decision"]) == ("adr", 30)
    assert found.folder_of("meeting") == "notes/meetings"
    assert found.folder_of("tech_debt") == "tech-debt"


@each(
    ("given", "most"),
    [(0, 0), (-3, 0), (20, 20), (21, 20), (5.7, 5), ("7", 7), (1e300, MOST_INJECTED)],
)
def test_how_many_are_injected_lies_between_none_and_twenty(given, most):
    found = config(retrieval={"max_inject": given})
    assert (found.max_inject, found.warnings) == (most, ())


@each("given", ["all", True, [], {}, "inf", "nan"])
def test_a_number_that_is_none_is_named_and_says_nothing(given):
    found = config(retrieval={"max_inject": given})
    assert found.max_inject is None
    assert found.warnings[0].startswith("c.json: retrieval.max_inject is ")


@each("data", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_malformed_file_means_the_defaults_and_one_warning(data):
    found = parse_folder_config(data, "c.json")
    assert (found.folders, found.retention_days, found.max_inject) == ({}, {}, None)
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("c.json: is not ")


@each(
    "folder", ["../out", "/etc", "a/../../b", "", ".", "..", ".hidden", "a/.b", 5, "a\0b", "a\\b"]
)
def test_a_folder_outside_of_the_tree_is_refused(folder):
    found = config(categories={"decision": {"folder": folder}})
    assert found.folder_of("decision") == "decisions"
    assert "categories.decision.folder" in found.warnings[0]


@settings(max_examples=15)
@given(st.fixed_dictionaries({}, optional={
    "retrieval": values | st.fixed_dictionaries({"max_inject": values}),
    "categories": values | st.dictionaries(st.text(max_size=4), st.fixed_dictionaries(
        {}, optional={"folder": values, "description": values, "retention_days": values}),
        max_size=2),
}))  # fmt: skip
def test_no_file_is_an_error(given):
    found = parse_folder_config(json.dumps(given).encode())
    assert found.max_inject is None or 0 <= found.max_inject <= MOST_INJECTED
    assert found.folder_of("decision")
    assert all(days >= 0 for days in found.retention_days.values())
