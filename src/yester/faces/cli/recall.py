"""The commands that ask: recall, show, timeline, sessions, recent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from yester.clock import DAY, format_minute
from yester.deliver.lines import one_line, quote_text
from yester.errors import ConfigError, NotFound, StoreError, UsageError
from yester.faces.cli.app import (
    App,
    F,
    bold,
    fenced_for_agents,
    leave,
    pass_app,
    print_result,
    render_json,
    warn,
)
from yester.faces.cli.options import (
    AGENT,
    AS_JSON,
    EVERYWHERE,
    FILES,
    OFFSET,
    PROJECTS,
    SESSION_FILTERS,
    SINCE,
    UNTIL,
    add_options,
    choose_filters,
    choose_search_filters,
    flag,
    form,
    limit,
    many,
)
from yester.faces.cli.rows import (
    MARK,
    explain_omissions,
    explanation_as_json,
    format_hit,
    hit_as_json,
    join_names,
    print_hits,
    print_whole_hits,
)
from yester.faces.cli.screen import count_noun
from yester.memory import Memory
from yester.model import ECHO, KINDS, Feedback, Filters, Hit, Item, Paging, Session
from yester.recall.recall import ORDERS, Answer, Asked, make_hit
from yester.recall.timeline import Timeline, build_timeline, recent_sessions
from yester.redact import redact
from yester.store import maintenance_of
from yester.text.terms import query_terms

if TYPE_CHECKING:
    from yester.llm.digest import Digest

# How far the search had to go, where it was farther than the words themselves.
_REACHED = {
    "prefix": "No such word; these begin alike:",
    "meaning": "None of these has such a word; they are nearest in meaning:",
    "recent": "The question names nothing to look for; the newest:",
}
_WRITER_PATIENCE = 0.2  # seconds for another writer
_NO_SESSIONS = "No sessions. Run: yester index"
ITEM_FILTERS = add_options(
    PROJECTS, EVERYWHERE,
    click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS),
                 help="Only this kind (repeatable)."),
    many("--type", "types", "TYPE", "Only this type, e.g. plan or compact (repeatable)."),
    many("--concept", "concepts", "NAME", "Only items with this concept (repeatable)."),
    FILES,
    click.option("--session", metavar="ID",
                 help="Only this session; 6 characters of its id will do."),
    AGENT,
    click.option("--tool", metavar="NAME", help="Only calls of this tool, e.g. Bash."),
    SINCE, UNTIL,
)  # fmt: skip


@click.command("recall")
@click.argument("query", nargs=-1)
@ITEM_FILTERS
@add_options(
    limit(10, 1000, "At most this many hits."), OFFSET,
    click.option("--order", type=click.Choice(ORDERS), default="relevance", show_default=True),
    form("index", "hit"),
    flag("--raw", "Hits with their full text, as --format full; never a digest."),
    flag("--digest", "First what the hits say together: decisions, attempts, files, warnings, what "
         "is open. A language model is asked only if config.toml names one."),
    AS_JSON, flag("--explain", "Show the factors of every score, and what was left out."),
)  # fmt: skip
@pass_app
@fenced_for_agents
def recall_command(app: App, /, as_json: bool, **given: Any) -> None:
    """Search everything that was said and done; without QUERY, the newest that pass the filters.

    A row shows what it is (❯ prompt, · message, ▤ plan or todo list, Σ summary, ★ memory; of
    observations ◆ decision, ✔ bugfix, ✚ feature, ↻ refactor, △ change, ○ discovery, ● any other),
    its id for `yester show`, when, how well it fits (0 to 1), and what it would cost a model to
    read whole (~40t = about 40 tokens).
    """
    if given["raw"] and given["digest"]:
        raise UsageError("--raw and --digest exclude each other; leave out one of them")
    began = time.perf_counter()
    query, filters, answer = _recall(app.memory, given)
    hits = answer.hits
    if outdated := maintenance_of(app.reading).stale():
        warn(f"{outdated}; run: yester reindex")
    digest = _make_digest(app, query, hits) if given["digest"] else None
    if as_json:
        print_result(True, _recall_as_json(query, answer, given, began, digest))
    else:
        _print_answer(app, query, answer, given, digest)
    if hits:
        return
    empty = not app.reading.totals("item")[0][0]
    own = filters.projects and not given["projects"]
    leave(
        1,
        "" if as_json
        else "Nothing is indexed yet. Run: yester index" if empty
        else "Nothing found in this project. To look in all of them: --all-projects" if own
        else "Nothing found. Try fewer or other words, or fewer filters.",
    )  # fmt: skip


def _recall(memory: Memory, given: Mapping[str, Any]) -> tuple[str, Filters, Answer]:
    query = " ".join(given["query"])
    filters = choose_search_filters(memory, given, query)
    asked = Asked(
        query, filters, given["limit"], given["offset"], given["order"], given["explain"],
        memory.now,
    )  # fmt: skip
    return query, filters, memory.answer(asked)


def _recall_as_json(
    query: str, answer: Answer, given: Mapping[str, Any], began: float, digest: Digest | None = None
) -> dict[str, Any]:
    terms, full = query_terms(query), given["raw"] or given["form"] == "full"
    value: dict[str, Any] = {
        "query": query, "hits": [hit_as_json(hit, terms, full) for hit in answer.hits],
        "took_ms": round((time.perf_counter() - began) * 1000, 2),
    }  # fmt: skip
    if digest is not None:
        value["digest"] = digest
    if given["explain"]:
        value["explain"] = explanation_as_json(answer)
    return value


def print_recall(memory: Memory, words: Sequence[str]) -> bytes | None:
    """What `yester recall WORDS --json` prints, for a worker that answers in its place. None where
    the command has more to say than its JSON: an error, a warning, that there is nothing."""
    if {"-h", "--help", "--digest"} & set(words):
        return None
    began = time.perf_counter()
    try:
        given = recall_command.make_context("recall", list(words)).params
        if not given["as_json"] or maintenance_of(memory.reading).stale():
            return None
        query, _, answer = _recall(memory, given)
    except (click.ClickException, UsageError, NotFound):
        return None
    if not answer.hits:
        return None
    from yester.faces.cli.screen import harmless

    return harmless(render_json(_recall_as_json(query, answer, given, began)) + "\n").encode()


def _print_answer(
    app: App, query: str, answer: Answer, given: Mapping[str, Any], digest: Digest | None
) -> None:
    hits = answer.hits
    if digest is not None and hits:
        _print_digest(app, digest)
    if reached := _REACHED.get(answer.reach):
        click.echo(reached, err=True)
    if given["raw"] or given["form"] == "full":
        print_whole_hits(app, hits, weights=answer.weights)
    else:
        print_hits(app, hits, query, answer.weights)
    for told in explain_omissions(answer) if given["explain"] else ():
        click.echo(told)


# --- a digest -------------------------------------------------------------------------------------


def _make_digest(app: App, query: str, hits: Sequence[Hit]) -> Digest:
    """Imported when asked for: a plain search pays nothing for it."""
    from yester.llm.digest import Digest, digest_hits, extract_headings

    if app.config["llm.provider"] == "none" or not hits:
        return Digest(extract_headings(query, hits))
    from yester.llm.budget import open_asker

    try:
        asker = open_asker(app.config, app.store, warn)
    except ConfigError as error:
        digest = Digest(extract_headings(query, hits), reason=str(error))
    else:
        digest = digest_hits(query, hits, asker)
    if digest.reason:
        warn(f"the digest is made without a language model: {digest.reason}")
    return digest


def _print_digest(app: App, digest: Digest) -> None:
    from yester.llm.questions import HEADINGS

    for name, heading in HEADINGS.items():
        entries = getattr(digest.headings, name)
        if entries:
            click.echo(bold(heading))
        for entry in entries:
            numbers = " ".join(f"#{item}" for item in entry.items[:6])
            text = quote_text(one_line(entry.text, 600)) if app.read_by_agent else entry.text
            click.echo(f"  - {text}  {click.style(numbers, dim=True)}")
    if not digest.headings:
        click.echo("No sentence of the hits tells of a decision, an attempt or a warning.")
    click.echo("")


# --- items by their id ----------------------------------------------------------------------------


def find_items(app: App, text: str) -> list[Item]:
    """By the id as it is printed (#12 or 12), else by the client's own."""
    number = text.removeprefix("#")
    return app.reading.get([int(number)]) if number.isdecimal() else app.reading.find_by_ref(text)


@click.command("show")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@add_options(form("full", "item"), AS_JSON)
@pass_app
@fenced_for_agents
def show_command(app: App, ids: tuple[str, ...], form: str, as_json: bool) -> None:
    """Show items by ID, as `yester recall` prints them (#12 or 12), or by the client's own id."""
    by_text = {text: find_items(app, text) for text in dict.fromkeys(ids)}
    items = [item for text in ids for item in by_text[text]]
    hits = [make_hit(item, app.names) for item in items]
    full = form == "full"
    if full:
        _note_fetched(app, [one.id for one in hits])
    if as_json:
        rows = [hit_as_json(one, full=full) for one in hits]
        print_result(True, {"query": " ".join(ids), "hits": rows, "took_ms": 0})
    elif full:
        print_whole_hits(app, hits)
    else:
        print_hits(app, hits)
    for item in items:
        if item.status == ECHO:
            said = "repeats what the agent was shown: kept, and found by no search"
            click.echo(f"#{item.id} {said}", err=True)
        elif item.status != "active":
            click.echo(f"#{item.id} is {item.status}: yester memory show {item.id}", err=True)
    if missing := [text for text, found in by_text.items() if not found]:
        raise NotFound(f"no item {', '.join(missing)}; `yester recall` shows ids")


def _note_fetched(app: App, ids: list[int]) -> None:
    """Of what an agent was shown, somebody wanted the whole: it was of use. Not worth waiting for,
    and no reason to fail where nothing can be written."""
    from yester.agents.descriptors import detect_session

    store = app.reading
    shown = [id_ for id_, used in store.texts(ids).used.items() if used.shown or used.listed]
    if not shown:
        return
    session = store.session(*detect_session(os.environ))  # an agent's shell may say which it is
    number = session.id if session else 0
    with suppress(StoreError, OSError), store.transaction("ledger", patience=_WRITER_PATIENCE):
        store.append([Feedback(id_, "fetched", app.now, number) for id_ in shown])


# --- what happened around something ---------------------------------------------------------------


def _around(name: str, help_: str) -> Callable[[F], F]:
    return click.option(
        f"--{name}", f"-{name[0]}", type=click.IntRange(0, 1000), default=10, show_default=True,
        help=help_,
    )  # fmt: skip


@click.command("timeline")
@click.argument("anchor", nargs=-1)
@click.option("--query", metavar="TEXT",
              help="Around what fits this best; with `latest`, the newest that fits.")  # fmt: skip
@_around("before", "How many items before it.")
@_around("after", "How many items after it.")
@ITEM_FILTERS
@add_options(form("index", "item"), AS_JSON)
@pass_app
@fenced_for_agents
def timeline_command(
    app: App, /, anchor: tuple[str, ...], query: str | None, before: int, after: int, form: str,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Show what happened before and after ANCHOR, in its project.

    ANCHOR is an item's id (12 or #12), S and the id of a session (its first item), a time (3d,
    2026-03-01T14:00), latest (the default), or words: what fits them best. ▶ marks it.
    """
    began = time.perf_counter()
    text, full = " ".join(anchor), form == "full"

    def as_value(found: Timeline | None) -> dict[str, Any]:
        return {
            "query": query or text, "anchor": found.anchor.id if found and found.anchor else None,
            "hits": [hit_as_json(one, full=full) for one in found or ()],
            "took_ms": round((time.perf_counter() - began) * 1000, 2),
        }  # fmt: skip

    try:
        found = build_timeline(
            app.reading, text or None, before, after,
            choose_search_filters(app.memory, given, query or text), app.now, query=query or "",
            everywhere=given["everywhere"], window=app.config.number("recency_window_days") * DAY,
            answer=app.memory.answer,
        )  # fmt: skip
    except NotFound:
        if as_json:
            print_result(True, as_value(None))
        raise
    if full and not as_json:
        print_whole_hits(app, list(found), found.anchor.id if found.anchor else 0)
    else:
        print_result(as_json, as_value(found), _timeline_lines(app, found))
    if not found:
        leave(1, "" if as_json else "Nothing around it. Try other filters, or --all-projects.")


def _timeline_lines(app: App, found: Timeline) -> Iterator[str]:
    """A line per item under its day and session; a point in time is a line of its own."""
    yield from _day_lines(app, found.before if found.anchor is None else list(found), found.anchor)
    if found.anchor is None and found:
        yield f"\n{MARK} {bold(format_minute(int(found.epoch * 1000)))}\n"
        yield from _day_lines(app, found.after, None)


def _day_lines(app: App, hits: Sequence[Hit], anchor: Hit | None) -> Iterator[str]:
    def heading(hit: Hit) -> str:
        day = format_minute(int(hit.epoch * 1000), missing="undated")
        names = join_names(app, hit.project, hit.session[:8], hit.agent)
        return f"{day[:10]}  {names}"

    for number, (head, group) in enumerate(groupby(hits, heading)):
        yield ("\n" if number else "") + bold(head)
        for hit in group:
            mark = MARK if anchor is not None and hit.id == anchor.id else " "
            yield f"{mark} {format_hit(app, hit, clock=True)}"


# --- sessions -------------------------------------------------------------------------------------


@click.command("sessions")
@SESSION_FILTERS
@add_options(limit(20, 10_000, least=1), OFFSET, form("index", "session"), AS_JSON)
@pass_app
@fenced_for_agents
def sessions_command(
    app: App, /, limit: int, offset: int, form: str, as_json: bool, **given: Any
) -> None:
    """List sessions, newest first. JSON always tells everything."""
    found = app.reading.sessions(choose_filters(app.memory, given), Paging(limit, offset))
    show = _format_session if form == "index" else _format_whole_session
    print_result(
        as_json, {"sessions": [_session_as_json(app, session) for session in found]},
        (("\n" if number and form == "full" else "") + show(app, session)
         for number, session in enumerate(found)),
    )  # fmt: skip
    if not found:
        leave(1, "" if as_json else _NO_SESSIONS)


def _format_session(app: App, session: Session) -> str:
    name = app.names.get(session.project, session.project)
    begun, size = format_minute(session.started), _session_size(session)
    return f"{session.key[:8]}  {begun}  {name}  {size}  {_session_title(app, session)}"


def _session_size(session: Session) -> str:
    return f"{count_noun(session.prompts, 'prompt')}, {count_noun(session.items, 'item')}"


def _session_title(app: App, session: Session) -> str:
    title = redact(session.title)
    return quote_text(one_line(title, 200)) if app.read_by_agent and title else title


def _format_whole_session(app: App, session: Session) -> str:
    """A heading, and under it what is known; what is not known has no line."""
    facts = {
        "title": _session_title(app, session), "agent": session.agent,
        "project": app.names.get(session.project, session.project),
        "time": f"{format_minute(session.started)} to {format_minute(session.ended)}",
        "size": _session_size(session), "folder": session.cwd, "branch": session.branch,
        "transcript": session.transcript,
    }  # fmt: skip
    if app.read_by_agent:
        facts = {name: one_line(value, 300) for name, value in facts.items()}
    lines = [f"  {name:<10}  {value}" for name, value in facts.items() if value]
    return "\n".join([bold(f"session {session.key}"), *lines])


def _session_as_json(app: App, session: Session) -> dict[str, Any]:
    return {
        "session": session.key, "agent": session.agent,
        "project": app.names.get(session.project, session.project),
        "started": session.started / 1000, "ended": session.ended / 1000, "cwd": session.cwd,
        "branch": session.branch, "title": redact(session.title), "transcript": session.transcript,
        "prompts": session.prompts, "items": session.items,
    }  # fmt: skip


@click.command("recent")
@SESSION_FILTERS
@add_options(
    limit(3, 100, "How many sessions.", least=1),
    click.option("--rows", type=click.IntRange(1, 1000), default=12, show_default=True,
                 help="How many rows of each."),
    form("index", "item"), AS_JSON,
)  # fmt: skip
@pass_app
@fenced_for_agents
def recent_command(
    app: App, /, limit: int, rows: int, form: str, as_json: bool, **given: Any
) -> None:
    """Show the last sessions: summary, prompts and closing message, and what they left behind.

    A summary speaks for the prompts before it.
    """
    full = form == "full"
    sessions = recent_sessions(app.reading, choose_filters(app.memory, given), limit, rows)
    if as_json:
        value = [
            {"session": session.key, "title": session.title, "started": session.started / 1000,
             "project": session.project, "hits": [hit_as_json(one, full=full) for one in hits]}
            for session, hits in sessions
        ]  # fmt: skip
        print_result(True, {"sessions": value})
    for number, (session, hits) in enumerate(sessions if not as_json else ()):
        click.echo(("\n" if number else "") + bold(_format_session(app, session)))
        if full:
            print_whole_hits(app, hits)
        for one in hits if not full else ():
            click.echo(f"  {format_hit(app, one)}")
    if not sessions:
        leave(1, "" if as_json else _NO_SESSIONS)
