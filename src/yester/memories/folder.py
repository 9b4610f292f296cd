"""A folder of memories (`.claude/memory/`): a JSON file each, index.md, memory-config.json.

    sessions/ decisions/ runbooks/ constraints/ tech-debt/ preferences/    ID.json in each
    index.md                a line for each memory in force; written from the files
    memory-config.json      read, never written

A file that cannot be read is named and left out; it stands in nobody's way and nobody writes over
it. Hidden files and folders are other tools' business, and no link is followed.

The configuration comes with a repository, so it is not the user's word. It names folders inside
the folder; it can make what is shown for a prompt less, never more (`narrow_limit`); and its
`retention_days` are told and delete nothing: only [retention] in the user's config.toml does.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import msgspec

from yester.errors import NotFound, SourceError
from yester.fence import neutralize_text
from yester.files import make_folder, read_shared, swap_shared
from yester.memories.categories import CATEGORIES
from yester.memories.files import MemoryFile, parse_memory_file
from yester.text.sentences import shorten_text

INSIDE = Path(".claude", "memory")
INDEX, INDEX_HEADER = "index.md", b"# Memory Index\n\n"
CONFIG = "memory-config.json"
_DEEPEST = 3  # folders in each other


def locate_folder(named: Path) -> tuple[Path, Path]:
    """(where the files are, whose they are) for a folder somebody names: a project's folder means
    its `.claude/memory`. SourceError where that would be made below a folder that is not there."""
    whole = named.absolute()
    if whole.parts[-2:] == INSIDE.parts:
        root, owner = whole, whole.parent.parent
    elif (whole / INSIDE).is_dir() or (whole / ".git").exists():
        root, owner = whole / INSIDE, whole
    else:
        root = owner = whole
    if root.is_symlink() or (root.exists() and not root.is_dir()):
        raise SourceError(f"{root}: is not a folder, or a link to one, which is not followed")
    if not root.exists() and not (owner if owner != root else root.parent).is_dir():
        raise SourceError(f"{named}: there is no folder to make it in; look at the path")
    return root, owner


def find_folder(cwd: Path, top: str) -> Path:
    """The `.claude/memory` that is there for a folder: its own, else that of its project's top."""
    for owner in (cwd, Path(top)) if top else (cwd,):
        if (owner / INSIDE).is_dir():
            return owner / INSIDE
    raise NotFound(f"{cwd} has no {INSIDE}; to write one, name it: yester memory sync {INSIDE}")


# --- memory-config.json --------------------------------------------------------------------------

_Number = Annotated[int, msgspec.Meta(ge=0)]
# A folder below the root, and one that is read: no part of it is hidden.
_Below = Annotated[str, msgspec.Meta(pattern=r"\A(?!\.)[^/\\\0]+(?:/(?!\.)[^/\\\0]+){0,2}\Z")]


class _Retrieval(msgspec.Struct):
    max_inject: _Number | None = None  # None: it says nothing about it


class _CategoryConfig(msgspec.Struct):
    folder: _Below | None = None
    retention_days: _Number = 0


class FolderConfig(msgspec.Struct):
    retrieval: _Retrieval = msgspec.field(default_factory=_Retrieval)
    categories: dict[str, _CategoryConfig] = msgspec.field(default_factory=dict)

    def folder_of(self, category: str) -> str:
        """Where memories of a category are written; one nobody has told of gets its own name."""
        said, known = self.categories.get(category), CATEGORIES.get(category)
        return (said and said.folder) or (known and known.folder) or category.replace("_", "-")


def read_folder_config(root: Path) -> tuple[FolderConfig, list[str]]:
    """What it says, and what is wrong with it; one that cannot be used is as if it were not there:
    also a link, a pipe, one that is too large."""
    try:
        data = read_shared(root / CONFIG) or b"{}"
        return msgspec.convert(json.loads(data.decode("utf-8-sig")), FolderConfig, strict=False), []
    except (SourceError, ValueError, RecursionError) as error:
        return FolderConfig(), [
            f"{root / CONFIG}: the defaults are used, since it cannot be: {error}"
        ]


def narrow_limit(most: int, top: str) -> int:
    """At most so many as the user has set (`most`), or fewer where the project at `top` says so."""
    if not top or most <= 0:
        return most
    found = read_folder_config(Path(top) / INSIDE)[0].retrieval.max_inject
    return most if found is None else min(most, found)


# --- index.md ------------------------------------------------------------------------------------

# - [DECISION] Use Postgres for the ledger -> .claude/memory/decisions/use-postgres.json #tags:db
#
# Whatever a title, tag or path holds, a line stays one line with one arrow. Readers take the first
# ` -> ` for the arrow and a path without spaces; so neither can stand anywhere else in a line.
_LONGEST_TITLE, _LONGEST_TAG = 120, 60
_TAGS_MARK = re.compile(r"(#\s*tags)\s*:[\s:]*", re.IGNORECASE)
_SAFE = "/!$&'()*+,;=:@~"  # what may stand in a path as it is, besides letters and digits


def make_index_line(one: MemoryFile, path: str) -> str:
    """What can be said of a memory in one line; its id stands in for a title nobody sees."""
    label = re.sub(r"[^A-Z0-9_]", "_", one.category.upper())
    title = _neutral_words(one.title, _LONGEST_TITLE) or one.id
    words = (_neutral_words(tag.replace(",", " "), _LONGEST_TAG) for tag in one.tags)
    tags = ",".join(dict.fromkeys(filter(None, words)))
    line = f"- [{label}] {title} -> {quote(path, _SAFE, errors='surrogateescape')}"
    return f"{line} #tags:{tags}" if tags else line


def _neutral_words(text: str, most: int) -> str:
    """One visible line without an arrow or a mark of tags."""
    line = " ".join(neutralize_text(text).split()).replace("->", "→")
    return shorten_text(_TAGS_MARK.sub(r"\1 ", line), most)


# --- the folder ----------------------------------------------------------------------------------


class MemoryFolder:
    """A folder as it was read, with what was done since; one of the two keepers of a sync.

    A missing one is empty: who names a wrong folder must be told before."""

    def __init__(self, root: Path) -> None:
        self.root, self.name = root, str(root)
        self.memories: dict[str, MemoryFile] = {}  # by key
        self.paths: dict[str, str] = {}  # key → path below the root
        self.unread: dict[str, str] = {}  # path below the root → why
        self.config, self.warnings = read_folder_config(root)
        self._read_memories()

    def put_memory(self, one: MemoryFile) -> None:
        """Write a memory in place of the file it has here, else under its own name."""
        data = one.to_bytes()
        kept = parse_memory_file(data, f"{self.root}: {one.key}")  # else nobody could read it back
        path = self.paths.get(one.key) or self._choose_path(one)
        make_folder(self.root, str(Path(path).parent))
        self._swap_file(path, data, self.memories.get(one.key))
        self.memories[one.key], self.paths[one.key] = kept, path

    def drop_memory(self, key: str) -> None:
        self._swap_file(self.paths[key], None, self.memories[key])
        del self.memories[key], self.paths[key]

    def write_index(self) -> bool:
        """index.md made from the files; True where it was written. One that lists the same, in
        whatever order, is left alone, and so is what is no entry. Only memories in force are
        listed."""
        path = self.root / INDEX
        inside = self.root.absolute().parts[-2:] == INSIDE.parts
        above = f"{INSIDE.as_posix()}/" if inside else ""  # paths are seen from the project
        lines = [
            make_index_line(one, above + self.paths[key])
            for key, one in sorted(self.memories.items())
            if one.status == "active"
        ]
        present = read_shared(path)
        before = (present or INDEX_HEADER).decode("utf-8", "surrogateescape").splitlines()
        entries = [line for line in before if line.startswith("- [")]
        if {*entries} == {*lines}:
            return False
        text = "\n".join([line for line in before if line not in entries] + [*lines, ""])
        make_folder(self.root, "")
        return swap_shared(path, text.encode("utf-8", "surrogateescape"), present)

    def _swap_file(self, path: str, data: bytes | None, present: MemoryFile | None) -> None:
        """SourceError where the file is not the one that was read any more: whoever has changed it
        meanwhile is not to lose it."""
        at = self.root / path
        if not swap_shared(at, data, present.raw if present else None):
            raise SourceError(f"{at}: has changed while it was looked at; it is left as it is")

    def _read_memories(self) -> None:
        """Of the same memory in two files the first counts; the other is among the unread."""
        for path in self._list_files():
            at = self.root / path
            try:
                one = parse_memory_file(read_shared(at) or b"", str(at))
            except SourceError as error:
                self.unread[path] = str(error)
                continue
            if known := self.paths.get(one.key):
                self.unread[path] = f"{at}: is {one.key} once more, beside {known}"
            else:
                self.memories[one.key], self.paths[one.key] = one, path

    def _list_files(self) -> Iterator[str]:
        """Paths of memories below the root. Files beside the folders are no memories."""

        def note_error(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                self.unread[error.filename] = f"{error.filename}: cannot be read ({error.strerror})"

        for folder, names, files in os.walk(self.root, onerror=note_error):
            here = Path(folder).relative_to(self.root)
            deepest = len(here.parts) == _DEEPEST
            names[:] = sorted(n for n in names if not (deepest or n.startswith(".")))
            for name in names:
                if (Path(folder) / name).is_symlink():
                    at = (here / name).as_posix()
                    self.unread[at] = f"{Path(folder) / name}: is a link, which is not followed"
            for name in sorted(files) if here.parts else ():
                if name.endswith(".json") and not name.startswith("."):
                    yield (here / name).as_posix()

    def _choose_path(self, one: MemoryFile) -> str:
        """Its own name, unless another file has it, which must not be hidden."""
        path = f"{self.config.folder_of(one.category)}/{one.id}.json"
        if path.casefold() in {known.casefold() for known in (*self.paths.values(), *self.unread)}:
            raise SourceError(
                f"{self.root / path}: stands where {one.key} would be written, so it is kept; "
                "rename or mend it"
            )
        return path
