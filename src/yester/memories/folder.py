"""A folder of memory files kept in step with the store: what both had the last time is remembered
there, for each project and folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from yester.errors import NotFound, SourceError
from yester.memories.memo import By
from yester.memories.memory_config import MemoryConfig
from yester.memories.store_side import StoreSide, completed
from yester.memories.sync import Action, Base, TreeSide, sync
from yester.model import Project, Source
from yester.store.contract import Store

AGENT = "memory-sync"  # of the sources that hold a base
INSIDE = Path(".claude", "memory")
_BASE = "base"


@dataclass(frozen=True, slots=True)
class InStep:
    """What a sync did, what it could not do, and what the folder's configuration asks for."""

    folder: Path
    done: tuple[Action, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    memories: int  # in the folder
    config: MemoryConfig

    @property
    def conflicts(self) -> int:
        return sum(1 for action in self.done if action.what == "conflict")


def place(folder: Path) -> tuple[Path, Path]:
    """(where the files are, whose they are) for a folder somebody names: a project's folder means
    its `.claude/memory`. SourceError where that would be made below a folder that is not there."""
    whole = folder.absolute()
    if whole.parts[-2:] == INSIDE.parts:
        root, owner = whole, whole.parent.parent
    elif (whole / INSIDE).is_dir() or (whole / ".git").exists():
        root, owner = whole / INSIDE, whole
    else:
        root = owner = whole
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise SourceError(f"{root}: is not a folder, or a link to one, which is not followed")
    if not root.exists() and not (owner if owner != root else root.parent).is_dir():
        raise SourceError(f"{folder}: there is no folder to make it in; look at the path")
    return root, owner


def nearest(cwd: Path, top: str) -> Path:
    """The `.claude/memory` that is there for a folder: its own, else that of its project's top."""
    for owner in (cwd, Path(top)) if top else (cwd,):
        if (owner / INSIDE).is_dir():
            return owner / INSIDE
    raise NotFound(f"{cwd} has no {INSIDE}; to write one, name it: yester memory sync {INSIDE}")


def in_step(
    store: Store,
    folder: Path,
    project: Project,
    by: By,
    *,
    emptied: bool = False,
    dry_run: bool = False,
) -> InStep:
    """Bring the files of a folder and a project's memories into step."""
    tree, kept = TreeSide(folder), StoreSide(store, project, by)
    views = tree.view(), kept.view()
    base = completed(last_base(store, folder, project), views[0], kept)
    done = sync(tree, kept, base, emptied, views, dry_run)
    if not dry_run:
        _keep(store, folder, project, done.base)
    return InStep(
        folder, done.done, done.problems, tuple(tree.warnings), len(tree.tree.memories),
        tree.tree.config,
    )  # fmt: skip


def last_base(store: Store, folder: Path, project: Project) -> dict[str, tuple[str, str]]:
    source = next(iter(store.sources(path=_path(folder, project))), None)
    found = source.state.get(_BASE) if source else None
    if not isinstance(found, Mapping):
        return {}
    return {str(key): (str(one), str(other)) for key, (one, other) in found.items()}


def _keep(store: Store, folder: Path, project: Project, base: Base) -> None:
    path = _path(folder, project)
    state = {_BASE: {key: list(both) for key, both in base.items()}}
    known = next(iter(store.sources(path=path)), None)
    if (known.state if known else {_BASE: {}}) == state:
        return
    with store.transaction():
        store.put_source(Source(path, AGENT, 0, 0, 0, 0, "", state), {})


def _path(folder: Path, project: Project) -> str:
    return f"{AGENT}:{project.key}:{folder}"
