"""JSON lines of any length, of which no more is kept in memory than a record can have."""

from __future__ import annotations

import os
from errno import EFBIG

import pytest

from yester.agents.sources import BadLine, read_records
from yester.agents.values import LONGEST_LINE

pytestmark = pytest.mark.requirement("OPS-05", "STO-05")


def read(path):
    return list(read_records(path, 0, 0))


def test_only_the_fields_asked_for_are_unpacked_and_they_may_be_of_any_type(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text('{"a": 1, "b": [2], "c": "x"}\n{"a": {"b": 1}}\n')
    assert [record for *_, record in read_records(path, 0, 0, ("a", "c"))] == [
        {"a": 1, "c": "x"}, {"a": {"b": 1}},
    ]  # fmt: skip


@pytest.mark.parametrize("end", [b"", b"\n{}\n"])
def test_a_line_that_is_too_long_is_passed_over(tmp_path, end):
    path = tmp_path / "long.jsonl"
    path.touch()
    os.truncate(path, LONGEST_LINE + 5)
    with path.open("ab") as file:
        file.write(end)
    found = read(path)
    assert isinstance(found[0][3], BadLine)
    assert found[0][:3] == (0, LONGEST_LINE + 5 + len(end[:1]), 1)
    assert [one[3] for one in found[1:]] == [{}] * bool(end)


def test_a_file_without_line_ends_is_given_up(tmp_path):
    path = tmp_path / "endless.jsonl"
    path.touch()
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="no line end") as raised:
        read(path)
    assert raised.value.errno == EFBIG
