"""The commands that ask: recall, show, timeline, why, sessions, recent."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from yester.agents.descriptors import detect_session
from yester.clock import elapsed_ms, format_day, format_minute
from yester.context.lines import one_line
from yester.errors import ConfigError, NotFound, UsageError
from yester.faces.cli import rows
from yester.faces.cli.app import (
    App,
    Output,
    choose_filters,
    command,
    print_note,
    print_warning,
    render_json,
)
from yester.faces.cli.rows import Page, hit_as_json, hit_lines, join_names, page_lines, whole_lines
from yester.faces.cli.screen import align_rows, count_noun, make_bold, strip_steering
from yester.memories.chains import list_chain
from yester.memory import Memory
from yester.model import ECHO, Filters, Hit, Item, Paging, Session, replace
from yester.operations.files import LinesRequest, blame_lines, explain_lines, history_lines
from yester.operations.items import record_fetched
from yester.operations.search import explain_answer, find_neighbours
from yester.recall.recall import Answer, Asked, make_hit
from yester.recall.timeline import Timeline, recent_sessions
from yester.redact import redact
from yester.store import maintenance_of
from yester.store.figures import vector_backlog
from yester.text.terms import query_terms

if TYPE_CHECKING:
    from yester.llm.digest import Digest

# How far the search had to go, where it was farther than the words themselves.
_REACHED = {
    "prefix": "No such word; these begin alike:",
    "meaning": "None of these has such a word; they are nearest in meaning:",
    "recent": "The question names nothing to look for; the newest:",
}
_MUCH = 0.1  # of all items, without vectors: then it is told
_ECHOED = "repeats what the agent was shown: kept, and found by no search"
_NO_SESSIONS = "No sessions found. Try fewer filters, or run: yester index"


@command("recall", fenced=True)
def recall_command(app: App, /, **given: Any) -> Output:
    """Search everything that was said and done; without QUERY, the newest that pass the filters.

    A row shows what it is (❯ prompt, · message, ▤ plan or todo list, Σ summary, ★ memory; of
    observations ◆ decision, ✔ bugfix, ✚ feature, ↻ refactor, △ change, ○ discovery, ● any other),
    its id for `yester show`, when, how well it fits (0 to 1), what it would cost a model to read
    whole (~40t = about 40 tokens), and what else was found: +6 more of the same turn, ≈1 that says
    the same.
    """
    filters, answer, value = _recall(app.memory, given)
    if outdated := maintenance_of(app.reading).stale():
        print_warning(f"{outdated}; run: yester reindex")
    if given["digest"]:
        value["digest"] = _make_digest(app, value["query"], answer.hits)
    _tell_backlog(app, given["explain"])
    nothing = ""
    if not answer.hits:
        nothing = "Nothing found. Try fewer or other words, or fewer filters."
        if filters.projects and not given["projects"]:
            nothing = "Nothing found in this project. To look in all of them: --all-projects"
        if answer.reach:
            nothing += " Nothing has any of these words; what is near in meaning: --near"
        nothing = _find_reason(app, filters, nothing)
    return Output(value, _answer_lines(app, answer, given, value), nothing)


search_command = recall_command  # another name


def _tell_backlog(app: App, explain: bool) -> None:
    """Where much cannot be found by meaning yet, as after the first `yester index`."""
    if app.config["embedder"] == "none" or app.read_by_agent:
        return
    backlog = vector_backlog(app.reading)
    if backlog.waiting and (explain or backlog.waiting >= _MUCH * backlog.items):
        print_note(f"{backlog} (yester status)")


def _find_reason(app: App, filters: Filters, usual: str) -> str:
    """Why nothing was found, where that is known: there is nothing, or nobody has such a name."""
    if not app.reading.totals("item")[0][0]:
        return "Nothing is indexed yet. Run: yester index"
    try:
        app.memory.check_names(filters)
    except (NotFound, UsageError) as error:
        return f"yester: {error}"
    return usual


def _recall(memory: Memory, given: Mapping[str, Any]) -> tuple[Filters, Answer, dict[str, Any]]:
    """What was looked through, what was found, and what of it a program gets."""
    began = time.perf_counter()
    query, full = " ".join(given["query"]), given["raw"] or given["form"] == "full"
    filters, terms = choose_filters(memory, given, query), query_terms(query)
    named = {name: given[name] for name in ("offset", "order", "explain", "near")}
    answer = memory.answer(Asked(query, filters, given["limit"], now=memory.now, **named))
    value: dict[str, Any] = {
        "query": query, "hits": [hit_as_json(hit, terms, full) for hit in answer.hits],
        "took_ms": elapsed_ms(began),
    }  # fmt: skip
    if given["explain"]:
        value["explain"] = explain_answer(answer, memory.reading)
    return filters, answer, value


def print_recall(memory: Memory, words: Sequence[str]) -> bytes | None:
    """What `yester recall WORDS --json` prints, for a worker that answers in its place. None where
    the command has more to say than its JSON: an error, a warning, that there is nothing."""
    if {"-h", "--help", "--digest"} & set(words):
        return None
    try:
        given = recall_command.make_context("recall", list(words)).params
        if not given["as_json"] or maintenance_of(memory.reading).stale():
            return None
        _, answer, value = _recall(memory, given)
    except (click.ClickException, UsageError, NotFound):
        return None
    return strip_steering(render_json(value) + "\n").encode() if answer.hits else None


def _answer_lines(
    app: App, answer: Answer, given: Mapping[str, Any], value: Mapping[str, Any]
) -> Iterator[str]:
    if answer.hits and "digest" in value:
        yield from _digest_lines(app, value["digest"])
    if answer.hits and (reached := _REACHED.get(answer.reach)):
        print_note(reached)
    if given["raw"] or given["form"] == "full":
        yield from whole_lines(app, answer.hits, weights=answer.weights)
    else:
        yield from hit_lines(app, answer.hits, value["query"], answer.weights)
    if given["explain"]:
        yield from rows.explain_omissions(answer)


# --- a digest -------------------------------------------------------------------------------------


def _make_digest(app: App, query: str, hits: Sequence[Hit]) -> Digest:
    """Imported when asked for: a plain search pays nothing for it."""
    from yester.llm.budget import open_asker
    from yester.llm.digest import digest_hits

    asker, reason = None, ""
    try:
        asker = open_asker(app.config, app.reading, print_warning) if hits else None
    except ConfigError as error:
        reason = str(error)
    parts = app.reading.get([part for hit in hits for part in hit.parts])
    every = [*hits, *(make_hit(part, app.names) for part in parts)]
    digest = digest_hits(query, every, asker)
    digest = replace(digest, reason=reason or digest.reason)
    if digest.reason:
        print_warning(f"the digest is made without a language model: {digest.reason}")
    return digest


def _digest_lines(app: App, digest: Digest) -> Iterator[str]:
    from yester.llm.questions import HEADINGS

    for name, heading in HEADINGS.items():
        entries = getattr(digest.headings, name)
        if entries:
            yield make_bold(heading)
        for entry in entries:
            numbers = " ".join(f"#{item}" for item in entry.items[:6])
            yield f"  - {app.quote_line(entry.text, 600)}  {click.style(numbers, dim=True)}"
    if not digest.headings:
        yield "No sentence of the hits tells of a decision, an attempt or a warning."
    yield ""


# --- items by their id ----------------------------------------------------------------------------


def find_items(app: App, text: str) -> list[Item]:
    """By the id as it is printed (#12 or 12), else by the client's own."""
    number = text.removeprefix("#")
    if not number.isdecimal():
        found = app.reading.find_by_ref(text)
        return app.memory.get_items([item.id for item in found])
    return app.memory.get_items([int(number)])


@command("show", fenced=True)
def show_command(app: App, ids: tuple[str, ...], form: str) -> Output:
    """Show items by ID, as `yester recall` prints them (#12 or 12), or by the client's own id."""
    by_text = {text: find_items(app, text) for text in dict.fromkeys(ids)}
    items = [item for text in ids for item in by_text[text]]
    hits = [make_hit(item, app.names) for item in items]
    full = form == "full"
    if full:
        # An agent's shell may say which session it is.
        session = app.reading.session(*detect_session(os.environ))
        number = session.id if session else 0
        record_fetched(app.reading, [one.id for one in hits], app.now, number)
    chains = [list_chain(app.reading, item) for item in items]
    for item in items:
        if item.status != "active":
            more = f": yester memory show {item.id}" if item.kind == "memory" else ""
            told = _ECHOED if item.status == ECHO else f"is {item.status}{more}"
            print_note(f"#{item.id} {told}")
    missing = ", ".join(text for text, found in by_text.items() if not found)
    rows = [hit_as_json(one, full=full) for one in hits]
    return Output(
        {"query": " ".join(ids), "hits": rows, "took_ms": 0},
        chain(whole_lines(app, hits) if full else hit_lines(app, hits), _chain_lines(chains)),
        error=NotFound(f"no item {missing}; `yester recall` shows ids") if missing else None,
    )


def _chain_lines(chains: Iterable[Sequence[Item]]) -> Iterator[str]:
    """What stood where, the oldest first: all but the last are history."""
    for items in chains:
        for item in items if len(items) > 1 else ():
            word = "now" if item is items[-1] else "was"
            title = one_line(item.title or item.body, 200)
            yield f"{word} #{item.id}  {format_day(item.epoch)}  {title}"


# --- what happened around something ---------------------------------------------------------------


@command("timeline", fenced=True)
def timeline_command(
    app: App, /, anchor: tuple[str, ...], query: str | None, before: int, after: int, form: str,
    **given: Any,
) -> Output:  # fmt: skip
    """Show what happened before and after ANCHOR, in its project.

    ANCHOR is an item's id (12 or #12), S and the id of a session (its first item), a time (3d,
    2026-03-01T14:00), latest (the default), or words: what fits them best. ▶ marks it.
    """
    began = time.perf_counter()
    text, full = " ".join(anchor), form == "full"
    found, error = Timeline(0.0), None
    try:
        filters = choose_filters(app.memory, given, query or text)
        found = find_neighbours(
            app.memory, text, before, after, filters, query or "", given["everywhere"], app.now
        )
    except NotFound as problem:
        error = problem
    marked, hits = found.anchor.id if found.anchor else 0, list(found)
    value = {
        "query": query or text, "anchor": marked or None,
        "hits": [hit_as_json(one, full=full) for one in hits],
        "took_ms": elapsed_ms(began),
    }  # fmt: skip
    lines = whole_lines(app, hits, marked) if full else _timeline_lines(app, found)
    nothing = "Nothing around it. Try other filters, or --all-projects."
    return Output(value, lines, nothing, hits, error=error)


def _timeline_lines(app: App, found: Timeline) -> Iterator[str]:
    """A line per item under its day and session; a point in time is a line of its own."""
    yield from _day_lines(app, found.before if found.anchor is None else list(found), found.anchor)
    if found.anchor is None and found:
        yield f"\n{rows.MARK} {make_bold(format_minute(int(found.epoch * 1000)))}\n"
        yield from _day_lines(app, found.after, None)


def _day_lines(app: App, hits: Sequence[Hit], anchor: Hit | None) -> Iterator[str]:
    def heading(hit: Hit) -> str:
        day = format_minute(int(hit.epoch * 1000), missing="undated")
        names = join_names(app, hit.project, hit.session[:8], hit.agent)
        return f"{day[:10]}  {names}"

    for number, (head, group) in enumerate(groupby(hits, heading)):
        yield ("\n" if number else "") + make_bold(head)
        shown = list(group)
        for hit, line in zip(shown, rows.hit_rows(app, shown, clock=True), strict=True):
            mark = rows.MARK if anchor is not None and hit.id == anchor.id else " "
            yield f"{mark} {line}"


# --- who wrote this -------------------------------------------------------------------------------


@command("why", fenced=True)
def why_command(app: App, /, file: str, blame: bool) -> Output:
    """Show which turns wrote the lines of FILE, and why.

    For each stretch: the turn with what came of it, what it replaced and who had written that, what
    had failed at the same lines; then what was decided about the file. It goes by the text of the
    edits that sessions have recorded, through commits and renames. FILE is named from here or from
    the project's root.
    """
    found = explain_lines(app.memory, LinesRequest(file=file))
    lines = blame_lines(found) if blame else history_lines(found)
    return Output(found, lines)


# --- sessions -------------------------------------------------------------------------------------


@command("sessions", fenced=True)
def sessions_command(app: App, /, limit: int, offset: int, form: str, **given: Any) -> Output:
    """List sessions, newest first. JSON always tells everything."""
    filters = choose_filters(app.memory, given)
    found = app.reading.sessions(filters, Paging(limit, offset))
    pages = page_lines(app, (_session_page(app, one) for one in found))
    return Output(
        {"sessions": [_session_as_json(app, session) for session in found]},
        pages if form == "full" else _session_lines(app, found),
        "" if found else _find_reason(app, filters, _NO_SESSIONS),
    )


def _session_lines(app: App, sessions: Sequence[Session]) -> Iterator[str]:
    cells, titles, narrow = [], _card_titles(app, sessions), 0 < app.width < rows.ROOMY
    for one in sessions:
        row, begun = _session_as_json(app, one), format_minute(one.started)
        size = count_noun(one.prompts, "prompt") if narrow else _session_size(one)
        title = app.quote_line(titles.get(one.key) or row["title"])
        cells.append([
            (one.key[:8], "36"), (begun[:10] if narrow else begun, "2"), row["project"],
            (size, "2"), title,
        ])  # fmt: skip
    return align_rows(cells, app.width, 4)


def _card_titles(app: App, sessions: Sequence[Session]) -> dict[str, str]:
    """What came of sessions, where that is known: it says more than their first words."""
    if not sessions:
        return {}
    since = min(one.started for one in sessions)
    cards = app.reading.select(Filters(kinds=("summary",), types=("session",), since=since))
    return {card.session: redact(card.title) for card in cards}


def _session_size(session: Session) -> str:
    return f"{count_noun(session.prompts, 'prompt')}, {count_noun(session.items, 'item')}"


def _session_page(app: App, session: Session) -> Page:
    row = _session_as_json(app, session) | {
        "size": _session_size(session), "folder": session.cwd,
        "time": f"{format_minute(session.started)} to {format_minute(session.ended)}",
    }  # fmt: skip
    shown = ("title", "agent", "project", "time", "size", "folder", "branch", "transcript")
    return Page(f"session {join_names(app, session.key)}", ((name, row[name]) for name in shown))


def _session_as_json(app: App, session: Session) -> dict[str, Any]:
    return structs.asdict(session) | {
        "session": session.key, "project": app.names.get(session.project, session.project),
        "started": session.started / 1000, "ended": session.ended / 1000,
        "title": redact(session.title),
    }  # fmt: skip


@command("recent", fenced=True)
def recent_command(app: App, /, limit: int, most: int, form: str, **given: Any) -> Output:
    """Show the last sessions: summary, prompts and closing message, and what they left behind.

    A summary speaks for the prompts before it.
    """
    full = form == "full"
    filters = choose_filters(app.memory, given)
    found = recent_sessions(app.reading, filters, limit, most)
    value = [
        _session_as_json(app, session) | {"hits": [hit_as_json(one, full=full) for one in hits]}
        for session, hits in found
    ]

    def recent_lines() -> Iterator[str]:
        for number, (session, hits) in enumerate(found):
            yield ("\n" if number else "") + make_bold(next(_session_lines(app, [session])))
            if full:
                yield from whole_lines(app, hits)
            else:
                yield from (f"  {line}" for line in rows.hit_rows(app, hits))

    nothing = "" if found else _find_reason(app, filters, _NO_SESSIONS)
    return Output({"sessions": value}, recent_lines(), nothing)
