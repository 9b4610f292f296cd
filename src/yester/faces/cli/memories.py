"""`yester memory`: memories on the screen, and the commands that look at them or let them go."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.clock import format_minute
from yester.deliver.lines import clean_text, item_icon, one_line, quote_lines, quote_text
from yester.faces.cli.app import (
    App,
    bold,
    fenced_for_agents,
    leave,
    pass_app,
    print_result,
)
from yester.faces.cli.options import (
    AS_JSON,
    EVERYWHERE,
    FILES,
    OFFSET,
    PROJECT,
    PROJECTS,
    WHY,
    add_options,
    choose_search_filters,
    flag,
    form,
    limit,
    many,
)
from yester.faces.cli.rows import RULE, hit_as_json
from yester.faces.cli.screen import count_noun
from yester.memories import content, lifecycle
from yester.memories import review as reviewing
from yester.memories.categories import CATEGORIES, category_of, get_category
from yester.memories.memory import GLOBAL
from yester.memories.memory_md import PageFinding
from yester.memories.places import memory_paths
from yester.memories.remember import Likeness, find_candidate
from yester.memories.tags import normalise_tags
from yester.model import STATUSES, Change, Filters, Memo, Paging
from yester.operate.notes import lint_notes
from yester.project import Projects
from yester.recall.recall import make_hit
from yester.text.sentences import find_snippet

MEMORIES = click.argument("memories", nargs=-1, required=True, metavar="MEMORY...")


# --- on the screen --------------------------------------------------------------------------------


def memo_as_json(app: App, memo: Memo, full: bool = True) -> dict[str, Any]:
    item = memo.item
    return hit_as_json(make_hit(item, app.names), full=full) | {
        "slug": memo.slug, "scope": memo.scope, "path": memo.path, "status": item.status,
        "tags": item.tags, "files": item.files, "confidence": item.confidence,
        "origin": item.origin, "trust": item.trust, "updated": item.updated / 1000,
        "version": memo.version, "since": memo.since / 1000, "reason": memo.reason,
        "supersedes": item.supersedes, "content": memo.content,
    }  # fmt: skip


def format_memo(app: App, memo: Memo) -> str:
    item = memo.item
    more = [f"[{', '.join(item.tags)}]" if item.tags else "", memo.path, _format_status(memo)]
    if item.supersedes:
        more.append(f"replaces #{item.supersedes}")
    title = item.title or find_snippet(item.body, (), 100)
    if app.read_by_agent:
        title, more = quote_text(one_line(title, 200)), [one_line(one, 200) for one in more]
    sign, day = item_icon(item.kind, item.type), format_minute(item.epoch)
    return f"{sign} #{item.id}  {day}  {item.type}  {title}  {'  '.join(filter(None, more))}"


def _format_status(memo: Memo) -> str:
    status = memo.item.status
    if status == "active":
        return ""
    text = f"{status} {format_minute(memo.since)}"
    if status == "retired":
        text += f", may go after {format_minute(memo.since + lifecycle.GRACE)}"
    return f"({text}{': ' + memo.reason if memo.reason else ''})"


def _indented_body(memo: Memo, width: int) -> str:
    return "".join(f"{' ' * width}{text}\n" for text in memo.item.body.splitlines())


def print_memos(app: App, memos: Sequence[Memo], form: str, as_json: bool, query: str = "") -> None:
    if as_json:
        rows = [memo_as_json(app, memo, form == "full") for memo in memos]
        print_result(True, {"query": query, "hits": rows, "took_ms": 0})
        return
    if form == "full":
        for number, memo in enumerate(memos):
            whole = "\n".join(_page_lines(app, memo))
            if app.read_by_agent:
                whole = f"#{memo.item.id}\n{quote_lines(clean_text(whole))}"
            click.echo((RULE if number else "") + whole)
        return
    groups: defaultdict[str, list[Memo]] = defaultdict(list)
    for memo in memos:
        groups[memo.item.project].append(memo)
    for project, group in groups.items():
        click.echo(bold(app.names.get(project, project)))
        for memo in group:
            click.echo(f"  {format_memo(app, memo)}")


def _page_lines(app: App, memo: Memo) -> list[str]:
    """Everything there is of a memory."""
    item = memo.item
    where = {"path": f"for {memo.path}", "global": "holds everywhere"}.get(memo.scope, "")
    facts = (app.names.get(item.project, item.project), item.type, memo.slug, where)
    lines = [bold(f"#{item.id}  ") + " · ".join(filter(None, facts))]
    if status := _format_status(memo):
        lines.append(status.strip("()"))
    lines += ["", bold(item.title), *_content_lines(memo), ""]
    if item.tags:
        lines.append(f"tags        {', '.join(item.tags)}")
    if item.files:
        lines.append(f"files       {', '.join(item.files)}")
    lines.append(
        f"told        by {item.origin} {format_minute(item.epoch)}, trust {item.trust:g}, "
        f"confidence {item.confidence:g}"
    )
    if memo.version > 1:
        lines.append(f"changed     {format_minute(item.updated)}, version {memo.version}")
    chain = lifecycle.list_predecessors(app.reading, memo)
    lines += [f"replaces    {format_memo(app, one)}" for one in chain]
    latest = next(reversed(lifecycle.list_successors(app.reading, memo)), memo)
    if latest.item.id != item.id:
        lines.append(f"replaced by {format_memo(app, latest)}")
    return lines


def _content_lines(memo: Memo) -> list[str]:
    """Field by field; what is said by the title alone is not said again."""
    kind = category_of(memo.item.type)
    if not content.lead_text(kind, memo.content):
        return ["", memo.item.body]
    lines: list[str] = []
    for field in kind.fields:
        value = memo.content.get(field.name)
        if value in (None, [], {}) or (field.name == kind.text and value == memo.item.title):
            continue
        lines += ["", *_field_lines(field.name, value)]
    return lines


def _field_lines(name: str, value: object) -> list[str]:
    label = name.replace("_", " ")
    match value:
        case bool():
            return [f"{label}: {'yes' if value else 'no'}"]
        case list():
            joined = (
                ": ".join(map(str, one.values())) if isinstance(one, dict) else str(one)
                for one in value
            )
            return [f"{label}:", *(f"- {one}" for one in joined)]
        case dict():
            return [text for part, inner in value.items() for text in _field_lines(part, inner)]
    return [f"{label}: {value}"]


def print_change(app: App, memo: Memo, what: str, as_json: bool) -> None:
    """What a change has made of a memory, in a line."""
    print_result(
        as_json,
        {"done": what, **memo_as_json(app, memo)} if as_json else None,
        [] if as_json else [f"{what} {format_memo(app, memo)}"],
    )


# --- looking --------------------------------------------------------------------------------------


def _add_global(chosen: Filters, given: Mapping[str, Any]) -> Filters:
    """Where the current project was meant without being named, what holds everywhere as well."""
    if chosen.projects and not given["projects"]:
        return replace(chosen, projects=(*chosen.projects, GLOBAL.key))
    return chosen


@click.command("list")
@add_options(
    click.option("--project", "-p", "projects", multiple=True, metavar="NAME",
                 help="Only this project (repeatable); `global` for what holds everywhere."),
    EVERYWHERE,
    many("--type", "types", "TYPE", "Only this category, e.g. decision (repeatable)."),
    many("--tag", "tags", "NAME", "Only those with this tag (repeatable)."),
    FILES,
    click.option("--status", type=click.Choice([*STATUSES, "all"]), default="active",
                 show_default=True, help="In use, or put away."),
    limit(50), OFFSET, form("index", "memory"), AS_JSON,
)  # fmt: skip
@pass_app
@fenced_for_agents
def list_command(
    app: App, /, tags: tuple[str, ...], status: str, limit: int, offset: int, form: str,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """List memories, the last changed first."""
    given["types"] = tuple(get_category(name).name for name in given["types"])
    chosen = _add_global(choose_search_filters(app.memory, given, ""), given)
    statuses, wanted = (STATUSES if status == "all" else (status,)), normalise_tags(tags)
    memos = app.reading.memos(chosen, Paging(limit, offset=offset, statuses=statuses), tags=wanted)
    print_memos(app, memos, form, as_json)
    if not as_json and given["projects"] and not {GLOBAL.name, GLOBAL.key} & {*given["projects"]}:
        # Named, a project is listed alone; what else holds in it must not look as if it did not.
        more = replace(chosen, projects=(GLOBAL.key,))
        if number := len(app.reading.memos(more, Paging(statuses=statuses), tags=wanted)):
            verb = "holds" if number == 1 else "hold"
            click.echo(f"{number} more {verb} everywhere: yester memory list -p global", err=True)
    if not memos:
        leave(1, "" if as_json else 'No memories. Keep one: yester remember "…"')


@click.command("show")
@MEMORIES
@add_options(form("full", "memory"), AS_JSON)
@pass_app
@fenced_for_agents
def show_command(app: App, memories: tuple[str, ...], form: str, as_json: bool) -> None:
    """Show memories with all their fields, whatever their status, and what they replace."""
    memos = [lifecycle.find_memory(app.reading, name) for name in memories]
    print_memos(app, memos, form, as_json, " ".join(memories))


@click.command("history")
@click.argument("memory", required=False)
@add_options(limit(20, help_="At most so many changes.", least=1), form("index", "memory"), AS_JSON)
@pass_app
@fenced_for_agents
def history_command(app: App, memory: str | None, limit: int, form: str, as_json: bool) -> None:
    """Show the changes of MEMORY, or of all memories, the newest first."""
    item = lifecycle.find_memory(app.reading, memory).item.id if memory else 0
    changes = app.reading.changes(item, limit=limit)
    print_result(
        as_json,
        {"changes": [_change_as_json(change) for change in changes]},
        (line for change in changes for line in _change_lines(change, form)),
    )
    if not changes:
        leave(1, "" if as_json else "No changes.")


def _change_as_json(change: Change) -> dict[str, Any]:
    return {
        "id": change.id, "act": change.act, "memory": change.item, "epoch": change.epoch / 1000,
        "who": change.who, "what": change.what, "why": change.why, "before": change.before,
        "after": change.after,
    }  # fmt: skip


def _change_lines(change: Change, form: str) -> Iterator[str]:
    def show(value: object) -> str:
        text = msgspec.json.encode(value).decode()
        return text if form == "full" else find_snippet(text, (), 80)

    why = f"  ({change.why})" if change.why else ""
    yield f"{format_minute(change.epoch)}  #{change.item}  {change.what}  by {change.who}{why}"
    for name, value in change.after.items() if change.before is not None else ():
        before = change.before.get(name) if change.before else None
        if name == "said":
            before, value = format_minute(before or 0), format_minute(value)
        yield f"    {name}: {show(before)} → {show(value)}"


@click.command("candidate")
@click.argument("text", nargs=-1, required=True)
@add_options(
    click.option("--type", "type_", required=True, metavar="TYPE",
                 help=f"The category it would have: {', '.join(CATEGORIES)}."),
    many("--tags", "tags", "A,B", "Its tags (repeatable)."),
    many("--file", "files", "PATH", "A file (repeatable)."), PROJECT,
    flag("--global", "Among what holds everywhere.", "everywhere"),
    form("index", "memory"), AS_JSON,
)  # fmt: skip
@pass_app
def candidate_command(
    app: App, text: tuple[str, ...], type_: str, tags: tuple[str, ...], files: tuple[str, ...],
    project: str | None, everywhere: bool, form: str, as_json: bool,
) -> None:  # fmt: skip
    """Say what TEXT would do among the memories of its category, and what it was compared with.

    CREATE: nothing is like it. UPDATE, UPDATE_OR_DELETE: there is one about the same. NOOP: it is
    known. A memory is like it when one of its tags is named, or a word of its title and the
    beginning of another.
    """
    category, said = get_category(type_), content.clean_text(" ".join(text))
    began = time.perf_counter()
    where = GLOBAL if everywhere else app.find_project(project)
    choice = find_candidate(app.reading, category, said, where.key, normalise_tags(tags), files)
    found = [one for one in (choice.best, *choice.others) if one is not None]
    rows = [_likeness_as_json(one) for one in found]
    value = {
        "action": choice.action, "type": category.name, "query": said,
        "candidate": rows[0] if rows else None, "others": rows[1:], "compared": choice.compared,
        "deletable": category.deletable, "took_ms": round((time.perf_counter() - began) * 1000, 2),
    }  # fmt: skip
    compared = count_noun(choice.compared, "memory")
    lines = [f"{choice.action}  (compared with {compared} of this category)"]
    for one in found:
        lines.append(f"  {format_memo(app, one.memo)}")
        lines.append(f"      {one.points} points: {'; '.join(one.reasons)}")
        if form == "full":
            lines.append(_indented_body(one.memo, 6))
    print_result(as_json, value, lines)


def _likeness_as_json(one: Likeness) -> dict[str, Any]:
    item = one.memo.item
    return {
        "id": item.id, "slug": one.memo.slug, "title": item.title, "points": one.points,
        "same": one.same, "tags": one.tags, "title_words": one.words, "alike": one.alike,
    }  # fmt: skip


# --- what deserves a look, what has had its time --------------------------------------------------

_REVIEW_OPTIONS = add_options(
    PROJECTS, EVERYWHERE,
    click.option("--format", "form", type=click.Choice(["index", "full"]), default="index",
                 show_default=True, help="A line per finding; with the memory's text."),
    AS_JSON,
)  # fmt: skip


@click.command("review")
@_REVIEW_OPTIONS
@pass_app
def review_command(app: App, /, form: str, as_json: bool, **given: Any) -> None:
    """Show what deserves a look: unsure, expired or settled ones, ones alike, and what goes soon.

    Exit code 1 when there is nothing.
    """
    chosen = _add_global(choose_search_filters(app.memory, given, ""), given)
    found = reviewing.review_memories(app.reading, chosen, app.now)
    _print_findings(app, found, form, as_json)
    if not found:
        leave(1, "" if as_json else "Nothing to look at.")


@click.command("lint")
@_REVIEW_OPTIONS
@pass_app
def lint_command(app: App, /, form: str, as_json: bool, **given: Any) -> None:
    """Check memories in use against the form of their category, and for contradictions.

    The project's MEMORY.md is looked over too: lines beyond the 200 that are loaded, what it says
    twice, and what a newer memory says otherwise.

    Exit code 3 when something is not as it should be.
    """
    chosen = _add_global(choose_search_filters(app.memory, given, ""), given)
    found = reviewing.lint_memories(app.reading, chosen)
    notes = list(_lint_notes(app, given))
    _print_findings(app, found, form, as_json, notes)
    if found or notes:
        leave(3)
    if not as_json:
        click.echo("All memories are as they should be.")


def _lint_notes(app: App, given: Mapping[str, Any]) -> Iterator[tuple[Path, PageFinding]]:
    """Findings in the MEMORY.md files of the projects that are meant."""
    for folder, project in _chosen_folders(app, given):
        places = (place for place in memory_paths(app.claude_folders(), folder) if place.is_file())
        for path in islice(places, 1):
            yield from ((path, one) for one in lint_notes(app.reading, path, project))


def _chosen_folders(app: App, given: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """(folder, key) of the projects named; of all; else of the current folder."""
    if not given["projects"] and not given["everywhere"]:
        yield Path.cwd(), Projects(app.config.projects).by_folder(str(Path.cwd())).key
        return
    for project in app.reading.projects():
        chosen = given["everywhere"] or {project.name, project.key} & set(given["projects"])
        if chosen and project.root:
            yield Path(project.root), project.key


def _print_findings(
    app: App,
    found: Sequence[reviewing.Finding],
    form: str,
    as_json: bool,
    notes: Sequence[tuple[Path, PageFinding]] = (),
) -> None:
    rows: list[dict[str, Any]] = [
        {"id": one.memo.item.id, "slug": one.memo.slug, "check": one.check, "text": one.text,
         "fix": one.fix}
        for one in found
    ]  # fmt: skip
    rows += [
        {"file": str(path), "line": one.line, "check": one.what, "text": one.text}
        for path, one in notes
    ]
    lines: list[str] = []
    for one in found if not as_json else ():
        lines += [format_memo(app, one.memo), f"    {one.check}: {one.text}; {one.fix}"]
        if form == "full":
            lines.append(_indented_body(one.memo, 4))
    lines += [f"{path}:{one.line}: {one.what}: {one.text}" for path, one in notes]
    print_result(as_json, {"findings": rows}, lines)


_WOULD = {"retire": "would retire", "archive": "would archive", "drop": "would let go"}
_DONE = {"retire": "retired", "archive": "archived", "drop": "let go"}


@click.command("gc")
@add_options(flag("--apply", "Do it; without this it is only shown.", "really"), AS_JSON)
@pass_app
def gc_command(app: App, really: bool, as_json: bool) -> None:
    """Let go of what was retired more than 30 days ago, and apply your rules of [retention].

    Without --apply nothing is changed. Nothing goes that was not retired: by you, by a memory file
    you have synced, or by a rule in config.toml. Exit code 1 when nothing is due.
    """
    chosen = lifecycle.parse_retention(app.config.retention)
    found = (
        lifecycle.collect_due(app.store, chosen, app.now)
        if really
        else list(lifecycle.find_due(app.reading, chosen, app.now))
    )
    rows = [
        {"id": one.memo.item.id, "slug": one.memo.slug, "type": one.memo.item.type,
         "title": one.memo.item.title, "what": one.what, "why": one.why}
        for one in found
    ]  # fmt: skip
    words = _DONE if really else _WOULD
    print_result(
        as_json, {"applied": really, "due": rows},
        (f"{words[one.what]} {format_memo(app, one.memo)}\n    {one.why}" for one in found),
    )  # fmt: skip
    if not found:
        leave(1, "" if as_json else "Nothing is due.")
    if not really and not as_json:
        click.echo("Nothing has been changed. To do it: yester memory gc --apply", err=True)


# --- another status -------------------------------------------------------------------------------


def _change_status(
    app: App, memories: Sequence[str], step: str, why: str, as_json: bool, force: bool = False
) -> None:
    for name in memories:
        memo = lifecycle.find_memory(app.store, name)
        new = lifecycle.change_status(app.store, memo.item.id, step, app.by(why), force=force)
        print_change(app, new, f"{step}d", as_json)


@click.command("retire")
@MEMORIES
@flag("--force", "Also what is otherwise never deleted: a decision, a preference, a session's "
      "summary.")  # fmt: skip
@add_options(WHY, AS_JSON)
@pass_app
def retire_command(
    app: App, memories: tuple[str, ...], force: bool, why: str, as_json: bool
) -> None:
    """Take memories out of use. After 30 days `yester memory gc` lets them go."""
    _change_status(app, memories, "retire", why, as_json, force)


@click.command("archive")
@MEMORIES
@add_options(WHY, AS_JSON)
@pass_app
def archive_command(app: App, memories: tuple[str, ...], why: str, as_json: bool) -> None:
    """Put memories away: never found or shown any more, and never let go."""
    _change_status(app, memories, "archive", why, as_json)


@click.command("restore")
@MEMORIES
@add_options(WHY, AS_JSON)
@pass_app
def restore_command(app: App, memories: tuple[str, ...], why: str, as_json: bool) -> None:
    """Bring retired or archived memories back into use."""
    _change_status(app, memories, "restore", why, as_json)


@click.command("undo")
@click.argument("memory", required=False)
@add_options(WHY, AS_JSON)
@pass_app
def undo_command(app: App, memory: str | None, why: str, as_json: bool) -> None:
    """Undo the last change of MEMORY, or the last change of any; undoing twice redoes it.

    What was just remembered is retired again; what it replaced is back.
    """
    id_ = lifecycle.find_memory(app.store, memory).item.id if memory else 0
    memos = lifecycle.undo_change(app.store, app.by(why), id_)
    print_result(
        as_json, {"done": "undone", "hits": [memo_as_json(app, memo) for memo in memos]},
        (f"undone {format_memo(app, memo)}" for memo in memos),
    )  # fmt: skip
