"""JSON lines of any length: read in pieces, so that nobody who waits for the reader waits long."""

from __future__ import annotations

import os
from errno import EFBIG

import pytest

from yester.agents.sources import ENDLESS, PAUSE, PIECE, BadLine, read_records
from yester.agents.values import LONGEST_LINE

pytestmark = pytest.mark.requirement("OPS-05", "STO-05")


def read(path):
    return list(read_records(path, 0, 0, lambda raw: len(raw), lambda value: value))


def test_a_long_line_is_read_with_pauses_and_is_whole(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * (3 * PIECE) + b"\n" + b"short\n")
    *pauses, long, short = read(path)
    assert [record for *_, record in pauses] == [PAUSE] * 3
    assert long == (0, 3 * PIECE + 1, 1, 3 * PIECE + 1)
    assert short == (3 * PIECE + 1, 3 * PIECE + 7, 2, 6)


@pytest.mark.parametrize("end", [b"", b"\nshort\n"])
def test_a_line_that_is_too_long_is_passed_over(tmp_path, end):
    path = tmp_path / "long.jsonl"
    path.touch()
    os.truncate(path, LONGEST_LINE + 5)
    with path.open("ab") as file:
        file.write(end)
    found = [one for one in read(path) if one[3] is not PAUSE]
    assert isinstance(found[0][3], BadLine)
    assert found[0][:3] == (0, LONGEST_LINE + 5 + len(end[:1]), 1)
    assert [one[3] for one in found[1:]] == [6] * bool(end)


def test_a_file_without_line_ends_is_given_up(tmp_path):
    path = tmp_path / "endless.jsonl"
    path.touch()
    os.truncate(path, 1 << 40)
    pauses = 0
    with pytest.raises(OSError, match="no line end") as raised:
        for *_, record in read_records(path, 0, 0, lambda raw: raw, lambda value: value):
            assert record is PAUSE
            pauses += 1
    assert raised.value.errno == EFBIG
    assert pauses == ENDLESS // PIECE - 1
