"""`yester memory candidate`: what would become of a text, without writing anything."""

from __future__ import annotations

import time
from typing import Any

import click

from yester.faces.cli.app import App, pass_app, print_json
from yester.faces.cli.memory.said import here, line
from yester.memories.categories import CATEGORIES, get_category
from yester.memories.content import clean_text
from yester.memories.memory import GLOBAL
from yester.memories.remember import Likeness, find_candidate
from yester.memories.tags import normalise_tags


@click.command("candidate")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--type",
    "type_",
    required=True,
    metavar="TYPE",
    help=f"The category it would have: {', '.join(CATEGORIES)}.",
)
@click.option("--tags", multiple=True, metavar="A,B", help="Its tags (repeatable).")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file (repeatable).")
@click.option("--project", "-p", metavar="NAME", help="Not that of the current folder.")
@click.option("--global", "everywhere", is_flag=True, help="Among what holds everywhere.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["index", "full"]),
    default="index",
    show_default=True,
    help="A line per memory; with its text.",
)
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(
    app: App, text: tuple[str, ...], type_: str, tags: tuple[str, ...], files: tuple[str, ...],
    project: str | None, everywhere: bool, form: str, as_json_: bool,
) -> None:  # fmt: skip
    """Say what TEXT would do among the memories of its category, and what it was compared with.

    CREATE: nothing is like it. UPDATE, UPDATE_OR_DELETE: there is one about the same. NOOP: it is
    known. A memory is like it when one of its tags is named, or a word of its title and the
    beginning of another.
    """
    category, said = get_category(type_), clean_text(" ".join(text))
    began = time.perf_counter()
    where = GLOBAL if everywhere else here(app, project)
    choice = find_candidate(app.reading, category, said, where.key, normalise_tags(tags), files)
    found = [one for one in (choice.best, *choice.others) if one is not None]
    if as_json_:
        rows = [_row(one) for one in found]
        print_json({
            "action": choice.action, "type": category.name, "query": said,
            "candidate": rows[0] if rows else None, "others": rows[1:],
            "compared": choice.compared, "deletable": category.deletable,
            "took_ms": round((time.perf_counter() - began) * 1000, 2),
        })  # fmt: skip
        return
    memories = "memory" if choice.compared == 1 else "memories"
    click.echo(f"{choice.action}  (compared with {choice.compared} {memories} of this category)")
    for one in found:
        click.echo(f"  {line(app, one.memo)}")
        click.echo(f"      {one.points} points: {'; '.join(one.reasons)}")
        if form == "full":
            click.echo("".join(f"      {text}\n" for text in one.memo.item.body.splitlines()))


def _row(one: Likeness) -> dict[str, Any]:
    item = one.memo.item
    return {
        "id": item.id, "slug": one.memo.slug, "title": item.title, "points": one.points,
        "same": one.same, "tags": one.tags, "title_words": one.words, "alike": one.alike,
    }  # fmt: skip
