"""opencode's sessions, version 1: what was said and done, nothing else.

They are in opencode.db, tables session, message and part: a message's parts are rows of their own
(opencode itself has moved the files of version 0 there). A session with a parent is a sub-agent's
and belongs to its root. Left out, and counted by reason: what the client adds to a prompt by itself
(synthetic, ignored), steps, snapshots, patches and everything else it writes for itself. A database
is read while opencode runs and never written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from yester.agents.base import Conversation, Reading, Result, State, find_title
from yester.agents.sources import Database, Part, column_text, make_database_reader
from yester.agents.values import dict_at, nested_text, parse_time, text_at
from yester.model import Item, replace

TABLES = ("session", "message", "part")

# Rows are stamped before they are committed: look back a little further than the last one seen.
_OVERLAP_MS = 60_000
_DEEPEST = 20  # sub-agents of sub-agents


class Progress(Struct, frozen=True):
    """What has been read: everything stamped before `since`, and every message up to a row."""

    since: int = 0
    row: int = 0


class Sessions:
    """A database's. Rows are rewritten in place: what is new is told by their stamps."""

    def __init__(self, reading: Reading, database: Database) -> None:
        self.reading, self.database = reading, database
        self.before = reading.state = reading.load_state(Progress)
        self.since = max(self.before.since - _OVERLAP_MS, 0)
        # No row can be newer than the file: a wrong clock must not hide what comes later.
        self.latest = reading.modified_at

    def list_changed(self) -> Iterator[Part]:
        """Those with something new, in the order they changed: up to there all is read."""
        if not all(map(self.database.table_columns, TABLES)):
            self.reading.report_bad(0, "this version of opencode is not known: it has other tables")
            return
        columns = ("id", "parent_id", "directory", "title", "agent", "time_updated")
        rows = {text_at(row, "id"): row for row in self.database.select_records(TABLES[0], columns)}
        messages, parts = (self._select_newest(table, "session_id") for table in TABLES[1:])
        changed = {
            id_: max(self._row_time(row["time_updated"]), messages.get(id_, (0, 0))[0],
                     parts.get(id_, (0, 0))[0])
            for id_, row in rows.items()
        }  # fmt: skip
        reached = self.before
        for id_ in sorted(changed, key=changed.__getitem__):
            if changed[id_] >= self.since or messages.get(id_, (0, 0))[1] > self.before.row:
                reached = replace(reached, since=max(changed[id_], reached.since))
                yield Part(f"session {id_}", reached, Talk(self, id_, rows).read_items())
        last = max((row for _, row in messages.values()), default=0)
        yield Part("", replace(reached, row=last), iter(()))

    def _row_time(self, value: Any) -> int:
        """When a row was stamped; one without a time counts as new."""
        return min(parse_time(value), self.latest) or self.latest

    def _select_newest(
        self, table: str, by: str, rest: str = "", *values: str
    ) -> dict[str, tuple[int, int]]:
        """When the newest row of each session or message was stamped, and its last row."""
        stamp = self.database.column_or_null(table, "time_updated")
        asked = f"SELECT CAST({by} AS BLOB), max({stamp}), max(rowid) FROM {table} {rest}"
        rows = self.database.select_rows(f"{asked} GROUP BY {by}", *values)
        return {column_text(key): (self._row_time(time), row) for key, time, row in rows}

    def select_messages(self, session: str) -> Iterator[tuple[dict[str, Any], bool]]:
        """In order, each with whether it is new."""
        of_session = ("WHERE session_id = ? ORDER BY time_created, id", session)
        parts = self._select_newest("part", "message_id", "WHERE session_id = ?", session)
        columns = ("rowid", "id", "time_created", "time_updated")
        for row in self.database.select_records("message", columns, *of_session):
            newest = parts.get(text_at(row, "id"), (0, 0))[0]
            stamp = max(self._row_time(row["time_updated"]), newest)
            yield row, row["rowid"] > self.before.row or stamp >= self.since

    def select_parts(self, message: str) -> Iterator[tuple[str, dict[str, Any]]]:
        of_message = ("WHERE message_id = ? ORDER BY id", message)
        for row in self.database.select_records("part", ("rowid", "id"), *of_message):
            if part := self.select_data("part", row):
                yield text_at(row, "id"), part

    def select_data(self, table: str, row: dict[str, Any]) -> dict[str, Any] | None:
        asked = f"SELECT CAST(data AS BLOB) FROM {table} WHERE rowid = ?"
        value = self.database.select_value(asked, row["rowid"])
        return self.reading.decode_cell(value, table, text_at(row, "id"), row["rowid"])

    def select_todos(self, session: str) -> list[dict[str, Any]]:
        if not {"session_id", "position"} <= self.database.table_columns("todo"):
            return []
        listed = ("WHERE session_id = ? ORDER BY position", session)
        return self.database.select_records("todo", ("content", "status"), *listed)


class Talk(Conversation):
    """One session's messages as items."""

    agent = "opencode"

    def __init__(self, sessions: Sessions, id_: str, rows: dict[str, dict[str, Any]]) -> None:
        root = id_
        for _ in range(_DEEPEST):
            root = text_at(rows.get(root), "parent_id") or root
        kind = text_at(rows[id_], "agent") or "sub-agent"
        actor = "" if root == id_ else f"{kind}:{id_}"
        state = State(session=root, actor=actor, title=find_title(rows[id_]["title"]))
        super().__init__(sessions.reading, state)
        self.place_session(text_at(rows[id_], "directory"))
        self.id, self.sessions = id_, sessions

    def read_items(self) -> Iterator[Item]:
        info = None
        for row, new in self.sessions.select_messages(self.id):
            info, own = self.sessions.select_data("message", row), text_at(row, "id")
            self.epoch = parse_time(row["time_created"]) or self.epoch
            if info and info.get("role") == "user":
                yield from self._read_prompt(own, new)
            elif info and new:
                yield from self._read_message(own, info)
        if info:
            self.register_session()  # the title may be all that changed
            yield from self.make_todo(self.sessions.select_todos(self.id))

    def _read_prompt(self, own: str, new: bool) -> Iterator[Item]:
        """What the user typed; an earlier prompt is only counted."""
        texts, named, left_out = [], [], []
        for _, part in self.sessions.select_parts(own):
            reason = _skip_reason(part)
            if reason == "file part" and (file := text_at(dict_at(part, "source"), "path")):
                named.append(file)
            elif reason:
                left_out.append(reason)
            else:
                texts.append(_strip_quotes(nested_text(part).strip()))
        if new:
            self.reading.skipped.update(left_out)
        if body := "\n".join(texts):
            for prompt in self.read_prompt(own, body, new):
                yield replace(prompt, files_read=self.file_paths(named))

    def _read_message(self, own: str, info: dict[str, Any]) -> Iterator[Item]:
        parts = list(self.sessions.select_parts(own))
        if info.get("summary") is True:
            texts = [nested_text(part) for _, part in parts if part.get("type") == "text"]
            yield self.make_summary(own, "\n".join(texts))
        elif info.get("role") != "assistant":
            self.reading.skip("unknown message")
        elif not parts:
            self.reading.skip("failed answer" if info.get("error") else "empty")
        else:
            for ref, part in parts:
                yield from self._read_part(ref, part)

    def _read_part(self, ref: str, part: dict[str, Any]) -> Iterator[Item]:
        if part.get("type") == "tool":
            state = dict_at(part, "state")
            output = nested_text(state.get("output")) or nested_text(state.get("error"))
            status = dict_at(state, "metadata").get("exit")
            result = Result(output, state.get("status") == "error", status)
            tool, key = text_at(part, "tool") or "unknown", part.get("callID")
            yield self.make_answered_call(ref, key, tool, state.get("input"), result)
        elif part.get("type") == "reasoning":
            yield self.make_message(ref, part.get("text"), "thinking")
        elif reason := _skip_reason(part):
            self.reading.skip(reason)
        else:
            yield self.make_message(ref, part.get("text"))


def _skip_reason(part: dict[str, Any]) -> str:
    """Why a part is not something said, or nothing."""
    if part.get("type") != "text":
        return f"{part.get('type') or 'unknown'} part"
    return next((f"{why} part" for why in ("synthetic", "ignored") if part.get(why)), "")


def _strip_quotes(said: str) -> str:
    """`opencode run` puts what it is given into quotation marks."""
    inner = said[1:-1]
    return inner.strip() if said == f'"{inner}"' and '"' not in inner else said


READER = make_database_reader(lambda *given: Sessions(*given).list_changed(), TABLES)
