"""`yester status`: numbers about the memory."""

from __future__ import annotations

import os
import time
from typing import Any

import click

from yester.capture.homes import is_usual
from yester.capture.spool import Spool, age, trusted_runtime
from yester.clock import format_minute
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.faces.cli.worker import summary
from yester.store.figures import capture_lags, content_counts, spent_since


@click.command("status")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, as_json_: bool) -> None:
    """Show what the memory holds, how big it is and what waits to be taken in."""
    counts = content_counts(app.reading)
    status: dict[str, Any] = {
        "home": str(app.home),
        "spool": spool(app, time.time()),
        "events": counts.events,
        "skipped": dict(counts.skipped),
        "items": dict(counts.items),
        "projects": counts.projects,
        "sessions": counts.sessions,
        "transcripts": counts.sources,
        "undistilled": {
            "sessions": app.reading.totals("undistilled")[0][0],
            "of_hooks": app.reading.totals("undistilled", where={"hooked": 1})[0][0],
        },
        "vectors": {"done": counts.vectors, "waiting": counts.unembedded},
        "lag_ms": lag(capture_lags(app.reading, 1_000)),
        "worker": summary(app),
        "spend": spend(app),
        "bytes": counts.bytes,
        "oldest": counts.oldest / 1000 if counts.oldest else None,
        "newest": counts.newest / 1000 if counts.newest else None,
    }
    if as_json_:
        print_json(status)
        return
    total = sum(counts.items.values())
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items.items()))
    click.echo(f"home         {app.home}")
    click.echo(f"items        {total:,}" + (f" ({kinds})" if kinds else ""))
    click.echo(f"sessions     {counts.sessions:,} in {count(counts.projects, 'project')}")
    click.echo(f"transcripts  {counts.sources:,}")
    if counts.oldest and counts.newest:
        click.echo(f"from         {format_minute(counts.oldest)} to {format_minute(counts.newest)}")
    click.echo(f"size         {counts.bytes / 1e6:,.1f} MB")
    if counts.events:
        late = status["lag_ms"]
        click.echo(
            f"events       {counts.events:,}; recallable after {late['p50']} ms (half of them), "
            f"{late['p99']} ms (99 of 100)"
        )
    if left := status["undistilled"]["sessions"]:
        click.echo(f"undistilled  {count(left, 'session')}: yester distil --backfill")
    waiting = status["spool"]
    if waiting["waiting"] or waiting["bad"]:
        click.echo(f"spool        {waiting['waiting']:,} waiting, {waiting['bad']:,} unreadable")
    paid = status["spend"]
    if paid["today"] or app.config["llm.provider"] != "none":
        click.echo(f"spent today  ${paid['today']:.4f} of ${paid['limit']:.2f} (yester stats)")
    found = status["worker"]
    click.echo(
        "worker       " + (f"running, pid {found['pid']}" if found["running"] else "not running")
    )
    if counts.skipped:
        most = sorted(counts.skipped.items(), key=lambda pair: -pair[1])[:8]
        click.echo("left out     " + ", ".join(f"{number:,} {reason}" for reason, number in most))
    if not total:
        click.echo("Nothing is indexed yet. Run: yester index")


def spool(app: App, now: float) -> dict[str, Any]:
    """What the hooks have left and nobody has taken in yet, and what nobody can."""
    runtime = trusted_runtime(os.environ, os.getuid())
    found = Spool(app.home, runtime, is_usual(app.home, os.environ))
    waiting = found.waiting()
    return {
        "waiting": len(waiting),
        "oldest_s": round(max(age(path, now) for path in waiting), 1) if waiting else None,
        "bad": len(found.bad()),
    }


def spend(app: App) -> dict[str, float]:
    """Dollars for language models today (UTC), and how many there may be."""
    from yester.llm.budget import day_of

    today = spent_since(app.reading, day_of(app.now), app.now)
    return {"today": round(today.cost, 6), "limit": app.config.decimal("llm.daily_dollars")}


def lag(found: list[int]) -> dict[str, int | None]:
    """From the hook to the store, over the last events."""
    if not found:
        return {"p50": None, "p99": None}
    ordered = sorted(found)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100]}
