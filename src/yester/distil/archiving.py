"""Sessions that have ended, written down in files that people and agents read.

They stand beside what the agent itself keeps of the project (Claude Code's `memory/sessions/`),
else in `archive/PROJECT/` of yester's home: a file a day, to which a block is added in one write.
A session that goes on later gets another block with what is new.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from pathlib import Path

from yester.config import Config
from yester.distil import QUIET
from yester.distil.archive import Lines, added, asked, found, written
from yester.distil.asking import Asker
from yester.distil.history import distilled_items
from yester.distil.turns import BRIEF_CHARS, BRIEF_TOOLS
from yester.memories.disk import appended, folder
from yester.memories.places import memory_places
from yester.model import Archived, Session
from yester.store.contract import Queue, Store, Waiting

LATELY = 86_400_000  # ms; what ended before is no news
_SETTLED = 3_000  # ms after a session's end within which its transcript may still grow
_AGENT = "claude-code"
_PAGE = 400


def unarchived(store: Store, now: int) -> list[Waiting]:
    """Sessions that are over and of which the archive does not have the end; `since` is up to when
    it has them."""
    return store.queued_sessions(
        Queue("archive", since=now - LATELY, ended_before=now - _SETTLED, quiet_since=now - QUIET)
    )


def archive(
    store: Store, config: Config, waiting: Waiting, asker: Asker | None, now: int
) -> tuple[Path | None, str]:
    """Add what is new of a session to its file; the file, None where nothing was worth it, and why
    a language model that was asked did not write it. SourceError where it cannot be written."""
    session = waiting.session
    new = [item for item in distilled_items(store, session.id) if item.epoch > waiting.since]
    lines, reason = found(new), ""
    if lines and asker is not None:
        lines, reason = _asked(store, config, waiting, asker, lines)
    path = None
    if lines:
        when = datetime.fromtimestamp(session.ended / 1000).astimezone()
        path = _folder(store, config, session) / f"{when:%Y-%m-%d}.md"
        appended(path, partial(_block, session=session.key, when=when, lines=lines))
    with store.transaction():
        store.append([Archived(session.id, session.ended, now)])
    return path, reason


def _block(before: bytes, session: str, when: datetime, lines: Lines) -> bytes:
    return added(before.decode("utf-8", "replace"), session, when, lines).encode("utf-8", "replace")


def _asked(
    store: Store, config: Config, waiting: Waiting, asker: Asker, lines: Lines
) -> tuple[Lines, str]:
    """A model's lines for the last messages, or those that were found and the reason."""
    messages: list[tuple[str, str]] = []
    most = config.number("archive.messages")
    after = (waiting.since, 0)
    while page := store.history(waiting.session.id, BRIEF_TOOLS, BRIEF_CHARS, after, _PAGE):
        after = (page[-1][0].epoch, page[-1][0].id)
        said = [item for item, _ in page if not item.actor and item.role in ("user", "assistant")]
        messages += [("User" if i.role == "user" else "Agent", i.body) for i in said]
        messages = messages[-most:]
    given = "\n\n".join(text for _, text in messages)
    answer = asker.ask(asked(messages), partial(written, given=given))
    if answer.value is None:
        return lines, answer.reason
    return answer.value or lines, ""


def _folder(store: Store, config: Config, session: Session) -> Path:
    if session.agent == _AGENT and session.cwd:
        configs = [Path(text).expanduser() for text in config.texts("claude_code_dirs")]
        for place in memory_places(configs, Path(session.cwd)):
            if place.parent.parent.is_dir():
                return folder(place.parent.parent, f"{place.parent.name}/sessions")
    names = {project.key: project.name for project in store.projects()}
    name = re.sub(r"[^\w.-]+", "-", names.get(session.project) or session.project).strip("-.")
    return folder(config.home, f"archive/{name[:80] or 'project'}")
