"""Times as people write and read them: 1h 3d 1w 2m 1y, today, yesterday, 2026-03-01, ISO times.

Inside yester a time is an integer, milliseconds since 1970. Nothing here reads the clock.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from time import perf_counter

from msgspec import Struct

from yester.errors import UsageError

DAY = 86_400_000  # milliseconds
QUARTER = 900_000  # of an hour: what clocks of different zones differ by
_NUMBER = re.compile(r"\d{9,15}", re.ASCII)
_MILLISECONDS = 100_000_000_000  # numbers from here on are no seconds
_WHOLE_DAY = re.compile(r"\d{4}-\d\d-\d\d|today|yesterday", re.ASCII | re.IGNORECASE)
WRITTEN = "1h, 3d, 1w, 2m, 1y, today, yesterday, a date such as 2026-03-01, or an ISO time"
_AGO = re.compile(r"(?P<number>\d{1,4})(?P<unit>[hdwmy])")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


def elapsed_ms(began: float) -> float:
    """Since this reading of `time.perf_counter`."""
    return round((perf_counter() - began) * 1000, 2)


def parse_time(text: str, now: int, zone: tzinfo | None = None, option: str = "time") -> int:
    """A point in time in milliseconds; dates without a zone are in `zone` (default: local)."""
    present = datetime.fromtimestamp(now / 1000, zone).astimezone(zone)
    word = text.strip().lower()
    if match := _AGO.fullmatch(word):
        return int(now - int(match["number"]) * _DAYS[match["unit"]] * DAY)
    if word == "now":
        return now
    midnight = present.replace(hour=0, minute=0, second=0, microsecond=0)
    if word in ("today", "yesterday"):
        return _to_milliseconds(midnight - timedelta(days=word == "yesterday"))
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{option} {text!r} is not a time", f"write {WRITTEN}") from None
    return _to_milliseconds(found if found.tzinfo else found.replace(tzinfo=present.tzinfo))


def parse_bound(
    text: str, now: int, zone: tzinfo | None = None, option: str = "time", end: bool = False
) -> int:
    """The same for an end of a range, which may also be a number: seconds or milliseconds since
    1970. A whole day that is the `end` belongs to the range."""
    word = text.strip()
    if _NUMBER.fullmatch(word):
        number = int(word)
        return number if number >= _MILLISECONDS else number * 1000
    found = parse_time(word, now, zone, option)
    if not (end and _WHOLE_DAY.fullmatch(word)):
        return found
    # By the calendar: a day on which clocks are changed has no 24 hours.
    try:
        return _to_milliseconds(datetime.fromtimestamp(found / 1000, zone) + timedelta(days=1))
    except OverflowError:  # the calendar's last day
        return found


def _to_milliseconds(value: datetime) -> int:
    return int(value.timestamp() * 1000)


def parse_iso(text: object) -> int:
    """An ISO time as other programs write it; without a zone it is UTC. 0 where it is none."""
    try:
        found = datetime.fromisoformat(text.strip()) if isinstance(text, str) else None
    except ValueError:
        found = None
    if found is None:
        return 0
    return max(_to_milliseconds(found if found.tzinfo else found.replace(tzinfo=UTC)), 0)


# --- as they are read -----------------------------------------------------------------------------


def format_day(epoch: int, zone: tzinfo | None = None, missing: str = "") -> str:
    """2026-05-19 in `zone` (default: local); `missing` where there is no time."""
    return _format_time(epoch, "%Y-%m-%d", zone, missing)


def format_minute(epoch: int, zone: tzinfo | None = None, missing: str = "-") -> str:
    """2026-05-19 08:36"""
    return _format_time(epoch, "%Y-%m-%d %H:%M", zone, missing)


def format_iso(epoch: int) -> str:
    """2026-05-19T08:36:01Z"""
    return _format_time(epoch, "%Y-%m-%dT%H:%M:%SZ", UTC, "")


def _format_time(epoch: int, form: str, zone: tzinfo | None, missing: str) -> str:
    date = _date_of(epoch, zone)
    return missing if date is None else date.strftime(form)


def _date_of(epoch: int, zone: tzinfo | None) -> datetime | None:
    try:
        return datetime.fromtimestamp(epoch / 1000, zone) if epoch > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


class Calendar(Struct, frozen=True):
    """Times as a model reads them, seen from `now`."""

    now: int
    zone: tzinfo | None

    def day_label(self, epoch: int) -> str:
        """today, yesterday, 12 Nov; 2025-11-12 where it was another year."""
        date = _date_of(epoch, self.zone)
        if date is None:
            return "undated"
        present = datetime.fromtimestamp(self.now / 1000, self.zone).date()
        ago = (present - date.date()).days
        if ago in (0, 1):
            return "yesterday" if ago else "today"
        if date.year != present.year:
            return date.strftime("%Y-%m-%d")
        return f"{date.day} {_MONTHS[date.month - 1]}"

    def time_label(self, epoch: int) -> str:
        """08:36"""
        return _format_time(epoch, "%H:%M", self.zone, "")
