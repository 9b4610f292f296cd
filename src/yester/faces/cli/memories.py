"""`yester memory`: memories on the screen, and the commands that look at them or let them go."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import json, structs

from yester.agents.notes import find_instructions
from yester.clock import elapsed_ms, format_minute
from yester.context.lines import item_icon, one_line
from yester.errors import NotFound, NotYours, UsageError, YesterError
from yester.faces.cli.app import App, Output, choose_filters, command, read_source
from yester.faces.cli.notes import format_diff
from yester.faces.cli.rows import Page, hit_as_json, join_names, page_lines, title_text
from yester.faces.cli.screen import align_rows, count_noun, make_bold
from yester.files import replace_file
from yester.memories import lifecycle, remember, review
from yester.memories import memory as forms
from yester.memories.categories import clean_text, get_category
from yester.memories.chains import list_memory_chain
from yester.memories.memory import GLOBAL, normalise_tags, read_history
from yester.model import STATUSES, Change, Filters, Memo, Paging, replace
from yester.operate.notes import lint_notes, propose_changes
from yester.recall.recall import make_hit
from yester.store.contract import Store
from yester.text.sentences import find_snippet

# --- on the screen --------------------------------------------------------------------------------


_OF_ITEM = ("status", "tags", "files", "confidence", "origin", "trust", "supersedes")
_COLOURS = {"proposed": "36", "retired": "31", "archived": "2", "superseded": "35"}
_OF_MEMO = ("slug", "scope", "path", "version", "reason", "content")


def memo_as_json(app: App, memo: Memo, full: bool = True, **more: object) -> dict[str, Any]:
    """As a hit with what only memories have, and with `more` that a command has found out."""
    row = hit_as_json(make_hit(memo.item, app.names), full=full)
    row |= {name: getattr(memo.item, name) for name in _OF_ITEM}
    row |= {name: getattr(memo, name) for name in _OF_MEMO}
    return row | {"updated": memo.item.updated / 1000, "since": memo.since / 1000, **more}


def format_memo(app: App, memo: Memo) -> str:
    return "  ".join(text for text, _ in _memo_cells(app, memo) if text)


def _memo_cells(app: App, memo: Memo) -> list[tuple[str, str]]:
    item = memo.item
    tags = ", ".join(tag for tag in item.tags if tag != item.type)
    more = [f"[{tags}]" if tags else "", memo.path, _format_status(memo)]
    if item.supersedes:
        more.append(f"replaces #{item.supersedes}")
    title = app.quote_line(item.title or find_snippet(item.body, (), 100))
    if app.read_by_agent:
        more = [one_line(one, 200) for one in more]
    sign, day = item_icon(item.kind, item.type), format_minute(item.epoch)
    colour = _COLOURS.get(item.status, "")
    return [
        (f"{sign} #{item.id}", "33" if item.type == "rule" else ""), (day, "2"), (item.type, ""),
        (title, ""), ("  ".join(filter(None, more)), colour or "2"),
    ]  # fmt: skip


def _format_status(memo: Memo) -> str:
    status = memo.item.status
    if status == "active":
        return ""
    text = f"{status} {format_minute(memo.since)}"
    if status == "retired":
        text += f", may go after {format_minute(memo.since + lifecycle.GRACE)}"
    return f"({text}{': ' + memo.reason if memo.reason else ''})"


def _remark_lines(
    app: App, remarks: Iterable[tuple[Memo, str]], form: str = "index"
) -> Iterator[str]:
    """Memories, and what is to be said of each."""
    for memo, remark in remarks:
        yield f"{format_memo(app, memo)}\n    {remark}"
        if form == "full":
            yield "".join(f"    {text}\n" for text in memo.item.body.splitlines())


def show_memos(app: App, memos: Sequence[Memo], form: str, query: str = "") -> Output:
    full = form == "full"
    rows = [memo_as_json(app, memo, full) for memo in memos]
    lines = page_lines(app, _memo_pages(app, memos)) if full else _memo_lines(app, memos)
    return Output({"query": query, "hits": rows, "took_ms": 0}, lines)


def _memo_lines(app: App, memos: Sequence[Memo]) -> Iterator[str]:
    groups: defaultdict[str, list[Memo]] = defaultdict(list)
    for memo in memos:
        groups[memo.item.project].append(memo)
    for project, group in groups.items():
        yield make_bold(app.names.get(project, project))
        rows = [_memo_cells(app, memo) for memo in group]
        yield from (f"  {line}" for line in align_rows(rows, max(app.width - 2, 0), 3))


def _memo_pages(app: App, memos: Iterable[Memo]) -> Iterator[Page]:
    for memo in memos:
        item = memo.item
        where = {"path": f"for {memo.path}", "global": "holds everywhere"}.get(memo.scope, "")
        project = app.names.get(item.project, item.project)
        chain = list_memory_chain(app.reading, memo)
        older = reversed(chain[: chain.index(memo)])
        newest = f"replaced by {format_memo(app, chain[-1])}" if chain[-1] != memo else ""
        told = (
            f"by {item.origin} {format_minute(item.epoch)}, trust {item.trust:g}, "
            f"confidence {item.confidence:g}"
        )
        facts = [
            ("status", " ".join(filter(None, (_format_status(memo), newest)))),
            ("tags", ", ".join(item.tags)), ("files", ", ".join(item.files)), ("told", told),
            ("changed", f"{format_minute(item.updated)}, version {memo.version}"),
            *(("replaces", format_memo(app, one)) for one in older),
        ]  # fmt: skip
        head = f"#{item.id}  {join_names(app, project, item.type, memo.slug, where)}"
        yield Page(head, facts, title_text(item.title, item.body))


def show_change(app: App, memo: Memo, what: str) -> Output:
    """What a change has made of a memory, in a line."""
    return Output({"done": what, **memo_as_json(app, memo)}, [f"{what} {format_memo(app, memo)}"])


# --- looking --------------------------------------------------------------------------------------


def _choose_filters(app: App, given: Mapping[str, Any]) -> Filters:
    """Where the current project was meant without being named, what holds everywhere as well."""
    chosen = choose_filters(app.memory, given, "")
    if chosen.projects and not given["projects"]:
        return replace(chosen, projects=(*chosen.projects, GLOBAL.key))
    return chosen


@command("memory list", fenced=True)
def list_command(
    app: App, /, tags: tuple[str, ...], status: str, limit: int, offset: int, form: str,
    **given: Any,
) -> Output:  # fmt: skip
    """List memories, the last changed first."""
    given["types"] = tuple(get_category(name).name for name in given["types"])
    chosen, others = _choose_filters(app, given), 0
    here = app.memory.current_project.key
    if not (chosen.projects or given["everywhere"]) and here in app.names:
        others = app.reading.totals("item", where={"kind": "memory", "status": "active"})[0][0]
        chosen = replace(chosen, projects=(here, GLOBAL.key))
    statuses, wanted = (STATUSES if status == "all" else (status,)), normalise_tags(tags)
    memos = app.reading.memos(chosen, Paging(limit, offset=offset, statuses=statuses), tags=wanted)
    nothing = 'No memories. Keep one: yester remember "…"'
    more = "Those of this project; of all: --all-projects" if others > len(memos) else ""
    return show_memos(app, memos, form)._replace(nothing=nothing, found=memos, hint=more)


@command("memory show", fenced=True)
def show_command(app: App, memories: tuple[str, ...], form: str) -> Output:
    """Show memories with all their fields, whatever their status, and what they replace."""
    memos = [lifecycle.find_memory(app.reading, name) for name in memories]
    return show_memos(app, memos, form, " ".join(memories))


@command("memory history", fenced=True)
def history_command(app: App, memory: str | None, limit: int, form: str) -> Output:
    """Show the changes of MEMORY, or of all memories, the newest first."""
    changes = read_history(app.reading, _find_id(app.reading, memory), limit)
    rows = [
        structs.asdict(one) | {"memory": one.item, "epoch": one.epoch / 1000} for one in changes
    ]
    lines = (line for change in changes for line in _change_lines(change, form))
    return Output({"changes": rows}, lines, "No changes.", changes)


def _find_id(store: Store, name: str | None) -> int:
    """Of the memory that is named; 0: none is."""
    return lifecycle.find_memory(store, name).item.id if name else 0


def _change_lines(change: Change, form: str) -> Iterator[str]:
    def show_value(value: object) -> str:
        text = json.encode(value).decode()
        return text if form == "full" else find_snippet(text, (), 80)

    why = f"  ({change.why})" if change.why else ""
    yield f"{format_minute(change.epoch)}  #{change.item}  {change.what}  by {change.who}{why}"
    for name, value in change.after.items() if change.before is not None else ():
        before = change.before.get(name) if change.before else None
        if name == "said":
            before, value = format_minute(before or 0), format_minute(value)
        yield f"    {name}: {show_value(before)} → {show_value(value)}"


@command("memory candidate")
def candidate_command(
    app: App, text: tuple[str, ...], type_: str, tags: tuple[str, ...], files: tuple[str, ...],
    project: str | None, everywhere: bool, form: str,
) -> Output:  # fmt: skip
    """Say what TEXT would do among the memories of its category, and what it was compared with.

    CREATE: nothing is like it. UPDATE, UPDATE_OR_DELETE: there is one about the same. NOOP: it is
    known. A memory is like it when one of its tags is named, or a word of its title and the
    beginning of another.
    """
    category, said = get_category(type_), clean_text(" ".join(text))
    began = time.perf_counter()
    where = GLOBAL if everywhere else app.choose_project(project)
    about = where.key, normalise_tags(tags), files
    choice = remember.find_candidate(app.reading, category, said, *about)
    found = [one for one in (choice.best, *choice.others) if one is not None]
    rows = [
        memo_as_json(app, one.memo, full=False, points=one.points, same=one.same, tags=one.tags,
                     title_words=one.words, alike=one.alike)
        for one in found
    ]  # fmt: skip
    value = {
        "action": choice.action, "type": category.name, "query": said,
        "candidate": rows[0] if rows else None, "others": rows[1:], "compared": choice.compared,
        "deletable": category.deletable, "took_ms": elapsed_ms(began),
    }  # fmt: skip

    compared = count_noun(choice.compared, "memory")
    remarks = ((one.memo, f"{one.points} points: {'; '.join(one.reasons)}") for one in found)
    head = f"{choice.action}  (compared with {compared} of this category)"
    return Output(value, (head, *_remark_lines(app, remarks, form)))


# --- what deserves a look, what has had its time --------------------------------------------------


@command("memory review")
def review_command(app: App, /, form: str, **given: Any) -> Output:
    """Show what deserves a look: rules that wait, unsure or settled memories, contradictions.

    Exit code 1 when there is nothing.
    """
    return _review(app, form, given)


def _review(app: App, form: str, given: Mapping[str, Any]) -> Output:
    found = review.review_memories(app.reading, _choose_filters(app, given), app.now)
    rows = [
        memo_as_json(app, one.memo, full=False, check=one.check, text=one.text, fix=one.fix)
        for one in found
    ]
    remarks = ((one.memo, f"{one.check}: {one.text}; {one.fix}") for one in found)
    lines = _remark_lines(app, remarks, form)
    return Output({"findings": rows}, lines, "Nothing to look at.", found)


@command("memory lint")
def lint_command(app: App, /, form: str, diff: bool, **given: Any) -> Output:
    """`yester memory review`, and a look over the notes of the current folder's project.

    In its MEMORY.md, CLAUDE.md, AGENTS.md and rule files: what stands in two of them, what names
    files that are gone, and what a newer memory says otherwise. --diff shows them without that.
    Nothing is written. Exit code 3 when there is such a note.
    """
    shown, here = _review(app, form, given), Path.cwd()
    files = [*filter(None, [app.find_memory_md(here)]), *find_instructions(here)]
    found = list(lint_notes(app.reading, files, here, app.memory.current_project.key))
    if not found:
        return shown
    lines = [f"{one.file}:{one.line}: {one.check}: {one.text}" for one in found]
    if diff:
        lines += [format_diff(*change) for change in propose_changes(found)]
    value = {"review": shown.value, "notes": [one._asdict() for one in found]}
    return Output(value, (*shown.lines, *lines), code=3)


_WOULD = {"retire": "would retire", "archive": "would archive", "drop": "would let go"}
_NOT_APPLIED = "Nothing has been changed. To do it: yester memory gc --apply"
_DONE = {"retire": "retired", "archive": "archived", "drop": "let go"}


@command("memory gc")
def gc_command(app: App, really: bool) -> Output:
    """Let go of what was retired more than 30 days ago, and apply your rules of [retention].

    Without --apply nothing is changed. Nothing goes that was not retired: by you, by a memory file
    you have synced, or by a rule in config.toml. Exit code 1 when nothing is due.
    """
    chosen = lifecycle.parse_retention(app.config.retention)
    find = lifecycle.collect_due if really else lifecycle.find_due
    found = list(find(app.store if really else app.reading, chosen, app.now))
    rows = [memo_as_json(app, one.memo, full=False, what=one.what, why=one.why) for one in found]
    words = _DONE if really else _WOULD
    lines = (f"{words[one.what]} {format_memo(app, one.memo)}\n    {one.why}" for one in found)
    hint = _NOT_APPLIED if found and not really else ""
    return Output({"applied": really, "due": rows}, lines, "Nothing is due.", found, hint=hint)


# --- another status -------------------------------------------------------------------------------


def _require_terminal(id_: int) -> None:
    """A yes to a proposed rule is the user's: an agent's shell has no terminal."""
    if not sys.stdin.isatty():
        raise NotYours(
            f"rule #{id_} waits for your own yes; say it in a terminal, in the viewer (yester ui), "
            f"or type it into the agent: /yester:keep {id_}"
        )


_STEP_DONE = {"keep": "kept", "drop": "dropped"}


def _status_command(step: str) -> click.Command:
    def change_status(app: App, memories: tuple[str, ...], why: str, force: bool = False) -> Output:
        store, by = app.store, app.memory.by(why)
        found = [lifecycle.find_memory(store, name).item for name in memories]
        for one in found:
            if one.status == "proposed" and lifecycle.STEPS[step][1] == "active":
                _require_terminal(one.id)
        memos = [lifecycle.change_status(store, one.id, step, by, force=force) for one in found]
        done = _STEP_DONE.get(step, f"{step}d")
        rows = tuple({"done": done, **memo_as_json(app, memo)} for memo in memos)
        return Output(rows, (f"{done} {format_memo(app, memo)}" for memo in memos))

    return command(f"memory {step}")(change_status)


keep_command, drop_command, retire_command, archive_command, restore_command = map(
    _status_command, ("keep", "drop", "retire", "archive", "restore")
)


@command("memory undo")
def undo_command(app: App, memory: str | None, why: str) -> Output:
    """Undo the last change of MEMORY, or the last change of any; undoing twice redoes it.

    What was just remembered is retired again; what it replaced is back.
    """
    memos = lifecycle.undo_change(app.store, app.memory.by(why), _find_id(app.store, memory))
    return Output(
        {"done": "undone", "hits": [memo_as_json(app, memo) for memo in memos]},
        (f"undone {format_memo(app, memo)}" for memo in memos),
    )


# --- writing one down, and changing what it says --------------------------------------------------

_KEPT = {
    "created": "remembered", "updated": "added to", "known": "known already:",
    "refused": "stays as it is:",
}  # fmt: skip


@command("remember")
def remember_command(
    app: App, /, text: tuple[str, ...], project: str | None, everywhere: bool,
    settings: tuple[str, ...], update: str | None, supersedes: str | None, why: str,
    enforce: str | None, **given: Any,
) -> Output:  # fmt: skip
    """Remember TEXT: a decision, a rule for your agents, anything that must not be lost.

    Without TEXT it is read from the standard input. "Always …" and "never …" become rules, which
    every session is told; "we decided …" a decision, "I prefer …" a preference. What follows
    "because" is kept as the reason.
    """
    if settings and not given["type"]:
        raise UsageError("--set needs --type: fields belong to a category")
    if enforce:
        given["type"], settings = given["type"] or "rule", (*settings, f"enforce={enforce}")
    content = get_category(given["type"]).parse_settings(settings) if settings else {}
    _check_enforcement(content, given["path"])
    words = _read_words(text) if text or not content else ""
    draft = remember.Draft(words, content=content, scope="global" if everywhere else "", **given)
    is_rule = (draft.type or remember.guess_type(draft.text)) == "rule"
    if is_rule and app.memory.origin == "user" and not app.speaks_for_user:
        draft = replace(draft, status="proposed")  # nobody says that it is the user's word

    place = GLOBAL if everywhere else app.choose_project(project)
    old = {"update": _find_id(app.store, update), "supersedes": _find_id(app.store, supersedes)}
    kept = remember.remember(app.store, draft, place, app.memory.by(why), **old)
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


def _read_words(words: tuple[str, ...]) -> str:
    if words and words != ("-",):
        return " ".join(words)
    text = "" if not words and sys.stdin.isatty() else read_source("-")
    if not text.strip():
        raise UsageError('there is nothing to remember; say it: yester remember "…"')
    return text


def _kept_lines(app: App, kept: remember.Kept, alike: list[remember.Likeness]) -> Iterator[str]:
    id_ = kept.memo.item.id
    waits = kept.memo.item.status == "proposed"
    yield f"{'proposed' if waits else _KEPT[kept.done]} {format_memo(app, kept.memo)}"
    if waits:
        yield f"    agents are told of it when you say yes in a terminal: yester memory keep {id_}"
    elif kept.done == "created":
        where = app.memory.project_names().get(kept.memo.item.project, "")
        told = f"in project {where}" if where else "everywhere"
        yield f"    {told}; to take it back: yester memory undo {id_}"
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
        own = app.choose_project(project).key
    return {"scope": "path" if path else "project", "path": path, "project": own}


_FORM = """\
Memory #{}. Save and close to keep your changes; close it unchanged, or empty,
and nothing happens."""


def _change_by_form(app: App, memo: Memo, source: str | None, why: str) -> Memo:
    """As the user leaves the form in the editor, or has it in a file. Where something is wrong with
    it the text is kept, and the error says where."""
    base, id_ = forms.plain_form(memo), memo.item.id
    before = forms.render_edit_form(base, _FORM.format(id_))
    file = app.home / "run" / f"memory-{id_}-{os.getpid()}.toml"
    text = read_source(source) if source else edit_text(file, before)
    try:
        if text.strip() and text != before:
            values = forms.parse_edit_form(text, source or "the text")
            if values.get("scope", base["scope"]) != base["scope"]:
                everywhere = values["scope"] == "global"
                values["project"] = GLOBAL.key if everywhere else app.choose_project(None).key
            # A field that was taken out of the form is to go.
            values["content"] = {**dict.fromkeys(base["content"]), **values.get("content", {})}
            memo = lifecycle.edit_memory(app.store, id_, values, app.memory.by(why), base=base)
    except YesterError as error:
        if source:
            raise
        again = f"yester memory edit {id_} --from {file}"
        raise type(error)(f"{error}; your text is kept: {again}") from None
    file.unlink(missing_ok=True)
    return memo


def edit_text(file: Path, text: str) -> str:
    """The text as the user has changed it, in a file of our own that nobody else can read."""
    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR") or sys.stdin.isatty()):
        raise UsageError("there is no editor; set EDITOR, or use the options of this command")
    replace_file(file, text)
    try:
        click.edit(filename=str(file))
    except click.ClickException as error:
        file.unlink()
        raise UsageError(f"{error.message}; nothing was changed") from None
    return read_source(str(file))


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
        newer = remember.remember_instead(app.store, memo, text, by).memo
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
