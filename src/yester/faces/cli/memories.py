"""`yester memory`: memories on the screen, and the commands that look at them or let them go."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.agents.notes import find_instructions
from yester.clock import format_minute
from yester.context.lines import item_icon, one_line
from yester.errors import NotYours
from yester.faces.cli.app import App, Output, command
from yester.faces.cli.notes import format_diff
from yester.faces.cli.options import choose_search_filters
from yester.faces.cli.rows import Page, hit_as_json, join_names, page_lines, title_text
from yester.faces.cli.screen import count_noun, make_bold
from yester.memories import lifecycle, review
from yester.memories.categories import clean_text, get_category
from yester.memories.chains import list_memory_chain
from yester.memories.memory import GLOBAL, normalise_tags, read_history
from yester.memories.remember import find_candidate
from yester.model import STATUSES, Change, Filters, Memo, Paging, replace
from yester.operate.notes import lint_notes, propose_changes
from yester.recall.recall import make_hit
from yester.text.sentences import find_snippet

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


def _memo_row(app: App, memo: Memo, **more: object) -> dict[str, Any]:
    """What a command has found out about it, beside its index form."""
    return memo_as_json(app, memo, full=False) | more


def format_memo(app: App, memo: Memo) -> str:
    item = memo.item
    more = [f"[{', '.join(item.tags)}]" if item.tags else "", memo.path, _format_status(memo)]
    if item.supersedes:
        more.append(f"replaces #{item.supersedes}")
    title = app.quote_line(item.title or find_snippet(item.body, (), 100))
    if app.read_by_agent:
        more = [one_line(one, 200) for one in more]
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
        yield from (f"  {format_memo(app, memo)}" for memo in group)


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
    chosen = choose_search_filters(app.memory, given, "")
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
    chosen = _choose_filters(app, given)
    statuses, wanted = (STATUSES if status == "all" else (status,)), normalise_tags(tags)
    memos = app.reading.memos(chosen, Paging(limit, offset=offset, statuses=statuses), tags=wanted)
    nothing = "" if memos else 'No memories. Keep one: yester remember "…"'
    return show_memos(app, memos, form)._replace(nothing=nothing)


@command("memory show", fenced=True)
def show_command(app: App, memories: tuple[str, ...], form: str) -> Output:
    """Show memories with all their fields, whatever their status, and what they replace."""
    memos = [lifecycle.find_memory(app.reading, name) for name in memories]
    return show_memos(app, memos, form, " ".join(memories))


@command("memory history", fenced=True)
def history_command(app: App, memory: str | None, limit: int, form: str) -> Output:
    """Show the changes of MEMORY, or of all memories, the newest first."""
    item = lifecycle.find_memory(app.reading, memory).item.id if memory else 0
    changes = read_history(app.reading, item, limit)
    return Output(
        {"changes": [_change_as_json(change) for change in changes]},
        (line for change in changes for line in _change_lines(change, form)),
        "" if changes else "No changes.",
    )


def _change_as_json(change: Change) -> dict[str, Any]:
    row = {"memory": change.item, "epoch": change.epoch / 1000}
    return msgspec.structs.asdict(change) | row


def _change_lines(change: Change, form: str) -> Iterator[str]:
    def show_value(value: object) -> str:
        text = msgspec.json.encode(value).decode()
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
    where = GLOBAL if everywhere else app.find_project(project)
    choice = find_candidate(app.reading, category, said, where.key, normalise_tags(tags), files)
    found = [one for one in (choice.best, *choice.others) if one is not None]
    rows = [
        _memo_row(app, one.memo, points=one.points, same=one.same, tags=one.tags,
                  title_words=one.words, alike=one.alike)
        for one in found
    ]  # fmt: skip
    value = {
        "action": choice.action, "type": category.name, "query": said,
        "candidate": rows[0] if rows else None, "others": rows[1:], "compared": choice.compared,
        "deletable": category.deletable, "took_ms": round((time.perf_counter() - began) * 1000, 2),
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
    rows = [_memo_row(app, one.memo, check=one.check, text=one.text, fix=one.fix) for one in found]
    remarks = ((one.memo, f"{one.check}: {one.text}; {one.fix}") for one in found)
    nothing = "" if found else "Nothing to look at."
    return Output({"findings": rows}, _remark_lines(app, remarks, form), nothing)


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
    rows = [_memo_row(app, one.memo, what=one.what, why=one.why) for one in found]

    words = _DONE if really else _WOULD
    lines = (f"{words[one.what]} {format_memo(app, one.memo)}\n    {one.why}" for one in found)
    nothing = "" if found else "Nothing is due."
    hint = "" if really or nothing else _NOT_APPLIED
    return Output({"applied": really, "due": rows}, lines, nothing, hint=hint)


# --- another status -------------------------------------------------------------------------------


def _require_terminal(id_: int) -> None:
    """A yes to a proposed rule is the user's: an agent's shell has no terminal."""
    if not sys.stdin.isatty():
        raise NotYours(
            f"rule #{id_} waits for your own yes; say it in a terminal, in the viewer (yester ui), "
            f"or type it into the agent: /yester:keep {id_}"
        )


_STEP_DONE = {"keep": "kept", "drop": "dropped"}


def _status_command(step: str, help_: str) -> click.Command:
    def change_status(app: App, memories: tuple[str, ...], why: str, force: bool = False) -> Output:
        found = [lifecycle.find_memory(app.store, name) for name in memories]
        by = app.memory.by(why)
        for memo in found:
            if memo.item.status == "proposed" and lifecycle.STEPS[step][1] == "active":
                _require_terminal(memo.item.id)
        memos = [
            lifecycle.change_status(app.store, one.item.id, step, by, force=force) for one in found
        ]
        done = _STEP_DONE.get(step, f"{step}d")
        rows = tuple({"done": done, **memo_as_json(app, memo)} for memo in memos)
        return Output(rows, (f"{done} {format_memo(app, memo)}" for memo in memos))

    change_status.__doc__ = help_
    return command(f"memory {step}")(change_status)


retire_command = _status_command(
    "retire", "Take memories out of use. After 30 days `yester memory gc` lets them go."
)
archive_command = _status_command(
    "archive", "Put memories away: never found or shown any more, and never let go."
)
restore_command = _status_command("restore", "Bring retired or archived memories back into use.")
keep_command = _status_command(
    "keep", "Say yes to proposed rules: from now on agents are told of them."
)
drop_command = _status_command(
    "drop", "Say no to proposed rules, or put active ones away; they are not proposed again."
)


@command("memory undo")
def undo_command(app: App, memory: str | None, why: str) -> Output:
    """Undo the last change of MEMORY, or the last change of any; undoing twice redoes it.

    What was just remembered is retired again; what it replaced is back.
    """
    id_ = lifecycle.find_memory(app.store, memory).item.id if memory else 0
    memos = lifecycle.undo_change(app.store, app.memory.by(why), id_)
    return Output(
        {"done": "undone", "hits": [memo_as_json(app, memo) for memo in memos]},
        (f"undone {format_memo(app, memo)}" for memo in memos),
    )
