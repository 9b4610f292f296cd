"""`yester timeline`: what happened around something."""

from __future__ import annotations

import time
from itertools import groupby
from typing import Any

import click

from yester.clock import DAY, format_minute
from yester.deliver.lines import item_icon
from yester.errors import NotFound
from yester.faces.cli.app import (
    App,
    fenced_for_agents,
    filter_options,
    pass_app,
    print_json,
    searched,
)
from yester.faces.cli.rows import MARK, as_json, names, print_full, title
from yester.model import Hit
from yester.recall.timeline import Timeline, build_timeline
from yester.text.document import reading_cost


@click.command("timeline")
@click.argument("anchor", nargs=-1)
@click.option("--query", metavar="TEXT",
              help="Around what fits this best; with `latest`, the newest that fits.")  # fmt: skip
@click.option("--before", "-b", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many items before it.")  # fmt: skip
@click.option("--after", "-a", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="How many items after it.")  # fmt: skip
@filter_options
@click.option("--format", "form", type=click.Choice(["index", "full"]), default="index",
              show_default=True, help="A line per item, or everything.")  # fmt: skip
@click.option("--json", "as_json_", is_flag=True, help="Print the items as JSON.")
@pass_app
@fenced_for_agents
def command(
    app: App, /, anchor: tuple[str, ...], query: str | None, before: int, after: int, form: str,
    as_json_: bool, **given: Any,
) -> None:  # fmt: skip
    """Show what happened before and after ANCHOR, in its project.

    ANCHOR is an item's id (12 or #12), S and the id of a session (its first item), a time (3d,
    2026-03-01T14:00), latest (the default), or words: what fits them best. ▶ marks it.
    """
    began = time.perf_counter()
    text = " ".join(anchor)
    window = app.config.number("recency_window_days") * DAY
    try:
        found = build_timeline(
            app.reading, text or None, before, after, searched(app, given, query or text), app.now,
            query=query or "", everywhere=given["everywhere"], window=window,
            answer=app.memory.answer,
        )  # fmt: skip
    except NotFound:
        if as_json_:
            _print_json(query or text, None, False, began)
        raise
    if as_json_:
        _print_json(query or text, found, form == "full", began)
    elif form == "full":
        print_full(app, list(found), found.anchor.id if found.anchor else 0)
    else:
        _print_days(app, found)
    if not found:
        if not as_json_:
            click.echo("Nothing around it. Try other filters, or --all-projects.", err=True)
        click.get_current_context().exit(1)


def _print_json(text: str, found: Timeline | None, full: bool, began: float) -> None:
    print_json({
        "query": text,
        "anchor": found.anchor.id if found and found.anchor else None,
        "hits": [as_json(one, (), full) for one in found or ()],
        "took_ms": round((time.perf_counter() - began) * 1000, 2),
    })  # fmt: skip


def _print_days(app: App, found: Timeline) -> None:
    """A line per item under its day and session; a point in time is a line of its own."""
    _print_part(app, found.before if found.anchor is None else list(found), found.anchor)
    if found.anchor is None and found:
        moment = format_minute(int(found.epoch * 1000))
        click.echo(f"\n{MARK} {click.style(moment, bold=True)}\n")
        _print_part(app, found.after, None)


def _print_part(app: App, hits: list[Hit] | tuple[Hit, ...], anchor: Hit | None) -> None:
    def heading(hit: Hit) -> str:
        day = format_minute(int(hit.epoch * 1000))[:10]
        told = names(app, hit.project, hit.session[:8], hit.agent)
        return f"{'undated' if day == '-' else day}  {told}"

    for number, (head, group) in enumerate(groupby(hits, heading)):
        click.echo(("\n" if number else "") + click.style(head, bold=True))
        for hit in group:
            mark = MARK if anchor is not None and hit.id == anchor.id else " "
            clock = format_minute(int(hit.epoch * 1000))[11:]
            click.echo(
                f"{mark} {item_icon(hit.kind, hit.type)} #{hit.id}  {clock}  {title(app, hit, ())}"
                f"  ~{reading_cost(hit)}t"
            )
