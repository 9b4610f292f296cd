"""Rules that are lists: every row finds its examples and none of its near misses."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec
import pytest

import yester.operations
from tests.table import each
from yester.tables import load_pattern, load_rows, load_table

pytestmark = pytest.mark.requirement("DIS-03", "DIS-09")

# They begin a sentence after words that only lead in: test_utterances.py walks them.
WITH_A_LEAD = ("rules", "decisions", "labels", "withdrawals")
TABLES = ("tools", "statements", "talk", "utterances", "fence")
SECTIONS = [
    (table, section)
    for table in (*TABLES, "categories")
    for section, rows in load_table(table).items()
    if section not in ("parts", *WITH_A_LEAD) and isinstance(rows, list) and "pattern" in rows[0]
]


@each(("table", "section"), SECTIONS)
def test_every_row_finds_its_examples_and_no_near_miss(table, section):
    for row in load_rows(table, section):
        assert row.examples, row.name
        for text in row.examples:
            assert row.pattern.search(text), (row.name, text)
        assert row.near_misses, row.name
        for text in row.near_misses:
            assert not row.pattern.search(text), (row.name, text)


@each("table", TABLES)
def test_a_pattern_is_found_by_its_name_alone(table):
    names = [row.name for row in load_rows(table, "patterns")]
    assert len(set(names)) == len(names)
    assert all(load_pattern(table, name).pattern for name in names)


def test_a_meaning_is_that_of_a_field_that_a_face_has():
    for module in pkgutil.iter_modules(yester.operations.__path__, "yester.operations."):
        importlib.import_module(module.name)
    importlib.import_module("yester.faces.http.table")
    importlib.import_module("yester.faces.mcp.calls")
    fields, kinds = {}, [msgspec.Struct]
    for kind in kinds:
        kinds += kind.__subclasses__()
        fields.setdefault(kind.__name__, set()).update(kind.__struct_fields__)
    for name, meanings in load_table("meanings").items():
        assert meanings.keys() <= fields.get(name, set()), name
