"""A memory as a file: one JSON object, parsed and rendered here and nowhere else.

Other tools write these files too. A file that nobody has changed is not rendered at all: its bytes
are given back as they were read. A changed one is written with its own keys in their own order,
also those that nobody here knows.

The store keeps the file a memory was read from (without secrets). What is written later is that
file with the fields that were changed in the store since then, which the memory's history tells.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Annotated, Any, Literal

import msgspec

from yester.clock import format_iso, parse_iso
from yester.errors import SourceError, UsageError
from yester.fence import strip_fenced
from yester.memories.categories import CATEGORIES, LONGEST_TITLE, Field, clean_text
from yester.memories.memory import Plain, plain_form
from yester.memories.remember import Draft
from yester.model import Change, Memo, MemoFile
from yester.redact import change_texts, redact
from yester.text.sentences import shorten_text

LONGEST_ID = 80
FILED = tuple(row.name for row in CATEGORIES.values() if row.folder)  # categories that have files
# plain form → key of the file, for what is taken over as it is
_FIELDS: Mapping[str, str] = {
    "title": "title", "tags": "tags", "files": "related_files", "confidence": "confidence",
}  # fmt: skip
TOLD = (*_FIELDS, "type", "content", "status", "reason")  # what a file says of a memory
_STATUS_KEYS = ("retired_at", "retired_reason", "archived_at", "archived_reason")
_ORDER = (
    "schema_version", "category", "id", "title", "record_status", "created_at", "updated_at",
    "tags", "related_files", "confidence", "changes", "times_updated", *_STATUS_KEYS, "content",
)  # fmt: skip
_DEEPEST = 40  # levels of objects and lists in each other


class _Form(msgspec.Struct):
    """What the known keys may hold; null is as good as nothing. The content is its category's
    business. The id becomes the name of a file: no separator, no leading dot, no space."""

    category: Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9_-]{0,39}\Z")]
    id: Annotated[
        str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=LONGEST_ID)
    ]
    title: Annotated[str, msgspec.Meta(pattern=r"\S")]
    content: dict[str, Any]
    schema_version: str | None = None
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


@dataclass(frozen=True)
class MemoryFile:
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
    now = plain_form(memo)
    if kept is None:
        file, was = MemoryFile(dict.fromkeys(_ORDER) | {"schema_version": "1.0"}), Plain()
        values: Plain = {"id": id_, "created_at": format_iso(memo.item.epoch)}
    else:
        file, was, values = parse_memory_file(kept.raw), dict(now), {}
        for change in history:
            was |= change.before or {}
        if file.id != id_:
            file = file.with_values(id=id_)
        if all(now[name] == was[name] for name in TOLD):
            return file
    values |= {key: now[name] for name, key in _FIELDS.items() if now[name] != was.get(name)}
    if now["type"] != was.get("type"):
        values |= {"category": now["type"], "content": now["content"]}
    elif now["content"] != was["content"]:
        before, after = was["content"], now["content"]
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        values["content"] = _change_values(file.content, {name: after.get(name) for name in names})
    if any(now[name] != was.get(name) for name in ("status", "reason")):
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
        "record_status": status, f"{status}_at": format_iso(memo.since),
        f"{status}_reason": why or None,
    }  # fmt: skip


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
