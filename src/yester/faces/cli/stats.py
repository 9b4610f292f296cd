"""`yester stats`: what there is, what language models cost, what was shown to agents."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import click

from yester.deliver.lines import ESTIMATE_NOTE
from yester.errors import ConfigError
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.llm.budget import DAY, Limits, day_of, known_prices, price_of
from yester.store.figures import (
    Discovered,
    Refinements,
    Shown,
    Spending,
    Spent,
    discovery_totals,
    refinement_totals,
    shown_totals,
    spending_by_day,
    spent_since,
)
from yester.tables import load_table
from yester.text.document import tokens_of_length


@click.command("stats")
@click.option("--days", type=click.IntRange(1, 3650), default=7, show_default=True,
              help="How far back, today included.")  # fmt: skip
@click.option("--prices", is_flag=True, help="Show the prices that are known, and nothing else.")
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, days: int, prices: bool, as_json_: bool) -> None:
    """Show what the memory holds, what language models have cost, and what agents were shown.

    Costs are by day (UTC), model and purpose (with the version of what is asked); calls that were
    not made or could not be used are counted with the reason. Discovery tokens are what an item was
    made from, read tokens what it costs to read.
    """
    if prices:
        _prices(as_json_)
        return
    since = day_of(app.now) - (days - 1) * DAY
    store = app.reading
    limits = Limits.from_config(app.config)
    today = spent_since(store, day_of(app.now), app.now)
    told: dict[str, Any] = {
        "days": days,
        "items": dict(store.totals("item", by=("kind",))),
        "llm": _llm(app),
        "limits": {
            "dollars": limits.dollars,
            "tokens": limits.tokens,
            "in_flight": limits.in_flight,
        },
        "today": _rounded(today),
        "refined": refinement_totals(store, since)._asdict(),
        "spend": [_rounded(row) for row in spending_by_day(store, since)],
        "distilled": [_read(row) for row in discovery_totals(store)],
        "shown": [row._asdict() for row in shown_totals(store, since)],
    }
    if as_json_:
        print_json(told)
        return
    items = told["items"]
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(items.items()))
    click.echo(f"items      {sum(items.values()):,}" + (f" ({kinds})" if kinds else ""))
    _print_llm(told["llm"])
    if told["llm"]["provider"] != "none" or today.tokens:
        click.echo(
            f"today      ${today.cost:.4f} of ${limits.dollars:.2f}, {today.tokens:,} of "
            f"{limits.tokens:,} tokens"
        )
    _print_refined(refinement_totals(store, since), days)
    _print_spending(spending_by_day(store, since), days)
    _print_economics(discovery_totals(store), shown_totals(store, since), days)


def _rounded(row: Spent | Spending) -> dict[str, Any]:
    return {**row._asdict(), "cost": round(row.cost, 6)}


def _llm(app: App) -> dict[str, Any]:
    """What is set, and what is wrong with it: nothing is asked to find out."""
    told: dict[str, Any] = {
        "provider": app.config["llm.provider"], "model": None, "price": None, "problem": None,
    }  # fmt: skip
    if told["provider"] == "none":
        return told
    from yester.llm.client import open_model

    try:
        model = open_model(app.config)
        if model is not None:
            told["model"] = model.name
            told["price"] = price_of(model, app.config.text("llm.price"))
    except ConfigError as error:
        told["problem"] = str(error)
    return told


def _print_llm(llm: dict[str, Any]) -> None:
    if llm["provider"] == "none":
        click.echo("llm        none is set; nothing is sent and nothing costs anything")
        return
    price = llm["price"]
    click.echo(
        f"llm        {llm['provider']}" + (f", {llm['model']}" if llm["model"] else "")
        + (f" (${price.read:.2f} in and ${price.written:.2f} out per million tokens)"
           if price else "")
    )  # fmt: skip
    if llm["problem"]:
        click.echo(f"           not used: {llm['problem']}")


def _print_refined(refined: Refinements, days: int) -> None:
    if not refined.turns and not refined.kept:
        return
    click.echo(
        f"refined    {count(refined.turns, 'turn')} in {count(days, 'day')}, {refined.kept:,} kept "
        "as found"
    )
    if refined.reason:
        click.echo(f"           the last of these: {refined.reason}")


def _print_spending(rows: list[Spending], days: int) -> None:
    if not rows:
        return
    click.echo(f"\nspent in {count(days, 'day')} (UTC)")
    groups: defaultdict[tuple[str, str, str], list[Spending]] = defaultdict(list)
    for row in rows:
        groups[row.day, row.model, row.purpose].append(row)
    for (day, model, purpose), same in groups.items():
        calls = sum(row.calls for row in same)
        read, written = sum(r.tokens_in for r in same), sum(r.tokens_out for r in same)
        click.echo(
            f"  {day}  {model}  {purpose}  {count(calls, 'call')}, {read:,} tokens in, "
            f"{written:,} out, ${sum(row.cost for row in same):.4f}"
        )
        wasted = [f"{r.calls:,} {r.outcome or 'under way'}" for r in same if r.outcome != "ok"]
        if wasted:
            click.echo(f"              of these {', '.join(wasted)}")


def _read(row: Discovered) -> dict[str, Any]:
    return {
        "kind": row.kind, "items": row.items, "discovery_tokens": row.discovery_tokens,
        "read_tokens": tokens_of_length(row.characters),
    }  # fmt: skip


def _print_economics(distilled: list[Discovered], shown: list[Shown], days: int) -> None:
    if distilled:
        click.echo("\nmade from what was found out, and what reading it costs")
    for row in distilled:
        read = tokens_of_length(row.characters)
        click.echo(
            f"  {row.kind:<12} {count(row.items, 'item')}: {row.discovery_tokens:,} discovery "
            f"tokens, {read:,} to read; {row.discovery_tokens // row.items:,} and "
            f"{read // row.items:,} each"
        )
    if shown:
        click.echo(f"\nshown to agents in {count(days, 'day')}")
    for one in shown:
        click.echo(
            f"  {one.event:<16} {count(one.times, 'time')}, {count(one.items, 'line')}: "
            f"{one.tokens:,} tokens read, of items made from {one.discovery_tokens:,}; "
            f"{one.tokens // one.times:,} and {one.discovery_tokens // one.times:,} each time"
        )
    if distilled or shown:
        click.echo(ESTIMATE_NOTE)


def _prices(as_json_: bool) -> None:
    prices, as_of = known_prices(), load_table("prices")["as_of"]
    if as_json_:
        print_json({"as_of": as_of, "dollars_per_million": prices})
        return
    click.echo(f"dollars for a million tokens in and out, as of {as_of}; llm.price goes over it")
    for name, price in prices.items():
        click.echo(f"  {name:<24} {price.read:>6.2f} {price.written:>7.2f}")
