"""Goose's sessions, after other readers of them; not tried with the program itself.

sessions.db has a table of sessions and one of messages, whose content is a list of parts: text,
thinking, a request for a tool, and its response in a message of the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yester.agents import sources
from yester.agents.base import Reading, Result, State, find_title
from yester.agents.values import decode_json, dict_at, input_fields, parse_time, text_at
from yester.model import Item


class Talk(sources.Transcript):
    """One session, read whole whenever it has grown: a request waits for its response."""

    agent = "goose"

    def __init__(self, reading: Reading, database: sources.Database, row: dict[str, Any]) -> None:
        title = find_title(row["name"], row["description"])
        super().__init__(reading, State(session=text_at(row, "id"), title=title))
        self.database = database
        self.place_session(text_at(row, "working_dir"))

    def read_source(self) -> Iterator[sources.LineRecord]:
        columns = ("id", "role", "content_json", "created_timestamp")
        asked = ("WHERE session_id = ? ORDER BY id", self.state.session)
        for number, row in enumerate(self.database.select_records("messages", columns, *asked), 1):
            yield 0, 0, number, row

    def keep_place(self, offset: int) -> None:
        """The database's place is kept session by session."""

    def read_record(self, record: dict[str, Any]) -> Iterator[Item]:
        seconds = record["created_timestamp"]
        self.epoch = parse_time(seconds * 1000 if isinstance(seconds, int) else 0) or self.epoch
        content = decode_json(record["content_json"])
        message = {"role": record["role"], "content": content}
        yield from self.read_message(f"{self.state.session}:{record['id']}", message)

    def read_block(self, ref: str, block: Any) -> Iterator[Item]:
        if text_at(block, "type") == "toolRequest":
            call = dict_at(block, "toolCall", "value")
            given, tool = input_fields(call.get("arguments")), text_at(call, "name")
            yield from self.read_call(block.get("id"), tool or "unknown", given, ref)
        elif text_at(block, "type") == "toolResponse":
            outcome = dict_at(block, "toolResult")
            failed = text_at(outcome, "status") == "error"
            output = outcome.get("value", outcome.get("error"))
            yield from self.add_result(block.get("id"), Result(output, failed))
        else:
            yield from super().read_block(ref, block)


def _list_changed(reading: Reading, database: sources.Database) -> Iterator[sources.Part]:
    before = reading.state = reading.load_state(sources.RowProgress)
    columns = ("id", "name", "description", "working_dir")
    rows = {row["id"]: row for row in database.select_records("sessions", columns)}
    asked = "SELECT session_id, max(id) FROM messages GROUP BY 1 HAVING max(id) > ? ORDER BY 2"
    for id_, last in database.select_rows(asked, before.row):
        if id_ in rows:
            talk = Talk(reading, database, rows[id_])
            yield sources.Part(f"session {id_}", sources.RowProgress(last), talk.read_items())


READER = sources.make_database_reader(_list_changed, ("sessions", "messages"))
