"""Rows that are written down as they happen, in SQLite (`records.LEDGER`), and sums over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct, field

from yester.clock import DAY, QUARTER
from yester.model import (
    ANYTHING,
    EVERYTHING,
    Answered,
    Change,
    Filters,
    Paging,
    Source,
    replace,
)
from yester.store.contract import Row
from yester.store.records import LEDGER, Table
from yester.store.rows.base import Rows
from yester.store.rows.rows import Condition, put_sql

R = TypeVar("R", bound=Struct)
_BY_REF = "SELECT 1 FROM item WHERE ref = ?"
_LONGEST = 60_000  # ms; whoever waits longer for an answer has gone


class _Sums(Struct, frozen=True):
    """What can be counted of a table, and by what; a name that is not there is a column."""

    source: str
    by: Mapping[str, str] = field(default_factory=dict)
    sums: Mapping[str, str] = field(default_factory=dict)
    time: str = ""  # the column `since` compares
    only: str = "true"  # what holds for those that are counted


_CHARACTERS = (
    "sum(length(i.title) + length(i.subtitle) + length(i.body)"
    " + iif(i.facts = '[]', 0, length(i.facts))"
    # What a summary says stands in its sections, each under its name.
    " + iif(i.sections = '{}', 0, (SELECT coalesce(sum(length(key) + length(value) + 2), 0)"
    " FROM json_each(i.sections, '$'))))"
)
_TOTALS: Mapping[str, _Sums] = {
    "item": _Sums(
        "item i LEFT JOIN project p ON p.id = i.project",
        {
            "project": "p.key", "day": f"i.epoch / {DAY}", "quarter": f"i.epoch / {QUARTER}",
            "label": "iif(i.type = '', i.kind, i.type)",
        },
        {
            "sessions": "count(DISTINCT nullif(i.session, 0))",
            "characters": _CHARACTERS,
            "oldest": "coalesce(min(nullif(i.epoch, 0)), 0)", "newest": "max(i.epoch)",
        },
        "i.epoch",
    ),
    # What follows is asked for by `status`, `stats` and the viewer's pages: it must not read every
    # item there is, so each goes by an index of its own.
    "times": _Sums(
        "(SELECT 1)",
        {},
        {
            "oldest": "(SELECT min(epoch) FROM item WHERE epoch > 0)",
            "newest": "(SELECT max(epoch) FROM item)",
        },
    ),
    "typed": _Sums("(SELECT type FROM item WHERE type <> '')"),
    "put away": _Sums("item", only="status <> 'active'"),
    "distilled": _Sums(
        "item i",
        {},
        {"discovery_tokens": "sum(i.discovery_tokens)", "characters": _CHARACTERS},
        only="i.status = 'active' AND i.discovery_tokens > 0",
    ),
    # Active items, counted when they are indexed: field -1 stands for the items themselves.
    "indexed": _Sums(
        "(SELECT * FROM length WHERE field = -1 AND items > 0) l"
        " JOIN project p ON p.id = l.project",
        {"project": "p.key"},
        {"number": "sum(l.items)"},
    ),
    "session": _Sums(
        "session s LEFT JOIN project p ON p.id = s.project",
        {"project": "p.key"},
        {"last": "max(s.ended)"},
    ),
    "concept": _Sums("item_concept"),
    "concept of item": _Sums("item_concept c JOIN item i ON i.id = c.item"),
    "tag": _Sums(
        "(SELECT DISTINCT m.item, t.value AS tag FROM memory m JOIN item i ON i.id = m.item"
        " CROSS JOIN json_each(i.tags, '$') t WHERE i.status = 'active')"
    ),
    "vector": _Sums(
        "(SELECT 1)",
        {},
        {
            "any": "EXISTS (SELECT 1 FROM vector)",
            # Kept by who writes them; counted where nobody has since.
            "items": "coalesce((SELECT cast(value AS BIGINT) FROM meta WHERE key = 'embedded'),"
                     " (SELECT count(DISTINCT item) FROM vector_code))",
        },
    ),
    "undistilled": _Sums(
        "undistilled u",
        {"hooked": "iif(EXISTS (SELECT 1 FROM turn t WHERE t.session = u.session), 1, 0)"},
    ),
    "event": _Sums("event", {"day": f"epoch / {DAY}"}, time="epoch"),
    "answered": _Sums("answered", {}, {"number": "sum(answers)"}, f"day * {DAY}"),
    "skipped": _Sums("skipped", {}, {"number": "sum(records)"}),
    "shown": _Sums(
        "injection n LEFT JOIN item i ON i.id = n.item LEFT JOIN project p ON p.id = i.project",
        {"day": f"n.epoch / {DAY}", "project": "coalesce(p.key, '')"},
        {
            # Something came of it there, or the user says so; a look at it is nothing.
            "used": "sum(iif(EXISTS (SELECT 1 FROM feedback f WHERE f.item = n.item"
                    " AND f.session IN (0, n.session)"
                    " AND f.what IN ('acted', 'fetched', 'useful')), 1, 0))",
            "times": "count(DISTINCT n.session || ' ' || n.epoch)", "tokens": "sum(n.tokens)",
            "discovery_tokens": "coalesce(sum(i.discovery_tokens), 0)",
        },
        "n.epoch",
    ),
    "spend": _Sums(
        "spend",
        {"day": "date(epoch / 1000, 'unixepoch')"},
        {
            "tokens_in": "coalesce(sum(tokens_in), 0)",
            "tokens_out": "coalesce(sum(tokens_out), 0)", "cost": "coalesce(sum(cost), 0.0)",
        },
        "epoch",
    ),
    "under way": _Sums("(SELECT * FROM spend WHERE outcome = '')", time="until"),
    "failure": _Sums("failure", {"day": f"epoch / {DAY}"}, time="epoch"),
    "refined": _Sums("refined", {}, {"last": "max(epoch)"}, "epoch"),
}  # fmt: skip


class LedgerRows(Rows):
    """The part of `SqliteStore` that writes down what happens."""

    # --- writing, inside a transaction -------------------------------------------------------

    def append(self, rows: Sequence[Row]) -> list[int]:
        return [self._append_row(row) for row in rows]

    def _append_row(self, row: Row | Change) -> int:
        table = LEDGER[type(row)]
        if isinstance(row, Source) and self._tombstones:
            state = self._clean_state(row)
            if state is None:
                return 0
            row = replace(row, state=state)
        values = table.values_of(row)
        if isinstance(row, Answered):
            values["ms"] = min(max(row.ms, 0), _LONGEST)
        if table.numbered and not (values["id"] and table.known and table.key == ("id",)):
            del values["id"]
        if table.known in ("replaced", "added up"):
            sql = put_sql(table.name, values, table.key, table.known == "added up")
        else:
            columns = ", ".join(table.columns[name] for name in values)
            sql = f"INSERT INTO {table.name}({columns}) SELECT :{', :'.join(values)}"
            if table.known:
                same = " AND ".join(f"{name} = :{name}" for name in table.key)
                sql += f" WHERE NOT EXISTS (SELECT 1 FROM {table.name} WHERE {same})"
        if table.numbered:
            sql += " RETURNING id"
        made = self._db.execute(sql, values).fetchone()
        return int(made[0]) if made else 0

    def _clean_state(self, row: Source) -> dict[str, object] | None:
        """Without names of what was forgotten; None where its path is one as well. It is read
        again then, in vain."""
        state: Any = row.state
        if "notes" in state:  # a ref has words of its note: what is not stored has none
            notes = [ref for ref in state["notes"] if self._first_row(_BY_REF, ref)]
            return {**state, "notes": notes} if notes or not state["notes"] else None
        if self._is_forgotten(str(state.get("project"))):
            return None
        labels = {name: str(state[name]) for name in ("title", "branch") if name in state}
        return {**state, **self._tombstones.clean_labels(str(state.get("session")), labels)}

    def retract(self, kind: type[Row], where: Mapping[str, object]) -> int:
        condition = _row_condition(LEDGER[kind], where)
        sql = f"DELETE FROM {LEDGER[kind].name} WHERE {condition.sql} RETURNING 1"
        return len(self._db.execute(sql, condition.values).fetchall())

    # --- reading -----------------------------------------------------------------------------

    def entries(
        self, kind: type[R], where: Mapping[str, object] = {}, page: Paging = EVERYTHING
    ) -> list[R]:
        table = LEDGER[kind]
        condition = _row_condition(table, where)
        columns = ", ".join(table.columns.values())
        found = self._db.execute(
            f"SELECT {columns} FROM {table.name}{condition.page_clause(page, *table.order)}",
            condition.values,
        )
        return [table.record_of(row) for row in found]

    def totals(
        self,
        table: str,
        by: Sequence[str] = (),
        sums: Sequence[str] = ("number",),
        where: Mapping[str, object] = {},
        since: int = 0,
        filters: Filters = ANYTHING,
    ) -> list[tuple[Any, ...]]:
        if table == "concept" and filters != ANYTHING:
            table = "concept of item"
        spec = _TOTALS.get(table) or _Sums(table)
        condition = Condition()
        condition.require(spec.only)
        if filters != ANYTHING:
            passing = self._filter_items(filters)
            condition.require(passing.sql, *passing.values)
        for name, value in where.items():
            condition.require(f"{spec.by.get(name, name)} = ?", value)
        if since:
            condition.require(f"{spec.time} >= ?", since)
        columns = [spec.by.get(name, name) for name in by]
        columns += [spec.sums.get(name, "count(*)") for name in sums]
        sql = f"SELECT {', '.join(columns)} FROM {spec.source} WHERE {condition.sql}"
        if by:
            places = ", ".join(map(str, range(1, len(by) + 1)))
            sql += f" GROUP BY {places} ORDER BY {places}"
        return list(self._db.execute(sql, condition.values))


def _row_condition(table: Table, where: Mapping[str, Any]) -> Condition:
    """Each field has its value, or one of its values."""
    condition = Condition()
    for name, value in where.items():
        if isinstance(value, str | int):
            condition.require(f"{table.columns[name]} = ?", value)
        else:
            condition.require_one_listed(table.columns[name], list(value))
        if name == table.partial:
            condition.require(f"{name} <> 0")
    return condition
