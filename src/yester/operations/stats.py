"""Numbers: what the memory holds, what was shown, what language models have cost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from yester.clock import DAY
from yester.context.lines import ESTIMATE_NOTE
from yester.llm import budget
from yester.llm.budget import day_of
from yester.memory import Memory
from yester.operations.request import Request, make_answer
from yester.redact import redact
from yester.store import figures

_COUNTED = 5.0  # seconds for which counts are kept: counting everything reads everything
_DRAWN = 30.0  # … and for which curves are
_LAGS = 1_000
_CURVES = 20


class StatsRequest(Request, kw_only=True):
    days: Annotated[int, Meta(ge=1, le=3650)] = 7


class SeriesRequest(Request, kw_only=True):
    days: Annotated[int, Meta(ge=1, le=3650)] = 30


# --- what there is --------------------------------------------------------------------------------


class Waiting(Struct, kw_only=True):
    done: int
    waiting: int


class Stats(Struct, kw_only=True):
    days: int
    items: dict[str, int]
    projects: int
    sessions: int
    transcripts: int
    events: int
    skipped: dict[str, int]
    vectors: Waiting
    lag_ms: figures.Lag
    bytes: int
    oldest: int | None
    newest: int | None
    distilled: list[figures.Distilled]
    shown: list[figures.ShownAt]
    use: list[figures.ProjectUse]
    reflexes: list[figures.Reflex]
    note: str


def count_contents(memory: Memory, request: StatsRequest) -> Stats:
    """What the memory holds, what was shown."""
    store = memory.reading
    counts = memory.cached("counts", _COUNTED, lambda: figures.content_counts(store))
    since = day_of(memory.now) - (request.days - 1) * DAY
    return make_answer(
        Stats,
        counts,
        days=request.days,
        transcripts=counts.sources,
        vectors=Waiting(done=counts.vectors, waiting=counts.unembedded),
        lag_ms=figures.middle_lag(store, _LAGS),
        distilled=figures.distilled_totals(store),
        shown=figures.shown_totals(store, since),
        use=[make_answer(figures.ProjectUse, one) for one in figures.use_by_project(store, since)],
        reflexes=figures.reflex_totals(store, since),
        note=ESTIMATE_NOTE,
    )


# --- day by day -----------------------------------------------------------------------------------


class Middles(Struct, kw_only=True):
    """Milliseconds for each day; null where nothing was measured."""

    p50: list[int | None]
    p99: list[int | None]


class Series(Struct, kw_only=True):
    """A number for each of `days` (UTC), the oldest first."""

    days: list[str]
    items: dict[str, list[int]]
    shown_tokens: list[int]
    discovered_tokens: list[int]
    shown_lines: list[int]
    used_lines: list[int]
    lag_ms: Middles
    answer_ms: Middles
    errors_met: list[int]
    errors_ended: list[int]
    errors_again: list[int]
    spend: list[float]
    note: str


def count_days(memory: Memory, request: SeriesRequest) -> Series:
    """What happened day by day.

    Counting is remembered for a while, as curves are drawn again and again.
    """
    store, today = memory.reading, memory.now // DAY
    days = range(today - request.days + 1, today + 1)
    since = days[0] * DAY
    daily = memory.cached(f"daily {since}", _DRAWN, lambda: figures.daily_figures(store, since))
    dollars: Counter[str] = Counter()
    for row in figures.spending_by_day(store, since):
        dollars[row.day] += row.cost  # type: ignore[assignment]  # a Counter adds floats as well
    names = [time.strftime("%Y-%m-%d", time.gmtime(day * 86_400)) for day in days]
    shown = [daily.shown.get(day, (0, 0, 0, 0)) for day in days]
    errors = [daily.errors.get(day, (0, 0, 0)) for day in days]
    return Series(
        days=names,
        items=_largest_curves(daily.items, days),
        shown_tokens=[tokens for _, tokens, _, _ in shown],
        discovered_tokens=[behind for _, _, behind, _ in shown],
        shown_lines=[lines for lines, _, _, _ in shown],
        used_lines=[used for *_, used in shown],
        lag_ms=_make_middles(daily.lags, days),
        answer_ms=_make_middles(daily.answers, days),
        errors_met=[met for met, _, _ in errors],
        errors_ended=[ended for _, ended, _ in errors],
        errors_again=[again for _, _, again in errors],
        spend=[round(dollars[name], 6) for name in names],
        note=ESTIMATE_NOTE,
    )


def _largest_curves(
    items: Mapping[str, Mapping[int, int]], days: Sequence[int]
) -> dict[str, list[int]]:
    """The most frequent types and kinds, what is left as "other"."""
    curves = {redact(name): [of.get(day, 0) for day in days] for name, of in items.items()}
    ranked = sorted(curves, key=lambda name: (-sum(curves[name]), name))
    found = {name: curves[name] for name in ranked[:_CURVES] if sum(curves[name])}
    if others := [curves[name] for name in ranked[_CURVES:]]:
        found["other"] = [sum(numbers) for numbers in zip(*others, strict=True)]
    return found


def _make_middles(found: Mapping[int, figures.Lag], days: Sequence[int]) -> Middles:
    known = [found.get(day, figures.Lag(None, None)) for day in days]
    return Middles(p50=[one.p50 for one in known], p99=[one.p99 for one in known])


# --- what it has cost -----------------------------------------------------------------------------


class Today(Struct, kw_only=True):
    cost: float
    tokens: int
    in_flight: int


class Spend(Struct, kw_only=True):
    """What language models have cost; nothing where none is set."""

    days: int
    provider: str
    today: Today
    limits: budget.Limits
    spend: list[figures.Spending]


def count_spending(memory: Memory, request: StatsRequest) -> Spend:
    """What language models have cost."""
    store, config, today = memory.reading, memory.config, day_of(memory.now)
    limits, spent = budget.Limits.from_config(config), figures.spent_since(store, today, memory.now)
    return Spend(
        days=request.days,
        provider=config.text("llm.provider"),
        today=make_answer(Today, spent, cost=round(spent.cost, 6)),
        limits=limits,
        spend=figures.spending_by_day(store, today - (request.days - 1) * DAY),
    )
