"""The store, what finds texts by meaning, and what version 0.1 did not keep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from yester.agents.base import Options
from yester.agents.descriptors import AGENTS
from yester.capture.rules import load_rules
from yester.cards.sessions import DistilReport, distil_session
from yester.cards.turns import DistilRules
from yester.errors import ModelError, SourceError, StoreDamaged
from yester.ingest.projects import describe_joins
from yester.ingest.transcripts import KEEPS_ECHOES, Ingest
from yester.model import ECHO, Join, Paging, Queue, Source
from yester.operate import backups
from yester.operate.doctor.finding import Examination, Finding, list_paths, make_finding
from yester.project import Projects
from yester.store import maintenance_of, store_exists, store_location
from yester.store.contract import Store
from yester.store.figures import content_counts, project_parts


def look_at_model(case: Examination) -> list[Finding]:
    """The files of the embedding model, by their hashes, and whether it can be run."""
    from yester.text.embed import why_not
    from yester.text.models import MODELS, READER, verify_files

    name = case.config.text("embedder")
    if name == "none":
        return [make_finding("model.none")]
    verified = name in MODELS and case.thorough
    if verified:
        verify_files(MODELS[name], case.home)
        verify_files(READER, case.home)
    if reason := why_not(case.config.values, case.home):
        raise ModelError(reason)
    return [make_finding("model.whole" if verified else "model.present", name=name)]


def look_at_store(case: Examination) -> Iterator[Finding]:
    """Thoroughly is everything read, and tried whether it can be written."""
    if not store_exists(case.home):
        yield make_finding("store.none")
        return
    kept = backups.list_backups(case.home)
    name = "backups.kept" if kept else "backups.none"
    yield make_finding(name, number=len(kept), newest=kept[0].name if kept else "")
    try:
        store = backups.open_safely(case.home, case.config, case.now)
    except StoreDamaged as error:
        yield _explain_damage(str(error).split("; ")[0], case.home)
        return
    with closing(store):
        yield from _read_store(store, case) if case.thorough else _glance_at_store(store)


def _read_store(store: Store, case: Examination) -> Iterator[Finding]:
    with store.transaction("ledger"):
        pass  # whoever may begin one may write
    care = maintenance_of(store)
    problems = care.check()

    def rebuild_index() -> dict[str, object]:
        with store.transaction("index"):
            return {"number": care.reindex()}

    # It can be built anew out of the items, where those are whole.
    mend = rebuild_index if all(text.startswith("index:") for text in problems) else None
    for text in problems:
        if text.startswith("index:"):
            yield make_finding("index.damaged", mend, text=text.removeprefix("index: "))
        else:
            yield _explain_damage(text, case.home)
    if stale := care.stale():
        yield make_finding("index.stale", mend, text=stale)
    if problems:
        return
    counts = content_counts(store)
    items = sum(counts.items.values())
    yield make_finding("store.whole", items=items, size=counts.bytes / 1e6)
    yield from _look_at_joins(store)
    if dict(store.totals("skipped", by=("reason",))).get(ECHO):
        yield from _look_at_messages(store, case)


def _glance_at_store(store: Store) -> Iterator[Finding]:
    if stale := maintenance_of(store).stale():
        yield make_finding("index.stale", text=stale)
    items = sum(sum(part.items.values()) for part in project_parts(store))
    yield make_finding("store.used", items=items)
    yield from _look_at_joins(store)


def _explain_damage(text: str, home: Path) -> Finding:
    name = "store.restorable" if backups.list_backups(home) else "store.damaged"
    return make_finding(name, text=text, file=store_location(home))


def _look_at_joins(store: Store) -> Iterator[Finding]:
    """What was moved without being asked for must be told, and how to undo it."""
    if joins := store.entries(Join, {"undone": 0}, Paging(oldest_first=True)):
        items = sum(join.items for join in joins)
        yield make_finding("projects.joined", items=items, names=describe_joins(store, joins))


def _look_at_messages(store: Store, case: Examination) -> Iterator[Finding]:
    """Version 0.1 dropped messages that resembled what the agent had been shown, and counted them
    (`skipped`, reason echo). The transcripts hold them still; one that was read whole since then
    says so (KEEPS_ECHOES)."""
    sources = store.entries(Source)
    unread = [one for one in sources if one.agent in AGENTS and not one.state.get(KEEPS_ECHOES)]
    present = [source for source in unread if Path(source.path).exists()]

    def read_again() -> dict[str, object]:
        return {"number": _read_sources(store, present, case)}

    name = "messages.dropped" if present else "messages.none"
    paths = list_paths([Path(source.path) for source in present])
    yield make_finding(name, read_again if present else None, paths=paths)
    if gone := [Path(source.path) for source in unread if source not in present]:
        yield make_finding("messages.gone", paths=list_paths(gone))


def _read_sources(store: Store, sources: list[Source], case: Examination) -> int:
    """Read transcripts from the start, and distil what has come to light; how many messages."""
    from yester.text.reader import open_reader

    kept_out = load_rules(case.config)
    projects = Projects(case.config.projects, refuses=kept_out.excludes)
    options = Options(case.config.flag("thinking"), case.config.flag("subagents"))
    ingest = Ingest(store, projects, options, kept_out)
    for source in sources:
        ingest.read_again(AGENTS[source.agent], Path(source.path))
    ingest.flush()
    reading = DistilRules.of(case.config, open_reader(case.config.values, case.home))
    for key in {str(source.state.get("session")) for source in sources}:
        for waiting in store.queued_sessions(Queue("any", key=key)):
            for _ in distil_session(store, waiting, reading, DistilReport(), case.now):
                pass
    if ingest.report.failed:
        raise SourceError(ingest.report.problems[0])
    return ingest.report.put.added
