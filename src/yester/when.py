"""Times as people write them: 1h 3d 1w 2m 1y, today, yesterday, 2026-03-01, ISO times."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

from yester.errors import UsageError

_NUMBER = re.compile(r"\d{9,15}", re.ASCII)
_MILLISECONDS = 100_000_000_000  # numbers from here on are no seconds
_WHOLE_DAY = re.compile(r"\d{4}-\d\d-\d\d|today|yesterday", re.ASCII | re.IGNORECASE)
WRITTEN = "1h, 3d, 1w, 2m, 1y, today, yesterday, a date such as 2026-03-01, or an ISO time"
_AGO = re.compile(r"(?P<number>\d{1,4})(?P<unit>[hdwmy])")
_DAYS = {"h": 1 / 24, "d": 1, "w": 7, "m": 30, "y": 365}


def moment(text: str, now: int, zone: tzinfo | None = None, option: str = "time") -> int:
    """A point in time in milliseconds; dates without a zone are in `zone` (default: local)."""
    present = datetime.fromtimestamp(now / 1000, zone).astimezone(zone)
    word = text.strip().lower()
    if match := _AGO.fullmatch(word):
        return int(now - int(match["number"]) * _DAYS[match["unit"]] * 86_400_000)
    if word == "now":
        return now
    midnight = present.replace(hour=0, minute=0, second=0, microsecond=0)
    if word in ("today", "yesterday"):
        return _milliseconds(midnight - timedelta(days=word == "yesterday"))
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"{option} {text!r} is not a time; write {WRITTEN}") from None
    return _milliseconds(found if found.tzinfo else found.replace(tzinfo=present.tzinfo))


def bound(
    text: str, now: int, zone: tzinfo | None = None, option: str = "time", end: bool = False
) -> int:
    """The same for an end of a range, which may also be a number: seconds or milliseconds since
    1970. A whole day that is the `end` belongs to the range."""
    word = text.strip()
    if _NUMBER.fullmatch(word):
        number = int(word)
        return number if number >= _MILLISECONDS else number * 1000
    found = moment(word, now, zone, option)
    if not (end and _WHOLE_DAY.fullmatch(word)):
        return found
    # By the calendar: a day on which clocks are changed has no 24 hours.
    try:
        return _milliseconds(datetime.fromtimestamp(found / 1000, zone) + timedelta(days=1))
    except OverflowError:  # the calendar's last day
        return found


def _milliseconds(value: datetime) -> int:
    return int(value.timestamp() * 1000)
