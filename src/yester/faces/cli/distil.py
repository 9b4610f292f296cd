"""`yester distil`: observations and summaries of what has happened."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from yester.distil import QUIET
from yester.distil.distil import Report, distil
from yester.distil.history import Rules, distilled_items
from yester.errors import NotFound, UsageError
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.faces.cli.stopping import stoppable
from yester.ingest.transcripts import rebuild_if_stale
from yester.llm.budget import open_asker
from yester.llm.refine import LATELY, find_unrefined, refine_turns
from yester.model import Item, Queue, Session, Waiting
from yester.store.contract import Store
from yester.store.figures import Refinements

_MANY = 1_000_000_000


@click.command("distil")
@click.option("--backfill", is_flag=True, help="Indexed sessions, too, that no hook has told of.")
@click.option("--again", is_flag=True, help="With --backfill: those that are done as well.")
@click.option("--session", metavar="ID", help="This session, done or not; 6 characters will do.")
@click.option(
    "--refine",
    is_flag=True,
    help="Have the language model of [llm] note what was distilled, within its budget.",
)
@click.option("--show", is_flag=True, help="With --session: print what it was distilled into.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@pass_app
def command(
    app: App,
    backfill: bool,
    again: bool,
    session: str | None,
    refine: bool,
    show: bool,
    as_json: bool,
) -> None:
    """Distil sessions: observations of what was done, found and decided, and summaries.

    No model is asked: every fact is a sentence of the session itself. The worker does this by
    itself after each turn; sessions from before there were hooks want --backfill, once. Stopping
    it loses nothing: the next run goes on where it ended.

    With --refine, the turns of the last day, or of --session, are noted by the language model that
    is set. The worker does this, too, once for each turn; here those it could not note come again.
    """
    if refine and backfill:
        raise UsageError("--refine is for the last day, or for one session with --session ID")
    if show and session is None:
        raise UsageError("--show prints one session; name it with --session ID")
    if again and not backfill:
        raise UsageError(
            "--again belongs to --backfill; one session is `yester distil --session ID`"
        )
    store = app.store
    rebuild_if_stale(store)
    if again:
        with store.transaction("work"):
            store.queue_sessions()
    if session is None:
        found = store.queued_sessions(
            Queue("distil", hooked=not backfill, quiet_since=app.now - QUIET, limit=_MANY)
        )
    else:
        found = store.queued_sessions(Queue("any", key=session))
        if not found:
            raise NotFound(f"no session {session}; `yester sessions` lists them")
    rules = Rules.of(app.config)
    report = Report()
    gc.set_threshold(100_000)
    began = time.monotonic()
    with _progress(len(found)) as advance, stoppable():
        for one in found:
            for _ in distil(store, one, rules, report, app.now):
                pass
            advance()
    noted = (
        _refined(app, rules, [one.session for one in found] if session else None)
        if refine
        else None
    )
    made = (
        [item for one in found for item in distilled_items(store, one.session.id)] if show else []
    )
    if as_json:
        print_json(
            {
                **_as_json(report),
                **({"refined": noted._asdict()} if noted else {}),
                **({"items": [_shown(store, i) for i in made]} if show else {}),
            }
        )
        return
    for item in made:
        _print(item)
    _say(app, report, found, time.monotonic() - began, backfill)
    if noted is not None:
        click.echo(
            f"{count(noted.turns, 'turn')} refined, {noted.kept:,} kept as found"
            + (f": {noted.reason}" if noted.reason else "")
        )


def _refined(app: App, rules: Rules, sessions: list[Session] | None) -> Refinements:
    """Ask about the turns of these sessions, or of those of the last day that hooks told of."""
    since = 0 if sessions is not None else app.now - LATELY
    if sessions is None:
        sessions = [
            waiting.session for waiting in app.store.queued_sessions(Queue("refine", since=since))
        ]
    told: list[str] = []

    def tell(estimate: str) -> None:
        if not told:
            click.echo(f"{count(number, 'turn')} to refine; {estimate}", err=True)
        told.append(estimate)

    asker = open_asker(app.config, app.store, tell)
    if asker is None:
        raise NotFound("no language model is set; name one in [llm] of config.toml (llm.provider)")
    todo = [(one, find_unrefined(app.store, one, since, rules, again=True)) for one in sessions]
    number = sum(len(turns) for _, turns in todo)
    refined, kept, reason = 0, 0, ""
    with stoppable():
        for one, turns in todo:
            ended = 0
            for _, done in refine_turns(app.store, asker, one, turns):
                ended += 1
                refined, kept = refined + (not done.reason), kept + bool(done.reason)
                reason = done.reason or reason
            if ended < len(turns):
                kept, reason = kept + len(turns) - ended, "another call is under way; try again"
            for waiting in app.store.queued_sessions(Queue("any", key=one.key)):
                if waiting.session.id == one.id and waiting.changes:
                    for _ in distil(app.store, waiting, rules, Report()):
                        pass
    return Refinements(refined, kept, reason)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty() or not total:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("distilling"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.__stderr__), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "sessions": report.sessions,
        "turns": report.turns,
        "tool_events": report.steps,
        "observations": report.observations,
        "summaries": report.summaries,
        "repeated": report.repeated,
        "rules": report.rules,
        "links": report.links,
        "added": report.put.added,
        "changed": report.put.changed,
    }


def _shown(store: Store, item: Item) -> dict[str, Any]:
    evidence = store.evidence([item.id]).get(item.id, ())
    return {
        "id": item.id, "kind": item.kind, "type": item.type, "title": item.title,
        "subtitle": item.subtitle, "narrative": item.body,
        "facts": [
            {"text": text, "sources": _sources(evidence, at)} for at, text in enumerate(item.facts)
        ],
        "concepts": item.concepts, "files_read": item.files_read,
        "files_modified": item.files_modified, "sections": dict(item.sections), "tags": item.tags,
        "discovery_tokens": item.discovery_tokens, "session": item.session,
        "prompt_number": item.prompt_number, "epoch": item.epoch / 1000,
    }  # fmt: skip


def _sources(evidence: Iterable[tuple[int, int]], fact: int) -> list[int]:
    return sorted(source for number, source in evidence if number == fact)


def _print(item: Item) -> None:
    head = f"#{item.id} {item.type or item.kind}"
    click.echo(click.style(f"{head}: {item.title}", bold=True))
    for text in filter(None, (item.subtitle, item.body)):
        click.echo(f"  {text}")
    for fact in item.facts:
        click.echo(f"  - {fact}")
    for name, text in item.sections.items():
        lines = text.split("\n")
        click.echo(f"  {name.replace('_', ' ')}: " + "\n    ".join(lines))
    if item.files:
        click.echo(f"  files: {', '.join(item.files[:6])}{' …' if len(item.files) > 6 else ''}")
    click.echo("")


def _say(app: App, report: Report, found: list[Waiting], seconds: float, backfill: bool) -> None:
    if not found:
        click.echo("nothing waits to be distilled")
    else:
        click.echo(
            f"{count(report.observations, 'observation')} and {_summaries(report.summaries)}"
            f" of {count(report.sessions, 'session')} in {seconds:.1f} s"
        )
    if not backfill and (left := app.store.totals("undistilled")[0][0]):
        click.echo(f"{count(left, 'indexed session')} not distilled yet: yester distil --backfill")


def _summaries(number: int) -> str:
    return f"{number:,} summar{'y' if number == 1 else 'ies'}"
