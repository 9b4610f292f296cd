"""A MEMORY.md looked over: its length, and what newer memories of its project say otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from yester.fence import strip_fenced
from yester.importers.notes import notes_of
from yester.memories.categories import category
from yester.memories.curated import Entry
from yester.memories.disk import contents
from yester.memories.lint import Finding, Newer, findings
from yester.memories.memo import GLOBAL
from yester.memories.wording import lead
from yester.model import Filters
from yester.redact import redact
from yester.store.contract import Store

# Categories that say how things are or should be; the goal of a session claims nothing.
_CLAIM = ("decision", "constraint", "preference", "rule", "note")


def lint_page(store: Store, path: Path, project: str) -> list[Finding]:
    """What is worth a look in the file, by line. A note is as old as it has stood there unchanged,
    by what was indexed; one that was not indexed yet is as old as the file."""
    data = contents(path.resolve())
    if data is None:
        return []
    written = path.stat().st_mtime_ns // 1_000_000
    known = {
        _flat(item.body): item.updated
        for item in notes_of(store, next(iter(store.sources(path=str(path))), None))
    }

    def since(entry: Entry) -> int:
        return known.get(_flat(redact(strip_fenced(entry.text))), written)

    return findings(data.decode("utf-8", "replace"), _told(store, project), written=since)


def _told(store: Store, project: str) -> Sequence[Newer]:
    memos = store.memos(Filters(projects=(project, GLOBAL.key), types=_CLAIM))
    return [
        Newer(f"#{memo.item.id}", lead(category(memo.item.type), memo.content), memo.item.updated)
        for memo in memos
        if memo.item.project in (project, GLOBAL.key)
    ]


def _flat(text: str) -> str:
    return " ".join(text.split())
