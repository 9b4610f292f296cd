"""`yester status`: numbers about the memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from yester.cli.app import App, count, pass_app, print_json


@click.command("status")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, as_json_: bool) -> None:
    """Show what the memory holds, how big it is and what waits to be taken in."""
    counts = app.reading.counts()
    status: dict[str, Any] = {
        "home": str(app.home),
        "spool": spool(app.home, time.time()),
        "events": counts.events,
        "skipped": dict(counts.skipped),
        "items": dict(counts.items),
        "projects": counts.projects,
        "sessions": counts.sessions,
        "transcripts": counts.sources,
        "vectors": {"done": counts.vectors, "waiting": 0},
        "lag_ms": {"p50": None, "p99": None},
        "worker": {"running": False},
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
        click.echo(f"from         {app.day(counts.oldest)} to {app.day(counts.newest)}")
    click.echo(f"size         {counts.bytes / 1e6:,.1f} MB")
    if counts.skipped:
        most = sorted(counts.skipped.items(), key=lambda pair: -pair[1])[:8]
        click.echo("left out     " + ", ".join(f"{number:,} {reason}" for reason, number in most))
    if not total:
        click.echo("Nothing is indexed yet. Run: yester index")


def spool(home: Path, now: float) -> dict[str, Any]:
    """What the hooks have left and nobody has taken in yet."""
    try:
        waiting = [entry.stat().st_mtime for entry in (home / "spool" / "new").iterdir()]
    except OSError:
        waiting = []
    return {"waiting": len(waiting), "oldest_s": round(now - min(waiting), 1) if waiting else None}
