"""The commands that take in what there is: index, distil, reindex."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click
import msgspec

from yester.agents.base import Options, find_transcripts, load_reader
from yester.agents.descriptors import AGENTS, CLAUDE_CODE, Agent
from yester.agents.notes import list_note_files
from yester.capture.question import ask_health
from yester.capture.rules import load_rules
from yester.cards import QUIET
from yester.cards.sessions import DistilReport, distil_session
from yester.cards.turns import DistilRules, distilled_items
from yester.clock import parse_time
from yester.errors import ModelError, NotFound, SourceError, UsageError
from yester.faces.cli.app import App, Output, command, long_run, print_note
from yester.faces.cli.notes import summarise_notes
from yester.faces.cli.rows import whole_lines
from yester.faces.cli.screen import count_noun, join_counts
from yester.ingest.projects import apply_names, begin_folders, describe_joins, join_all
from yester.ingest.transcripts import Ingest, Report, rebuild_if_stale
from yester.known_secrets import FoundSecrets
from yester.llm.budget import open_asker
from yester.llm.refine import LATELY, find_unrefined, refine_turns
from yester.machine import on_battery
from yester.memories.memory_md import MEMORY
from yester.memories.sync import ImportReport
from yester.model import Item, Queue, Session, Waiting
from yester.operate.notes import import_notes, retire_vanished
from yester.recall.recall import make_hit
from yester.store import maintenance_of
from yester.store.contract import Store
from yester.store.figures import Refinements, vector_backlog
from yester.text.embed import why_not
from yester.text.reader import open_reader
from yester.text.terms import remember_words
from yester.worker.process import start_worker

_LOOK = 0.5  # seconds between looks at what a worker does
_MANY = 1_000_000_000
_WORDS = 100_000  # of which is remembered how they are indexed
_LOOKING_BACK = 8.0  # seconds
_MOST_PROBLEMS = 20  # are printed


@command("index")
def index_command(
    app: App, paths: tuple[Path, ...], since: str | None, only: tuple[str, ...], wait: bool,
    no_vectors: bool,
) -> Output:  # fmt: skip
    """Index transcripts: those the agents keep, or the files and folders named by PATHS.

    Only what is new is read, so run it as often as you like. Stopping it loses nothing: the next
    run goes on where it ended. The notes that agents keep or load (MEMORY.md, CLAUDE.md, AGENTS.md
    and their like) are indexed beside them.
    Texts are found by their words at once, and by meaning when the worker has made their vectors,
    in the background.
    """
    agents = [AGENTS[name] for name in only] or list(AGENTS.values())
    oldest = 0 if since is None else parse_time(since, app.now, option="--since")
    everything = _find_named(paths, agents) if paths else (
        (agent, path) for agent in agents for path in find_transcripts(agent, app.config)
    )  # fmt: skip
    found = [(agent, path) for agent, path in everything if _changed_at(path) >= oldest]
    if rebuilt := rebuild_if_stale(app.store):
        items = count_noun(rebuilt, "item")
        print_note(f"words are taken apart in a new way; {items} indexed anew")
    begin_folders(app.store, app.home)
    apply_names(app.store, app.projects)
    if joins := join_all(app.store, app.projects, app.now):
        print_note(
            "folders were joined with their repositories: "
            f"{describe_joins(app.store, joins)} (undo: yester doctor --undo-join NAME)"
        )
    options = Options(app.config.flag("thinking"), app.config.flag("subagents"))
    secrets = FoundSecrets(app.home)
    secrets.refresh()
    ingest = Ingest(app.store, app.projects, options, load_rules(app.config), found=secrets)
    remember_words(_WORDS)
    began = time.monotonic()
    total = sum(path.stat().st_size for _, path in found if path.exists())
    with long_run("indexing", total) as advance:
        try:
            for agent, path in found:
                for done in ingest.read_slices(agent, path):
                    advance(done)
        finally:
            ingest.flush()
    report, notes = ingest.report, ImportReport()
    if not only or CLAUDE_CODE.name in only:
        notes = _index_notes(app, paths, oldest)
    warnings = report.problems + notes.problems
    if (more := len(warnings) - _MOST_PROBLEMS) > 0:
        warnings[_MOST_PROBLEMS:] = [f"… and {more} more"]
    said = _index_lines(report, len(found), time.monotonic() - began, notes, paths)
    lines: Iterable[str] = [*said, *_make_vectors(app, wait, no_vectors)]
    value = msgspec.to_builtins(report) | msgspec.to_builtins(report.put) | {
        "unchanged": report.unchanged, "notes": notes,
        "vectors": vector_backlog(app.store)._asdict(),
    }  # fmt: skip
    code, error = int(not (found or notes.files or notes.unchanged)), None
    if found and report.failed == len(found):
        error = SourceError(f"none of the {len(found)} transcripts could be read; see above")
    if app.width and not (code or error):  # somebody is looking
        lines = chain(lines, _look_back(app))
    return Output(value, lines, code=code, warnings=warnings, error=error)


def _look_back(app: App) -> Iterator[str]:
    """What the newest sessions show, a few seconds' work; the rest is left to `yester distil`."""
    from yester.faces.cli.stats import describe_findings
    from yester.operations.findings import find_findings

    waiting = _find_waiting(app, None, backfill=True)
    _distil_sessions(app, "looking through them", waiting, _LOOKING_BACK)
    if found := find_findings(app.memory):
        yield ""
        yield from describe_findings(found)


def _make_vectors(app: App, wait: bool, later: bool) -> Iterator[str]:
    """Have the worker make the vectors that are missing, or see to it until all are there."""
    backlog = vector_backlog(app.store)
    if not backlog.waiting or app.config["embedder"] == "none":
        return
    if wait:
        _wait_for_vectors(app, backlog.waiting)
        yield f"{backlog.items:,} texts can be found by meaning"
        return
    if not later and ask_health(app.home) is None:
        later = start_worker(app.home, os.environ) is None
    how = "the next worker makes them" if later else "the worker is making them (yester status)"
    how = "the worker makes them when the machine is plugged in" if on_battery() else how
    yield f"{backlog}; {how}"


def _wait_for_vectors(app: App, waiting: int) -> None:
    from yester.ingest.vectors import embed_waiting

    with long_run("vectors", waiting) as advance:
        # A worker is at it already; on battery it is not, but here somebody waits.
        while waiting and ask_health(app.home) is not None and not on_battery():
            time.sleep(_LOOK)
            left = vector_backlog(app.store).waiting
            advance(waiting - left)
            waiting = left
        if waiting and app.memory.embedder is None:
            raise ModelError(why_not(app.config.values, app.home))
        for done in embed_waiting(app.store, app.memory.embedder) if app.memory.embedder else ():
            advance(done)


def _find_named(paths: tuple[Path, ...], agents: list[Agent]) -> Iterator[tuple[Agent, Path]]:
    if missing := ", ".join(str(path) for path in paths if not path.exists()):
        fix = "name a transcript or a folder of them"
        raise SourceError(f"{missing}: no such file or folder; {fix}")
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in files:
            agent = next((one for one in agents if load_reader(one.name).is_transcript(file)), None)
            if agent is not None:
                yield agent, file.resolve()
            elif not path.is_dir():
                labels = ", ".join(one.label for one in agents)
                raise SourceError(f"{file}: not a transcript of {labels}")


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime * 1000
    except OSError:
        return 0.0


def _index_notes(app: App, paths: tuple[Path, ...], oldest: int) -> ImportReport:
    """The notes of all agents and known repositories, or those below the folders named."""
    roots = [project.root for project in app.store.projects() if project.root]
    found = _notes_below(paths) if paths else list_note_files(app.config, roots)
    files = ((file, about) for file, about in found if _changed_at(file) >= oldest)
    report = import_notes(app.store, files, app.projects, load_rules(app.config))
    if not paths:
        report.gone += retire_vanished(app.store, app.config, roots)
    return report


def _notes_below(paths: tuple[Path, ...]) -> Iterator[tuple[Path, str]]:
    """A MEMORY.md counts where transcripts lie beside its folder: then it is the client's."""
    for path in paths:
        for file in sorted(path.resolve().rglob(f"memory/{MEMORY}")) if path.is_dir() else ():
            if any(file.parent.parent.glob("*.jsonl")):
                yield file, ""


def _index_lines(
    report: Report, found: int, seconds: float, notes: ImportReport, paths: tuple[Path, ...]
) -> Iterator[str]:
    if said := summarise_notes(notes):
        yield said
    if not found:
        if not (notes.files or notes.unchanged):
            where = f" in {', '.join(map(str, paths))}" if paths else ""
            yield f"No transcripts found{where}. Name a folder of them: yester index PATH"
        return
    if not report.files and not report.failed:
        yield f"nothing new in {count_noun(report.unchanged, 'transcript')}"
        return
    new, files = count_noun(report.put.added, "new item"), count_noun(report.files, "transcript")
    changed = join_counts((report.put.changed, f" and {report.put.changed:,} changed"))
    left, unreadable = sum(report.skipped.values()), report.skipped["unreadable"]
    head = f"{new}{changed} from {files} ({report.bytes / 1e6:,.1f} MB) in {seconds:.1f} s"
    clean = count_noun(report.secrets_elsewhere, "item")
    why = "a secret that another item of the session gave away"
    yield join_counts(
        (1, f"{head}; {count_noun(left, 'record')} left out"),
        (unreadable, f"{unreadable:,} of them unreadable"),
        (report.unchanged, f"{count_noun(report.unchanged, 'transcript')} unchanged"),
        (report.failed, f"{count_noun(report.failed, 'transcript')} could not be read"),
        (report.secrets_elsewhere, f"{clean} without {why}"),
        between="; ",
    )


@command("reindex", plain=True)
def reindex_command(app: App) -> None:
    """Build the search index anew from the stored items.

    Nothing is lost whatever happens to it: the items stay untouched, and until the new index is
    complete the old one stays in place.
    """
    with app.store.transaction("index"):
        number = maintenance_of(app.store).reindex()
    click.echo(f"{count_noun(number, 'item')} indexed anew")


# --- observations and summaries -------------------------------------------------------------------


@command("distil")
def distil_command(
    app: App, backfill: bool, again: bool, session: str | None, refine: bool, show: bool
) -> Output:
    """Distil sessions: observations of what was done, found and decided, and summaries.

    No language model is asked: every fact is a sentence of the session itself, and a small model of
    yester's own finds the words that make a title (not where embedder is "none"). The worker does
    this by itself after each turn; sessions from before there were hooks want --backfill, once.
    Stopping it loses nothing: the next run goes on where it ended.

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
    began, found = time.monotonic(), _find_waiting(app, session, backfill)
    chosen, report = _distil_sessions(app, "distilling", found)
    sessions = [one.session for one in found]
    noted = _refine_sessions(app, chosen, sessions if session else None) if refine else None
    items = [item for one in sessions for item in distilled_items(store, one.id)] if show else []
    seconds = time.monotonic() - began
    value = msgspec.to_builtins(report) | msgspec.to_builtins(report.put)
    value["tool_events"] = report.steps
    value |= {"refined": noted._asdict()} if noted else {}
    value |= {"items": [_item_as_json(store, item) for item in items]} if show else {}

    def distil_lines() -> Iterator[str]:
        yield from whole_lines(app, (make_hit(item, app.names) for item in items))
        if items:
            yield ""
        observations = count_noun(report.observations, "observation")
        summaries = count_noun(report.summaries, "summary")
        of = f"of {count_noun(report.sessions, 'session')} in {seconds:.1f} s"
        yield f"{observations} and {summaries} {of}" if found else "nothing waits to be distilled"
        if not backfill and (left := store.totals("undistilled")[0][0]):
            waiting = count_noun(left, "indexed session")
            yield f"{waiting} not distilled yet: yester distil --backfill"
        if noted is not None:
            turns, reason = count_noun(noted.turns, "turn"), f": {noted.reason}"
            yield f"{turns} refined, {noted.kept:,} kept as found{reason if noted.reason else ''}"

    return Output(value, distil_lines())


def _distil_sessions(
    app: App, label: str, found: Sequence[Waiting], patience: float = math.inf
) -> tuple[DistilRules, DistilReport]:
    """As many as can be done in so many seconds; by which rules, and what came of it."""
    reader = open_reader(app.config.values, app.home) if found else None
    chosen, report = DistilRules.of(app.config, reader), DistilReport()
    deadline = time.monotonic() + patience
    with long_run(label, len(found)) as advance:
        for one in found:
            if time.monotonic() > deadline:
                break
            list(distil_session(app.store, one, chosen, report, app.now))
            advance(1)
    return chosen, report


def _find_waiting(app: App, session: str | None, backfill: bool) -> list[Waiting]:
    if session is None:
        queue = Queue("distil", hooked=not backfill, quiet_since=app.now - QUIET, limit=_MANY)
        return app.store.queued_sessions(queue)
    found = app.store.queued_sessions(Queue("any", key=session))
    if not found:
        raise NotFound(f"no session {session}; `yester sessions` lists them")
    return found


def _refine_sessions(app: App, chosen: DistilRules, sessions: list[Session] | None) -> Refinements:
    """Ask about the turns of these sessions, or of those of the last day that hooks told of."""
    since = 0 if sessions is not None else app.now - LATELY
    if sessions is None:
        sessions = [one.session for one in app.store.queued_sessions(Queue("refine", since=since))]
    estimates: list[str] = []

    def tell_estimate(estimate: str) -> None:
        if not estimates:
            print_note(f"{count_noun(number, 'turn')} to refine; {estimate}")
        estimates.append(estimate)

    asker = open_asker(app.config, app.store, tell_estimate)
    if asker is None:
        raise NotFound("no language model is set; name one in [llm] of config.toml (llm.provider)")
    todo = [(one, find_unrefined(app.store, one, since, chosen, again=True)) for one in sessions]
    number = sum(len(turns) for _, turns in todo)
    refined, reason = 0, ""
    for one, turns in todo:
        failures = [failure for _, failure in refine_turns(app.store, asker, one, turns)]
        refined += failures.count("")
        reason = next(filter(None, reversed(failures)), reason)
        if len(failures) < len(turns):
            reason = "another call is under way; try again"
        for waiting in app.store.queued_sessions(Queue("any", key=one.key)):
            if waiting.session.id == one.id and waiting.changes:
                list(distil_session(app.store, waiting, chosen, DistilReport()))
    return Refinements(refined, number - refined, reason)


def _item_as_json(store: Store, item: Item) -> dict[str, Any]:
    evidence = store.evidence([item.id]).get(item.id, ())
    facts = [
        {"text": text, "sources": sorted(source for fact, source in evidence if fact == number)}
        for number, text in enumerate(item.facts)
    ]
    more = {"narrative": item.body, "facts": facts, "epoch": item.epoch / 1000}
    return msgspec.structs.asdict(item) | more
