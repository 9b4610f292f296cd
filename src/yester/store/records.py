"""Records of `model` and the tables they are kept in: the same for every engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from yester import model
from yester.spans import move_spans


class Table:
    """Where records of a kind are kept. Their fields are its columns, except where `renamed` says
    so; those in `encoded` are kept as JSON of these types."""

    def __init__(
        self,
        record: type[Struct],
        name: str,
        key: str = "id",
        known: Literal["", "kept", "replaced", "added up"] = "",
        *,
        renamed: Mapping[str, str] | None = None,
        encoded: Mapping[str, Any] | None = None,
        partial: str = "",
        transient: Collection[str] = (),
    ) -> None:
        self.record, self.name = record, name
        self.key = tuple(key.split(", "))  # what names a row
        self.known = known  # what happens to a row that is known already
        self.partial = partial  # a column whose index does not hold 0: only so it is used
        # Those that are not kept come last.
        self.fields = tuple(one for one in record.__struct_fields__ if one not in transient)
        self.columns = {one: (renamed or {}).get(one, one) for one in self.fields}
        self._decoders = [
            (self.fields.index(one), msgspec.json.Decoder(type_))
            for one, type_ in (encoded or {}).items()
        ]
        # By the store: such rows have an id that says when they were written.
        self.numbered = "id" in self.fields and record is not model.Event
        self.order = ("id",) if self.numbered else self.key

    def values_of(self, record: Struct) -> dict[str, Any]:
        """What a row holds, by field."""
        values = structs.asdict(record)
        for at, _ in self._decoders:
            values[self.fields[at]] = msgspec.json.encode(values[self.fields[at]]).decode()
        return values

    def record_of(self, row: Sequence[Any]) -> Any:
        """The record of a row whose columns are in the order of the fields."""
        if not self._decoders:
            return self.record(*row)
        values = list(row)
        for at, decoder in self._decoders:
            values[at] = decoder.decode(values[at]) if values[at] else None
        return self.record(*values)


_NAMES = dict.fromkeys(
    ("facts", "concepts", "tags", "files_read", "files_modified"), tuple[str, ...]
)
ITEM = Table(
    model.Item, "item", encoded={**_NAMES, "sections": dict, "call": model.ToolCall},
    transient=("changes",),
)  # fmt: skip
LEDGER: Mapping[type[Struct], Table] = {
    table.record: table
    for table in (
        Table(model.Injection, "injection"),
        Table(model.Feedback, "feedback", "item, what, session", "kept"),
        Table(model.Spend, "spend", "id", "replaced"),
        Table(model.Event, "event", "id", "kept", partial="turn"),
        Table(model.Turn, "turn", "session, key", "replaced"),
        Table(model.OwedStart, "owed_start", "session", "replaced"),
        Table(model.Refinement, "refined", "session, turn", "replaced"),
        Table(model.Archived, "archived", "session", "replaced"),
        Table(model.Muted, "muted", "session", "kept", renamed={"epoch": "made"}),
        Table(model.Skipped, "skipped", "agent, reason", "added up"),
        Table(model.Answered, "answered", "day, ms", "added up"),
        Table(
            model.Failure, "failure", "item, mark", "replaced",
            encoded=dict.fromkeys(("changes", "tried"), tuple[int, ...]),
        ),
        Table(model.Source, "source", "path", "replaced", encoded={"state": dict}),
        Table(model.Machine, "roam_machine", "key", "replaced"),
        Table(model.LogSegment, "roam_segment", "machine, number, mark", "kept"),
        Table(model.LogItem, "roam_item", "item", "replaced"),
        Table(
            model.LogVersion, "roam_version", "root, mark", "kept",
            encoded={"parents": tuple[str, ...]},
        ),
        Table(model.SharedItem, "share_item", "project, item", "replaced"),
        Table(model.ShareCursor, "share_cursor", "project", "replaced"),
        Table(model.Join, "project_join", renamed={"into": "into_key"}),
        Table(model.Change, "memory_change", encoded={"before": dict | None, "after": dict}),
    )
}  # fmt: skip


_ENDS = (3_000, 2_000)  # characters of a tool's input and output that are looked at
_GAP = "\n…\n"  # between them


def shorten_body(item: model.Item, brief: Collection[str], chars: int) -> model.Item:
    """The item as `Items.history` gives it: of thinking and of these tools so many characters, of
    other tools that wrote much both ends; the places of its call are those in what is left."""
    length = len(item.body)
    if item.role == "thinking" or item.tool in brief:
        start, end, gap = chars, length, ""
    elif item.role == "tool" and length > sum(_ENDS):
        start, end, gap = _ENDS[0], length - _ENDS[1], _GAP
    else:
        return item
    if start >= end:
        return item
    item = model.replace(item, body=item.body[:start] + gap + item.body[end:])
    if item.call is None:
        return item
    call = item.call.move_to(move_spans(item.call.spans, [(start, end, gap)]))
    return model.replace(item, call=model.replace(call, cut=True))
