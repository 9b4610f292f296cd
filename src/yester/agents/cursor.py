"""Cursor's conversations, from the three places its versions keep them in.

    projects/SLUG/agent-transcripts/ID/ID.jsonl     messages without ids and most results
    chats/MD5/ID/store.db                           the CLI's, one for each session
    User/globalStorage/state.vscdb                  the editor's, one for all

None of it is documented. What is read is what at least two independent readers of these files agree
on; the rest is left out and counted by its type. The folder of a transcript is looked for by its
SLUG, in which every separator has become a dash. Where the CLI has a store for a session, its
thinner transcript is not looked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from yester.agents.base import Reader, Reading
from yester.agents.conversation import placed
from yester.agents.cursor_chat import Chat, ChatState
from yester.agents.cursor_editor import TABLE, conversations
from yester.agents.cursor_store import Store
from yester.agents.sqlite import Database, DatabaseProblem, has_tables, is_database
from yester.agents.sqlite import stamp as database_stamp
from yester.agents.transcript import opening
from yester.model import Item

TRANSCRIPTS = "agent-transcripts"
STORE = "store.db"

_DASHED = re.compile(r"[^A-Za-z0-9]+")


class CursorReader(Reader):
    def is_transcript(self, path: Path) -> bool:
        """Nobody else has these tables, or lines of a role and a message and nothing besides."""
        if is_database(path):
            store = path.name == STORE and has_tables(path, "blobs", "meta")
            return store or has_tables(path, TABLE)
        seen = list(opening(path))
        return bool(seen) and all(
            record.get("type") == "turn_ended"
            or (record.keys() <= {"role", "message", "timestamp"} and "message" in record)
            for record in seen
        )

    def select_transcripts(self, found: list[Path]) -> Iterable[Path]:
        """Without the transcripts of sessions that have a store: it holds more."""
        stored = {path.parent.name for path in found if path.name == STORE}
        return (path for path in found if path.suffix != ".jsonl" or path.stem not in stored)

    def stamp_transcript(self, path: Path) -> tuple[int, int]:
        return database_stamp(path) if is_database(path) else super().stamp_transcript(path)

    def read_items(self, reading: Reading) -> Iterator[Item]:
        if not is_database(reading.path):
            yield from _transcript(reading).items()
            return
        try:
            database = Database(reading.path)
            try:
                if database.columns(TABLE):
                    yield from conversations(reading, database)
                else:
                    yield from Store(reading, database).items()
            finally:
                database.close()
        except DatabaseProblem as problem:
            reading.bad(0, str(problem))


def _transcript(reading: Reading) -> Chat:
    """Sub-agents have files of their own below their session's."""
    path = reading.path.absolute()
    state = ChatState.load(reading.state)
    if not state.session:
        above = next((one for one in path.parents if one.name == TRANSCRIPTS), path.parent)
        session = path.relative_to(above).parts[0].removesuffix(".jsonl")
        actor = "" if path.stem == session else f"sub-agent:{path.stem}"
        state = ChatState(session=session, actor=actor)
        state = placed(reading, state, folder_named(above.parent.name))
    chat = Chat(reading, state)
    chat.epoch = int(path.stat().st_mtime * 1000)  # until a prompt tells its time
    return chat


def folder_named(slug: str, above: Path = Path("/")) -> str:
    """The folder a slug stands for, if it is there; `my-app` and `my/app` look the same in it."""
    return next(_folders(_DASHED.sub("-", slug).strip("-"), above), f"/{slug}")


def _folders(slug: str, above: Path) -> Iterator[str]:
    try:
        with os.scandir(above) as entries:
            below = sorted(one.name for one in entries if one.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in below:
        dashed = _DASHED.sub("-", name).strip("-")
        if dashed == slug:
            yield str(above / name)
        elif dashed and slug.startswith(f"{dashed}-"):
            yield from _folders(slug[len(dashed) + 1 :], above / name)


READER = CursorReader()
