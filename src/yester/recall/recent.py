"""What happened last: the newest sessions, each told by its summary and an index of what it left.

A summary speaks for everything before it. What came later, or all of a session without one, is told
by its prompts and by the agent's closing message.
"""

from __future__ import annotations

from dataclasses import replace

from yester.errors import UsageError
from yester.model import Filters, Hit, Item, Paging, Session
from yester.recall.recall import hit
from yester.redact import redact
from yester.store.contract import Store

_INDEX = ("observation", "memory", "note")
_TAIL = 40  # last messages of a session among which its closing one is looked for


def recent(
    store: Store, filters: Filters, limit: int = 3, rows: int = 12
) -> list[tuple[Session, list[Hit]]]:
    """The last `limit` sessions that pass the filters, the newest first, with at most `rows` hits
    each, the oldest first. Sessions come with their project's readable name."""
    if limit < 0 or rows < 0:
        raise UsageError(f"limit and rows must not be negative (limit={limit}, rows={rows})")
    names = {project.key: project.name for project in store.projects()}
    told = []
    for session in store.sessions(filters, Paging(limit)):
        hits = [hit(item, names) for item in _story(store, session, rows)]
        project = names.get(session.project, session.project)
        told.append((replace(session, project=project, title=redact(session.title)), hits))
    return told


def _story(store: Store, session: Session, rows: int) -> list[Item]:
    here = Filters(projects=(session.project,), session=session.key, agent=session.agent)
    summaries = store.select(replace(here, kinds=("summary",)), Paging(rows))
    if summaries:
        here_after = replace(here, since=summaries[0].epoch + 1)
        ending = summaries[:1]
    else:
        here_after, ending = here, []
    ending += _closing(store, here_after)
    others = [
        *summaries[1:],
        *store.select(replace(here_after, kinds=("prompt",)), Paging(rows)),
        *store.select(replace(here, kinds=_INDEX), Paging(rows)),
    ]
    # How it ended is worth more than any one thing that happened on the way.
    kept = ending + sorted(others, key=_time, reverse=True)[: max(rows - len(ending), 0)]
    return sorted(kept[:rows], key=_time)


def _closing(store: Store, here: Filters) -> list[Item]:
    """The last thing the agent itself said."""
    for item in store.select(replace(here, kinds=("message",)), Paging(_TAIL)):
        if item.role == "assistant" and not item.actor:
            return [item]
    return []


def _time(item: Item) -> tuple[int, int]:
    return item.epoch, item.id
