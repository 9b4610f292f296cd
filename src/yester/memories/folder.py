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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from yester.errors import NotFound, SourceError
from yester.fence import neutralize_text
from yester.files import make_folder, read_shared, swap_shared
from yester.memories.categories import CATEGORIES
from yester.memories.files import MemoryFile, parse_memory_file
from yester.text.sentences import shorten_text

INSIDE = Path(".claude", "memory")
INDEX, INDEX_HEADER = "index.md", "# Memory Index\n\n"
CONFIG = "memory-config.json"
MOST_INJECTED = 20
_DEEPEST = 3  # folders in each other
_MOST_FILES = 20_000


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


@dataclass(frozen=True, slots=True)
class FolderConfig:
    folders: Mapping[str, str] = field(default_factory=dict)  # category → folder
    retention_days: Mapping[str, int] = field(default_factory=dict)
    max_inject: int | None = None  # None: it says nothing about it
    warnings: tuple[str, ...] = ()

    def folder_of(self, category: str) -> str:
        """Where memories of a category are written; one nobody has told of gets its own name."""
        known = CATEGORIES.get(category)
        return self.folders.get(category) or (known and known.folder) or category.replace("_", "-")


def parse_folder_config(data: bytes | None, where: str = CONFIG) -> FolderConfig:
    """Never an error: a value that cannot be used is as if it were not there, and is named."""
    warnings: list[str] = []

    def pick(values: Any, name: str, check: Callable[[Any], Any], above: str = "") -> Any:
        if (given := values.get(name)) is None:
            return None
        try:
            return check(given)
        except (TypeError, ValueError, OverflowError):
            shown = shorten_text(ascii(given), 40)
            warnings.append(f"{where}: {above}{name} is {shown}; the default is used")
            return None

    try:
        whole = _check_object(json.loads((b"{}" if data is None else data).decode("utf-8-sig")))
    except (TypeError, ValueError, RecursionError):
        return FolderConfig(warnings=(f"{where}: is not a JSON object; the defaults are used",))
    retrieval = pick(whole, "retrieval", _check_object) or {}
    most = pick(retrieval, "max_inject", _check_number, "retrieval.")
    folders, days = {}, {}
    categories = pick(whole, "categories", _check_object) or {}
    for name in categories:
        row = pick(categories, name, _check_object, "categories.") or {}
        folders[name] = pick(row, "folder", _check_folder, f"categories.{name}.") or ""
        days[name] = pick(row, "retention_days", _check_number, f"categories.{name}.") or 0
    limit = None if most is None else min(most, MOST_INJECTED)
    return FolderConfig(folders, days, limit, tuple(warnings))


def read_folder_config(root: Path) -> FolderConfig:
    path = root / CONFIG
    try:
        return parse_folder_config(read_shared(path), str(path))
    except SourceError as error:  # a link, a pipe, too large: as if it were not there
        return FolderConfig(warnings=(f"{error}; the defaults are used",))


def narrow_limit(most: int, top: str) -> int:
    """At most so many as the user has set (`most`), or fewer where the project at `top` says so."""
    found = read_folder_config(Path(top) / INSIDE).max_inject if top and most > 0 else None
    return most if found is None else min(most, found)


def _check_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _check_folder(value: str) -> str:
    """One below the root, and one that is read."""
    parts = PurePosixPath(value).parts
    hidden = any(part.startswith((".", "/")) for part in parts)
    if hidden or not 0 < len(parts) <= _DEEPEST or {*value} & {"\0", "\\"}:
        raise ValueError
    return value


def _check_number(value: Any) -> int:
    """A whole number, none below zero, also as people write it ("5", 5.7)."""
    if isinstance(value, bool):
        raise TypeError
    return max(int(float(value)), 0)


# --- index.md ------------------------------------------------------------------------------------

# - [DECISION] Use Postgres for the ledger -> .claude/memory/decisions/use-postgres.json #tags:db
#
# Whatever a title, tag or path holds, a line stays one line with one arrow, and reading it gives
# back what it was made from (title and tags in their neutral form). Other tools take the first
# ` -> ` for the arrow and a path without spaces; so neither can stand anywhere else in our lines.
# Of their lines the last arrow with a path behind it counts: a title may hold one, and a tag too.
_LINE = re.compile(
    r"-\s+\[(?P<label>[A-Z][A-Z0-9_]*)\]\s+(?P<title>\S.*)\s->\s+(?P<path>\S.*?\.json)"
    r"(?:\s+#tags:(?P<tags>.*))?"
)
_LONGEST_LINE, _LONGEST_TITLE, _LONGEST_TAG = 10_000, 120, 60
_TAGS_MARK = re.compile(r"(#\s*tags)\s*:[\s:]*", re.IGNORECASE)
_SAFE = "/!$&'()*+,;=:@~"  # what may stand in a path as it is, besides letters and digits


@dataclass(frozen=True, slots=True)
class IndexLine:
    label: str  # the category in capitals
    title: str
    path: str
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        tags = f" #tags:{','.join(self.tags)}" if self.tags else ""
        path = quote(self.path, _SAFE, errors="surrogateescape")
        return f"- [{self.label}] {self.title} -> {path}{tags}"


def make_index_line(one: MemoryFile, path: str) -> IndexLine:
    """What can be said of a memory in one line; its id stands in for a title nobody sees."""
    tags = (_neutral_words(tag.replace(",", " "), _LONGEST_TAG) for tag in one.tags)
    title = _neutral_words(one.title, _LONGEST_TITLE) or one.id
    label = re.sub(r"[^A-Z0-9_]", "_", one.category.upper())
    return IndexLine(label, title, path, tuple(dict.fromkeys(filter(None, tags))))


def parse_index_line(text: str) -> IndexLine | None:
    """A line of an index, ours or another tool's; None: it is none."""
    found = _LINE.fullmatch(text.strip()) if len(text) <= _LONGEST_LINE else None
    if found is None:
        return None
    words = (word.strip() for word in (found["tags"] or "").split(","))
    path = unquote(found["path"], errors="surrogateescape")
    return IndexLine(found["label"], found["title"].strip(), path, tuple(filter(None, words)))


def parse_index(text: str) -> dict[str, IndexLine]:
    """path → line, of everything in an index that is one."""
    return {one.path: one for one in map(parse_index_line, text.split("\n")) if one}


def update_index(text: str, wanted: Iterable[IndexLine]) -> str:
    """An index that lists exactly these. Lines that are right stay as they are, and so does
    everything that is no entry; what is missing comes at the end, in the order given."""
    waiting = {one.path: one for one in wanted}
    end = "\r\n" if "\r\n" in text else "\n"
    kept: list[str] = []
    for raw in re.findall(r"[^\n]*\n|[^\n]+", text or INDEX_HEADER):
        have = parse_index_line(raw)
        if have is None:
            kept.append(raw)
        elif one := waiting.pop(have.path, None):
            visible = all(char.isprintable() or char in "\t\r\n" for char in raw)
            ending = raw[len(raw.rstrip("\r\n")) :]
            kept.append(raw if visible and have == one else f"{one}{ending}")
    if waiting and kept and not kept[-1].endswith("\n"):
        kept[-1] += end
    return "".join(kept) + "".join(f"{one}{end}" for one in waiting.values())


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
        self.config = read_folder_config(root)
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
        """index.md as it must be by the files; True where it was written. One that is right is left
        alone, whoever wrote it and in whatever order. Only memories in force are listed."""
        path = self.root / INDEX
        present = read_shared(path)
        text = (present or b"").decode("utf-8", "surrogateescape")
        above = self._path_prefix(text)
        wanted = update_index(
            text,
            (
                make_index_line(one, above + self.paths[key])
                for key, one in sorted(self.memories.items())
                if one.status == "active"
            ),
        )
        if (present is None and not self.memories) or (present is not None and wanted == text):
            return False
        make_folder(self.root, "")
        return swap_shared(path, wanted.encode("utf-8", "surrogateescape"), present)

    def _swap_file(self, path: str, data: bytes | None, present: MemoryFile | None) -> None:
        """SourceError where the file is not the one that was read any more: whoever has changed it
        meanwhile is not to lose it."""
        at = self.root / path
        if not swap_shared(at, data, present.raw if present else None):
            raise SourceError(f"{at}: has changed while it was looked at; it is left as it is")

    def _read_memories(self) -> None:
        """The same memory in two files is the one whose file has its name, else the first; the
        other is among the unread."""
        for number, path in enumerate(self._list_files()):
            if number == _MOST_FILES:
                self.unread[""] = (
                    f"{self.root}: has more than {_MOST_FILES:,} files; the rest was not read"
                )
                break
            try:
                data = read_shared(self.root / path)
                if data is None:
                    continue  # taken away since the folder was listed
                one = parse_memory_file(data, str(self.root / path))
            except SourceError as error:
                self.unread[path] = str(error)
                continue
            chosen, other = path, self.paths.get(one.key)
            if other and (Path(other).stem == one.id or Path(path).stem != one.id):
                chosen, other = other, path
            if other:
                self.unread[other] = f"{self.root / other}: is {one.key} once more, beside {chosen}"
            if chosen == path:
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
        """A name nobody has: by another file with this name the memory must not be hidden."""
        start = f"{self.config.folder_of(one.category)}/{one.id}"
        if f"{start}.json" in self.unread:
            raise SourceError(f"{self.root / start}.json: cannot be read, so it is kept")
        taken = {path.casefold() for path in (*self.paths.values(), *self.unread)}
        names = (f"{start}{f'.{number}' if number > 1 else ''}.json" for number in count(1))
        return next(name for name in names if name.casefold() not in taken)

    def _path_prefix(self, index: str) -> str:
        """From where the index sees the files: as it did before, else from the project, whose
        `.claude/memory` the folder mostly is."""
        files = {*self.paths.values()}
        for path in parse_index(index):
            for deep in range(2, _DEEPEST + 2):
                if (end := "/".join(path.split("/")[-deep:])) in files:
                    return path.removesuffix(end)
        inside = self.root.absolute().parts[-2:] == INSIDE.parts
        return f"{INSIDE.as_posix()}/" if inside else ""
