"""A `.claude/memory/` tree as plain values."""

from __future__ import annotations

import pytest

from tests.written import memory
from yester.errors import SourceError
from yester.importers.claude_memory import claude_memory, milliseconds

pytestmark = pytest.mark.requirement("IMP-02")


def test_a_tree_is_read_from_its_project_or_by_itself(tmp_path):
    root = tmp_path / ".claude" / "memory"
    (root / "decisions").mkdir(parents=True)
    one = memory(
        times_updated=2, confidence=0.8, related_files=["a b.py"], zebra=[1],
        changes=[{"date": "2026-03-02", "summary": "renamed"}],
        retired_at="2026-04-01T00:00:00+02:00", record_status="retired", retired_reason="moved on",
    )  # fmt: skip
    (root / "decisions" / "use-postgres.json").write_bytes(one.bytes())
    (root / "decisions" / "bad.json").write_text("{")
    found = claude_memory(tmp_path)
    assert found == claude_memory(root) == claude_memory(tmp_path)
    (plain,) = found.memories
    assert (plain["ref"], plain["category"], plain["status"]) == (
        "decision/use-postgres", "decision", "retired",
    )  # fmt: skip
    assert plain["created"] == plain["updated"] == 1_772_355_600_000
    assert plain["retired"] == 1_774_994_400_000
    assert (plain["files"], plain["tags"]) == (["a b.py"], ["postgres", "data-base"])
    assert (plain["confidence"], plain["times_updated"]) == (0.8, 2)
    assert plain["changes"] == [{"date": "2026-03-02", "summary": "renamed"}]
    assert plain["content"]["decision"] == "Postgres"
    assert (plain["keep"], plain["raw"]) == ({"zebra": [1]}, one.bytes())
    assert plain["path"] == str(root / "decisions" / "use-postgres.json")
    assert "bad.json: is not JSON" in found.problems[0]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SourceError, match="gone: no such folder"):
        claude_memory(tmp_path / "gone")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("2026-03-01T09:00:00Z", 1_772_355_600_000), ("2026-03-01T09:00:00", 1_772_355_600_000),
     ("2026-03-01", 1_772_323_200_000), ("soon", 0), (None, 0), (5, 0), ("0001-01-01", 0)],
)  # fmt: skip
def test_times_are_read_as_they_are_written(text, wanted):
    assert milliseconds(text) == wanted
