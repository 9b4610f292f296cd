"""Rows that are written down as they happen, in SQLite: one table of tables instead of a method for
each. A row is a record of `model`; its fields are the columns, except where `renamed` says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, field, structs

from yester.clock import DAY
from yester.model import (
    EVERYTHING,
    Answered,
    Archived,
    Change,
    Event,
    Feedback,
    Injection,
    Join,
    Muted,
    OwedStart,
    Paging,
    Refinement,
    Skipped,
    Source,
    Spend,
    Turn,
)
from yester.store.sqlite.connection import Connection
from yester.store.sqlite.maintenance import explains_errors

if TYPE_CHECKING:
    from yester.store.contract import Row

R = TypeVar("R", bound=Struct)
_LONGEST = 60_000  # ms; whoever waits longer for an answer has gone


class _Kind(Struct, frozen=True):
    """Where rows of a kind are kept, and what happens to one that is known already."""

    table: str
    known: str = ""  # SQL behind INSERT
    unless: str = ""  # SQL: a row with these named values is left out
    renamed: Mapping[str, str] = field(default_factory=dict)  # field → column
    numbered: bool = False  # by the store: rows have an id that says when they were written
    order: str = "id"
    encoded: tuple[str, ...] = ()  # fields that are kept as JSON
    partial: str = ""  # a column whose index does not hold 0: only so it is used


def _replace_columns(*columns: str) -> str:
    return "DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in columns)


_KINDS: Mapping[type, _Kind] = {
    Injection: _Kind("injection", numbered=True),
    Feedback: _Kind(
        "feedback",
        unless="SELECT 1 FROM feedback WHERE item = :item AND what = :what AND session = :session",
        numbered=True,
    ),
    Spend: _Kind(
        "spend",
        "ON CONFLICT(id) " + _replace_columns("tokens_in", "tokens_out", "cost", "outcome"),
        numbered=True,
    ),
    Event: _Kind("event", "ON CONFLICT DO NOTHING", partial="turn"),
    Turn: _Kind(
        "turn",
        "ON CONFLICT(session, key) "
        + _replace_columns("prompt", "closing", "started", "ended", "state", "transcript"),
        numbered=True,
    ),
    OwedStart: _Kind(
        "owed_start",
        "ON CONFLICT(session) " + _replace_columns("event", "source", "epoch"),
        order="session",
    ),
    Refinement: _Kind(
        "refined",
        "ON CONFLICT(session, turn) " + _replace_columns("shape", "epoch", "model", "reason"),
        order="session, turn",
    ),
    Archived: _Kind(
        "archived",
        "ON CONFLICT(session) " + _replace_columns("ended", "epoch"),
        order="session",
    ),
    Muted: _Kind("muted", "ON CONFLICT DO NOTHING", renamed={"epoch": "made"}, order="session"),
    Skipped: _Kind(
        "skipped",
        "ON CONFLICT DO UPDATE SET records = records + excluded.records",
        order="agent, reason",
    ),
    Answered: _Kind(
        "answered",
        "ON CONFLICT DO UPDATE SET answers = answers + excluded.answers",
        order="day, ms",
    ),
    Join: _Kind("project_join", renamed={"into": "into_key"}),
    Change: _Kind("memory_change", numbered=True, encoded=("before", "after")),
    Source: _Kind(
        "source",
        "ON CONFLICT(path) "
        + _replace_columns("agent", "size", "mtime_ns", "offset", "line", "head", "state"),
        order="path",
        encoded=("state",),
    ),
}


class _Sums(Struct, frozen=True):
    """What can be counted of a table, and by what."""

    source: str
    by: Mapping[str, str] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)
    time: str = ""  # the column `since` compares


_NUMBER = {"number": "count(*)"}
_CHARACTERS = (
    "sum(length(i.title) + length(i.subtitle) + length(i.body)"
    " + iif(i.facts = '[]', 0, length(i.facts))"
    # What a summary says stands in its sections, each under its name.
    " + iif(i.sections = '{}', 0, (SELECT coalesce(sum(length(key) + length(value) + 2), 0)"
    " FROM json_each(i.sections))))"
)
_TOTALS: Mapping[str, _Sums] = {
    "item": _Sums(
        "item i LEFT JOIN project p ON p.id = i.project",
        {
            "kind": "i.kind", "type": "i.type", "status": "i.status", "project": "p.key",
            "day": f"i.epoch / {DAY}", "label": "iif(i.type = '', i.kind, i.type)",
            "counted": "i.discovery_tokens > 0", "typed": "i.type <> ''",
        },
        {
            **_NUMBER, "discovery_tokens": "sum(i.discovery_tokens)", "characters": _CHARACTERS,
            "oldest": "min(i.epoch)", "newest": "max(i.epoch)",
        },
        "i.epoch",
    ),
    # Active items, counted when they are indexed: field -1 stands for the items themselves.
    "indexed": _Sums(
        "(SELECT * FROM length WHERE field = -1 AND items > 0) l"
        " JOIN project p ON p.id = l.project",
        {"kind": "l.kind", "project": "p.key"},
        {"number": "sum(l.items)"},
    ),
    "project": _Sums("project", {}, _NUMBER),
    "session": _Sums(
        "session s LEFT JOIN project p ON p.id = s.project",
        {"agent": "s.agent", "project": "p.key"},
        {**_NUMBER, "last": "max(s.ended)"},
    ),
    "source": _Sums("source", {"agent": "agent"}, _NUMBER),
    "concept": _Sums("item_concept", {"concept": "concept"}, _NUMBER),
    "tag": _Sums("memory_tag", {"tag": "tag"}, _NUMBER),
    "vector": _Sums(
        "(SELECT 1)",
        {},
        {
            "any": "EXISTS (SELECT 1 FROM vector)",
            "items": "(SELECT count(DISTINCT item) FROM vector_code)",
        },
    ),
    "unembedded": _Sums("unembedded", {}, _NUMBER),
    "undistilled": _Sums(
        "undistilled u",
        {"hooked": "EXISTS (SELECT 1 FROM turn t WHERE t.session = u.session)"},
        _NUMBER,
    ),
    "event": _Sums("event", {"day": f"epoch / {DAY}", "lag": "lag"}, _NUMBER, "epoch"),
    "answered": _Sums(
        "answered", {"day": "day", "ms": "ms"}, {"number": "sum(answers)"}, f"day * {DAY}"
    ),
    "skipped": _Sums("skipped", {"reason": "reason"}, {"number": "sum(records)"}),
    "shown": _Sums(
        "injection n LEFT JOIN item i ON i.id = n.item",
        {"event": "n.event", "day": f"n.epoch / {DAY}"},
        {
            **_NUMBER, "times": "count(DISTINCT n.session || ' ' || n.epoch)",
            "tokens": "sum(n.tokens)", "discovery_tokens": "coalesce(sum(i.discovery_tokens), 0)",
        },
        "n.epoch",
    ),
    "spend": _Sums(
        "spend",
        {
            "day": "date(epoch / 1000, 'unixepoch')", "model": "model", "purpose": "purpose",
            "outcome": "outcome",
        },
        {
            **_NUMBER, "tokens_in": "cast(total(tokens_in) AS INTEGER)",
            "tokens_out": "cast(total(tokens_out) AS INTEGER)", "cost": "total(cost)",
        },
        "epoch",
    ),
    "under way": _Sums("(SELECT * FROM spend WHERE outcome = '')", {}, _NUMBER, "until"),
    "refined": _Sums(
        "refined", {"reason": "reason"}, {**_NUMBER, "last": "max(epoch)"}, "epoch"
    ),
}  # fmt: skip


class LedgerRows(Connection):
    """The part of `SqliteStore` that writes down what happens."""

    # --- writing, inside a transaction -------------------------------------------------------

    def append(self, rows: Sequence[Row]) -> list[int]:
        return [self._append_row(row) for row in rows]

    def _append_row(self, row: Row | Change) -> int:
        kind = _KINDS[type(row)]
        values = structs.asdict(row)
        for name in kind.encoded:
            values[name] = msgspec.json.encode(values[name]).decode()
        if isinstance(row, Answered):
            values["ms"] = min(max(row.ms, 0), _LONGEST)
        if kind.numbered and not (isinstance(row, Spend) and row.id):
            del values["id"]
        columns = ", ".join(kind.renamed.get(name, name) for name in values)
        marks = ", ".join(f":{name}" for name in values)
        given = f"VALUES ({marks})"
        if kind.unless:
            given = f"SELECT {marks} WHERE NOT EXISTS ({kind.unless})"
        told = "RETURNING id" if kind.numbered else ""
        made = self._db.execute(
            f"INSERT INTO {kind.table}({columns}) {given} {kind.known} {told}", values
        ).fetchone()
        return int(made[0]) if made else 0

    def retract(self, kind: type[Row], where: Mapping[str, object]) -> int:
        condition, args = _row_condition(_KINDS[kind], where)
        before = self._db.total_changes()
        self._db.execute(f"DELETE FROM {_KINDS[kind].table} WHERE {condition}", args)
        return self._db.total_changes() - before

    # --- reading -----------------------------------------------------------------------------

    @explains_errors
    def entries(
        self, kind: type[R], where: Mapping[str, object] = {}, page: Paging = EVERYTHING
    ) -> list[R]:
        spec = _KINDS[kind]
        condition, args = _row_condition(spec, where)
        if page.after:
            condition += " AND id > ?"
            args.append(page.after)
        if page.before:
            condition += " AND id < ?"
            args.append(page.before)
        names = kind.__struct_fields__
        columns = ", ".join(spec.renamed.get(name, name) for name in names)
        order = spec.order if page.oldest_first else f"{spec.order} DESC"
        found = self._db.execute(
            f"SELECT {columns} FROM {spec.table} WHERE {condition} ORDER BY {order} LIMIT ?",
            (*args, page.sql_limit),
        )
        if not spec.encoded:
            return [kind(*row) for row in found]
        decode = [msgspec.json.decode if name in spec.encoded else _keep_value for name in names]
        return [kind(*(read(v) for read, v in zip(decode, row, strict=True))) for row in found]

    @explains_errors
    def totals(
        self,
        table: str,
        by: Sequence[str] = (),
        sums: Sequence[str] = ("number",),
        where: Mapping[str, object] = {},
        since: int = 0,
    ) -> list[tuple[Any, ...]]:
        spec = _TOTALS[table]
        condition, args = _match_values({name: spec.by[name] for name in where}, where)
        if since:
            condition += f" AND {spec.time} >= ?"
            args.append(since)
        groups = ", ".join(spec.by[name] for name in by)
        numbers = ", ".join(spec.sums[name] for name in sums)
        sql = f"SELECT {groups}{', ' if by else ''}{numbers} FROM {spec.source} WHERE {condition}"
        if by:
            places = ", ".join(map(str, range(1, len(by) + 1)))
            sql += f" GROUP BY {places} ORDER BY {places}"
        return list(self._db.execute(sql, args))


def _keep_value(value: Any) -> Any:
    return value


def _row_condition(kind: _Kind, where: Mapping[str, object]) -> tuple[str, list[Any]]:
    columns = {name: kind.renamed.get(name, name) for name in where}
    condition, args = _match_values(columns, where)
    return condition + (f" AND {kind.partial} <> 0" if kind.partial in where else ""), args


def _match_values(columns: Mapping[str, str], where: Mapping[str, object]) -> tuple[str, list[Any]]:
    """Each column has its value, or one of its values."""
    parts, args = ["1"], list[Any]()
    for name, value in where.items():
        if isinstance(value, str | int):
            parts.append(f"{columns[name]} = ?")
            args.append(value)
        else:
            parts.append(f"{columns[name]} IN (SELECT value FROM json_each(?))")
            args.append(msgspec.json.encode(value).decode())
    return " AND ".join(parts), args
