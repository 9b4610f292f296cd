"""The store, what finds texts by meaning, and what version 0.1 did not keep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from yester.agents.base import Options
from yester.agents.descriptors import AGENTS
from yester.capture.rules import rules
from yester.distil.distil import Report, distil
from yester.distil.history import Rules
from yester.errors import ModelError, StoreDamaged, YesterError
from yester.ingest.projects import describe_joins
from yester.ingest.transcripts import KEEPS_ECHOES, Ingest
from yester.model import ECHO, Join, Paging, Queue, Source
from yester.operate import backups
from yester.operate.doctor.finding import (
    Examination,
    Finding,
    explain_error,
    list_paths,
    make_finding,
)
from yester.project import Projects
from yester.store import maintenance_of, open_store, store_exists, store_location
from yester.store.contract import Store
from yester.store.figures import content_counts, project_parts


def look_at_model(case: Examination) -> Iterator[Finding]:
    """The files of the embedding model, by their hashes, and whether it can be run."""
    from yester.text.embed import why_not
    from yester.text.models import MODELS, READER, verify_files

    name = case.config.text("embedder")
    if name == "none":
        yield make_finding("model.none")
        return
    verified = name in MODELS and case.thorough
    try:
        if verified:
            verify_files(MODELS[name], case.home)
            verify_files(READER, case.home)
        if reason := why_not(case.config.values, case.home):
            raise ModelError(reason)
    except ModelError as error:
        yield explain_error("model", error, "Run: yester model list")
    else:
        yield make_finding("model.whole" if verified else "model.present", name=name)


def _open_store(case: Examination) -> Store:
    kept = case.config.number("backups_kept")
    copy = backups.before_migration(case.home, kept, case.now)
    return open_store(case.home, now=case.now, before_migration=copy)


def look_at_store(case: Examination) -> Iterator[Finding]:
    """Thoroughly is everything read, and tried whether it can be written."""
    if not store_exists(case.home):
        yield make_finding("store.none")
        return
    try:
        store = _open_store(case)
    except StoreDamaged as error:
        yield _explain_damage(str(error).split("; ")[0], case.home)
        return
    except YesterError as error:
        yield explain_error("store", error, f"Look at {store_location(case.home)}.")
        return
    with closing(store):
        yield from _read_store(store, case.home) if case.thorough else _glance_at_store(store)
        yield from _look_at_joins(store)


def _read_store(store: Store, home: Path) -> Iterator[Finding]:
    try:
        with store.transaction("ledger"):
            pass  # whoever may begin one may write
    except YesterError as error:
        yield explain_error("store", error, f"Make sure that you may write in {home}.")
        return
    care = maintenance_of(store)
    problems = care.check()
    for text in problems:
        yield _explain_damage(text, home)
    if stale := care.stale():
        yield make_finding("index.stale", text=stale)
    if not problems:
        counts = content_counts(store)
        items = sum(counts.items.values())
        yield make_finding("store.whole", items=items, size=counts.bytes / 1e6)


def _glance_at_store(store: Store) -> Iterator[Finding]:
    try:
        if stale := maintenance_of(store).stale():
            yield make_finding("index.stale", text=stale)
        items = sum(sum(part.items.values()) for part in project_parts(store))
        yield make_finding("store.used", items=items)
    except YesterError as error:
        yield explain_error("store", error, "Run: yester doctor")


def _look_at_joins(store: Store) -> Iterator[Finding]:
    """What was moved without being asked for must be told, and how to undo it."""
    try:
        joins = store.entries(Join, {"undone": 0}, Paging(oldest_first=True))
    except YesterError:
        return  # the store is damaged, as was said
    if joins:
        items = sum(join.items for join in joins)
        yield make_finding("projects.joined", items=items, names=describe_joins(store, joins))


def _explain_damage(text: str, home: Path) -> Finding:
    name = "store.restorable" if backups.list_backups(home) else "store.damaged"
    if text.startswith("index:"):
        name = "store.index"
    return make_finding(name, text=text, file=store_location(home))


def mend_index(case: Examination) -> Iterator[Finding]:
    """The index can be built anew out of the items, where those are whole."""
    if not store_exists(case.home):
        return
    try:
        with closing(_open_store(case)) as store:
            care = maintenance_of(store)
            problems = care.check()
            broken = bool(problems) or bool(care.stale())
            if broken and all(text.startswith("index:") for text in problems):
                with store.transaction("index"):
                    number = care.reindex()
                yield make_finding("index.rebuilt", number=number)
    except YesterError:
        return  # the look that follows says what is wrong


def look_at_backups(case: Examination) -> Iterator[Finding]:
    if store_exists(case.home):
        kept = backups.list_backups(case.home)
        newest = kept[0].name if kept else ""
        name = "backups.kept" if kept else "backups.none"
        yield make_finding(name, number=len(kept), newest=newest)


# --- messages that version 0.1 threw away ------------------------------------------------------
# It dropped those that resembled what the agent had been shown, and counted them (`skipped`, reason
# echo). The transcripts hold them still; one that was read whole since then says so (KEEPS_ECHOES).


def look_at_messages(case: Examination) -> Iterator[Finding]:
    if (store := _open_affected(case)) is None:
        return
    with closing(store):
        paths = [Path(source.path) for source in _list_unread(store)]
    present = [path for path in paths if path.exists()]
    name = "messages.dropped" if present else "messages.none"
    yield make_finding(name, paths=list_paths(present))
    if gone := [path for path in paths if path not in present]:
        yield make_finding("messages.gone", paths=list_paths(gone))


def mend_messages(case: Examination) -> Iterator[Finding]:
    """Read such transcripts again from the start, and distil what has come to light."""
    if (store := _open_affected(case)) is None:
        return
    with closing(store):
        unread = [source for source in _list_unread(store) if Path(source.path).exists()]
        kept_out = rules(case.config)
        projects = Projects(case.config.projects, refuses=kept_out.excludes)
        options = Options(case.config.flag("thinking"), case.config.flag("subagents"))
        ingest = Ingest(store, projects, options, kept_out)
        for source in unread:
            ingest.read_again(AGENTS[source.agent], Path(source.path))
        ingest.flush()
        yield from (make_finding("messages.unreadable", text=t) for t in ingest.report.problems)
        if number := ingest.report.put.added:
            from yester.text.reader import open_reader

            reading = Rules.of(case.config, open_reader(case.config.values, case.home))
            for key in {str(source.state.get("session")) for source in unread}:
                for waiting in store.queued_sessions(Queue("any", key=key)):
                    for _ in distil(store, waiting, reading, Report(), case.now):
                        pass
            paths = list_paths([Path(source.path) for source in unread])
            yield make_finding("messages.read", number=number, paths=paths)


def _open_affected(case: Examination) -> Store | None:
    """The store, where such messages were counted in it."""
    if not store_exists(case.home):
        return None
    try:
        store = open_store(case.home, now=case.now)
    except YesterError:
        return None  # the check of the store has told
    if dict(store.totals("skipped", by=("reason",))).get(ECHO):
        return store
    store.close()
    return None


def _list_unread(store: Store) -> list[Source]:
    """The transcripts that were not read whole since; some may be gone."""
    sources = store.entries(Source)
    return [one for one in sources if one.agent in AGENTS and not one.state.get(KEEPS_ECHOES)]
