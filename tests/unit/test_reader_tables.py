"""What the readers know as rows: each does what its examples say, and no tool is in two of them."""

from __future__ import annotations

import pytest

from yester.agents.base import BOOKKEEPING, TOOLS, strip_client_text
from yester.agents.descriptors import AGENTS
from yester.tables import load_table

pytestmark = pytest.mark.requirement("IMP-05")
TABLE = load_table("transcripts")


def test_tables_name_known_tools_only_once():
    assert not BOOKKEEPING & TOOLS.keys()
    assert len(TOOLS) == sum(len(row.names) for row in set(TOOLS.values()))
    assert all(name == name.lower() for name in BOOKKEEPING | TOOLS.keys())


def test_texts_are_cleaned_as_the_examples_of_each_row_say():
    for row in TABLE["clean"]:
        assert row["client"] in AGENTS
        for of in row["of"]:
            for before, after in row["examples"]:
                assert strip_client_text(row["client"], of, before, row.get("tool", "")) == after
