"""A `.claude/memory/` tree as plain values, for whoever keeps memories.

Times are milliseconds, lists are lists, absent is None; the content is the category's own object.
`keep` holds the keys nobody here knows, and `raw` the file itself, so that writing it back can give
every byte again. Reading twice gives the same: a memory is known by its `ref`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yester.errors import SourceError
from yester.memories.filed import milliseconds
from yester.memories.memo import By
from yester.memories.store_side import SOURCE, LetGo, StoreSide
from yester.memories.tree import read
from yester.memories.written import KEYS, Written
from yester.model import Project
from yester.store.contract import Store


@dataclass(frozen=True, slots=True)
class Imported:
    memories: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]


def claude_memory(folder: Path) -> Imported:
    """The memories of a tree, by key, and what could not be read. The folder may be the project's:
    then its `.claude/memory` is meant."""
    root = _root(folder)
    tree = read(root)
    memories = tuple(
        plain(one, str((root / tree.paths[key]).absolute())) for key, one in tree.memories.items()
    )
    return Imported(memories, tree.problems)


def _root(folder: Path) -> Path:
    inside = folder / ".claude" / "memory"
    root = inside if inside.is_dir() else folder
    if not root.is_dir():
        raise SourceError(f"{folder}: no such folder; name a project or its .claude/memory")
    return root


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


# --- into the store ----------------------------------------------------------------------------


@dataclass(slots=True)
class TreeReport:
    """What an import did. `stayed` are memories that were retired or let go, and stay so."""

    files: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    stayed: int = 0
    problems: list[str] = field(default_factory=list)


def take(store: Store, folder: Path, project: Project, by: By) -> TreeReport:
    """The memories of a tree into the store; nothing is written into the tree.

    Taken again, what has changed in its file since is brought up to date. What was changed in the
    store as well is left as it is, and named."""
    tree, kept = read(_root(folder)), StoreSide(store, project, by)
    present = kept.view().memories
    report = TreeReport(len(tree.memories), problems=list(tree.problems))
    for key, one in tree.memories.items():
        have, met = present.get(key), kept.met_before(key)
        if have is not None and have.status != "active" and one.status == "active":
            report.stayed += 1
        elif have is not None and (one.hash == have.hash or (met and met[0] == one.hash)):
            report.unchanged += 1
        elif have is not None and not (met and met[1] == have.hash):
            report.problems.append(
                f"{tree.root / tree.paths[key]}: {key} is another one in the store; to keep both: "
                f"yester memory sync {tree.root}"
            )
        else:
            _put(kept, one, have, report, str(tree.root / tree.paths[key]))
    return report


def _put(
    kept: StoreSide, one: Written, have: Written | None, report: TreeReport, path: str
) -> None:
    try:
        kept.put(one, have.hash if have else "")
    except LetGo:
        report.stayed += 1
    except SourceError as error:
        report.problems.append(f"{path}: {error}")
    else:
        if have:
            report.changed += 1
        else:
            report.added += 1
