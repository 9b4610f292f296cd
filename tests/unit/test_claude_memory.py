"""Importing a `.claude/memory/` tree (what comes of it: tests/flow/test_memory_sync.py)."""

from __future__ import annotations

import pytest

from tests.stores import with_store
from tests.table import each
from yester.clock import parse_iso
from yester.errors import SourceError
from yester.memories.memory import GLOBAL, Author
from yester.memories.sync import import_folder
from yester.store import open_store

pytestmark = pytest.mark.requirement("IMP-02")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    store = open_store(with_store(tmp_path), now=1)
    with pytest.raises(SourceError, match="gone: no such folder"):
        import_folder(store, tmp_path / "gone", GLOBAL, Author("import", 1))
    store.close()


@each(
    ("text", "wanted"),
    [("2026-03-01T09:00:00Z", 1_772_355_600_000), ("2026-03-01T09:00:00", 1_772_355_600_000),
     ("2026-03-01", 1_772_323_200_000), ("soon", 0), (None, 0), (5, 0), ("0001-01-01", 0)],
)  # fmt: skip
def test_times_are_read_as_they_are_written(text, wanted):
    assert parse_iso(text) == wanted
