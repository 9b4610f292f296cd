"""`yester remember`: keep something for good."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from yester.errors import NotFound, UsageError, YesterError
from yester.faces.cli.app import App, pass_app, print_json
from yester.faces.cli.memory.editor import edited, text_of
from yester.faces.cli.memory.said import by, here, line, row, why_option
from yester.memories.categories import CATEGORIES, get_category
from yester.memories.content import draft_content, parse_settings
from yester.memories.lifecycle import find_memory
from yester.memories.memory import EDIT_KEYS, GLOBAL, parse_edit_form, render_edit_form
from yester.memories.remember import Draft, Kept, remember

_DONE = {
    "created": "remembered", "updated": "added to", "known": "known already:",
    "refused": "stays as it is:",
}  # fmt: skip


@click.command("remember")
@click.argument("text", nargs=-1)
@click.option(
    "--type",
    "type_",
    metavar="TYPE",
    default="",
    help=f"{', '.join(CATEGORIES)}; without it, what the text obviously is, else a note.",
)
@click.option("--title", metavar="TEXT", default="", help="The title (default: first sentence).")
@click.option("--tags", multiple=True, metavar="A,B", help="Tags (repeatable).")
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file it is about (repeatable)."
)
@click.option("--global", "everywhere", is_flag=True, help="It holds in all projects.")
@click.option(
    "--path",
    metavar="GLOB",
    default="",
    help="It holds for these files of the project, e.g. src/db/** or *.sql.",
)
@click.option("--project", "-p", metavar="NAME", help="Not that of the current folder.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field of the type's content (repeatable; lists grow).",
)
@click.option("--confidence", type=float, default=1.0, metavar="0..1", help="How sure it is.")
@click.option("--update", metavar="MEMORY", help="Put it into this memory.")
@click.option("--supersedes", metavar="MEMORY", help="Let it take the place of this memory.")
@click.option("--edit", "in_editor", is_flag=True, help="Fill in the form in $EDITOR first.")
@why_option
@click.option("--json", "as_json_", is_flag=True, help="Print as JSON.")
@pass_app
def command(
    app: App, /, text: tuple[str, ...], project: str | None, everywhere: bool, update: str | None,
    supersedes: str | None, in_editor: bool, why: str, as_json_: bool, **given: Any,
) -> None:  # fmt: skip
    """Remember TEXT: a decision, a rule for your agents, anything that must not be lost.

    Without TEXT it is read from the standard input; on a terminal, $EDITOR opens. "Always …" and
    "never …" become rules, which every session is told; "we decided …" a decision, "I prefer …" a
    preference. What follows "because" is kept as the reason.
    """
    draft = Draft(
        _said(text, in_editor), given["type_"], given["title"], tags=given["tags"],
        files=given["files"], scope="global" if everywhere else "", path=given["path"],
        confidence=given["confidence"],
    )  # fmt: skip
    if given["settings"]:
        if not draft.type:
            raise UsageError("--set needs --type: fields belong to a category")
        draft = replace(draft, content=parse_settings(get_category(draft.type), given["settings"]))
    file: Path | None = None
    if in_editor or not (text or draft.text or draft.content):
        draft, file = _by_form(app, draft)
    try:
        kept = remember(
            app.store, draft, GLOBAL if draft.scope == "global" else here(app, project),
            by(app, why),
            update=find_memory(app.store, update).item.id if update else 0,
            supersedes=find_memory(app.store, supersedes).item.id if supersedes else 0,
        )  # fmt: skip
    except YesterError as error:
        if file is None:
            raise
        raise type(error)(f"{error}; your text is kept in {file}") from None
    if file is not None:
        file.unlink()
    _print(app, kept, as_json_)
    if kept.done == "refused":
        click.get_current_context().exit(1)


def _said(words: tuple[str, ...], in_editor: bool) -> str:
    if words and words != ("-",):
        return " ".join(words)
    if in_editor or (not words and sys.stdin.isatty()):
        return ""
    text = text_of("-")
    if not text.strip():
        raise UsageError('there is nothing to remember; say it: yester remember "…"')
    return text


def _by_form(app: App, draft: Draft) -> tuple[Draft, Path]:
    category = get_category(draft.type or "note")
    content = draft_content(category, draft.text, draft.content)
    empty = {
        "title": draft.title, "type": category.name, "tags": list(draft.tags),
        "files": list(draft.files), "confidence": draft.confidence,
        "scope": draft.scope or ("path" if draft.path else "project"), "path": draft.path,
        "content": {category.text: "", **content},
    }  # fmt: skip
    (app.home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    before = render_edit_form(
        empty, f"A new {category.name}: {category.help}.\nClose it unchanged, and nothing happens."
    )
    text, file = edited(app.home, before)
    if not text.strip() or text == before:
        file.unlink()
        raise NotFound("nothing was written, so nothing is remembered")
    try:
        values = parse_edit_form(text)
    except UsageError as error:
        raise UsageError(f"{error}; your text is kept in {file}") from None
    new = Draft(**{name: values[name] for name in (*EDIT_KEYS, "content") if name in values})
    return new, file


def _print(app: App, kept: Kept, as_json_: bool) -> None:
    choice = kept.choice
    alike = [one for one in (choice.best, *choice.others) if one and one.memo != kept.memo]
    if as_json_:
        print_json({
            "done": kept.done, "action": choice.action, "compared": choice.compared,
            "replaced": kept.replaced.item.id if kept.replaced else 0,
            "alike": [one.memo.item.id for one in alike], "suggested_tags": kept.suggested,
            **row(app, kept.memo),
        })  # fmt: skip
        return
    click.echo(f"{_DONE[kept.done]} {line(app, kept.memo)}")
    if kept.replaced:
        click.echo(f"    replaces {line(app, kept.replaced)}")
    for tag, other in kept.suggested.items():
        id_ = kept.memo.item.id
        click.echo(
            f"    tag {other} is in use; to take it instead of {tag}: "
            f"yester memory edit {id_} --tag {other} --untag {tag}"
        )
    replaced = kept.replaced.item.id if kept.replaced else 0
    for one in [] if kept.done != "created" else alike:
        if one.memo.item.id != replaced:
            click.echo(f"    like {line(app, one.memo)}")
    if kept.done == "created" and any(one.memo.item.id != replaced for one in alike):
        old, new = alike[0].memo.item.id, kept.memo.item.id
        click.echo(f"    if it takes the place of one: yester memory supersede {old} {new}")
