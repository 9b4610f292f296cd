"""A folder of memories (`.claude/memory/`): a JSON file each, index.md, memory-config.json.

    sessions/ decisions/ runbooks/ constraints/ tech-debt/ preferences/    ID.json in each
    index.md                a line for each memory in force; written from the files, never read back
    memory-config.json      read, never written

A file that cannot be read is named and left out; it stands in nobody's way and nobody writes over
it. Hidden files and folders are other tools' business, and no link is followed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from yester.errors import SourceError
from yester.memories import listing, memory_config
from yester.memories.disk import contents, folder, removed, replaced
from yester.memories.memory_config import MemoryConfig
from yester.memories.written import Written, parsed

_DEEPEST = 3  # folders in each other
_MOST = 20_000  # files


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree as it was when it was read."""

    root: Path
    memories: Mapping[str, Written]  # by key
    paths: Mapping[str, str]  # key → path below the root
    config: MemoryConfig = field(default_factory=MemoryConfig)
    unread: Mapping[str, str] = field(default_factory=dict)  # path below the root → why

    @property
    def problems(self) -> tuple[str, ...]:
        return (*self.config.warnings, *self.unread.values())


def read(root: Path) -> Tree:
    """Everything in a tree. A missing one is empty: who names a wrong folder must be told before.

    The same memory in two files is the one whose file has its name, else the first; the other is
    among the unread."""
    config = memory_config.parsed(*_config(root))
    unread: dict[str, str] = {}
    found: dict[str, tuple[bool, str, Written]] = {}
    for number, path in enumerate(_files(root, "", unread)):
        if number == _MOST:
            unread[""] = f"{root}: has more than {_MOST:,} files; the rest was not read"
            break
        try:
            data = contents(root / path)
            if data is None:
                continue  # taken away since the folder was listed
            one = parsed(data, str(root / path))
        except SourceError as error:
            unread[path] = str(error)
            continue
        named = Path(path).stem == one.id
        other = found.get(one.key)
        if other and (other[0] or not named):
            unread[path] = f"{root / path}: is {one.key} once more, beside {other[1]}"
            continue
        if other:
            unread[other[1]] = f"{root / other[1]}: is {one.key} once more, beside {path}"
        found[one.key] = (named, path, one)
    return Tree(
        root,
        {key: one for key, (_, _, one) in sorted(found.items())},
        {key: path for key, (_, path, _) in found.items()},
        config,
        unread,
    )


def _config(root: Path) -> tuple[bytes | None, str]:
    where = str(root / memory_config.NAME)
    try:
        return contents(root / memory_config.NAME), where
    except SourceError as error:
        return b"", str(error)  # no JSON: the defaults, and a warning that begins with the reason


def _files(root: Path, below: str, unread: dict[str, str]) -> Iterator[str]:
    """Paths of memories below the root, in order. Files beside the folders are no memories."""
    try:
        with os.scandir(root / below) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        unread[below] = f"{root / below}: cannot be read ({error.strerror or error})"
        return
    for entry in entries:
        path = f"{below}/{entry.name}" if below else entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            if entry.name.endswith(".json") if below else entry.is_dir():
                unread[path] = f"{root / path}: is a link, which is not followed"
        elif entry.is_dir(follow_symlinks=False):
            if path.count("/") < _DEEPEST:
                yield from _files(root, path, unread)
        elif below and entry.name.endswith(".json"):
            yield path


# --- writing -----------------------------------------------------------------------------------


def put(tree: Tree, one: Written) -> Tree:
    """Write a memory: in place of the file it has in the tree, else under its own name.

    SourceError where that file is not the one that was read any more: whoever has changed it in the
    meantime is not to lose it."""
    present = tree.memories.get(one.key)
    data = one.bytes(present.raw if present else b"")
    kept = parsed(data, f"{tree.root}: {one.key}")  # what nobody could read back is not written
    path = tree.paths.get(one.key) or _free(tree, one)
    at = folder(tree.root, str(Path(path).parent)) / Path(path).name
    if not replaced(at, data, present.raw if present else None):
        raise SourceError(f"{at}: has changed while it was looked at; it is left as it is")
    return replace(
        tree,
        memories={**tree.memories, one.key: kept},
        paths={**tree.paths, one.key: path},
    )


def drop(tree: Tree, key: str) -> Tree:
    """Take a memory's file away, unless it has changed since it was read."""
    at = tree.root / tree.paths[key]
    if not removed(at, tree.memories[key].raw):
        raise SourceError(f"{at}: has changed while it was looked at; it is left as it is")
    return replace(
        tree,
        memories={name: one for name, one in tree.memories.items() if name != key},
        paths={name: path for name, path in tree.paths.items() if name != key},
    )


def _free(tree: Tree, one: Written) -> str:
    """A name nobody has: by another file with this name the memory must not be hidden."""
    below = tree.config.folder(one.category)
    taken = {path.casefold() for path in (*tree.paths.values(), *tree.unread)}
    if f"{below}/{one.id}.json" in tree.unread:
        raise SourceError(f"{tree.root / below / one.id}.json: cannot be read, so it is kept")
    number, path = 1, f"{below}/{one.id}.json"
    while path.casefold() in taken:
        number += 1
        path = f"{below}/{one.id}.{number}.json"
    return path


# --- index.md ----------------------------------------------------------------------------------


def refresh_index(tree: Tree) -> bool:
    """index.md as it must be by the files; True where it was written.

    An index that is right is left alone, whoever wrote it and in whatever order. Only memories in
    force are listed."""
    path = tree.root / listing.NAME
    present = contents(path)
    text = (present or b"").decode("utf-8", "surrogateescape")
    wanted = listing.updated(text, index_lines(tree, _above(tree, text)))
    if present is not None and wanted == text:
        return False
    if present is None and not tree.memories:
        return False
    folder(tree.root, "")
    return replaced(path, wanted.encode("utf-8", "surrogateescape"), present)


def index_lines(tree: Tree, above: str = "") -> list[listing.Line]:
    """The lines that must be there; `above` comes before each path."""
    return [
        listing.line(one.category, one.title, f"{above}{tree.paths[key]}", one.tags, one.id)
        for key, one in sorted(tree.memories.items())
        if one.status == "active"
    ]


def _above(tree: Tree, index: str) -> str:
    """From where the index sees the files: as it did before, else from the project, whose
    `.claude/memory` the tree mostly is."""
    files = set(tree.paths.values())
    seen = Counter(
        path[: -len(end)]
        for path in listing.entries(index)
        for end in ("/".join(path.split("/")[-deep:]) for deep in range(2, _DEEPEST + 2))
        if end in files
    )
    if seen:
        return min(seen, key=lambda above: (-seen[above], above))
    inside = tree.root.absolute().parts[-2:] == (".claude", "memory")
    return ".claude/memory/" if inside else ""
