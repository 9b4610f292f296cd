"""`yester status`: numbers about the memory.

People look at it often: nothing is imported here that it does not need, nor the command line.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from yester.capture.question import ask_health
from yester.faces.cli.screen import count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from yester.memory import Memory


def describe_worker(home: Path) -> dict[str, Any]:
    """Is it running, and if so how it is."""
    found = ask_health(home)
    if found is not None:
        return {"running": True, **found}
    from yester.worker.process import seat_holder

    return {"running": False, "pid": seat_holder(home) or None}


def describe_status(memory: Memory) -> dict[str, Any]:
    from msgspec.structs import asdict

    from yester.store.figures import content_counts, middle_lag

    store = memory.reading
    counts = content_counts(store)
    return {
        "home": str(memory.home), "spool": _describe_spool(memory.home), "events": counts.events,
        "skipped": dict(counts.skipped), "items": dict(counts.items), "projects": counts.projects,
        "sessions": counts.sessions, "transcripts": counts.sources,
        "undistilled": {
            "sessions": store.totals("undistilled")[0][0],
            "of_hooks": store.totals("undistilled", where={"hooked": 1})[0][0],
        },
        "vectors": {"done": counts.vectors, "waiting": counts.unembedded},
        "lag_ms": asdict(middle_lag(store, 1_000)),
        "worker": describe_worker(memory.home), "spend": _describe_spending(memory),
        "bytes": counts.bytes,
        "oldest": counts.oldest / 1000 if counts.oldest else None,
        "newest": counts.newest / 1000 if counts.newest else None,
    }  # fmt: skip


def status_lines(memory: Memory, status: dict[str, Any]) -> Iterator[str]:
    from yester.clock import format_minute

    items, total = status["items"], sum(status["items"].values())
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(items.items()))
    yield f"home         {status['home']}"
    yield f"items        {total:,}" + (f" ({kinds})" if kinds else "")
    projects = count_noun(status["projects"], "project")
    yield f"sessions     {status['sessions']:,} in {projects}"
    yield f"transcripts  {status['transcripts']:,}"
    if status["oldest"] and status["newest"]:
        ends = (format_minute(round(status[name] * 1000)) for name in ("oldest", "newest"))
        yield f"from         {' to '.join(ends)}"
    yield f"size         {status['bytes'] / 1e6:,.1f} MB"
    if status["events"]:
        late = status["lag_ms"]
        yield (
            f"events       {status['events']:,}; recallable after {late['p50']} ms (half of them), "
            f"{late['p99']} ms (99 of 100)"
        )
    if left := status["undistilled"]["sessions"]:
        yield f"undistilled  {count_noun(left, 'session')}: yester distil --backfill"
    spool = status["spool"]
    if spool["waiting"] or spool["bad"]:
        yield f"spool        {spool['waiting']:,} waiting, {spool['bad']:,} unreadable"
    paid = status["spend"]
    if paid["today"] or memory.config["llm.provider"] != "none":
        yield f"spent today  ${paid['today']:.4f} of ${paid['limit']:.2f} (yester stats)"
    worker = status["worker"]
    yield "worker       " + (
        f"running, pid {worker['pid']}" if worker["running"] else "not running"
    )
    if status["skipped"]:
        most = sorted(status["skipped"].items(), key=lambda pair: -pair[1])[:8]
        yield "left out     " + ", ".join(f"{number:,} {reason}" for reason, number in most)
    if not total:
        yield "Nothing is indexed yet. Run: yester index"


def _describe_spool(home: Path) -> dict[str, Any]:
    """What the hooks have left and nobody has taken in yet, and what nobody can."""
    from yester.capture.homes import is_usual
    from yester.capture.spool import Spool, event_age, trusted_runtime

    runtime = trusted_runtime(os.environ, os.getuid())
    spool = Spool(home, runtime, is_usual(home, os.environ))
    waiting, now = spool.list_waiting(), time.time()
    return {
        "waiting": len(waiting),
        "oldest_s": round(max(event_age(path, now) for path in waiting), 1) if waiting else None,
        "bad": len(spool.list_bad()),
    }


def _describe_spending(memory: Memory) -> dict[str, float]:
    """Dollars for language models today (UTC), and how many there may be."""
    from yester.clock import DAY
    from yester.store.figures import spent_since

    now = memory.now
    today = spent_since(memory.reading, now // DAY * DAY, now)
    return {"today": round(today.cost, 6), "limit": memory.config.decimal("llm.daily_dollars")}
