"""`yester memory edit`: change what a memory says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from yester.errors import UsageError, YesterError
from yester.faces.cli.app import App, pass_app
from yester.faces.cli.memory.editor import edited, text_of
from yester.faces.cli.memory.said import by, done, here, why_option
from yester.memories import lifecycle
from yester.memories.memory import (
    EDITABLE,
    GLOBAL,
    parse_edit_form,
    plain_form,
    render_edit_form,
)
from yester.model import Memo


@click.command("edit")
@click.argument("memory")
@click.option("--title", metavar="TEXT", help="Another title.")
@click.option("--type", "type_", metavar="TYPE", help="Another category.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field of the content (repeatable; a list takes all values given).",
)
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Add a tag (repeatable).")
@click.option("--untag", "untags", multiple=True, metavar="NAME", help="Take a tag away.")
@click.option("--file", "files", multiple=True, metavar="PATH", help="Add a file (repeatable).")
@click.option("--unfile", "unfiles", multiple=True, metavar="PATH", help="Take a file away.")
@click.option("--confidence", type=float, metavar="0..1", help="How sure it is.")
@click.option("--global", "everywhere", is_flag=True, help="Let it hold everywhere.")
@click.option("--project", "-p", metavar="NAME", help="Let it hold in this project.")
@click.option("--path", metavar="GLOB", help="Let it hold for these files of its project.")
@click.option(
    "--from",
    "source",
    metavar="FILE",
    help="The whole in the form an editor gets it; - is the standard input.",
)
@why_option
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(app: App, /, memory: str, source: str | None, why: str, as_json_: bool,
            **given: Any) -> None:  # fmt: skip
    """Change MEMORY by options or, without any, in $EDITOR. Unchanged, nothing is written.

    What somebody else changes meanwhile is kept; where both have changed the same, you are told.
    """
    memo = lifecycle.find_memory(app.store, memory)
    if any(given.values()):
        if source:
            raise UsageError("--from has the whole; leave out the other options")
        edit = lifecycle.Edit(
            title=given["title"] or None, type=given["type_"], settings=given["settings"],
            confidence=given["confidence"], add_tags=given["tags"], drop_tags=given["untags"],
            add_files=given["files"], drop_files=given["unfiles"],
            place=_place(app, memo.item.project, given),
        )  # fmt: skip
        new = lifecycle.edit_memory(app.store, memo.item.id, edit.apply_to, by(app, why))
    else:
        new = _by_form(app, memo, source, why)
    same = new.version == memo.version
    done(app, new, "unchanged" if same else "changed", as_json_)


def _place(app: App, own: str, given: Mapping[str, Any]) -> Mapping[str, str]:
    if sum(map(bool, (given["everywhere"], given["project"] or given["path"]))) > 1:
        raise UsageError("--global and --project or --path exclude each other; name one of them")
    if given["everywhere"]:
        return {"scope": "global", "path": "", "project": GLOBAL.key}
    if not (given["project"] or given["path"]):
        return {}
    if given["project"] or own == GLOBAL.key:
        own = here(app, given["project"]).key
    path = given["path"] or ""
    return {"scope": "path" if path else "project", "path": path, "project": own}


def _by_form(app: App, memo: Memo, source: str | None, why: str) -> Memo:
    have = plain_form(memo)
    base = {name: have[name] for name in EDITABLE}
    head = (
        f"Memory #{memo.item.id}. Save and close to keep your changes; close it unchanged, or "
        "empty,\nand nothing happens."
    )
    before = render_edit_form(base, head)
    kept: Path | None = None
    if source:
        text = text_of(source)
    else:
        text, kept = edited(app.home, before)
    if not text.strip() or text == before:
        if kept:
            kept.unlink()
        return memo
    try:
        mine = parse_edit_form(text, source or "the text")
        if mine.get("scope", have["scope"]) != have["scope"]:
            mine["project"] = GLOBAL.key if mine["scope"] == "global" else here(app).key
        new = lifecycle.edit_memory(
            app.store, memo.item.id, lambda _: mine, by(app, why), base=base
        )
    except YesterError as error:
        if kept is None:
            raise
        again = f"your text is kept: yester memory edit {memo.item.id} --from {kept}"
        raise type(error)(f"{error}; {again}") from None
    if kept:
        kept.unlink()
    return new
