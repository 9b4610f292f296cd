"""The store, what finds texts by meaning, and what version 0.1 did not keep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from yester.agents.base import Options
from yester.agents.descriptors import AGENTS, Agent
from yester.capture.rules import rules
from yester.distil.distil import Report, distil
from yester.distil.history import Rules
from yester.errors import ModelError, StoreDamaged, YesterError
from yester.ingest.projects import describe_joins
from yester.ingest.transcripts import KEEPS_ECHOES, Ingest
from yester.model import ECHO, Filters, Injection, Join, Paging, Queue, Session, Source
from yester.operate import backups
from yester.operate.doctor.finding import (
    FIXING,
    Examination,
    Finding,
    explain_error,
    list_paths,
    note,
    ok,
    problem,
)
from yester.project import Projects
from yester.store import maintenance_of, open_store, store_exists, store_location
from yester.store.contract import Store
from yester.store.figures import content_counts, project_parts

_PAGE = 5_000


def look_at_model(case: Examination) -> Iterator[Finding]:
    """The files of the embedding model, by their hashes, and whether it can be run."""
    from yester.text.embed import why_not
    from yester.text.models import MODELS, verify_files

    name = case.config.text("embedder")
    if name == "none":
        fix = "Run: yester model use yester-embed-1"
        yield note("model", "none: search goes by words alone", fix)
        return
    verified = name in MODELS and case.thorough
    try:
        if verified:
            verify_files(MODELS[name], case.home)
        if reason := why_not(case.config.values, case.home):
            raise ModelError(reason)
    except ModelError as error:
        yield explain_error("model", error, "Run: yester model list")
    else:
        yield ok("model", name + (", its files are whole" if verified else ""))


def _open(case: Examination) -> Store:
    kept = case.config.number("backups_kept")
    copy = backups.before_migration(case.home, kept, case.now)
    return open_store(case.home, now=case.now, before_migration=copy)


def look_at_store(case: Examination) -> Iterator[Finding]:
    """Thoroughly is everything read, and tried whether it can be written."""
    if not store_exists(case.home):
        yield note("store", "nothing is indexed yet", "Run: yester index")
        return
    try:
        store = _open(case)
    except StoreDamaged as error:
        yield problem("store", str(error).split("; ")[0], _advise_repair("", case.home))
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
        yield problem("store", text, _advise_repair(text, home))
    if stale := care.stale():
        yield problem("index", stale, "Run: yester reindex")
    if not problems:
        counts = content_counts(store)
        items = sum(counts.items.values())
        yield ok("store", f"{items:,} items, {counts.bytes / 1e6:,.1f} MB, no damage")


def _glance_at_store(store: Store) -> Iterator[Finding]:
    try:
        if stale := maintenance_of(store).stale():
            yield problem("index", stale, "Run: yester reindex")
        items = sum(sum(part.items.values()) for part in project_parts(store))
        yield ok("store", f"{items:,} items in use")
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
        yield note(
            "projects",
            "work trees that are gone are joined with their repositories, "
            f"{items:,} items: {describe_joins(store, joins)}",
            "To have one as a project of its own again: yester doctor --undo-join NAME",
        )


def _advise_repair(text: str, home: Path) -> str:
    if text.startswith("index:"):
        return "Run: yester reindex (the items themselves are not affected)"
    if backups.list_backups(home):
        return "Bring a backup back: yester restore latest (the present file is moved aside)"
    return (
        f"There is no backup. Move {store_location(home)} away and run: yester index"
        " (the transcripts are read again)"
    )


def mend_index(case: Examination) -> Iterator[Finding]:
    """The index can be built anew out of the items, where those are whole."""
    if not store_exists(case.home):
        return
    try:
        with closing(_open(case)) as store:
            care = maintenance_of(store)
            problems = care.check()
            broken = bool(problems) or bool(care.stale())
            if broken and all(text.startswith("index:") for text in problems):
                with store.transaction("index"):
                    number = care.reindex()
                yield ok("index", f"built anew over {number:,} items")
    except YesterError:
        return  # the look that follows says what is wrong


def look_at_backups(case: Examination) -> Iterator[Finding]:
    if store_exists(case.home):
        kept = backups.list_backups(case.home)
        newest = f"{len(kept)}, newest {kept[0].name}" if kept else ""
        yield ok("backups", newest) if kept else note("backups", "none yet", "Run: yester backup")


# --- messages that version 0.1 threw away ------------------------------------------------------
# It dropped those that resembled what the agent had been shown, and counted them (`skipped`, reason
# echo). Only sessions that were shown something can have lost any. Their transcripts hold them
# still; one that was read whole since then says so (KEEPS_ECHOES).


def look_at_messages(case: Examination) -> Iterator[Finding]:
    if (store := _open_affected(case)) is None:
        return
    with closing(store):
        transcripts = _list_transcripts(store, _affected_sessions(store))
    present = [path for path in transcripts if path.exists()]
    if present:
        text = f"messages that an earlier yester threw away may stand in {list_paths(present)}"
        yield problem("messages", text, FIXING)
    else:
        yield ok("messages", "none is missing that a transcript has")
    if gone := [path for path in transcripts if path not in present]:
        text = "what an earlier yester threw away cannot be read again: there is no more"
        yield note("messages", f"{text} {list_paths(gone)}")


def mend_messages(case: Examination) -> Iterator[Finding]:
    """Read such transcripts again from the start, and distil what has come to light."""
    if (store := _open_affected(case)) is None:
        return
    with closing(store):
        sessions = _affected_sessions(store)
        transcripts = _list_transcripts(store, sessions)
        kept_out = rules(case.config)
        projects = Projects(case.config.projects, refuses=kept_out.excludes)
        options = Options(case.config.flag("thinking"), case.config.flag("subagents"))
        ingest = Ingest(store, projects, options, kept_out)
        for path, agent in transcripts.items():
            if path.exists():
                ingest.read_again(agent, path)
        ingest.flush()
        yield from (note("messages", text) for text in ingest.report.problems)
        if not (number := ingest.report.put.added):
            return
        for session in sessions:
            for waiting in store.queued_sessions(Queue("any", key=session.key)):
                for _ in distil(store, waiting, Rules.of(case.config), Report(), case.now):
                    pass
        yield ok("messages", f"{number:,} messages read again from {list_paths([*transcripts])}")


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


def _affected_sessions(store: Store) -> list[Session]:
    """Sessions that were shown something."""
    ids: set[int] = set()
    before = 0
    while page := store.entries(Injection, page=Paging(_PAGE, before=before)):
        ids.update(line.session for line in page)
        before = page[-1].id
    return [
        session
        for id_ in sorted(ids - {0})
        for session in list(store.sessions(Filters(session_id=id_)))[:1]
    ]


def _list_transcripts(store: Store, sessions: list[Session]) -> dict[Path, Agent]:
    """The transcripts of these sessions that were not read whole since; some may be gone."""
    keys = {(session.agent, session.key) for session in sessions}
    agents = {
        session.transcript: AGENTS[session.agent]
        for session in sessions
        if session.transcript and session.agent in AGENTS
    }
    for agent in AGENTS.values():
        for source in store.entries(Source, {"agent": agent.name}, Paging(oldest_first=True)):
            if source.state.get(KEEPS_ECHOES):
                agents.pop(source.path, None)
            elif (agent.name, source.state.get("session")) in keys:
                agents[source.path] = agent
    return {Path(path): agents[path] for path in sorted(agents)}
