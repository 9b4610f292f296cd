"""The commands that write down what a memory says: remember, memory edit, memory supersede."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from yester.errors import NotFound, NotYours, UsageError, YesterError
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.memories import format_memo, memo_as_json, show_change
from yester.memories import lifecycle
from yester.memories import memory as forms
from yester.memories.categories import get_category
from yester.memories.memory import GLOBAL, Plain, normalise_tags
from yester.memories.remember import (
    Draft,
    Kept,
    Likeness,
    guess_type,
    remember,
    remember_instead,
)
from yester.model import Memo, replace

T = TypeVar("T")
_DONE = {
    "created": "remembered", "updated": "added to", "known": "known already:",
    "refused": "stays as it is:",
}  # fmt: skip


@command("remember")
def remember_command(
    app: App, /, text: tuple[str, ...], project: str | None, everywhere: bool,
    settings: tuple[str, ...], update: str | None, supersedes: str | None, in_editor: bool,
    why: str, enforce: str | None, **given: Any,
) -> Output:  # fmt: skip
    """Remember TEXT: a decision, a rule for your agents, anything that must not be lost.

    Without TEXT it is read from the standard input; on a terminal, $EDITOR opens. "Always …" and
    "never …" become rules, which every session is told; "we decided …" a decision, "I prefer …" a
    preference. What follows "because" is kept as the reason.
    """
    if settings and not given["type"]:
        raise UsageError("--set needs --type: fields belong to a category")
    if enforce:
        given["type"], settings = given["type"] or "rule", (*settings, f"enforce={enforce}")
    content = get_category(given["type"]).parse_settings(settings) if settings else {}
    _check_enforcement(content, given["path"])
    scope = "global" if everywhere else ""
    draft = Draft(_read_words(text, in_editor), content=content, scope=scope, **given)

    def find_id(name: str | None) -> int:
        return lifecycle.find_memory(app.store, name).item.id if name else 0

    def keep_draft(draft: Draft) -> Kept:
        is_rule = (draft.type or guess_type(draft.text)) == "rule"
        if is_rule and app.memory.origin == "user" and not app.speaks_for_user:
            draft = replace(draft, status="proposed")  # nobody says that it is the user's word
        place = GLOBAL if draft.scope == "global" else app.find_project(project)
        old = {"update": find_id(update), "supersedes": find_id(supersedes)}
        return remember(app.store, draft, place, app.memory.by(why), **old)

    by_form = in_editor or not (text or draft.text or draft.content)
    kept = _fill_in_draft(app, draft, keep_draft) if by_form else keep_draft(draft)
    if kept is None:
        raise NotFound("nothing was written, so nothing is remembered")
    choice = kept.choice
    alike = [one for one in (choice.best, *choice.others) if one and one.memo != kept.memo]
    value = {
        "done": kept.done, "action": choice.action, "compared": choice.compared,
        "replaced": kept.replaced.item.id if kept.replaced else 0,
        "alike": [one.memo.item.id for one in alike], "suggested_tags": kept.suggested,
        **memo_as_json(app, kept.memo),
    }  # fmt: skip
    return Output(value, _kept_lines(app, kept, alike), code=int(kept.done == "refused"))


def _check_enforcement(content: Mapping[str, Any], path: str) -> None:
    """Who is stopped by a rule is stopped by the user: an agent's shell has no terminal."""
    enforce = content.get("enforce", "tell")
    if enforce == "tell":
        return
    if not path:
        raise UsageError(f"enforce={enforce} is for a rule about files; name them: --path GLOB")
    if not sys.stdin.isatty():
        raise NotYours(
            f"enforce={enforce} must come from you; say it in a terminal of your own, or in the "
            "viewer (yester ui)"
        )


def _read_words(words: tuple[str, ...], in_editor: bool) -> str:
    if words and words != ("-",):
        return " ".join(words)
    if in_editor or (not words and sys.stdin.isatty()):
        return ""
    text = _read_source("-")
    if not text.strip():
        raise UsageError('there is nothing to remember; say it: yester remember "…"')
    return text


def _fill_in_draft(app: App, draft: Draft, keep: Callable[[Draft], Kept]) -> Kept | None:
    category = get_category(draft.type or "note")
    content = category.draft_content(draft.text, draft.content)
    empty = {name: getattr(draft, name) for name in forms.EDIT_KEYS} | {
        "type": category.name, "scope": draft.scope or ("path" if draft.path else "project"),
        "content": {category.text: "", **content},
    }  # fmt: skip
    head = f"A new {category.name}: {category.help}.\nClose it unchanged, and nothing happens."
    form = forms.render_edit_form(empty, head)
    return _apply_form(app, form, " in {}", lambda values: keep(Draft(**values)))


def _kept_lines(app: App, kept: Kept, alike: list[Likeness]) -> Iterator[str]:
    id_ = kept.memo.item.id
    waits = kept.memo.item.status == "proposed"
    yield f"{'proposed' if waits else _DONE[kept.done]} {format_memo(app, kept.memo)}"
    if waits:
        yield f"    agents are told of it when you say yes in a terminal: yester memory keep {id_}"
    if kept.replaced:
        yield f"    replaces {format_memo(app, kept.replaced)}"
    for tag, other in kept.suggested.items():
        yield (
            f"    tag {other} is in use; to take it instead of {tag}: "
            f"yester memory edit {id_} --tag {other} --untag {tag}"
        )
    others = [one.memo for one in alike if one.memo.item.id != kept.memo.item.supersedes]
    if kept.done == "created" and others:
        yield from (f"    like {format_memo(app, memo)}" for memo in others)
        old = alike[0].memo.item.id
        yield f"    if it takes the place of one: yester memory supersede {old} {id_}"


# --- changing one that is there -------------------------------------------------------------------


@command("memory edit")
def edit_command(
    app: App, /, memory: str, source: str | None, why: str, everywhere: bool, project: str | None,
    path: str | None, enforce: str | None, **given: Any,
) -> Output:  # fmt: skip
    """Change MEMORY by options or, without any, in $EDITOR. Unchanged, nothing is written.

    What somebody else changes meanwhile is kept; where both have changed the same, you are told.
    """
    memo = lifecycle.find_memory(app.store, memory)
    if memo.item.type == "rule" and not app.speaks_for_user:
        raise NotYours(f"rule #{memo.item.id} is yours; change it in a terminal, or in the viewer")
    if enforce:
        given["settings"] = (*given["settings"], f"enforce={enforce}")
    if everywhere or project or path or any(given.values()):
        if source:
            raise UsageError("--from has the whole; leave out the other options")
        place = _choose_place(app, memo.item.project, everywhere, project, path or "")
        new = _change_by_options(app, memo, given, place, why)
    else:
        new = _change_by_form(app, memo, source, why)
    what = "unchanged" if new.version == memo.version else "changed"
    return show_change(app, new, what)


def _change_by_options(
    app: App, memo: Memo, given: Mapping[str, Any], place: Mapping[str, str], why: str
) -> Memo:
    def edit_list(have: Iterable[str], added: Iterable[str], dropped: Collection[str]) -> list[str]:
        return [one for one in dict.fromkeys((*have, *added)) if one not in dropped]

    base, category = forms.plain_form(memo), get_category(given["type"] or memo.item.type)
    content = category.parse_settings(given["settings"])
    _check_enforcement(content, place.get("path", memo.path))
    tags, untags = normalise_tags(given["add_tags"]), normalise_tags(given["drop_tags"])
    single = {name: given[name] for name in ("title", "type", "confidence")}
    changes = {
        **{name: value for name, value in single.items() if value not in (None, "")},
        **place,
        "tags": edit_list(base["tags"], tags, untags),
        "files": edit_list(base["files"], given["add_files"], given["drop_files"]),
        "content": content,
    }
    return lifecycle.edit_memory(app.store, memo.item.id, changes, app.memory.by(why), base=base)


def _choose_place(
    app: App, own: str, everywhere: bool, project: str | None, path: str
) -> Mapping[str, str]:
    if everywhere and (project or path):
        raise UsageError("--global and --project or --path exclude each other; name one of them")
    if everywhere:
        return {"scope": "global", "path": "", "project": GLOBAL.key}
    if not (project or path):
        return {}
    if project or own == GLOBAL.key:
        own = app.find_project(project).key
    return {"scope": "path" if path else "project", "path": path, "project": own}


def _change_by_form(app: App, memo: Memo, source: str | None, why: str) -> Memo:
    base = forms.plain_form(memo)
    head = (
        f"Memory #{memo.item.id}. Save and close to keep your changes; close it unchanged, or "
        "empty,\nand nothing happens."
    )
    again = f": yester memory edit {memo.item.id} --from {{}}"

    def change_memory(values: Plain) -> Memo:
        if values.get("scope", base["scope"]) != base["scope"]:
            everywhere = values["scope"] == "global"
            values["project"] = GLOBAL.key if everywhere else app.find_project(None).key
        # A field that was taken out of the form is to go.
        values["content"] = {**dict.fromkeys(base["content"]), **values.get("content", {})}
        return lifecycle.edit_memory(app.store, memo.item.id, values, app.memory.by(why), base=base)

    return (
        _apply_form(app, forms.render_edit_form(base, head), again, change_memory, source) or memo
    )


@command("memory supersede")
def supersede_command(app: App, old: str, new: tuple[str, ...], why: str) -> Output:
    """Put NEW in the place of OLD: a memory there is, or the text of one, which then has the type,
    scope, tags and files of OLD. OLD stays as history of NEW."""
    memo, by = lifecycle.find_memory(app.store, old), app.memory.by(why)
    text = " ".join(new)
    known = _find_memo(app, text)
    if known is not None:
        _, newer = lifecycle.supersede_memory(app.store, memo.item.id, known.item.id, by)
    else:
        newer = remember_instead(app.store, memo, text, by).memo
    return show_change(app, newer, f"superseded #{memo.item.id}:")


def _find_memo(app: App, text: str) -> Memo | None:
    """The memory that is named; None where it is the text of a new one."""
    if " " in text:
        return None
    try:
        return lifecycle.find_memory(app.store, text)
    except NotFound:
        if text.removeprefix("#").isdecimal():
            raise
        return None


# --- the user's editor ----------------------------------------------------------------------------


def _apply_form(
    app: App, before: str, again: str, apply: Callable[[Plain], T], source: str | None = None
) -> T | None:
    """What comes of the values as the user leaves them in the editor, or has them in a file; None:
    unchanged. Where something goes wrong the text is kept, and the error says where (`again`)."""
    file = None if source else _open_editor(app.home, before)
    text = _read_source(source or str(file))
    try:
        changed = text.strip() and text != before
        done = apply(forms.parse_edit_form(text, source or "the text")) if changed else None
    except YesterError as error:
        if file is None:
            raise
        raise type(error)(f"{error}; your text is kept{again.format(file)}") from None
    if file is not None:
        file.unlink()
    return done


def _open_editor(home: Path, text: str) -> Path:
    """Let the user change a text; the file it stands in, which nobody else can read."""
    import tempfile

    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR") or sys.stdin.isatty()):
        raise UsageError("there is no editor; set EDITOR, or use the options of this command")
    (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(".toml", "memory-", home / "run")  # mode 0600
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        click.edit(filename=name)
    except click.ClickException as error:
        path.unlink()
        raise UsageError(f"{error.message}; nothing was changed") from None
    return path


def _read_source(source: str) -> str:
    """The text of a file, or of the standard input (-)."""
    try:
        data = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise UsageError(f"{source} cannot be read ({error.strerror})") from None
    return data.decode("utf-8", "replace")
