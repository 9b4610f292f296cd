"""Times as people write them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each
from yester.clock import parse_time
from yester.errors import UsageError

NOW = int(datetime(2026, 3, 15, 14, 30, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000


def _at(*parts):
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


TABLE = [
    ("1h", NOW - DAY // 24),
    ("3d", NOW - 3 * DAY),
    ("1w", NOW - 7 * DAY),
    ("2m", NOW - 60 * DAY),
    ("1y", NOW - 365 * DAY),
    ("today", _at(2026, 3, 15)),
    ("yesterday", _at(2026, 3, 14)),
    (" Today ", _at(2026, 3, 15)),
    ("now", NOW),
    ("2026-01-02", _at(2026, 1, 2)),
    ("2026-01-02T03:04:05", _at(2026, 1, 2, 3, 4, 5)),
    ("2026-01-02T03:04:05Z", _at(2026, 1, 2, 3, 4, 5)),
    ("2026-01-02T03:04:05+02:00", _at(2026, 1, 2, 1, 4, 5)),
]


@each(("text", "expected"), TABLE)
@pytest.mark.requirement("DEL-09")
def test_a_time_is_understood(text, expected):
    assert parse_time(text, NOW, UTC) == expected


def test_days_begin_where_the_user_is():
    east = timezone(timedelta(hours=9))
    assert parse_time("today", NOW, east) == _at(2026, 3, 14, 15)
    assert parse_time("2026-03-15", NOW, east) == _at(2026, 3, 14, 15)


@each("text", ["", "soon", "3x", "99999d", "2026-13-01", "-3d"])
def test_anything_else_is_refused_with_what_may_be_written(text):
    with pytest.raises(UsageError, match=r"--since .* is not a time; write 1h, 3d"):
        parse_time(text, NOW, UTC, "--since")


@given(st.text(max_size=30))
def test_any_text_is_a_time_or_a_usage_error(text):
    with suppress(UsageError):
        assert isinstance(parse_time(text, NOW, UTC), int)
