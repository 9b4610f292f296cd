"""`yester recall`: ask the memory."""

from __future__ import annotations

import time
from typing import Any

import click

from yester.errors import UsageError
from yester.faces.cli.app import (
    App,
    fenced_for_agents,
    filter_options,
    pass_app,
    print_json,
    searched,
)
from yester.faces.cli.digest import make_digest, print_digest
from yester.faces.cli.rows import as_explained, as_json, print_explained, print_full, print_index
from yester.recall.recall import ORDERS, Asked
from yester.store import maintenance_of
from yester.text.terms import query_terms

# How far the search had to go, where it was farther than the words themselves.
_REACHED = {
    "prefix": "No such word; these begin alike:",
    "meaning": "None of these has such a word; they are nearest in meaning:",
    "recent": "The question names nothing to look for; the newest:",
}

_PATIENCE = 0.15  # seconds for git; what is late is left out


@click.command("recall")
@click.argument("query", nargs=-1)
@filter_options
@click.option("--limit", "-n", type=click.IntRange(0, 1000), default=10, show_default=True,
              help="At most this many hits.")  # fmt: skip
@click.option("--offset", type=click.IntRange(0), default=0, help="Leave out the first ones.")
@click.option("--order", type=click.Choice(ORDERS), default="relevance", show_default=True)
@click.option("--format", "form", type=click.Choice(["index", "full"]), default="index",
              show_default=True, help="A line per hit, or everything.")  # fmt: skip
@click.option("--raw", is_flag=True,
              help="Hits with their full text, as --format full; never a digest.")  # fmt: skip
@click.option("--digest", "wanted", is_flag=True,
              help="First what the hits say together: decisions, attempts, files, warnings, what "
              "is open. A language model is asked only if config.toml names one.")  # fmt: skip
@click.option("--json", "as_json_", is_flag=True, help="Print the hits as JSON.")
@click.option(
    "--explain", is_flag=True, help="Show the factors of every score, and what was left out."
)
@pass_app
@fenced_for_agents
def command(
    app: App, /, query: tuple[str, ...], limit: int, offset: int, order: str, form: str, raw: bool,
    wanted: bool, as_json_: bool, explain: bool, **given: Any,
) -> None:  # fmt: skip
    """Search everything that was said and done; without QUERY, the newest that pass the filters.

    A row shows what it is (❯ prompt, · message, ▤ plan or todo list, Σ summary, ★ memory; of
    observations ◆ decision, ✔ bugfix, ✚ feature, ↻ refactor, △ change, ○ discovery, ● any other),
    its id for `yester show`, when, how well it fits (0 to 1), and what it would cost a model to
    read whole (~40t = about 40 tokens).
    """
    if raw and wanted:
        raise UsageError("--raw and --digest exclude each other; leave out one of them")
    text = " ".join(query)
    began = time.perf_counter()
    filters = searched(app, given, text)
    answer = app.memory.answer(Asked(text, filters, limit, offset, order, explain, app.now))
    hits = answer.hits
    if outdated := maintenance_of(app.reading).stale():
        click.echo(f"yester: {outdated}; run: yester reindex", err=True)
    took = (time.perf_counter() - began) * 1000
    full = raw or form == "full"
    made = make_digest(app, text, hits) if wanted else None
    if as_json_:
        terms = query_terms(text)
        rows = [as_json(hit, terms, full) for hit in hits]
        more: dict[str, object] = {} if made is None else {"digest": made}
        if explain:
            more["explain"] = as_explained(answer)
        print_json({"query": text, "hits": rows, "took_ms": round(took, 2), **more})
    else:
        if made is not None and hits:
            print_digest(app, made)
        if said := _REACHED.get(answer.reach):
            click.echo(said, err=True)
        if full:
            print_full(app, hits, weights=answer.weights)
        elif hits:
            print_index(app, hits, text, answer.weights)
        if explain:
            print_explained(answer)
    if hits:
        return
    if not as_json_:
        empty = not app.reading.totals("item")[0][0]
        own = filters.projects and not given["projects"]
        click.echo(
            "Nothing is indexed yet. Run: yester index" if empty
            else "Nothing found in this project. To look in all of them: --all-projects" if own
            else "Nothing found. Try fewer or other words, or fewer filters.",
            err=True,
        )  # fmt: skip
    click.get_current_context().exit(1)
