"""Numbers: what the memory holds, what was shown, what language models have cost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from yester.deliver.lines import ESTIMATE_NOTE
from yester.faces.http import shapes
from yester.faces.http.parameters import Nothing, Series, Within
from yester.llm.budget import DAY, Limits, day_of
from yester.memory import Memory
from yester.redact import redact
from yester.store.figures import (
    Middle,
    capture_lags,
    content_counts,
    daily_figures,
    discovery_totals,
    filter_facets,
    project_parts,
    shown_totals,
    spending_by_day,
    spent_since,
)
from yester.text.document import tokens_of_length

_KEPT = 5.0  # seconds: counting everything reads everything
_MOST = 100  # types, concepts
_LAGS = 1_000
_DRAWN = 30.0  # seconds
_CURVES = 20


def stats(memory: Memory, given: Within) -> shapes.Stats:
    store = memory.store
    counts = memory.cached("counts", _KEPT, lambda: content_counts(store))
    lags = sorted(capture_lags(store, _LAGS))
    since = day_of(memory.now) - (given.days - 1) * DAY
    return shapes.Stats(
        days=given.days,
        items=dict(counts.items),
        projects=counts.projects,
        sessions=counts.sessions,
        transcripts=counts.sources,
        events=counts.events,
        skipped={redact(reason): number for reason, number in counts.skipped.items()},
        vectors=shapes.Waiting(done=counts.vectors, waiting=counts.unembedded),
        lag_ms=shapes.Lag(
            p50=lags[len(lags) // 2] if lags else None,
            p99=lags[len(lags) * 99 // 100] if lags else None,
        ),
        bytes=counts.bytes,
        oldest=counts.oldest,
        newest=counts.newest,
        distilled=[
            shapes.Distilled(
                kind=row.kind, items=row.items, discovery_tokens=row.discovery_tokens,
                read_tokens=tokens_of_length(row.characters),
            )
            for row in discovery_totals(store)
        ],
        shown=[shapes.ShownAt(**row._asdict()) for row in shown_totals(store, since)],
        note=ESTIMATE_NOTE,
    )  # fmt: skip


def series(memory: Memory, given: Series) -> shapes.Series:
    """A number a day; counting is remembered for a while, as curves are drawn again and again."""
    today = memory.now // DAY
    days = range(today - given.days + 1, today + 1)
    since = days[0] * DAY
    daily = memory.cached(f"daily {since}", _DRAWN, lambda: daily_figures(memory.store, since))
    dollars: Counter[str] = Counter()
    for row in spending_by_day(memory.store, since):
        dollars[row.day] += row.cost  # type: ignore[assignment]  # a Counter adds floats as well
    names = [time.strftime("%Y-%m-%d", time.gmtime(day * 86_400)) for day in days]
    shown = [daily.shown.get(day, (0, 0, 0)) for day in days]
    return shapes.Series(
        days=names,
        items=_most(daily.items, days),
        shown_tokens=[tokens for _, tokens, _ in shown],
        discovered_tokens=[behind for _, _, behind in shown],
        shown_lines=[lines for lines, _, _ in shown],
        lag_ms=_middles(daily.lags, days),
        answer_ms=_middles(daily.answers, days),
        spend=[round(dollars[name], 6) for name in names],
        note=ESTIMATE_NOTE,
    )


def _most(items: Mapping[str, Mapping[int, int]], days: Sequence[int]) -> dict[str, list[int]]:
    """The most frequent types and kinds, what is left as "other"."""
    curves = {redact(name): [of.get(day, 0) for day in days] for name, of in items.items()}
    ranked = sorted(curves, key=lambda name: (-sum(curves[name]), name))
    found = {name: curves[name] for name in ranked[:_CURVES] if sum(curves[name])}
    if others := [curves[name] for name in ranked[_CURVES:]]:
        found["other"] = [sum(numbers) for numbers in zip(*others, strict=True)]
    return found


def _middles(found: Mapping[int, Middle], days: Sequence[int]) -> shapes.Middles:
    known = [found.get(day) for day in days]
    return shapes.Middles(
        p50=[one.p50 if one else None for one in known],
        p99=[one.p99 if one else None for one in known],
    )


def spend(memory: Memory, given: Within) -> shapes.Spend:
    store, config, today = memory.store, memory.config, day_of(memory.now)
    limits, spent = Limits.from_config(config), spent_since(store, today, memory.now)
    return shapes.Spend(
        days=given.days,
        provider=config.text("llm.provider"),
        today=shapes.Today(
            cost=round(spent.cost, 6), tokens=spent.tokens, in_flight=spent.in_flight
        ),
        limits=shapes.Limits(
            dollars=limits.dollars, tokens=limits.tokens, in_flight=limits.in_flight
        ),
        spend=[
            shapes.Spending(**{**row._asdict(), "cost": round(row.cost, 6)})
            for row in spending_by_day(store, today - (given.days - 1) * DAY)
        ],
    )


def facets(memory: Memory, given: Nothing) -> shapes.Facets:  # noqa: ARG001
    found = filter_facets(memory.store, _MOST)
    parts = sorted(project_parts(memory.store), key=lambda part: -sum(part.items.values()))
    return shapes.Facets(
        kinds=dict(found.kinds),
        types={redact(name): number for name, number in found.types.items()},
        concepts={redact(name): number for name, number in found.concepts.items()},
        agents=dict(found.agents),
        projects={redact(part.project.name): sum(part.items.values()) for part in parts},
    )
