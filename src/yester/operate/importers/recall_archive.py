"""recall's archives of sessions: a Markdown file a day, a block a session.

    ## Session 1f3a9c2e (17:40)

    - Decision: Use Postgres for the ledger

yester's own archives stand in the same folder and look alike. Which sessions those are is known:
their blocks came from the store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from yester.agents.base import Reading
from yester.agents.sources import read_head
from yester.agents.values import digest
from yester.files import read_bytes
from yester.llm.archive import short_key
from yester.memories.memory_md import MEMORY
from yester.model import Archived, Filters, Item, Paging
from yester.operate.importers.base import MemoryReader, Places, make_import
from yester.operate.notes import find_folder
from yester.store.contract import Store

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_BLOCK = re.compile(r"^## Session ([0-9a-f]{8}) \((\d\d:\d\d)\)[ \t]*$", re.M)
_LARGEST = 1 << 25  # bytes


def _is_own_file(path: Path) -> bool:
    named = path.suffix == ".md" and _DAY.fullmatch(path.stem)
    return bool(named and _BLOCK.search(read_head(path, 65_536).decode("utf-8", "replace")))


def _read_archive(reading: Reading, places: Places) -> Iterator[Item]:
    path = reading.path
    text = read_bytes(path, _LARGEST).decode("utf-8", "replace")
    folder = find_folder(path.parent.parent / MEMORY, places.store) or path.parents[2].name
    archived = _list_archived(places.store)
    _, *parts = _BLOCK.split(text)
    for key, time, block in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        lines = block.strip()
        if key in archived:
            reading.skip("an archive of yester's")
            continue
        try:
            epoch = int(datetime.fromisoformat(f"{path.stem} {time}").timestamp() * 1000)
        except ValueError:
            reading.report_bad(key, f"no such time: {path.stem} {time}")
            continue
        known = next(iter(places.store.sessions(Filters(session=key), Paging(1))), None)
        bullets = tuple(line[2:].strip() for line in lines.splitlines() if line.startswith("- "))
        yield make_import(
            reading, places, f"{key}:{digest(path.stem, time, lines)}", "note", folder, body=lines,
            type="archive", title=f"Session of {path.stem} {time}", facts=bullets, epoch=epoch,
            session=known.key if known else "", agent=known.agent if known else "",
        )  # fmt: skip


def _list_archived(store: Store) -> set[str]:
    """The sessions that yester itself has archived, as an archive calls them."""
    numbers = (one.session for one in store.entries(Archived))
    found = (store.sessions(Filters(session_id=number)) for number in numbers)
    return {short_key(one.key) for sessions in found for one in sessions}


READER = MemoryReader(_is_own_file, _read_archive)
