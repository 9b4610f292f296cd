"""Imports a `.claude/memory/` tree into the store. Reading it twice gives the same: a memory is
known by its key."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from yester.errors import SourceError
from yester.memories.memo import By
from yester.memories.store_side import LetGo, StoreSide
from yester.memories.tree import read
from yester.memories.written import Written
from yester.model import Project
from yester.store.contract import Store


@dataclass(slots=True)
class TreeReport:
    """What an import did. `stayed` are memories that were retired or let go, and stay so."""

    files: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    stayed: int = 0
    problems: list[str] = field(default_factory=list)


def import_memory_tree(store: Store, folder: Path, project: Project, by: By) -> TreeReport:
    """The memories of a tree into the store; nothing is written into the tree. The folder may be
    the project's: then its `.claude/memory` is meant.

    Imported again, what has changed in its file since is brought up to date. What was changed in
    the store as well is left as it is, and named."""
    tree, kept = read(_find_root(folder)), StoreSide(store, project, by)
    present = kept.view().memories
    report = TreeReport(len(tree.memories), problems=list(tree.problems))
    for key, memory in tree.memories.items():
        have, met = present.get(key), kept.met_before(key)
        path = tree.root / tree.paths[key]
        if have is not None and have.status != "active" and memory.status == "active":
            report.stayed += 1
        elif have is not None and (memory.hash == have.hash or (met and met[0] == memory.hash)):
            report.unchanged += 1
        elif have is not None and not (met and met[1] == have.hash):
            report.problems.append(
                f"{path}: {key} is another one in the store; to keep both: "
                f"yester memory sync {tree.root}"
            )
        else:
            _put_memory(kept, memory, have, report, path)
    return report


def _find_root(folder: Path) -> Path:
    inside = folder / ".claude" / "memory"
    root = inside if inside.is_dir() else folder
    if not root.is_dir():
        raise SourceError(f"{folder}: no such folder; name a project or its .claude/memory")
    return root


def _put_memory(
    kept: StoreSide, memory: Written, have: Written | None, report: TreeReport, path: Path
) -> None:
    try:
        kept.put(memory, have.hash if have else "")
    except LetGo:
        report.stayed += 1
    except SourceError as error:
        report.problems.append(f"{path}: {error}")
    else:
        report.changed += have is not None
        report.added += have is None
