"""What a request filters by: names and times, in whichever form they were written."""

from __future__ import annotations

from typing import Any

import msgspec

from yester.clock import WRITTEN, parse_bound
from yester.errors import UsageError
from yester.faces.http.parameters import Dated, Filtered
from yester.faces.http.problem import Refusal
from yester.memory import Memory, quote_value
from yester.model import Filters


def make_filters(memory: Memory, given: Filtered, **more: Any) -> Filters:
    since, until = span(given, memory.now)
    return Filters(
        projects=(memory.find_project(given.project).key,) if given.project else (),
        concepts=tuple(given.concepts),
        files=tuple(given.files),
        session=given.session,
        agent=given.agent,
        tool=given.tool,
        since=since,
        until=until,
        **more,
    )


def span(given: Dated, now: int) -> tuple[int | None, int | None]:
    """From when to when, in whichever of the three forms it was said."""
    both = _range(given.range)
    start = given.start or given.range_start or both[0]
    end = given.end or given.range_end or both[1]
    since = _bound("dateStart", given.start, given.range_start, both[0], now)
    until = _bound("dateEnd", given.end, given.range_end, both[1], now)
    if since is not None and until is not None and since >= until:
        raise Refusal(
            400, f"dateStart {start!r} is not before dateEnd {end!r}", parameter="dateStart",
            value=start, fix="exchange them",
        )  # fmt: skip
    return since, until


def _bound(name: str, plain: str, bracketed: str, in_json: str, now: int) -> int | None:
    """An end of a range; what is wrong with it is told of the parameter it stands in."""
    end = name == "dateEnd"
    named_so = {name: plain, f"dateRange[{'end' if end else 'start'}]": bracketed}
    parameter = next((one for one, text in named_so.items() if text), "dateRange")
    text = plain or bracketed or in_json
    if not text.strip():
        return None
    try:
        return parse_bound(text, now, option=parameter, end=end)
    except (UsageError, OverflowError, OSError):
        raise Refusal(
            400, f"{parameter} {quote_value(text)!r} is not a time", parameter=parameter,
            value=text, fix=f"write {WRITTEN}, or seconds or milliseconds since 1970",
        ) from None  # fmt: skip


class _Range(msgspec.Struct, forbid_unknown_fields=True):
    start: str | int | None = None
    end: str | int | None = None


def _range(text: str) -> tuple[str, str]:
    if not text.strip():
        return "", ""
    try:
        found = msgspec.json.decode(text, type=_Range)
    except msgspec.MsgspecError as error:
        raise Refusal(
            400, f"dateRange is {text!r}, which is not the JSON it must be ({error})",
            parameter="dateRange", value=text,
            fix='{"start": "2026-03-01", "end": "2026-03-08"}, or dateStart and dateEnd',
        ) from None  # fmt: skip
    return str(found.start or ""), str(found.end or "")
