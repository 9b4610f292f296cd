"""Messages that an earlier yester threw away because they resembled what the agent had been shown.

It counted them (`skipped`, reason echo), and only sessions that were shown something can have lost
any. Their transcripts hold them still, and a transcript that was read whole since then says so
(`ingest.transcripts.KEEPS_ECHOES`): where nothing is missing, none is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from yester.agents.base import Options
from yester.agents.descriptors import AGENTS, Agent
from yester.capture.rules import rules
from yester.config import Config
from yester.distil.distil import Report, distil
from yester.distil.history import Rules
from yester.doctor.finding import Finding
from yester.errors import YesterError
from yester.ingest import Ingest
from yester.ingest.transcripts import KEEPS_ECHOES
from yester.model import ECHO, Filters, Injection, Paging, Queue, Session
from yester.project import Projects
from yester.store import open_store, store_exists
from yester.store.contract import Store

_PAGE = 5_000


@dataclass(frozen=True, slots=True)
class _Unread:
    """Transcripts that may hold what was thrown away, by whether they exist still."""

    there: Sequence[tuple[Agent, Path]]
    gone: Sequence[Path]
    sessions: Sequence[Session]


def messages(home: Path, config: Config, now: int, fix: bool) -> Iterator[Finding]:
    if not store_exists(home):
        return
    try:
        store = open_store(home, now=now)
    except YesterError:
        return  # the check of the store has told
    try:
        if not dict(store.totals("skipped", by=("reason",))).get(ECHO):
            return
        yield from _examined(store, config, now, fix)
    finally:
        store.close()


def _examined(store: Store, config: Config, now: int, fix: bool) -> Iterator[Finding]:
    unread = _unread(store)
    ingest = _ingest(store, config)
    lacking: dict[Path, int] = {}
    for agent, path in unread.there:
        try:
            lacking[path] = ingest.lacks(agent, path)
        except YesterError:
            raise  # the store, not the transcript
        except Exception as error:  # noqa: BLE001 -- one transcript must not hide the others
            yield Finding("messages", "note", f"{path} cannot be read ({error})")
    number = sum(lacking.values())
    where = _some([path for path, lacks in lacking.items() if lacks])
    if number and not fix:
        yield Finding(
            "messages", "problem",
            f"{number:,} messages that an earlier yester threw away stand in {where}",
            "Run: yester doctor --fix",
        )  # fmt: skip
    elif fix and unread.there:
        for agent, path in unread.there:
            ingest.read_again(agent, path)
        ingest.flush()
        report = Report()
        for session in unread.sessions if number else ():
            for waiting in store.queued_sessions(Queue("any", key=session.key)):
                for _ in distil(store, waiting, Rules.of(config), report, now):
                    pass
        for problem in ingest.report.problems:
            yield Finding("messages", "note", problem)
        if number:
            yield Finding("messages", "ok", f"{number:,} messages read again from {where}")
    elif not number:
        yield Finding("messages", "ok", "none is missing that a transcript has")
    if unread.gone:
        yield Finding(
            "messages", "note",
            "what an earlier yester threw away cannot be read again: there is no more"
            f" {_some(unread.gone)}",
        )  # fmt: skip


def _ingest(store: Store, config: Config) -> Ingest:
    kept_out = rules(config)
    projects = Projects(config.projects, refuses=kept_out.excludes)
    options = Options(config.flag("thinking"), config.flag("subagents"))
    return Ingest(store, projects, options, kept_out)


def _unread(store: Store) -> _Unread:
    sessions = [
        found
        for id_ in sorted(_shown_to(store))
        if (found := next(iter(store.sessions(Filters(session_id=id_))), None))
    ]
    keys = {(one.agent, one.key) for one in sessions}
    paths = {
        one.transcript: AGENTS[one.agent]
        for one in sessions
        if one.transcript and one.agent in AGENTS
    }
    for agent in AGENTS.values():
        for source in store.sources(agent.name):
            if source.state.get(KEEPS_ECHOES):
                paths.pop(source.path, None)
            elif (agent.name, source.state.get("session")) in keys:
                paths[source.path] = agent
    there = [(agent, Path(path)) for path, agent in sorted(paths.items()) if Path(path).exists()]
    gone = [Path(path) for path in sorted(paths) if not Path(path).exists()]
    return _Unread(there, gone, sessions)


def _shown_to(store: Store) -> set[int]:
    found: set[int] = set()
    before = 0
    while page := store.entries(Injection, page=Paging(_PAGE, before=before)):
        found.update(line.session for line in page)
        before = page[-1].id
    return found - {0}


def _some(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
    return ", ".join(map(str, paths[:3])) + more
