"""Memories as answers: rows, what can be done with one, what of it can be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from yester.context.lines import item_icon
from yester.memories.categories import CATEGORIES, category_of
from yester.memories.lifecycle import STEPS, find_undoable, successor_id
from yester.memory import Memory as OpenedMemory
from yester.model import Memo
from yester.operations.answer import make_answer
from yester.operations.fields import about
from yester.redact import redact, redact_value
from yester.store.contract import Store
from yester.text.document import reading_cost
from yester.text.sentences import shorten_text

_BEGINNING = 240  # characters of the text in an index
Action = Literal["edit", "retire", "archive", "restore", "supersede", "undo"]
_STEPS: tuple[Action, ...] = ("retire", "archive", "restore")
FormKind = Literal["text", "long", "list", "number", "choice"]
# The kinds of fields that are edited one by one. A record in a record is sent as a whole.
_KINDS: Mapping[str, FormKind] = {
    "text": "text", "texts": "list", "choice": "choice", "flag": "choice",
}  # fmt: skip


class Memory(Struct, kw_only=True):
    """In the index form `text` is its beginning and `content` is left out."""

    id: int
    slug: str
    title: str
    type: str
    icon: str
    status: str
    scope: str
    path: Annotated[str, about("Of scope path: the files it holds for.")]
    project: str
    text: str
    content: (
        Annotated[dict[str, Any], about("By the fields of its type; left out in the index form.")]
        | UnsetType
    ) = UNSET
    tags: list[str]
    files: list[str]
    confidence: float
    origin: Annotated[str, about("Whose word it is: user, agent, file, import …")]
    version: Annotated[int, about("How often it was written; PATCH wants it back.")]
    created: int
    updated: int
    since: Annotated[int, about("When its status began.")]
    reason: Annotated[str, about("Why it has its status.")]
    supersedes: Annotated[int, about("The memory it replaces, or 0.")]
    superseded_by: Annotated[int, about("The memory that replaces it, or 0.")]
    tokens: int


class Changed(Struct, kw_only=True):
    """A line of a memory's history; what was done together has one `act`."""

    id: int
    act: int
    epoch: int
    who: str
    what: str
    why: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Field(Struct, kw_only=True):
    """Something of a memory that can be edited: part of `content`, or of the memory itself."""

    name: str
    label: str
    kind: FormKind
    choices: list[str]
    required: bool
    part: Literal["memory", "content"]


def describe_memory(opened: OpenedMemory, memo: Memo, full: bool = True) -> Memory:
    item, text = memo.item, redact(memo.item.body)
    return make_answer(
        Memory, item, title=redact(item.title) or shorten_text(text, 100),
        icon=item_icon(item.kind, item.type),
        project=redact(opened.project_names().get(item.project, item.project)),
        text=text if full else shorten_text(text, _BEGINNING),
        content=redact_value(memo.content) if full else UNSET,
        slug=redact(memo.slug), scope=memo.scope, path=redact(memo.path), version=memo.version,
        created=item.epoch, since=memo.since, reason=redact(memo.reason),
        superseded_by=successor_id(opened.reading, item.id), tokens=reading_cost(item),
    )  # fmt: skip


def list_actions(store: Store, memo: Memo, origin: str) -> list[Action]:
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


def list_fields(memo: Memo) -> list[Field]:
    """What of a memory can be edited, as a form shows it."""
    category = category_of(memo.item.type)
    content = [
        _form_field(
            one.name, "long" if one.name == category.text else _KINDS[one.kind], "content",
            required=one.required, choices=("true", "false") if one.kind == "flag" else one.choices,
        )
        for one in category.fields
        if one.kind in _KINDS
    ]  # fmt: skip
    own = _form_field("tags", "list"), _form_field("confidence", "number")
    return [_form_field("title", "text", required=True), *content, *own]


def _form_field(
    name: str,
    kind: FormKind,
    part: Literal["memory", "content"] = "memory",
    required: bool = False,
    choices: Sequence[str] = (),
) -> Field:
    label = name.replace("_", " ").capitalize()
    return Field(
        name=name, label=label, kind=kind, choices=[*choices], required=required, part=part
    )
