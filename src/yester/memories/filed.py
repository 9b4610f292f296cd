"""A memory of the store as a file, and back.

What was read from a file is given back as it stood there: the file is kept (without secrets), and
of it only that is different which was changed in the store since then, by the memory's history. So
a memory nobody has touched comes out byte for byte, and keys and fields of other tools stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from yester.errors import SourceError, UsageError
from yester.fence import strip_fenced
from yester.memories.categories import CATEGORIES, LONGEST_TITLE, Category, Field
from yester.memories.content import Content, clean
from yester.memories.memo import Plain, plain
from yester.memories.remember import Draft
from yester.memories.written import Written, canonical, parsed, rendered, wrong
from yester.model import Change, Memo
from yester.redact import redact
from yester.store.contract import MemoFile
from yester.text.sentences import shorten_text

FILED = tuple(row.name for row in CATEGORIES.values() if row.folder)  # categories that have files
# plain form → key of the file, for what is taken over as it is
FIELDS: Mapping[str, str] = {
    "title": "title", "tags": "tags", "files": "related_files", "confidence": "confidence",
}  # fmt: skip
_TOLD = (*FIELDS, "type", "content", "status", "reason")  # what a file says of a memory
_STATUS_KEYS = ("retired_at", "retired_reason", "archived_at", "archived_reason")
_LAST = 253_402_300_799_000  # ms; the last moment that can be written


def iso(epoch: int) -> str:
    moment = datetime.fromtimestamp(min(max(epoch, 0), _LAST) // 1000, UTC)
    return moment.isoformat().replace("+00:00", "Z")


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


# --- out ---------------------------------------------------------------------------------------


def filed(
    memo: Memo, id_: str, file: MemoFile | None, history: Sequence[Change], newer: str = ""
) -> Written:
    """The memory as a file of this id. `history` is what was changed since the file was read (all,
    where there is none), the newest first; `newer` is what a superseded one was replaced by."""
    told = [
        change
        for change in reversed(history)
        if change.before is not None and any(name in change.after for name in _TOLD)
    ]
    if file is None:
        return _anew(memo, id_, told, newer)
    known = parsed(file.raw)
    if known.id != id_:
        known = known.changed(id=id_)
    now, was = plain(memo), plain(memo)
    for change in history:
        was |= change.before or {}
    if all(now[name] == was[name] for name in _TOLD):
        return known
    values: dict[str, Any] = {
        key: now[name] for name, key in FIELDS.items() if now[name] != was[name]
    }
    if now["type"] != was["type"]:
        values |= {"category": now["type"], "content": now["content"]}
    elif now["content"] != was["content"]:
        values["content"] = _changed(known.content, was["content"], now["content"])
    if (now["status"], now["reason"]) != (was["status"], was["reason"]):
        values |= dict.fromkeys(_STATUS_KEYS) | _status(memo, newer)
    return known.changed(
        **values,
        updated_at=iso(memo.item.updated),
        times_updated=(known.values.get("times_updated") or 0) + len(told),
        changes=[*(known.values.get("changes") or ()), *map(_entry, told)],
    )


def _anew(memo: Memo, id_: str, told: Sequence[Change], newer: str) -> Written:
    item = memo.item
    values = {
        "schema_version": "1.0", "category": item.type, "id": id_, "title": item.title,
        "created_at": iso(item.epoch), "updated_at": iso(item.updated), "tags": list(item.tags),
        "related_files": list(item.files) or None, "confidence": item.confidence,
        "changes": list(map(_entry, told)) or None, "times_updated": len(told),
        "content": plain(memo)["content"], **_status(memo, newer),
    }  # fmt: skip
    return Written({name: value for name, value in values.items() if value is not None})


def _changed(
    content: Mapping[str, Any], was: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    found = {name: value for name, value in content.items() if name in now or name not in was}
    return found | {name: value for name, value in now.items() if was.get(name) != value}


def _status(memo: Memo, newer: str) -> dict[str, Any]:
    """A file knows no superseded ones: they are retired, and say why."""
    status, at = memo.item.status, iso(memo.since)
    if status == "active":
        return {"record_status": "active"}
    if status == "archived":
        return {"record_status": status, "archived_at": at, "archived_reason": memo.reason or None}
    why = f"superseded by {newer}" if newer else memo.reason
    return {"record_status": "retired", "retired_at": at, "retired_reason": why or None}


def _entry(change: Change) -> dict[str, Any]:
    names = ", ".join(name for name in _TOLD if name in change.after)
    return {"date": iso(change.epoch), "summary": change.why or f"{change.what}: {names}"}


# --- in ----------------------------------------------------------------------------------------


def drafted_from(one: Written) -> Draft:
    """What a file says as something to be kept; UsageError where it is of none of our categories.

    What its category does not know is left out; the file, which is kept, has it."""
    row = _category(one)
    given = one.values
    why = given.get(f"{one.status}_reason") if one.status != "active" else ""
    confidence = given.get("confidence")
    return Draft(
        type=row.name,
        title=shorten_text(clean(one.title), LONGEST_TITLE),
        content=_known(row.fields, one.content),
        tags=one.tags,
        files=one.related_files,
        confidence=1.0 if confidence is None else confidence,
        slug=one.id,
        epoch=milliseconds(given.get("created_at")) or milliseconds(given.get("updated_at")),
        status=one.status,
        reason=str(why or ""),
    )


def _category(one: Written) -> Category:
    name = one.category.replace("-", "_")
    if name not in FILED:
        raise UsageError(f"category is {one.category!r}, but must be one of {', '.join(FILED)}")
    return CATEGORIES[name]


def _known(fields: Sequence[Field], content: Mapping[str, Any]) -> Content:
    return {
        field.name: _inner(field, content[field.name]) for field in fields if field.name in content
    }


def _inner(field: Field, value: Any) -> Any:
    if field.kind == "record" and isinstance(value, Mapping):
        return _known(field.fields, value)
    if field.kind == "records" and isinstance(value, list):
        return [_known(field.fields, one) if isinstance(one, Mapping) else one for one in value]
    return value


def taken_over(have: Plain, read: Plain, present: Written, one: Written) -> Plain:
    """A memory's plain form with what is different in a file from how it was there (`present`).

    Field by field: what the store holds in its own words is not replaced by what it was made of."""
    wanted = dict(have)
    for name, key in FIELDS.items():
        if _differ(one.values, present.values, key) and not (name == "tags" and not one.tags):
            wanted[name] = read[name]
    kept: Content = {}
    for field in _category(one).fields:
        source = read if _differ(one.content, present.content, field.name) else have
        if field.name in source["content"]:
            kept[field.name] = source["content"][field.name]
    wanted["content"] = kept
    if one.status != present.status:
        wanted |= {"status": one.status, "reason": read["reason"]}
    elif have["status"] == one.status and any(
        _differ(one.values, present.values, f"{status}_reason")
        for status in ("retired", "archived")
    ):
        wanted["reason"] = read["reason"]
    return wanted


def _differ(one: Mapping[str, Any], other: Mapping[str, Any], name: str) -> bool:
    return canonical(one.get(name)) != canonical(other.get(name))


def without_secrets(one: Written) -> bytes:
    """The file as it may be kept: what is secret, private or was injected goes, all else stays as
    it is written. b"" where nothing can be kept of it."""
    values = {name: _harmless(value) for name, value in one.values.items()}
    if canonical(values) == canonical(one.values):
        data = one.bytes()
    elif wrong(values):
        return b""
    else:
        data = rendered(values, one.raw)
    try:
        kept = parsed(data)
    except SourceError:
        return b""
    return data if all(_harmless(name) == name for name in _names(kept.values)) else b""


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return redact(strip_fenced(value))
    if isinstance(value, list):
        return [_harmless(one) for one in value]
    if isinstance(value, dict):
        return {name: _harmless(one) for name, one in value.items()}
    return value


def _names(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [name for key, one in value.items() for name in (key, *_names(one))]
    return [name for one in value for name in _names(one)] if isinstance(value, list) else []
