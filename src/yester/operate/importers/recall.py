"""recall: its session-index.db, and its archives of sessions.

Of the index, what it has kept of sessions whose transcripts are gone: where one is still there,
`yester index` reads it, and more of it than recall has kept. An archive is a Markdown file a day, a
block a session:

    ## Session 1f3a9c2e (17:40)

    - Decision: Use Postgres for the ledger

yester's own archives stand in the same folder and look alike. Which sessions those are is known:
their blocks came from the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from yester.agents.sources import Database, has_tables, read_head
from yester.agents.values import Record, digest, first_line, parse_local_time, to_text
from yester.files import read_bytes
from yester.llm.archive import short_key
from yester.memories.memory_md import MEMORY
from yester.model import Archived, Filters, Item, Paging
from yester.operate.importers import base
from yester.operate.importers.base import Import, MemoryReader, Places
from yester.operate.notes import find_note_folder
from yester.store.contract import Store

_AGENT = "claude-code"
_ROLES = {"user": ("prompt", "user"), "assistant": ("message", "assistant")}


def _read_index(index: Import) -> Iterator[Item]:
    reading = index.reading
    with Database(reading.path) as database:
        read = partial(index.read_rows, database)
        sessions = {to_text(row["id"]): row for row in read("sessions")}
        gone = {key for key, row in sessions.items() if not _has_transcript(row, key, index.places)}
        for row in read("messages"):
            session = to_text(row["session_id"])
            if session not in gone:
                reading.skip("its transcript is there")
            elif not isinstance(row["content"], str):
                reading.report_bad(f"messages/{row['rowid']}", "holds no text")
            else:
                place = to_text(sessions[session]["project_path"] or "")
                yield _make_message(index, row, session, place)
        for row in read("content"):
            # Of a session whose transcript is there it has nothing that this has not.
            if to_text(row["source_id"]).partition(":")[0] in sessions.keys() - gone:
                reading.skip("its transcript is there")
            elif isinstance(row["content"], str):
                yield _make_note(index, row)
            else:
                reading.report_bad(f"content/{row['rowid']}", "holds no text")


def _has_transcript(row: Record, session: str, places: Places) -> bool:
    path = row["jsonl_path"]
    there = isinstance(path, str) and path.startswith("/") and Path(path).is_file()
    return there or places.has_transcript(session, _AGENT)


def _make_message(index: Import, row: Record, session: str, place: str) -> Item:
    tool = to_text(row["tool_name"] or "")
    kind, role = ("message", "tool") if tool else _ROLES.get(row["type"], ("message", "assistant"))
    return index.make_item(
        to_text(row["uuid"] or f"{session}/{row['rowid']}"), kind, place,
        body=row["content"], role=role, tool=tool, session=session, agent=_AGENT,
        epoch=base.read_time(row["timestamp"]), files_read=base.read_texts(row["file_paths"]),
    )  # fmt: skip


def _make_note(index: Import, row: Record) -> Item:
    text, type_ = row["content"], to_text(row["content_type"] or "")
    return index.make_item(
        f"{type_}/{row['source_id']}", "note", to_text(row["project_path"] or ""),
        body=text, type=type_ or "note", title=to_text(row["title"] or "") or first_line(text),
        epoch=base.read_time(row["timestamp"]),
    )  # fmt: skip


# --- archives -------------------------------------------------------------------------------------

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_BLOCK = re.compile(r"^## Session ([0-9a-f]{8}) \((\d\d:\d\d)\)[ \t]*$", re.M)
_LARGEST = 1 << 25  # bytes


def _is_own_file(path: Path) -> bool:
    named = path.suffix == ".md" and _DAY.fullmatch(path.stem)
    return bool(named and _BLOCK.search(read_head(path, 65_536).decode("utf-8", "replace")))


def _read_archive(archive: Import) -> Iterator[Item]:
    reading, places = archive
    path = reading.path
    text = read_bytes(path, _LARGEST).decode("utf-8", "replace")
    folder = find_note_folder(path.parent.parent / MEMORY, places.store) or path.parents[2].name
    archived = _list_archived(places.store)
    _, *parts = _BLOCK.split(text)
    for key, time, block in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        lines = block.strip()
        if key in archived:
            reading.skip("an archive of yester's")
            continue
        epoch = parse_local_time(f"{path.stem} {time}")
        if not epoch:
            reading.report_bad(key, f"no such time: {path.stem} {time}")
            continue
        known = next(iter(places.store.sessions(Filters(session=key), Paging(1))), None)
        bullets = tuple(line[2:].strip() for line in lines.splitlines() if line.startswith("- "))
        yield archive.make_item(
            f"{key}:{digest(path.stem, time, lines)}", "note", folder, body=lines,
            type="archive", title=f"Session of {path.stem} {time}", facts=bullets, epoch=epoch,
            session=known.key if known else "", agent=known.agent if known else "",
        )  # fmt: skip


def _list_archived(store: Store) -> set[str]:
    """The sessions that yester itself has archived, as an archive calls them."""
    numbers = (one.session for one in store.entries(Archived))
    found = (store.sessions(Filters(session_id=number)) for number in numbers)
    return {short_key(one.key) for sessions in found for one in sessions}


READERS = {
    "recall": MemoryReader(
        lambda path: has_tables(path, ("sessions", "messages", "content", "index_meta")),
        _read_index,
    ),
    "recall-archive": MemoryReader(_is_own_file, _read_archive),
}
