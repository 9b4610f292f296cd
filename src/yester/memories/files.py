"""Memories as files (`.claude/memory/`): a JSON file each, index.md, memory-config.json.

    sessions/ decisions/ runbooks/ constraints/ tech-debt/ preferences/    ID.json in each
    index.md                a line for each memory in force; written from the files
    memory-config.json      read, never written

Other tools write these files too. One that nobody has changed is not rendered at all: its bytes are
given back as they were read. A changed one is written with its own keys in their own order, also
those that nobody here knows. The store keeps the file a memory was read from (without secrets).
What is written later is that file with the fields that were changed in the store since then, which
the memory's history tells.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec

from yester.clock import format_iso, parse_iso
from yester.errors import NotFound, SourceError, UsageError
from yester.fence import neutralize_text, strip_fenced
from yester.files import make_folder, read_shared, swap_shared
from yester.memories.categories import CATEGORIES, LONGEST_TITLE, Field, clean_text
from yester.memories.memory import Plain, plain_form
from yester.memories.remember import Draft
from yester.model import Change, Memo, MemoFile
from yester.redact import change_texts, redact
from yester.text.sentences import shorten_text

INSIDE = Path(".claude", "memory")
INDEX, INDEX_HEADER = "index.md", b"# Memory Index\n\n"
CONFIG = "memory-config.json"
LONGEST_ID = 80
FILED = tuple(row.name for row in CATEGORIES.values() if row.folder)  # categories that have files
# plain form → key of the file, for what is taken over as it is
_FIELDS: Mapping[str, str] = {
    "title": "title", "tags": "tags", "files": "related_files", "confidence": "confidence",
}  # fmt: skip
TOLD = (*_FIELDS, "type", "content", "status", "reason")  # what a file says of a memory
_STATUS_KEYS = ("retired_at", "retired_reason", "archived_at", "archived_reason")
_DEEPEST = 40  # levels of objects and lists in each other
_DEEPEST_FOLDER = 3


class _Form(msgspec.Struct, kw_only=True):
    """What the known keys may hold, in the order in which a new file has them; null is as good as
    nothing. The content is its category's business. The id becomes the name of a file: no
    separator, no leading dot, no space."""

    schema_version: str | None = None
    category: Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9_-]{0,39}\Z")]
    id: Annotated[
        str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=LONGEST_ID)
    ]
    title: Annotated[str, msgspec.Meta(pattern=r"\S")]
    record_status: Literal["active", "retired", "archived"] | None = None
    created_at: str | None = None
    updated_at: str | None = None
    tags: list[str] | None = None
    related_files: list[str] | None = None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    changes: list[dict[str, Any]] | None = None
    times_updated: Annotated[int, msgspec.Meta(ge=0)] | None = None
    retired_at: str | None = None
    retired_reason: str | None = None
    archived_at: str | None = None
    archived_reason: str | None = None
    content: dict[str, Any]


class MemoryFile(msgspec.Struct, frozen=True, dict=True):
    """`values` is the object, `raw` the bytes it was read from: b"" where it never was a file."""

    values: Mapping[str, Any]
    raw: bytes = b""

    @property
    def category(self) -> str:
        return str(self.values["category"])

    @property
    def id(self) -> str:
        return str(self.values["id"])

    @property
    def key(self) -> str:
        """What it is known by: ids are given within a category."""
        return f"{self.category}/{self.id}"

    @property
    def title(self) -> str:
        return str(self.values["title"])

    @property
    def status(self) -> str:
        return str(self.values.get("record_status") or "active")

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.values.get("tags") or ())

    @property
    def content(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.values["content"]
        return found

    @property
    def updated(self) -> int:
        return self.time_of("updated_at") or self.time_of("created_at")

    @cached_property
    def hash(self) -> str:
        """Equal for equal values, however they are written and in whatever order."""
        return blake2b(canonical_json(self.values).encode(), digest_size=16).hexdigest()

    def time_of(self, key: str) -> int:
        return parse_iso(self.values.get(key))

    def with_values(self, **values: Any) -> MemoryFile:
        """With other values; None takes a key away, and nothing is no list."""
        new = {name: None if value == [] else value for name, value in values.items()}
        return MemoryFile(_change_values(self.values, new))

    def to_bytes(self) -> bytes:
        if self.raw:
            return self.raw
        text = json.dumps(self.values, ensure_ascii=False, indent=2)
        try:
            return f"{text}\n".encode()
        except UnicodeEncodeError:  # half a character, which only an escape can say
            return f"{json.dumps(self.values, indent=2)}\n".encode()


def _change_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    gone = {name for name, value in new.items() if value is None}
    return {name: value for name, value in {**old, **new}.items() if name not in gone}


def canonical_json(value: Any) -> str:
    """One text for one value. Compared instead of the values: to Python, 1 and true are equal."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# --- reading -------------------------------------------------------------------------------------


def parse_memory_file(data: bytes, where: str = "memory") -> MemoryFile:
    """The memory in a file; SourceError with a sentence where it is none."""
    try:
        values = json.loads(data.decode("utf-8-sig"))
        if not _is_shallow(values, _DEEPEST + 1):
            raise RecursionError
        msgspec.convert(values, _Form)
    except msgspec.ValidationError as error:
        raise SourceError(f"{where}: is no memory ({error})") from None
    except ValueError as error:
        raise SourceError(f"{where}: is not JSON ({error})") from None
    except RecursionError:
        raise SourceError(f"{where}: is nested too deeply") from None
    return MemoryFile(values, data)


def _is_shallow(value: Any, levels: int) -> bool:
    parts: Iterable[Any] = ()
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(part, levels - 1) for part in parts)


def redact_memory_file(one: MemoryFile) -> bytes:
    """The file as it may be kept: what is secret, private or was injected goes. b"" where nothing
    can be kept of it."""
    values = change_texts(one.values, lambda text: redact(strip_fenced(text)))
    data = one.to_bytes() if values == one.values else MemoryFile(values).to_bytes()
    try:
        parse_memory_file(data)
    except SourceError:
        return b""
    return data


# --- a memory of the store as a file -------------------------------------------------------------


def file_from_memory(
    memo: Memo, id_: str, kept: MemoFile | None, history: Sequence[Change], successor: str = ""
) -> MemoryFile:
    """The memory as a file of this id. `history` is what was changed since the file was read (all,
    where there is none), the newest first; `successor` is what a superseded one was replaced by."""
    now, was = plain_form(memo), Plain()
    if kept is None:
        known = {"schema_version": "1.0", "created_at": format_iso(memo.item.epoch)}
        file = MemoryFile(dict.fromkeys(_Form.__struct_fields__) | known)
    else:
        file, was = parse_memory_file(kept.raw), dict(now)
        for change in history:
            was |= change.before or {}
    if file.values["id"] != id_:
        file = file.with_values(id=id_)
    told = {name for name in TOLD if now[name] != was.get(name)}
    if not told:
        return file
    values = {key: now[name] for name, key in _FIELDS.items() if name in told}
    if "type" in told:
        values |= {"category": now["type"], "content": now["content"]}
    elif "content" in told:
        before, after = was["content"], now["content"]
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        values["content"] = _change_values(file.content, {name: after.get(name) for name in names})
    if told & {"status", "reason"}:
        values |= dict.fromkeys(_STATUS_KEYS) | _status_values(memo, successor)
    changes = [
        {"date": format_iso(one.epoch), "summary": one.why or f"{one.what}: {', '.join(names)}"}
        for one in reversed(history)
        if one.before is not None and (names := [name for name in TOLD if name in one.after])
    ]
    return file.with_values(
        **values,
        updated_at=format_iso(memo.item.updated),
        times_updated=(file.values.get("times_updated") or 0) + len(changes),
        changes=[*(file.values.get("changes") or ()), *changes],
    )


def _status_values(memo: Memo, successor: str) -> Plain:
    """A file knows no superseded ones: they are retired, and say why."""
    status = "retired" if memo.item.status == "superseded" else memo.item.status
    if status == "active":
        return {"record_status": status}
    why = f"superseded by {successor}" if successor else memo.reason
    return {
        "record_status": status,
        f"{status}_at": format_iso(memo.since),
        f"{status}_reason": why or None,
    }


# --- a file as a memory of the store -------------------------------------------------------------


def draft_from_file(one: MemoryFile) -> Draft:
    """What a file says as something to be kept; UsageError where it is of none of our categories.

    What its category does not know is left out; the file, which is kept, has it."""
    category, values = CATEGORIES.get(one.category.replace("-", "_")), one.values
    if category is None or not category.folder:
        raise UsageError(f"category is {one.category!r}, but must be one of {', '.join(FILED)}")
    confidence = values.get("confidence")
    return Draft(
        type=category.name,
        title=shorten_text(clean_text(one.title), LONGEST_TITLE),
        content=_pick_fields(category.fields, one.content),
        tags=one.tags,
        files=tuple(values.get("related_files") or ()),
        confidence=1.0 if confidence is None else confidence,
        slug=one.id,
        epoch=one.time_of("created_at") or one.time_of("updated_at"),
        status=one.status,
        reason=str(values.get(f"{one.status}_reason") or ""),
    )


def _pick_fields(fields: Sequence[Field], content: Any) -> Any:
    """Of a content, or of records in one, what the category knows."""
    if isinstance(content, list):
        return [_pick_fields(fields, one) for one in content]
    if not fields or not isinstance(content, Mapping):
        return content
    known = [field for field in fields if field.name in content]
    return {field.name: _pick_fields(field.fields, content[field.name]) for field in known}


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
    categories: dict[str, _CategoryConfig] = {}

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
_LONGEST_TAG = 60
_ENTRY = re.compile(r"\A-\s+\[[A-Z][A-Z0-9_]*\]\s.* -> ")
_TAGS_MARK = re.compile(r"(#\s*tags)\s*:[\s:]*", re.IGNORECASE)
_SAFE = "/!$&'()*+,;=:@~"  # what may stand in a path as it is, besides letters and digits


def make_index_line(one: MemoryFile, path: str) -> str:
    """What can be said of a memory in one line; its id stands in for a title nobody sees."""
    label = re.sub(r"[^A-Z0-9_]", "_", one.category.upper())
    title = _neutral_words(one.title, LONGEST_TITLE) or one.id
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
        entries = [line for line in before if _ENTRY.match(line)]
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
            deepest = len(here.parts) == _DEEPEST_FOLDER
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


# --- where the folder is -------------------------------------------------------------------------


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


def find_memory_folder(cwd: Path, top: str) -> Path:
    """The `.claude/memory` that is there for a folder: its own, else that of its project's top."""
    for owner in (cwd, Path(top)) if top else (cwd,):
        if (owner / INSIDE).is_dir():
            return owner / INSIDE
    raise NotFound(f"{cwd} has no {INSIDE}; to write one, name it: yester memory sync {INSIDE}")
