"""recall's session-index.db: what it has kept of sessions whose transcripts are gone.

Where a transcript is still there, `yester index` reads it, and more of it than recall has kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from yester.agents.base import Reading
from yester.agents.databases import Database, has_tables
from yester.agents.values import first_line, to_text
from yester.model import Item
from yester.operate.importers.base import (
    MemoryReader,
    Places,
    make_import,
    read_rows,
    read_texts,
    read_time,
)

_AGENT = "claude-code"
_ROLES = {"user": ("prompt", "user"), "assistant": ("message", "assistant")}


def _read_index(reading: Reading, places: Places) -> Iterator[Item]:
    with Database(reading.path) as database:
        read = partial(read_rows, reading, database)
        sessions = {to_text(row["id"]): row for row in read("sessions")}
        gone = {key for key, row in sessions.items() if not _has_transcript(row, key, places)}
        for row in read("messages"):
            session = to_text(row["session_id"])
            if session not in gone:
                reading.skip("its transcript is there")
            elif not isinstance(row["content"], str):
                reading.report_bad(f"messages/{row['rowid']}", "holds no text")
            else:
                place = to_text(sessions[session]["project_path"] or "")
                yield _make_message(reading, places, row, session, place)
        for row in read("content"):
            # Of a session whose transcript is there it has nothing that this has not.
            if to_text(row["source_id"]).partition(":")[0] in sessions.keys() - gone:
                reading.skip("its transcript is there")
            elif isinstance(row["content"], str):
                yield _make_note(reading, places, row)
            else:
                reading.report_bad(f"content/{row['rowid']}", "holds no text")


def _has_transcript(row: dict[str, Any], session: str, places: Places) -> bool:
    path = row["jsonl_path"]
    there = isinstance(path, str) and path.startswith("/") and Path(path).is_file()
    return there or places.has_transcript(session, _AGENT)


def _make_message(
    reading: Reading, places: Places, row: dict[str, Any], session: str, place: str
) -> Item:
    tool = to_text(row["tool_name"] or "")
    kind, role = ("message", "tool") if tool else _ROLES.get(row["type"], ("message", "assistant"))
    return make_import(
        reading, places, to_text(row["uuid"] or f"{session}/{row['rowid']}"), kind, place,
        body=row["content"], role=role, tool=tool, session=session, agent=_AGENT,
        epoch=read_time(row["timestamp"]), files_read=read_texts(row["file_paths"]),
    )  # fmt: skip


def _make_note(reading: Reading, places: Places, row: dict[str, Any]) -> Item:
    text, type_ = row["content"], to_text(row["content_type"] or "")
    return make_import(
        reading, places, f"{type_}/{row['source_id']}", "note", to_text(row["project_path"] or ""),
        body=text, type=type_ or "note", title=to_text(row["title"] or "") or first_line(text),
        epoch=read_time(row["timestamp"]),
    )  # fmt: skip


READER = MemoryReader(
    lambda path: has_tables(path, ("sessions", "messages", "content", "index_meta")), _read_index
)
