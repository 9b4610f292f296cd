"""A `.claude/memory/` tree as plain values, for whoever keeps memories.

Times are milliseconds, lists are lists, absent is None; the content is the category's own object.
`keep` holds the keys nobody here knows, and `raw` the file itself, so that writing it back can give
every byte again. Reading twice gives the same: a memory is known by its `ref`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from yester.errors import SourceError
from yester.memories.tree import read
from yester.memories.written import KEYS, Written

SOURCE = "claude-memory"


@dataclass(frozen=True, slots=True)
class Imported:
    memories: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]


def claude_memory(folder: Path) -> Imported:
    """The memories of a tree, by key, and what could not be read. The folder may be the project's:
    then its `.claude/memory` is meant."""
    inside = folder / ".claude" / "memory"
    root = inside if inside.is_dir() else folder
    if not root.is_dir():
        raise SourceError(f"{folder}: no such folder; name a project or its .claude/memory")
    tree = read(root)
    memories = tuple(
        plain(one, str((root / tree.paths[key]).absolute())) for key, one in tree.memories.items()
    )
    return Imported(memories, tree.problems)


def plain(one: Written, path: str = "") -> dict[str, Any]:
    """A memory's values under the names of this program."""
    given = one.values
    created, updated = milliseconds(given.get("created_at")), milliseconds(given.get("updated_at"))
    return {
        "source": SOURCE,
        "ref": one.key,
        "category": one.category,
        "id": one.id,
        "title": one.title,
        "status": one.status,
        "created": created or updated,
        "updated": updated or created,
        "tags": list(one.tags),
        "files": list(one.related_files),
        "confidence": given.get("confidence"),
        "changes": list(given.get("changes") or ()),
        "times_updated": given.get("times_updated") or 0,
        "retired": milliseconds(given.get("retired_at")),
        "retired_reason": given.get("retired_reason") or "",
        "archived": milliseconds(given.get("archived_at")),
        "archived_reason": given.get("archived_reason") or "",
        "content": dict(one.content),
        "keep": {name: value for name, value in given.items() if name not in KEYS},
        "raw": one.raw,
        "path": path,
    }


def milliseconds(text: Any) -> int:
    """An ISO time; without a zone it is UTC. 0 where it is none."""
    if not isinstance(text, str):
        return 0
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return 0
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return max(int(moment.timestamp() * 1000), 0)
