"""Memories as answers: rows, what can be done with one, what of it can be edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from yester.deliver.lines import item_icon
from yester.faces.http.memory_shapes import Action, Changed, Field, Memory
from yester.memories import categories
from yester.memories.categories import CATEGORIES, category_of
from yester.memories.lifecycle import STEPS, find_undoable, successor_id
from yester.model import Change, Memo
from yester.redact import redact
from yester.store.contract import Store
from yester.text.document import reading_cost
from yester.text.sentences import shorten_text

_BEGINNING = 240  # characters of the text in an index
_STEPS: tuple[Action, ...] = ("retire", "archive", "restore")
# The kinds of fields that are edited one by one. A record in a record is sent as a whole.
_KINDS: Mapping[str, Any] = {"text": "text", "texts": "list", "choice": "choice", "flag": "choice"}


class MemoryRows:
    """Rows of one answer: names are looked up once."""

    def __init__(self, store: Store, full: bool = True) -> None:
        self._store, self._full = store, full
        self._names = {project.key: project.name for project in store.projects()}

    def of(self, memos: Sequence[Memo]) -> list[Memory]:
        return [self.row(memo) for memo in memos]

    def row(self, memo: Memo) -> Memory:
        item = memo.item
        text = redact(item.body)
        return Memory(
            id=item.id, slug=redact(memo.slug), title=redact(item.title) or shorten_text(text, 100),
            type=redact(item.type), icon=item_icon(item.kind, item.type), status=item.status,
            scope=memo.scope, path=redact(memo.path),
            project=redact(self._names.get(item.project, item.project)),
            text=text if self._full else shorten_text(text, _BEGINNING),
            content=clean(memo.content) if self._full else UNSET,
            tags=[redact(tag) for tag in item.tags], files=[redact(path) for path in item.files],
            confidence=item.confidence, origin=item.origin, version=memo.version,
            created=item.epoch, updated=item.updated, since=memo.since,
            reason=redact(memo.reason), supersedes=item.supersedes,
            superseded_by=successor_id(self._store, item.id), tokens=reading_cost(item),
        )  # fmt: skip


def clean(value: Any) -> Any:
    """Texts in plain data without secrets; in keys, too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {redact(str(name)): clean(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [clean(part) for part in value]
    return value


def line(change: Change) -> Changed:
    return Changed(
        id=change.id, act=change.act, epoch=change.epoch, who=redact(change.who),
        what=change.what, why=redact(change.why), before=clean(change.before),
        after=clean(msgspec.to_builtins(change.after)),
    )  # fmt: skip


def actions(store: Store, memo: Memo, origin: str) -> list[Action]:
    """What can be done with it now by whoever has this origin."""
    type_, status, user = memo.item.type, memo.item.status, origin == "user"
    if type_ == "rule" and not user:
        return []
    found: list[Action] = ["edit"] if type_ in CATEGORIES else []
    for step in _STEPS:
        kept = step == "retire" and not category_of(type_).deletable and not user
        if status in STEPS[step][0] and not kept:
            found.append(step)
    if status == "active" and type_ in CATEGORIES:
        found.append("supersede")
    last = find_undoable(store, memo.item.id)
    rules = any(
        one.item.type == "rule" for one in store.memos(ids=sorted({change.item for change in last}))
    )
    if last and (user or not rules):
        found.append("undo")
    return found


def fields(memo: Memo) -> list[Field]:
    """What of a memory can be edited, as a form shows it."""
    row = category_of(memo.item.type)
    return [
        _field("title", "text", part="memory", required=True),
        *(_field(one.name, _kind(row, one), _choices(one), one.required) for one in _plain(row)),
        _field("tags", "list", part="memory"),
        _field("confidence", "number", part="memory"),
    ]


def _plain(row: categories.Category) -> Iterator[categories.Field]:
    return (one for one in row.fields if one.kind in _KINDS)


def _kind(row: categories.Category, one: categories.Field) -> Any:
    return "long" if one.name == row.text else _KINDS[one.kind]


def _choices(one: categories.Field) -> Sequence[str]:
    return ("true", "false") if one.kind == "flag" else one.choices


def _field(
    name: str, kind: Any, choices: Sequence[str] = (), required: bool = False, part: Any = "content"
) -> Field:
    return Field(
        name=name, label=name.replace("_", " ").capitalize(), kind=kind, choices=list(choices),
        required=required, part=part,
    )  # fmt: skip
