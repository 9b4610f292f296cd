"""`yester memory supersede`: one memory in the place of another."""

from __future__ import annotations

import click

from yester.errors import NotFound
from yester.faces.cli.app import App, pass_app
from yester.faces.cli.memory.said import by, done, why_option
from yester.memories import lifecycle
from yester.memories.remember import remember_instead
from yester.model import Memo


@click.command("supersede")
@click.argument("old")
@click.argument("new", nargs=-1, required=True)
@why_option
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, old: str, new: tuple[str, ...], why: str, as_json_: bool) -> None:
    """Put NEW in the place of OLD: a memory there is, or the text of one, which then has the type,
    scope, tags and files of OLD. OLD stays as history of NEW."""
    memo = lifecycle.find_memory(app.store, old)
    text = " ".join(new)
    known = _known(app, text)
    if known is not None:
        _, newer = lifecycle.supersede_memory(app.store, memo.item.id, known.item.id, by(app, why))
    else:
        newer = remember_instead(app.store, memo, text, by(app, why)).memo
    done(app, newer, f"superseded #{memo.item.id}:", as_json_)


def _known(app: App, text: str) -> Memo | None:
    if " " in text:
        return None
    try:
        return lifecycle.find_memory(app.store, text)
    except NotFound:
        if text.removeprefix("#").isdecimal():
            raise
        return None
