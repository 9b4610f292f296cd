"""`yester show`: items whole."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from yester.agents.descriptors import detect_session
from yester.errors import NotFound, StoreError
from yester.faces.cli.app import App, fenced_for_agents, pass_app, print_json
from yester.faces.cli.rows import as_json, print_full, print_index
from yester.model import ECHO, Feedback
from yester.recall.recall import make_hit

_PATIENCE = 0.2  # seconds for another writer


@click.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--format", "form", type=click.Choice(["index", "full"]), default="full",
              show_default=True, help="A line per item, or everything.")  # fmt: skip
@click.option("--json", "as_json_", is_flag=True, help="Print the items as JSON.")
@pass_app
@fenced_for_agents
def command(app: App, ids: tuple[str, ...], form: str, as_json_: bool) -> None:
    """Show items by ID, as `yester recall` prints them (#12 or 12), or by the client's own id."""
    found, missing = [], []
    for text in ids:
        number = text.removeprefix("#")
        items = (
            app.reading.get([int(number)]) if number.isdigit() else app.reading.find_by_ref(text)
        )
        found += items
        if not items:
            missing.append(text)
    hits = [make_hit(item, app.names) for item in found]
    if form == "full":
        _note(app, [one.id for one in hits])
    if as_json_:
        rows = [as_json(one, (), form == "full") for one in hits]
        print_json({"query": " ".join(ids), "hits": rows, "took_ms": 0})
    elif form == "full":
        print_full(app, hits)
    else:
        print_index(app, hits, "")
    for item in found:
        if item.status == ECHO:
            click.echo(
                f"#{item.id} repeats what the agent was shown: kept, and found by no search",
                err=True,
            )
        elif item.status != "active":
            click.echo(f"#{item.id} is {item.status}: yester memory show {item.id}", err=True)
    if missing:
        raise NotFound(f"no item {', '.join(missing)}; `yester recall` shows ids")


def _note(app: App, ids: list[int]) -> None:
    """Of what an agent was shown, somebody wanted the whole: it was of use. Not worth waiting for,
    and no reason to fail where nothing can be written."""
    store = app.reading
    shown = [id_ for id_, used in store.texts(ids).used.items() if used.shown or used.listed]
    if not shown:
        return
    session = store.session(*detect_session(os.environ))  # an agent's shell may say which it is
    number = session.id if session else 0
    with suppress(StoreError, OSError), store.transaction("ledger", patience=_PATIENCE):
        store.append([Feedback(id_, "fetched", app.now, number) for id_ in shown])
