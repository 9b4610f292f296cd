"""opencode's sessions, versions 0.x to 2.0: what was said and done, nothing else.

    1.x   opencode.db, tables session, message, part: a message's parts are rows of their own
    2.x   opencode.db, tables session_v2, session_message: parts stand inside their message
    0.x   storage/session/PROJECT/ID.json, with storage/message/SESSION and storage/part/MESSAGE

Confirmed by opencode's own schema and migration, version 2 by two other readers. A session with a
parent is a sub-agent's and belongs to its root. Left out, and counted by reason: what the client
adds to a prompt by itself (synthetic, ignored), steps, snapshots, patches and everything else it
writes for itself. A database is read while opencode runs and never written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from yester.agents.base import Reader, Reading
from yester.agents.conversation import Conversation, load, placed, text_of
from yester.agents.descriptors import OPENCODE
from yester.agents.opencode_store import (
    FIRST,
    SECOND,
    Files,
    Kept,
    Message,
    Store,
    Tables,
    root_of,
)
from yester.agents.sqlite import Database, DatabaseProblem, has_tables, is_database
from yester.agents.sqlite import stamp as database_stamp
from yester.agents.transcript import State, todo_text
from yester.model import Item

# Until the title model answers, a session is called after its time.
UNTITLED = ("New session - ", "Child session - ")


class OpencodeReader(Reader):
    def is_transcript(self, path: Path) -> bool:
        if is_database(path):
            return has_tables(path, *FIRST) or has_tables(path, *SECOND)
        in_storage = path.suffix == ".json" and path.parent.parent.name == "session"
        return in_storage and (load(path) or {}).get("id") == path.stem

    def stamp_transcript(self, path: Path) -> tuple[int, int]:
        if path.suffix != ".json":
            return database_stamp(path)
        storage, seen = path.absolute().parents[2], [path]
        for message in (storage / "message" / path.stem).glob("*.json"):
            seen += [message, storage / "part" / message.stem]
        stats = [one.stat() for one in seen if one.exists()]
        return sum(one.st_size for one in stats), max(one.st_mtime_ns for one in stats)

    def read_items(self, reading: Reading) -> Iterator[Item]:
        if reading.path.suffix == ".json":
            yield from _file(reading, Files(reading))
            return
        try:
            database = Database(reading.path)
            try:
                yield from _database(reading, Tables(reading, database))
            finally:
                database.close()
        except DatabaseProblem as problem:
            reading.bad(0, str(problem))


def _file(reading: Reading, storage: Files) -> Iterator[Item]:
    sessions = storage.sessions()
    session = sessions.get(reading.path.stem)
    if session is None:
        reading.bad(1, "not a JSON object")
    else:
        yield from _Session(reading, session, root_of(session.id, sessions), storage).items()


def _database(reading: Reading, tables: Tables) -> Iterator[Item]:
    """The sessions with something new, in the order they changed: up to there all is read."""
    reading.state = tables.before
    sessions, whole = tables.sessions(), True
    for session in sessions.values():
        if not tables.is_new(session):
            continue
        try:
            yield from _Session(reading, session, root_of(session.id, sessions), tables).items()
        except DatabaseProblem as problem:
            reading.bad(0, f"session {session.id}: {problem}")
            whole = whole and not problem.passing  # else the next run tries again from here
        if whole:
            since = max(session.changed, tables.before.since)
            reading.state = replace(tables.before, since=since)
    if whole:
        reading.state = replace(reading.state, rows=tables.rows)


class _Session(Conversation[State]):
    """One session's messages as items, wherever they are kept."""

    agent = OPENCODE.name

    def __init__(self, reading: Reading, session: Kept, root: str, store: Store) -> None:
        actor = "" if root == session.id else f"{session.agent or 'sub-agent'}:{session.id}"
        title = "" if session.title.startswith(UNTITLED) else session.title
        state = State(session=root, actor=actor, title=title)
        super().__init__(reading, placed(reading, state, session.directory))
        self.session = session
        self.store = store

    def items(self) -> Iterator[Item]:
        if self.actor and not self.reading.options.subagents:
            self.reading.skip("sub-agent")
            return
        message = None
        for message in self.store.messages(self.session):
            self.epoch = message.epoch or self.epoch
            if message.kind == "user":
                yield from self._prompt(message)
            elif message.new:
                yield from self._answer(message)
        if message:
            self.meet()  # the title may be all that changed
            yield from self.todo(todo_text(self.store.todos(self.session), "content"))

    def _prompt(self, message: Message) -> Iterator[Item]:
        """What the user typed; an earlier prompt is only counted."""
        texts, named, left_out = [], [], []
        for _, part in self.store.parts(message):
            reason = _not_said(part)
            if reason == "file part" and (file := _attached(part)):
                named.append(self.file(file))
            elif reason:
                left_out.append(reason)
            else:
                texts.append(text_of(part))
        body = _unquoted("\n".join(texts).strip())
        if message.new:
            self.reading.skipped.update(left_out)
            if body:
                read = tuple(dict.fromkeys(named))
                yield replace(self.prompt(message.id, body), files_read=read)
        elif body and not self.actor:
            self.count_prompt(body)

    def _answer(self, message: Message) -> Iterator[Item]:
        info, parts = message.info, list(self.store.parts(message))
        if info.get("summary") is True or message.kind == "compaction":
            texts = [text_of(part) for _, part in parts if part.get("type") == "text"]
            body = "\n".join([*texts, text_of(info.get("summary"))]).strip()
            if body:
                yield self.compaction(message.id, body)
        elif message.kind == "assistant":
            if not parts:
                self.reading.skip("failed answer" if info.get("error") else "empty")
            for ref, part in parts:
                yield from self._part(ref, part)
        elif message.kind == "shell":  # a command the user ran
            given, output = {"command": info.get("command")}, text_of(info.get("output"))
            failed = info.get("exit") not in (None, 0)
            yield from self.tool(message.id, None, "shell", given, output, failed)
        else:
            self.reading.skip(message.kind or "unknown message")

    def _part(self, ref: str, part: dict[str, Any]) -> Iterator[Item]:
        kind = part.get("type")
        if kind == "tool":
            yield from self._call(ref, part)
        elif kind == "reasoning":
            yield from self.said(ref, part.get("text"), "thinking")
        elif reason := _not_said(part):
            self.reading.skip(reason)
        else:
            yield from self.said(ref, part.get("text"))

    def _call(self, ref: str, part: dict[str, Any]) -> Iterator[Item]:
        """Version 1: tool, callID, state.output; version 2: name, id, state.content."""
        state = part.get("state")
        state = state if isinstance(state, dict) else {}
        meta, error = state.get("metadata"), state.get("error")
        left = meta.get("exit") if isinstance(meta, dict) else None
        failed = state.get("status") == "error" or left not in (None, 0)
        output = text_of(state.get("output") or state.get("content"))
        error = error.get("message") if isinstance(error, dict) else error
        name = part.get("tool") or part.get("name")
        yield from self.tool(
            ref, part.get("callID") or part.get("id"), name if isinstance(name, str) else "unknown",
            state.get("input"), output or text_of(error), failed,
        )  # fmt: skip


def _not_said(part: dict[str, Any]) -> str:
    """Why a part is not something said, or nothing."""
    if part.get("type") != "text":
        return f"{part.get('type') or 'unknown'} part"
    return next((f"{why} part" for why in ("synthetic", "ignored") if part.get(why)), "")


def _unquoted(said: str) -> str:
    """`opencode run` puts what it is given into quotation marks."""
    inner = said[1:-1]
    return inner.strip() if said == f'"{inner}"' and '"' not in inner else said


def _attached(part: dict[str, Any]) -> str:
    source = part.get("source")
    name = source.get("path") if isinstance(source, dict) else part.get("filename")
    return name if isinstance(name, str) else ""


READER = OpencodeReader()
