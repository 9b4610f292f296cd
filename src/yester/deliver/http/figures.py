"""Numbers: what the memory holds, what was shown, what language models have cost."""

from __future__ import annotations

from yester.deliver.economics import HONEST, read_tokens
from yester.deliver.http import shapes
from yester.deliver.http.access import Access
from yester.deliver.http.parameters import Nothing, Within
from yester.distil.budget import DAY, Limits, day_of
from yester.redact import redact
from yester.store.base import Counts

_KEPT = 5.0  # seconds: counting everything reads everything
_MOST = 100  # types, concepts
_LAGS = 1_000


def stats(access: Access, given: Within) -> shapes.Stats:
    store = access.store
    counts = access.home.remembered("counts", _KEPT, store.counts)
    assert isinstance(counts, Counts)
    lags = sorted(store.lags(_LAGS))
    since = day_of(access.now) - (given.days - 1) * DAY
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
                read_tokens=read_tokens(row),
            )
            for row in store.discovered()
        ],
        shown=[shapes.ShownAt(**row._asdict()) for row in store.shown(since)],
        note=HONEST,
    )  # fmt: skip


def spend(access: Access, given: Within) -> shapes.Spend:
    store, config, today = access.store, access.config, day_of(access.now)
    limits, spent = Limits.of(config), store.spent(today, access.now)
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
            for row in store.spending(today - (given.days - 1) * DAY)
        ],
    )


def projects(access: Access, given: Nothing) -> shapes.Projects:  # noqa: ARG001
    return shapes.Projects(
        projects=[
            shapes.Project(
                name=redact(part.project.name), key=redact(part.project.key),
                root=part.project.root, parent=part.project.parent,
                items=sum(part.items.values()), kinds=dict(part.items), sessions=part.sessions,
                last=part.last,
            )
            for part in access.store.parts()
        ]
    )  # fmt: skip


def facets(access: Access, given: Nothing) -> shapes.Facets:  # noqa: ARG001
    found = access.store.facets(_MOST)
    parts = sorted(access.store.parts(), key=lambda part: -sum(part.items.values()))
    return shapes.Facets(
        kinds=dict(found.kinds),
        types={redact(name): number for name, number in found.types.items()},
        concepts={redact(name): number for name, number in found.concepts.items()},
        agents=dict(found.agents),
        projects={redact(part.project.name): sum(part.items.values()) for part in parts},
    )
